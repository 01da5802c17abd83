"""The columns that every table has beside its own: where a row lies, whether it is deleted, what identifies it
(iceberg spec, Reserved Field IDs, Row Lineage)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyroaring

from lakeview.iceberg.manifests.partitions import PartitionColumn
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.iceberg.scan.data_files import LINEAGE
from lakeview.model.data_types import DataType, Field, PrimitiveType, StructType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.rows.tasks import FileTask, RowPositions, RowSource
from lakeview.storage import Storage

FILE = Field("_file", PrimitiveType("string"), id=2147483646)
POS = Field("_pos", PrimitiveType("long"), id=2147483645)
DELETED = Field("_deleted", PrimitiveType("boolean"), id=2147483644)
SPEC_ID = Field("_spec_id", PrimitiveType("integer"), id=2147483643)
PARTITION_ID = 2147483642
NAMES = (FILE.name, POS.name, DELETED.name, SPEC_ID.name, "_partition", *(f.name for f in LINEAGE))
"""What can be asked for. `_file` as recorded; `_pos` from 0; `_deleted`: with it deleted rows are given too, marked;
`_partition`: the parts of all specs, null where the file's own spec has not that part."""


def with_metadata_columns(
    schema: Schema, names: Sequence[str], metadata: Metadata, columns: Sequence[PartitionColumn]
) -> Schema:
    """The table's columns, then these in the order asked. `columns`: the parts of all partition specs.

    InvalidRequestError for a name that is none of them, that the table has a column of its own by, or that asks for
    row lineage of a table that keeps none, or for the partition of one that has none.
    """
    by_name = {f.name: f for f in (FILE, POS, DELETED, SPEC_ID, *LINEAGE)}
    if columns:
        by_name["_partition"] = Field("_partition", StructType(tuple(_part(c) for c in columns)), id=PARTITION_ID)
    for name in names:
        if name not in NAMES:
            raise InvalidRequestError(
                f"there is no metadata column {name}",
                fix=f"choose from {', '.join(NAMES)}", place=name, kind="unknown-column",
            )  # fmt: skip
        if name in schema:
            raise InvalidRequestError(
                f"the table has a column {name} of its own",
                fix=f"read without the metadata column {name}", place=name, kind="column-name-taken",
            )  # fmt: skip
        if name not in by_name:
            raise InvalidRequestError(
                "the table is not partitioned, so that no row has a _partition",
                fix="read without it", place=name, kind="unknown-column",
            )  # fmt: skip
        if by_name[name] in LINEAGE and metadata.format_version < 3:
            raise InvalidRequestError(
                f"the table does not track its rows, as {name} asks: that begins with format version 3",
                fix=f"read without {name}", place=name, kind="no-row-tracking",
            )  # fmt: skip
    return Schema((*schema.fields, *(by_name[name] for name in dict.fromkeys(names))))


def _part(column: PartitionColumn) -> Field:
    type_ = column.field.transform.result_type(None if column.source is None else column.source.type)
    plain: DataType = PrimitiveType("string") if type_ is None or not column.specs else type_
    return Field(column.name, plain, id=column.field.field_id)


@dataclass(frozen=True, slots=True)
class MetadataSource:
    """A data file's rows with what its place in the table tells of them. Implements `lakeview.rows.tasks.RowSource`.

    `file` as recorded; `partition`: its tuple by name, None without one; `deleted`: the rows to be marked.
    """

    source: RowSource
    file: str
    spec_id: int
    partition: Mapping[str, Any] | None = field(default=None, hash=False)
    deleted_rows: RowPositions | None = None

    def batches(self, task: FileTask, storage: Storage, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """All rows of the file in `task.schema`; errors of reading it, and of its deletes where they are asked for."""
        schema = Schema(tuple(f for f in task.schema if not _is_own(f)))
        target = task.schema.as_nullable().to_arrow()
        marks = self.deleted_rows if DELETED in tuple(task.schema) else None
        bitmap = pyroaring.BitMap64() if marks is None else marks.bitmap(storage)
        places = {name: i for i, name in enumerate(schema.names)}
        position = 0
        for batch in self.source.batches(replace(task, schema=schema), storage, batch_rows):
            rows = batch.num_rows
            arrays = []
            for f, type_ in zip(task.schema, target.types, strict=True):
                own = _is_own(f)
                arrays.append(self._column(f, type_, position, rows, bitmap) if own else batch.column(places[f.name]))
            position += rows
            yield pa.RecordBatch.from_arrays(arrays, schema=target) if arrays else batch

    def _column(self, field: Field, target: pa.DataType, start: int, rows: int, bitmap: pyroaring.BitMap64) -> pa.Array:
        if field == POS:
            return pa.arange(start, start + rows)
        if field == DELETED:
            return pa.array([p in bitmap for p in range(start, start + rows)] if bitmap else [False] * rows, target)
        value = {FILE.id: self.file, SPEC_ID.id: self.spec_id, PARTITION_ID: self.partition}[field.id]
        return pa.repeat(pa.scalar(value, target), rows)


def _is_own(field: Field) -> bool:
    return field in (FILE, POS, DELETED, SPEC_ID) or (field.id == PARTITION_ID and field.name == "_partition")


def asks_for_place(schema: Schema) -> bool:
    """Whether a schema has a column that only a file's place in the table can fill."""
    return any(_is_own(f) for f in schema)


def with_place(task: FileTask, file: str, spec_id: int, partition: Mapping[str, Any] | None) -> FileTask:
    """A task that fills the metadata columns of its schema; deleted rows stay, where they are to be marked."""
    assert task.source is not None, "a file of an Iceberg table says what reads it"
    marks = DELETED in tuple(task.schema)
    source = MetadataSource(task.source, file, spec_id, partition, task.deleted_rows if marks else None)
    return replace(task, source=source, deleted_rows=None if marks else task.deleted_rows)
