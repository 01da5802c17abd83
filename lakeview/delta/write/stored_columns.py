"""Rows to the columns of data files: physical names and field ids where columns are mapped (today's protocol, Column
Mapping)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakeview.model.arrow_types import arrow_type
from lakeview.model.errors import UnsupportedTableError
from lakeview.model.schema import ArrayType, DataType, Field, MapType, PrimitiveType, StructType
from lakeview.rows.casts import conform

VARIANT = PrimitiveType("variant")


def stored_table(rows: pa.Table, fields: Sequence[Field]) -> pa.Table:
    """The rows as data files hold them: by the physical names and the field ids of column mapping, at every level.

    Columns of type void are left out, which readers take for null, and so are variants: UnsupportedTableError if one
    has a value, which is not written here.
    """
    for field in fields:
        if field.type == VARIANT and rows[field.name].null_count < rows.num_rows:
            raise UnsupportedTableError(
                f"column {field.name} is a variant, whose values are not written",
                fix="leave the column out of the rows; change rows that have values with another engine",
                place=field.name,
                kind="unsupported-type",
            )
    kept = [f for f in fields if f.type not in (PrimitiveType("void"), VARIANT)]
    if len(kept) == len(fields) and not any(f.physical_name is not None for f in fields):
        return rows
    types = [stored_field(f) for f in kept]
    columns = [
        pa.chunked_array([conform(c, f.type, type_.type, f.name, _SAME) for c in rows[f.name].chunks], type_.type)
        for f, type_ in zip(kept, types, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(types))


class _SameRows:
    """Conforms rows to types that differ by names alone."""

    def fields(self, source_fields: Sequence[pa.Field], table_fields: Sequence[Field], path: str) -> list[int | None]:  # noqa: ARG002 (every field has its place)
        return list(range(len(table_fields)))

    def leaf(self, array: pa.Array, column_type: DataType, target: pa.DataType, path: str) -> pa.Array:  # noqa: ARG002 (as above)
        return array


_SAME = _SameRows()


def stored_field(field: Field) -> pa.Field:
    """The Arrow field of a column as data files hold it, everything nullable."""
    metadata = None if field.id is None else {b"PARQUET:field_id": str(field.id).encode()}
    return pa.field(stored_name(field), _stored_type(field.type), metadata=metadata)


def _stored_type(type_: DataType) -> pa.DataType:
    match type_:
        case StructType(fields):
            return pa.struct([stored_field(f) for f in fields])
        case ArrayType(element):
            return pa.list_(pa.field("element", _stored_type(element)))
        case MapType(key, value):
            return pa.map_(_stored_type(key), pa.field("value", _stored_type(value)))
    return arrow_type(type_)


def stored_name(field: Field) -> str:
    """The name of a column in data files, partition values and statistics."""
    return field.physical_name or field.name
