"""Variants to JSON text: every type, shredded or not; Spark's own encoder and decoder as the oracle."""

from __future__ import annotations

import json
import struct
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.variant_utils import VariantUtils

from lakeview.model.arrow_types import STORED_VARIANT
from lakeview.model.data_types import ArrayType, Field, MapType, PrimitiveType, StructType
from lakeview.rows.casts import conform_array
from lakeview.rows.variant import is_variant, stored_variants, variant_text
from tests.builders.variants import (
    BINARIES,
    EMPTY,
    encoded,
    integer,
    object_of,
    primitive,
    spark_variant,
    text,
    unshredded,
)

# -- what Spark encodes

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=30,
)


@given(JSON)
def test_what_spark_encodes_reads_back_as_it_was(value: Any) -> None:
    binary, metadata = spark_variant(value)
    json_text = text(binary, metadata)
    assert json_text is not None
    assert json.loads(json_text) == json.loads(VariantUtils.to_json(binary, metadata))


@pytest.mark.parametrize("count", [0, 1, 255, 256, 70_000])
def test_large_containers_have_wide_offsets(count: int) -> None:
    value = [*range(count), {f"k{i}": i for i in range(count)}]
    binary, metadata = spark_variant(value)
    assert json.loads(text(binary, metadata) or "") == value


# -- every type of the specification


MICROS = 1_700_000_000_123_456
PRIMITIVES: list[tuple[str, bytes, str]] = [
    ("null", primitive(0), "null"),
    ("true", primitive(1), "true"),
    ("false", primitive(2), "false"),
    ("int8", primitive(3, integer(-128, 1)), "-128"),
    ("int16", primitive(4, integer(-300, 2)), "-300"),
    ("int32", primitive(5, integer(2**31 - 1, 4)), "2147483647"),
    ("int64", primitive(6, integer(-(2**63), 8)), "-9223372036854775808"),
    ("double", primitive(7, struct.pack("<d", 0.1)), "0.1"),
    ("a large double", primitive(7, struct.pack("<d", 1e300)), "1e+300"),
    ("a negative zero", primitive(7, struct.pack("<d", -0.0)), "-0.0"),
    ("a double that is no number", primitive(7, struct.pack("<d", float("nan"))), '"NaN"'),
    ("an infinite double", primitive(7, struct.pack("<d", float("inf"))), '"Infinity"'),
    ("decimal4", primitive(8, b"\x02" + integer(-12345, 4)), "-123.45"),
    ("decimal8", primitive(9, b"\x00" + integer(10**17, 8)), "100000000000000000"),
    (
        "decimal16", primitive(10, b"\x26" + integer(10**38 - 1, 16)),
        "0.99999999999999999999999999999999999999",
    ),
    ("a decimal below one", primitive(8, b"\x05" + integer(-7, 4)), "-0.00007"),
    ("date", primitive(11, integer(-719_529, 4)), '"-0001-12-31"'),
    ("the first date", primitive(11, integer(-(2**31), 4)), '"-5877641-06-23"'),
    ("a leap day", primitive(11, integer(19_782, 4)), '"2024-02-29"'),
    ("timestamp", primitive(12, integer(MICROS, 8)), '"2023-11-14T22:13:20.123456Z"'),
    ("timestamp without zone", primitive(13, integer(MICROS, 8)), '"2023-11-14T22:13:20.123456"'),
    ("a whole second before 1970", primitive(12, integer(-1_000_000, 8)), '"1969-12-31T23:59:59Z"'),
    ("the last moment", primitive(12, integer(2**63 - 1, 8)), '"+294247-01-10T04:00:54.775807Z"'),
    ("float", primitive(14, struct.pack("<f", 0.1)), "0.1"),
    ("a float of many digits", primitive(14, struct.pack("<f", 16777216.0)), "16777216.0"),
    ("the largest float", primitive(14, b"\xff\xff\x7f\x7f"), "3.4028235e+38"),
    ("an infinite float", primitive(14, struct.pack("<f", float("-inf"))), '"-Infinity"'),
    ("binary", primitive(15, b"\x03\x00\x00\x00\xff\x00a"), '"/wBh"'),
    ("string", primitive(16, b"\x03\x00\x00\x00\xe2\x82\xac"), '"\u20ac"'),
    ("short string", b'\x15"\\\n\x00\x7f', '"\\"\\\\\\n\\u0000\x7f"'),
    ("an empty string", b"\x01", '""'),
    ("time", primitive(17, integer(86_399_999_999, 8)), '"23:59:59.999999"'),
    ("timestamp in nanoseconds", primitive(18, integer(1, 8)), '"1970-01-01T00:00:00.000000001Z"'),
    ("nanoseconds without zone", primitive(19, integer(-1, 8)), '"1969-12-31T23:59:59.999999999"'),
    ("uuid", primitive(20, bytes(range(16))), '"00010203-0405-0607-0809-0a0b0c0d0e0f"'),
    ("an empty array", b"\x03\x00\x00", "[]"),
    ("an empty object", b"\x02\x00\x00", "{}"),
    ("an array with wide offsets", b"\x1f\x01\x00\x00\x00" + b"\x00" * 4 + b"\x01\x00\x00\x00\x04", "[true]"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), [p[1:] for p in PRIMITIVES], ids=[p[0] for p in PRIMITIVES])
