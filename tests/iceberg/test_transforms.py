"""Partition transforms against the spec's own test values (Appendix B) and against pyiceberg."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.transforms import BucketTransform, DayTransform, MonthTransform, TruncateTransform, YearTransform
from pyiceberg.types import BinaryType, DateType, LongType, StringType
from pyiceberg.types import DecimalType as PyDecimal

from lakeview.iceberg.manifests.partition_bounds import source_bounds
from lakeview.iceberg.manifests.partitions import PartitionColumn, readable
from lakeview.iceberg.metadata.partition_fields import PartitionField
from lakeview.iceberg.metadata.transforms import _hashed_bytes, murmur3, parse_transform
from lakeview.model.data_types import DataType, DecimalType, Field, PrimitiveType
from lakeview.model.schema import polars_type

LONG, STRING, DATE, BINARY = (PrimitiveType(n) for n in ("long", "string", "date", "binary"))
NTZ = PrimitiveType("timestamp_ntz")

HASHES: dict[str, tuple[Any, DataType, int]] = {
    "int 34": (34, PrimitiveType("integer"), 2017239379),
    "long 34": (34, LONG, 2017239379),
    "decimal 14.20": (Decimal("14.20"), DecimalType(9, 2), -500754589),
    "date 2017-11-16": (date(2017, 11, 16), DATE, -653330422),
    "time 22:31:08": (time(22, 31, 8), PrimitiveType("time"), -662762989),
    "timestamp": (datetime(2017, 11, 16, 22, 31, 8), NTZ, -2047944441),  # noqa: DTZ001  # has no zone
    "timestamptz": (datetime(2017, 11, 16, 22, 31, 8, tzinfo=UTC), PrimitiveType("timestamp"), -2047944441),
    "timestamp with a microsecond": (datetime(2017, 11, 16, 22, 31, 8, 1), NTZ, -1207196810),  # noqa: DTZ001
    "string iceberg": ("iceberg", STRING, 1210000089),
    "uuid": (uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, PrimitiveType("uuid"), 1488055340),
    "bytes 00 01 02 03": (b"\0\1\2\3", BINARY, -188683207),
}


@pytest.mark.parametrize("case", HASHES)
def test_hashes_are_those_of_the_specification(case: str) -> None:
    value, type_, expected = HASHES[case]
    assert murmur3(_hashed_bytes(value, type_)) == expected & 0xFFFF_FFFF


def test_nanoseconds_are_hashed_as_the_microsecond_that_they_are_in() -> None:
    since = datetime(2017, 11, 16, 22, 31, 8, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    at = since // timedelta(microseconds=1) * 1000
    times = pl.Series([at, at + 1001, -1, -1000], dtype=pl.Datetime("ns"))
    hashes = [murmur3(_hashed_bytes(value, PrimitiveType("timestamp_ns"))) for value in times]
    assert hashes[:2] == [-2047944441 & 0xFFFF_FFFF, -1207196810 & 0xFFFF_FFFF]
    assert hashes[2] == hashes[3] == murmur3((-1).to_bytes(8, "little", signed=True))


TRUNCATED: list[tuple[int, Any, DataType, Any]] = [
    (10, 1, LONG, 0),
    (10, -1, LONG, -10),
    (50, Decimal("10.65"), DecimalType(4, 2), Decimal("10.50")),
    (10, Decimal("-0.05"), DecimalType(4, 2), Decimal("-0.10")),
    (3, "iceberg", STRING, "ice"),
    (2, "🧊🧊🧊", STRING, "🧊🧊"),
    (3, b"\1\2\3\4\5", BINARY, b"\1\2\3"),
]


@pytest.mark.parametrize(("width", "value", "type_", "expected"), TRUNCATED)
def test_truncation(width: int, value: Any, type_: DataType, expected: Any) -> None:
    assert parse_transform(f"truncate[{width}]").apply(value, type_) == expected


PERIODS: list[tuple[str, Any, Any]] = [
    ("year", date(2017, 12, 1), 47),
    ("year", date(1969, 12, 31), -1),
    ("month", date(2017, 12, 1), 575),
    ("month", date(1969, 12, 31), -1),
    ("month", date(1970, 1, 1), 0),
    ("day", datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), date(1969, 12, 31)),
    ("hour", datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), -1),
    ("hour", datetime(2017, 12, 1, 10, 30, tzinfo=UTC), 420034),
]


@pytest.mark.parametrize(("name", "value", "expected"), PERIODS)
def test_periods_floor(name: str, value: Any, expected: Any) -> None:
    assert parse_transform(name).apply(value, DATE) == expected


def test_null_stays_null_and_void_makes_it() -> None:
    assert parse_transform("bucket[4]").apply(None, LONG) is None
    assert parse_transform("void").apply(4, LONG) is None


@pytest.mark.parametrize("text", ["zorder[7]", "bucket[0]", "bucket", "truncate[-1]", ""])
def test_what_is_not_known_is_shown_and_has_no_rule(text: str) -> None:
    transform = parse_transform(text)
    assert (transform.name, transform.text) == ("unknown", text)
    with pytest.raises(ValueError, match="no rule"):
        transform.apply(1, LONG)


@pytest.mark.parametrize("value", [1.5, True])
def test_floats_and_booleans_have_no_buckets(value: Any) -> None:
    with pytest.raises(ValueError, match="no buckets"):
        parse_transform("bucket[4]").apply(value, PrimitiveType("double"))


def theirs(transform: Any, type_: Any, value: Any) -> Any:
    return transform.transform(type_)(value)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 10_000))
def test_longs_as_another_reader_has_them(value: int, width: int) -> None:
    ours = [parse_transform(f"{name}[{width}]").apply(value, LONG) for name in ("bucket", "truncate")]
    assert ours[0] == theirs(BucketTransform(width), LongType(), value)
    if ours[1] >= -(2**63):
        assert ours[1] == theirs(TruncateTransform(width), LongType(), value)


@given(st.text(), st.binary(), st.decimals(-(10**12), 10**12, places=3), st.integers(1, 64))
def test_texts_bytes_and_decimals_as_another_reader_has_them(
    text: str, data: bytes, number: Decimal, width: int
) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    bucket, truncate = parse_transform(f"bucket[{width}]"), parse_transform(f"truncate[{width}]")
    assert bucket.apply(text, STRING) == theirs(BucketTransform(width), StringType(), text)
    assert bucket.apply(data, BINARY) == theirs(BucketTransform(width), BinaryType(), data)
    assert bucket.apply(number, DecimalType(20, 3)) == theirs(BucketTransform(width), PyDecimal(20, 3), number)
    assert truncate.apply(text, STRING) == theirs(TruncateTransform(width), StringType(), text)
    assert truncate.apply(number, DecimalType(20, 3)) == theirs(TruncateTransform(width), PyDecimal(20, 3), number)


@given(st.dates())
def test_dates_as_another_reader_has_them(day: date) -> None:
    number = (day - date(1970, 1, 1)).days
    assert parse_transform("month").apply(day, DATE) == theirs(MonthTransform(), DateType(), number)
    assert parse_transform("year").apply(day, DATE) == theirs(YearTransform(), DateType(), number)
    assert parse_transform("day").apply(day, DATE) == date(1970, 1, 1) + timedelta(
        days=theirs(DayTransform(), DateType(), number)
    )


# -- what a partition value says of the column it comes from


def column(transform: str, type_: DataType) -> PartitionColumn:
    parsed = parse_transform(transform)
    result = parsed.result_type(type_)
    assert result is not None
    return PartitionColumn(PartitionField(1000, "p", parsed, (1,)), "p", polars_type(result), Field("c", type_))


@given(st.integers(-(2**62), 2**62), st.integers(1, 1000))
def test_a_number_lies_within_the_bounds_of_its_truncation(value: int, width: int) -> None:
    within(f"truncate[{width}]", LONG, value)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.binary(), st.integers(1, 5))
def test_texts_and_bytes_lie_within_the_bounds_of_their_truncation(text: str, data: bytes, width: int) -> None:
    within(f"truncate[{width}]", STRING, text)
    within(f"truncate[{width}]", BINARY, data)


@given(st.datetimes(datetime(1800, 1, 1), datetime(2200, 1, 1)), st.sampled_from(["year", "month", "day", "hour"]))  # noqa: DTZ001
def test_a_time_lies_within_the_bounds_of_its_period(value: datetime, name: str) -> None:
    within(name, NTZ, value)
    if name != "hour":
        within(name, DATE, value.date())


def within(transform: str, type_: DataType, value: Any) -> None:
    partition_column = column(transform, type_)
    cell = pl.Series([parse_transform(transform).apply(value, type_)], dtype=partition_column.dtype)
    bounds = source_bounds(partition_column, cell, cell)
    assert bounds is not None
    low, high = bounds[0][0], bounds[1][0]
    assert low is None or low <= value
    assert high is None or high >= value


READABLE: list[tuple[str, DataType, Any, str | None]] = [
    ("year", DATE, 47, "2017"),
    ("month", DATE, -1, "1969-12"),
    ("month", DATE, 649, "2024-02"),
    ("day", DATE, date(2024, 2, 29), "2024-02-29"),
    ("hour", NTZ, 474766, "2024-02-28-22"),
    ("bucket[16]", LONG, 3, "bucket 3 of 16"),
    ("identity", STRING, "a b", "a b"),
    ("identity", BINARY, b"\0\1", "AAE="),
    ("identity", LONG, None, None),
]


@pytest.mark.parametrize(("transform", "type_", "value", "expected"), READABLE)
def test_values_for_people(transform: str, type_: DataType, value: Any, expected: str | None) -> None:
    partition_column = column(transform, type_)
    assert readable(partition_column, pl.Series([value], dtype=partition_column.dtype))[0] == expected
