"""Listings of shares, schemas and tables, page by page in the configuration's order, and a table's own endpoints: its
version, its metadata, its files."""

from collections.abc import Iterator, Sequence

import msgspec
from starlette.responses import Response

from lakeview.sharing.protocol.messages import (
    JSON,
    LINES,
    VERSION_HEADER,
    EndStreamAction,
    Page,
    QueryRequest,
    ResponseFormat,
    Share,
    ShareBody,
    SharedSchema,
    SharedTable,
)
from lakeview.sharing.server.answers import (
    answer_headers,
    current_table,
    head,
    hints_text,
    run_on_table,
    stream,
    url_signer,
)
from lakeview.sharing.server.changes import stream_of_changes
from lakeview.sharing.server.context import Context
from lakeview.sharing.server.lines import PackedRows, closing, encode_rows
from lakeview.sharing.server.refusals import bad_parameter
from lakeview.sharing.server.requests import (
    AnswerOptions,
    answer_options,
    moment,
    page_of,
    query_request,
    version_number,
)
from lakeview.sharing.server.settings import SchemaEntry, ShareEntry
from lakeview.sharing.server.shared_version import PARSING_CPU, Budget, SharedVersion, json_condition, sql_condition
from lakeview.sharing.server.signing import checksum
from lakeview.sharing.server.sources import RequestedTable


async def version(context: Context) -> Response:
    """GET .../version, and HEAD of the table itself: the latest version, or the earliest from a moment on."""
    place = context.place()
    if context.query.get("startingTimestamp"):
        place.require_history()
    start = moment(context.query.get("startingTimestamp"), "startingTimestamp")

    if start is None:
        number = (await current_table(context, place)).latest
    else:
        since, first = start, place.table.start_version
        number = await run_on_table(context, place, lambda target: target.source.first_from(since, first))
    context.entry.version = number
    return Response(status_code=200, headers={VERSION_HEADER: str(number)})


async def metadata(context: Context) -> Response:
    """GET .../metadata: exactly two lines."""
    place = context.place()
    if context.query.get("version") or context.query.get("timestamp"):
        place.require_history()
    number = version_number(context.query.get("version"), "version")
    at = moment(context.query.get("timestamp"), "timestamp")
    if number is not None and at is not None:
        raise bad_parameter("Please only provide one of: version, timestamp")
    options = answer_options(context.request.headers)
    table_version = await run_on_table(context, place, lambda target: target.shared_version(target.version(number, at)))
    response_format = table_version.response_format(options)
    body = head(table_version, response_format, with_version=number is not None or at is not None)
    context.entry.version = table_version.version
    more = answer_headers(options, response_format, end_stream=False)
    return Response(body, headers={"Content-Type": LINES, VERSION_HEADER: str(table_version.version), **more})


async def query(context: Context) -> Response:
    """POST .../query: the files of a version, or with startingVersion what changed since."""
    place = context.place()
    request = query_request(await context.body())
    if request.version is not None or request.timestamp or request.starting_version is not None:
        place.require_history()
    if request.starting_version is not None:
        return await stream_of_changes(context, place, request)
    options = answer_options(context.request.headers)
    at = moment(request.timestamp, "timestamp")
    is_paged = request.max_files is not None or request.page_token is not None
    mark = checksum(
        request.predicate_hints, request.json_predicate_hints, request.limit_hint, request.version, request.timestamp,
        request.max_files, options.capabilities, options.id_hash,
    ) if is_paged else ""  # fmt: skip
    page = context.open_position("pages", request.page_token, place.share_key, mark)
    position = page or context.open_position("refresh", request.refresh_token, place.share_key, place.id)

    def load(target: RequestedTable) -> tuple[RequestedTable, SharedVersion]:
        return target, target.past(target.version(request.version, at) if position is None else position.version)

    target, table_version = await run_on_table(context, place, load)
    recipient = context.caller.recipient.name
    selection = await context.hub.compute(recipient, lambda: _select_files(context, table_version, request, options))
    context.entry.hints = hints_text(request)
    start = 0 if page is None else page.row
    return _stream_files(context, target, table_version, selection, request, options, start, mark)


