"""A small sharing server on the loopback, told in words: tables, versions, files, and what goes wrong.

It follows the protocol and knows nothing of lakeview: JSON by the standard library, Parquet by pyarrow. What it was
asked is in `requests`; `answer_with` puts an answer of the test's own before the next that would be given.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any, Self
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from tests.builders.actions import metadata, protocol
from tests.builders.vectors import absolute, portable, vector_file

TOKEN = "dss_7c1-the-token-of-the-tests"
FAR = 4_102_444_800_000
"""The year 2100, in milliseconds."""

Json = dict[str, Any]


@dataclass
class Stored:
    """A file as it is listed. `deleted`: rows that its deletion vector deletes, none without one."""

    id: str
    data: bytes
    values: Mapping[str, str | None]
    stats: str | None
    deleted: tuple[int, ...] = ()
    rows: int = 0


@dataclass
class Change:
    """A file of changes."""

    kind: str
    version: int
    file: Stored


@dataclass
class SharedStory:
    """One shared table. `delta`: it needs the delta format; `history`: earlier versions are shared."""

    columns: Json
    partition_by: tuple[str, ...] = ()
    delta: bool = False
    history: bool = True
    feed: bool = True
    properties: dict[str, str | None] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    schema: str | None = None
    access_modes: list[str] | None = None
    versions: list[list[Stored]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    serial: int = 0

    def file(
        self,
        columns: Json | pa.Table,
        values: Mapping[str, str | None] | None = None,
        *,
        stats: Any = None,
        deleted: Sequence[int] = (),
    ) -> Stored:
        """A data file with these columns; `stats` beside its number of rows, False for none at all."""
        table = columns if isinstance(columns, pa.Table) else pa.table(columns)
        buffer = BytesIO()
        pq.write_table(table, buffer)
        self.serial += 1
        text = None if stats is False else json.dumps({"numRecords": table.num_rows, **(stats or {})})
        return Stored(f"f{self.serial}", buffer.getvalue(), values or {}, text, tuple(deleted), table.num_rows)

    def holds(self, *files: Stored) -> Self:
        """The next version, which holds these files; the feed has what was added and removed."""
        before = self.versions[-1] if self.versions else []
        number = len(self.versions)
        self.changes += [Change("add", number, f) for f in files if f not in before]
        self.changes += [Change("remove", number, f) for f in before if f not in files]
        self.versions.append(list(files))
        return self

    def recorded(self, file: Stored) -> Self:
        """The last version recorded its changes in a file of their own."""
        self.changes.append(Change("cdf", len(self.versions) - 1, file))
        return self

    @property
    def latest(self) -> int:
        return len(self.versions) - 1

    def stored(self) -> dict[str, Stored]:
        files = [f for version in self.versions for f in version] + [c.file for c in self.changes]
        return {f.id: f for f in sorted(files, key=lambda f: bool(f.deleted))}


@dataclass
class Request:
    """A request as it came."""

    method: str
    path: str
    parameters: dict[str, str]
    headers: dict[str, str]
    body: Json

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class Fault:
    """An answer of the test's own, for paths that match, so many times."""

    pattern: str
    status: int
    body: bytes
    headers: dict[str, str]
    times: int


