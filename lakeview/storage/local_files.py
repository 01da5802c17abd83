"""Files of this machine, created whole and durable: never half, and exclusively where that is asked for.

A large new file goes to a hidden file as it is written, which gets its name in the end.
"""

import ctypes
import errno
import os
import shutil
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import BytesIO
from typing import IO, Any

from lakeview.model.errors import InvalidRequestError
from lakeview.storage.interface import BLOCK
from lakeview.storage.new_file import NewFile
from lakeview.storage.system_errors import ErrorTranslation

_UNSUPPORTED = frozenset({
    errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV, errno.EINVAL
})  # fmt: skip
"""What file systems without hard links, or without renames that replace nothing, answer to one. Every other error is
one of the disk or of permissions, and the next way would meet it with the file half written."""

_CURRENT_FOLDER, _NO_REPLACE = -100, 1
"""AT_FDCWD and RENAME_NOREPLACE of Linux."""


def write_temporary(full: str, data: bytes | IO[bytes], *, durable: bool = True) -> str:
    """Write a hidden temporary file in the folder of `full`; returns its path, for a link or a rename. Errors as
    `begin_temporary`. `durable`: through to the disk."""
    temporary = _temporary_name(full)
    try:
        create_exclusively(temporary, data, durable=durable)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return temporary


def replace_file(full: str, data: bytes | IO[bytes], *, durable: bool) -> None:
    """Create or replace a file whole; `durable`: through to the disk. Errors as `begin_temporary`."""
    temporary = write_temporary(full, data, durable=durable)
    try:
        os.replace(temporary, full)
    except OSError:
        with suppress(OSError):  # one that stays is named by the doctor
            os.unlink(temporary)
        raise
    if durable:
        sync_folder(os.path.dirname(full))


def begin_temporary(full: str) -> tuple[str, IO[bytes]]:
    """Create a hidden temporary file in the folder of `full`: its path, and the file to be written and read.

    InvalidRequestError where the folder cannot be there: to writers FileExistsError would be a version that another
    one committed."""
    temporary = _temporary_name(full)
    return temporary, open(temporary, "x+b")


def _temporary_name(full: str) -> str:
    """A name in the folder of `full`, which is made if it is not there. Errors as `begin_temporary`."""
    folder, name = os.path.split(full)
    try:
        os.makedirs(folder or os.curdir, exist_ok=True)
    except (FileExistsError, FileNotFoundError, NotADirectoryError) as error:
        raise InvalidRequestError(
            f"the folder {folder} is not there and cannot be created: {error.strerror}",
            fix="choose an address below a folder that can be written; a part of this one may be a file",
            place=folder,
            kind="no-folder",
        ) from error
    return os.path.join(folder, f".{name}.{uuid.uuid4().hex}.tmp")


def publish(temporary: str, full: str, data: bytes) -> None:
    """Give the temporary file that holds `data` its name; FileExistsError if another file has it.

    By a hard link. FAT, exFAT and shares of Windows have none, but a rename that replaces nothing. Where there is
    neither, the file is created exclusively: a process that is killed meanwhile leaves it half there, and only there.
    """
    for name_file in (os.link, _rename_exclusively):
        try:
            name_file(temporary, full)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
        else:
            return
    create_exclusively(full, data)


def _rename_exclusively(temporary: str, full: str) -> None:
    """Rename a file; FileExistsError if the name is taken."""
    if os.name == "nt":  # a rename replaces nothing there
        os.rename(temporary, full)
        return
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), full)
    if rename(_CURRENT_FOLDER, os.fsencode(temporary), _CURRENT_FOLDER, os.fsencode(full), _NO_REPLACE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), full)


def create_exclusively(full: str, data: bytes | IO[bytes], *, durable: bool = True) -> None:
    """Create a file of bytes, or of what another one holds, and write it through to the disk if it is to be `durable`;
    FileExistsError if it is there, removed again if it fails.

    The error is that of the write also where the file may not be removed: PermissionError would say that none is there.
    """
    descriptor = os.open(full, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if isinstance(data, bytes):
                file.write(data)
            else:
                data.seek(0)
                shutil.copyfileobj(data, file, BLOCK)
            if durable:
                file.flush()
                os.fsync(file.fileno())
    except BaseException:  # what is read may be of a store
        with suppress(OSError):
            os.unlink(full)
        raise


def move_files(moves: Sequence[tuple[str, str]]) -> None:
    """Give files new names, whose folders are made if they are not there; the names are durable in the end."""
    folders = {os.path.dirname(target) for _, target in moves}
    for folder in folders:
        os.makedirs(folder, exist_ok=True)
    for source, target in moves:
        os.replace(source, target)
    for folder in folders:
        sync_folder(folder)


def sync_folder(folder: str) -> None:
    """Make the names in a folder durable, where it may be opened: its files may be written although it may not."""
    if os.name == "nt":  # a folder cannot be synced there; the file's own sync is what there is
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
