"""A file that is read by ranges, with read-ahead."""

from __future__ import annotations

import io
from collections.abc import Callable

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
