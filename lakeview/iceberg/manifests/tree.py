"""A snapshot to its manifests and their entries: each file read once, several at a time, and kept."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice
from typing import Any

import polars as pl

from lakeview.iceberg.manifests.entries import (
    ENTRIES,
    MANIFESTS,
    METRICS,
    Manifest,
    inline_manifests,
    open_manifest,
    read_manifest_list,
    read_manifest_lists,
    read_manifests,
)
from lakeview.iceberg.manifests.partitions import PartitionColumn
from lakeview.iceberg.metadata.locations import Locations
from lakeview.iceberg.metadata.single_values import own_text
from lakeview.iceberg.metadata.table_metadata import SnapshotEntry
from lakeview.model.addresses import is_local
from lakeview.model.errors import AccessDeniedError, CorruptTableError, LakeviewError, UnsupportedTableError
from lakeview.model.frames import all_differ
from lakeview.storage import Storage

_MOST_BYTES, _MOST_METRICS_BYTES = 512 << 20, 96 << 20
"""Of the cached entries; of those among them with metrics, which are far larger and are asked for less often."""
_READERS, _DECODERS = 8, 4
_LISTS = 256
_CHUNK_BYTES = 2 << 20
"""Small manifests are decoded together, as many as come to this, by the lengths that their list tells."""
_COLUMNS = (
    "manifest_path", "manifest_length", "partition_spec_id", "content", "sequence_number", "added_snapshot_id",
    "first_row_id", "key_metadata", "added_files_count", "existing_files_count", "deleted_files_count",
)  # fmt: skip

_Key = tuple[str, int | None]
"""A manifest's path and the first row id that its list gives it: another one means other entries."""


@dataclass(frozen=True, eq=False, slots=True)
class _Decoded:
    """Entries of manifests decoded together, with the metrics of these columns; `size` in bytes."""

    frame: pl.DataFrame
    size: int
    metrics: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a manifest's entries stand."""

    chunk: _Decoded
    start: int
    length: int


