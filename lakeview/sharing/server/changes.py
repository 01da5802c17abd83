"""GET .../changes and queries from a version on: what commits changed, line by line."""

from collections.abc import Iterator, Sequence
from itertools import chain

import polars as pl
from starlette.responses import Response

from lakeview.sharing.protocol.messages import EndStreamAction, QueryRequest, ResponseFormat
from lakeview.sharing.server.answers import answer_headers, head, hints_text, run_on_table, stream, url_signer
from lakeview.sharing.server.catalogue import Place
from lakeview.sharing.server.context import Context, Position
from lakeview.sharing.server.lines import Url, closing, encode_rows
from lakeview.sharing.server.refusals import bad_parameter
from lakeview.sharing.server.requests import AnswerOptions, ChangesRequest, answer_options, changes_request
from lakeview.sharing.server.shared_version import SharedVersion
from lakeview.sharing.server.signing import checksum
from lakeview.sharing.server.source import ChangeBatch, ChangeRange, CommitRow
from lakeview.sharing.server.sources import RequestedTable


async def changes(context: Context) -> Response:
    """GET .../changes."""
    place = context.place()
    place.require_changes()
    request = changes_request(context.query)
    options = answer_options(context.request.headers)
    mark = checksum("changes", {k: v for k, v in context.query.items() if k != "pageToken"}, options)
    return await _answer(context, place, request, options, mark)


async def stream_of_changes(context: Context, place: Place, request: QueryRequest) -> Response:
    """POST .../query with startingVersion: the files each version added and removed, as streaming readers ask."""
    options = answer_options(context.request.headers)
    mark = checksum(
        "stream", request.starting_version, request.ending_version, request.max_files, options,
        request.include_historical_metadata, request.include_historical_protocol,
    )  # fmt: skip
    parameters = ChangesRequest(
        request.starting_version,
        request.ending_version,
        None,
        None,
        request.include_historical_metadata is not False,
        request.include_historical_protocol is not False,
        request.max_files,
        request.page_token,
        feed=False,
    )
    answer = await _answer(context, place, parameters, options, mark)
    context.entry.hints = hints_text(request)
    return answer


async def _answer(
    context: Context, place: Place, request: ChangesRequest, options: AnswerOptions, mark: str
) -> Response:
    page = context.open_position("pages", request.page_token, place.share_key, mark)
    target, heading, change_range, batches = await run_on_table(
        context, place, lambda target: _prepare(context, target, request, page, options)
    )
    limit = context.hub.settings.query_table_page_size_limit
    url, expires = url_signer(context, target)
    most = None if request.max_files is None else min(request.max_files, limit)
    sender = _Sender(batches, most, url, closing(expires))

    def end() -> EndStreamAction:
        token = None
        if (follows := sender.follows) is not None:
            token = context.seal_position(
                "pages", place.share_key, mark, change_range.start, change_range.end, follows.row, follows.version
            )
        context.entry.files = sender.row_count
        return EndStreamAction(
            next_page_token=token, min_url_expiration_timestamp=expires * 1000 if sender.row_count else None
        )

    context.entry.version, context.entry.end_version = change_range.start, change_range.end
    response_format = change_range.response_format
    ends = options.end_stream or request.max_files is not None
    return stream(
        context,
        change_range.start,
        head(heading, response_format, with_version=change_range.metadata or response_format is ResponseFormat.DELTA),
        sender.chunks(),
        end if ends else None,
        answer_headers(options, response_format, end_stream=ends),
        reads=True,
    )


def _versions(target: RequestedTable, request: ChangesRequest) -> tuple[int, int]:
    """The first and last version of a range. Refused outside of what is shared."""
    start, end, first = request.starting_version, target.latest, target.place.table.start_version
    if start is None:
        assert request.starting is not None
        target.source.require_since(request.starting, first)
        start = target.source.first_from(request.starting, first)
    if request.ending_version is not None:
        if request.feed and request.ending_version > end:
            raise bad_parameter(f"endingVersion {request.ending_version} is after the latest available version {end}")
        end = min(end, request.ending_version)
    elif request.ending is not None:
        end = target.source.version_at(request.ending)
    return target.within(start), end


def _prepare(
    context: Context, target: RequestedTable, request: ChangesRequest, page: Position | None, options: AnswerOptions
) -> tuple[RequestedTable, SharedVersion, ChangeRange, Iterator[ChangeBatch]]:
    """A range of changes with the version that its head describes. Refused before the first byte: the range, the
    response format, and what the first batch contains.

    A fault that lies further on in the log ends the stream: with an errorMessage for clients that asked for an
    endStreamAction, otherwise by closing the connection before its end.
    """
    start, end = _versions(target, request) if page is None else (target.within(page.version), page.end)
    most = context.hub.settings.limits.changes_versions
    if start > end:
        raise bad_parameter(f"the start version {start} is after the end version {end}")
    if end - start >= most:
        raise bad_parameter(f"a range of more than {most} versions; ask for it in parts")
    first, last = target.shared_version(start), target.shared_version(end)
    between = target.source.features_between(start, end, feed=request.feed)
    response_format = first.response_format(options, last.reader_features | between)
    change_range = ChangeRange(
        start,
        end,
        response_format,
        options.id_hash or response_format.value,
        feed=request.feed,
        metadata=request.historical_metadata,
        protocol=request.historical_protocol,
        begin=CommitRow(start, 0) if page is None else page.begin,
    )
    batches = target.source.changes(change_range)
    first_batch = next(batches, None)
    heading = first if request.historical_metadata else last
    return target, heading, change_range, chain([] if first_batch is None else [first_batch], batches)


class _Sender:
    """Batches to bytes, at most so many rows. `follows`: where the next page begins, if there is one."""

    def __init__(self, batches: Iterator[ChangeBatch], most: int | None, url: Url, close: str) -> None:
        self._batches = batches
        self._most = most
        self._url = url
        self._close = close
        self.row_count = 0
        self.follows: CommitRow | None = None

    def chunks(self) -> Iterator[bytes]:
        """The lines of one page."""
        for batch in self._batches:
            room = batch.rows.height if self._most is None else self._most - self.row_count
            page = batch.rows[:room]
            yield self._encode(page, batch.between, batch.rows.height > room)
            self.row_count += page.height
            if batch.rows.height > room:
                self.follows = batch.position(room)
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
