"""Files that are read by ranges: with read-ahead, in blocks that are cached by file id."""

import io
from collections.abc import Callable

from lakeview.storage.byte_cache import ByteBoundedCache

BLOCK = 1 << 20
"""Bytes of a block; the last one of a file is shorter."""

_MAX_BYTES = 256 << 20

Blocks = ByteBoundedCache[tuple[str, int], bytes]
"""Blocks by file id and number. The id stays the same when the URL does not: "A client may cache the file content and
use this id as a key"."""

_MAX_AHEAD = 8
"""Blocks read ahead of one that is read in order."""


class RangeFile(io.RawIOBase):
    """A seekable file over `part(start, length, blocks_ahead)`. Sequential reads fetch ahead, further each time."""

    def __init__(self, part: Callable[[int, int, int], bytes], size: int) -> None:
        self._part = part
        self._size = size
        self._at = 0
        self._next = -1
        self._ahead = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # typeshed's own buffer type
        length = min(len(buffer), self._size - self._at)
        if length <= 0:
            return 0
        self._ahead = min(_MAX_AHEAD, 2 * self._ahead + 1) if self._at == self._next else 0
        data = self._part(self._at, length, self._ahead)
        buffer[: len(data)] = data
        self._at += len(data)
        self._next = self._at
        return len(data)


def block_cache() -> Blocks:
    """An empty cache of blocks."""
    return Blocks(_MAX_BYTES, len)
