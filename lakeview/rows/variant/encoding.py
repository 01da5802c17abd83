"""Variant binaries to JSON text (Parquet, Variant Binary Encoding).

Every offset and count is checked against the bytes that are there before it is followed, so that a value costs no more
than its length allows.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakeview.model import limits
from lakeview.rows.variant import literals

_VERSION = 1

Pairs = list[tuple[bytes, str]]


class BrokenVariantError(Exception):
    """Bytes that are no variant; the message says why. Becomes a CorruptTableError where column and row are known."""


@dataclass(slots=True)
class Budget:
    """How much text may still be written."""

    characters: int = limits.VARIANT_CHARACTERS

    def spend(self, size: int) -> None:
        """Count text; BrokenVariantError beyond the limit."""
        self.characters -= size
        if self.characters < 0:
            raise BrokenVariantError(
                f"the values of one batch come to more than {limits.VARIANT_CHARACTERS} characters of text"
            )


class Names:
    """The dictionary of field names in a variant's metadata; each name is decoded when it is first asked for."""

    def __init__(self, metadata: bytes) -> None:
        if not metadata:
            raise BrokenVariantError("its metadata is empty")
        header = metadata[0]
        if header & 0x0F != _VERSION:
            raise BrokenVariantError(f"its metadata has version {header & 0x0F}, {_VERSION} was expected")
        self._data = metadata
        self._width = width = (header >> 6) + 1
        self._count = _number(metadata, 1, width)
        self._start = 1 + width * (self._count + 2)
        if self._start > len(metadata):
            raise BrokenVariantError(f"its metadata claims {self._count} names in {len(metadata)} bytes")
        self._entries: dict[int, tuple[bytes, str]] = {}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> tuple[bytes, str]:
        """The name as bytes (they sort as the specification asks), and as JSON text with its colon."""
        entry = self._entries.get(index)
        if entry is None:
            if index >= self._count:
                raise BrokenVariantError(f"it names field {index} of a dictionary of {self._count}")
            at = 1 + self._width * (index + 1)
            begin = self._start + _number(self._data, at, self._width)
            end = self._start + _number(self._data, at + self._width, self._width)
            if not begin <= end <= len(self._data):
                raise BrokenVariantError(f"name {index} of its metadata lies outside of it")
            name = self._data[begin:end]
            entry = self._entries[index] = (name, f"{_text(name)}:")
        return entry


def value_text(data: bytes, names: Names, budget: Budget) -> str:
    """A value as JSON text; BrokenVariantError where it is none."""
    text = _value(data, 0, names, budget, 0)[0]
    budget.spend(len(text))
    return text


def object_fields(data: bytes, names: Names, budget: Budget) -> Pairs | None:
    """The fields of a value as (name, `"name":value` text), in the order stored; None if it is no object."""
    if not data or data[0] & 0x03 != 2:
        return None
    pairs, _ = _fields(data, 0, names, budget, 0)
    budget.spend(sum(len(text) for _, text in pairs))
    return pairs


def object_parts(data: bytes, names: Names, budget: Budget) -> list[tuple[bytes, bytes]] | None:
    """The fields of a value as (name, bytes of the value), in the order stored; None if it is no object."""
    if not data or data[0] & 0x03 != 2:
        return None
    places: list[slice] = []
    pairs, _ = _fields(data, 0, names, budget, 0, places)
    return [(name, data[place]) for (name, _), place in zip(pairs, places, strict=True)]


def object_text(pairs: Pairs) -> str:
    """Fields as one JSON object."""
    return f"{{{','.join(text for _, text in pairs)}}}"


def _value(data: bytes, at: int, names: Names, budget: Budget, depth: int) -> tuple[str, int]:
    """The text of the value at a place, and where it ends."""
    if at >= len(data):
        raise BrokenVariantError("it ends in the middle of a value")
    header = data[at] >> 2
    match data[at] & 0x03:
        case 0:
            return _primitive(data, at + 1, header)
        case 1:
            return _text(_slice(data, at + 1, header)), at + 1 + header
        case 2:
            pairs, end = _fields(data, at, names, budget, depth)
            return object_text(pairs), end
    return _array(data, at, names, budget, depth)


def _fields(
    data: bytes, at: int, names: Names, budget: Budget, depth: int, places: list[slice] | None = None
) -> tuple[Pairs, int]:
    """The fields of the object at a place, and where it ends. `places`: takes where their values are."""
    header = data[at] >> 2
    offset_width, id_width = (header & 0x03) + 1, (header >> 2 & 0x03) + 1
    count, ids = _count(data, at + 1, 4 if header & 0x10 else 1)
    offsets = ids + count * id_width
    values = offsets + (count + 1) * offset_width
    end = _end(data, offsets + count * offset_width, values, offset_width)
    _deeper(depth)
    pairs: Pairs = []
    room = end - values
    for i in range(count):
        name, key = names[_number(data, ids + i * id_width, id_width)]
        start = values + _number(data, offsets + i * offset_width, offset_width)
        text, stop = _value(data, start, names, budget, depth + 1)
        room -= _within(start, stop, end)
        # values may be stored in any order but not twice: otherwise few bytes would unfold into any number
        if room < 0:
            raise BrokenVariantError("fields of an object share their bytes")
        budget.spend(len(key))
        pairs.append((name, key + text))
        if places is not None:
            places.append(slice(start, stop))
    if len({name for name, _ in pairs}) < count:
        raise BrokenVariantError("an object has two fields of the same name")
    return pairs, end