def test_every_type_has_a_text(value: bytes, expected: str) -> None:
    assert text(value) == expected


@given(st.dates())
def test_dates_are_those_of_the_calendar(day: date) -> None:
    assert text(primitive(11, integer((day - date(1970, 1, 1)).days, 4))) == f'"{day.isoformat()}"'


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_read_back_as_they_were(value: float) -> None:
    packed = struct.pack("<f", value)
    assert struct.pack("<f", float(text(primitive(14, packed)) or "")) == packed


def test_fields_stand_in_the_order_of_their_names_wherever_their_values_lie() -> None:
    metadata = b"\x01\x03\x00\x01\x02\x03bca"
    value = (
        b"\x02\x03\x02\x00\x01\x04\x02\x00\x06" + primitive(3, b"\x02") + primitive(3, b"\x03") + primitive(3, b"\x01")
    )
    assert text(value, metadata) == '{"a":1,"b":3,"c":2}'


def test_a_null_struct_is_null_and_the_variant_null_is_a_text() -> None:
    assert variant_text(unshredded(None, primitive(0), encoded(7))).to_pylist() == [None, "null", "7"]


# -- shredded: the tables of the specification


def field(type_: pa.DataType) -> pa.DataType:
    return pa.struct([("value", pa.binary()), ("typed_value", type_)])


def shredded(type_: pa.DataType, rows: list[Any], metadata: bytes = EMPTY) -> list[str | None]:
    """Each row: (value, typed_value), or None for a null struct."""
    kind = pa.struct([("typed_value", type_), ("value", pa.binary()), ("metadata", pa.binary())])
    values = [None if r is None else {"metadata": metadata, "value": r[0], "typed_value": r[1]} for r in rows]
    array = pa.array(values, kind)
    texts: list[str | None] = variant_text(array).to_pylist()
    whole = stored_variants(array, "v")
    assert variant_text(whole).to_pylist() == texts, "put together, they are the same"
    for text_, each in zip(texts, whole.to_pylist(), strict=True):
        if text_ is not None and "." not in text_ and "T" not in text_:  # Spark writes floats and times differently
            assert json.loads(VariantUtils.to_json(each["value"], each["metadata"])) == json.loads(text_)
    return texts


def test_shredded_measurements() -> None:
    rows = [(None, 34), (b"\x00", None), (b"\x0dn/a", None), (None, 100), (None, None), None]
    assert shredded(pa.int64(), rows) == ["34", "null", '"n/a"', "100", "null", None]


def test_shredded_arrays() -> None:
    def words(*words: str) -> list[dict[str, Any]]:
        return [{"value": None, "typed_value": word} for word in words]

    null, missing = {"value": b"\x00", "typed_value": None}, {"value": None, "typed_value": None}
    rows = [
        (None, words("comedy", "drama")), (None, [*words("horror"), null]), (None, []), (b"\x00", None), None,
        (None, [missing]), (encoded({}), None),
    ]  # fmt: skip
    expected = ['["comedy","drama"]', '["horror",null]', "[]", "null", None, "[null]", "{}"]
    for kind in (pa.list_, pa.large_list):
        assert shredded(kind(field(pa.string())), rows) == expected


NAMES = b"\x01\x04\x00\x0a\x12\x17\x20event_typeevent_tsemailerror_msg"


