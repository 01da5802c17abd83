"""Filters of a form as SQL."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import polars as pl
import pytest

from lakeview import views
from lakeview.model.errors import InvalidRequestError
from lakeview.views.data.preview import Condition

ROWS = pl.DataFrame(
    {
        "delay": [20, 5],
        "price": [Decimal("9.50"), Decimal("9.95")],
        "ok": [True, False],
        "day": [date(2026, 7, 1), date(2026, 7, 2)],
        "at": [datetime(2026, 7, 1, 4, tzinfo=UTC), datetime(2026, 7, 1, 2, tzinfo=UTC)],
        "local": [datetime.fromisoformat("2026-07-01 04:00"), datetime.fromisoformat("2026-07-01 02:00")],
        "hour": [time(4), time(2)],
        "name": ["O'Hare\\", None],
        "rate": ["50% off", "50 off"],
        "two words": [1, None],
        "order": [1, 2],
        "a`b.c": [1, 2],
        'q"': [1, 2],
        "s": [{"x": 1, "x.y": 1}, {"x": 2, "x.y": 2}],
        "raw": [b"\x01\xff", b""],
    }
)
"""Each condition below holds for the first row, and not for the second."""


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        pytest.param(Condition("delay", ">=", 15), "`delay` >= 15", id="a number"),
        pytest.param(Condition("price", "<", Decimal("9.90")), "`price` < 9.90", id="a decimal"),
        pytest.param(Condition("ok", "=", True), "`ok` = TRUE", id="a boolean"),
        pytest.param(Condition("day", "=", date(2026, 7, 1)), "`day` = DATE '2026-07-01'", id="a date"),
        pytest.param(
            Condition("at", ">", datetime(2026, 7, 1, 3, tzinfo=UTC)),
            "`at` > TIMESTAMP WITH TIME ZONE '2026-07-01 03:00:00+00:00'",
            id="a moment",
        ),
        pytest.param(
            Condition("local", ">", datetime.fromisoformat("2026-07-01 03:00")),
            "`local` > TIMESTAMP '2026-07-01 03:00:00'",
            id="no zone",
        ),
        pytest.param(Condition("hour", ">", time(3)), "`hour` > TIME '03:00:00'", id="a time of day"),
        pytest.param(Condition("name", "=", "O'Hare\\"), "`name` = 'O''Hare\\'", id="quotes doubled"),
        pytest.param(Condition("delay", "in", [20, 21]), "`delay` IN (20, 21)", id="one of"),
        pytest.param(Condition("rate", "starts with", "50%"), "STARTS_WITH(`rate`, '50%')", id="a literal beginning"),
        pytest.param(Condition("rate", "contains", "0%"), "STRPOS(`rate`, '0%') > 0", id="a literal part"),
        pytest.param(Condition("two words", "is not null"), "`two words` IS NOT NULL", id="a name of two words"),
        pytest.param(Condition("order", "!=", 2), "`order` != 2", id="a word of SQL as a name"),
        pytest.param(Condition("`a``b.c`", "=", 1), "`a``b.c` = 1", id="a name that is quoted already"),
        pytest.param(Condition("s.x", "=", 1), "`s`.`x` = 1", id="inside a struct"),
        pytest.param(Condition("s.`x.y`", "=", 1), "`s`.`x.y` = 1", id="a dot inside a struct"),
        pytest.param(Condition('q"', "=", 1), '`q"` = 1', id="a quote in a name"),
        pytest.param(Condition("raw", "=", b"\x01\xff"), "`raw` = X'01ff'", id="bytes"),
    ],
)
def test_conditions_as_sql_that_polars_reads(condition: Condition, text: str) -> None:
    assert views.data.preview.where_text([condition]) == text
    assert ROWS.filter(pl.sql_expr(text)).equals(ROWS.head(1))


def test_one_of_none_is_never() -> None:
    assert views.data.preview.where_text([Condition("code", "in", [])]) == "FALSE"


def test_conditions_are_joined() -> None:
    assert views.data.preview.where_text([]) is None
    assert (
        views.data.preview.where_text([Condition("a", "=", 1), Condition("b", "is null")]) == "`a` = 1 AND `b` IS NULL"
    )


@pytest.mark.parametrize(
    "condition",
    [Condition("x", "=", None), Condition("x", "~", 1), Condition("x", "in", "text"), Condition("x", "contains", 1)],
)
def test_what_is_no_filter_is_refused(condition: Condition) -> None:
    with pytest.raises(InvalidRequestError, match="is no filter") as refused:
        views.data.preview.where_text([condition])
    assert refused.value.place == "x"
    assert "is not null" in (refused.value.fix or "")


def test_a_value_without_sql_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="a set cannot be written as SQL"):
        views.data.preview.where_text([Condition("x", "=", {1})])
