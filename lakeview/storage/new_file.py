"""A file that is there once it is whole: what is written bit by bit, before its store has it."""

import io
from collections.abc import Callable
from io import BytesIO
from typing import IO, Any


class NewFile(io.RawIOBase):
    """A file that is being written. `publish` puts it into its store whole; one that is closed before leaves nothing.
    What comes after that is lost: an encoder that is dropped ends its file.

    Not safe to use from several threads.
    """

    def __init__(self, put: Callable[[bytes], None]) -> None:
        super().__init__()
        self._put = put
        self._buffer = BytesIO()

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        return memoryview(data).nbytes if self.closed else self.contents.write(data)

    def tell(self) -> int:
        return self.contents.tell()

    @property
    def contents(self) -> IO[bytes]:
        """What was written, to be read."""
        return self._buffer

    def publish(self) -> None:
        """As `Storage.put` of what was written."""
        self._put(self._buffer.getvalue())
