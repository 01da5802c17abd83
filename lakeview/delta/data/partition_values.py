"""Partition values: recorded text to typed columns, and back (delta protocol, Partition Value Serialization)."""

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import polars as pl

from lakeview.delta.data.schemas import broken_schema
from lakeview.model.data_types import (
    VARIANT,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
)
from lakeview.model.errors import CorruptTableError
from lakeview.model.partition_texts import escape
from lakeview.model.printable import shorten
from lakeview.model.schema import Schema, polars_type

_MAX_SHOWN_CHARACTERS = 100
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, in days since 1970
_ZONELESS = "%Y-%m-%dT%H:%M:%S%.f"


def parse_values(text: pl.Series, type_: DataType) -> pl.Series:
    """Recorded text as values: "An empty string for any type translates to a null partition value".

    What cannot be read as the type is null here as well: `partition_columns` tells it from a null that was meant.
    A timestamp without zone is read as UTC: the writer's zone is recorded nowhere.
    """
    text = text.set(text == "", None)  # Series.replace takes seventy microseconds, for one constant of a filter too
    match type_:
        case PrimitiveType("string"):
            return text
        case PrimitiveType("boolean"):
            return text.str.to_lowercase().replace_strict(
                {"true": True, "false": False}, default=None, return_dtype=pl.Boolean
            )
        case PrimitiveType("date"):
            return text.str.to_date("%Y-%m-%d", strict=False)
        case PrimitiveType("timestamp"):
            return instants(text)
        case PrimitiveType("timestamp_ntz"):
            return _with_time(text).str.to_datetime(_ZONELESS, time_unit="us", strict=False)
        case PrimitiveType("binary"):
            return text.cast(pl.Binary)
        case DecimalType():
            return _decimals(text, type_)
    return text.cast(polars_type(type_), strict=False)


def _decimals(text: pl.Series, type_: DecimalType) -> pl.Series:
    values = text.cast(polars_type(type_), strict=False)
    distinct = text.drop_nulls().unique()
    cut = [value for value in distinct if _digits_behind_point(value) > type_.scale]
    return values.set(text.is_in(pl.Series(cut, dtype=pl.String).implode()), None) if cut else values


def _digits_behind_point(text: str) -> int:
    """Digits that are not 0, of a text that may be no number."""
    try:
        _, digits, exponent = Decimal(text).as_tuple()
    except InvalidOperation:
        return 0
    count = len("".join(map(str, digits)).rstrip("0"))
    return count - len(digits) - exponent if count and isinstance(exponent, int) else 0


def instants(text: pl.Series) -> pl.Series:
    """Timestamps with a zone, with Z or without (then UTC), a blank or a T between date and time, or a day alone."""
    text = _with_time(text)
    has_zone = text.str.contains(r"[+-]\d\d:?\d\d$")
    naive = text.str.strip_suffix("Z").str.to_datetime(_ZONELESS, time_unit="us", strict=False)
    if not has_zone.any():
        return naive.dt.replace_time_zone("UTC")
    offset = text.str.to_datetime(f"{_ZONELESS}%:z", time_unit="us", strict=False).dt.convert_time_zone("UTC")
    return pl.select(
        pl.when(has_zone).then(offset).otherwise(naive.dt.replace_time_zone("UTC")).alias(text.name)
    ).to_series()


def _with_time(text: pl.Series) -> pl.Series:
    """A T between date and time; midnight for a day alone, which is what a date that became a timestamp is."""
    return text.str.replace(" ", "T").str.replace(r"^(\d{4}-\d\d-\d\d)$", "${1}T00:00:00")


