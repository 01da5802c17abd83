"""What all answers about a table share: loading it in its turn, head lines, headers, signed URLs, and the stream of
lines: compressed where that is wanted, and cut off when its reader stalls."""

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import anyio
import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from lakeview.model.errors import LakeviewError
from lakeview.sharing.protocol.messages import (
    CAPABILITIES_HEADER,
    FILE_ID_HASH_HEADER,
    LINES,
    VERSION_HEADER,
    Capabilities,
    EndStreamAction,
    QueryRequest,
    ResponseFormat,
    encode_line,
)
from lakeview.sharing.server.catalogue import Place
from lakeview.sharing.server.context import Context
from lakeview.sharing.server.lines import Url
from lakeview.sharing.server.refusals import Refusal, refusal_of
from lakeview.sharing.server.requests import AnswerOptions
from lakeview.sharing.server.shared_version import SharedVersion
from lakeview.sharing.server.signing import Grant, expiry, url_of
from lakeview.sharing.server.sources import RequestedTable

T = TypeVar("T")
Work = Callable[..., Awaitable[Any]]
Chunks = Iterator[bytes]
_HINTS_CHARACTERS, _HINTS_RECORDED = 4096, 100
_LEVEL = 1  # a sixth of the size for 2 ms a megabyte; higher levels cost far more than they save


async def current_table(context: Context, place: Place) -> RequestedTable:
    """A table and its latest version. Requests for one table take turns: a store that hangs holds one thread."""
    sources = context.hub.sources
    async with sources.of(place.table).turn:
        return await context.hub.work(lambda: sources.current(place))


async def run_on_table(context: Context, place: Place, load: Callable[[RequestedTable], T]) -> T:
    """What a function that may load a version or the history of a table returns for it, run in a thread."""
    target = await current_table(context, place)
    turn = context.hub.sources.of(place.table).loading
    return await context.hub.load(context.caller.recipient.name, lambda: load(target), turn)


# -- heads


def head(table_version: SharedVersion, response_format: ResponseFormat, *, with_version: bool) -> bytes:
    """The lines of protocol and metaData; `with_version`: with the version they are of."""
    protocol, body = table_version.heads[response_format]
    if with_version:
        body = {**msgspec.to_builtins(body), "version": table_version.version}
    return encode_line("protocol", protocol) + encode_line("metaData", body)


def answer_headers(options: AnswerOptions, response_format: ResponseFormat, *, end_stream: bool) -> dict[str, str]:
    """What the answer says of itself, to clients that said what they can."""
    headers: dict[str, str] = {}
    if options.capabilities.formats or end_stream:
        capabilities = Capabilities((response_format.value,), end_stream=True if end_stream else None)
        headers[CAPABILITIES_HEADER] = capabilities.header
    if options.id_hash is not None:
        headers[FILE_ID_HASH_HEADER] = options.id_hash
    return headers


def hints_text(request: QueryRequest) -> str | None:
    """The filter of a request as JSON text for the audit log: its first 4,096 characters."""
    hints: dict[str, object] = {}
    if request.predicate_hints is not None:  # what is cut off anyway is not written first
        hints["predicateHints"] = [hint[:_HINTS_CHARACTERS] for hint in request.predicate_hints[:_HINTS_RECORDED]]
    if request.json_predicate_hints is not None:
        hints["jsonPredicateHints"] = request.json_predicate_hints[:_HINTS_CHARACTERS]
    if request.limit_hint is not None:
        hints["limitHint"] = request.limit_hint
    return msgspec.json.encode(hints).decode()[:_HINTS_CHARACTERS] if hints else None


def url_signer(context: Context, target: RequestedTable) -> tuple[Url, int]:
    """What makes URLs of a table's paths for the caller, and when these expire (seconds since 1970)."""
    hub, caller, now = context.hub, context.caller, context.hub.seconds()
    assert caller.recipient.id is not None
    expires = expiry(now, hub.settings.pre_signed_url_timeout_seconds)
    grant = Grant(target.place.id, caller.recipient.id, expires)
    in_store = hub.store_urls if hub.settings.sign_in_store else None
    return url_of(target.source.storage, hub.files, grant, context.base_url(), now, in_store), expires


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
    gzip = _takes_gzip(context.request.headers)

    def finish(sent_bytes: int) -> None:
        context.entry.bytes = sent_bytes
        context.finish(200)

    headers = {"Content-Type": LINES, VERSION_HEADER: str(number), **more}
    if gzip:
        headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return TimelyResponse(
        lines(start, chunks, end, work, gzip=gzip), hub.settings.limits.stall_seconds, finish, headers=headers
    )


# -- streams


class TimelyResponse(StreamingResponse):
    """A response that gives up when its reader takes nothing for too long, and tells how many bytes went out."""

    def __init__(self, content: AsyncIterator[bytes], stall: float, done: Callable[[int], None], **more: Any) -> None:
        super().__init__(content, **more)
        self._stall = stall
        self._done = done
        self._sent_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def timely(message: Message) -> None:
            with anyio.fail_after(self._stall):
                await send(message)
            self._sent_bytes += len(message.get("body", b""))

        try:
            await super().__call__(scope, receive, timely)
        finally:
            self._done(self._sent_bytes)


class BrokenStreamError(RuntimeError):
    """An answer failed after it had begun, which no status can report any more: the connection is cut instead.

    A clean end would pass for a whole answer: silent loss of data.
    """


async def lines(
    head: bytes, chunks: Chunks, end: Callable[[], EndStreamAction] | None, work: Work, *, gzip: bool
) -> AsyncIterator[bytes]:
    """The head at once, then each chunk, made in a thread; at last what `end` tells, where an end was agreed on."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS) if gzip else None

    def compress(data: bytes, *, flush: bool = False) -> bytes:
        if packer is None:
            return data
        return packer.compress(data) + (packer.flush(zlib.Z_SYNC_FLUSH) if flush else b"")

    def next_line() -> bytes | None:
        chunk = next(chunks, None)
        return None if chunk is None else compress(chunk)

    yield compress(head, flush=True)
    try:
        while (chunk := await work(next_line)) is not None:
            if chunk:
                yield chunk
    except (LakeviewError, Refusal) as error:
        if end is None:
            raise BrokenStreamError(str(error)) from error
        refusal = error if isinstance(error, Refusal) else refusal_of(error)
        last = EndStreamAction(error_message=refusal.message, http_status_error_code=refusal.status)
        yield compress(encode_line("endStreamAction", last))
    else:
        if end is not None:
            yield compress(encode_line("endStreamAction", end()))
    if packer is not None:
        yield packer.flush()


def _takes_gzip(headers: Mapping[str, str]) -> bool:
    """Whether a client takes gzip: named without a quality of zero."""
    for part in headers.get("accept-encoding", "").lower().split(","):
        name, _, quality = part.partition(";")
        if name.strip() in ("gzip", "*"):
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
