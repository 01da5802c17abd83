"""Files that are read by ranges: with read-ahead, in blocks that are cached by file id."""

from collections.abc import Callable

from lakeview.storage.byte_cache import ByteBoundedCache
from lakeview.storage.object_files import SizedFile

BLOCK = 1 << 20
"""Bytes of a block; the last one of a file is shorter."""

_MAX_BYTES = 256 << 20

Blocks = ByteBoundedCache[tuple[str, int], bytes]
"""Blocks by file id and number. The id stays the same when the URL does not: "A client may cache the file content and
use this id as a key"."""

_MAX_AHEAD = 8
"""Blocks read ahead of one that is read in order."""


class RangeFile(SizedFile):
    """A seekable file over `part(start, length, blocks_ahead)`. Sequential reads fetch ahead, further each time."""

    def __init__(self, part: Callable[[int, int, int], bytes], size: int) -> None:
        super().__init__(size)
        self._part = part
        self._next = -1
        self._ahead = 0

    def _bytes(self, start: int, end: int) -> bytes:
        self._ahead = min(_MAX_AHEAD, 2 * self._ahead + 1) if start == self._next else 0
        data = self._part(start, end - start, self._ahead)
        self._next = start + len(data)
        return data


def block_cache() -> Blocks:
    """An empty cache of blocks."""
    return Blocks(_MAX_BYTES, len)
