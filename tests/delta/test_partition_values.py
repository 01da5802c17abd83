"""Partition values: text in the log to typed values, and back."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeview as lv
from lakeview.delta.data.partition_values import parse_values, serialize
from lakeview.model.data_types import DecimalType, PrimitiveType
from lakeview.model.errors import CorruptTableError, UnsupportedTableError
from lakeview.model.schema import polars_type
from lakeview.views.partitions.keys import partition_keys, short_names
from lakeview.views.partitions.sizes import partition_sizes
from tests.builders.actions import add
from tests.builders.history import DeltaHistory

READ: list[tuple[str, str, Any]] = [
    ("string", "x", "x"),
    ("string", " x ", " x "),
    ("string", "__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__"),
    ("string", "a=b/c%20d\u00e9\n'\"", "a=b/c%20d\u00e9\n'\""),
    ("long", "-9223372036854775808", -(2**63)),
    ("integer", "2147483647", 2**31 - 1),
    ("short", "-32768", -32768),
    ("byte", "127", 127),
    ("double", "1.5E10", 1.5e10),
    ("double", "-Infinity", float("-inf")),
    ("float", "0.25", 0.25),
    ("boolean", "true", True),
    ("boolean", "FALSE", False),
    ("date", "1970-01-01", date(1970, 1, 1)),
    ("date", "0001-01-01", date(1, 1, 1)),
    ("date", "9999-12-31", date(9999, 12, 31)),
    ("timestamp", "1970-01-01 00:00:00", datetime(1970, 1, 1, tzinfo=UTC)),
    ("timestamp", "2026-03-01 12:00:00.123456", datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)),
    ("timestamp", "2026-03-01T12:00:00.5Z", datetime(2026, 3, 1, 12, 0, 0, 500000, tzinfo=UTC)),
    ("timestamp", "2026-03-01T12:00:00+02:00", datetime(2026, 3, 1, 10, tzinfo=UTC)),
    ("timestamp", "1500-01-01 00:00:00", datetime(1500, 1, 1, tzinfo=UTC)),
    ("timestamp_ntz", "2026-03-01 12:00:00.000001", datetime.fromisoformat("2026-03-01T12:00:00.000001")),
    ("binary", "\u0001\u0002\u0003", b"\x01\x02\x03"),
    ("decimal(10,2)", "12.30", Decimal("12.30")),
    ("decimal(10,2)", "1.23E+2", Decimal("123.00")),
    ("decimal(10,2)", "-1.5000", Decimal("-1.50")),
    ("decimal(38,0)", "9" * 38, Decimal("9" * 38)),
    ("decimal(38,38)", "-0." + "1" * 38, Decimal("-0." + "1" * 38)),
]


@pytest.mark.parametrize(("type_", "text", "value"), READ, ids=[f"{t} {v!r}"[:50] for t, v, _ in READ])
def test_a_value_is_read_as_its_type(history: DeltaHistory, type_: str, text: str, value: Any) -> None:
    history.create({"x": "long", "p": type_}, partition_by=("p",)).commit(add("f", partition={"p": text}))
    for base in ("commits", "a checkpoint"):
        files = lv.open_table(history.address).snapshot().files
        assert files["partition"].struct.field("p").to_list() == [value], base
        assert files["partition_text"].to_list() == [f"p={text.replace('/', '%2F')}"]
        if base == "commits":
            history.checkpoint().without(0, 1)


@pytest.mark.parametrize("type_", sorted({t for t, _, _ in READ}))
@pytest.mark.parametrize("recorded", [{"p": None}, {"p": ""}, {}], ids=["null", "the empty text", "no value"])
def test_null_is_recorded_in_three_ways(history: DeltaHistory, type_: str, recorded: dict[str, str | None]) -> None:
    history.create({"x": "long", "p": type_}, partition_by=("p",)).commit(add("f", partition=recorded))
    files = lv.open_table(history.address).snapshot().files
    assert files["partition"].struct.field("p").to_list() == [None]
    assert files["partition_text"].to_list() == ["p=null"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"a": "1/b=2", "b": "3"}, {"a": "1", "b": "2/b=3"}, id="values that hold the key"),
        pytest.param({"a": "1/2", "b": "3"}, {"a": "1%2F2", "b": "3"}, id="an escaped slash"),
        pytest.param({"a": "1%2F2", "b": "3"}, {"a": "1%252F2", "b": "3"}, id="an escaped percent sign"),
    ],
)
def test_no_two_partitions_share_a_text(history: DeltaHistory, one: dict[str, str], other: dict[str, str]) -> None:
    history.create({"x": "long", "a": "string", "b": "string"}, partition_by=("a", "b"))
    history.commit(add("f", partition=one), add("g", partition=other))
    sizes = partition_sizes(lv.open_table(history.address).snapshot())
    assert sizes["files"].to_list() == [1, 1]
    keys = partition_keys(sizes["partition_text"], ["a", "b"])
    assert set(keys.rows()) == {tuple(one.values()), tuple(other.values())}


def test_the_text_null_is_another_partition_than_null(history: DeltaHistory) -> None:
    values = [None, "null", '"null"', '"null']
    history.create({"x": "long", "p": "string"}, partition_by=("p",))
    history.commit(*(add(f"f{place}", partition={"p": value}) for place, value in enumerate(values)))
    sizes = partition_sizes(lv.open_table(history.address).snapshot())
    assert set(sizes["partition_text"]) == {"p=null", 'p="null"', 'p=""null""', 'p=""null"'}
    assert sizes["files"].to_list() == [1, 1, 1, 1]
    assert set(short_names(sizes["partition_text"], ["p"])) == set(sizes["partition_text"]), "as charts show them"


WRONG = [
    ("long", "1.5"),
    ("integer", "2147483648"),
    ("byte", "128"),
    ("double", "one"),
    ("boolean", "yes"),
    ("date", "1970-13-01"),
    ("date", "yesterday"),
    ("timestamp", "noon"),
    ("timestamp", "2026-03-01T12:00:00+99:99"),
    ("timestamp_ntz", "2026"),
    ("decimal(3,2)", "12345"),
    ("decimal(3,2)", "1.505"),
    ("decimal(38,0)", "9" * 500),
    ("decimal(38,0)", "1.5"),
    ("decimal(38,10)", "1.12345678905"),
    ("decimal(38,0)", "1e-9999999"),
    ("long", "x" * 1_000_000),
]


@pytest.mark.parametrize(("type_", "text"), WRONG, ids=[f"{v[:30]!r} as {t}" for t, v in WRONG])
def test_a_value_that_is_none_of_its_type_is_corrupt_and_named(history: DeltaHistory, type_: str, text: str) -> None:
    history.create({"x": "long", "when": type_}, partition_by=("when",)).commit(add("f", partition={"when": text}))
    table = lv.open_table(history.address)
    with pytest.raises(CorruptTableError) as caught:
        table.snapshot().files  # noqa: B018 (files load on first touch)
    assert caught.value.kind == "corrupt-partition-value"
    assert caught.value.place == "when"
    assert f"of column when is no {type_}" in caught.value.message
    assert repr(text)[:40] in caught.value.message
    assert len(caught.value.message) < 400
    assert table.files(columns=["path", "size"]).height == 1, "a listing without the value still works"
    assert table.snapshot().num_files == 1
    assert table.history().height == 2


def test_columns_are_matched_by_name_whatever_the_order_and_the_name(history: DeltaHistory) -> None:
    names = ("b.c", "a b", "path", "d'`\"e", "\u00fc")
    history.create(dict.fromkeys((*names, "data"), "string"), partition_by=names)
    history.commit(add("f", partition={n: n.upper() for n in reversed(names)}))
    files = lv.open_table(history.address).snapshot().files
    assert files["partition"].struct.unnest().row(0, named=True) == {n: n.upper() for n in names}


def test_a_partition_column_that_is_not_in_the_schema_is_corrupt(history: DeltaHistory) -> None:
    history.create({"x": "long"}, partition_by=("y",))
    with pytest.raises(CorruptTableError, match="partition column y is not in the schema") as caught:
        lv.open_table(history.address).snapshot()
    assert (caught.value.kind, caught.value.place) == ("corrupt-schema", "metaData.partitionColumns")


def test_a_partition_column_named_twice_is_corrupt(history: DeltaHistory) -> None:
    history.create({"x": "long", "y": "long"}, partition_by=("y", "y")).commit(add("f", partition={"y": "1"}))
    with pytest.raises(CorruptTableError, match="partition column y is named twice") as caught:
        lv.open_table(history.address).snapshot().files  # noqa: B018 (files load on first touch)
    assert caught.value.kind == "corrupt-schema"


@pytest.mark.parametrize(
    "type_",
    [{"type": "array", "elementType": "long"}, {"type": "struct", "fields": []}, "interval", "void"],
    ids=["a list", "a struct", "a type no one knows", "void"],
)
def test_a_partition_column_of_a_type_without_text_is_a_designed_error(history: DeltaHistory, type_: object) -> None:
    history.create({"x": "long", "p": type_}, partition_by=("p",)).commit(add("f", partition={"p": "1"}))
    with pytest.raises((CorruptTableError, UnsupportedTableError)) as caught:
        lv.open_table(history.address).snapshot().files  # noqa: B018 (files load on first touch)
    assert caught.value.kind in ("corrupt-partition-value", "corrupt-schema", "unsupported-type")


VALUES = {
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(bool),
    "long": st.integers(-(2**63), 2**63 - 1),
    "byte": st.integers(-128, 127),
    "double": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(UTC)),
    "timestamp_ntz": st.datetimes(),
    "decimal(20,6)": st.decimals(-(10**13), 10**13, places=6, allow_nan=False),
    "binary": st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).map(str.encode),
}


@pytest.mark.parametrize("type_", VALUES)
def test_what_is_written_is_read_back(type_: str) -> None:
    expected_type = DecimalType(20, 6) if type_.startswith("decimal") else PrimitiveType(type_)

    @given(st.lists(VALUES[type_], min_size=1, max_size=20))
    def check(values: list[Any]) -> None:
        text = pl.Series([serialize(v) for v in values], dtype=pl.String)
        assert (
            parse_values(text, expected_type).to_list() == pl.Series(values, dtype=polars_type(expected_type)).to_list()
        )

    check()
