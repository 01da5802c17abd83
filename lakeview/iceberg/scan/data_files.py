"""Data and delete files of every format to batches in a schema: Parquet, Avro and ORC, columns by field id."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyroaring
from pyarrow import orc

from lakeview.iceberg.manifests.avro import read_frame
from lakeview.iceberg.manifests.avro_container import open_container
from lakeview.iceberg.manifests.avro_schema import NO_ID
from lakeview.iceberg.manifests.entries import FORMATS
from lakeview.iceberg.scan.projection import Projection, absent_fields, has_ids, value_array, with_mapping
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import UnsupportedTableError
from lakeview.model.type_tree import nodes
from lakeview.rows.arrays import map_child_fields
from lakeview.rows.field_places import FIELD_ID
from lakeview.rows.live_rows import file_batches
from lakeview.rows.tasks import FileTask, RowPositions
from lakeview.storage import Storage

NAME_MAPPING = "schema.name-mapping.default"
LINEAGE = (
    Field("_row_id", PrimitiveType("long"), id=2147483540),
    Field("_last_updated_sequence_number", PrimitiveType("long"), id=2147483539),
)
"""The columns of row lineage, under their reserved ids: what identifies a row, and when it was last changed."""

POS = Field("_pos", PrimitiveType("long"), id=2147483645)
DELETED = Field("_deleted", PrimitiveType("boolean"), id=2147483644)
"""The columns of a row's position in its file, and of whether it is deleted."""


