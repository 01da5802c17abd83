"""Catalogs for tests: a small REST catalog on this machine, a SQLite catalog, and tables to put into them."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import CommitTableRequest

from tests.builders.http_servers import http_server
from tests.builders.iceberg import IcebergHistory

FIELDS: list[dict[str, Any]] = [{"id": 1, "name": "id", "required": False, "type": "long"}]
Names = tuple[str, ...]
Answer = tuple[int, dict[str, Any] | bytes]


def table(place: Path, rows: int = 1) -> IcebergHistory:
    """A table of so many files with one row each, their ids counted from 0; its recorded paths lie where it lies."""
    history = IcebergHistory(place, FIELDS, location=str(place))
    for number in range(rows):
        history.append(f"f{number}", [{"id": number}])
    return history


def newest(history: IcebergHistory) -> str:
    """The address of a table's newest metadata file."""
    files = (history.root / "metadata").glob("v*.metadata.json")
    return str(max(files, key=lambda p: int(p.name[1:].partition(".")[0])))


def without_hint(history: IcebergHistory) -> IcebergHistory:
    """The table, as writers to catalogs leave it: nothing but the catalog says which file is current."""
    (history.root / "metadata" / "version-hint.text").unlink(missing_ok=True)
    return history


@dataclass
class RestState:
    """What the server holds and how it behaves. Namespaces must be there before what is in them.

    `tables`: metadata locations; `config`: what loadTable says of the store, `credentials` the same by prefix;
    `client_secret` and `token`: what it lets in, None for everybody; `page`: entries in an answer;
    `losses`: changes of tables that are made and answered with the status 500, `denies`: changes are answered with 403;
    `settings`: overrides that the configuration gives beside the prefix; `answer_at`: (a pattern of a path, the answer)
    for what is asked there; `endless`: listings name their first page as the next one; `sizes`: of pages, as asked for.
    `before`: called with the path of each request; `headers`: of each of them; `redirect`: where answers with a status
    of 3xx lead, None for the same path.
    `failing`: (status, error type) of the next answers to anything but the configuration; `raw`: body of every answer.
    """

    namespaces: list[Names] = field(default_factory=list)
    tables: dict[Names, str | None] = field(default_factory=dict)
    views: list[Names] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    credentials: list[dict[str, Any]] = field(default_factory=list)
    prefix: str = "ws/one"
    settings: dict[str, Any] = field(default_factory=dict)
    answer_at: tuple[str, Answer] | None = None
    endless: bool = False
    redirect: str | None = None
    headers: list[dict[str, str]] = field(default_factory=list)
    before: Callable[[str], object] = lambda _: None
    sizes: set[str] = field(default_factory=set)
    client_secret: str | None = None
    token: str | None = None
    page: int = 2
    failing: list[tuple[int, str]] = field(default_factory=list)
    losses: int = 0
    answers: list[int] = field(default_factory=list)
    applies: bool = True
    denies: bool = False
    changes: threading.Lock = field(default_factory=threading.Lock)
    raw: bytes | None = None
    requests: Counter[str] = field(default_factory=Counter)


