"""Files of secrets: written whole, readable by their owner only, and changed by one process at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lakeview.storage.local_files import sync_folder, write_temporary


def write_privately(path: Path, data: bytes, *, exclusively: bool = False) -> None:
    """Put a new file in a place, readable and writable by its owner only; `exclusively`: FileExistsError if one is
    there.

    A link in that place is replaced, not followed, and so is what another user may have put there.
    """
    _put(str(path), data, exclusively=exclusively)


def rewrite_privately(path: Path, data: bytes) -> None:
    """Change a file that is ours already: links are followed, and it stays its owner's.

    A token made by `sudo` must not lock out the server, which runs as another user.
    """
    place = os.path.realpath(path)
    try:
        stat = os.stat(place)
    except FileNotFoundError:
        _put(place, data)
        return
    _put(place, data, owner=(stat.st_uid, stat.st_gid))


def _put(place: str, data: bytes, *, exclusively: bool = False, owner: tuple[int, int] | None = None) -> None:
    temporary = write_temporary(place, b"")
    try:
        os.chmod(temporary, 0o600)
        if owner is not None and os.name != "nt" and os.geteuid() == 0:
            os.chown(temporary, *owner)
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if exclusively:
            os.link(temporary, place)
        else:
            os.replace(temporary, place)
        sync_folder(os.path.dirname(place) or ".")
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


@contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Hold the folder of a file against other processes that would change it too; they wait. Its folder is made.

    Not on Windows, where a folder cannot be held: the later of two writers wins there.
    """
    folder = os.path.dirname(os.path.realpath(path))
    os.makedirs(folder, exist_ok=True)
    if os.name == "nt":
        yield
        return
    import fcntl  # not there on Windows

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
