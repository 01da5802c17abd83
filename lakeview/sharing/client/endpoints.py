"""A profile to what a sharing server tells: what is shared, and a table's version, metadata, files and changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode

import msgspec
import polars as pl
from msgspec.structs import replace

from lakeview.delta.sharing import CLIENT_FEATURES
from lakeview.model.clock import Clock, system_clock
from lakeview.model.errors import LakeviewError, SharingError
from lakeview.sharing.client.answers import Answer, read_answer, require_url_access
from lakeview.sharing.client.http import Http
from lakeview.sharing.client.limits import Limits
from lakeview.sharing.client.login import log_in
from lakeview.sharing.client.pages import Pages
from lakeview.sharing.client.profile import Profile, TableName
from lakeview.sharing.client.refusals import failure, too_large
from lakeview.sharing.protocol.messages import (
    CAPABILITIES_HEADER,
    JSON,
    VERSION_HEADER,
    Capabilities,
    Page,
    QueryRequest,
    ResponseFormat,
    SchemaPage,
    SharePage,
    TablePage,
    moment_text,
    parse_capabilities,
    path_of,
    table_path,
)

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

Parameters = Mapping[str, str | int | None]

SHARES = pl.Schema({"share": pl.String(), "id": pl.String(), "display_name": pl.String(), "comment": pl.String()})
SCHEMAS = pl.Schema({"share": pl.String(), "schema": pl.String()})
TABLES = pl.Schema(
    {
        "share": pl.String(), "schema": pl.String(), "table": pl.String(), "id": pl.String(),
        "share_id": pl.String(), "address": pl.String(), "access_modes": pl.List(pl.String()),
    }
)  # fmt: skip
"""What is shared, one row each, in the server's order; ids, display names and comments are null where the server gives
none. `address`: what
`lakeview.open_table` takes; `access_modes`: url, dir or both, null where the server does not say, which means url. A
table without url among them cannot be read by this client."""

CAPABILITIES = Capabilities(
    (ResponseFormat.DELTA, ResponseFormat.PARQUET),
    frozenset(name.lower() for name in CLIENT_FEATURES),
    end_stream=True,
)
"""What is parameters for: both formats, and the reader features that concern files (a share has no checkpoints)."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One request: `what` names it in errors; `json` is a body."""

    method: str
    path: str
    what: str
    parameters: Parameters | None = None
    json: bytes | None = None
    capabilities: bool = False


