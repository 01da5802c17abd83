"""Rows to one data file, part by part: in memory is a part of the rows, and of what is encoded what its store keeps."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import IO, Any
from urllib.parse import quote

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from lakeview.delta.data.file_statistics import FileStatistics
from lakeview.delta.data.partition_values import serialize
from lakeview.delta.log.actions import AddFile
from lakeview.delta.log.paths import encode_path
from lakeview.delta.write.context import WriteContext
from lakeview.delta.write.stored_columns import stored_table
from lakeview.model.clock import Clock
from lakeview.model.snapshot import milliseconds
from lakeview.rows.open_files import drop_encoder, repeating_columns
from lakeview.storage import Storage


class DataFile:
    """A data file that is being written. `values`: those of its partition columns, by name."""

    def __init__(
        self,
        context: WriteContext,
        values: dict[str, Any],
        storage: Storage,
        clock: Clock,
        *,
        data_change: bool,
        statistics: bool,
    ) -> None:
        self._context = context
        self._recorded = {context.schema[name].stored_name: serialize(value) for name, value in values.items()}
        self._path = data_file_path(context, self._recorded)
        self._storage = storage
        self._file = storage.new_file(self._path)
        self._clock = clock
        self._data_change = data_change
        self._with_statistics = statistics
        self._writer: pq.ParquetWriter | None = None
        self._footers: list[pq.FileMetaData] = []
        self._texts: dict[str, int] = {}
        self._statistics = FileStatistics(context.indexed_columns, prefix=context.string_prefix)

    @property
    def rows(self) -> int:
        """Rows so far."""
        return self._statistics.records

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._file.tell()

    def write(self, rows: pa.Table) -> None:
        """Write a part of the rows, as one row group."""
        context = self._context
        fields = {f.name: f for f in (*context.schema, *context.tracked)}
        stored = stored_table(rows, [fields[name] for name in rows.schema.names])
        if self._writer is None:
            partitions = self._recorded.keys()  # have no statistics: the log says their one value
            self._texts = {name: leaf for name, leaf in text_columns(stored.schema).items() if name not in partitions}
            self._writer = pq.ParquetWriter(
                self._file,
                stored.schema,
                compression=context.compression,
                data_page_version=context.page_version,
                version="2.6",
                coerce_timestamps="us",
                use_dictionary=repeating_columns(stored),
                metadata_collector=self._footers,
            )
        self._writer.write_table(stored, row_group_size=max(stored.num_rows, 1))
        self._statistics.add(stored, self._texts)

    def close(self) -> AddFile:
        """Put the file into the store; its add action, not committed yet."""
        assert self._writer is not None, "a file of no rows is not written"
        self._writer.close()
        size = self.size
        for name, nulls, bounds in text_bounds(self._file.contents, self._footers[0], self._texts):
            self._statistics.add_column(name, nulls, bounds)
        self._file.publish()
        self._file.close()
        return AddFile(
            path=encode_path(self._path),
            size=size,
            partition_values=self._recorded,
            modification_time=milliseconds(self._clock()),
            data_change=self._data_change,
            stats=self._statistics.text() if self._with_statistics else None,
        )

    def discard(self) -> None:
        """Leave nothing of a file that will not be whole."""
        self._file.close()
        drop_encoder(self._writer)


_LONGEST_NAME = 255
"""Characters of a name on most file systems; those of a folder are of ASCII."""
_SHORT_PREFIX = 2


def data_file_path(context: WriteContext, recorded: Mapping[str, str | None]) -> str:
    """A new path for a file of these partition values, which are as the log has them."""
    # "Data files MUST be uniquely named and MUST NOT be overwritten"
    prefix = context.folder_prefix()
    folders = [prefix] if prefix else [partition_folder(*value) for value in recorded.items()]
    if any(len(folder) > _LONGEST_NAME for folder in folders):
        folders = [uuid.uuid4().hex[:_SHORT_PREFIX]]
    kind = "part"
    if context.change_data:
        folders.insert(0, "_change_data")
        kind = "cdc"
    codec = "" if context.compression == "none" else f".{context.compression}"
    stem = "-".join(filter(None, (kind, context.write_id, str(uuid.uuid4()))))
    return "/".join([*folders, f"{stem}.c000{codec}.parquet"])


def partition_folder(name: str, value: str | None) -> str:
    """A partition folder as Hive names it; only a convention: the log holds the value."""
    text = "__HIVE_DEFAULT_PARTITION__" if value is None else quote(value, safe=" !$&'()*+,;@~-._")
    return f"{quote(name, safe=' !$&()+,;@~-._')}={text}"


def text_columns(schema: pa.Schema) -> dict[str, int]:
    """The columns of text with the place of each among the leaves of the file. Fields of structs are no columns."""
    places: dict[str, int] = {}
    leaf = 0
    for field in schema:
        if pa.types.is_string(field.type):
            places[field.name] = leaf
        leaf += num_leaves(field.type)
    return places


def text_bounds(
    file: IO[bytes], footer: pq.FileMetaData, columns: Mapping[str, int]
) -> Iterator[tuple[str, int, tuple[str | None, str | None]]]:
    """The name of each column, its nulls and its bounds, once for every row group; None where all texts are null.

    From the footer, since the encoder compared them: to do it again takes a tenth of an update
    (benches/bench_writer.py).
    """
    for i in range(footer.num_row_groups):
        group = footer.row_group(i)
        for name, leaf in columns.items():
            statistics = group.column(leaf).statistics
            if statistics.has_min_max:
                yield name, statistics.null_count, (statistics.min, statistics.max)
            elif statistics.num_values:  # Arrow records no text of more than 4,096 bytes
                values = pl.Series(pl.from_arrow(_read_column(file, i, name)))
                yield name, statistics.null_count, (values.min(), values.max())  # type: ignore[misc]  # texts
            else:
                yield name, statistics.null_count, (None, None)


def _read_column(file: IO[bytes], group: int, name: str) -> pa.ChunkedArray:
    return pq.ParquetFile(file).read_row_group(group, columns=[name])[name]


def num_leaves(type_: pa.DataType) -> int:
    """How many leaves of a file a column of this type is."""
    return sum(num_leaves(type_.field(i).type) for i in range(type_.num_fields)) or 1
