"""The columns that every table has beside its own: where a row lies, whether it is deleted, what identifies it
(iceberg spec, Reserved Field IDs, Row Lineage)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakeview.iceberg.manifests.partitions import PartitionColumn
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.iceberg.scan.data_files import DELETED, LINEAGE, POS, IcebergSource
from lakeview.model.data_types import DataType, Field, PrimitiveType, StructType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.rows.tasks import FileTask

FILE = Field("_file", PrimitiveType("string"), id=2147483646)
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
    type_ = column.type
    plain: DataType = PrimitiveType("string") if type_ is None or not column.specs else type_
    return Field(column.name, plain, id=column.field.field_id)


def _is_own(field: Field) -> bool:
    return field in (FILE, POS, DELETED, SPEC_ID) or (field.id == PARTITION_ID and field.name == "_partition")


def asks_for_place(schema: Schema) -> bool:
    """Whether a schema has a column that only a file's place in the table can fill."""
    return any(_is_own(f) for f in schema)


def with_place(task: FileTask, file: str, spec_id: int, partition: Mapping[str, Any] | None) -> FileTask:
    """A task that fills the metadata columns of its schema; deleted rows stay, where they are to be marked. `file` as
    recorded; `partition`: its tuple by name, None without one."""
    assert isinstance(task.source, IcebergSource), "a file of an Iceberg table says what reads it"
    values = {FILE.name: file, SPEC_ID.name: spec_id, "_partition": partition}
    own = {f.name: values.get(f.name) for f in task.schema if _is_own(f)}
    if DELETED.name not in own:
        return replace(task, source=replace(task.source, own=own))
    return replace(task, source=replace(task.source, own=own, marked_rows=task.deleted_rows), deleted_rows=None)
