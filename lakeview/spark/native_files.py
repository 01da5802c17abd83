"""Tasks to the files that Spark's own Parquet reader can read for them, and the tasks that are left to Python."""

import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pyroaring

from lakeview.delta.data.deletion_vectors import DeletionVector
from lakeview.model.schema import Schema
from lakeview.rows.layouts import ParquetSource
from lakeview.rows.parquet import task_storage
from lakeview.rows.tasks import FileTask
from lakeview.spark.native_layout import INT96_UNIT, NativeLayout, native_layout
from lakeview.storage import Storage

# Spark takes these for patterns, fails on a colon, and skips files that begin with a point or an underscore.
_MISREAD = re.compile(r"[*?\[\]{}\\:\n\r]|[\ud800-\udfff]|/[._][^/]*$|\._COPYING_$")
_CODECS = frozenset(("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"))
_BITMAP_BYTES = 64 << 20
_FIELDS: WeakValueDictionary[bytes, pa.Schema] = WeakValueDictionary()
"""Those of files alike, once: of a wide table they take hundreds of kilobytes."""


@dataclass(frozen=True, slots=True)
class NativeFile:
    """A data file of this machine for Spark's reader.

    `path`: absolute; `constants`: the log's values of columns, by name; `root`: the table's folder, if the file lies
    below it; `deleted`: positions of rows to leave out.
    """

    path: str
    layout: NativeLayout
    constants: Mapping[str, Any]
    root: str | None = None
    deleted_rows: pyroaring.BitMap64 | None = field(default=None, hash=False)

    def words(self) -> npt.NDArray[np.int64]:
        """`deleted` as words of 64 bits, position 0 in the lowest bit of the first, up to the last position."""
        if not self.deleted_rows:
            return np.zeros(0, np.int64)
        bits = np.zeros((self.deleted_rows.max() // 64 + 1) * 64, np.uint8)
        bits[np.frombuffer(self.deleted_rows.to_array(), np.uint64)] = 1
        return np.packbits(bits, bitorder="little").view("<i8").astype(np.int64)


def divide(tasks: Sequence[FileTask], schema: Schema) -> tuple[list[NativeFile], list[FileTask]]:
    """The files that Spark reads with the rows that `read_task` gives, and the tasks of all others.

    Costs the footer of each file that is not known from an earlier plan, and its deletion vector. What is wrong with a
    data file is left to the reader of its task; DataFileMissingError or CorruptTableError for a deletion vector that is
    not there whole.
    """
    counts: dict[str, int] = {}
    for task in tasks:
        counts[task.path] = counts.get(task.path, 0) + 1
    reader = _Footers(schema)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        files = list(pool.map(lambda task: reader.file(task) if counts[task.path] == 1 else None, tasks))
    native: list[NativeFile] = []
    others: list[FileTask] = []
    paths: set[str] = set()
    room = _BITMAP_BYTES
    for task, file in zip(tasks, files, strict=True):
        cost = 0 if file is None or not file.deleted_rows else file.deleted_rows.max() // 8 + 8
        if file is None or file.path in paths or cost > room:
            others.append(task)
            continue
        native.append(file)
        paths.add(file.path)
        room -= cost
    return native, others


class _Footers:
    """Reads footers for one read of a table; layouts of files with the same schema are found once."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._layouts: dict[tuple[bytes, str, tuple[str, ...]], NativeLayout | None] = {}
        self._stores: dict[str, Storage] = {}

    def file(self, task: FileTask) -> NativeFile | None:
        """The file of a task, None if Spark cannot read it, or would not read it alike."""
        if not _is_plain(task):
            return None
        if (store := self._stores.get(task.root)) is None:  # `setdefault` would make one for each file
            store = self._stores.setdefault(task.root, task_storage(task))
        try:
            path = store.local_path(task.path)
            if path is None or _MISREAD.search(path) or (status := os.stat(path)).st_size != task.size:
                return None
            fields, rows = _footer(path, status.st_size, status.st_mtime_ns, status.st_ino)
            layout = self._layout(fields, task)
        except (pa.ArrowException, OSError, UnicodeDecodeError):  # reading its rows says what is wrong
            return None
        if layout is None or rows is None:
            return None
        deleted_rows = None if task.deleted_rows is None else task.deleted_rows.bitmap(store)
        if deleted_rows and deleted_rows.max() >= rows:  # reading its rows refuses it
            return None
        inside = path.endswith(f"/{task.path}")
        root = path.removesuffix(f"/{task.path}") if inside else None
        return NativeFile(path, layout, task.constants, root, deleted_rows)

    def _layout(self, file_schema: pa.Schema, task: FileTask) -> NativeLayout | None:
        fields = [f for f in self._schema if f.name not in task.constants]
        match = "id" if task.source is not None else task.match
        key = (file_schema.serialize().to_pybytes(), match, tuple(f.name for f in fields))
        if key not in self._layouts:
            self._layouts[key] = native_layout(list(file_schema), fields, match)
        layout = self._layouts[key]
        if layout is not None and isinstance(task.source, ParquetSource):
            missing = [f for f, column in zip(fields, layout.columns, strict=True) if column is None]
            return layout if task.source.stores(fields, missing) else None
        return layout


@lru_cache(maxsize=10_000)
def _footer(path: str, size: int, mtime: int, inode: int) -> tuple[pa.Schema, int | None]:  # noqa: ARG001 (the key)
    """The fields of a Parquet file, and its `_rows`. The file is the one of an earlier plan while the system says the
    same of it."""
    with pa.OSFile(path) as source, pq.ParquetFile(source, coerce_int96_timestamp_unit=INT96_UNIT) as file:
        fields = file.schema_arrow
        return _FIELDS.setdefault(fields.serialize().to_pybytes(), fields), _rows(file.metadata)


def _rows(footer: pq.FileMetaData) -> int | None:
    """The rows of a file, None if its footer contradicts itself, or Spark cannot decompress it."""
    chunks = [footer.row_group(0).column(n) for n in range(footer.num_columns)] if footer.num_row_groups else []
    if any(chunk.compression not in _CODECS for chunk in chunks):
        return None
    in_groups = sum(footer.row_group(number).num_rows for number in range(footer.num_row_groups))
    return footer.num_rows if footer.num_rows == in_groups else None


def _is_plain(task: FileTask) -> bool:
    """Whether the rows of a task are those of a Parquet file, but for deleted ones and columns that the log records."""
    if task.selected_rows is not None or task.fallbacks:
        return False
    if task.deleted_rows is not None and not isinstance(task.deleted_rows, DeletionVector):
        return False
    return task.source is None or isinstance(task.source, ParquetSource)
