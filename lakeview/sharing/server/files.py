"""GET /files/...: bytes of data files for signed URLs, whole or in ranges."""

import re
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import IO

from starlette.requests import Request
from starlette.responses import Response

from lakeview.model.errors import AccessDeniedError, LakeviewError
from lakeview.sharing.protocol.messages import ErrorCode
from lakeview.sharing.server.answers import TimelyResponse
from lakeview.sharing.server.catalogue import Place
from lakeview.sharing.server.context import Context, may_still_read
from lakeview.sharing.server.hub import Hub
from lakeview.sharing.server.refusals import Refusal, forbidden
from lakeview.sharing.server.settings import Recipient
from lakeview.sharing.server.signing import Grant

_BLOCK = 1 << 20
_RANGE = re.compile(r"bytes=(\d{0,19})-(\d{0,19})")
_TYPE = "application/octet-stream"
_REFUSED = "the URL is not signed by this server for this file, or its time is over; ask for the table again"


def authorize(hub: Hub, request: Request) -> tuple[Recipient, Place, str]:
    """Who may read which file of which table by this URL. 403 for one that is changed, too old, or of a recipient who
    has no access any more; the answer does not say which, nor whether the file is there."""
    query = request.query_params
    number, path = request.path_params["table"], request.path_params["path"]
    until = query.get("se", "")
    expires = int(until) if until.isascii() and until.isdecimal() and len(until) < 16 else 0
    grant = Grant(number, query.get("rcp", ""), expires)
    is_signed = hub.files.allows(grant, query.get("kid", ""), query.get("sig", ""), path)
    has_repeats = len(query.multi_items()) != len(query)  # a client must not choose which of two values counts
    if not is_signed or has_repeats or query.get("sp") != "r" or expires <= hub.seconds():
        raise forbidden(_REFUSED)
    recipient = hub.catalogue.recipients_by_id.get(grant.recipient)
    place = None if recipient is None else hub.catalogue.table_of(recipient, number)
    if recipient is None or place is None or not may_still_read(hub, recipient):
        raise forbidden(_REFUSED)
    return recipient, place, path


async def file(context: Context, place: Place, path: str) -> Response:
    """The bytes of a file, or the range asked for. 404 for a file that is gone, 416 for a range outside of it."""
    hub, request = context.hub, context.request
    slots = hub.downloads(context.caller.recipient.name)
    with ExitStack() as stack:  # closes the file and frees the download's slot, unless the response does
        await slots.acquire_on_behalf_of(request)
        stack.callback(slots.release_on_behalf_of, request)
        handle, size = await hub.work(lambda: _open(hub, place, path))
        stack.enter_context(handle)
        start, length, status = 0, size, 200
        headers = {"Accept-Ranges": "bytes", "Content-Type": _TYPE, "X-Content-Type-Options": "nosniff",
                   "Cache-Control": "private"}  # fmt: skip
        if (part := _range(request.headers.get("range"), size)) is not None:
            start, length, status = part[0], part[1] - part[0] + 1, 206
            headers["Content-Range"] = f"bytes {part[0]}-{part[1]}/{size}"
        headers["Content-Length"] = str(length)
        if request.method == "HEAD":
            context.finish(status)
            return Response(status_code=status, headers=headers)
        open_file = stack.pop_all()

    def finish(sent_bytes: int) -> None:
        open_file.close()
        context.entry.bytes = sent_bytes
        context.finish(status)

    blocks = _blocks(hub, handle, start, length)
    return TimelyResponse(blocks, hub.settings.limits.stall_seconds, finish, status_code=status, headers=headers)


def _open(hub: Hub, place: Place, path: str) -> tuple[IO[bytes], int]:
    """An open file and its size. The store follows links only to places below the table and the allowed roots."""
    refusal = Refusal(404, ErrorCode.RESOURCE_DOES_NOT_EXIST, "the file is not there any more; ask for the table again")
    try:
        storage = hub.sources.open(hub.sources.of(place.table)).storage
        handle = storage.open(path)
    except (FileNotFoundError, NotADirectoryError, AccessDeniedError) as error:
        raise refusal from error
    try:
        size = handle.seek(0, 2)
    except (OSError, LakeviewError) as error:
        handle.close()
        raise refusal from error
    return handle, size


async def _blocks(hub: Hub, file: IO[bytes], start: int, length: int) -> AsyncIterator[bytes]:
    rest = length

    def read() -> bytes:
        if rest == length:
            file.seek(start)
        return file.read(min(_BLOCK, rest))

    while rest > 0:
        block = await hub.work(read)
        if not block:
            raise RuntimeError("a file became shorter while it was read")
        rest -= len(block)
        yield block


def _range(header: str | None, size: int) -> tuple[int, int] | None:
    """The first and last byte asked for; None for all of them, and for several ranges or what is no range, which "a
    server MAY ignore" (RFC 9110). 416 for a range that begins behind the end."""
    match = _RANGE.fullmatch((header or "").strip().lower())
    if match is None or match[1] == match[2] == "":
        return None
    if match[1] == "":
        first, last = max(size - int(match[2]), 0), size - 1
    else:
        first = int(match[1])
        last = min(int(match[2]), size - 1) if match[2] else size - 1
        if match[2] and int(match[2]) < first:
            return None
    if first >= size or last < first:
        raise Refusal(
            416, ErrorCode.INVALID_PARAMETER_VALUE, "the range lies behind the file's end",
            {"Content-Range": f"bytes */{size}"},
        )  # fmt: skip
    return first, last
