"""Chunks of lines to an answer that begins at once: compressed where that is wanted, and cut off when nobody reads."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any

import anyio
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from lakeview.model.errors import LakeviewError
from lakeview.sharing.protocol.messages import LINES, EndStreamAction, encode_line
from lakeview.sharing.server.refusals import Refusal, refusal_of

Work = Callable[..., Awaitable[Any]]
Chunks = Iterator[bytes]
_LEVEL = 1  # a sixth of the size for 2 ms a megabyte; higher levels cost far more than they save


class TimelyResponse(StreamingResponse):
    """A response that gives up when its reader takes nothing for too long, and tells how many bytes went out."""

    def __init__(self, content: AsyncIterator[bytes], stall: float, done: Callable[[int], None], **more: Any) -> None:
        super().__init__(content, **more)
        self._stall = stall
        self._done = done
        self._sent = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def timely(message: Message) -> None:
            with anyio.fail_after(self._stall):
                await send(message)
            self._sent += len(message.get("body", b""))

        try:
            await super().__call__(scope, receive, timely)
        finally:
            self._done(self._sent)


class BrokenStreamError(RuntimeError):
    """An answer failed after it had begun, for a client that cannot be told: the connection is cut instead.

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
        told = error if isinstance(error, Refusal) else refusal_of(error)
        last = EndStreamAction(error_message=told.message, http_status_error_code=told.status)
        yield compress(encode_line("endStreamAction", last))
    else:
        if end is not None:
            yield compress(encode_line("endStreamAction", end()))
    if packer is not None:
        yield packer.flush()


def line_headers(version: int, more: Mapping[str, str], *, gzip: bool) -> dict[str, str]:
    """The headers of an answer of lines."""
    headers = {"Content-Type": LINES, "Delta-Table-Version": str(version), **more}
    return {**headers, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"} if gzip else headers


def takes_gzip(headers: Mapping[str, str]) -> bool:
    """Whether a client takes gzip: named without a quality of zero."""
    for part in headers.get("accept-encoding", "").lower().split(","):
        name, _, quality = part.partition(";")
        if name.strip() in ("gzip", "*"):
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