class Tree:
    """The manifest lists and manifests of one table. Safe to use from several threads.

    They never change once written, so that what was read stays read, up to a limit of memory.
    """

    def __init__(self, storage: Storage, locations: Locations, columns: tuple[PartitionColumn, ...]) -> None:
        self._storage = storage
        self._locations = locations
        self._columns = columns
        self._lists: dict[int, pl.DataFrame] = {}
        self._places: dict[_Key, list[_Place]] = {}
        self._cached: dict[_Decoded, list[_Key]] = {}
        self._lock = threading.Lock()

    @cached_property
    def _empty(self) -> pl.DataFrame:  # made when wanted: it takes as long as opening a table
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
        with self._lock:
            found = self._lists.get(snapshot.snapshot_id)
        if found is None:
            found = self._manifests(snapshot)
            with self._lock:
                self._lists[snapshot.snapshot_id] = found
        return found

    def prepare(self, snapshots: Sequence[SnapshotEntry]) -> None:
        """Reads the manifest lists of these snapshots together, for `manifests`, which tells what is wrong with one."""
        with self._lock:
            missing = [s for s in snapshots if s.snapshot_id not in self._lists and s.key_id is None]
        for at in range(0, len(missing), _LISTS):
            named = [(s, s.manifest_list) for s in missing[at : at + _LISTS] if s.manifest_list is not None]
            files = self._read_all([path for _, path in named])
            found = read_manifest_lists(files) if files else None
            if found is not None:
                with self._lock:
                    self._lists |= {s.snapshot_id: frame for (s, _), frame in zip(named, found, strict=True)}

    def _read_all(self, paths: Sequence[str]) -> list[tuple[bytes, str]]:
        """The bytes of manifest lists or manifests, each read once, and their paths; none where one cannot be read."""
        try:
            places = {path: self._locations.resolve(path) for path in paths}
            folders = {place.rpartition("/")[0] for place in places.values()}
            if not self._storage.remote and len(folders) == 1:  # one look at the folder, not one at each file's links
                names = [place.rpartition("/")[2] for place in places.values()]
                each = self._storage.read_all(folders.pop(), names)
            elif not self._storage.remote:
                each = list(map(self._storage.read, places.values()))
            else:
                with ThreadPoolExecutor(_READERS) as readers:
                    each = list(readers.map(self._storage.read, places.values()))
        except (FileNotFoundError, NotADirectoryError, LakeviewError):
            return []
        known = dict(zip(places, each, strict=True))
        return [(known[path], path) for path in paths]

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

        `metrics`: the ids of the columns whose bounds and counts are wanted; those of others may be left out.
        """
        return self.counted_entries(manifests, metrics)[0]

    def counted_entries(
        self, manifests: pl.DataFrame, metrics: Collection[int] = ()
    ) -> tuple[pl.DataFrame, Sequence[int]]:
        """`entries`, and how many of them each manifest has."""
        wanted = frozenset(metrics)
        rows = manifests.select(_COLUMNS).rows(named=True)
        keys = [(str(row["manifest_path"]), row["first_row_id"]) for row in rows]
        with self._lock:
            places = {key: place for key in keys if (place := self._place(key, wanted)) is not None}
        missing = {key: row for key, row in zip(keys, rows, strict=True) if key not in places}
        places |= self._load(missing, wanted)
        found = pl.concat([self._empty, *_slices(places[key] for key in keys)])
        return found, [places[key].length for key in keys]

    def _place(self, key: _Key, metrics: frozenset[int]) -> _Place | None:
        return next((p for p in self._places.get(key, ()) if metrics <= p.chunk.metrics), None)

    def _load(self, missing: Mapping[_Key, Mapping[str, Any]], metrics: frozenset[int]) -> dict[_Key, _Place]:
        """Entries of manifests that are not cached, some manifests in one frame; they are cached from now on."""
        chunks = list(_chunks(missing))
        if len(missing) < 2:
            return {key: place for chunk in chunks for key, place in self._chunk(chunk, missing, metrics, map).items()}
        # a store far away is asked for several files at once; from a disk that costs more than it gives
        remote = self._storage.remote
        decoders = _DECODERS if remote else min(_DECODERS, os.cpu_count() or 1)
        with ThreadPoolExecutor(_READERS) as readers, ThreadPoolExecutor(decoders) as pool:
            each = readers.map if remote else map
            found = pool.map(lambda chunk: self._chunk(chunk, missing, metrics, each), chunks)
            return {key: place for chunk in found for key, place in chunk.items()}

    def _chunk(
        self, keys: Sequence[_Key], rows: Mapping[_Key, Mapping[str, Any]], metrics: frozenset[int], each: Any
    ) -> dict[_Key, _Place]:
        paths = [] if self._storage.remote or len(keys) < 2 else [path for path, _ in keys]
        known = {path: data for data, path in self._read_all(paths)} if paths else {}
        manifests: list[Manifest] = list(each(lambda key: self._open(key[0], rows[key], known.get(key[0])), keys))
        frame = read_manifests(manifests, self._columns, metrics).select(self._empty.columns)
        lengths = {key: manifest.container.records for key, manifest in zip(keys, manifests, strict=True)}
        if metrics:  # without metrics they are asked for most often, and stay when those are let go
            bare = self._bare(keys)
            if bare is None or bare.height != frame.height:  # written anew, which no writer should
                bare = _own(frame.with_columns(self._empty[name].clear(frame.height) for name in METRICS))
                self._keep(bare, frozenset(), lengths)
            frame = bare.with_columns(frame.select(METRICS))
        # metrics hold on to all that was decoded with them
        decoded = sum(len(block.content) for manifest in manifests for block in manifest.container.blocks)
        return self._keep(frame, metrics, lengths, decoded if metrics else 0)

    def _bare(self, keys: Sequence[_Key]) -> pl.DataFrame | None:
        """Entries of these manifests without metrics, if all of them are cached."""
        with self._lock:
            each = [next((p for p in self._places.get(key, ()) if not p.chunk.metrics), None) for key in keys]
        found = [place for place in each if place is not None]
        return pl.concat(_slices(found)) if len(found) == len(keys) else None

    def _keep(
        self, frame: pl.DataFrame, metrics: frozenset[int], lengths: Mapping[_Key, int], least: int = 0
    ) -> dict[_Key, _Place]:
        """Holds entries of manifests, so many of each, from now on; `least`: the bytes that they take at least."""
        chunk = _Decoded(frame, max(least, int(frame.estimated_size())), metrics)
        starts = accumulate(lengths.values(), initial=0)
        places = {
            key: _Place(chunk, start, length) for (key, length), start in zip(lengths.items(), starts, strict=False)
        }
        with self._lock:
            for key, place in places.items():
                self._places.setdefault(key, []).append(place)
            self._cached[chunk] = list(places)
            self._forget([h for h in self._cached if h.metrics], _MOST_METRICS_BYTES)
            self._forget(list(self._cached), _MOST_BYTES)
        return places

    def _forget(self, decoded: Sequence[_Decoded], most: int) -> None:
        """Lets go of the oldest of these until they are within a limit; the newest stays."""
        over = sum(each.size for each in decoded) - most
        for oldest in decoded[:-1]:
            if over <= 0:
                break
            for key in self._cached.pop(oldest):
                self._places[key].remove(next(p for p in self._places[key] if p.chunk is oldest))
            over -= oldest.size

    def _open(self, path: str, row: Mapping[str, Any], data: bytes | None = None) -> Manifest:
        if row["key_metadata"] is not None:
            raise _encrypted(path)
        data = self._read(path, "manifest") if data is None else data
        found = open_manifest(data, path, row)
        _check_whole(row, len(data), found.container.records)
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


def _own(frame: pl.DataFrame) -> pl.DataFrame:
    """The same in memory of its own: any column, as it comes, holds on to all that was decoded with it."""
    every = pl.int_range(frame.height, dtype=pl.UInt32, eager=True)

    def own(values: pl.Series) -> pl.Series:
        match values.dtype:
            case pl.String() | pl.Binary():
                return own_text(values)
            case pl.Struct():  # a partition: its texts too
                return pl.DataFrame([own(part) for part in values.struct.unnest()]).to_struct(values.name)
        return values.gather(every)

    return pl.DataFrame([own(column) for column in frame])


def one_ahead(each: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The same, the next one made in another thread while one is in use: decoding leaves room for what follows."""
    with ThreadPoolExecutor(1, thread_name_prefix="lakeview-ahead") as worker:
        coming = worker.submit(list, islice(each, 1))
        while found := coming.result():
            coming = worker.submit(list, islice(each, 1))
            yield found.pop()


