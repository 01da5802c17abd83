"""A snapshot to its manifests and their entries: each file read once, several at a time, and cached."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import islice
from typing import Any

import polars as pl

from lakeview.iceberg.manifests.entries import ENTRIES, METRICS, Manifest, open_manifest, read_manifests, read_whole
from lakeview.iceberg.manifests.entry_cache import Batch, EntryCache, ManifestKey, Slice, deep_copy, frames_of
from lakeview.iceberg.manifests.manifest_files import ManifestFiles
from lakeview.iceberg.manifests.manifest_lists import (
    MANIFESTS,
    inline_manifests,
    read_manifest_list,
    read_manifest_lists,
)
from lakeview.iceberg.manifests.partitions import PartitionColumn
from lakeview.iceberg.metadata.locations import Locations
from lakeview.iceberg.metadata.snapshots import SnapshotEntry
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.model.column_values import all_differ
from lakeview.model.errors import CorruptTableError, LakeviewError, UnsupportedTableError
from lakeview.model.runs import runs
from lakeview.storage import Storage
from lakeview.storage.interface import READ_AHEAD

_CACHED_BYTES, _CACHED_METRICS = 512 << 20, 96 << 20
"""Of entries without metrics; of metrics, which are far larger and are asked for less often."""
_DECODERS = 4
_BOUNDS = ("lower_bounds", "upper_bounds")
_LISTS = 256
"""Manifest lists that are read together."""
_CHUNK_BYTES = 2 << 20
"""Small manifests are decoded together, as many as come to this, by the lengths in their list."""
_LIST_COLUMNS = (
    "manifest_path", "manifest_length", "partition_spec_id", "content", "sequence_number", "added_snapshot_id",
    "first_row_id", "key_metadata", "added_files_count", "existing_files_count", "deleted_files_count",
)  # fmt: skip

_Slices = dict[ManifestKey, Slice]


class Tree:
    """The manifest lists and manifests of one table. Safe to use from several threads.

    They never change once written: lists are cached for good, entries up to a limit of memory. `unreadable`: the ids of
    columns whose recorded bounds are left out.
    """

    def __init__(
        self,
        storage: Storage,
        locations: Locations,
        columns: tuple[PartitionColumn, ...],
        unreadable: frozenset[int] = frozenset(),
    ) -> None:
        self._files = ManifestFiles(storage, locations)
        self._remote = storage.remote
        self._columns = columns
        self._unreadable = list(unreadable)
        self._lists: dict[int, pl.DataFrame] = {}
        self._entries = EntryCache(_CACHED_BYTES)
        self._metrics = EntryCache(_CACHED_METRICS)

    def share_caches(self, earlier: Tree, snapshots: Sequence[int]) -> None:
        """Use what an earlier state of the table has cached, in the same store: the lists of these snapshots, the bytes
        of small files, and entries where the same columns are decoded."""
        lists = earlier._lists.copy()
        self._lists = {number: lists[number] for number in snapshots if number in lists}
        self._files.share_cache(earlier._files)
        if (self._columns, set(self._unreadable)) == (earlier._columns, set(earlier._unreadable)):
            self._entries, self._metrics = earlier._entries, earlier._metrics
            self._entries.forget_evicted()
            self._metrics.forget_evicted()

    @cached_property
    def _empty(self) -> pl.DataFrame:  # on first use: it takes as long as opening a table
        schema: dict[str, pl.DataType] = {**ENTRIES, "spec_id": pl.Int32()}
        if self._columns:
            schema["partition"] = pl.Struct({c.key: c.dtype for c in self._columns})
        return pl.DataFrame(schema=schema)

    def manifests(self, snapshot: SnapshotEntry | None) -> pl.DataFrame:
        """MANIFESTS of a snapshot; none without one.

        CorruptTableError for a list that is gone ("missing-file") or broken, UnsupportedTableError for encryption.
        """
        if snapshot is None:
            return pl.DataFrame(schema=MANIFESTS)
        frame = self._lists.get(snapshot.snapshot_id)
        if frame is None:
            frame = self._lists[snapshot.snapshot_id] = self._manifests(snapshot)
        return frame

    def manifests_of(
        self, snapshots: Sequence[SnapshotEntry]
    ) -> tuple[dict[int, pl.DataFrame], dict[int, LakeviewError]]:
        """MANIFESTS of each of these snapshots by its id, and the errors, as `manifests`, of those that have none; the
        lists are read many at once."""
        self._read_lists(snapshots)
        frames: dict[int, pl.DataFrame] = {}
        errors: dict[int, LakeviewError] = {}
        for snapshot in snapshots:
            try:
                frames[snapshot.snapshot_id] = self.manifests(snapshot)
            except LakeviewError as error:
                errors[snapshot.snapshot_id] = error
        return frames, errors

    def _read_lists(self, snapshots: Sequence[SnapshotEntry]) -> None:
        """Reads manifest lists into the cache; one that cannot be read is left to `manifests`."""
        lists = [(s.snapshot_id, s.manifest_list) for s in snapshots if s.key_id is None and s.manifest_list]
        missing = [(number, path) for number, path in lists if number not in self._lists]
        for at in range(0, len(missing) if len(missing) > 1 else 0, _LISTS):
            data = self._files.read_all([path for _, path in missing[at : at + _LISTS]])
            files = [(number, path) for number, path in missing[at : at + _LISTS] if path in data]
            frames = read_manifest_lists([(data[path], path) for _, path in files])
            self._lists |= {n: frame for (n, _), frame in zip(files, frames, strict=True) if frame is not None}

    def _manifests(self, snapshot: SnapshotEntry) -> pl.DataFrame:
        if snapshot.key_id is not None:
            raise _encryption_error(f"the manifest list of snapshot {snapshot.snapshot_id}")
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
        return read_manifest_list(self._files.read(path, "manifest list"), path)

    def entries(self, manifests: pl.DataFrame, metrics: Collection[int] = ()) -> pl.DataFrame:
        """ENTRIES of these manifests, in their order, with `spec_id` and, where any spec has parts, `partition`.

        `metrics`: the ids of the columns whose bounds and counts are read; those of others may be left out.
        """
        return self.counted_entries(manifests, metrics)[0]

    def counted_entries(
        self, manifests: pl.DataFrame, metrics: Collection[int] = ()
    ) -> tuple[pl.DataFrame, Sequence[int]]:
        """`entries`, and how many of them each manifest has."""
        ids = frozenset(metrics)
        rows = manifests.select(_LIST_COLUMNS).rows(named=True)
        by_key = {_key(row): row for row in rows}
        entries, bounds = self._from_cache(by_key, ids)
        missing = {key: row for key, row in by_key.items() if key not in entries}
        for loaded_entries, loaded_bounds in self._load(missing, ids):
            entries |= loaded_entries
            bounds |= loaded_bounds
        keys = list(map(_key, rows))
        frame = pl.concat([self._empty, *frames_of(entries[key] for key in keys)])
        if ids:
            none = self._empty.select(METRICS)
            frame = frame.with_columns(pl.concat([none, *frames_of(bounds[key] for key in keys)]))
        return frame, [entries[key].length for key in keys]

    def whole_entries(self, manifest: Mapping[str, Any]) -> pl.DataFrame:
        """ENTRIES of one of MANIFESTS with all metrics, and REST: what carrying its files over takes. Not cached."""
        return read_whole(self._open(str(manifest["manifest_path"]), manifest, None), self._columns)

    def _from_cache(self, keys: Collection[ManifestKey], ids: frozenset[int]) -> tuple[_Slices, _Slices]:
        """The entries and, where any are asked for, the metrics of those manifests of which both are cached."""
        entries = {key: each for key in keys if (each := self._entries.get(key)) is not None}
        if not ids:
            return entries, {}
        metrics = {key: each for key in entries if (each := self._metrics.get(key, ids)) is not None}
        metrics = {key: each for key, each in metrics.items() if each.length == entries[key].length}
        return {key: entries[key] for key in metrics}, metrics

    def _load(
        self, missing: Mapping[ManifestKey, Mapping[str, Any]], ids: frozenset[int]
    ) -> list[tuple[_Slices, _Slices]]:
        """Entries and metrics of manifests that are not cached, some manifests in one frame; now they are."""
        chunks = list(runs(missing, lambda key: missing[key]["manifest_length"] or _CHUNK_BYTES, _CHUNK_BYTES))
        if len(missing) < 2:
            return [self._chunk(chunk, missing, ids, map) for chunk in chunks]
        # a remote store is asked for several files at once; from a disk that costs more than it gives
        remote = self._remote
        decoders = _DECODERS if remote else min(_DECODERS, os.cpu_count() or 1)
        with ThreadPoolExecutor(READ_AHEAD) as readers, ThreadPoolExecutor(decoders) as pool:
            each = readers.map if remote else map
            return list(pool.map(lambda chunk: self._chunk(chunk, missing, ids, each), chunks))

    def _chunk(
        self, keys: Sequence[ManifestKey], rows: Mapping[ManifestKey, Mapping[str, Any]], ids: frozenset[int], each: Any
    ) -> tuple[_Slices, _Slices]:
        data = {} if self._remote or len(keys) < 2 else self._files.read_all([path for path, *_ in keys])
        manifests: list[Manifest] = list(each(lambda key: self._open(key[0], rows[key], data.get(key[0])), keys))
        frame = read_manifests(manifests, self._columns, ids).select(self._empty.columns)
        lengths = {key: manifest.container.records for key, manifest in zip(keys, manifests, strict=True)}
        if not ids:
            return self._put(frame, lengths), {}
        # entries are asked for most often, and stay when metrics are evicted
        slices = {key: slice_ for key in keys if (slice_ := self._entries.get(key)) is not None}
        if {key: slice_.length for key, slice_ in slices.items()} != lengths:
            slices = self._put(
                deep_copy(frame.with_columns(self._empty[n].clear(frame.height) for n in METRICS)), lengths
            )
        # metrics retain all that was decoded with them
        size = sum(len(block.content) for manifest in manifests for block in manifest.container.blocks)
        metrics = frame.select(METRICS)
        if self._unreadable:
            metrics = metrics.with_columns(_without(name, self._unreadable) for name in _BOUNDS)
        return slices, self._metrics.put(Batch(metrics, ids, max(size, int(metrics.estimated_size()))), lengths)

    def _put(self, frame: pl.DataFrame, lengths: Mapping[ManifestKey, int]) -> _Slices:
        return self._entries.put(Batch(frame, frozenset(), int(frame.estimated_size())), lengths)

    def _open(self, path: str, row: Mapping[str, Any], data: bytes | None) -> Manifest:
        if row["key_metadata"] is not None:
            raise _encryption_error(path)
        data = self._files.read(path, "manifest") if data is None else data
        manifest = open_manifest(data, path, row)
        _check_whole(row, len(data), manifest.container.records)
        return manifest


def _without(name: str, ids: list[int]) -> pl.Expr:
    """A column of metrics without those of these ids."""
    return pl.col(name).list.eval(pl.element().filter(~pl.element().struct.field("key").is_in(ids)))


def one_ahead(each: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The same frames; the next one is made in another thread while one is in use: decoding leaves a core idle."""
    with ThreadPoolExecutor(1, thread_name_prefix="lakeview-ahead") as worker:
        coming = worker.submit(list, islice(each, 1))
        while frames := coming.result():
            coming = worker.submit(list, islice(each, 1))
            yield frames.pop()


