"""The names in a folder of this machine, as text."""

import os
import re
from contextlib import suppress


def names_in(folder: str) -> tuple[list[str], list[str]]:
    """The names of the files and of the folders in a folder; links to folders are left out."""
    files: list[str] = []
    folders: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:  # one that may not be read holds nothing for us
        for entry in entries:  # nothing is asked of a file itself: of a million that takes many seconds
            if entry.is_file(follow_symlinks=False):
                files.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif os.path.isfile(entry.path):  # a link to one
                files.append(entry.name)
    return files, folders


def has_name_like(folder: str, name: re.Pattern[str]) -> bool:
    """Whether a file's name in a folder matches."""
    with suppress(OSError):
        return any(map(name.match, os.listdir(folder)))
    return False


def printable(name: str) -> str:
    """A local file's name as text: bytes that are no UTF-8, which no log can name, become question marks."""
    return name if name.isascii() else name.encode(errors="replace").decode()
