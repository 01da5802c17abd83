"""Delete files and deletion vectors to positions in a data file (iceberg spec, Delete Formats, Deletion Vectors)."""

import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import polars as pl
import pyarrow as pa
import pyroaring

from lakeview.iceberg.deletes.index import FILE_PATH_ID, POS_ID
from lakeview.iceberg.scan.data_files import IcebergSource
from lakeview.model import limits
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import CorruptTableError, DataFileMissingError
from lakeview.model.schema import Schema
from lakeview.rows.arrays import struct_leaves
from lakeview.rows.bitmaps import corrupt_vector, position_bitmap
from lakeview.rows.matching import frame_of
from lakeview.rows.parquet import read_task
from lakeview.rows.tasks import FileTask
from lakeview.storage import Storage
from lakeview.storage.byte_cache import ByteBoundedCache

_POSITIONS = Schema(
    (Field("path", PrimitiveType("string"), id=FILE_PATH_ID), Field("pos", PrimitiveType("long"), id=POS_ID))
)
_CACHE_BYTES = 128 << 20
_ENVELOPE = 12
"""Length before, checksum behind a deletion vector, and the magic number, in bytes."""


@dataclass(frozen=True, slots=True)
class VectorPlace:
    """A deletion vector: a blob at `offset` of a Puffin file, `size` bytes long, that deletes `cardinality` rows."""

    path: str
    offset: int
    size: int
    cardinality: int

    def bitmap(self, storage: Storage) -> pyroaring.BitMap64:
        """The positions, read as one range and checked against length, checksum and cardinality.

        DataFileMissingError if the file is gone; CorruptTableError for any disagreement: rows must not come back.
        """
        if not 0 <= self.offset < limits.FILE_POSITION or self.size < _ENVELOPE:
            raise corrupt_vector(self.path, f"its manifest places {self.size:,} bytes at {self.offset:,}")
        try:
            blob = storage.read_range(self.path, self.offset, self.size)
        except FileNotFoundError as error:
            raise DataFileMissingError(
                f"deletion vector file {self.path} is not in the store",
                fix="restore it, or read another snapshot: without it deleted rows cannot be told from live ones",
                place=self.path,
            ) from error
        if len(blob) != self.size:
            raise corrupt_vector(self.path, f"{self.size:,} bytes at {self.offset:,} reach beyond its file")
        length = int.from_bytes(blob[:4], "big")
        if length != self.size - 8:
            raise corrupt_vector(self.path, f"it says it holds {length:,} bytes, and there are {self.size - 8:,}")
        data = blob[4:-4]
        if zlib.crc32(data) != int.from_bytes(blob[-4:], "big"):
            raise corrupt_vector(self.path, "its checksum does not fit its bytes")
        bitmap = position_bitmap(data, self.path)
        if len(bitmap) != self.cardinality:
            raise corrupt_vector(
                self.path, f"it deletes {len(bitmap):,} rows, and its manifest says {self.cardinality:,}"
            )
        return bitmap


@dataclass(frozen=True, slots=True)
class EqualityDeletes:
    """Delete files that name rows by the values of the same columns. `schema`: those columns, of types as they are
    today; nested ones inside their structs, alone."""

    schema: Schema
    files: tuple[FileTask, ...]


@dataclass(frozen=True, slots=True)
class IcebergDeletes:
    """Everything that deletes rows of one data file. Implements `lakeview.rows.tasks.RowPositions`.

    `recorded`: the data file's path as recorded, by which position deletes name it; `data`: the task that reads it.
    """

    recorded_path: str
    data: FileTask
    vector: VectorPlace | None = None
    positions: tuple[FileTask, ...] = ()
    equality: tuple[EqualityDeletes, ...] = ()

    def bitmap(self, storage: Storage) -> pyroaring.BitMap64:
        """The positions, read when called. DataFileMissingError, CorruptTableError, UnsupportedTableError."""
        bitmap = pyroaring.BitMap64() if self.vector is None else self.vector.bitmap(storage)
        for task in self.positions:
            rows = _cached_positions(storage, task, _by_path)
            mine = rows.filter(pl.col("path") == self.recorded_path)
            if mine.height:
                bitmap |= pyroaring.BitMap64(mine["pos"][0].to_numpy())
        for group in self.equality:
            bitmap |= self._equal(group, storage)
        return bitmap

    def _equal(self, group: EqualityDeletes, storage: Storage) -> pyroaring.BitMap64:
        """Rows equal to a deleted one in every column: null equals null, NaN equals NaN."""
        deleted_keys = pl.concat([_cached_positions(storage, task, _keys) for task in group.files]).unique()
        bitmap = pyroaring.BitMap64()
        start = 0
        for batch in read_task(replace(self.data, schema=group.schema), storage):
            rows = _leaves(batch).with_row_index("position", offset=start)
            keys = deleted_keys.columns
            hit = rows.join(deleted_keys, on=keys, how="semi", nulls_equal=True)["position"]
            bitmap |= pyroaring.BitMap64(hit.to_list())
            start += batch.num_rows
        return bitmap


def position_task(root: str, path: str, format_: str, size: int) -> FileTask:
    """The task that reads a position delete file."""
    return FileTask(root, path, _POSITIONS, size=size, source=IcebergSource(format_, is_delete=True))


# What a store's delete files hold, read once: one file often deletes from many data files.
_caches: WeakKeyDictionary[Storage, ByteBoundedCache[FileTask, pl.DataFrame]] = WeakKeyDictionary()
_caches_lock = threading.Lock()


def _cached_positions(
    storage: Storage, task: FileTask, make: Callable[[Iterator[pa.RecordBatch], Schema], pl.DataFrame]
) -> pl.DataFrame:
    with _caches_lock:
        cache = _caches.setdefault(storage, ByteBoundedCache(_CACHE_BYTES, lambda frame: int(frame.estimated_size())))
    frame = cache.get(task)
    if frame is None:
        try:
            frame = make(read_task(task, storage), task.schema)
        except CorruptTableError as error:
            error.place = error.place or task.path
            raise
        cache.put(task, frame)
    return frame


def _by_path(batches: Iterator[pa.RecordBatch], schema: Schema) -> pl.DataFrame:
    """Positions by data file: a list of them for each path. A negative position deletes nothing."""
    frames = [pl.DataFrame(pl.from_arrow(b), schema=schema.to_polars()) for b in batches]
    rows = pl.concat([pl.DataFrame(schema=schema.to_polars()), *frames]).filter(pl.col("pos") >= 0)
    return rows.group_by("path").agg(pl.col("pos").cast(pl.UInt64))


def _keys(batches: Iterator[pa.RecordBatch], schema: Schema) -> pl.DataFrame:
    frames = [_leaves(b) for b in batches]
    return (
        pl.concat(frames) if frames else _leaves(pa.RecordBatch.from_pylist([], schema=schema.as_nullable().to_arrow()))
    )


def _leaves(batch: pa.RecordBatch) -> pl.DataFrame:
    """The columns that are compared, as `k0`, `k1`, ... in their order."""
    leaves = struct_leaves(frame_of(batch).get_columns())  # by their places: polars takes some names for patterns
    return pl.DataFrame([values.alias(f"k{i}") for i, (_, values) in enumerate(leaves)])