def _array(data: bytes, at: int, names: Names, budget: Budget, depth: int) -> tuple[str, int]:
    header = data[at] >> 2
    width = (header & 0x03) + 1
    count, offsets = _count(data, at + 1, 4 if header & 0x04 else 1)
    values = offsets + (count + 1) * width
    end = _end(data, offsets + count * width, values, width)
    _deeper(depth)
    texts = []
    room = end - values
    for i in range(count):
        start = values + _number(data, offsets + i * width, width)
        text, stop = _value(data, start, names, budget, depth + 1)
        room -= _within(start, stop, end)
        if room < 0:
            raise BrokenVariantError("elements of an array share their bytes")
        texts.append(text)
    return f"[{','.join(texts)}]", end


def _deeper(depth: int) -> None:
    if depth >= limits.VARIANT_DEPTH:
        raise BrokenVariantError(f"it is nested deeper than {limits.VARIANT_DEPTH} levels")


def _within(start: int, stop: int, end: int) -> int:
    if stop > end:
        raise BrokenVariantError("a value goes on behind the end of what holds it")
    return stop - start


def _count(data: bytes, at: int, width: int) -> tuple[int, int]:
    count = _number(data, at, width)
    if count > len(data) - at:  # each element takes a byte or more
        raise BrokenVariantError(f"it claims {count} elements in {len(data)} bytes")
    return count, at + width


def _end(data: bytes, last_offset: int, values: int, width: int) -> int:
    end = values + _number(data, last_offset, width)
    if end > len(data):
        raise BrokenVariantError("it ends in the middle of a value")
    return end


def _number(data: bytes, at: int, width: int) -> int:
    return int.from_bytes(_slice(data, at, width), "little")


def _slice(data: bytes, at: int, size: int) -> bytes:
    part = data[at : at + size]
    if len(part) < size:
        raise BrokenVariantError("it ends in the middle of a value")
    return part


def _text(data: bytes) -> str:
    try:
        return literals.quote(data.decode())
    except UnicodeDecodeError as error:
        raise BrokenVariantError("a text in it is not UTF-8") from error


def _integer(data: bytes) -> str:
    return str(int.from_bytes(data, "little", signed=True))


def _decimal(data: bytes) -> str:
    if data[0] > limits.VARIANT_SCALE:
        raise BrokenVariantError(f"a decimal in it has scale {data[0]}, at most {limits.VARIANT_SCALE} was expected")
    return literals.decimal(int.from_bytes(data[1:], "little", signed=True), data[0])


def _timestamp(digits: int, has_zone: bool) -> Callable[[bytes], str]:
    return lambda data: literals.timestamp(int.from_bytes(data, "little", signed=True), digits, has_zone)


def _float(layout: str, text: Callable[[float], str]) -> Callable[[bytes], str]:
    return lambda data: text(struct.unpack(layout, data)[0])


_PRIMITIVES: Mapping[int, tuple[int, Callable[[bytes], str]]] = {
    0: (0, lambda _: "null"),
    1: (0, lambda _: "true"),
    2: (0, lambda _: "false"),
    3: (1, _integer),
    4: (2, _integer),
    5: (4, _integer),
    6: (8, _integer),
    7: (8, _float("<d", literals.double)),
    8: (5, _decimal),
    9: (9, _decimal),
    10: (17, _decimal),
    11: (4, lambda data: literals.date(int.from_bytes(data, "little", signed=True))),
    12: (8, _timestamp(6, has_zone=True)),
    13: (8, _timestamp(6, has_zone=False)),
    14: (4, _float("<f", literals.single)),
    17: (8, lambda data: literals.time(int.from_bytes(data, "little", signed=True))),
    18: (8, _timestamp(9, has_zone=True)),
    19: (8, _timestamp(9, has_zone=False)),
    20: (16, literals.uuid_text),
}
"""Type id to the size of its value, and the value's text (Variant primitive types)."""

_SIZED: Mapping[int, Callable[[bytes], str]] = {15: literals.binary, 16: _text}
"""Type ids whose value begins with its size in four bytes."""


def _primitive(data: bytes, at: int, kind: int) -> tuple[str, int]:
    if form := _PRIMITIVES.get(kind):
        size, text = form
        return text(_slice(data, at, size)), at + size
    if read := _SIZED.get(kind):
        size = _number(data, at, 4)
        return read(_slice(data, at + 4, size)), at + 4 + size
    raise BrokenVariantError(f"a value in it has type {kind}, which no specification knows")
