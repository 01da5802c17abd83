"""A feature to the live files that only its readers read right: they are written again before it is dropped."""

from collections.abc import Sequence

import pyarrow as pa

from lakeview.delta.data.partition_values import serialize
from lakeview.delta.data.type_widening import type_changes
from lakeview.delta.write.live_files import LiveFile
from lakeview.delta.write.pending_commit import PendingCommit
from lakeview.model.arrow_types import arrow_type
from lakeview.model.data_types import ArrayType, DataType, Field, MapType, StructType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.model.type_tree import fields_below
from lakeview.rows.casts import kind_of
from lakeview.rows.field_places import Match, field_places

MAPPING, _VECTORS = "columnMapping", "deletionVectors"
"""Features; the names of mapped columns change at the same time in all files and the schema."""

_MAPPED_ONLY = " ,;{}()\n\t="
"""What no name of a column may hold without column mapping, in Delta Lake: its Parquet writer refuses them."""

_WIDENED = frozenset({"integer", "double", "decimal", "timestamp"})
"""Kinds of types that others widen to."""


def files_of(feature: str, txn: PendingCommit) -> list[LiveFile]:
    """The live files that are read right with a feature alone: those with deletion vectors; all files of mapped
    columns, as they may hold some that were dropped; those with a column of a type that it was widened from, by their
    footers."""
    files = txn.live_files(None)
    if feature == _VECTORS:
        return [file for file in files if file.row["vector"] is not None]
    if feature == MAPPING:
        return files if any(field.physical_name is not None for field in txn.schema) else []
    return _older_files(files, txn)


def _older_files(files: Sequence[LiveFile], txn: PendingCommit) -> list[LiveFile]:
    widened_fields = [f for f in txn.schema if any(type_changes(part) for _, part in fields_below([f]))]
    partitions = [f for f in widened_fields if f.name in txn.definition.partition_columns]
    stored_fields = [f for f in widened_fields if f not in partitions]

    def is_older(file: LiveFile) -> bool:
        texts = dict(file.row["partition_values"] or {})
        values = file.task.constants
        return any(texts.get(f.stored_name) != serialize(values[f.name]) for f in partitions) or (
            bool(stored_fields) and _are_older(file.stored_columns(txn.storage), stored_fields, file.task.match)
        )

    older = txn.storage.each_ahead(is_older, files) if widened_fields else ()
    return [file for file, is_of_older_type in zip(files, older, strict=False) if is_of_older_type]


def _are_older(file_fields: Sequence[pa.Field], fields: Sequence[Field], match: Match) -> bool:
    places = field_places(file_fields, fields, match)
    types = [(file_fields[place].type, f.type) for place, f in zip(places, fields, strict=True) if place is not None]
    return any(_is_older(*pair, match) for pair in types)


def _is_older(file_type: pa.DataType, type_: DataType, match: Match) -> bool:
    """Whether a file has another type than a column, or a part of it, that types widen to."""
    match type_:
        case StructType(fields):
            return pa.types.is_struct(file_type) and _are_older(list(file_type), fields, match)
        case ArrayType(element):
            # lists of any kind: polars and delta-rs write large ones
            value_field = getattr(file_type, "value_field", None)
            return value_field is not None and _is_older(value_field.type, element, match)
        case MapType(key, value):
            types = ((file_type.key_type, key), (file_type.item_type, value)) if pa.types.is_map(file_type) else ()
            return any(_is_older(*pair, match) for pair in types)
    target = arrow_type(type_)
    kind = kind_of(target)
    same = file_type == target or (kind == kind_of(file_type) == "timestamp")
    return kind in _WIDENED and not same


def check_plain_names(schema: Schema) -> None:
    """InvalidRequestError for a column or field whose name needs column mapping."""
    for path, field in fields_below(schema):
        if not field.name or set(_MAPPED_ONLY) & set(field.name):
            raise InvalidRequestError(
                f"the column {path} has a name that only mapped columns have: it is empty, or holds one of "
                f"{_MAPPED_ONLY!r}",
                fix="rename the column first",
                place=path,
                kind="name-needs-mapping",
            )
