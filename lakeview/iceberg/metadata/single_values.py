"""Single values as metadata writes them to typed ones: bounds in bytes, defaults in JSON (iceberg spec, Appendix D)."""

import re
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any
from uuid import UUID

import polars as pl

from lakeview.iceberg.metadata.transforms import exact_decimal, microseconds
from lakeview.model.data_types import ArrayType, DataType, DecimalType, Field, MapType, PrimitiveType, StructType

_FLOAT_OVERFLOW = (2 - 2**-24) * 2.0**127
"""Floats of 32 bits have no number from here on; those below round to one (Java writes the largest as 3.4028235E38)."""
_TIME_IN_NANOSECONDS = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:\+00:00|Z)?")
INITIAL_DEFAULT, WRITE_DEFAULT = "initial-default", "write-default"
"""A field's defaults, as its metadata has them: of rows from before the column, and of rows that leave it out."""
_DAY = {"us": 86_400_000_000, "ns": 86_400_000_000_000}
_FIRST, _LAST = -719_162, 2_932_896
"""The days that Python's calendar has: 0001-01-01 to 9999-12-31."""


def decoded_bounds(values: pl.Series, type_: DataType) -> pl.Series | None:
    """Bounds as bytes to values of a column's type; None for a type that has no bounds.

    Files written before the column was widened keep the narrow bytes. What does not fit is unknown: null.
    """
    match type_:
        case DecimalType(precision, scale):
            return map_values(values, lambda b: _decimal(b, precision, scale), pl.Decimal(precision, scale))
        case PrimitiveType(name):
            decode = _DECODERS.get(name)
            return None if decode is None else decode(values)
    return None


def sound_bounds(low: pl.Series, high: pl.Series, type_: DataType) -> tuple[pl.Series, pl.Series]:
    """Decoded bounds as ranges in the order in which values are compared here.

    The spec names no order of UUIDs: most writers compare bytes, Java's UUID two signed numbers of eight bytes each.
    Both agree on the first numbers of one sign; the second numbers are left open. Without such a range: null.
    """
    if type_ != PrimitiveType("uuid"):
        return low, high
    ranges = [_uuid_range(*pair) for pair in zip(low, high, strict=True)]
    return pl.Series([a for a, _ in ranges], dtype=pl.Binary), pl.Series([b for _, b in ranges], dtype=pl.Binary)


def _uuid_range(low: bytes | None, high: bytes | None) -> tuple[bytes | None, bytes | None]:
    if low is not None and low == high:
        return low, high
    if not low or not high or (low[0] ^ high[0]) & 0x80:
        return None, None
    return low[:8] + bytes(8), high[:8] + b"\xff" * 8


def _decimal(data: bytes, precision: int, scale: int) -> Decimal | None:
    number = int.from_bytes(data, "big", signed=True)
    return exact_decimal(number, scale) if data and len(str(abs(number))) <= precision else None


def map_values(values: pl.Series, change: Callable[[Any], Any], dtype: pl.DataType) -> pl.Series:
    """A function of each value; bounds and values of partitions repeat a lot, so that each is asked for once."""
    by_value = {v: change(v) for v in values.unique() if v is not None}
    return pl.Series(values.name, [None if v is None else by_value[v] for v in values], dtype=dtype)


def _read(values: pl.Series, dtype: pl.DataType) -> pl.Series:
    return values.bin.reinterpret(dtype=dtype, endianness="little")


def _first(a: pl.Series, b: pl.Series) -> pl.Series:
    return a.to_frame("a").with_columns(b.alias("b")).select(pl.coalesce("a", "b").alias(a.name)).to_series()


def _days(values: pl.Series) -> pl.Series:
    days = _read(values, pl.Int32())
    return days.set(~days.is_between(_FIRST, _LAST), None).cast(pl.Date)