class SharingClient:
    """The endpoints of one server as one recipient. Safe to use from several threads; nothing is kept between calls.

    Every call may raise AccessDeniedError (credentials refused, expired or not granted), NotATableError (not there),
    StoreUnavailableError (no answer after about a minute of attempts) and SharingError (refused, or the protocol
    broken). Their messages are the server's where it has one; no secret is ever in them.
    """

    def __init__(self, profile: Profile, *, limits: Limits | None = None, clock: Clock = system_clock) -> None:
        self.profile = profile
        self.http = Http(limits or Limits(), profile.endpoint)
        self.clock = clock
        self._credentials = log_in(profile, self.http, clock)
        self.ends_streams = False
        """Whether an answer of this server has said that an endStreamAction would come."""

    def __repr__(self) -> str:
        return f"SharingClient({self.profile.endpoint!r})"

    # -- what is shared

    def shares(self) -> pl.DataFrame:
        """SHARES."""
        items = self._items(SharePage, ("shares",), "the shares")
        rows = [(share.name, share.id, share.display_name, share.comment) for share in items]
        return pl.DataFrame(rows, schema=SHARES, orient="row")

    def schemas(self, share: str) -> pl.DataFrame:
        """SCHEMAS of a share."""
        items = self._items(SchemaPage, ("shares", share, "schemas"), f"share {share}")
        return pl.DataFrame([(schema.share, schema.name) for schema in items], schema=SCHEMAS, orient="row")

    def tables(self, share: str, schema: str) -> pl.DataFrame:
        """TABLES of a schema."""
        return self._tables(("shares", share, "schemas", schema, "tables"), f"schema {share}.{schema}")

    def all_tables(self, share: str) -> pl.DataFrame:
        """TABLES of a share; parameters schema by schema where the server knows no other way."""
        try:
            return self._tables(("shares", share, "all-tables"), f"share {share}")
        except LakeviewError as error:
            if error.kind != "not-shared":
                raise
        frames = [self.tables(share, schema) for schema in self.schemas(share)["schema"]]
        return pl.concat([pl.DataFrame(schema=TABLES), *frames])

    # -- a table

    def version(self, table: TableName, since: datetime | None = None) -> int:
        """The table's latest version; with `since` (an aware moment) the first one from then on."""
        parameters = {"startingTimestamp": None if since is None else moment_text(since)}
        path = table_path(*table)
        try:
            return self._send(_Call("GET", f"{path}/version", f"table {table}", parameters), _version_of)
        except LakeviewError as error:
            if error.kind not in ("not-shared", "method-not-allowed"):
                raise
        # the only way of the first servers
        return self._send(_Call("HEAD", path, f"table {table}", parameters), _version_of)

    def require_url_access(self, table: TableName) -> None:
        """UnsupportedTableError if the list of the table's schema names access modes for it without url."""
        tables = self.tables(table.share, table.schema).filter(pl.col("table").str.to_lowercase() == table.name.lower())
        for modes in tables["access_modes"]:
            require_url_access(None if modes is None else modes.to_list(), f"table {table}")

    def metadata(self, table: TableName, *, version: int | None = None, at: datetime | None = None) -> Answer:
        """The head of a table, at a version or a moment where its history is shared."""
        parameters = {"version": version, "timestamp": None if at is None else moment_text(at)}
        call = _Call("GET", table_path(*table, "metadata"), f"table {table}", parameters, capabilities=True)
        return self._lines(call, Pages(self.http.limits))

    def query(self, table: TableName, request: QueryRequest) -> Answer:
        """The files of a table, all pages of them. Filters and limits in the request are hints to the server."""

        def page(token: str | None) -> _Call:
            page_request = request
            if token is not None:  # which says of which version; servers take refresh tokens with the first page only
                page_request = replace(request, page_token=token, include_refresh_token=False, refresh_token=None)
            body = msgspec.json.encode(page_request)
            return _Call("POST", table_path(*table, "query"), f"table {table}", json=body, capabilities=True)

        return self._all_pages(page)

    def changes(self, table: TableName, start: int | datetime, end: int | datetime | None = None) -> Answer:
        """The files that hold what commits `start` to `end` (both included) changed, and the schemas between."""
        parameters: dict[str, str | int | None] = {"includeHistoricalMetadata": "true"}
        for side, bound in (("starting", start), ("ending", end)):
            if isinstance(bound, datetime):
                parameters[f"{side}Timestamp"] = moment_text(bound)
            elif bound is not None:
                parameters[f"{side}Version"] = bound

        begin = start if isinstance(start, int) else None  # the first servers do not repeat it

        def page(token: str | None) -> _Call:
            path, query = table_path(*table, "changes"), {**parameters, "pageToken": token}
            return _Call("GET", path, f"changes of table {table}", query, capabilities=True)

        return self._all_pages(page, begin)

    # -- inside

    def _tables(self, path: tuple[str, ...], what: str) -> pl.DataFrame:
        rows = [
            (
                t.share, t.schema, t.name, t.id, t.share_id,
                f"{self.profile.address}#{t.share}.{t.schema}.{t.name}", t.access_modes,
            )
            for t in self._items(TablePage, path, what)
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=TABLES, orient="row")

    def _items(self, kind: type[Page[T]], path: tuple[str, ...], what: str) -> list[T]:
        """The items of a list, all pages of it."""
        items: list[T] = []
        pages, most = Pages(self.http.limits), self.http.limits.items
        token: str | None = None
        while True:
            call = _Call("GET", path_of(path), what, {"pageToken": token})
            page = self._send(call, lambda response: self._body(response, kind))
            items += page.items or ()
            if len(items) > most:
                raise too_large(f"lists more than {most:,} entries")
            token = page.next_page_token
            if not token:  # "may be an empty string or missing when there are no additional results"
                return items
            pages.follow(token)

    def _body(self, response: httpx.Response, kind: type[Page[T]]) -> Page[T]:
        try:
            return msgspec.json.decode(self.http.body(response, self.http.limits.body), type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SharingError(
                f"the server's list cannot be read: {error}", fix="check the endpoint in the profile", kind="bad-body"
            ) from error

    def _all_pages(self, call: Callable[[str | None], _Call], version: int | None = None) -> Answer:
        """All pages of an answer; `call`: that for the page of a token."""
        pages = Pages(self.http.limits)
        return pages.whole(lambda token: self._lines(call(token), pages, version))

    def _lines(self, call: _Call, pages: Pages, version: int | None = None) -> Answer:
        """One page. `version`: what the answer is about if its header does not say."""

        def read(response: httpx.Response) -> Answer:
            must_end = parse_capabilities(response.headers.get(CAPABILITIES_HEADER)).end_stream is True
            self.ends_streams = self.ends_streams or must_end
            number = _version_of(response) if version is None or VERSION_HEADER in response.headers else version
            lines = pages.count(self.http.lines(response))
            return read_answer(lines, number, must_end=must_end, mask=self._mask)

        return self._send(call, read)

    def _send(self, call: _Call, read: Callable[[httpx.Response], T]) -> T:
        """What an answer says; tried again as long as that may help, and once with new credentials after a 401."""
        query = {k: v for k, v in (call.parameters or {}).items() if v is not None}
        url = f"{self.profile.endpoint}/{call.path}" + (f"?{urlencode(query)}" if query else "")

        def attempt() -> T:
            now = self.clock()
            self.profile.check(now)
            headers = {"Authorization": self._credentials.header(now), "Accept-Encoding": "gzip"}
            if call.capabilities:
                headers[CAPABILITIES_HEADER] = CAPABILITIES.header
            if call.json is not None:
                headers["Content-Type"] = JSON
            with self.http.stream(call.method, url, headers=headers, content=call.json) as response:
                if response.is_success:
                    return read(response)
                body = b"" if call.method == "HEAD" else self.http.body(response, self.http.limits.body)
                if response.status_code == 405:
                    raise SharingError(f"the server knows no {call.method} of {call.what}", kind="method-not-allowed")
                raise failure(response, self._mask(body.decode(errors="replace")).encode(), call.what)

        def twice() -> T:
            try:
                return attempt()
            except LakeviewError as error:
                if error.kind != "sharing-unauthenticated" or not self._credentials.renew():
                    raise
            return attempt()

        return self.http.with_retries(twice, url)

    def _mask(self, text: str) -> str:
        """A text of the server without the secrets that it was sent."""
        for secret in self._credentials.secrets:
            text = secret.hidden_in(text)
        return text


def _version_of(response: httpx.Response) -> int:
    text = response.headers.get(VERSION_HEADER, "")
    if not (text.isascii() and text.isdigit()) or int(text) >= 2**63:
        raise SharingError(
            f"the server's answer has no {VERSION_HEADER} that is a number",
            fix="check the endpoint in the profile",
            kind="no-version",
        )
    return int(text)
