"""A new file of this machine: a large one goes to a hidden file as it is written, which gets its name in the end."""

import os
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from typing import IO, Any

from lakeview.storage.local_files import begin_temporary, sync_folder
from lakeview.storage.new_file import NewFile
from lakeview.storage.system_errors import ErrorTranslation

IN_MEMORY = 2 << 20
"""Bytes of a new file of this machine that stay in memory: a table of very many partitions has as many files open, and
a process only so many descriptors."""


class NewLocalFile(NewFile):
    """`place`: gives where the file belongs, or AccessDeniedError; `count`: called as a hidden file gets its name."""

    def __init__(
        self, path: str, put: Callable[[bytes], None], place: Callable[[], str], count: Callable[[], None]
    ) -> None:
        super().__init__(put)
        self._path = path
        self._place = place
        self._count = count
        self._temporary: str | None = None
        self._file: IO[bytes] | None = None

    @property
    def contents(self) -> IO[bytes]:
        return self._buffer if self._file is None else self._file

    def write(self, data: Any, /) -> int:
        with ErrorTranslation(self._path):
            if not self.closed and self._file is None and self._buffer.tell() + memoryview(data).nbytes > IN_MEMORY:
                self._temporary, self._file = begin_temporary(self._place())
                self._file.write(self._buffer.getbuffer())
                self._buffer = BytesIO()
            return super().write(data)

    def publish(self) -> None:
        if self._file is None or self._temporary is None:
            super().publish()
            return
        self._count()
        with ErrorTranslation(self._path):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()  # Windows renames no open file
            full = self._place()
            os.replace(self._temporary, full)
            self._temporary = None
            sync_folder(os.path.dirname(full))

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # what is not written yet does not matter: it was published, or is dropped
                self._file.close()
        if self._temporary is not None:
            with suppress(OSError):  # one that stays is named by the doctor
                os.unlink(self._temporary)
            self._temporary = None
        super().close()
