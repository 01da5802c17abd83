"""A table's own endpoints: its version, its metadata, its files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from starlette.responses import Response

from lakeview.sharing.protocol.messages import LINES, VERSION_HEADER, EndStreamAction, QueryRequest, ResponseFormat
from lakeview.sharing.server.answers import (
    answer_headers,
    asking,
    chosen_format,
    current,
    head,
    hints_text,
    signed,
    stream,
)
from lakeview.sharing.server.changes import stream_of_changes
from lakeview.sharing.server.context import Context
from lakeview.sharing.server.continuation import Position, open_position, seal_position
from lakeview.sharing.server.hints import PARSING_CPU, Budget, json_condition, sql_condition
from lakeview.sharing.server.lines import closing, encode_rows
from lakeview.sharing.server.packed_rows import PackedRows
from lakeview.sharing.server.refusals import bad_parameter
from lakeview.sharing.server.requests import AnswerOptions, answer_options, moment, query_request, version_number
from lakeview.sharing.server.shared_version import SharedVersion
from lakeview.sharing.server.signing import checksum
from lakeview.sharing.server.urls import expiry
from lakeview.sharing.server.version_request import RequestedTable, require_history


async def version(context: Context) -> Response:
    """GET .../version, and HEAD of the table itself: the latest version, or the earliest from a moment on."""
    place = context.place()
    if context.query.get("startingTimestamp"):
        require_history(place)
    start = moment(context.query.get("startingTimestamp"), "startingTimestamp")

    if start is None:
        number = (await current(context)).latest
    else:
        since, first = start, place.table.start_version
        number = await asking(context, lambda target: target.source.first_from(since, first))
    context.entry.version = number
    return Response(status_code=200, headers={VERSION_HEADER: str(number)})


async def metadata(context: Context) -> Response:
    """GET .../metadata: exactly two lines."""
    place = context.place()
    if context.query.get("version") or context.query.get("timestamp"):
        require_history(place)
    number = version_number(context.query.get("version"), "version")
    at = moment(context.query.get("timestamp"), "timestamp")
    if number is not None and at is not None:
        raise bad_parameter("Please only provide one of: version, timestamp")
    options = answer_options(context.request.headers)

    def found(target: RequestedTable) -> SharedVersion:
        return target.shared(target.version(number, at))

    shared = await asking(context, found)
    chosen = chosen_format(options, shared)
    body = head(shared, chosen, told=number is not None or at is not None)
    context.entry.version = shared.version
    more = answer_headers(options, chosen, end_stream=False)
    return Response(body, headers={"Content-Type": LINES, VERSION_HEADER: str(shared.version), **more})


async def query(context: Context) -> Response:
    """POST .../query: the files of a version, or with startingVersion what changed since."""
    place = context.place()
    request = query_request(await context.body())
    if request.version is not None or request.timestamp or request.starting_version is not None:
        require_history(place)
    if request.starting_version is not None:
        return await stream_of_changes(context, request)
    options = answer_options(context.request.headers)
    at = moment(request.timestamp, "timestamp")
    paged = request.max_files is not None or request.page_token is not None
    mark = checksum(
        request.predicate_hints, request.json_predicate_hints, request.limit_hint, request.version, request.timestamp,
        request.max_files, options.capabilities, options.id_hash,
    ) if paged else ""  # fmt: skip
    page = open_position(context, "pages", request.page_token, place.share_key, mark)
    fresh = open_position(context, "refresh", request.refresh_token, place.share_key, place.id)
    pinned = page or fresh

    def found(target: RequestedTable) -> tuple[RequestedTable, SharedVersion]:
        number = target.version(request.version, at) if pinned is None else pinned.version
        return target, target.past(number)

    target, shared = await asking(context, found)
    recipient = context.caller.recipient.name
    answer = await context.hub.compute(recipient, lambda: _select_files(context, shared, request, options))
    return _stream_response(context, target, answer, request, options, page, mark)


# -- files


@dataclass(frozen=True, slots=True)
class _Answer:
    """The rows that answer a query, before pages are cut."""

    shared: SharedVersion
    response_format: ResponseFormat
    rows: PackedRows


def _select_files(context: Context, shared: SharedVersion, request: QueryRequest, options: AnswerOptions) -> _Answer:
    """Hints first, then the limit; both spare whole files only."""
    settings = context.hub.settings
    chosen = chosen_format(options, shared)
    rows = shared.rows(chosen, options.id_hash or chosen.value)
    conditions, parsing = [], Budget(PARSING_CPU)
    if request.predicate_hints and settings.evaluate_predicate_hints:
        conditions.append(sql_condition(request.predicate_hints, shared.schema, parsing))
    if request.json_predicate_hints and settings.evaluate_json_predicate_hints:
        conditions.append(json_condition(request.json_predicate_hints, shared.schema, parsing))
    if conditions or request.limit_hint is not None:
        kept = shared.index.limited(shared.index.keep(*conditions), request.limit_hint)
        rows = rows.filter(kept)
    return _Answer(shared, chosen, rows)


def _stream_response(
    context: Context,
    target: RequestedTable,
    answer: _Answer,
    request: QueryRequest,
    options: AnswerOptions,
    page: Position | None,
    mark: str,
) -> Response:
    hub, shared = context.hub, answer.shared
    told = request.version is not None or request.timestamp is not None
    most = hub.settings.query_table_page_size_limit
    paged = request.max_files is not None or request.page_token is not None
    start = 0 if page is None else page.row
    rows = answer.rows.slice(start, min(request.max_files or most, most)) if paged else answer.rows
    ends = options.end_stream or paged or request.include_refresh_token
    now = hub.seconds()
    expires = expiry(now, hub.settings.pre_signed_url_timeout_seconds)
    url = signed(context, target, expires, now)
    close = closing(expires, **_when(shared) if told else {})

    def chunks() -> Iterator[bytes]:
        for part in rows.frames():
            yield encode_rows(part, url, close)

    def end() -> EndStreamAction:
        def token(purpose: str, row: int, life: int, check: str) -> str:
            who, until = context.caller.recipient.name, now + life // 1000
            return seal_position(
                context, purpose, Position(target.place.share_key, who, check, shared.version, -1, row, until)
            )

        row = start + rows.height
        follows = row < answer.rows.height
        settings = hub.settings
        return EndStreamAction(
            next_page_token=token("pages", row, settings.query_table_page_token_ttl_ms, mark) if follows else None,
            refresh_token=token("refresh", 0, settings.refresh_token_ttl_ms, target.place.id)
            if request.include_refresh_token
            else None,
            min_url_expiration_timestamp=expires * 1000 if rows.height else None,
        )

    context.entry.version, context.entry.files = shared.version, rows.height
    context.entry.hints = hints_text(request)
    return stream(
        context,
        shared.version,
        head(shared, answer.response_format, told=told),
        chunks(),
        end if ends else None,
        answer_headers(options, answer.response_format, end_stream=ends),
    )


def _when(shared: SharedVersion) -> dict[str, object]:
    found: dict[str, object] = {"version": shared.version}
    return found if shared.timestamp is None else {**found, "timestamp": shared.timestamp}
