"""Rows to the data files of a table, each of one partition in Parquet with its metrics, part by part: what an append,
or a task of a cluster, writes before anything is committed."""

import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from lakeview.iceberg.manifests.partitions import PartitionColumn, readable
from lakeview.iceberg.metadata.partition_fields import PartitionField
from lakeview.iceberg.metadata.single_values import WRITE_DEFAULT
from lakeview.iceberg.metadata.transforms import TEMPORAL
from lakeview.iceberg.scan.projection import default_array
from lakeview.iceberg.write.context import WriteContext
from lakeview.iceberg.write.metrics import FileMetrics
from lakeview.iceberg.write.partition_tuples import Tuple, partitions
from lakeview.iceberg.write.stored_schema import leaf_ids
from lakeview.model.data_types import DataType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema, polars_type
from lakeview.rows.conform import conform_batch
from lakeview.rows.open_files import OpenFiles, drop_encoder, portions, repeating_columns
from lakeview.storage import Storage

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_MAX_SHOWN_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class NewFile:
    """A data file that is written and not committed. `path`: as the manifest records it; `address`: where it lies;
    `partition`: its tuple; metrics by field id."""

    path: str
    address: str
    partition: Tuple
    records: int
    size: int
    column_sizes: dict[int, int]
    value_counts: dict[int, int]
    null_value_counts: dict[int, int]
    nan_value_counts: dict[int, int]
    lower_bounds: dict[int, bytes]
    upper_bounds: dict[int, bytes]
    split_offsets: tuple[int, ...]


class DataFile:
    """A data file that is being written: in memory are a part of the rows, and encoded bytes that its store keeps."""

    def __init__(self, context: WriteContext, partition: Tuple, storage: Storage) -> None:
        self._context = context
        self._partition = partition
        stem = "-".join(filter(None, (context.write_id, str(uuid.uuid4()))))
        self._name = context.locations.name("/".join(self._folders()), f"{stem}.parquet")
        self._address = f"{context.locations.folder}/{self._name}"
        self._file = storage.new_file(self._address)
        self._footers: list[pq.FileMetaData] = []
        self._writer: pq.ParquetWriter | None = None
        self._metrics = FileMetrics(context.metric_columns)

    @property
    def rows(self) -> int:
        """Rows so far."""
        return self._metrics.records

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._file.tell()

    def write(self, rows: pa.Table) -> None:
        """Write a part of the rows, as one row group."""
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self._file,
                rows.schema,
                compression=self._context.compression,
                version="2.6",
                use_dictionary=repeating_columns(rows),
                store_decimal_as_integer=True,
                store_schema=False,  # its types are Iceberg's, by the ids of the fields
                metadata_collector=self._footers,
            )
        self._writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
        self._metrics.add(rows)

    def close(self) -> NewFile:
        """Put the file into the store."""
        assert self._writer is not None, "a file of no rows is not written"
        self._writer.close()
        size = self.size
        self._file.publish()
        self._file.close()
        context, metrics = self._context, self._metrics
        (footer,) = self._footers
        return NewFile(
            path=f"{context.locations.prefix}/{self._name}",
            address=self._address,
            partition=self._partition,
            records=metrics.records,
            size=size,
            column_sizes=_column_sizes(footer, leaf_ids(context.stored_schema)),
            value_counts=metrics.value_counts,
            null_value_counts=metrics.null_value_counts,
            nan_value_counts=metrics.nan_value_counts,
            lower_bounds=metrics.lower_bounds(),
            upper_bounds=metrics.upper_bounds(),
            split_offsets=tuple(_offset(footer.row_group(i)) for i in range(footer.num_row_groups)),
        )

    def discard(self) -> None:
        """Leave nothing of a file that will not be whole."""
        self._file.close()
        drop_encoder(self._writer)

    def _folders(self) -> list[str]:
        """Folders named by the tuple, for people alone: the manifest holds the values."""
        parts = zip(self._context.spec.fields, self._context.result_types, self._partition, strict=True)
        return [
            f"{_plain(f.name)}={_plain(_readable_value(f, type_, value))}"
            for f, type_, value in parts
            if type_ is not None
        ]


