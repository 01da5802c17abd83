"""Rows to the columns of data files: physical names and field ids where columns are mapped (today's protocol, Column
Mapping)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakeview.model.arrow_types import arrow_type
from lakeview.model.errors import UnsupportedTableError
from lakeview.model.schema import ArrayType, DataType, Field, MapType, PrimitiveType, StructType
from lakeview.rows.casts import SameRows, conform
from lakeview.rows.variant import STORED, variant_binaries

VARIANT = PrimitiveType("variant")


def stored_table(rows: pa.Table, fields: Sequence[Field], *, encode_variants: bool = False) -> pa.Table:
    """The rows as data files hold them: by the physical names and the field ids of column mapping, at every level.

    Columns of type void are left out, which readers take for null. `encode_variants`: variants are new JSON text to be
    encoded, InvalidRequestError for text that is none; without it they are left out, and UnsupportedTableError if one
    has a value: text that was read has lost the types of what it holds.
    """
    kept = [
        f for f in fields
        if f.type != PrimitiveType("void") and (encode_variants or f.type != VARIANT or _has_values(rows[f.name]))
    ]  # fmt: skip
    variants = [f for f in kept if f.type == VARIANT]
    if variants and not encode_variants:
        raise UnsupportedTableError(
            f"column {variants[0].name} is a variant, whose values are not written again",
            fix="append rows, delete by deletion vectors, or change rows that have values with another engine",
            place=variants[0].name,
            kind="unsupported-type",
        )
    if len(kept) == len(fields) and not variants and not any(f.physical_name is not None for f in fields):
        return rows
    types = [stored_field(f) for f in kept]
    columns = [
        pa.chunked_array([_stored_array(c, f, type_.type) for c in rows[f.name].chunks], type_.type)
        for f, type_ in zip(kept, types, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(types))


def _has_values(column: pa.ChunkedArray) -> bool:
    return bool(column.null_count < len(column))


def _stored_array(array: pa.Array, field: Field, target: pa.DataType) -> pa.Array:
    if field.type == VARIANT:
        return variant_binaries(array, field.name)
    return conform(array, field.type, target, field.name, SameRows())


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
    if type_ == VARIANT:
        return STORED
    return arrow_type(type_)


def stored_name(field: Field) -> str:
    """The name of a column in data files, partition values and statistics."""
    return field.physical_name or field.name