class _SilentHandler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (http.server's word)
        """Nothing on the console."""


class _Handler(_SilentHandler):
    """The part of the REST catalog specification that finding tables needs."""

    state: ClassVar[RestState]

    def do_GET(self) -> None:
        self._send(self._answer())

    def do_HEAD(self) -> None:
        status, _ = self._answer()
        self._send((204 if status == 200 else status, {}))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if "/tables/" in self.path:
            with self.state.changes:
                self._send(self._change(json.loads(body)))
            return
        self.state.requests["POST token"] += 1
        if parse_qs(body).get("client_secret") != [self.state.client_secret or ""]:
            self._send((401, {"error": "invalid_client", "error_description": f"unknown client in {body}"}))
            return
        self._send((200, {"access_token": self.state.token, "token_type": "bearer", "expires_in": 3600}))

    def _change(self, change: dict[str, Any]) -> Answer:
        """updateTable, of the requirements and updates of an append."""
        status, answer = self._answer()
        if status != 200 or self.state.denies:
            return (status, answer) if status != 200 else refusal(403, "ForbiddenException", "read only")
        if not self.state.applies:
            return (self.state.answers.pop(0) if self.state.answers else 200), {}
        CommitTableRequest.model_validate(change)  # the words of the specification, as pyiceberg has them
        names = (*change["identifier"]["namespace"], change["identifier"]["name"])
        file = Path(self.state.tables[names] or "")
        document = json.loads(file.read_text())
        if not all(is_met(requirement, document) for requirement in change["requirements"]):
            return refusal(409, "CommitFailedException", "a requirement is not met")
        for update in change["updates"]:
            apply_update(update, document)
        newer = file.with_name(
            f"{int(file.name.lstrip('v').partition('.')[0].partition('-')[0]) + 1:05}-new.metadata.json"
        )
        newer.write_text(json.dumps(document))
        self.state.tables[names] = str(newer)
        if self.state.answers:
            return refusal(self.state.answers.pop(0), "SomeException", "as planned")
        if self.state.losses:
            self.state.losses -= 1
            return refusal(500, "InternalServerError", "the answer got lost")
        return 200, {"metadata-location": str(newer), "metadata": document}

    def _send(self, answer: Answer) -> None:
        status, content = answer
        data = content if isinstance(content, bytes) else json.dumps(content).encode() if status != 204 else b""
        if self.state.raw is not None:
            data = self.state.raw
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", self.state.redirect or self.path)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _answer(self) -> Answer:
        state, url = self.state, urlsplit(self.path)
        query = {k: v[0] for k, v in parse_qs(url.query).items()}
        state.before(self.path)
        state.headers.append(dict(self.headers))
        if state.answer_at is not None and re.search(state.answer_at[0], self.path):
            return state.answer_at[1]
        if url.path == "/v1/config":
            state.requests["config"] += 1
        elif state.failing:
            status, kind = state.failing.pop(0)
            return refusal(status, kind, "as planned")
        if state.token is not None and self.headers.get("Authorization") != f"Bearer {state.token}":
            return refusal(401, "NotAuthorizedException", f"not {self.headers.get('Authorization')}")
        if url.path == "/v1/config":
            return 200, {
                "defaults": {},
                "overrides": {"prefix": state.prefix, **state.settings},
                "endpoints": ENDPOINTS,
            }
        match = re.fullmatch(rf"/v1/{state.prefix}/namespaces(?:/([^/]+)(?:/(tables|views)(?:/([^/]+))?)?)?", url.path)
        if match is None:
            return refusal(404, "NotFoundException", "no such endpoint")
        namespace = tuple(unquote(match[1]).split("\x1f")) if match[1] else ()
        name = unquote(match[3]) if match[3] else None
        state.requests[f"{self.command} {match[2] or 'namespaces'}{'' if name is None else '/table'}"] += 1
        return self._about(namespace, match[2], name, query)

    def _about(self, namespace: Names, kind: str | None, name: str | None, query: Mapping[str, str]) -> Answer:
        state = self.state
        # clients encode each level before the parameter as a whole is encoded
        parent = tuple(unquote(level) for level in query.get("parent", "").split("\x1f") if level)
        for levels in (namespace, parent):
            if levels and levels not in state.namespaces:
                return refusal(404, "NoSuchNamespaceException", f"no namespace {levels}")
        if not namespace:
            inside = [n for n in state.namespaces if len(n) == len(parent) + 1 and n[: len(parent)] == parent]
            return self._paged("namespaces", [list(n) for n in inside], query)
        if kind is None:
            return 200, {"namespace": list(namespace), "properties": {}}
        if kind == "views":
            return (200, {}) if (*namespace, name) in state.views else refusal(404, "NoSuchViewException", "no view")
        if name is None:
            inside = [n for n in state.tables if n[:-1] == namespace]
            return self._paged("identifiers", [{"namespace": list(namespace), "name": n[-1]} for n in inside], query)
        if (*namespace, name) not in state.tables:
            return refusal(404, "NoSuchTableException", f"no table {name}")
        return 200, {
            "metadata-location": state.tables[*namespace, name],
            "metadata": {"format-version": 99, "properties": {"py-io-impl": "os.path.join"}},
            "config": state.config,
            "storage-credentials": state.credentials,
        }

    def _paged(self, key: str, entries: list[Any], query: Mapping[str, str]) -> Answer:
        self.state.sizes |= {query["pageSize"]} if "pageSize" in query else set()
        start = int(query.get("pageToken") or 0)
        end = start + self.state.page
        if self.state.endless:
            return 200, {key: entries[start:end], "next-page-token": "0"}
        return 200, {key: entries[start:end], "next-page-token": str(end) if end < len(entries) else None}


ENDPOINTS = [
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}",
]


