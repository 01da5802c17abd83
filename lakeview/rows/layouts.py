"""The footer of a Parquet file to its layout: where columns lie that need no work to be those of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import pyarrow as pa
import pyarrow.parquet as pq

from lakeview.model.schema import ArrayType, DataType, Field, MapType, PrimitiveType, StructType, arrow_type
from lakeview.rows.casts import Match, located
from lakeview.rows.tasks import FileTask, RowSource

Layout: TypeAlias = tuple[str | None, ...]
"""What each column of a list is called in a file; None for one that the file lacks."""

_DERIVED = (PrimitiveType("variant"), PrimitiveType("void"))
"""Types whose values are made of what a file stores."""


@runtime_checkable
class ParquetSource(RowSource, Protocol):
    """A RowSource that may leave Parquet files to polars: columns found by field id, missing ones null."""

    def stores(self, wanted: Sequence[Field], missing: Sequence[Field]) -> bool:
        """Whether the file is a Parquet file that stores these columns as they are given, but for those `missing`,
        which are null."""


def expected_layout(wanted: Sequence[Field]) -> Layout | None:
    """The layout of files with all columns by name; None if fields of structs have other names in files."""
    if not all(_plainly_named(f.type) for f in wanted):
        return None
    return tuple(f.physical_name or f.name for f in wanted)


def read_layout(task: FileTask, path: str, wanted: Sequence[Field]) -> Layout | None:
    """Where a file at a path of this machine has the columns; None if it is broken, or one of them needs work."""
    source = task.source
    columns = _stored_columns(path, wanted, "id" if isinstance(source, ParquetSource) else task.match)
    if columns is None:
        return None
    missing = [f for column, f in zip(columns, wanted, strict=True) if column is None]
    if isinstance(source, ParquetSource) and not source.stores(wanted, missing):
        return None
    names = [column for column in columns if column is not None]
    return columns if names and len(set(names)) == len(names) else None


def _stored_columns(path: str, wanted: Sequence[Field], match: Match) -> Layout | None:
    try:
        stored = list(pq.read_schema(path))
        columns = [None if place is None else stored[place] for place in located(stored, wanted, match)]
        same = all(c is None or _same_type(c.type, f.type, match) for c, f in zip(columns, wanted, strict=True))
    except (pa.ArrowException, OSError, UnicodeDecodeError):  # broken, gone, or its columns cannot be told apart
        return None
    return tuple(None if c is None else c.name for c in columns) if same else None


def _same_type(stored: pa.DataType, wanted: DataType, match: Match) -> bool:
    """Whether a file stores the very type, fields of structs under the very names, at every level."""
    match wanted:
        case StructType(fields) if pa.types.is_struct(stored):
            found = list(stored)
            places = located(found, fields, match)
            return len(found) == len(fields) and all(
                place is not None and found[place].name == f.name and _same_type(found[place].type, f.type, match)
                for f, place in zip(fields, places, strict=True)
            )
        case ArrayType(element) if pa.types.is_list(stored):
            return _same_type(stored.value_type, element, match)
        case MapType(key, value) if pa.types.is_map(stored):
            return _same_type(stored.key_type, key, match) and _same_type(stored.item_type, value, match)
        case StructType() | ArrayType() | MapType():
            return False
    target = arrow_type(wanted)
    return bool(stored == target or (pa.types.is_string(target) and pa.types.is_large_string(stored)))


def _plainly_named(type_: DataType) -> bool:
    """Whether the fields of structs are called in files as they are in the table."""
    match type_:
        case StructType(fields):
            return all(f.physical_name in (None, f.name) and _plainly_named(f.type) for f in fields)
        case ArrayType(element):
            return _plainly_named(element)
        case MapType(key, value):
            return _plainly_named(key) and _plainly_named(value)
    return True


def is_stored(type_: DataType) -> bool:
    """Whether values of a type are in files as they are given, at every level."""
    match type_:
        case StructType(fields):
            return all(is_stored(f.type) for f in fields)
        case ArrayType(element):
            return is_stored(element)
        case MapType(key, value):
            return is_stored(key) and is_stored(value)
    return type_ not in _DERIVED
