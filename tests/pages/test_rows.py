"""Rows as a browser shows them: whatever they hold, it is text or a number that is right."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

from lakeview.app.display_rows import as_shown
from lakeview.app.widths import SENTENCE
from tests.pages.app import column_widths

VALUES: dict[str, tuple[Any, pl.DataType, Any]] = {
    "a small whole number": (7, pl.Int64(), 7),
    "a number no browser can hold": (2**60 + 1, pl.Int64(), "1152921504606846977"),
    "one without a sign": (2**64 - 1, pl.UInt64(), "18446744073709551615"),
    "NaN": (math.nan, pl.Float64(), "NaN"),
    "infinity": (-math.inf, pl.Float64(), "-inf"),
    "bytes": (b"\x00<b>", pl.Binary(), "003c623e"),
    "many bytes": (b"\x01" * 2_000, pl.Binary(), "01" * 1_000 + "\N{HORIZONTAL ELLIPSIS}"),
    "HTML": ("<script>x</script>", pl.String(), "<script>x</script>"),
    "control characters": ("a\x00\x1b[31m\u202eb", pl.String(), "a\x00\x1b[31m\u202eb"),
    "a long text": ("x" * 20_000, pl.String(), "x" * 10_000 + "\N{HORIZONTAL ELLIPSIS}"),
    "a list": ([2**60, None], pl.List(pl.Int64), "[1152921504606846976, null]"),
    "a struct": (
        {"a": math.nan, "b": b"\xff"},
        pl.Struct({"a": pl.Float64, "b": pl.Binary}),
        '{"a": "NaN", "b": "ff"}',
    ),
    "a number of single precision": (0.1, pl.Float32(), 0.1),
    "a decimal": (Decimal("1.50"), pl.Decimal(38, 2), Decimal("1.50")),
    "a decimal of many digits": (Decimal("12345678901234567890.10"), pl.Decimal(38, 2), "12345678901234567890.10"),
    "a whole second": (datetime(2026, 3, 1, 6, tzinfo=UTC), pl.Datetime("us", "UTC"), "2026-03-01 06:00:00"),
    "a millisecond": (datetime(1, 1, 1, 6, 0, 0, 20_000, UTC), pl.Datetime("us", "UTC"), "0001-01-01 06:00:00.020"),
    "the last microsecond": (datetime.max.replace(tzinfo=UTC), pl.Datetime("us", "UTC"), "9999-12-31 23:59:59.999999"),
    "no time of any calendar": (2**63 - 1, pl.Datetime("us"), "9223372036854775807"),
    "nor one before": (-(2**63), pl.Datetime("us"), "-9223372036854775808"),
    "a time of day": (time(6, 0, 0, 1), pl.Time(), "06:00:00.000001"),
    "a duration": (timedelta(days=1, hours=3), pl.Duration("us"), "1d 3h"),
    "a boolean": (False, pl.Boolean(), "false"),
    "a date": (date(2026, 3, 1), pl.Date(), date(2026, 3, 1)),
}


@pytest.mark.parametrize(("value", "type_", "expected"), VALUES.values(), ids=list(VALUES))
def test_a_value_is_shown_as_it_is(value: Any, type_: pl.DataType, expected: Any) -> None:
    for name in ("a", "^x$", "", "<b>"):
        values = as_shown(pl.DataFrame({name: pl.Series([value, None], dtype=type_)}))
        assert values.columns == [name]
        assert values[name].to_list() == [expected, None]


def test_numbers_of_single_precision_beside_one_that_is_none_have_their_own_digits() -> None:
    texts = as_shown(pl.DataFrame({"a": pl.Series([0.1, math.nan], dtype=pl.Float32)}))
    assert texts["a"].to_list() == ["0.1", "NaN"]


def test_no_rows_are_shown_as_none() -> None:
    assert as_shown(pl.DataFrame(schema={"a": pl.Int64(), "b": pl.Float64(), "c": pl.List(pl.Int8)})).shape == (0, 3)


def test_a_long_text_leaves_room_for_other_columns() -> None:
    def page() -> None:
        import polars as pl

        from lakeview.app import display_rows

        display_rows.table(pl.DataFrame({"text": ["lorem ipsum " * 40], "short": ["a"]}), key="rows")

    table = AppTest.from_function(page).run().dataframe[0]
    assert column_widths(table) == {"text": SENTENCE}