def _moments(unit: str, zone: str | None) -> Callable[[pl.Series], pl.Series]:
    def decode(values: pl.Series) -> pl.Series:
        day = _DAY[unit]
        first, last = max(_FIRST * day, -(2**63)), min((_LAST + 1) * day, 2**63) - 1
        days = _read(values, pl.Int32()).cast(pl.Int64)  # of files from before a date became a time
        days = days.set(~days.is_between(-(-first // day), last // day), None)
        numbers = _first(_read(values, pl.Int64()), days * day)
        numbers = numbers.set(~numbers.is_between(first, last), None)
        return numbers.cast(pl.Datetime("ns" if unit == "ns" else "us")).dt.replace_time_zone(zone)

    return decode


def in_calendar(values: pl.Series) -> pl.Series:
    """Dates and times that Python has; null beyond: a moment that no calendar has cannot be shown."""
    match values.dtype:
        case pl.Date():
            first, last = _FIRST, _LAST
        case pl.Datetime(time_unit="us"):
            first, last = _FIRST * _DAY["us"], (_LAST + 1) * _DAY["us"] - 1
        case _:
            return values
    return values.set(~values.to_physical().is_between(first, last), None)


def python_values(values: pl.Series) -> list[Any]:
    """Values as Python's; dates and times beyond its calendar as their numbers."""
    there = in_calendar(values)
    objects = there.to_list()
    for place in (there.is_null() & values.is_not_null()).arg_true():
        objects[place] = int(values.to_physical()[place])
    return objects


def _time(values: pl.Series) -> pl.Series:
    micros = _read(values, pl.Int64())
    return (micros.set(~micros.is_between(0, _DAY["us"] - 1), None) * 1000).cast(pl.Time)


def text_values(values: pl.Series) -> pl.Series:
    """Bytes as texts; null for those that are no UTF-8."""
    try:
        return values.cast(pl.String)
    except pl.exceptions.ComputeError:  # there is no cast that leaves out what does not fit, strict or not
        return map_values(values, _utf8, pl.String())


def own_text(values: pl.Series) -> pl.Series:
    """Texts or bytes in memory of their own: as they come they hold on to all that was decoded with them."""
    if values.dtype not in (pl.String, pl.Binary):
        return values
    copy = pl.Series(values.name, values.to_arrow())
    # where nulls are is told by memory that the way there and back has not copied
    return copy.gather(pl.int_range(copy.len(), dtype=pl.UInt32, eager=True)) if copy.has_nulls() else copy


def _utf8(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


_DECODERS: dict[str, Callable[[pl.Series], pl.Series]] = {
    "boolean": lambda v: _read(v, pl.UInt8()).cast(pl.Boolean),
    "integer": lambda v: _read(v, pl.Int32()),
    "long": lambda v: _first(_read(v, pl.Int64()), _read(v, pl.Int32()).cast(pl.Int64)),
    "float": lambda v: _read(v, pl.Float32()),
    "double": lambda v: _first(_read(v, pl.Float64()), _read(v, pl.Float32()).cast(pl.Float64)),
    "date": _days,
    "time": _time,
    "timestamp_ntz": _moments("us", None),
    "timestamp": _moments("us", "UTC"),
    "timestamp_ns": _moments("ns", None),
    "timestamptz_ns": _moments("ns", "UTC"),
    "string": text_values,
    "uuid": lambda v: v,
    "fixed": lambda v: v,
    "binary": lambda v: v,
}


class NotAValueError(ValueError):
    """A JSON value that is none of its type."""


def single_value(value: Any, type_: DataType, default: str = INITIAL_DEFAULT) -> Any:
    """A default in JSON as a Python value of a column's type; structs as dicts by name, maps as pairs. `default`: which
    default of theirs the fields of structs have that it leaves out.

    NotAValueError if it is none.
    """
    if value is None:
        return None
    try:
        match type_:
            case DecimalType():
                return Decimal(value)
            case ArrayType(element):
                return [single_value(v, element, default) for v in value]
            case MapType(key, item):
                keys = [single_value(k, key, default) for k in value["keys"]]
                return list(zip(keys, (single_value(v, item, default) for v in value["values"]), strict=True))
            case StructType(fields):
                return {f.name: _part(value, f, default) for f in fields}
            case PrimitiveType(name):
                return _primitive(value, name, type_)
    except (ValueError, TypeError, KeyError, AttributeError, InvalidOperation, pl.exceptions.PolarsError) as error:
        raise NotAValueError(f"{value!r} is no {type_}") from error


def default_value(value: Any, field: Field, default: str = INITIAL_DEFAULT) -> Any:
    """A default of a column as `single_value` gives it; NotAValueError too for a fixed one of another length."""
    python_value, length = single_value(value, field.type, default), field.metadata.get("length")
    if isinstance(python_value, bytes) and length is not None and len(python_value) != length:
        raise NotAValueError(f"{value!r} is no fixed[{length}]")
    return python_value


def _part(value: Any, field: Field, default: str) -> Any:
    """A field of a struct's default: its own value there, else the default that the field has itself."""
    # "If a field value is missing from a struct's write-default, the field's write-default must be used for the field"
    own = value.get(str(field.id))
    return default_value(field.metadata.get(default) if own is None else own, field, default)


def _primitive(value: Any, name: str, type_: DataType) -> Any:
    match name:
        case "boolean" if isinstance(value, bool):
            return value
        case "integer" | "long" if isinstance(value, int) and not isinstance(value, bool):
            return value
        case "float" | "double" if isinstance(value, int | float | str):
            number = float(value)
            if name == "double" or not isfinite(number) or abs(number) < _FLOAT_OVERFLOW:
                return number
        case "string" if isinstance(value, str):
            return value
        case "uuid":
            return UUID(value).bytes
        case "fixed" | "binary":
            return bytes.fromhex(value)
        case "date":
            return date.fromisoformat(value)
        case "time":
            return time.fromisoformat(value)
        case "timestamp" | "timestamp_ntz":
            return datetime.fromisoformat(value)
        case "timestamp_ns" | "timestamptz_ns":
            return _nanoseconds(value)
    raise NotAValueError(f"{value!r} is no {type_}")


def _nanoseconds(text: str) -> int:
    """Nanoseconds since 1970, which Python's own times are too coarse for."""
    parts = _TIME_IN_NANOSECONDS.fullmatch(text)
    if parts is None:
        raise ValueError(f"{text} is no time")
    number = microseconds(datetime.fromisoformat(parts[1])) * 1000 + int((parts[2] or "0").ljust(9, "0"))
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{text} lies beyond the nanoseconds of 64 bits")
    return number
