"""Rows to the columns of data files: physical names and field ids where columns are mapped (today's protocol, Column
Mapping)."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import pyarrow as pa

from lakeview.model.arrow_types import STORED_VARIANT, arrow_field, arrow_type
from lakeview.model.data_types import (
    VARIANT,
    VARIANT_BINARIES,
    VOID,
    ArrayType,
    DataType,
    Field,
    MapType,
    StructType,
)
from lakeview.model.errors import UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.model.type_tree import nodes
from lakeview.rows.casts import SameRows, conform, conform_array
from lakeview.rows.field_places import FIELD_ID
from lakeview.rows.variant import stored_variants, variant_binaries


def stored_table(rows: pa.Table, fields: Sequence[Field]) -> pa.Table:
    """The rows as data files hold them: by the physical names and the field ids of column mapping, at every level.

    Columns of type void are left out, which readers take for null. Variants are JSON text to be encoded, or the bytes
    of VARIANT_BINARIES, which stay. InvalidRequestError for text that is none.
    """
    present = [f for f in fields if f.type != VOID]
    has_mapping = any(f.physical_name is not None for f in fields)
    if len(present) == len(fields) and not has_mapping and not any(map(holds_variants, fields)):
        return rows
    types = [stored_field(f) for f in present]
    columns = [
        pa.chunked_array(
            [conform(c, f.type, type_.type, f.name, _STORED_ROWS) for c in rows[f.name].chunks], type_.type
        )
        for f, type_ in zip(present, types, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(types))


def check_storable(fields: Sequence[Field]) -> None:
    """UnsupportedTableError for data columns that no file can hold: without its void columns nothing is left to write.

    "Writers must reject operations that would write new data files when the table schema contains" a void in an array
    or a map, a struct of voids only, or no other data column  (delta protocol, Void Type).
    """
    if all(f.type == VOID for f in fields):
        raise _unstorable("every column is void or a partition column", "")
    for node in nodes(fields):
        match node.type:
            case ArrayType(element) if element == VOID:
                raise _unstorable(f"{node.name} is an array of void", node.name)
            case MapType(key, value) if VOID in (key, value):
                raise _unstorable(f"{node.name} is a map of void", node.name)
            case StructType(parts) if all(f.type == VOID for f in parts):
                raise _unstorable(f"every field of {node.name} is void", node.name)


def _unstorable(what: str, place: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"{what}: no file can be written that holds the rows",
        fix="change the type of a void column, or add a column of another type",
        place=place,
        kind="void-columns",
    )


def holds_variants(field: Field) -> bool:
    """Whether a column is a variant, or one is within it."""
    return any(node.type == VARIANT for node in nodes([field]))


def with_variant_binaries(schema: Schema) -> Schema:
    """The same columns, variants at every level as VARIANT_BINARIES."""
    return Schema(tuple(_binaries_field(f) for f in schema))


def readable_rows(rows: pa.RecordBatch, schema: Schema, names: Collection[str]) -> pa.RecordBatch:
    """Rows of VARIANT_BINARIES with JSON text in their place, in the columns of these names; others stay.

    `schema`: the columns as the table has them. CorruptTableError for a variant that is none.
    """
    for field in schema:
        if field.name in names and holds_variants(field):
            index = rows.schema.get_field_index(field.name)
            column = arrow_field(replace(field, nullable=True))
            rows = rows.set_column(index, column, conform_array(rows.column(index), field, column.type))
    return rows


class _StoredRows(SameRows):
    """Conforms rows to types that differ by names alone, but for variants that are text."""

    def leaf(self, array: pa.Array, column_type: DataType, target: pa.DataType, path: str) -> pa.Array:
        if column_type != VARIANT:
            return super().leaf(array, column_type, target, path)
        return variant_binaries(array, path) if pa.types.is_string(array.type) else stored_variants(array, path)


_STORED_ROWS = _StoredRows()


def stored_field(field: Field) -> pa.Field:
    """The Arrow field of a column as data files hold it, everything nullable."""
    metadata = None if field.id is None else {FIELD_ID: str(field.id).encode()}
    return pa.field(field.stored_name, _stored_type(field.type), metadata=metadata)


def _stored_type(type_: DataType) -> pa.DataType:
    match type_:
        case StructType(fields):
            return pa.struct([stored_field(f) for f in fields])
        case ArrayType(element):
            return pa.list_(pa.field("element", _stored_type(element)))
        case MapType(key, value):
            return pa.map_(_stored_type(key), pa.field("value", _stored_type(value)))
    if type_ in (VARIANT, VARIANT_BINARIES):
        return STORED_VARIANT
    return arrow_type(type_)


def _binaries_field(f: Field) -> Field:
    return replace(f, type=_binaries(f.type))


def _binaries(type_: DataType) -> DataType:
    match type_:
        case StructType(fields):
            return StructType(tuple(_binaries_field(f) for f in fields))
        case ArrayType(element, contains_null):
            return ArrayType(_binaries(element), contains_null)
        case MapType(key, value, contains_null):
            return MapType(key, _binaries(value), contains_null)
    return VARIANT_BINARIES if type_ == VARIANT else type_
