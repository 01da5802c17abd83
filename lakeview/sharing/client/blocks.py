"""Blocks of files that were read over the network, kept by file id as long as there is room."""

from __future__ import annotations

import threading
from collections import OrderedDict

BLOCK = 1 << 20
"""Bytes of a block; the last one of a file is shorter."""


class Blocks:
    """The blocks read last, at most `room` bytes of them. Safe to use from several threads.

    A file is known by its id, which stays the same when its URL does not: "A client may cache the file content and use
    this id as a key".
    """

    def __init__(self, room: int = 256 << 20) -> None:
        self._room = room
        self._held: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes held."""
        return self._size

    def get(self, file: str, number: int) -> bytes | None:
        """A block of a file, None if it is not there."""
        with self._lock:
            found = self._held.get((file, number))
            if found is not None:
                self._held.move_to_end((file, number))
            return found

    def put(self, file: str, number: int, data: bytes) -> None:
        """Keep a block; those not used for longest make room."""
        with self._lock:
            before = self._held.pop((file, number), b"")
            self._held[file, number] = data
            self._size += len(data) - len(before)
            while self._size > self._room and self._held:
                _, gone = self._held.popitem(last=False)
                self._size -= len(gone)
