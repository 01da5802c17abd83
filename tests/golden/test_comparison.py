"""The comparison itself: it must see every difference, or the golden tables prove nothing."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.golden.rows import differences, read_rows

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
MAP = pa.map_(pa.string(), pa.int32())

SAME = {
    "order of rows does not matter": (pa.table({"a": [1, 2, 2]}), pl.DataFrame({"a": [2, 1, 2]})),
    "nulls are equal": (pa.table({"a": pa.array([None, 1], pa.int64())}), pl.DataFrame({"a": [1, None]})),
    "NaN is equal to NaN": (pa.table({"a": [float("nan")]}), pl.DataFrame({"a": [float("nan")]})),
    "an instant is the same in every zone": (
        pa.table({"a": pa.array([NOON], pa.timestamp("us", "UTC"))}),
        pl.DataFrame({"a": [NOON.astimezone(timezone(timedelta(hours=2)))]}, schema={"a": pl.Datetime("us", "UTC")}),
    ),
    "units of time do not matter": (
        pa.table({"a": pa.array([NOON], pa.timestamp("us", "UTC"))}),
        pl.DataFrame({"a": [NOON]}, schema={"a": pl.Datetime("ms", "UTC")}),
    ),
    "map entries have no order": (
        pa.table({"a": pa.array([[("x", 1), ("y", 2)]], MAP)}),
        pl.DataFrame(
            {"a": [[{"key": "y", "value": 2}, {"key": "x", "value": 1}]]},
            schema={"a": pl.List(pl.Struct({"key": pl.String, "value": pl.Int32}))},
        ),
    ),
    "columns are compared by name": (pa.table({"a": [1], "b": ["x"]}), pl.DataFrame({"b": ["x"], "a": [1]})),
    "no rows are no rows": (pa.table({"a": pa.array([], pa.int64())}), pl.DataFrame(schema={"a": pl.Int64})),
}

DIFFERENT = {
    "a changed value": (pa.table({"a": [1, 2]}), pl.DataFrame({"a": [1, 3]})),
    "a row that is there once too often": (pa.table({"a": [1, 1, 2]}), pl.DataFrame({"a": [1, 2, 2]})),
    "a row too few": (pa.table({"a": [1, 2]}), pl.DataFrame({"a": [1]})),
    "no rows for some": (pa.table({"a": [1]}), pl.DataFrame(schema={"a": pl.Int64})),
    "null for a value": (pa.table({"a": [1]}), pl.DataFrame({"a": [None]}, schema={"a": pl.Int64})),
    "an empty text for null": (pa.table({"a": pa.array([None], pa.string())}), pl.DataFrame({"a": [""]})),
    "a missing column": (pa.table({"a": [1], "b": [1]}), pl.DataFrame({"a": [1]})),
    "a column too many": (pa.table({"a": [1]}), pl.DataFrame({"a": [1], "b": [1]})),
    "a long for an int": (pa.table({"a": pa.array([1], pa.int32())}), pl.DataFrame({"a": [1]})),
    "a double for a long": (pa.table({"a": [1]}), pl.DataFrame({"a": [1.0]})),
    "a boolean for a long": (pa.table({"a": [1]}), pl.DataFrame({"a": [True]})),
    "another scale": (
        pa.table({"a": pa.array([Decimal("1.50")], pa.decimal128(10, 2))}),
        pl.DataFrame({"a": [Decimal("1.5")]}, schema={"a": pl.Decimal(10, 1)}),
    ),
    "a decimal off by its last digit": (
        pa.table({"a": pa.array([Decimal("12345678901234567890.12345678")], pa.decimal128(38, 8))}),
        pl.DataFrame({"a": [Decimal("12345678901234567890.12345679")]}, schema={"a": pl.Decimal(38, 8)}),
    ),
    "a zoneless time for an instant": (
        pa.table({"a": pa.array([NOON], pa.timestamp("us", "UTC"))}),
        pl.DataFrame({"a": [NOON.replace(tzinfo=None)]}),
    ),
    "an instant an hour off": (
        pa.table({"a": pa.array([NOON], pa.timestamp("us", "UTC"))}),
        pl.DataFrame({"a": [NOON + timedelta(hours=1)]}, schema={"a": pl.Datetime("us", "UTC")}),
    ),
    "an instant a microsecond off": (
        pa.table({"a": pa.array([NOON], pa.timestamp("us", "UTC"))}),
        pl.DataFrame({"a": [NOON + timedelta(microseconds=1)]}, schema={"a": pl.Datetime("us", "UTC")}),
    ),
    "another day": (pa.table({"a": [date(2024, 3, 1)]}), pl.DataFrame({"a": [date(2024, 3, 2)]})),
    "other bytes": (pa.table({"a": [b"\x00\x01"]}), pl.DataFrame({"a": [b"\x00\x02"]})),
    "another element in a list": (pa.table({"a": [[1, 2]]}), pl.DataFrame({"a": [[1, 3]]})),
    "another order in a list": (pa.table({"a": [[1, 2]]}), pl.DataFrame({"a": [[2, 1]]})),
    "an empty list for null": (
        pa.table({"a": pa.array([None], pa.list_(pa.int64()))}),
        pl.DataFrame({"a": [[]]}, schema={"a": pl.List(pl.Int64)}),
    ),
    "a field deep inside": (
        pa.table({"a": [{"b": [{"c": 1}]}]}),
        pl.DataFrame({"a": [{"b": [{"c": 2}]}]}),
    ),
    "another value in a map": (
        pa.table({"a": pa.array([[("x", 1)]], MAP)}),
        pl.DataFrame(
            {"a": [[{"key": "x", "value": 2}]]},
            schema={"a": pl.List(pl.Struct({"key": pl.String, "value": pl.Int32}))},
        ),
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_equal_rows_are_equal(case: str) -> None:
    expected, actual = SAME[case]
    assert differences(expected, actual) == []


@pytest.mark.parametrize("case", DIFFERENT)
def test_a_difference_is_seen(case: str) -> None:
    expected, actual = DIFFERENT[case]
    assert differences(expected, actual)


def test_the_message_shows_the_rows_that_differ() -> None:
    messages = differences(pa.table({"a": [1, 2]}), pl.DataFrame({"a": [1, 3]}))
    assert messages == ["row missing (1 times): (2,)", "row not expected (1 times): (3,)"]


@pytest.mark.parametrize("year", [1500, 9999])
def test_expected_int96_timestamps_keep_years_far_away(tmp_path: Path, year: int) -> None:
    moment: Any = datetime(year, 12, 31, 23, 59, 59)  # noqa: DTZ001  # INT96 carries no zone
    table = pa.table({"a": pa.array([moment], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "rows.parquet", use_deprecated_int96_timestamps=True)
    assert read_rows(tmp_path / "rows.parquet")["a"].to_pylist() == [moment]