def partition_columns(values: pl.Series, fields: Sequence[Field]) -> list[pl.Series]:
    """A column of partitionValues maps to one typed series a partition column, under its logical name.

    A column that a file has no value for is null. CorruptTableError names a value that is none of the type.
    """
    maps = values.to_frame("values")
    columns = []
    for field in fields:  # a series called ^x$ would be a pattern to polars: names come last
        text = maps.select(pl.col("values").map.get(field.stored_name)).to_series().alias("text")
        column = parse_values(text, field.type)
        column = within_calendar(column)
        bad = column.is_null() & text.is_not_null() & (text != "") if column.null_count() else None
        if bad is not None and bad.any():
            value = text.filter(bad)[0]
            literal = repr(shorten(value, _MAX_SHOWN_CHARACTERS))
            raise CorruptTableError(
                f"partition value {literal} of column {field.name} is no {field.type}",
                fix="the add action that records it is broken; its writer has to correct it",
                place=field.name,
                kind="corrupt-partition-value",
            )
        columns.append(column.alias(field.name))
    return columns


def calendar(values: pl.Series) -> pl.Series:
    """Whether each date or time lies in the years 1 to 9999; true for other types, null for null."""
    if not isinstance(values.dtype, pl.Date | pl.Datetime):
        return pl.repeat(True, values.len(), eager=True)
    # a series called ^x$ would be a pattern to polars
    return values.alias("values").to_physical().is_between(*_calendar_ends(values.dtype))


def _calendar_ends(type_: pl.Date | pl.Datetime) -> tuple[int, int]:
    units = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
    day = units[type_.time_unit] if isinstance(type_, pl.Datetime) else 1
    return _FIRST_DAY * day, (_LAST_DAY + 1) * day - 1


def within_calendar(values: pl.Series) -> pl.Series:
    """Dates and times, null where they lie outside the years 1 to 9999: Python has no such day, and a value has to
    travel with its task. Values of other types as they are."""
    if not isinstance(values.dtype, pl.Date | pl.Datetime):
        return values
    numbers = values.cast(pl.Int64)
    first, last = _calendar_ends(values.dtype)
    least, greatest = numbers.min(), numbers.max()  # a query that looks at each takes longer than all else here
    if isinstance(least, int) and isinstance(greatest, int) and (least < first or greatest > last):
        return values.set(~calendar(values), None)
    return values


def partition_text(values: pl.Series, fields: Sequence[Field]) -> pl.Series:
    """Partition values for people: `month=3/day=2`, `month=null`, `path=a%2Fb`, `name="null"` of a text."""
    maps = values.to_frame("values")
    parts: list[pl.Expr] = []
    for i, field in enumerate(fields):
        text = pl.col("values").map.get(field.stored_name)
        parts += [pl.lit(("/" if i else "") + field.name + "="), escape(text.replace("", None))]
    return maps.select(pl.concat_str(parts).alias("partition_text")).to_series()


def partition_fields(schema: Schema, columns: Sequence[str]) -> list[Field]:
    """The fields of the partition columns. CorruptTableError for one that cannot be one."""
    fields = []
    for name in columns:
        if name not in schema:
            raise _no_partition_column(f"{name} is not in the schema")
        if columns.count(name) > 1:
            raise _no_partition_column(f"{name} is named twice")
        if isinstance(schema[name].type, ArrayType | MapType | StructType) or schema[name].type == VARIANT:
            raise _no_partition_column(f"{name} is {schema[name].type}, which no text can stand for")
        fields.append(schema[name])
    return fields


def _no_partition_column(what: str) -> CorruptTableError:
    return broken_schema(f"partition column {what}", "metaData.partitionColumns")


def serialize(value: Any) -> str | None:
    """One typed value as the log records it; null and the empty string are null. Timestamps in UTC, ISO 8601."""
    match value:
        case None | "":
            return None
        case bool():
            return "true" if value else "false"
        case datetime():
            zone = "" if value.tzinfo is None else "Z"
            moment = value if value.tzinfo is None else value.astimezone(UTC)
            separator = " " if value.tzinfo is None else "T"
            return moment.strftime(f"%Y-%m-%d{separator}%H:%M:%S.%f").zfill(26) + zone
        case date():
            return value.isoformat()
        case float() if math.isnan(value) or math.isinf(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case Decimal():
            return format(value, "f")
        case bytes():
            return value.decode("utf-8", errors="surrogateescape")
    return str(value)
