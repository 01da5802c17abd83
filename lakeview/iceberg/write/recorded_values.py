"""Values to what manifests record: numbers for dates and times, and bytes for bounds (iceberg spec, Appendix D)."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any

import polars as pl

from lakeview.iceberg.metadata.transforms import minimal_bytes, unscaled_integer
from lakeview.model.data_types import DataType, DecimalType, PrimitiveType

_FORMATS = {
    "integer": "<i", "long": "<q", "float": "<f", "double": "<d", "date": "<i", "time": "<q", "timestamp": "<q",
    "timestamp_ntz": "<q", "timestamp_ns": "<q", "timestamptz_ns": "<q", "boolean": "<?",
}  # fmt: skip


def to_recorded_values(values: pl.Series) -> pl.Series:
    """Dates as days, times as microseconds, timestamps in their own unit, all since 1970 or midnight; others as they
    are."""
    match values.dtype:
        case pl.Time():
            return values.to_physical() // 1_000
        case pl.Date() | pl.Datetime():
            return values.to_physical()
    return values


def single_bytes(value: Any, type_: DataType) -> bytes | None:
    """A recorded value as a bound; None for one that has no order which all readers share: a uuid, NaN."""
    match value, type_:
        case (None, _) | (_, PrimitiveType("uuid")):
            return None
        case Decimal(), DecimalType():
            return minimal_bytes(unscaled_integer(value))
        case str(), _:
            return value.encode()
        case bytes(), _:
            return value
        case float(), _ if value != value:
            return None
        case _, PrimitiveType(name) if name in _FORMATS:
            return struct.pack(_FORMATS[name], value)
    return None


def outer_zero(value: Any, side: int) -> Any:
    """A bound, the lower one for 0 and the upper one for 1, where a zero is -0.0 or 0.0: readers order them."""
    return math.copysign(0.0, side - 0.5) if isinstance(value, float) and value == 0.0 else value


def lower_cut(value: Any, width: int | None) -> Any:
    """A text or bytes of at most so many code points or bytes, and not above the value."""
    return value if width is None or not isinstance(value, str | bytes) else value[:width]


def upper_cut(value: Any, width: int | None) -> Any:
    """A text or bytes of at most so many code points or bytes, and not below the value; None where there is none."""
    if width is None or not isinstance(value, str | bytes) or len(value) <= width:
        return value
    return _text_above(value[:width]) if isinstance(value, str) else _bytes_above(value[:width])


def _text_above(text: str) -> str | None:
    """The least text above all that begin with this one: its last code point that can be raised is."""
    for at in range(len(text) - 1, -1, -1):
        point = ord(text[at]) + 1
        point = 0xE000 if point == 0xD800 else point  # surrogates are no code points of texts
        if point <= 0x10FFFF:
            return text[:at] + chr(point)
    return None


def _bytes_above(data: bytes) -> bytes | None:
    head = data.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None