def _readable_value(field: PartitionField, type_: DataType, value: Any) -> Any:
    """A period as people write it, 2013-05 for a month; any other value as it is recorded."""
    if value is None or field.transform.name not in TEMPORAL:
        return value
    dtype = polars_type(type_)
    column = PartitionColumn(field, field.name, dtype, None)
    return readable(column, pl.Series([value]).cast(dtype))[0]


def _plain(value: Any) -> str:
    """A value in letters that every store and engine takes as they are."""
    text = "null" if value is None else value.hex() if isinstance(value, bytes) else str(value)
    return _UNSAFE.sub("_", text)[:_MAX_SHOWN_CHARACTERS]


def _column_sizes(footer: pq.FileMetaData, ids: list[int]) -> dict[int, int]:
    sizes = dict.fromkeys(ids, 0)
    for i in range(footer.num_row_groups):
        group = footer.row_group(i)
        for position, field_id in enumerate(ids):
            sizes[field_id] += group.column(position).total_compressed_size
    return sizes


def _offset(group: pq.RowGroupMetaData) -> int:
    """Where a row group begins."""
    first = group.column(0)
    return int(first.dictionary_page_offset if first.has_dictionary_page else first.data_page_offset)


_FIXES = {
    "unknown-column": "drop it, or add it to the table with the engine that owns it",
    "missing-field": "add it to the rows, as null if need be",
}


def write_files(
    context: WriteContext,
    batches: Iterable[pa.RecordBatch],
    storage: Storage,
    check: Callable[[pa.RecordBatch], None] | None = None,
) -> list[NewFile]:
    """Write rows below the table's data folder, a file for each partition and so many rows; nothing is committed.

    `check` raises for rows, in the table's columns, that are not to be written. Columns are found by name;
    InvalidRequestError and ConstraintViolationError as `conform_batch`, for rows that do not fit the table. On an error
    the files written so far are removed.
    """
    files = OpenFiles[Tuple, NewFile](
        lambda partition: DataFile(context, partition, storage),
        lambda rows: partitions(rows, context),
        rows_per_file=context.rows_per_file,
        target_bytes=context.target_bytes,
        remote=storage.remote,
    )
    try:
        return files.write_all(_conform_batches(context, batches, check))
    except BaseException:
        storage.delete_each(file.address for file in files.results)
        raise


def check_columns_fit(source: pa.Schema, context: WriteContext) -> None:
    """Refuses rows of a schema whose columns or types can never fit, before there is a row."""
    conformed_batch(pa.RecordBatch.from_pylist([], source), context.schema)


def conformed_batch(batch: pa.RecordBatch, schema: Schema, first: int = 0) -> pa.RecordBatch:
    """The batch in the table's columns, as `conform_batch`; columns that it lacks hold their write default."""
    try:
        return conform_batch(_with_defaults(batch, schema), schema, first=first)
    except InvalidRequestError as error:
        error.fix = _FIXES.get(error.kind, error.fix)
        raise


def _conform_batches(
    context: WriteContext, batches: Iterable[pa.RecordBatch], check: Callable[[pa.RecordBatch], None] | None
) -> Iterator[pa.RecordBatch]:
    first = 0
    for batch in portions(batches):
        rows = conformed_batch(batch, context.schema, first)
        if check is not None:
            check(rows)
        yield rows
        first += batch.num_rows


def _with_defaults(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    # "The write default for a field must be written if a field is not supplied to a write"
    exactly, own = set(batch.schema.names), {field.name for field in schema}
    other = {name.casefold() for name in exactly - own}  # as conform_batch: one that is another column's stands for it
    types = schema.as_nullable().to_arrow().types
    for field, type_ in zip(schema, types, strict=True):
        has_default = field.metadata.get(WRITE_DEFAULT) is not None
        if has_default and field.name not in exactly and field.name.casefold() not in other:
            batch = batch.append_column(field.name, default_array(field, type_, batch.num_rows, WRITE_DEFAULT))
    return batch
