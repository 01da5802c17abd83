"""What is said where polars refuses a condition."""

from __future__ import annotations

import re

import polars as pl
import pytest

from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.predicates.condition import row_expression
from lakeview.rows.matching import matching_rows

FRAME = pl.DataFrame(schema={"z": pl.Datetime("us", "UTC"), "n": pl.Datetime("us")})
SCHEMA = Schema.from_arrow(FRAME.to_arrow().schema)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        pytest.param("z = TIMESTAMP '2024-01-01 00:00:00'", r"an offset has a zone, as TIMESTAMP .*\+00:00'", id="="),
        pytest.param("z IN (TIMESTAMP '2024-01-01 00:00:00')", "a timestamp with a time zone is compared", id="IN"),
        pytest.param("n = TIMESTAMP '2024-01-01 00:00:00+00:00'", "is compared with one without", id="the other way"),
        pytest.param("z = '2024-01-01'", "cannot compare 'date/datetime/time' to a string value$", id="a text"),
    ],
)
def test_a_refused_condition_is_explained_without_advice_for_python(where: str, words: str) -> None:
    with pytest.raises(InvalidRequestError, match="the condition cannot be evaluated: ") as caught:
        matching_rows(FRAME, row_expression(where, SCHEMA))
    assert re.search(words, caught.value.message)


SHORT = pl.DataFrame(
    {"x": [127, 1], "s": [{"v": 2**31 - 1}, {"v": 1}]}, {"x": pl.Int8, "s": pl.Struct({"v": pl.Int32})}
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("X + 1", [128, 2]),
        ("-(x) * x", [-16129, -1]),
        ("s.v + 1 < 0", [False, False]),
        ("abs(x) - x / 2", [63.5, 0.5]),
        ("CASE WHEN x > 1 THEN x ELSE x + 1 END", [127, 2]),
    ],
)
def test_arithmetic_over_short_integers_does_not_wrap_around(text: str, values: list[object]) -> None:
    expression = row_expression(text, Schema.from_arrow(SHORT.to_arrow().schema))
    assert SHORT.select(expression.alias("value"))["value"].to_list() == values
