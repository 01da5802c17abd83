"""A column that a file, or rows to be written, lack to its default in every row (iceberg spec, Default values)."""

from typing import Any

import pyarrow as pa

from lakeview.iceberg.metadata.single_values import INITIAL_DEFAULT, NotAValueError, default_value
from lakeview.model.data_types import Field
from lakeview.model.errors import CorruptTableError


def default_array(field: Field, target: pa.DataType, rows: int, name: str = INITIAL_DEFAULT) -> pa.Array:
    """The default of a column as an array of nullable `target`, null where the schema records none. `name`: which of
    the two, `initial-default` or `write-default`.

    CorruptTableError ("invalid-metadata") for a default that is none of its column's type.
    """
    default = field.metadata.get(name)
    if default is None:
        return pa.nulls(rows, target)
    try:
        return value_array(default_value(default, field, name), target, rows)
    except (NotAValueError, pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise CorruptTableError(
            f"the {name.replace('-', ' ')} of column {field.name} cannot be understood: {error}",
            fix="have the table's schema corrected by the engine that owns it",
            place=field.name,
            kind="invalid-metadata",
        ) from error


def value_array(value: Any, target: pa.DataType, rows: int) -> pa.Array:
    """An array of one value for each row; times beyond Python's own may be whole numbers in their unit.

    Raises what Arrow raises for a value that is none of the type.
    """
    if not rows:  # pyarrow repeats lists, maps and structs once at least
        return pa.nulls(0, target)
    if pa.types.is_timestamp(target) and isinstance(value, int):
        return pa.repeat(pa.scalar(value, pa.int64()).cast(target), rows)
    return pa.repeat(pa.scalar(value, type=target), rows)
