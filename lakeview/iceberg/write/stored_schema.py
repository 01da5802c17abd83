"""A schema as the metadata records it to the Arrow schema of data files, and rows to that schema (iceberg spec,
Appendix A: Parquet)."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakeview.iceberg.metadata.types import parse_type
from lakeview.model.arrow_types import arrow_type
from lakeview.model.data_types import DataType, DecimalType, PrimitiveType
from lakeview.model.errors import InvalidRequestError, UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.rows.casts import SameRows, conform
from lakeview.rows.field_places import FIELD_ID

WRITABLE = frozenset({
    "boolean", "integer", "long", "float", "double", "date", "time", "timestamp", "timestamp_ntz", "timestamp_ns",
    "timestamptz_ns", "string", "uuid", "fixed", "binary",
})  # fmt: skip
"""The primitive types, by lakeview's words, whose values are written; decimals are too."""


def stored_schema(document: Mapping[str, Any]) -> pa.Schema:
    """The columns of data files, with the field id of each field, element, key and value.

    UnsupportedTableError for a type whose values are not written.
    """
    return pa.schema(_fields(document))


def stored_rows(rows: pa.Table, schema: Schema, target_schema: pa.Schema) -> pa.Table:
    """Rows of the table's columns as its data files hold them."""
    columns = [
        pa.chunked_array(
            [_without_nulls(conform(chunk, f.type, target.type, f.name, _STORED), target) for chunk in column.chunks],
            target.type,
        )
        for f, column, target in zip(schema, rows.columns, target_schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=target_schema)


def _without_nulls(array: pa.Array, field: pa.Field) -> pa.Array:
    """The array with nothing null that must not be: what is, lies below a null, where files hold no values; writing
    them asks for it nevertheless."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(kind, _without_nulls(array.storage, field))
    if pa.types.is_struct(kind):
        children = [_without_nulls(array.field(i), inner) for i, inner in enumerate(kind)]
    elif pa.types.is_list(kind):
        children = [_without_nulls(array.values, kind.value_field)]
    elif pa.types.is_map(kind):
        entries = [_without_nulls(array.keys, kind.key_field), _without_nulls(array.items, kind.item_field)]
        children = [pa.StructArray.from_arrays(entries, fields=[kind.key_field, kind.item_field])]
    elif field.nullable or not array.null_count:
        return array
    else:
        children = []
    own = array.buffers()[: kind.num_buffers]
    if not field.nullable:
        own[0] = None
    return pa.Array.from_buffers(
        kind, len(array), own, 0 if own[0] is None else array.null_count, array.offset, children
    )


def leaf_ids(schema: pa.Schema) -> list[int]:
    """The field ids of the leaves, in the order of Parquet's columns."""
    return [i for f in schema for i in _leaf_ids(f)]


class _LeafTypes(SameRows):
    """Leaves as files hold them: uuids and fixed values in as many bytes as they have."""

    def leaf(self, array: pa.Array, column_type: DataType, target: pa.DataType, path: str) -> pa.Array:  # noqa: ARG002 (the target's type says it)
        if isinstance(target, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(target, array.cast(target.storage_type))
        if pa.types.is_fixed_size_binary(target):
            _check_lengths(array, target.byte_width, path)
        return array if array.type == target else array.cast(target)


_STORED = _LeafTypes()


def _check_lengths(array: pa.Array, length: int, path: str) -> None:
    lengths = pc.binary_length(array)
    others = lengths.filter(pc.not_equal(lengths, length))
    if len(others):
        raise InvalidRequestError(
            f"column {path} holds values of {length} bytes, and one of the rows has {others[0]}",
            fix="correct the value, or leave the row out",
            place=path,
            kind="type-mismatch",
        )


def _fields(struct: Mapping[str, Any]) -> list[pa.Field]:
    return [_field(f["name"], f["id"], f["type"], f.get("required") is True) for f in struct["fields"]]


def _field(name: str, field_id: int, type_: Any, is_required: bool) -> pa.Field:
    return pa.field(name, _type(type_, name), not is_required, {FIELD_ID: str(field_id).encode()})


def _type(type_json: Any, column: str) -> pa.DataType:
    match type_json:
        case {"type": "struct"}:
            return pa.struct(_fields(type_json))
        case {"type": "list"}:
            is_required = type_json.get("element-required") is True
            return pa.list_(_field("element", type_json["element-id"], type_json["element"], is_required))
        case {"type": "map"}:
            key = _field("key", type_json["key-id"], type_json["key"], True)
            is_required = type_json.get("value-required") is True
            return pa.map_(key, _field("value", type_json["value-id"], type_json["value"], is_required))
        case {"type": word} | word:
            return _primitive(word, column)


def _primitive(word: str, column: str) -> pa.DataType:
    type_ = parse_type(word)
    match type_:
        case PrimitiveType("uuid"):
            return pa.uuid()
        case PrimitiveType("fixed"):
            return pa.binary(int(word.strip("fixed[] ")))
        case PrimitiveType(name) if name not in WRITABLE:
            raise UnsupportedTableError(
                f"column {column} has the type {word}, whose values are not written",
                fix="write the table with the engine that owns it",
                place=column,
                kind="unsupported-type",
            )
        case PrimitiveType() | DecimalType():
            return arrow_type(type_)
    raise AssertionError("unreachable: a word names a type without parts")


def _leaf_ids(field: pa.Field) -> Iterator[int]:
    kind = field.type
    for place in range(kind.num_fields):  # a map's one is a struct of key and value
        yield from _leaf_ids(kind.field(place))
    if not kind.num_fields:
        yield int(field.metadata[FIELD_ID])