def test_shredded_objects() -> None:
    def event(kind: Any = None, moment: Any = None, kind_value: Any = None, moment_value: Any = None) -> dict[str, Any]:
        return {
            "event_type": {"value": kind_value, "typed_value": kind},
            "event_ts": {"value": moment_value, "typed_value": moment},
        }

    events = pa.struct([("event_type", field(pa.string())), ("event_ts", field(pa.timestamp("us", "UTC")))])
    at = datetime(2024, 10, 24, 18, 21, 54, tzinfo=UTC)
    rows = [
        (None, event("noop", at)),
        (object_of(2, b"\x09a@"), event("login", at)),
        (object_of(3, b"\x05m"), event()),
        (b"\x05x", None),
        (None, event(None, at, b"\x00")),
        (None, event("noop", None, None, b"\x29" + b"2024-10-24")),
        (None, event()),
        (b"\x00", None),
        # what writers must not write: the columns win, and they are shown
        (object_of(0, b"\x05z"), event("login", at)),
        (b"\x05x", event("login")),
        (None, event("both", None, b"\x00")),
        None,
    ]
    timestamp = '"event_ts":"2024-10-24T18:21:54Z"'
    assert shredded(events, rows, NAMES) == [
        f'{{{timestamp},"event_type":"noop"}}',
        f'{{"email":"a@",{timestamp},"event_type":"login"}}',
        '{"error_msg":"m"}',
        '"x"',
        f'{{{timestamp},"event_type":null}}',
        '{"event_ts":"2024-10-24","event_type":"noop"}',
        "{}",
        "null",
        f'{{{timestamp},"event_type":"login"}}',
        '{"event_type":"login"}',
        '{"event_type":"both"}',
        None,
    ]


def test_shredded_objects_in_arrays_in_objects() -> None:
    place = pa.struct([("y", field(pa.float64())), ("x", field(pa.float32()))])
    whole = pa.struct([("tags", field(pa.list_(field(place)))), ("id", pa.struct([("value", pa.binary())]))])
    spot = {"value": None, "typed_value": {"x": {"typed_value": 0.1}, "y": {"value": b"\x00"}}}
    row = {
        "tags": {"value": None, "typed_value": [spot, {"value": b"\x05z"}]},
        "id": {"value": encoded([1])},
    }
    assert shredded(whole, [(None, row), None, (None, {"tags": {"value": b"\x00"}, "id": None})]) == [
        '{"id":[1],"tags":[{"x":0.1,"y":null},"z"]}',
        None,
        '{"tags":null}',
    ]


MOMENT = datetime(2024, 10, 24, 18, 21, 54, 1)  # noqa: DTZ001  # a timestamp without zone has none
TYPED: list[tuple[pa.DataType, Any, str]] = [
    (pa.bool_(), True, "true"),
    (pa.int8(), -1, "-1"),
    (pa.int16(), 300, "300"),
    (pa.int32(), -70_000, "-70000"),
    (pa.float32(), 0.1, "0.1"),
    (pa.float64(), float("nan"), '"NaN"'),
    (pa.decimal128(38, 10), Decimal("12345678901234567890.0123456789"), "12345678901234567890.0123456789"),
    (pa.decimal128(5, 5), Decimal("0.00000"), "0.00000"),
    (pa.decimal128(9, 8), Decimal("1E-8"), "0.00000001"),
    (pa.date32(), date(2024, 2, 29), '"2024-02-29"'),
    (pa.time64("us"), time(1, 2, 3, 4), '"01:02:03.000004"'),
    (pa.timestamp("us"), MOMENT, '"2024-10-24T18:21:54.000001"'),
    (pa.timestamp("us", "UTC"), MOMENT.replace(tzinfo=UTC), '"2024-10-24T18:21:54.000001Z"'),
    (pa.timestamp("ns"), MOMENT, '"2024-10-24T18:21:54.000001000"'),
    (pa.timestamp("ms", "Europe/Rome"), MOMENT.replace(tzinfo=UTC), '"2024-10-24T18:21:54Z"'),
    (pa.binary(), b"\xff\x00a", '"/wBh"'),
    (pa.string(), 'a"b', '"a\\"b"'),
    (pa.string_view(), "x", '"x"'),
    (pa.dictionary(pa.int8(), pa.string()), "x", '"x"'),
    (pa.binary(16), bytes(range(16)), '"00010203-0405-0607-0809-0a0b0c0d0e0f"'),
    (pa.uuid(), uuid.UUID(int=1).bytes, '"00000000-0000-0000-0000-000000000001"'),
]