def _key(manifest: Mapping[str, Any]) -> ManifestKey:
    return str(manifest["manifest_path"]), manifest["first_row_id"], manifest["sequence_number"]


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


def live(entries: pl.DataFrame, content: Sequence[int]) -> pl.DataFrame:
    """The entries that are part of the snapshot, of this content. A data file that occurs twice counts once.

    Deletion vectors are told apart by their place in a file and what they delete from: two files may share one.
    """
    mask = (entries["status"] != 2) & entries["content"].is_in(list(content))
    rows = entries if mask.all(ignore_nulls=False) else entries.filter(mask)
    if all_differ(rows["path"]):  # a copy of a million files takes 300 MB
        return rows
    return rows.unique(["path", "content_offset", "referenced_data_file"], keep="first", maintain_order=True)


def _encryption_error(what: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"{what} is encrypted, and encryption is not read",
        fix="read the table with an engine that holds its keys",
        place=what,
        kind="unsupported-encryption",
    )


def has_expired_parent(metadata: Metadata, tree: Tree, snapshot: SnapshotEntry) -> bool:
    """Whether a snapshot follows one that has expired. Reads the manifests of one that records no parent."""
    if snapshot.parent is not None:
        return snapshot.parent not in metadata.snapshots
    # pyiceberg takes the record of its parent from a snapshot whose parent it expires: files of others show that one
    # was there
    own = snapshot.snapshot_id
    manifests = tree.manifests(snapshot)
    if (manifests["added_snapshot_id"] != own).any():
        return True
    entries = tree.entries(manifests)
    return bool(((entries["status"] == 2) | (entries["snapshot_id"] != own)).any())
