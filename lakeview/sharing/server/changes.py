"""GET .../changes and queries from a version on: what commits changed, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import polars as pl
from starlette.responses import Response

from lakeview.sharing.protocol.messages import EndStreamAction, QueryRequest, ResponseFormat
from lakeview.sharing.server.answers import answer_headers, asking, chosen_format, head, hints_text, signed, stream
from lakeview.sharing.server.context import Context
from lakeview.sharing.server.continuation import Position, open_position, seal_position
from lakeview.sharing.server.lines import Url, closing, encode_rows
from lakeview.sharing.server.refusals import bad_parameter
from lakeview.sharing.server.requests import AnswerOptions, ChangesRequest, answer_options, changes_request
from lakeview.sharing.server.shared_version import SharedVersion
from lakeview.sharing.server.signing import checksum
from lakeview.sharing.server.source import ChangeBatch, ChangeRange, CommitRow
from lakeview.sharing.server.urls import expiry
from lakeview.sharing.server.version_request import RequestedTable, require_changes


@dataclass(frozen=True, slots=True)
class _Range:
    """A range of changes, ready to be sent."""

    target: RequestedTable
    first: SharedVersion
    heading: SharedVersion
    wanted: ChangeRange
    batches: Iterator[ChangeBatch]


@dataclass(frozen=True, slots=True)
class _Contents:
    """What of a range is requested: the change data feed or plain adds and removes, and actions of later versions."""

    feed: bool
    metadata: bool
    protocol: bool


@dataclass(frozen=True, slots=True)
class _Page:
    """The number of files in one answer, None for all of them; `mark`: a checksum of the request."""

    most: int | None
    mark: str


async def changes(context: Context) -> Response:
    """GET .../changes."""
    place = context.place()
    require_changes(place)
    request = changes_request(context.query)
    options = answer_options(context.request.headers)
    mark = checksum("changes", {k: v for k, v in context.query.items() if k != "pageToken"}, options)
    page = open_position(context, "pages", request.page_token, place.share_key, mark)

    def found(target: RequestedTable) -> _Range:
        start, end = (page.version, page.end) if page is not None else _range(target, request)
        requested = _Contents(True, request.historical_metadata, request.historical_protocol)
        return _ready(context, target, (start, end), page, options, requested)

    ready = await asking(context, found)
    return _stream_response(context, ready, options, _Page(request.max_files, mark))


async def stream_of_changes(context: Context, request: QueryRequest) -> Response:
    """POST .../query with startingVersion: the files each version added and removed, as streaming readers ask."""
    place = context.place()
    options = answer_options(context.request.headers)
    mark = checksum(
        "stream", request.starting_version, request.ending_version, request.max_files, options,
        request.include_historical_metadata, request.include_historical_protocol,
    )  # fmt: skip
    page = open_position(context, "pages", request.page_token, place.share_key, mark)

    def found(target: RequestedTable) -> _Range:
        start = request.starting_version
        assert start is not None
        end = target.latest if page is None else page.end
        if page is None and request.ending_version is not None:
            end = min(end, request.ending_version)
        requested = _Contents(
            False, request.include_historical_metadata is not False, request.include_historical_protocol is not False
        )
        return _ready(context, target, (target.within(start), end), page, options, requested)

    ready = await asking(context, found)
    context.entry.hints = hints_text(request)
    return _stream_response(context, ready, options, _Page(request.max_files, mark))


def _range(target: RequestedTable, request: ChangesRequest) -> tuple[int, int]:
    start = request.starting_version
    if start is None and request.starting is not None:
        target.source.require_since(request.starting, target.place.table.start_version)
        start = target.source.first_from(request.starting, target.place.table.start_version)
    assert start is not None
    end = target.latest
    if request.ending_version is not None:
        end = request.ending_version
        if end > target.latest:
            raise bad_parameter(f"endingVersion {end} is after the latest available version {target.latest}")
    elif request.ending is not None:
        end = target.source.version_at(request.ending)
    return target.within(start), end


def _ready(
    context: Context,
    target: RequestedTable,
    versions: tuple[int, int],
    page: Position | None,
    options: AnswerOptions,
    requested: _Contents,
) -> _Range:
    """What is refused before the first byte: the range, the response format, and what the first batch contains.

    A fault that lies further on in the log ends the stream: with an errorMessage for clients that target for an
    endStreamAction, otherwise by closing the connection before its end.
    """
    start, end = versions
    most = context.hub.settings.limits.changes_versions
    if start > end:
        raise bad_parameter(f"the start version {start} is after the end version {end}")
    if end - start >= most:
        raise bad_parameter(f"a range of more than {most} versions; ask for it in parts")
    first = target.shared(start)
    heading = first if requested.metadata else target.shared(end)
    between = target.source.features_between(start, end, feed=requested.feed)
    chosen = chosen_format(options, first, target.shared(end).needed | between)
    wanted_changes = ChangeRange(
        start,
        end,
        chosen,
        options.id_hash or chosen.value,
        feed=requested.feed,
        metadata=requested.metadata,
        protocol=requested.protocol,
        begin=CommitRow(start, 0) if page is None else page.begin(start),
    )
    batches = target.source.changes(wanted_changes)
    begun = next(batches, None)
    return _Range(target, first, heading, wanted_changes, chain([] if begun is None else [begun], batches))


def _stream_response(context: Context, found: _Range, options: AnswerOptions, page: _Page) -> Response:
    hub, target = context.hub, found.target
    now = hub.seconds()
    expires = expiry(now, hub.settings.pre_signed_url_timeout_seconds)
    limit = hub.settings.query_table_page_size_limit
    most = None if page.most is None else min(page.most, limit)
    ends = options.end_stream or page.most is not None
    sender = _Sender(found.batches, most, signed(context, target, expires, now), closing(expires))

    def end() -> EndStreamAction:
        token = None
        if sender.follows is not None:
            life = hub.settings.query_table_page_token_ttl_ms // 1000
            position = Position(
                target.place.share_key, context.caller.recipient.name, page.mark, found.wanted.start, found.wanted.end,
                sender.follows.row, now + life, sender.follows.version,
            )  # fmt: skip
            token = seal_position(context, "pages", position)
        context.entry.files = sender.sent
        return EndStreamAction(
            next_page_token=token, min_url_expiration_timestamp=expires * 1000 if sender.sent else None
        )

    context.entry.version, context.entry.end_version = found.wanted.start, found.wanted.end
    told = found.wanted.metadata or found.wanted.response_format is ResponseFormat.DELTA
    return stream(
        context,
        found.wanted.start,
        head(found.heading, found.wanted.response_format, told=told),
        sender.chunks(),
        end if ends else None,
        answer_headers(options, found.wanted.response_format, end_stream=ends),
        reads=True,
    )


class _Sender:
    """Batches to bytes, at most so many rows. `follows`: where the next page begins, if there is one."""

    def __init__(self, batches: Iterator[ChangeBatch], most: int | None, url: Url, close: str) -> None:
        self._batches = batches
        self._most = most
        self._url = url
        self._close = close
        self.sent = 0
        self.follows: CommitRow | None = None

    def chunks(self) -> Iterator[bytes]:
        """The lines of one page."""
        for batch in self._batches:
            left = batch.rows.height if self._most is None else self._most - self.sent
            page = batch.rows[:left]
            yield self._encode(page, batch.between, batch.rows.height > left)
            self.sent += page.height
            if batch.rows.height > left:
                self.follows = batch.position(left)
                return

    def _encode(self, rows: pl.DataFrame, between: Sequence[tuple[int, bytes]], cut: bool) -> bytes:
        """The lines of rows, and those between them; lines behind the last row of a page go with the next one."""
        parts: list[bytes] = []
        done = 0
        for at, line in between:
            if cut and at >= rows.height:
                break
            parts += [encode_rows(rows[done:at], self._url, self._close), line]
            done = at
        return b"".join([*parts, encode_rows(rows[done:], self._url, self._close)])
