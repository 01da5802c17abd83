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
from lakeview.sharing.server.continuation import Position, opened, sealed
from lakeview.sharing.server.lines import Url, closing, written
from lakeview.sharing.server.refusals import bad_parameter
from lakeview.sharing.server.requests import ChangesRequest, Wanted, changes_request, wanted
from lakeview.sharing.server.shared_version import SharedVersion
from lakeview.sharing.server.signing import checksum
from lakeview.sharing.server.source import ChangeBatch, ChangesWanted, CommitRow
from lakeview.sharing.server.urls import expiry
from lakeview.sharing.server.version_request import Asked, require_changes


@dataclass(frozen=True, slots=True)
class _Found:
    """A range of changes, ready to be sent."""

    asked: Asked
    first: SharedVersion
    heading: SharedVersion
    wanted: ChangesWanted
    batches: Iterator[ChangeBatch]


@dataclass(frozen=True, slots=True)
class _Requested:
    """What of a range is requested: the change data feed or plain adds and removes, and actions of later versions."""

    feed: bool
    metadata: bool
    protocol: bool


@dataclass(frozen=True, slots=True)
class _Page:
    """How many files are asked for at once, None for all of them; `mark`: a checksum of the request."""

    most: int | None
    mark: str


async def changes(context: Context) -> Response:
    """GET .../changes."""
    place = context.place()
    require_changes(place)
    request = changes_request(context.query)
    asked_for = wanted(context.request.headers)
    mark = checksum("changes", {k: v for k, v in context.query.items() if k != "pageToken"}, asked_for)
    page = opened(context, "pages", request.page_token, place.shown, mark)

    def found(asked: Asked) -> _Found:
        start, end = (page.version, page.end) if page is not None else _range(asked, request)
        requested = _Requested(True, request.historical_metadata, request.historical_protocol)
        return _ready(context, asked, (start, end), page, asked_for, requested)

    ready = await asking(context, found)
    return _streamed(context, ready, asked_for, _Page(request.max_files, mark))


async def stream_of_changes(context: Context, request: QueryRequest) -> Response:
    """POST .../query with startingVersion: the files each version added and removed, as streaming readers ask."""
    place = context.place()
    asked_for = wanted(context.request.headers)
    mark = checksum(
        "stream", request.starting_version, request.ending_version, request.max_files, asked_for,
        request.include_historical_metadata, request.include_historical_protocol,
    )  # fmt: skip
    page = opened(context, "pages", request.page_token, place.shown, mark)

    def found(asked: Asked) -> _Found:
        start = request.starting_version
        assert start is not None
        end = asked.latest if page is None else page.end
        if page is None and request.ending_version is not None:
            end = min(end, request.ending_version)
        requested = _Requested(
            False, request.include_historical_metadata is not False, request.include_historical_protocol is not False
        )
        return _ready(context, asked, (asked.within(start), end), page, asked_for, requested)

    ready = await asking(context, found)
    context.entry.hints = hints_text(request)
    return _streamed(context, ready, asked_for, _Page(request.max_files, mark))


def _range(asked: Asked, request: ChangesRequest) -> tuple[int, int]:
    start = request.starting_version
    if start is None and request.starting is not None:
        asked.source.require_since(request.starting, asked.place.table.start_version)
        start = asked.source.first_from(request.starting, asked.place.table.start_version)
    assert start is not None
    end = asked.latest
    if request.ending_version is not None:
        end = request.ending_version
        if end > asked.latest:
            raise bad_parameter(f"endingVersion {end} is after the latest available version {asked.latest}")
    elif request.ending is not None:
        end = asked.source.version_at(request.ending)
    return asked.within(start), end


def _ready(
    context: Context,
    asked: Asked,
    versions: tuple[int, int],
    page: Position | None,
    asked_for: Wanted,
    requested: _Requested,
) -> _Found:
    """What is refused before the first byte: the range, the response format, and what the first batch contains.

    A fault that lies further on in the log ends the stream: with an errorMessage for clients that asked for an
    endStreamAction, otherwise by closing the connection before its end.
    """
    start, end = versions
    most = context.hub.settings.limits.changes_versions
    if start > end:
        raise bad_parameter(f"the start version {start} is after the end version {end}")
    if end - start >= most:
        raise bad_parameter(f"a range of more than {most} versions; ask for it in parts")
    first = asked.shared(start)
    heading = first if requested.metadata else asked.shared(end)
    between = asked.source.needed_between(start, end, feed=requested.feed)
    chosen = chosen_format(asked_for, first, asked.shared(end).needed | between)
    wanted_changes = ChangesWanted(
        start,
        end,
        chosen,
        asked_for.id_hash or chosen.value,
        feed=requested.feed,
        metadata=requested.metadata,
        protocol=requested.protocol,
        begin=CommitRow(start, 0) if page is None else page.begin(start),
    )
    batches = asked.source.changes(wanted_changes)
    begun = next(batches, None)
    return _Found(asked, first, heading, wanted_changes, chain([] if begun is None else [begun], batches))


def _streamed(context: Context, found: _Found, asked_for: Wanted, page: _Page) -> Response:
    hub, asked = context.hub, found.asked
    now = hub.seconds()
    expires = expiry(now, hub.settings.pre_signed_url_timeout_seconds)
    limit = hub.settings.query_table_page_size_limit
    most = None if page.most is None else min(page.most, limit)
    ends = asked_for.end_stream or page.most is not None
    sender = _Sender(found.batches, most, signed(context, asked, expires, now), closing(expires))

    def end() -> EndStreamAction:
        token = None
        if sender.follows is not None:
            life = hub.settings.query_table_page_token_ttl_ms // 1000
            position = Position(
                asked.place.shown, context.caller.recipient.name, page.mark, found.wanted.start, found.wanted.end,
                sender.follows.row, now + life, sender.follows.version,
            )  # fmt: skip
            token = sealed(context, "pages", position)
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
        answer_headers(asked_for, found.wanted.response_format, end_stream=ends),
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
            yield self._written(page, batch.between, batch.rows.height > left)
            self.sent += page.height
            if batch.rows.height > left:
                self.follows = batch.position(left)
                return

    def _written(self, rows: pl.DataFrame, between: Sequence[tuple[int, bytes]], cut: bool) -> bytes:
        """The lines of rows, and those between them; lines behind the last row of a page go with the next one."""
        parts: list[bytes] = []
        done = 0
        for at, line in between:
            if cut and at >= rows.height:
                break
            parts += [written(rows[done:at], self._url, self._close), line]
            done = at
        return b"".join([*parts, written(rows[done:], self._url, self._close)])