@pytest.mark.parametrize(("type_", "value", "expected"), TYPED, ids=[str(t) for t, _, _ in TYPED])
def test_every_shredded_type_has_a_text(type_: pa.DataType, value: Any, expected: str) -> None:
    storage = type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_
    typed = pa.array([value, None], storage)
    if isinstance(type_, pa.BaseExtensionType):
        typed = type_.wrap_array(typed)
    array = pa.StructArray.from_arrays(
        [pa.array([EMPTY] * 2), pa.array([None, b"\x00"]), typed], names=["metadata", "value", "typed_value"]
    )
    assert variant_text(array).to_pylist() == [expected, "null"]
    assert variant_text(array.slice(1)).to_pylist() == ["null"]
    whole = stored_variants(array, "v")
    assert whole.type == STORED_VARIANT
    assert variant_text(whole).to_pylist() == [expected, "null"], "put together, it is the same"


def test_values_that_are_put_together_are_the_bytes_they_were_shredded_from() -> None:
    document = {"a": 34, "b": ["x", None, {"c": True}], "d": "n/a", "e": {"c": False, "z": 1}}
    whole, names = spark_variant(document)
    element = pa.struct([("value", pa.binary()), ("typed_value", pa.struct([("c", field(pa.bool_()))]))])
    typed = pa.struct([("b", field(pa.list_(element))), ("a", field(pa.int8())), ("d", field(pa.int64()))])
    elements = [
        {"value": encoded("x")}, {"value": encoded(None)}, {"typed_value": {"c": {"typed_value": True}}},
    ]  # fmt: skip
    row = {"a": {"typed_value": 34}, "b": {"typed_value": elements}, "d": {"value": encoded("n/a")}}
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", typed)])
    rest = object_of(4, whole[-10:])  # "e", whose value Spark puts last
    array = pa.array([{"metadata": names, "value": rest, "typed_value": row}], kind)
    assert stored_variants(array, "v").to_pylist() == [{"metadata": names, "value": whole}]


def test_names_that_the_metadata_lacks_are_added() -> None:
    kind = pa.struct([("metadata", pa.binary()), ("typed_value", pa.struct([("b", field(pa.int8()))]))])
    array = pa.array([{"metadata": b"\x01\x01\x00\x01z", "typed_value": {"b": {"typed_value": 7}}}], kind)
    assert stored_variants(array, "v").to_pylist() == [
        {"metadata": b"\x01\x02\x00\x01\x02zb", "value": b"\x02\x01\x01\x00\x02\x0c\x07"}
    ]


# -- columns that hold them


def test_variants_are_read_at_every_level() -> None:
    one = {"metadata": EMPTY, "value": encoded(1)}
    rows: list[Any] = [{"l": [one, None], "m": [("k", one)], "s": {"v": one}}, None, {"l": None, "m": None, "s": None}]
    source = pa.struct(
        [("S", pa.struct([("v", BINARIES)])), ("l", pa.list_(BINARIES)), ("m", pa.map_(pa.string(), BINARIES))]
    )
    array = pa.array([None if r is None else {"S": r["s"], "l": r["l"], "m": r["m"]} for r in rows], source)
    target = pa.struct([
        ("l", pa.list_(pa.string())), ("m", pa.map_(pa.string(), pa.string())), ("s", pa.struct([("v", pa.string())])),
    ])  # fmt: skip
    variant, text_ = PrimitiveType("variant"), PrimitiveType("string")
    whole_field = Field(
        "c",
        StructType((
            Field("l", ArrayType(variant)), Field("m", MapType(text_, variant)),
            Field("s", StructType((Field("v", variant),))),
        )),
    )  # fmt: skip
    expected = [{"l": ["1", None], "m": [("k", "1")], "s": {"v": "1"}}, None, {"l": None, "m": None, "s": None}]
    assert conform_array(array, whole_field, target).to_pylist() == expected
    assert conform_array(array.slice(1), whole_field, target).to_pylist() == expected[1:]


def test_a_variant_is_known_by_its_fields() -> None:
    assert is_variant(BINARIES)
    assert is_variant(pa.struct([("metadata", pa.binary()), ("typed_value", pa.int64())]))
    for other in (pa.binary(), pa.struct([("metadata", pa.binary())]), pa.struct([("value", pa.binary())])):
        assert not is_variant(other)
    assert not is_variant(pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("x", pa.int64())]))
