"""Rows to data files with statistics: what an append, or a task of a cluster, writes before anything is committed."""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from lakeview.delta.data.file_statistics import FileStatistics, in_calendar
from lakeview.delta.data.partition_values import serialize
from lakeview.delta.log.actions import AddFile
from lakeview.delta.log.paths import decode_path, encode_path
from lakeview.delta.write.context import WriteContext
from lakeview.delta.write.footer_texts import text_bounds, text_columns
from lakeview.delta.write.identity import Allocate
from lakeview.delta.write.row_rules import RowRules
from lakeview.delta.write.stored_columns import check_storable, stored_table
from lakeview.model.clock import Clock, system_clock
from lakeview.model.config import VERSION
from lakeview.model.data_types import Field
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError
from lakeview.model.partition_texts import HIVE_NULL
from lakeview.model.snapshot import milliseconds
from lakeview.rows.open_files import OpenFiles, drop_encoder, portions, repeating_columns, split_rows
from lakeview.storage import Storage

ENGINE = f"lakeview/{VERSION}"


@dataclass(frozen=True, slots=True)
class FileWriter:
    """Writes rows to data files below the table's root, a file for each partition and `rows_per_file` rows; nothing is
    committed. `data_change`, `statistics`: of the add actions."""

    context: WriteContext
    storage: Storage
    clock: Clock = system_clock
    data_change: bool = True
    statistics: bool = True

    def write(self, batches: Iterable[pa.RecordBatch], allocate: Allocate | None = None) -> list[AddFile]:
        """Write rows as `RowRules.conform` takes them: a missing column is null or what the table computes, an unknown
        one is refused, and so is a value that the column's type does not hold exactly.

        `allocate` gives values of identity columns. InvalidRequestError for columns that do not fit,
        UnsupportedTableError where void columns leave nothing to write, ConstraintViolationError for rows that break a
        rule. On an error the files written so far are removed.
        """
        return self.write_conformed(self.conformed_rows(batches, allocate))

    def conformed_rows(
        self, batches: Iterable[pa.RecordBatch], allocate: Allocate | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Rows as the table has them, what it computes filled in and every rule kept. Errors as `write`."""
        rules, fill_missing = self.context.rules or RowRules(self.context.schema), self.context.fill_missing
        first = 0
        for batch in portions(batches):
            yield rules.conform(batch, clock=self.clock, allocate=allocate, fill_missing=fill_missing, first=first)
            first += batch.num_rows

    def write_conformed(self, batches: Iterable[pa.RecordBatch]) -> list[AddFile]:
        """As `write`, of rows that are in the table already, or were conformed: in the columns of the context's schema,
        those of `tracked_fields` behind them. Memory holds a row group of rows, and of the encoded bytes of open files
        what their store keeps."""
        files = self.open_files()
        try:
            return files.write_all(batches)
        except BaseException:
            discard(files.results, self.storage)
            raise

    def open_files(self) -> OpenFiles[dict[str, Any], AddFile]:
        """The files that rows as those of `write_conformed` go to; none before the first rows."""
        return OpenFiles(
            lambda values: DataFile(self, values),
            lambda rows: _partitions(rows, self.context),
            rows_per_file=self.context.rows_per_file,
            target_bytes=self.context.target_bytes,
            remote=self.storage.remote,
        )


def discard(adds: Sequence[AddFile], storage: Storage) -> None:
    """Remove data files that were written and will not be committed. What cannot be deleted stays for a vacuum."""
    storage.delete_each(decode_path(add.path) for add in adds)


def _partitions(
    table: pa.Table, context: WriteContext
) -> Iterable[tuple[tuple[str | None, ...], dict[str, Any], pa.Table]]:
    """Partitions by the text of their values, these values, and the rows that have them without the partition columns,
    or with them behind all others; in order of first appearance."""
    columns = context.partition_columns
    check_storable([f for f in context.schema if f.name not in columns])
    data = table.drop_columns(list(columns))
    if context.materialize_partitions:  # "placing them after the data columns"  delta protocol
        data = table.select([*data.schema.names, *columns])
    if not columns:
        yield (), {}, data
        return
    keys = pl.DataFrame([recordable(pl.Series(c, pl.from_arrow(table[c])), context.schema[c]) for c in columns])
    for values, part in split_rows(data, keys):
        yield tuple(map(serialize, values.values())), values, part  # NaN would be another key each time


def recordable(values: pl.Series, field: Field) -> pl.Series:
    """The values of a partition column, as they are. InvalidRequestError for one that the log has no text for,
    ConstraintViolationError for an empty text where null is not allowed.
    """
    # "An empty string for any type translates to a null partition value"  delta protocol, Partition Value Serialization
    if not field.nullable and values.dtype in (pl.String, pl.Binary):
        size = values.str.len_bytes() if values.dtype == pl.String else values.bin.size()
        if empty := int((size == 0).sum()):
            raise ConstraintViolationError(
                f"column {field.name} must not be null, and {empty:,} of the rows have an empty text in it, which is "
                "null in a partition column",
                fix="give the rows another value, or make the column nullable",
                place=field.name,
                kind="not-null",
            )
    if not in_calendar(values):
        raise _no_text(values.name, "a time before the year 1 or after 9999")
    if values.dtype == pl.Binary:
        try:
            for value in values.unique().drop_nulls():
                value.decode()
        except UnicodeDecodeError as error:
            raise _no_text(values.name, "bytes that are no UTF-8") from error
    return values


def _no_text(column: str, what: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"column {column} holds {what}, which no partition value can stand for",
        fix="leave the rows out, or partition by another column",
        place=column,
        kind="partition-value",
    )


class DataFile:
    """A data file that is being written. `values`: those of its partition columns, by name."""

    def __init__(self, writer: FileWriter, values: dict[str, Any]) -> None:
        context = writer.context
        self._writer = writer
        self._partition_values = {context.schema[name].stored_name: serialize(value) for name, value in values.items()}
        self._path = data_file_path(context, self._partition_values)
        self._file = writer.storage.new_file(self._path)
        self._encoder: pq.ParquetWriter | None = None
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
        context = self._writer.context
        fields = {f.name: f for f in (*context.schema, *context.tracked_fields)}
        table = stored_table(rows, [fields[name] for name in rows.schema.names])
        if self._encoder is None:
            partitions = self._partition_values.keys()  # have no statistics: the log says their one value
            self._texts = {name: leaf for name, leaf in text_columns(table.schema).items() if name not in partitions}
            self._encoder = pq.ParquetWriter(
                self._file,
                table.schema,
                compression=context.compression,
                data_page_version=context.page_version,
                version="2.6",
                coerce_timestamps="us",
                use_dictionary=repeating_columns(table),
                metadata_collector=self._footers,
            )
        self._encoder.write_table(table, row_group_size=max(table.num_rows, 1))
        self._statistics.add(table, self._texts)

    def close(self) -> AddFile:
        """Put the file into the store; its add action, not committed yet."""
        assert self._encoder is not None, "a file of no rows is not written"
        self._encoder.close()
        size = self.size
        for name, nulls, bounds in text_bounds(self._file.contents, self._footers[0], self._texts):
            self._statistics.add_column(name, nulls, bounds)
        self._file.publish()
        self._file.close()
        return AddFile(
            path=encode_path(self._path),
            size=size,
            partition_values=self._partition_values,
            modification_time=milliseconds(self._writer.clock()),
            data_change=self._writer.data_change,
            stats=self._statistics.text() if self._writer.statistics else None,
        )

    def discard(self) -> None:
        """Leave nothing of a file that will not be whole."""
        self._file.close()
        drop_encoder(self._encoder)


_LONGEST_NAME = 255
"""Characters of a name on most file systems; those of a folder are of ASCII."""
_SHORT_PREFIX = 2


def data_file_path(context: WriteContext, partition_values: Mapping[str, str | None]) -> str:
    """A new path for a file of these partition values, which are as the log has them."""
    # "Data files MUST be uniquely named and MUST NOT be overwritten"
    prefix = context.folder_prefix()
    folders = [prefix] if prefix else [partition_folder(*value) for value in partition_values.items()]
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
    text = HIVE_NULL if value is None else quote(value, safe=" !$&'()*+,;@~-._")
    return f"{quote(name, safe=' !$&()+,;@~-._')}={text}"
