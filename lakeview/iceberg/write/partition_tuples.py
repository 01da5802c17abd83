"""Rows to the partition tuples of their files, as manifests record them (iceberg spec, Partition Transforms)."""

from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from lakeview.iceberg.metadata.single_values import in_calendar, map_values
from lakeview.iceberg.metadata.transforms import TEMPORAL, Transform, exact_decimal
from lakeview.iceberg.write.context import WriteContext
from lakeview.iceberg.write.metrics import to_recorded_values
from lakeview.iceberg.write.stored_schema import stored_rows
from lakeview.model.data_types import Field
from lakeview.model.errors import InvalidRequestError, UnsupportedTableError
from lakeview.model.schema import leaf_name, polars_type
from lakeview.rows.arrays import struct_leaves
from lakeview.rows.open_files import split_rows

Tuple = tuple[Any, ...]
_HOUR = {"us": 3_600_000_000, "ns": 3_600_000_000_000}

_MASK = 0xFFFF_FFFF


def partitions(rows: pa.Table, context: WriteContext) -> Iterator[tuple[tuple[str, ...], Tuple, pa.Table]]:
    """What each partition of the rows is known by, its tuple, and its rows as data files hold them.

    InvalidRequestError for values that a transform has no rule for, UnsupportedTableError for a type without one.
    """
    file_rows = stored_rows(rows, context.schema, context.stored_schema)
    parts = [
        (str(number), transform_values(_values(rows, source[0]), part.transform, source[1], leaf_name(source[0])))
        for number, (part, source) in enumerate(zip(context.spec.fields, context.sources, strict=True))
        if source is not None
    ]
    if not parts:
        yield (), tuple(None for _ in context.spec.fields), file_rows
        return
    for values, part in split_rows(file_rows, pl.DataFrame([series.alias(name) for name, series in parts])):
        tuple_ = tuple(values.get(str(number)) for number in range(len(context.spec.fields)))
        yield tuple(map(repr, tuple_)), tuple_, part  # NaN would be another key each time


def transform_values(values: pl.Series, transform: Transform, source: Field, column: str) -> pl.Series:
    """What a transform makes of values, as manifests record it."""
    if transform.name == "identity":
        return to_recorded_values(values)
    result = transform.result_type(source.type)
    assert result is not None, "a known transform that is not void gives a type"
    simple = _simplify(values, transform, column)
    if transform.name == "truncate" and (simple.dtype.is_integer() or simple.dtype.is_decimal()):
        _check_least(simple, transform, source, column)
    if transform.name == "bucket" and (numbers := to_recorded_values(simple)).dtype.is_integer():
        return number_buckets(numbers, transform.width)
    try:
        return to_recorded_values(
            map_values(simple, lambda value: transform.apply(value, source.type), polars_type(result))
        )
    except ValueError as error:
        raise UnsupportedTableError(
            f"the table is partitioned by {transform.text} of {column}, which is {source.type}: {error}",
            fix="have the table's partition spec corrected by the engine that owns it",
            place=column,
            kind="unsupported-transform",
        ) from error


def _simplify(values: pl.Series, transform: Transform, column: str) -> pl.Series:
    """Values of fewer kinds that the transform makes the same of, so that it is asked for less of them."""
    if isinstance(values.dtype, pl.Datetime) and transform.name in TEMPORAL:
        hour = _HOUR[values.dtype.time_unit]
        values = (values.to_physical() // hour * hour).cast(values.dtype)
    if isinstance(values.dtype, pl.Datetime) and values.dtype.time_unit == "ns":
        # "timestamp_ns ... must be converted to microseconds" before it is hashed
        values = (values.to_physical() // 1_000).cast(pl.Datetime("us", values.dtype.time_zone))
    if transform.name == "truncate" and values.dtype == pl.String:
        values = values.str.slice(0, transform.width)
    if in_calendar(values).null_count() > values.null_count():
        raise InvalidRequestError(
            f"column {column} holds a time before the year 1 or after 9999, which has no partition here",
            fix="correct the value, or leave the row out",
            place=column,
            kind="partition-value",
        )
    return values


def _check_least(values: pl.Series, transform: Transform, source: Field, column: str) -> None:
    """Refuses a value so small that truncating it, which goes down, leaves the type."""
    least: Any = values.min()
    end: Any
    match values.dtype:
        case pl.Decimal(precision=precision, scale=scale):
            end = exact_decimal(1 - 10**precision, scale)
        case _:
            end = -(2**31) if values.dtype == pl.Int32 else -(2**63)
    if least is not None and transform.apply(least, source.type) < end:
        raise InvalidRequestError(
            f"column {column} holds {least}, and {transform.text} of it, by which the table is partitioned, lies below "
            f"{end}, where the column's type ends",
            fix="correct the value, or leave the row out",
            place=column,
            kind="partition-value",
        )


def _values(rows: pa.Table, path: tuple[str, ...]) -> pl.Series:
    column = pl.from_arrow(rows.select([path[0]]))
    assert isinstance(column, pl.DataFrame)
    series = next(values for leaf, values in struct_leaves(column.get_columns()) if leaf == path)
    return series.alias("values")  # a name such as ^x$ would be a pattern to polars


def number_buckets(values: pl.Series, count: int) -> pl.Series:
    """The buckets of whole numbers, as `Transform.apply` gives them; null stays null."""
    bits = values.cast(pl.Int64).cast(pl.UInt64, wrap_numerical=True)
    state = pl.Series(values.name, [0], dtype=pl.UInt64).new_from_index(0, values.len())
    for block in (bits & _MASK, bits // (1 << 32)):
        block_hash = _rotate_left(block * 0xCC9E_2D51 & _MASK, 15) * 0x1B87_3593 & _MASK
        state = (_rotate_left(state ^ block_hash, 13) * 5 + 0xE654_6B64) & _MASK
    state = state ^ 8  # the length of what is hashed
    for shift, factor in ((16, 0x85EB_CA6B), (13, 0xC2B2_AE35)):
        state = (state ^ state // (1 << shift)) * factor & _MASK
    state = state ^ state // (1 << 16)
    return ((state & 0x7FFF_FFFF) % count).cast(pl.Int32)


def _rotate_left(numbers: pl.Series, places: int) -> pl.Series:
    """Numbers of 32 bits, turned to the left."""
    return (numbers * (1 << places) & _MASK) | numbers // (1 << (32 - places))