def is_met(requirement: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Whether a requirement of updateTable is met."""
    main = document["refs"].get("main", {}).get("snapshot-id")
    actual_values = {
        "assert-table-uuid": ("uuid", document["table-uuid"]),
        "assert-ref-snapshot-id": ("snapshot-id", main),
        "assert-current-schema-id": ("current-schema-id", document["current-schema-id"]),
        "assert-default-spec-id": ("default-spec-id", document["default-spec-id"]),
    }
    name, value = actual_values[requirement["type"]]
    return bool(requirement[name] == value)


def apply_update(update: Mapping[str, Any], document: dict[str, Any]) -> None:
    """Make an update of updateTable in a metadata file's document."""
    if update["action"] == "add-snapshot":
        document["snapshots"].append(update["snapshot"])
        document["last-sequence-number"] = update["snapshot"]["sequence-number"]
        document["last-updated-ms"] = update["snapshot"]["timestamp-ms"]
        return
    if update["action"] == "set-properties":
        document["properties"] |= update["updates"]
        return
    assert update["action"] == "set-snapshot-ref"
    ref = {name: value for name, value in update.items() if name not in ("action", "ref-name")}
    document["refs"][update["ref-name"]] = ref
    document["current-snapshot-id"] = ref["snapshot-id"]
    step = {"snapshot-id": ref["snapshot-id"], "timestamp-ms": document["last-updated-ms"]}
    document["snapshot-log"].append(step)


def refusal(status: int, kind: str, message: str) -> Answer:
    return status, {"error": {"message": message, "type": kind, "code": status}}


@contextmanager
def rest_catalog(state: RestState) -> Iterator[str]:
    """The address of a REST catalog on this machine that holds `state`, which may be changed while it runs."""
    with http_server(type("Handler", (_Handler,), {"state": state})) as address:
        yield address


@contextmanager
def dripping_server(beginning: bytes) -> Iterator[str]:
    """The address of a server whose answers go on, a byte now and then, until the block ends."""
    ended = threading.Event()

    class Handler(_SilentHandler):
        def do_GET(self) -> None:
            self.wfile.write(beginning)
            with suppress(OSError):  # the client has left
                while not ended.wait(0.02):
                    self.wfile.write(b" ")

    with http_server(Handler) as address:
        try:
            yield address
        finally:
            ended.set()


@contextmanager
def sqlite_catalog(path: Path, tables: Mapping[Names, str]) -> Iterator[SqlCatalog]:
    """A SQLite catalog written by pyiceberg, which holds tables at these metadata locations."""
    catalog = SqlCatalog("prod", uri=f"sqlite:///{path}", warehouse=str(path.parent))
    for names, location in tables.items():
        catalog.create_namespace_if_not_exists(names[:-1])
        catalog.register_table(names, location)
    try:
        yield catalog
    finally:
        catalog.close()
