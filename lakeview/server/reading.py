"""A table's own endpoints: its version, its metadata, its files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import polars as pl
from starlette.responses import Response

from lakeview.expressions import Node
from lakeview.server.answers import answer_headers, asking, chosen_format, current, head, hints_text, signed, stream
from lakeview.server.budget import PARSING_CPU, Budget
from lakeview.server.changes import stream_of_changes
from lakeview.server.choosing import Asked, require_history
from lakeview.server.context import Context
from lakeview.server.continuation import Position, opened, sealed
from lakeview.server.json_hints import json_condition
from lakeview.server.lines import closing, written
from lakeview.server.refusals import bad_parameter
from lakeview.server.requests import Wanted, moment, query_request, version_number, wanted
from lakeview.server.settings import Settings
from lakeview.server.shared_version import SharedVersion
from lakeview.server.signing import checksum
from lakeview.server.sql_hints import sql_condition
from lakeview.server.urls import expiry
from lakeview.sharing.protocol import LINES, VERSION_HEADER, EndStreamAction, QueryRequest, ResponseFormat


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
        number = await asking(context, lambda asked: asked.source.first_from(since, first))
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
    asked_for = wanted(context.request.headers)

    def found(asked: Asked) -> SharedVersion:
        return asked.shared(asked.version(number, at))

    shared = await asking(context, found)
    chosen = chosen_format(asked_for, shared)
    body = head(shared, chosen, told=number is not None or at is not None)
    context.entry.version = shared.version
    more = answer_headers(asked_for, chosen, end_stream=False)
    return Response(body, headers={"Content-Type": LINES, VERSION_HEADER: str(shared.version), **more})


async def query(context: Context) -> Response:
    """POST .../query: the files of a version, or with startingVersion what changed since."""
    place = context.place()
    request = query_request(await context.body())
    if request.version is not None or request.timestamp or request.starting_version is not None:
        require_history(place)
    if request.starting_version is not None:
        return await stream_of_changes(context, request)
    asked_for = wanted(context.request.headers)
    at = moment(request.timestamp, "timestamp")
    paged = request.max_files is not None or request.page_token is not None
    mark = checksum(
        request.predicate_hints, request.json_predicate_hints, request.limit_hint, request.version, request.timestamp,
        request.max_files, asked_for.capabilities, asked_for.id_hash,
    ) if paged else ""  # fmt: skip
    page = opened(context, "pages", request.page_token, place.shown, mark)
    fresh = opened(context, "refresh", request.refresh_token, place.shown, place.id)
    pinned = page or fresh

    def found(asked: Asked) -> tuple[Asked, SharedVersion]:
        number = asked.version(request.version, at) if pinned is None else pinned.version
        shared = asked.past(number)
        chosen_format(asked_for, shared)  # what is refused anyway need not be listed
        shared.files.load()
        return asked, shared

    asked, shared = await asking(context, found)
    kept = await _kept(context, shared, request)
    chosen = chosen_format(asked_for, shared)
    lines = shared.files.blocks(chosen, asked_for.id_hash or chosen.value, _page(context, shared, kept, page, request))
    # a file that cannot be given, among the first, is refused before the first byte
    begun = await context.hub.compute(context.caller.recipient.name, lambda: next(lines, None))
    answer = _Answer(shared, chosen, kept, chain([] if begun is None else [begun], lines))
    return _streamed(context, asked, answer, request, asked_for, page, mark)


# -- files


@dataclass(frozen=True, slots=True)
class _Answer:
    """The files that answer a query: which of all pages (`kept`, all without a mask), and the lines of this one."""

    shared: SharedVersion
    response_format: ResponseFormat
    kept: pl.Series | None
    blocks: Iterator[pl.DataFrame]

    @property
    def height(self) -> int:
        """How many files there are on all pages."""
        return self.shared.files.load().height if self.kept is None else int(self.kept.sum())


async def _kept(context: Context, shared: SharedVersion, request: QueryRequest) -> pl.Series | None:
    """Hints first, then the limit; both skip whole files only. None where no file is skipped.

    Hints are parsed and held against statistics where they delay nobody; what is not evaluated in time skips no file.
    """
    hub, recipient = context.hub, context.caller.recipient.name
    conditions = await hub.compute(recipient, lambda: _conditions(hub.settings, shared, request))
    if not conditions and request.limit_hint is None:
        return None
    if not shared.index.has_read(*conditions):
        await hub.load(recipient, lambda: shared.index.read(*conditions))
    return await hub.compute(
        recipient, lambda: shared.index.limited(shared.index.keep(*conditions), request.limit_hint)
    )


def _conditions(settings: Settings, shared: SharedVersion, request: QueryRequest) -> list[Node]:
    found: list[Node] = []
    parsing = Budget(PARSING_CPU)
    if request.predicate_hints and settings.evaluate_predicate_hints:
        found.append(sql_condition(request.predicate_hints, shared.schema, parsing))
    if request.json_predicate_hints and settings.evaluate_json_predicate_hints:
        found.append(json_condition(request.json_predicate_hints, shared.schema, parsing))
    return found


def _page(
    context: Context, shared: SharedVersion, kept: pl.Series | None, page: Position | None, request: QueryRequest
) -> pl.Series | None:
    """The mask of one page's files."""
    if request.max_files is None and request.page_token is None:
        return kept
    most = context.hub.settings.query_table_page_size_limit
    start = 0 if page is None else page.row
    end = start + min(request.max_files or most, most)
    height = shared.files.load().height
    every = pl.Series([True], dtype=pl.Boolean).new_from_index(0, height) if kept is None else kept
    number = every.cast(pl.Int64).cum_sum()  # from 1 on, of those that are kept
    return every & (number > start) & (number <= end)


