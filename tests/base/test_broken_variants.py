"""Bytes that are no variants: refused with their column and row, in time and memory that the bytes allow."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeview.model import limits
from lakeview.model.errors import CorruptTableError
from lakeview.rows.variant import encoding, stored_variants, variant_text
from tests.builders.variants import BINARIES, EMPTY, integer, object_of, primitive, spark_variant, text

JSON = st.recursive(
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=30,
)


def array_of(values: list[bytes], width: int = 1) -> bytes:
    data, offsets = b"", [0]
    for value in values:
        data += value
        offsets.append(len(data))
    packed = b"".join(o.to_bytes(width, "little") for o in offsets)
    return bytes([((width - 1) | 4) << 2 | 3]) + len(values).to_bytes(4, "little") + packed + data


def nested(levels: int) -> bytes:
    value = primitive(0)
    for _ in range(levels):
        value = array_of([value], 4)
    return value


def shared(levels: int) -> bytes:
    """Arrays of eight elements that are all the same bytes: 8 to the power of `levels` elements when unfolded."""
    value = primitive(0)
    for _ in range(levels):
        offsets = b"\x00\x00" * 8 + len(value).to_bytes(2, "little")
        value = bytes([1 << 2 | 3, 8]) + offsets + value
    return value


BROKEN: dict[str, tuple[bytes, bytes, str]] = {
    "no bytes": (b"", EMPTY, "ends in the middle"),
    "an unknown type": (primitive(21), EMPTY, "type 21"),
    "a truncated number": (primitive(6, b"\x00"), EMPTY, "ends in the middle"),
    "a truncated short string": (b"\x09a", EMPTY, "ends in the middle"),
    "a string that claims four gigabytes": (primitive(16, b"\xff\xff\xff\xffa"), EMPTY, "ends in the middle"),
    "text that is not UTF-8": (b"\x05\xff", EMPTY, "not UTF-8"),
    "a surrogate in its text": (b"\x0d\xed\xa0\x80", EMPTY, "not UTF-8"),
    "a decimal of scale 39": (primitive(8, b"\x27" + integer(1, 4)), EMPTY, "scale 39"),
    "an array that claims four billion elements": (b"\x13\xff\xff\xff\xff", EMPTY, "claims 4294967295 elements"),
    "an array of 255 elements in two bytes": (b"\x03\xff", EMPTY, "claims 255"),
    "an offset outside": (b"\x03\x01\x05\x01\x00", EMPTY, "ends in the middle"),
    "an end outside": (b"\x03\x01\x00\x05\x00", EMPTY, "ends in the middle"),
    "an element beyond its end": (b"\x03\x01\x00\x01\x0c\x01", EMPTY, "behind the end"),
    "elements that share their bytes": (b"\x03\x02\x00\x00\x01\x00", EMPTY, "share their bytes"),
    "fields that share their bytes": (
        b"\x02\x02\x00\x01\x00\x00\x01\x00", b"\x01\x02\x00\x01\x02ab", "share their bytes",
    ),
    "elements shared level by level": (shared(60), EMPTY, "share their bytes"),
    "a field of a name that is not there": (object_of(0, b"\x00"), EMPTY, "field 0 of a dictionary of 0"),
    "a field named twice": (b"\x02\x02\x00\x00\x00\x01\x02\x00\x00", b"\x01\x01\x00\x01a", "same name"),
    "two fields of one name": (b"\x02\x02\x00\x01\x00\x01\x02\x00\x00", b"\x01\x02\x00\x01\x02aa", "same name"),
    "nesting without end": (nested(5_000), EMPTY, "deeper than 200"),
    "no metadata": (b"\x00", b"", "metadata is empty"),
    "metadata of another version": (b"\x00", b"\x02\x00\x00", "version 2"),
    "metadata that claims four billion names": (b"\x00", b"\xc1\xff\xff\xff\xff", "claims 4294967295 names"),
    "a name outside of the metadata": (object_of(0, b"\x00"), b"\x01\x01\x00\x09a", "lies outside"),
    "a name that ends before it begins": (object_of(0, b"\x00"), b"\x01\x01\x01\x00a", "lies outside"),
    "a name that is not UTF-8": (object_of(0, b"\x00"), b"\x01\x01\x00\x01\xff", "not UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize(("value", "metadata", "words"), BROKEN.values(), ids=[f"a variant with {w}" for w in BROKEN])
def test_broken_bytes_are_refused_with_their_column_and_row(value: bytes, metadata: bytes, words: str) -> None:
    array = pa.array([None, {"metadata": metadata, "value": value}], BINARIES)
    with pytest.raises(CorruptTableError, match=words) as caught:
        variant_text(array, "events")
    assert (caught.value.kind, caught.value.place) == ("corrupt-variant", "events")
    assert "column events" in caught.value.message
    assert "row 1 of a batch" in caught.value.message
    assert caught.value.fix is not None


def test_the_longest_nesting_is_read() -> None:
    assert text(nested(limits.VARIANT_DEPTH)) == "[" * 200 + "null" + "]" * 200


def test_names_written_out_again_and_again_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding.Budget.__init__, "__defaults__", (100_000,))
    metadata = b"\x81\x01\x00\x00\x00\x00\x00\xe8\x03\x00" + b"n" * 1000
    with pytest.raises(CorruptTableError, match="characters of text"):
        text(array_of([object_of(0, b"\x00")] * 200, 2), metadata)


FIELD = pa.struct([("value", pa.binary()), ("typed_value", pa.int8())])

SHAPES: dict[str, tuple[pa.DataType, Any, str]] = {
    "shredded as what no variant is": (pa.duration("s"), 5, "shredded as duration"),
    "elements that are no structs": (pa.list_(pa.int64()), [5], "elements of it are int64"),
    "fields that are no structs": (pa.struct([("a", pa.int64())]), {"a": 5}, "field a is int64"),
    "values that are text": (pa.struct([("a", pa.struct([("value", pa.string())]))]), {"a": {"value": "x"}}, "string"),
}


@pytest.mark.parametrize(("type_", "value", "words"), SHAPES.values(), ids=list(SHAPES))
def test_columns_of_another_shape_are_refused(type_: pa.DataType, value: Any, words: str) -> None:
    kind = pa.struct([("metadata", pa.binary()), ("typed_value", type_)])
    array = pa.array([{"metadata": EMPTY, "typed_value": value}], kind)
    for read in (variant_text, stored_variants):
        with pytest.raises(CorruptTableError, match=words) as caught:
            read(array, "v")
        assert caught.value.kind == "corrupt-variant"


def test_fields_that_share_bytes_are_what_they_were_when_they_are_put_together() -> None:
    names = b"\x01\x03\x00\x01\x02\x03bdz"
    value = b"\x02\x03\x00\x01\x02\x00\x02\n\x11\x05x$\x10\x9e\xfa\xbc\x9fad\t\x00qyyyy"  # z begins within d
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.struct([("a", FIELD)]))])
    array = pa.array([{"metadata": names, "value": value, "typed_value": {"a": {"typed_value": 3}}}], kind)
    assert variant_text(stored_variants(array, "v")) == variant_text(array)


def test_metadata_may_not_be_null() -> None:
    with pytest.raises(CorruptTableError, match="metadata is null"):
        variant_text(pa.array([{"metadata": None, "value": b"\x00"}], BINARIES))
    with pytest.raises(CorruptTableError, match="not a struct of metadata and values"):
        variant_text(pa.array([{"value": b"\x00"}], pa.struct([("value", pa.binary())])))


def refused_or_json(value: bytes, metadata: bytes) -> None:
    try:
        json_text = text(value, metadata)
    except CorruptTableError:
        return
    json.loads(json_text or "null")


@given(st.binary(max_size=60), st.binary(max_size=20))
def test_any_bytes_are_text_or_refused(value: bytes, metadata: bytes) -> None:
    refused_or_json(value, metadata)
    refused_or_json(value, b"\x01\x02\x00\x01\x02ab")


def changed(data: bytes, at: int, byte: int) -> bytes:
    return data[: at % len(data)] + bytes([byte]) + data[at % len(data) + 1 :]


@given(JSON, st.integers(0, 2**16), st.integers(0, 255), st.sampled_from([changed, lambda d, at, _: d[: at % len(d)]]))
def test_damaged_values_are_text_or_refused(
    value: Any, at: int, byte: int, damage: Callable[[bytes, int, int], bytes]
) -> None:
    binary, metadata = spark_variant(value)
    refused_or_json(damage(binary, at, byte), metadata)
    refused_or_json(binary, damage(metadata, at, byte))