def _chunks(missing: Mapping[_Key, Mapping[str, Any]]) -> Iterator[list[_Key]]:
    chunk: list[_Key] = []
    size = 0
    for key, row in missing.items():
        length = row["manifest_length"] or _CHUNK_BYTES
        if chunk and size + length > _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(key)
        size += length
    if chunk:
        yield chunk


def _slices(places: Iterable[_Place]) -> Iterator[pl.DataFrame]:
    """The entries at these places, neighbours as one frame."""
    chunk: _Decoded | None = None
    start = end = 0
    for place in places:
        if place.chunk is chunk and place.start == end:
            end += place.length
            continue
        if chunk is not None:
            yield chunk.frame.slice(start, end - start)
        chunk, start, end = place.chunk, place.start, place.start + place.length
    if chunk is not None:
        yield chunk.frame.slice(start, end - start)


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
    """The entries that are part of the snapshot, of this content. A data file that occurs twice counts once.

    Deletion vectors are told apart by their place in a file and what they delete from: two files may share one.
    """
    wanted = (entries["status"] != 2) & entries["content"].is_in(list(content))
    found = entries if wanted.all(ignore_nulls=False) else entries.filter(wanted)
    if all_differ(found["path"]):  # a copy of a million files takes 300 MB
        return found
    return found.unique(["path", "content_offset", "referenced_data_file"], keep="first", maintain_order=True)


def _missing(path: str, what: str, why: str) -> CorruptTableError:
    return CorruptTableError(
        f"the {what} {path} {why}",
        fix="restore it, say where it lies now (relocate, or LAKEVIEW_RELOCATE=old=new), or read another snapshot",
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
