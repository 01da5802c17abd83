"""What a text typed into a form or a link may and may not ask for: no condition ends the process that reads it."""

from __future__ import annotations

import polars as pl
import pytest

from lakeview.conditions import predicate
from lakeview.errors import InvalidRequestError

ENDLESS = {
    "a chain between comments that hide it": ("/*'*/ " + " AND ".join(["a = 1"] * 60_000) + " /*'*/", "no part of a"),
    "a chain between line comments": ("--'\n" + " AND ".join(["a = 1"] * 60_000), "-- is no part of a condition"),
    "a chain between dollars": ("s = $$'$$ AND " + " AND ".join(["a = 1"] * 60_000), r"\$ is no part of a condition"),
    "a chain between back-quotes": (
        "`'` = 1 AND " + " AND ".join(["a = 1"] * 60_000),
        "operators, more than the 2,000",
    ),
    "a chain behind an escape": (r"s = E'\' AND " + " AND ".join(["a = 1"] * 60_000), "no part of a condition"),
    "membership of membership": ("b" + " IN (TRUE)" * 60_000, "operators, more than the 2,000"),
    "membership, fewer": ("b" + " IN (TRUE)" * 1_200, "1,200 operators like IN and LIKE, more than the 500"),
    "remainders of remainders": ("a" + " % 3" * 1_500 + " = 1", "1,500 operators like IN and LIKE"),
    "patterns of patterns": ("s" + " RLIKE 'a'" * 60_000, "operators, more than the 2,000"),
    "time zones of time zones": ("s" + " AT TIME ZONE 'UTC'" * 60_000, "operators, more than the 2,000"),
    "ranges of ranges": ("a" + " BETWEEN 1 AND 2" * 300, "repeats itself inside itself"),
    "parts of parts": ("SPLIT_PART(" * 20 + "s" + ", 'a', 1)" * 20 + " = 'x'", "repeats itself inside itself"),
}

GROWING = {
    "a padded text": ("LPAD('x', 10000000000) = s", "PadStart of constants"),
    "a series": ("a = 1 AND GENERATE_SERIES(1, 1000000000000) = a", "IntRanges of constants"),
    "texts put into texts": ("REPLACE(" * 5 + "'aa'" + ", 'a', 'aaaaaaaaaa')" * 5 + " = s", "Replace of constants"),
    "joined texts": ("ARRAY_TO_STRING(ARRAY['a', 'b'], 'x') = s", "Join of constants"),
    "a padded text below very much": (" OR ".join(["a = 1"] * 650) + " OR RPAD('x', 9) = s", "nested too deep"),
}

MANY_COLUMNS = ['"^x$" = 1', "COLUMNS('.*') = 1", "(SELECT 1) = a"]

HARMLESS = [
    "s = LOWER('X')",
    "d >= DATE '2026-01-01' AND d < DATE '2026-02-01' + INTERVAL '1 day'",
    "d = DATE('2026-01-01')",
    "a = ABS(-3) + ROUND(1.5) AND LEFT(s, 2) = 'ab' AND SPLIT_PART(s, '-', 1) = 'x'",
    "LPAD(s, 3, '0') = '007'",
    "REPLACE(s, '-', '/*') = 'a--b$' AND s LIKE 'it''s%'",
    " AND ".join(["a BETWEEN 1 AND 2"] * 250),
    " OR ".join(f"s LIKE '{i}%'" for i in range(500)),
]


@pytest.mark.parametrize(("text", "message"), ENDLESS.values(), ids=list(ENDLESS))
def test_a_condition_that_would_take_the_stack_or_all_memory_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        predicate(text)


@pytest.mark.parametrize(("text", "message"), GROWING.values(), ids=list(GROWING))
def test_constants_that_may_grow_are_not_worked_out(text: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        predicate(text)


@pytest.mark.parametrize("text", MANY_COLUMNS)
def test_a_pattern_of_names_is_no_column(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="stand for more than one column"):
        predicate(text)


@pytest.mark.parametrize("text", HARMLESS, ids=[text[:40] for text in HARMLESS])
def test_what_people_ask_for_is_no_danger(text: str) -> None:
    assert str(predicate(text)) == str(pl.sql_expr(text))