def _streamed(
    context: Context,
    asked: Asked,
    answer: _Answer,
    request: QueryRequest,
    asked_for: Wanted,
    page: Position | None,
    mark: str,
) -> Response:
    hub, shared, height = context.hub, answer.shared, answer.height
    told = request.version is not None or request.timestamp is not None
    most = hub.settings.query_table_page_size_limit
    paged = request.max_files is not None or request.page_token is not None
    start = 0 if page is None else page.row
    count = max(min(request.max_files or most, most, height - start), 0) if paged else height
    ends = asked_for.end_stream or paged or request.include_refresh_token
    now = hub.seconds()
    expires = expiry(now, hub.settings.pre_signed_url_timeout_seconds)
    url = signed(context, asked, expires, now)
    close = closing(expires, **_when(shared) if told else {})

    def end() -> EndStreamAction:
        def token(purpose: str, row: int, life: int, check: str) -> str:
            who, until = context.caller.recipient.name, now + life // 1000
            return sealed(context, purpose, Position(asked.place.shown, who, check, shared.version, -1, row, until))

        row = start + count
        settings = hub.settings
        return EndStreamAction(
            next_page_token=token("pages", row, settings.query_table_page_token_ttl_ms, mark) if row < height else None,
            refresh_token=token("refresh", 0, settings.refresh_token_ttl_ms, asked.place.id)
            if request.include_refresh_token
            else None,
            min_url_expiration_timestamp=expires * 1000 if count else None,
        )

    context.entry.version, context.entry.files = shared.version, count
    context.entry.hints = hints_text(request)
    return stream(
        context,
        shared.version,
        head(shared, answer.response_format, told=told),
        (written(rows, url, close) for rows in answer.blocks),
        end if ends else None,
        answer_headers(asked_for, answer.response_format, end_stream=ends),
    )


def _when(shared: SharedVersion) -> dict[str, object]:
    found: dict[str, object] = {"version": shared.version}
    return found if shared.timestamp is None else {**found, "timestamp": shared.timestamp}
