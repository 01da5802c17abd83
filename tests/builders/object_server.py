"""Object stores on this machine: S3, Google Cloud Storage and Azure Blob Storage, as far as lakeview speaks to them.

Creation under a condition is atomic, each request may be delayed, counted and made to fail. Signatures are not
verified; a request without any may be refused.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from lakeview.model.clock import system_clock
from tests.builders.http_servers import http_server

PAGE = 1000
"""Objects of one page of a listing."""

REFUSE, EXPIRED, CONFLICT = "refuse", "expired", "conflict"
LOSE_REPLY, LOSE_REQUEST, UNAVAILABLE = "lose reply", "lose request", "503"
"""What may be done to a request: 403; S3's 400 of an expired session token; S3's 409 of a concurrent request; the
connection closed after the request was carried out, or before it; 503."""


class Request(NamedTuple):
    """One request: LIST, GET, HEAD, PUT or DELETE; the bucket, and the key or the listed prefix in it."""

    kind: str
    bucket: str
    key: str


class Stored(NamedTuple):
    """An object's bytes and the time of its creation, in seconds since 1970."""

    data: bytes
    created: float


@dataclass
class ObjectServer:
    """Buckets by name, each with its objects by key.

    `session_tokens`: those that requests to S3 came with, None for a request without one.
    `seconds`: a wait before each answer. `fault`: which of the faults above happens to a request, None for none.
    `ignores_conditions`: whether an object is replaced although the request says that it must be absent.
    `needs_signature`: whether a request without a signature is refused.
    """

    buckets: dict[str, dict[str, Stored]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    session_tokens: set[str | None] = field(default_factory=set)
    seconds: float = 0.0
    fault: Callable[[Request], str | None] = lambda _: None
    ignores_conditions: bool = False
    needs_signature: bool = False
    endpoint: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def options(self, kind: str) -> dict[str, Any]:
        """Storage options, in deltalake's spelling, that lead here as a store of a kind: s3, google or azure."""
        return {
            "s3": {
                "AWS_ENDPOINT_URL": self.endpoint, "AWS_ACCESS_KEY_ID": "an-id", "AWS_SECRET_ACCESS_KEY": "s3cr3t",
                "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true",
            },
            "google": {"GOOGLE_BASE_URL": self.endpoint, "GOOGLE_BEARER_TOKEN": "s3cr3t"},
            "azure": {
                "AZURE_STORAGE_ENDPOINT": f"{self.endpoint}/account", "AZURE_STORAGE_ACCOUNT_NAME": "account",
                "AZURE_STORAGE_ACCOUNT_KEY": AZURE_KEY,
            },
        }[kind]  # fmt: skip

    def bucket(self, kind: str = "s3") -> str:
        """The address of a new, empty bucket."""
        name = f"lake-{len(self.buckets)}"
        self.buckets[name] = {}
        return {"s3": "s3", "google": "gs", "azure": "az"}[kind] + f"://{name}"

    def copy(self, folder: Path, address: str) -> None:
        """Put the files of a folder below an address."""
        bucket, _, prefix = address.partition("://")[2].partition("/")
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                key = f"{prefix}/{path.relative_to(folder).as_posix()}".lstrip("/")
                self.buckets[bucket][key] = Stored(path.read_bytes(), path.stat().st_mtime)

    def count(self) -> dict[str, int]:
        """How many requests there were of each kind."""
        kinds = [request.kind for request in self.requests]
        return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


class _Answer(NamedTuple):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = MappingProxyType({})


_RANGE = re.compile(r"bytes=(\d*)-(\d*)$")


class _Handler(BaseHTTPRequestHandler):
    """A request to an answer. S3 and Google address `/bucket/key`, Azure `/account/container/key`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    store: ObjectServer

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_any(self) -> None:
        """Carry a request out."""
        body = self._body()
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        parts = unquote(url.path).lstrip("/").split("/")
        is_azure = "x-ms-version" in self.headers
        bucket, key = (parts[1] if len(parts) > 1 else "", parts[2:]) if is_azure else (parts[0], parts[1:])
        request = Request(self.command, bucket, "/".join(key))
        if self.command == "GET" and not request.key:
            request = Request("LIST", bucket, query.get("prefix", ""))
        self.store.requests.append(request)
        self.store.session_tokens.add(self.headers.get("x-amz-security-token"))
        if self.store.seconds:
            time.sleep(self.store.seconds)  # noqa: TID251 (the latency that is measured)
        fault = self.store.fault(request)
        answer = _Answer(0)
        if fault != LOSE_REQUEST:
            answer = _FAULTS.get(fault) or self._answer(request, query, body, is_azure)
        if fault in (LOSE_REPLY, LOSE_REQUEST):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._send(answer)

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = do_any  # noqa: N815 (names that http.server looks for)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def _send(self, answer: _Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if "content-length" not in answer.headers:
            self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _answer(self, request: Request, query: dict[str, str], body: bytes, is_azure: bool) -> _Answer:
        if self.store.needs_signature and "authorization" not in self.headers and "X-Amz-Signature" not in query:
            return _FAULTS[REFUSE]
        with self.store.lock:
            objects = self.store.buckets.get(request.bucket)
            if objects is None:
                return _error(404, "ContainerNotFound" if is_azure else "NoSuchBucket")
            match request.kind:
                case "LIST":
                    return (_azure_listing if is_azure else _listing)(objects, query)
                case "PUT":
                    return self._put(objects, request.key, body, is_azure)
                case "POST":
                    return _deleted_batch(objects, body)
                case "DELETE":
                    return _Answer(204) if objects.pop(request.key, None) else _missing(is_azure)
            stored = objects.get(request.key)
        return _missing(is_azure) if stored is None else self._get(stored)

    def _put(self, objects: dict[str, Stored], key: str, body: bytes, is_azure: bool) -> _Answer:
        only_if_absent = (
            self.headers.get("if-none-match") == "*" or self.headers.get("x-goog-if-generation-match") == "0"
        )
        if only_if_absent and key in objects and not self.store.ignores_conditions:
            return _error(409, "BlobAlreadyExists") if is_azure else _error(412, "PreconditionFailed")
        objects[key] = Stored(body, system_clock().timestamp())
        return _Answer(201 if is_azure else 200, headers=_headers(objects[key]) | {"content-length": "0"})

    def _get(self, stored: Stored) -> _Answer:
        data, headers = stored.data, _headers(stored) | {"accept-ranges": "bytes"}
        match = _RANGE.match(self.headers.get("x-ms-range") or self.headers.get("range") or "")
        if match is None:
            return _Answer(200, data, headers | {"content-length": str(len(data))})
        first, last = match.groups()
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last) + 1 if first and last else len(data), len(data))
        if start >= len(data):
            return _error(416, "InvalidRange")
        span = {"content-range": f"bytes {start}-{end - 1}/{len(data)}", "content-length": str(end - start)}
        return _Answer(206, data[start:end], headers | span)


def _headers(stored: Stored) -> dict[str, str]:
    return {
        "etag": f'"{md5(stored.data, usedforsecurity=False).hexdigest()}"',
        "last-modified": formatdate(stored.created, usegmt=True),
        "x-ms-blob-type": "BlockBlob",
        "x-goog-generation": "1",
        "content-type": "application/octet-stream",
    }


def _error(status: int, code: str) -> _Answer:
    text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
    return _Answer(status, text.encode(), {"content-type": "application/xml", "x-ms-error-code": code})


def _missing(is_azure: bool) -> _Answer:
    return _error(404, "BlobNotFound" if is_azure else "NoSuchKey")


_FAULTS: dict[str | None, _Answer] = {
    REFUSE: _error(403, "AccessDenied"),
    EXPIRED: _error(400, "ExpiredToken"),
    CONFLICT: _error(409, "ConditionalRequestConflict"),
    UNAVAILABLE: _error(503, "SlowDown"),
}


def _deleted_batch(objects: dict[str, Stored], body: bytes) -> _Answer:
    """Azure's batch of deletions: a part of the answer for each."""
    parts = []
    for number, path in enumerate(re.findall(rb"DELETE /([^ ?]*)", body)):
        key = unquote(path.decode()).split("/", 2)[2]
        status = "202 Accepted" if objects.pop(key, None) else "404 BlobNotFound"
        parts.append(
            f"--batch\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\nHTTP/1.1 {status}\r\n\r\n"
        )
    text = "".join(parts) + "--batch--"
    return _Answer(202, text.encode(), {"content-type": "multipart/mixed; boundary=batch"})


def _page(
    objects: dict[str, Stored], query: dict[str, str], after: str, delimiter: str
) -> tuple[list[str], list[str], str | None]:
    """Keys, common prefixes and the last name of a page that is not the last one."""
    prefix = query.get("prefix", "")
    keys: list[str] = []
    folders: list[str] = []
    for key in sorted(objects):
        if not key.startswith(prefix) or key <= after:
            continue
        rest = key[len(prefix) :]
        if delimiter and delimiter in rest:
            folder = prefix + rest[: rest.index(delimiter) + 1]
            if folder <= after or folder in folders[-1:]:
                continue
            folders.append(folder)
        else:
            keys.append(key)
        if len(keys) + len(folders) == PAGE:
            return keys, folders, max(keys[-1:] + folders[-1:]) + ("\uffff" if folders[-1:] > keys[-1:] else "")
    return keys, folders, None


def _listing(objects: dict[str, Stored], query: dict[str, str]) -> _Answer:
    after = query.get("continuation-token") or query.get("start-after") or ""
    keys, folders, last = _page(objects, query, after, query.get("delimiter", ""))
    contents = "".join(
        f"<Contents><Key>{escape(key)}</Key><Size>{len(objects[key].data)}</Size>"
        f"<LastModified>{_iso(objects[key].created)}</LastModified><ETag>e</ETag></Contents>"
        for key in keys
    )
    prefixes = "".join(f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in folders)
    more = "" if last is None else f"<NextContinuationToken>{escape(last)}</NextContinuationToken>"
    truncated = str(last is not None).lower()
    return _xml(
        f"<ListBucketResult><IsTruncated>{truncated}</IsTruncated>{contents}{prefixes}{more}</ListBucketResult>"
    )


def _azure_listing(objects: dict[str, Stored], query: dict[str, str]) -> _Answer:
    keys, folders, last = _page(objects, query, query.get("marker", ""), query.get("delimiter", ""))
    blobs = "".join(
        f"<Blob><Name>{escape(key)}</Name><Properties><Content-Length>{len(objects[key].data)}</Content-Length>"
        f"<Last-Modified>{formatdate(objects[key].created, usegmt=True)}</Last-Modified><Etag>e</Etag>"
        "<Content-Type>b</Content-Type><BlobType>BlockBlob</BlobType></Properties></Blob>"
        for key in keys
    )
    prefixes = "".join(f"<BlobPrefix><Name>{escape(f)}</Name></BlobPrefix>" for f in folders)
    return _xml(
        f"<EnumerationResults><Blobs>{blobs}{prefixes}</Blobs><NextMarker>{escape(last or '')}</NextMarker>"
        "</EnumerationResults>"
    )


def _xml(text: str) -> _Answer:
    return _Answer(200, f"<?xml version='1.0' encoding='utf-8'?>{text}".encode(), {"content-type": "application/xml"})


def _iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"


@contextmanager
def object_server() -> Iterator[ObjectServer]:
    """A server on a port of its own, which ends with the block."""
    state = ObjectServer()
    handler: Any = type("Handler", (_Handler,), {"store": state})
    with http_server(handler) as state.endpoint:
        yield state


AZURE_KEY = b64encode(b"no secret").decode()
"""An account key that Azure's clients accept."""