class SharingServer:
    """Serves the tables until it is closed. `url` is the endpoint."""

    def __init__(self) -> None:
        self.tables: dict[str, SharedStory] = {}
        self.requests: list[Request] = []
        self.token = TOKEN
        self.signature = 1
        self.ranges = True
        self.page_size = 100
        self.files_page: int | None = None
        self.get_version = True
        self.all_tables = True
        self.end_stream = False
        self.refresh_tokens = False
        self.lifetime: int | None = None
        self._faults: list[Fault] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name of the base class)
                pass

            def do_GET(self) -> None:
                server.answer(self, b"")

            def do_HEAD(self) -> None:
                server.answer(self, b"")

            def do_POST(self) -> None:
                server.answer(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self.root}/sharing"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def share(self, name: str, columns: Json, **more: Any) -> SharedStory:
        """A new table, `share.schema.table`."""
        self.tables[name] = SharedStory(columns, **more)
        return self.tables[name]

    def profile(self, **more: Any) -> Json:
        """The content of a profile file."""
        return {"shareCredentialsVersion": 1, "endpoint": self.url, "bearerToken": self.token, **more}

    def answer_with(
        self, pattern: str, status: int, body: bytes | Json = b"", headers: dict[str, str] | None = None, times: int = 1
    ) -> None:
        """Answer the next requests whose `METHOD path` matches with this."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._faults.append(Fault(pattern, status, data, headers or {}, times))

    def head(self, story: SharedStory) -> list[Json]:
        """The first two lines of an answer about a table."""
        return _head(story, story.delta)

    def count(self, pattern: str) -> int:
        """How many requests match."""
        return sum(re.search(pattern, str(a)) is not None for a in self.requests)

    # -- answers

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        parts = urlsplit(request.path)
        parameters = {k: v[0] for k, v in parse_qs(parts.query).items()}
        headers = {k.lower(): v for k, v in request.headers.items()}
        is_json = "json" in headers.get("content-type", "")
        call = Request(request.command, parts.path, parameters, headers, json.loads(body) if is_json and body else {})
        self.requests.append(call)
        status, more, data = self._respond(call)
        request.send_response(status)
        for key, value in more.items():
            request.send_header(key, value)
        if "Content-Length" not in more:
            request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        if call.method != "HEAD":
            request.wfile.write(data)
        if "Content-Length" in more:
            request.close_connection = True

    def _respond(self, call: Request) -> tuple[int, dict[str, str], bytes]:
        for fault in self._faults:
            if fault.times and re.search(fault.pattern, str(call)):
                fault.times -= 1
                return fault.status, fault.headers, fault.body
        if call.path.startswith("/files/"):
            return self._file(call)
        if call.headers.get("authorization") != f"Bearer {self.token}":
            return _error(401, "UNAUTHENTICATED", f"the token {call.headers.get('authorization')} is not known")
        parts = [unquote(p) for p in call.path.removeprefix("/sharing/").split("/")]
        match parts:
            case ["shares"]:
                return self._page(call, [{"name": s} for s in dict.fromkeys(n.split(".")[0] for n in self.tables)])
            case ["shares", share, "schemas"]:
                names = dict.fromkeys(n.split(".")[1] for n in self.tables if n.split(".")[0] == share)
                return self._page(call, [{"name": n, "share": share} for n in names])
            case ["shares", share, "all-tables"] if self.all_tables:
                return self._page(call, [_item(n, self.tables[n]) for n in self.tables if n.startswith(f"{share}.")])
            case ["shares", share, "schemas", schema, "tables"]:
                return self._page(
                    call, [_item(n, self.tables[n]) for n in self.tables if n.startswith(f"{share}.{schema}.")]
                )
            case ["shares", share, "schemas", schema, "tables", table, *tail]:
                story = self.tables.get(f"{share}.{schema}.{table}")
                if story is not None:
                    return self._table(call, story, "/".join(tail))
        return _error(404, "RESOURCE_DOES_NOT_EXIST", f"'{'/'.join(parts[1:])}' does not exist")

    def _page(self, call: Request, items: list[Json]) -> tuple[int, dict[str, str], bytes]:
        start = int(call.parameters.get("pageToken", 0))
        page: Json = {"items": items[start : start + self.page_size]}
        if start + self.page_size < len(items):
            page["nextPageToken"] = str(start + self.page_size)
        return 200, {"Content-Type": "application/json"}, json.dumps(page).encode()

    def _table(self, call: Request, story: SharedStory, what: str) -> tuple[int, dict[str, str], bytes]:
        match call.method, what:
            case ("GET", "version") if self.get_version:
                return 200, {"Delta-Table-Version": str(story.latest)}, b""
            case ("HEAD", ""):
                return 200, {"delta-table-version": str(story.latest)}, b""
            case ("GET", "metadata"):
                return self._lines(call, story, call.parameters, files=False)
            case ("POST", "query"):
                return self._lines(call, story, call.body, files=True)
            case ("GET", "changes"):
                return self._changes(call, story)
        return _error(404, "RESOURCE_DOES_NOT_EXIST", f"there is no {what}")

    def _lines(
        self, call: Request, story: SharedStory, request: Mapping[str, Any], *, files: bool
    ) -> tuple[int, dict[str, str], bytes]:
        refreshed = request.get("refreshToken")
        version = story.latest if refreshed is None else int(refreshed)
        if "version" in request or "timestamp" in request:
            if not story.history:
                return _error(400, "INVALID_PARAMETER_VALUE", "history sharing is not enabled on this table")
            version = int(request["version"]) if "version" in request else int(request["timestamp"][14:16])
            if version > story.latest:
                return _error(400, "INVALID_PARAMETER_VALUE", "it is after the latest available version")
        live = story.versions[version] if files else []
        page = int(request.get("pageToken", 0))
        if page and {"refreshToken", "includeRefreshToken"} & request.keys():
            return _error(400, "INVALID_PARAMETER_VALUE", "a refresh token goes with the first page only")
        files_here = live if self.files_page is None else live[page : page + self.files_page]
        lines = [*_head(story, story.delta), *(self._line(story, "file", f, {}) for f in files_here)]
        end: Json = {}
        if self.files_page is not None and page + self.files_page < len(live):
            end["nextPageToken"] = str(page + self.files_page)
        if self.refresh_tokens and request.get("includeRefreshToken"):
            end["refreshToken"] = str(version)
        return self._ndjson(call, story, version, lines, end)

    def _changes(self, call: Request, story: SharedStory) -> tuple[int, dict[str, str], bytes]:
        if not story.feed:
            return _error(400, "INVALID_PARAMETER_VALUE", "cdf is not enabled on table")
        start, end = int(call.parameters["startingVersion"]), int(call.parameters.get("endingVersion", story.latest))
        lines = _head(story, story.delta)
        aside = {c.version for c in story.changes if c.kind == "cdf"}
        for change in story.changes:
            if start <= change.version <= end and (change.kind == "cdf" or change.version not in aside):
                place = {"version": change.version, "timestamp": 1_700_000_000_000 + change.version}
                lines.append(self._line(story, change.kind, change.file, place))
        return self._ndjson(call, story, start, lines, {})

    def _ndjson(
        self, call: Request, story: SharedStory, version: int, lines: list[Json], end: Json
    ) -> tuple[int, dict[str, str], bytes]:
        headers = {"Content-Type": "application/x-ndjson; charset=utf-8", "Delta-Table-Version": str(version)}
        capabilities = call.headers.get("delta-sharing-capabilities", "")
        format_name = "delta" if story.delta else "parquet"
        if self.end_stream and "includeendstreamaction=true" in capabilities:
            lines = [*lines, {"endStreamAction": end}]
            headers["delta-sharing-capabilities"] = f"responseformat={format_name};includeendstreamaction=true"
        elif end.get("nextPageToken"):
            lines = [*lines, {"endStreamAction": end}]
        return 200, headers, b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    def _url(self, name: str) -> str:
        return f"{self.root}/files/{quote(name, safe='')}?sp=r&sig={self.signature}"

    def _line(self, story: SharedStory, kind: str, file: Stored, place: Json) -> Json:
        if self.lifetime is not None:
            place = {**place, "expirationTimestamp": self.lifetime}
        if not story.delta:
            body = {"url": self._url(file.id), "id": file.id, "size": len(file.data), **place}
            body["partitionValues"] = {k: "" if v is None else v for k, v in file.values.items()}
            return {kind: body | ({"stats": file.stats} if file.stats is not None and kind != "remove" else {})}
        action: Json = {"path": self._url(file.id), "partitionValues": dict(file.values), "size": len(file.data)}
        action |= {"dataChange": True}
        if kind in ("file", "add"):
            action |= {"modificationTime": 1_700_000_000_000, "stats": file.stats}
        if file.deleted:
            bits = portable(file.deleted)
            action["deletionVector"] = absolute(self._url(f"{file.id}.bin"), bits, len(file.deleted))
            place = {**place, "deletionVectorFileId": f"{file.id}.bin"}
        if kind == "remove":  # "size" of a remove is optional
            del action["size"]
        word = {"file": "add", "cdf": "cdc"}.get(kind, kind)
        return {"file": {"id": file.id, "deltaSingleAction": {word: action}, **place}}

    def _file(self, call: Request) -> tuple[int, dict[str, str], bytes]:
        if call.parameters.get("sig") != str(self.signature):
            return 403, {"Content-Type": "application/xml"}, b"<Error><Code>AccessDenied</Code></Error>"
        name = unquote(call.path.removeprefix("/files/"))
        matches = [s.stored().get(name.removesuffix(".bin")) for s in self.tables.values()]
        file = next((f for f in matches if f is not None), None)
        if file is None:
            return 404, {}, b""
        data = vector_file(portable(file.deleted))[0] if name.endswith(".bin") else file.data
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", call.headers.get("range", ""))
        if match is None or not self.ranges:
            return 200, {"Content-Type": "application/octet-stream"}, data
        first, last = int(match[1]), min(int(match[2]), len(data) - 1)
        headers = {"Content-Range": f"bytes {first}-{last}/{len(data)}", "Content-Type": "application/octet-stream"}
        return 206, headers, data[first : last + 1]


def _item(name: str, story: SharedStory) -> Json:
    share, schema, table = name.split(".")
    return {"name": table, "schema": schema, "share": share, "id": f"id-{table}", **_modes(story)}


def _modes(story: SharedStory) -> Json:
    return {} if story.access_modes is None else {"accessModes": story.access_modes}


def _error(status: int, code: str, message: str) -> tuple[int, dict[str, str], bytes]:
    body = json.dumps({"errorCode": code, "message": message}).encode()
    return status, {"Content-Type": "application/json"}, body


def _head(story: SharedStory, delta: bool) -> list[Json]:
    metadata_action = metadata(
        story.columns, schema=story.schema, partition_by=story.partition_by, properties=story.properties
    )["metaData"]
    if delta:
        own = protocol(3, 7, readerFeatures=list(story.features), writerFeatures=list(story.features))["protocol"]
        return [{"protocol": {"deltaProtocol": own}}, {"metaData": {"deltaMetadata": metadata_action, **_modes(story)}}]
    body = {k: metadata_action[k] for k in ("id", "schemaString", "partitionColumns")}
    return [
        {"protocol": {"minReaderVersion": 1}},
        {
            "metaData": {
                **body,
                "format": {"provider": "parquet"},
                "configuration": {"enableChangeDataFeed": "true"},
                **_modes(story),
            }
        },
    ]
