"""A folder of this machine as a store."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import IO

import polars as pl

from lakeview.addresses import below, is_local, normalise
from lakeview.errors import AccessDeniedError
from lakeview.local_files import create_exclusively, require_file, sync_folder, write_beside
from lakeview.storage.interface import LISTING, Storage, Translated, listing, refuse_oversized


class LocalStorage(Storage):
    """A folder of this machine. Links are followed only to places below the allowed roots."""

    @property
    def remote(self) -> bool:
        return False

    def resolve(self, path: str) -> str:
        full = super().resolve(path)
        if not is_local(full):
            raise AccessDeniedError(
                f"{path} lies in another store than its table", place=path, kind="outside-roots",
                fix="copy the file into the table, or open the table from the store that holds both",
            )  # fmt: skip
        real = os.path.realpath(full)
        roots = [self.root, *(normalise(r) for r in self.config.roots)]
        if not any(below(real, os.path.realpath(root)) for root in roots):
            raise AccessDeniedError(
                f"{path} is a link that leaves the table and the allowed roots",
                fix="add the folder it points into to LAKEVIEW_ROOTS if you trust this table",
                place=path,
                kind="outside-roots",
            )
        return full

    def list_from(self, folder: str, start: str = "") -> pl.DataFrame:
        self.count("list")
        names: list[str] = []
        sizes: list[int] = []
        times: list[int] = []
        try:
            with Translated(folder), os.scandir(self.resolve(folder)) as entries:
                for entry in entries:
                    if entry.name < start or not entry.is_file():
                        continue
                    with suppress(FileNotFoundError):  # removed while we look: then it is not there
                        stat = entry.stat()
                        names.append(_printable(entry.name))
                        sizes.append(stat.st_size)
                        times.append(stat.st_mtime_ns // 1_000_000)
        except (FileNotFoundError, NotADirectoryError):
            return pl.DataFrame(schema=LISTING)
        return listing(names, sizes, times)

    def walk(self) -> pl.DataFrame:
        self.count("list")
        names: list[str] = []
        sizes: list[int] = []
        times: list[int] = []
        root = self.resolve("")
        for folder, _, files in os.walk(root):
            for name in files:
                full = os.path.join(folder, name)
                with suppress(OSError):  # a dangling link is no file
                    stat = os.stat(full)
                    names.append(_printable(os.path.relpath(full, root)))
                    sizes.append(stat.st_size)
                    times.append(stat.st_mtime_ns // 1_000_000)
        return listing(names, sizes, times)

    def open(self, path: str) -> IO[bytes]:
        self.count("open")
        with Translated(path):
            full = self.resolve(path)
            require_file(full)
            return open(full, "rb")

    def read(self, path: str) -> bytes:
        self.count("read")
        with Translated(path):
            full = self.resolve(path)
            require_file(full)
            refuse_oversized(path, os.path.getsize(full), self.config)
            with open(full, "rb") as file:
                return file.read()

    def exists(self, path: str) -> bool:
        self.count("read")
        return os.path.isfile(self.resolve(path))

    def put_if_absent(self, path: str, data: bytes) -> None:
        # fsspec's exclusive create checks and then writes: two writers can both win. A hard link is atomic.
        self.count("put")
        full = self.resolve(path)
        with Translated(path):
            temporary = write_beside(full, data)
            try:
                os.link(temporary, full)
            except FileExistsError:
                raise
            except OSError:  # a file system without links: O_EXCL is exclusive there as well
                create_exclusively(full, data)
            finally:
                os.unlink(temporary)
            sync_folder(os.path.dirname(full))

    def put(self, path: str, data: bytes) -> None:
        self.count("put")
        full = self.resolve(path)
        with Translated(path):
            os.replace(write_beside(full, data), full)
            sync_folder(os.path.dirname(full))

    def delete(self, path: str) -> None:
        self.count("delete")
        with Translated(path), suppress(FileNotFoundError):
            os.unlink(self.resolve(path))


def _printable(name: str) -> str:
    """A local file's name as text: bytes that are no UTF-8, which no log can name, become question marks."""
    return name.encode(errors="replace").decode()
