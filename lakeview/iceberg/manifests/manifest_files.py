"""Manifest lists and manifests to their bytes: many at once, and the error of one that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from lakeview.iceberg.metadata.locations import Locations
from lakeview.model.addresses import is_local
from lakeview.model.errors import AccessDeniedError, CorruptTableError, LakeviewError
from lakeview.storage import Storage
from lakeview.storage.byte_cache import SmallFiles
from lakeview.storage.interface import FILES_AHEAD

_CACHE_BYTES = 16 << 20
_MOST_CACHED = 1 << 20
"""Bytes of a file beyond which reading it takes longer than the request, and it would push out many small ones."""

_Absent = (FileNotFoundError, NotADirectoryError, LakeviewError)


class ManifestFiles:
    """The manifest lists and manifests of one table, as its metadata names them. Safe to use from several threads.

    Of a remote store 16 MiB of small ones stay in memory: files are listed first and asked for their metrics later,
    for which a thousand manifests would be read once more.
    """

    def __init__(self, storage: Storage, locations: Locations) -> None:
        self._storage = storage
        self._locations = locations
        self._cache = SmallFiles(_CACHE_BYTES, len)

    def share_cache(self, earlier: ManifestFiles) -> None:
        """Use the cache of an earlier state of the table, in the same store."""
        self._cache = earlier._cache

    def read(self, path: str, what: str) -> bytes:
        """The bytes of a file; `what` it is, for errors. CorruptTableError ("missing-file") for one that is gone, or in
        a store that the table's credentials do not open."""
        try:
            return self._bytes(self._locations.resolve(path))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _missing(path, what, "is not in the store") from error
        except AccessDeniedError as error:
            if _store(self._locations.resolve(path)) == _store(self._storage.root):
                raise
            raise _missing(path, what, "lies in another store than the table") from error

    def _bytes(self, place: str) -> bytes:
        data = self._cache.get(place)
        if data is None:
            data = self._storage.read(place)
            if self._storage.remote and len(data) <= _MOST_CACHED:
                self._cache.put(place, data)
        return data

    def read_all(self, paths: Sequence[str]) -> dict[str, bytes]:
        """The bytes of those manifest lists or manifests that can be read, by path."""
        places: dict[str, str] = {}
        for path in paths:
            with suppress(LakeviewError):
                places[path] = self._locations.resolve(path)
        folders = {place.rpartition("/")[0] for place in places.values()}
        if not self._storage.remote and len(folders) == 1:  # one look at the folder, not one at each file's links
            names = [place.rpartition("/")[2] for place in places.values()]
            with suppress(*_Absent):
                return dict(zip(places, self._storage.read_all(folders.pop(), names), strict=True))

        def read(place: str) -> bytes | None:
            with suppress(*_Absent):
                return self._bytes(place)
            return None

        if self._storage.remote:
            with ThreadPoolExecutor(FILES_AHEAD, thread_name_prefix="lakeview-read") as readers:
                contents = list(readers.map(read, places.values()))
        else:
            contents = list(map(read, places.values()))
        return {path: data for path, data in zip(places, contents, strict=True) if data is not None}


def _missing(path: str, what: str, why: str) -> CorruptTableError:
    return CorruptTableError(
        f"the {what} {path} {why}",
        fix="restore it, say where it lies now (relocate, or LAKEVIEW_RELOCATE=old=new), or read another snapshot",
        place=path,
        kind="missing-file",
    )


def _store(address: str) -> str:
    """The scheme and host of an address; the same for all local paths."""
    return "" if is_local(address) else "/".join(address.split("/")[:3])
