"""JSON text to variant binaries (Parquet, Variant Binary Encoding), as Spark's `parse_json` takes it."""

import json
import math
import struct
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NoReturn

import pyarrow as pa

from lakeview.model import limits
from lakeview.model.arrow_types import STORED_VARIANT
from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import shorten

_TEXT_LENGTH = 80
_SHORT_TEXT = 64
_INTEGERS = ((1, 3), (2, 4), (4, 5), (8, 6))
"""Bytes of a whole number, and the type id of that size."""
_DECIMALS = ((9, 4, 8), (18, 8, 9), (38, 16, 10))
"""Digits of a decimal at most, the bytes of its unscaled value, and its type id."""


def variant_binaries(texts: pa.Array, column: str) -> pa.StructArray:
    """JSON texts as variants (STORED_VARIANT); null is null, the text `null` the variant null.

    Numbers are whole numbers or decimals of the digits written, doubles with an exponent or beyond 38 digits.
    InvalidRequestError (kind variant-text) shows a text that is no JSON, or has a name twice in one object.
    """
    return pa.array([None if text is None else _row(text, column) for text in texts.to_pylist()], STORED_VARIANT)


def _row(text: str, column: str) -> dict[str, bytes]:
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_int=Decimal, parse_float=_real, parse_constant=_no_constant
        )
        names: set[str] = set()
        _collect(value, names, 0)
        sorted_names = sorted(name.encode() for name in names)
        places = {name.decode(): place for place, name in enumerate(sorted_names)}
        return {"metadata": dictionary(sorted_names), "value": _value(value, places)}
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError(
            f"column {column} is a variant, and {shorten(text, _TEXT_LENGTH)!r} is no JSON that one can hold: {error}",
            fix='write JSON text, a string as "text" with its quotes',
            place=column,
            kind="variant-text",
        ) from error


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        (name, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"an object has two fields called {shorten(name, _TEXT_LENGTH)}")
    return fields


def _real(text: str) -> Decimal | float:
    return float(text) if "e" in text.lower() else Decimal(text)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _collect(value: Any, names: set[str], depth: int) -> None:
    if not isinstance(value, dict | list):
        return
    if depth >= limits.VARIANT_DEPTH:  # as readers count
        raise ValueError(f"it is nested deeper than {limits.VARIANT_DEPTH} levels")
    if isinstance(value, dict):
        names.update(value)
    for inner in value.values() if isinstance(value, dict) else value:
        _collect(inner, names, depth + 1)


def dictionary(names: Sequence[bytes], *, is_sorted: bool = True) -> bytes:
    """The metadata that is the dictionary of these names."""
    offsets = _offsets(names)
    width = byte_width(max(len(names), offsets[-1]))
    header = bytes([1 | is_sorted << 4 | (width - 1) << 6])  # version 1
    return header + pack([len(names), *offsets], width) + b"".join(names)


def _value(value: Any, places: dict[str, int]) -> bytes:
    match value:
        case None:
            return b"\x00"
        case bool():
            return bytes([(1 if value else 2) << 2])
        case Decimal():
            return _number(value)
        case float():
            return _double(value)
        case str():
            return text(value.encode())
        case dict():
            # "field ids and offsets must be listed in the order of the corresponding field names"
            fields = sorted(value.items(), key=lambda item: places[item[0]])
            return container(2, [_value(v, places) for _, v in fields], [places[name] for name, _ in fields])
    return container(3, [_value(v, places) for v in value], None)


def _number(value: Decimal) -> bytes:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # of a finite number
    scale = -exponent
    if len(digits) <= _DECIMALS[-1][0]:
        digits_as_int = unscaled_integer(value)
        for size, kind in () if scale else _INTEGERS:
            if -(1 << 8 * size - 1) <= digits_as_int < 1 << 8 * size - 1:
                return bytes([kind << 2]) + digits_as_int.to_bytes(size, "little", signed=True)
        for most, _, _ in _DECIMALS:
            if len(digits) <= most and scale <= most:
                return decimal(digits_as_int, most, scale)
    return _double(float(value))


def unscaled_integer(value: Decimal) -> int:
    """All digits of a decimal, with its sign and without its point."""
    sign, digits, _ = value.as_tuple()
    return int("".join(map(str, digits))) * (-1 if sign else 1)


def decimal(unscaled_value: int, precision: int, scale: int) -> bytes:
    """A decimal of a type of so many digits, at most 38."""
    size, kind = next((size, kind) for most, size, kind in _DECIMALS if precision <= most)
    return bytes([kind << 2, scale]) + unscaled_value.to_bytes(size, "little", signed=True)


def text(data: bytes) -> bytes:
    """The text of these bytes of UTF-8."""
    short = len(data) < _SHORT_TEXT
    return (bytes([len(data) << 2 | 1]) if short else bytes([16 << 2]) + pack([len(data)], 4)) + data


def _double(value: float) -> bytes:
    if not math.isfinite(value):
        raise ValueError("a number in it is larger than any double")
    return bytes([7 << 2]) + struct.pack("<d", value)


def container(basic: int, values: Sequence[bytes], ids: Sequence[int] | None) -> bytes:
    """An object (2), whose fields have ids, or an array (3)."""
    offsets = _offsets(values)
    width = byte_width(offsets[-1])
    large = len(values) > 0xFF
    id_width = byte_width(max(ids, default=0)) if ids is not None else 1
    header = width - 1 | (large << 2 if ids is None else id_width - 1 << 2 | large << 4)
    count = pack([len(values)], 4 if large else 1)
    return bytes([header << 2 | basic]) + count + pack(ids or (), id_width) + pack(offsets, width) + b"".join(values)


def _offsets(parts: Sequence[bytes]) -> list[int]:
    offsets = [0]
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    return offsets


def byte_width(largest: int) -> int:
    """Bytes that a number takes."""
    return max(1, (largest.bit_length() + 7) // 8)


def pack(numbers: Sequence[int], width: int) -> bytes:
    """Numbers of so many bytes each, the lowest first."""
    return b"".join(number.to_bytes(width, "little") for number in numbers)