def _stream_files(
    context: Context,
    target: RequestedTable,
    table_version: SharedVersion,
    selection: tuple[ResponseFormat, PackedRows],
    request: QueryRequest,
    options: AnswerOptions,
    start: int,
    mark: str,
) -> Response:
    """The answer of a query from a row on; `mark`: a checksum of the request, for the token of the next page."""
    response_format, files = selection
    with_version = request.version is not None or bool(request.timestamp)
    is_paged = request.max_files is not None or request.page_token is not None
    most = context.hub.settings.query_table_page_size_limit
    rows = files.slice(start, min(request.max_files or most, most)) if is_paged else files
    ends = options.end_stream or is_paged or request.include_refresh_token
    url, expires = url_signer(context, target)
    times = {} if table_version.timestamp is None else {"timestamp": table_version.timestamp}
    close = closing(expires, **({"version": table_version.version, **times} if with_version else {}))

    def chunks() -> Iterator[bytes]:
        for part in rows.frames():
            yield encode_rows(part, url, close)

    def end() -> EndStreamAction:
        next_row = start + rows.height
        follows, place = next_row < files.height, target.place
        return EndStreamAction(
            next_page_token=context.seal_position("pages", place.share_key, mark, table_version.version, row=next_row)
            if follows
            else None,
            refresh_token=context.seal_position("refresh", place.share_key, place.id, table_version.version)
            if request.include_refresh_token
            else None,
            min_url_expiration_timestamp=expires * 1000 if rows.height else None,
        )

    context.entry.version, context.entry.files = table_version.version, rows.height
    return stream(
        context,
        table_version.version,
        head(table_version, response_format, with_version=with_version),
        chunks(),
        end if ends else None,
        answer_headers(options, response_format, end_stream=ends),
    )


def _select_files(
    context: Context, table_version: SharedVersion, request: QueryRequest, options: AnswerOptions
) -> tuple[ResponseFormat, PackedRows]:
    """The format and the rows that answer a query, before pages are cut: hints first, then the limit; both skip whole
    files only."""
    settings = context.hub.settings
    response_format = table_version.response_format(options)
    rows = table_version.rows(response_format, options.id_hash or response_format.value)
    conditions, parsing = [], Budget(PARSING_CPU)
    if request.predicate_hints and settings.evaluate_predicate_hints:
        conditions.append(sql_condition(request.predicate_hints, table_version.schema, parsing))
    if request.json_predicate_hints and settings.evaluate_json_predicate_hints:
        conditions.append(json_condition(request.json_predicate_hints, table_version.schema, parsing))
    if conditions or request.limit_hint is not None:
        rows = rows.filter(table_version.index.limit_files(table_version.index.keep(*conditions), request.limit_hint))
    return response_format, rows


class _Next(msgspec.Struct, frozen=True, array_like=True):
    """Where a listing goes on, and which listing of whom it was."""

    listing: str
    recipient: str
    position: int


async def shares(context: Context) -> Response:
    """GET /shares."""
    items = [Share(s.name, s.id) for s in context.hub.catalogue.shares(context.caller.recipient)]
    return _page(context, "shares", items)


async def share(context: Context) -> Response:
    """GET /shares/{share}."""
    entry = _share(context)
    return json_response(ShareBody(Share(entry.name, entry.id)))


async def schemas(context: Context) -> Response:
    """GET /shares/{share}/schemas."""
    entry = _share(context)
    items = [SharedSchema(c.name, entry.name) for c in entry.schemas]
    return _page(context, f"schemas/{entry.id}", items)


async def tables(context: Context) -> Response:
    """GET /shares/{share}/schemas/{schema}/tables."""
    names = context.request.path_params
    entry, schema = context.hub.catalogue.schema(context.caller.recipient, names["share"], names["schema"])
    context.entry.share, context.entry.schema = entry.name, schema.name
    items = _table_items(entry, schema)
    return _page(context, f"tables/{entry.id}/{schema.name}", items)


async def all_tables(context: Context) -> Response:
    """GET /shares/{share}/all-tables."""
    entry = _share(context)
    items = [item for schema in entry.schemas for item in _table_items(entry, schema)]
    return _page(context, f"all/{entry.id}", items)


def _share(context: Context) -> ShareEntry:
    share = context.hub.catalogue.share(context.caller.recipient, context.request.path_params["share"])
    context.entry.share = share.name
    return share


def _table_items(share: ShareEntry, schema: SchemaEntry) -> list[SharedTable]:
    return [SharedTable(t.name, schema.name, share.name, share.id, t.id) for t in schema.tables]


def _page(context: Context, listing: str, items: Sequence[object]) -> Response:
    most, token = page_of(context.query)
    who = context.caller.recipient.name
    start = 0
    if token is not None:
        page = context.hub.sealer.open("page", token, _Next)
        if page is None or page.listing != listing or page.recipient != who:
            raise bad_parameter("invalid pageToken: it is none of this listing")
        start = page.position
    end = start + most
    follows = context.hub.sealer.seal("page", _Next(listing, who, end)) if end < len(items) else None
    return json_response(Page(list(items[start:end]), follows))


def json_response(body: object) -> Response:
    """A body as JSON."""
    return Response(msgspec.json.encode(body), headers={"Content-Type": JSON})
