"""Bounds of a partition column to bounds of the column that it was made from (iceberg spec, Partition Transforms)."""

import polars as pl

from lakeview.iceberg.manifests.partitions import PartitionColumn
from lakeview.iceberg.metadata.single_values import map_values
from lakeview.iceberg.metadata.transforms import above_prefix
from lakeview.model.data_types import DataType
from lakeview.model.errors import UnsupportedTableError
from lakeview.model.schema import polars_type

_BIGGEST_YEAR = 9000


def source_bounds(column: PartitionColumn, low: pl.Series, high: pl.Series) -> tuple[pl.Series, pl.Series, bool] | None:
    """What partition values from `low` to `high` say of the source column: its bounds, and whether both occur.

    None where they say nothing that bounds can express: buckets, void, unknown transforms.
    """
    transform, source = column.field.transform, column.source
    if source is None:
        return None
    match transform.name:
        case "identity":
            return low, high, True
        case "truncate":
            return _truncated_range(low, high, transform.width)
        case "year" | "month" | "day" | "hour":
            return _periods(transform.name, source.type, low, high)
    return None


def _truncated_range(low: pl.Series, high: pl.Series, width: int) -> tuple[pl.Series, pl.Series, bool] | None:
    """The values that are cut to these; ends are null where there is none to name."""
    dtype = high.dtype
    if dtype.is_integer():
        # of the least numbers of 32 and 64 bits what they are cut to is out of range: Java makes it one of the largest
        last = high.cast(pl.Int64)
        wraps = last.is_between(2**31 - width, 2**31 - 1) | (last >= 2**63 - width)
        return low.set(wraps, None), last.set(wraps, None) + (width - 1), False
    if isinstance(dtype, pl.String | pl.Binary):
        return low, map_values(high, lambda v: v if len(v) < width else above_prefix(v), dtype), False
    return None


def _periods(name: str, type_: DataType, low: pl.Series, high: pl.Series) -> tuple[pl.Series, pl.Series, bool] | None:
    """The first and the last moment of the periods. Some old Java writers cut times before 1970 towards zero, so that
    a period at or below zero may also hold the one before it."""
    try:
        dtype = polars_type(type_)
    except UnsupportedTableError:
        return None
    if not isinstance(dtype, pl.Date | pl.Datetime):
        return None
    first, last = _number(low), _number(high)
    first = pl.select(pl.when(first <= 0).then(first - 1).otherwise(first)).to_series()
    starts, ends = _start(name, first, dtype), _start(name, last + 1, dtype)
    if isinstance(dtype, pl.Date):
        return starts, (ends.to_physical() - 1).cast(pl.Date), False
    return starts, (ends.to_physical() - 1).cast(dtype), False


def _number(values: pl.Series) -> pl.Series:
    return values.to_physical().cast(pl.Int64)


def _start(name: str, number: pl.Series, dtype: pl.DataType) -> pl.Series:
    """When a period begins; null for one far beyond the calendar."""
    v = pl.col("v")
    limit = {"year": 1, "month": 12, "day": 366, "hour": 366 * 24}[name] * _BIGGEST_YEAR
    if isinstance(dtype, pl.Datetime) and dtype.time_unit == "ns":
        limit //= 32  # nanoseconds reach from 1677 to 2262
    v = pl.when(v.is_between(-limit // 5, limit)).then(v).otherwise(None)
    begin = {
        "year": lambda: pl.datetime(1970 + v, 1, 1),
        "month": lambda: pl.datetime(1970 + v // 12, v % 12 + 1, 1),
        "day": lambda: v.cast(pl.Int32).cast(pl.Date).cast(pl.Datetime("us")),
        "hour": lambda: (v * 3_600_000_000).cast(pl.Datetime("us")),
    }[name]()
    start = number.to_frame("v").select(begin.alias("v")).to_series()
    if isinstance(dtype, pl.Datetime):
        return start.cast(pl.Datetime(dtype.time_unit)).dt.replace_time_zone(dtype.time_zone)
    return start.cast(pl.Date)
