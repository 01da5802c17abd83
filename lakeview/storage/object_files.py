"""An object of a store as a seekable file: its end in memory, the rest in ranges that are read ahead."""

import io
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

TAIL = 512 << 10
"""Bytes of the end of a file that come with its opening: small files whole, of larger ones the Parquet footer."""

_AHEAD = 2 << 20
"""The least bytes that a request asks for: reading them takes about as long as the request itself."""


class SeekableFile(io.RawIOBase):
    """A file whose `read`, `seek` and `tell` a subclass gives."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readall(self) -> bytes:
        return self.read() or b""

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer)) or b""
        buffer[: len(data)] = data
        return len(data)


class SizedFile(SeekableFile):
    """A file of a known size, whose bytes from one place to another a subclass gives. Not safe to use from several
    threads."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self._at = 0

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"position {base + offset} lies before the file")
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        start = min(self._at, end)
        data = self._bytes(start, end) if end > start else b""
        self._at = start + len(data) if data else self._at
        return data

    @abstractmethod
    def _bytes(self, start: int, end: int) -> bytes:
        """Those from `start` to `end`, which lie in the file."""


class ObjectFile(SizedFile):
    """Bytes of an object, read by `read_range(start, length)`. `tail`: those from `tail_start` to its end."""

    def __init__(self, size: int, tail_start: int, tail: bytes, read_range: Callable[[int, int], bytes]) -> None:
        super().__init__(size)
        self._tail_start = tail_start
        self._tail = tail
        self._read_range = read_range
        self._block_start = 0
        self._block = b""

    def _bytes(self, start: int, end: int) -> bytes:
        if start >= self._tail_start:
            return self._tail[start - self._tail_start : end - self._tail_start]
        if end > self._tail_start:
            return self._bytes(start, self._tail_start) + self._tail[: end - self._tail_start]
        if not (self._block_start <= start and end <= self._block_start + len(self._block)):
            length = min(max(end - start, _AHEAD), self._tail_start - start)
            self._block_start, self._block = start, self._read_range(start, length)
        return self._block[start - self._block_start : end - self._block_start]
