"""What all answers about a table share: asking it in its turn, head lines, headers, signed URLs, the stream itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import msgspec
from starlette.responses import Response

from lakeview.sharing.protocol.capabilities import Capabilities
from lakeview.sharing.protocol.messages import (
    CAPABILITIES_HEADER,
    FILE_ID_HASH_HEADER,
    EndStreamAction,
    QueryRequest,
    ResponseFormat,
    encode_line,
)
from lakeview.sharing.server.context import Context
from lakeview.sharing.server.lines import Url
from lakeview.sharing.server.refusals import unsupported
from lakeview.sharing.server.requests import AnswerOptions
from lakeview.sharing.server.shared_version import SharedVersion
from lakeview.sharing.server.signing import Grant
from lakeview.sharing.server.streams import TimelyResponse, line_headers, lines, takes_gzip
from lakeview.sharing.server.urls import url_of
from lakeview.sharing.server.version_request import RequestedTable

T = TypeVar("T")
_HINTS_CHARACTERS, _HINTS_RECORDED = 4096, 100


async def current(context: Context) -> RequestedTable:
    """The table of a request and its latest version. Requests for one table take turns: a store that hangs holds one
    thread."""
    place, hub = context.place(), context.hub
    async with hub.sources.of(place.table).turn:
        return await hub.work(lambda: RequestedTable.of(place, hub.sources))


async def asking(context: Context, what: Callable[[RequestedTable], T]) -> T:
    """Ask something of the table of a request that may load a version or its history, in a thread."""
    asked = await current(context)
    turn = context.hub.sources.of(asked.place.table).loading
    return await context.hub.load(context.caller.recipient.name, lambda: what(asked), turn)


# -- heads


def chosen_format(options: AnswerOptions, shared: SharedVersion, more: frozenset[str] = frozenset()) -> ResponseFormat:
    """The format of an answer; `more`: features that are needed beside those of this version. 400 if there is none."""
    found = options.response_format(shared.needed | more)
    if found not in shared.heads:
        raise unsupported(f"this table is given in responseformat={next(iter(shared.heads))} only")
    return found


def head(shared: SharedVersion, response_format: ResponseFormat, *, told: bool) -> bytes:
    """The lines of protocol and metaData; `told`: with the version they are of."""
    protocol, body = shared.heads[response_format]
    if told:
        body = {**msgspec.to_builtins(body), "version": shared.version}
    return encode_line("protocol", protocol) + encode_line("metaData", body)


def answer_headers(options: AnswerOptions, chosen: ResponseFormat, *, end_stream: bool) -> dict[str, str]:
    """What the answer says of itself, to clients that said what they can."""
    found: dict[str, str] = {}
    if options.capabilities.formats or end_stream:
        said = Capabilities((chosen.value,), end_stream=True if end_stream else None)
        found[CAPABILITIES_HEADER] = said.header
    if options.id_hash is not None:
        found[FILE_ID_HASH_HEADER] = options.id_hash
    return found


def hints_text(request: QueryRequest) -> str | None:
    """The filter of a request as JSON text for the audit log: its first 4,096 characters."""
    given: dict[str, object] = {}
    if request.predicate_hints is not None:  # what is cut off anyway is not written first
        given["predicateHints"] = [hint[:_HINTS_CHARACTERS] for hint in request.predicate_hints[:_HINTS_RECORDED]]
    if request.json_predicate_hints is not None:
        given["jsonPredicateHints"] = request.json_predicate_hints[:_HINTS_CHARACTERS]
    if request.limit_hint is not None:
        given["limitHint"] = request.limit_hint
    return msgspec.json.encode(given).decode()[:_HINTS_CHARACTERS] if given else None


def signed(context: Context, asked: RequestedTable, expires: int, now: int) -> Url:
    """Paths of a table to URLs for who asked."""
    hub, caller = context.hub, context.caller
    assert caller.recipient.id is not None
    grant = Grant(asked.place.id, caller.recipient.id, expires)
    in_store = hub.store_urls if hub.settings.sign_in_store else None
    return url_of(asked.source.storage, hub.files, grant, context.base_url(), now, in_store)


def stream(
    context: Context,
    number: int,
    start: bytes,
    chunks: Iterator[bytes],
    end: Callable[[], EndStreamAction] | None,
    more: dict[str, str],
    *,
    reads: bool = False,
) -> Response:
    """An answer of lines, sent as it is made. `reads`: making chunks reads from the table's store."""
    hub = context.hub
    work = partial(hub.load if reads else hub.compute, context.caller.recipient.name)
    gzip = takes_gzip(context.request.headers)

    def done(sent: int) -> None:
        context.entry.bytes = sent
        context.finish(200)

    return TimelyResponse(
        lines(start, chunks, end, work, gzip=gzip),
        hub.settings.limits.stall_seconds,
        done,
        headers=line_headers(number, more, gzip=gzip),
    )