@dataclass(frozen=True, slots=True)
class IcebergSource:
    """How one file is read. Implements `lakeview.rows.tasks.RowSource`; travels with its task.

    `format` as recorded; `mapping`: the table's name mapping as JSON text, for files without ids; `constants`: identity
    partition values by source field id; `first_row_id` and `sequence_number`: what rows that carry no lineage of their
    own inherit, None for files from before the table kept it; `is_delete`: a delete file, which holds every column that
    it deletes by: with nulls instead it would delete other rows, or none. `own`: columns that are not the table's, by
    name, with the value that all rows of the file have; none for `_pos`, and for `_deleted`, which marks `marked_rows`.
    """

    format: str
    mapping: str | None = None
    constants: Mapping[int, Any] = field(default_factory=dict, hash=False)
    first_row_id: int | None = None
    sequence_number: int | None = None
    is_delete: bool = False
    own: Mapping[str, Any] = field(default_factory=dict, hash=False)
    marked_rows: RowPositions | None = field(default=None, hash=False)

    def batches(self, task: FileTask, storage: Storage, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """All rows of the file in `task.schema`, in the file's order.

        FileNotFoundError, ArrowInvalid for a broken file, UnsupportedTableError for a format that is not read.
        """
        marks = self.marked_rows if self.own and DELETED.name in task.schema else None
        bitmap = pyroaring.BitMap64() if marks is None else marks.bitmap(storage)
        position = 0
        for batch in self._read(task, storage, batch_rows):
            yield self._with_other_columns(batch, task, position, bitmap)
            position += batch.num_rows

    def stores(self, fields: Sequence[Field], missing: Sequence[Field]) -> bool:
        """Whether the file is a Parquet file that stores these columns as they are given, but for those `missing`,
        which are null. Implements `lakeview.rows.layouts.ParquetSource`."""
        has_others = any(f in LINEAGE or f.name in self.own for f in fields)
        has_defaults = any(f.id in self.constants or f.metadata.get("initial-default") is not None for f in missing)
        # whether a struct lacks one of its fields, the file alone shows
        inner = (node.field for node in nodes(fields if self.constants else ()) if len(node.path) > 1)
        may_be_filled = any(f is not None and f.id in self.constants for f in inner)
        return self.format == "PARQUET" and not (has_others or has_defaults or may_be_filled)

    def _with_other_columns(
        self, batch: pa.RecordBatch, task: FileTask, start: int, marks: pyroaring.BitMap64
    ) -> pa.RecordBatch:
        """A batch, whose first row has the position `start`, with the columns that are not the file's: `own`, and what
        its rows inherit in the columns of row lineage, where those were asked for."""
        for place, column in enumerate(task.schema):
            field = batch.schema.field(place)
            if column.name in self.own:
                values = self._own_values(column, field.type, range(start, start + batch.num_rows), marks)
            elif column in LINEAGE:
                values = self._lineage(column, batch.column(place), start)
            else:
                continue
            batch = batch.set_column(place, field, values)
        return batch

    def _own_values(self, column: Field, target: pa.DataType, positions: range, marks: pyroaring.BitMap64) -> pa.Array:
        if column == POS:
            return pa.array(positions, target)
        if column == DELETED:
            return pa.array([p in marks for p in positions] if marks else [False] * len(positions), target)
        return value_array(self.own[column.name], target, len(positions))

    def _lineage(self, column: Field, values: pa.Array, start: int) -> pa.Array:
        rows = len(values)
        if self.first_row_id is None:
            # "when a data file has a null first_row_id, readers must produce null"  iceberg spec, Version 3
            return pa.nulls(rows, pa.int64())
        first = self.first_row_id + start
        if column.name == "_row_id":
            return pc.coalesce(values, pa.array(range(first, first + rows), pa.int64()))
        return pc.coalesce(values, pa.repeat(pa.scalar(self.sequence_number, pa.int64()), rows))

    def _read(self, task: FileTask, storage: Storage, batch_rows: int) -> Iterator[pa.RecordBatch]:
        match self.format:
            case "PARQUET":
                yield from self._parquet(task, storage, batch_rows)
            case "AVRO":
                yield from self._avro(task, storage)
            case "ORC":
                yield from self._orc(task, storage)
            case _:
                raise UnsupportedTableError(
                    f"{task.path} is recorded as {self.format}, a file format that is not read",
                    fix=f"have it rewritten as one of {', '.join(FORMATS)}", place=task.path,
                    kind="unsupported-file-format",
                )  # fmt: skip

    def _projection(self, file_fields: Sequence[pa.Field], task: FileTask) -> Projection:
        # A file with any id uses ids alone; the mapping serves files that have none.
        if self.mapping is not None and not has_ids(file_fields):
            try:
                file_fields = with_mapping(file_fields, msgspec.json.decode(self.mapping), self.constants)
            except msgspec.DecodeError as error:
                raise pa.ArrowInvalid(
                    f"its columns need the table's name mapping, which is no JSON: {error}"
                ) from error
        absent = next(absent_fields(file_fields, list(task.schema)), None) if self.is_delete else None
        if absent is not None:
            raise pa.ArrowInvalid(f"it lacks the column with the field id {absent.id}, by which it deletes")
        return Projection(file_fields, list(task.schema), self.constants)

    def _parquet(self, task: FileTask, storage: Storage, batch_rows: int) -> Iterator[pa.RecordBatch]:
        target = task.schema.as_nullable().to_arrow()
        with (
            storage.open(task.path, task.size) as handle,
            pq.ParquetFile(handle, coerce_int96_timestamp_unit="us") as file,
        ):
            schema = file.schema_arrow
            projection = self._projection(list(schema), task)
            names = _names_of(schema, projection.read)
            if not names:
                for start in range(0, file.metadata.num_rows, batch_rows):
                    yield projection.of({}, min(batch_rows, file.metadata.num_rows - start), target)
                return
            for batch in file_batches(file, names, batch_rows):
                batch.validate(full=True)
                columns = {schema.get_field_index(f.name): batch.column(i) for i, f in enumerate(batch.schema)}
                yield projection.of(columns, batch.num_rows, target)

    def _orc(self, task: FileTask, storage: Storage) -> Iterator[pa.RecordBatch]:
        target = task.schema.as_nullable().to_arrow()
        with storage.open(task.path, task.size) as handle:
            file = orc.ORCFile(handle)
            schema = file.schema
            projection = self._projection(list(schema), task)
            names = _names_of(schema, projection.read)
            # pyarrow takes `a.b` for a part of `a` where a file has both
            selection = None if any("." in name for name in names) else names or None
            for stripe in range(file.nstripes):
                try:
                    batch = file.read_stripe(stripe, columns=selection)
                except pa.ArrowInvalid as error:  # pyarrow knows times of ORC files in nanoseconds alone
                    if "nanosecond resolution" not in str(error):
                        raise
                    raise UnsupportedTableError(
                        f"{task.path} holds times beyond the years 1677 to 2262, which are not read from ORC files",
                        fix="have it rewritten as Parquet, or read the other columns", place=task.path,
                        kind="unsupported-value",
                    ) from error  # fmt: skip
                columns = {schema.get_field_index(n): batch.column(batch.schema.get_field_index(n)) for n in names}
                yield projection.of(columns, batch.num_rows, target)

    def _avro(self, task: FileTask, storage: Storage) -> Iterator[pa.RecordBatch]:
        """Avro files are decoded whole: they have no columns to leave out."""
        target = task.schema.as_nullable().to_arrow()
        container = open_container(storage.read(task.path), task.path)
        frame = read_frame(container, task.path)
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        fields = [_with_id(f) for f in table.schema]
        projection = self._projection(fields, task)
        for batch in table.to_batches():
            columns = {i: batch.column(i) for i in projection.read}
            yield projection.of(columns, batch.num_rows, target)


def _names_of(schema: pa.Schema, places: Sequence[int]) -> list[str]:
    """The names of columns, by which they are read. ArrowInvalid for one that another column of the file has too."""
    names = [schema.names[i] for i in places]
    if twice := next((name for name in names if schema.get_field_index(name) < 0), None):
        raise pa.ArrowInvalid(f"it holds two columns called {twice}")
    return names


def _with_id(field: pa.Field) -> pa.Field:
    """A field called by its id (`f100`), as the Avro reader calls them, with that id where Parquet keeps it."""
    number = field.name[1:] if field.name[:1] == "f" else ""
    metadata = {FIELD_ID: number.encode()} if number.isascii() and number.isdigit() else {}
    type_ = map_child_fields(field.type, _with_id)
    return pa.field(field.name.removeprefix(NO_ID), type_, field.nullable, metadata)
