"""The footer of a Parquet file to its layout: where columns lie that need no work to be those of the table."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import pyarrow as pa
import pyarrow.parquet as pq

from lakeview.model.arrow_types import arrow_type
from lakeview.model.data_types import VARIANT, VOID, ArrayType, DataType, Field, MapType, StructType
from lakeview.model.type_tree import nodes
from lakeview.rows.field_places import Match, field_places
from lakeview.rows.tasks import FileTask, RowSource

Layout: TypeAlias = tuple[str | None, ...]
"""What each column of a list is called in a file; None for one that the file lacks."""

_DERIVED = (VARIANT, VOID)
"""Types whose values are made of what a file stores."""


@runtime_checkable
class ParquetSource(RowSource, Protocol):
    """A RowSource that may leave Parquet files to polars: columns found by field id, missing ones null."""

    def stores(self, fields: Sequence[Field], missing: Sequence[Field]) -> bool:
        """Whether the file is a Parquet file that stores these columns as they are given, but for those `missing`,
        which are null."""


def expected_layout(fields: Sequence[Field]) -> Layout | None:
    """The layout of files with all columns by name; None if fields of structs have other names in files."""
    inner = (node.field for node in nodes(fields) if node.field is not None and len(node.path) > 1)
    if any(f.physical_name not in (None, f.name) for f in inner):
        return None
    return tuple(f.stored_name for f in fields)


def read_layout(task: FileTask, path: str, fields: Sequence[Field]) -> Layout | None:
    """Where a file at a path of this machine has the columns; None if it is broken, or one of them needs work."""
    source = task.source
    columns = _stored_columns(path, fields, "id" if isinstance(source, ParquetSource) else task.match)
    if columns is None:
        return None
    missing = [f for column, f in zip(columns, fields, strict=True) if column is None]
    if isinstance(source, ParquetSource) and not source.stores(fields, missing):
        return None
    names = [column for column in columns if column is not None]
    return columns if names and len(set(names)) == len(names) else None


def _stored_columns(path: str, fields: Sequence[Field], match: Match) -> Layout | None:
    try:
        file_fields = list(pq.read_schema(path))
        columns = [None if place is None else file_fields[place] for place in field_places(file_fields, fields, match)]
        same = all(c is None or _same_type(c.type, f.type, match) for c, f in zip(columns, fields, strict=True))
    except (pa.ArrowException, OSError, UnicodeDecodeError):  # broken, gone, or its columns cannot be told apart
        return None
    return tuple(None if c is None else c.name for c in columns) if same else None


def _same_type(file_type: pa.DataType, column_type: DataType, match: Match) -> bool:
    """Whether a file stores the very type, fields of structs under the very names, at every level."""
    match column_type:
        case StructType(fields) if pa.types.is_struct(file_type):
            inner_fields = list(file_type)
            places = field_places(inner_fields, fields, match)
            return len(inner_fields) == len(fields) and all(
                place is not None
                and inner_fields[place].name == f.name
                and _same_type(inner_fields[place].type, f.type, match)
                for f, place in zip(fields, places, strict=True)
            )
        case ArrayType(element) if pa.types.is_list(file_type):
            return _same_type(file_type.value_type, element, match)
        case MapType(key, value) if pa.types.is_map(file_type):
            return _same_type(file_type.key_type, key, match) and _same_type(file_type.item_type, value, match)
        case StructType() | ArrayType() | MapType():
            return False
    target = arrow_type(column_type)
    return bool(file_type == target or (pa.types.is_string(target) and pa.types.is_large_string(file_type)))


def is_stored(type_: DataType) -> bool:
    """Whether values of a type are in files as they are given, at every level."""
    return all(node.type not in _DERIVED for node in nodes([Field("", type_)]))
