"""A snapshot to its manifests and their entries: each file read once, several at a time, and kept."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import polars as pl

from lakeview.addresses import is_local
from lakeview.errors import AccessDeniedError, CorruptTableError, UnsupportedTableError
from lakeview.iceberg.locations import Locations
from lakeview.iceberg.manifests import (
    ENTRIES,
    MANIFESTS,
    inherited,
    inline_manifests,
    read_manifest,
    read_manifest_list,
)
from lakeview.iceberg.metadata import SnapshotEntry
from lakeview.iceberg.partitions import PartitionColumn, typed_partition
from lakeview.storage import Storage

_KEPT_BYTES = 1 << 30
_THREADS = 8


class Tree:
    """The manifest lists and manifests of one table. Safe to use from several threads.

    They never change once written, so that what was read stays read, up to a limit of memory.
    """

    def __init__(self, storage: Storage, locations: Locations, columns: tuple[PartitionColumn, ...]) -> None:
        self._storage = storage
        self._locations = locations
        self._columns = columns
        self._lists: dict[int, pl.DataFrame] = {}
        self._entries: dict[tuple[str, int | None, frozenset[int]], pl.DataFrame] = {}
        self._bytes = 0
        self._lock = threading.Lock()
        schema: dict[str, pl.DataType] = {**ENTRIES, "spec_id": pl.Int32()}
        if columns:
            schema["partition"] = pl.Struct({c.key: c.dtype for c in columns})
        self._empty = pl.DataFrame(schema=schema)

    def manifests(self, snapshot: SnapshotEntry | None) -> pl.DataFrame:
        """MANIFESTS of a snapshot; none without one.

        CorruptTableError for a list that is gone ("missing-file") or broken, UnsupportedTableError for encryption.
        """
        if snapshot is None:
            return pl.DataFrame(schema=MANIFESTS)
        with self._lock:
            found = self._lists.get(snapshot.snapshot_id)
        if found is None:
            found = self._manifests(snapshot)
            with self._lock:
                self._lists[snapshot.snapshot_id] = found
        return found

    def _manifests(self, snapshot: SnapshotEntry) -> pl.DataFrame:
        if snapshot.key_id is not None:
            raise _encrypted(f"the manifest list of snapshot {snapshot.snapshot_id}")
        if snapshot.manifest_list is None:
            if snapshot.manifests is None:  # never an empty table: rows would vanish without a word
                raise CorruptTableError(
                    f"snapshot {snapshot.snapshot_id} names neither a manifest list nor manifests",
                    fix="read another snapshot, or have the table's metadata repaired",
                    place=str(snapshot.snapshot_id),
                    kind="invalid-metadata",
                )
            return inline_manifests(snapshot.manifests)
        path = snapshot.manifest_list
        return read_manifest_list(self._read(path, "manifest list"), path)

    def entries(self, manifests: pl.DataFrame, metrics: Collection[int] = ()) -> pl.DataFrame:
        """ENTRIES of these manifests, in their order, with `spec_id` and, where any spec has parts, `partition`.

        `metrics`: the ids of the columns whose bounds and counts are wanted; those of others are left out.
        """
        wanted = frozenset(metrics)
        rows = manifests.to_dicts()
        if len(rows) > 1:
            with ThreadPoolExecutor(_THREADS) as pool:
                frames = list(pool.map(lambda row: self._of(row, wanted), rows))
        else:
            frames = [self._of(row, wanted) for row in rows]
        return pl.concat([self._empty, *frames])

    def _of(self, manifest: Mapping[str, Any], metrics: frozenset[int]) -> pl.DataFrame:
        path = str(manifest["manifest_path"])
        key = (path, manifest["first_row_id"], metrics)
        with self._lock:
            found = self._entries.get(key)
        if found is not None:
            return found
        if manifest["key_metadata"] is not None:
            raise _encrypted(path)
        data = self._read(path, "manifest")
        entries, own = read_manifest(data, path, metrics)
        spec_id = int(manifest["partition_spec_id"] or 0) if own is None else own
        _check_whole(manifest, len(data), entries.height)
        found = typed_partition(inherited(entries, manifest, spec_id, path), self._columns, path)
        found = found.select(self._empty.columns)
        with self._lock:
            self._entries[key] = found
            self._bytes += int(found.estimated_size())
            while self._bytes > _KEPT_BYTES and len(self._entries) > 1:
                self._bytes -= int(self._entries.pop(next(iter(self._entries))).estimated_size())
        return found

    def _read(self, path: str, what: str) -> bytes:
        try:
            return self._storage.read(self._locations.resolve(path))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _missing(path, what, "is not in the store") from error
        except AccessDeniedError as error:
            if _store(self._locations.resolve(path)) == _store(self._storage.root):
                raise
            raise _missing(path, what, "lies in another store than the table") from error


def _check_whole(manifest: Mapping[str, Any], size: int, entries: int) -> None:
    """A manifest cut off between two blocks looks whole: its list knows how long it was and what it held.

    Neither is enough alone: copies with other paths inside have other lengths, and some writers count wrongly.
    """
    counts = [manifest[f"{kind}_files_count"] for kind in ("added", "existing", "deleted")]
    length, path = manifest["manifest_length"], manifest["manifest_path"]
    if length is not None and size < length and None not in counts and entries < sum(counts):
        raise CorruptTableError(
            f"the manifest {path} holds {entries} entries in {size:,} bytes; its list says {sum(counts)} in {length:,}",
            fix="restore the file from a backup, or read a snapshot without it",
            place=path,
            kind="corrupt-file",
        )


def _store(address: str) -> str:
    """The scheme and host of an address; the same for all local paths."""
    return "" if is_local(address) else "/".join(address.split("/")[:3])


def live(entries: pl.DataFrame, content: Sequence[int]) -> pl.DataFrame:
    """The entries that are part of the snapshot, of this content. A data file that occurs twice counts once."""
    found = entries.filter((pl.col("status") != 2) & pl.col("content").is_in(list(content)))
    return found.unique(["path", "content_offset"], keep="first", maintain_order=True)


def _missing(path: str, what: str, why: str) -> CorruptTableError:
    return CorruptTableError(
        f"the {what} {path} {why}",
        fix="restore it, say where it lies now (relocate={'old prefix': 'new prefix'}), or read another snapshot",
        place=path,
        kind="missing-file",
    )


def _encrypted(what: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"{what} is encrypted, and encryption is not read",
        fix="read the table with an engine that holds its keys",
        place=what,
        kind="unsupported-encryption",
    )
