"""Partition transforms: their names to values, exactly as the spec computes them (iceberg spec, Partition Transforms).

A null stays null. Times count from 1970 and floor before it: 1969-12-31 lies in year -1.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from lakeview.model.data_types import DataType, DecimalType, PrimitiveType

TEMPORAL = ("year", "month", "day", "hour")
_PARAMETER = re.compile(r"(bucket|truncate)\[\s*(\d{1,10})\s*\]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Transform:
    """What makes a partition value of a column. `name`: identity, bucket, truncate, year, month, day, hour, void, or
    unknown; `width`: buckets, or what values are cut to; `text` as recorded."""

    name: str
    text: str
    width: int = 0

    def result_type(self, source: DataType | None) -> DataType | None:
        """The type of the values in partition tuples; None where only the manifest knows."""
        match self.name:
            case "identity" | "truncate" | "void":
                return source
            case "bucket" | "year" | "month" | "hour":
                return PrimitiveType("integer")
            case "day":
                return PrimitiveType("date")
        return None

    def apply(self, value: Any, type_: DataType) -> Any:
        """The partition value of one value: int, Decimal, str, bytes, date, time or datetime; a day is a date.

        ValueError where the transform has no rule for the type, or is unknown.
        """
        if value is None or self.name == "void":
            return None
        match self.name:
            case "identity":
                return value
            case "bucket":
                return (murmur3(_hashed_bytes(value, type_)) & 0x7FFF_FFFF) % self.width
            case "truncate":
                return _truncate(value, self.width)
            case "year" | "month" | "day" | "hour":
                return _period(self.name, value)
        raise ValueError(f"there is no rule for the transform {self.text}")


def parse_transform(text: str) -> Transform:
    """A transform as a spec names it. One that is not known is `unknown`: shown, and ignored when pruning."""
    if text in ("identity", "void", *TEMPORAL):
        return Transform(text, text)
    match = _PARAMETER.fullmatch(text)
    if match is None or int(match[2]) == 0:
        return Transform("unknown", text)
    return Transform(match[1], text, int(match[2]))


def _period(name: str, value: Any) -> Any:
    if not isinstance(value, date):  # a datetime is one
        raise ValueError(f"{value!r} is no date or time to take the {name} of")
    if name == "hour":
        if not isinstance(value, datetime):
            raise ValueError("a date has no hour")
        return microseconds(value) // 3_600_000_000
    if isinstance(value, datetime):
        value = date(1970, 1, 1) + timedelta(days=microseconds(value) // _DAY)
    return {"year": value.year - 1970, "month": (value.year - 1970) * 12 + value.month - 1, "day": value}[name]


def microseconds(value: datetime) -> int:
    """Microseconds since 1970 of an instant, or of a zoneless time as it stands."""
    return ((value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def _truncate(value: Any, width: int) -> Any:
    match value:
        case bool():
            raise ValueError("there is no rule for truncating a boolean")
        case int():
            return value - value % width
        case Decimal():
            number = unscaled_integer(value)
            return exact_decimal(number - number % width, -int(value.as_tuple().exponent))
        case str() | bytes():
            return value[:width]  # code points of a text, neither bytes nor UTF-16 units
    raise ValueError(f"there is no rule for truncating {value!r}")


def above_prefix(prefix: str | bytes) -> str | bytes | None:
    """The least text, or bytes, above all that begin with this prefix: its last code point, or byte, that can be raised
    is; None where there is none."""
    if isinstance(prefix, bytes):
        head = prefix.rstrip(b"\xff")
        return head[:-1] + bytes([head[-1] + 1]) if head else None
    for at in range(len(prefix) - 1, -1, -1):
        point = ord(prefix[at]) + 1
        if point <= 0x10FFFF:
            return prefix[:at] + chr(0xE000 if point == 0xD800 else point)  # surrogates are no code points of texts
    return None


def exact_decimal(number: int, scale: int) -> Decimal:
    """A whole number with its last `scale` digits behind the point, of any length: arithmetic rounds to 28 digits."""
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def unscaled_integer(value: Decimal) -> int:
    """All digits of a decimal as one whole number."""
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits)) or "0")
    return -number if sign else number


def _hashed_bytes(value: Any, type_: DataType) -> bytes:
    """The bytes a bucket hashes (Appendix B). Numbers and times are widened to 64 bits first."""
    match value:
        case bool() | float():
            raise ValueError(f"{type_} has no buckets")
        case int():
            return value.to_bytes(8, "little", signed=True)
        case datetime():
            return microseconds(value).to_bytes(8, "little", signed=True)
        case date():
            return (value - date(1970, 1, 1)).days.to_bytes(8, "little", signed=True)
        case time():
            since = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
            return since.to_bytes(8, "little", signed=True)
        case Decimal():
            if isinstance(type_, DecimalType):
                exponent = type_.scale + int(value.as_tuple().exponent)
                if exponent < 0:
                    raise ValueError(f"{value} has more digits than {type_}")
                return minimal_bytes(unscaled_integer(value) * 10**exponent)
            return minimal_bytes(unscaled_integer(value))
        case str():
            return value.encode()
        case bytes():
            return value
    raise ValueError(f"{type_} has no buckets")


def minimal_bytes(number: int) -> bytes:
    """A number in two's complement, the most significant byte first, in as few bytes as hold it."""
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(length, "big", signed=True)


def murmur3(data: bytes) -> int:
    """MurmurHash3, the 32-bit variant for x86 with seed 0, as an unsigned number."""
    mask, state, whole = 0xFFFF_FFFF, 0, len(data) - len(data) % 4

    def mix(block: int) -> int:
        block = block * 0xCC9E_2D51 & mask
        return ((block << 15 | block >> 17) & mask) * 0x1B87_3593 & mask

    for start in range(0, whole, 4):
        state ^= mix(int.from_bytes(data[start : start + 4], "little"))
        state = ((state << 13 | state >> 19) * 5 + 0xE654_6B64) & mask
    if whole < len(data):
        state ^= mix(int.from_bytes(data[whole:], "little"))
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EB_CA6B & mask
    state = (state ^ state >> 13) * 0xC2B2_AE35 & mask
    return state ^ state >> 16
