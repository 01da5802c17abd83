"""What is said where polars refuses a condition."""

from __future__ import annotations

import re
from datetime import date

import polars as pl
import pytest

from lakeview.model.data_types import DecimalType, Field, PrimitiveType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.predicates.condition import row_expression
from lakeview.rows.matching import evaluate, matching_rows

FRAME = pl.DataFrame(schema={"z": pl.Datetime("us", "UTC"), "n": pl.Datetime("us")})
SCHEMA = Schema.from_arrow(FRAME.to_arrow().schema)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        pytest.param("z = TIMESTAMP '2024-01-01 00:00:00'", r"an offset has a zone, as TIMESTAMP .*\+00:00'", id="="),
        pytest.param("z IN (TIMESTAMP '2024-01-01 00:00:00')", "a timestamp with a time zone is compared", id="IN"),
        pytest.param("n = TIMESTAMP '2024-01-01 00:00:00+00:00'", "is compared with one without", id="the other way"),
    ],
)
def test_a_refused_condition_is_explained_without_advice_for_python(where: str, words: str) -> None:
    with pytest.raises(InvalidRequestError, match="the condition cannot be evaluated: ") as caught:
        matching_rows(FRAME, row_expression(where, SCHEMA))
    assert re.search(words, caught.value.message)


TIMES = Schema.from_arrow(pl.DataFrame(schema={**FRAME.schema, "d": pl.Date(), "city": pl.String()}).to_arrow().schema)


@pytest.mark.parametrize(
    ("where", "message", "fix"),
    [
        ("d = 2026-11-2", "d is a date, and is compared with a number in 'd = 2026-11-2'", "write DATE '2026-11-02'"),
        ("(5 < (d))", "d is a date, and is compared with a number in '(5 < (d))'", "write DATE '2026-07-15'"),
        ("d NOT IN (NULL, -1)", "d is a date, and is compared with a number in .*", "write DATE '2026-07-15'"),
        ("d BETWEEN d AND 7", "d is a date, and is compared with a number in .*", "write DATE '2026-07-15'"),
        ("n > 2026-11-20", "n is a timestamp_ntz, and is .*", "write TIMESTAMP '2026-11-20 00:00:00'"),
        ("z > 2026-11-20", "z is a timestamp, and is .*", "write TIMESTAMP '2026-11-20 00:00:00+00:00'"),
        (
            "z = '2024-01-01'",
            "z is a timestamp, and is compared with a text in .*",
            "write TIMESTAMP '2024-01-01 00:00:00+00:00'",
        ),
        ("n < '2024-01-01T10:30'", "n is a timestamp_ntz, and .* a text in .*", "write TIMESTAMP '2024-01-01 10:30'"),
        ("z = 'noon'", "z is a timestamp, and is .* a text in .*", "write TIMESTAMP '2026-07-15 00:00:00+00:00'"),
        (
            'city = "Rome"',
            "there is no column Rome, .*",
            "write text in single quotes, 'Rome', or choose from z, n, d, city",
        ),
        ('city = "O\'Hare"', "there is no column O'Hare, .*", "write text in single quotes, 'O''Hare', or choose .*"),
        ("city = Rome", "there is no column Rome, .*", "choose from z, n, d, city"),
    ],
)
def test_points_in_time_and_texts_written_as_something_else_are_refused_with_what_to_write(
    where: str, message: str, fix: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        row_expression(where, TIMES)
    assert re.fullmatch(message if ".*" in message else re.escape(message), caught.value.message)
    assert re.fullmatch(fix if ".*" in fix else re.escape(fix), caught.value.fix or "")


def test_a_date_is_compared_with_dates_whatever_they_are_computed_from() -> None:
    days = pl.DataFrame({"d": [date(2026, 11, 20), date(2026, 11, 21)]})
    schema = Schema.from_arrow(days.to_arrow().schema)
    for where in (
        "d > '2026-11-20'",
        "d > DATE '2026-11-20'",
        "EXTRACT(DAY FROM d) > 20",
        "d - INTERVAL '1 day' >= DATE '2026-11-20'",
    ):
        assert days.filter(row_expression(where, schema))["d"].to_list() == [date(2026, 11, 21)]


NUMBERS = pl.DataFrame(
    {
        "x": [127, 1], "s": [{"v": 2**31 - 1}, {"v": 1}], "big": [2**63 - 1, -(2**63)], "day": [date(2026, 12, 31)] * 2,
        "name": ["abc", "d"], "part": [1.5, 2.5],
    },
    {
        "x": pl.Int8, "s": pl.Struct({"v": pl.Int32}), "big": pl.Int64, "day": pl.Date, "name": pl.String,
        "part": pl.Float64,
    },
)  # fmt: skip
NUMBERS_SCHEMA = Schema.from_arrow(NUMBERS.to_arrow().schema)


def values_of(text: str) -> list[object]:
    return NUMBERS.select(row_expression(text, NUMBERS_SCHEMA).alias("value"))["value"].to_list()


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("X + 1", [128, 2]),
        ("-(x) * x", [-16129, -1]),
        ("s.v + 1 < 0", [False, False]),
        ("abs(x) - x / 2", [63.5, 0.5]),
        ("CASE WHEN x > 1 THEN x ELSE x + 1 END", [127, 2]),
        ("COALESCE(x, 0) + 1", [128, 2]),
        ("(CASE WHEN x > 1 THEN x ELSE NULL END) * 2", [254, None]),
        ("127 + x", [254, 128]),
        ("pow(x, 2)", [16129, 1]),
        ("pow(2, x)", [2.0**127, 2.0]),
        ("pow(10, 12) + x", [10**12 + 127, 10**12 + 1]),
        ("MONTH(day) * 100 + EXTRACT(DAY FROM day)", [1231, 1231]),
        ("LENGTH(name) - 3 < 0", [False, True]),
        ("OCTET_LENGTH(name) - 3 < 0", [False, True]),
        ("CAST(x AS UTINYINT) - 2", [125, -1]),
        ("x * part + 1", [191.5, 3.5]),
        ("x % 100 + x", [154, 2]),
        ("big + 1 < 0", [False, True]),
        ("big - 1 > 0", [True, False]),
        ("big * big > 0", [True, True]),
        ("abs(big) > 0", [True, True]),
        ("-big > 0", [False, True]),
        ("big / 2 + 1 < 0", [False, True]),
        ("pow(big, 2) > 0 AND pow(big, 3) > 0", [True, False]),
        ("CASE WHEN big > 0 THEN big ELSE big + 1 END", [2**63 - 1, -(2**63) + 1]),
        ("(big + 1) % 10", [8, -7]),
        ("TRY_CAST(big + 1 AS BIGINT)", [None, -(2**63) + 1]),
        ("CAST(big + 1 AS VARCHAR)", ["9223372036854775808", "-9223372036854775807"]),
        ("big + 1 = 9223372036854775807 + 1", [True, False]),
        ("(big + part) * x > 1", [True, False]),
    ],
)
def test_arithmetic_over_integers_does_not_wrap_around(text: str, values: list[object]) -> None:
    assert values_of(text) == values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("big + 1", "9223372036854775808"),
        ("big - 1", "-9223372036854775809"),
        ("COALESCE(big + 1, 0)", "9223372036854775808"),
        ("-big", "9223372036854775808"),
        ("big * big * x < 0", str((2**63 - 1) ** 2)),
    ],
)
def test_an_integer_beyond_64_bits_is_refused_and_named(text: str, value: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        evaluate(NUMBERS, row_expression(text, NUMBERS_SCHEMA), "the value of column big")
    assert caught.value.message == f"the value of column big cannot be evaluated: {value} is no integer of 64 bits"
    assert caught.value.fix == "leave such rows out, or write TRY_CAST(... AS BIGINT), which is null for them"


@pytest.mark.parametrize(
    "text",
    [
        "x / 0",
        "x / (s.v - s.v) > 1",
        "NOT (x / 0 > 1)",
        "x % 0",
        "x // 0",
        "x / 0.0",
        "part % 0",
        "LN(x - x)",
        "LOG10(-x)",
    ],
)
def test_what_arithmetic_does_not_define_is_null(text: str) -> None:
    """polars divides to infinity: a delete with `x / 0 > 1` took every row."""
    assert values_of(text) == [None, None]


TYPED = Schema(
    (
        *(
            Field(name, PrimitiveType(name))
            for name in ("integer", "long", "double", "string", "boolean", "date", "timestamp")
        ),
        Field("decimal", DecimalType(10, 2)),
    )
)


@pytest.mark.parametrize(
    "text",
    [
        "CAST(timestamp AS BIGINT)", "CAST(timestamp AS STRING)", "CAST(long AS TIMESTAMP)", "CAST(double AS STRING)",
        "CAST(string AS INT)", "CAST(COALESCE(double, 1.5) AS DECIMAL(10, 2))", "CAST(decimal AS DECIMAL(10, 1))",
        "CAST(-decimal * 2 AS STRING)", "decimal / integer", "1.0 / 3", "double || 'x'",
        "CAST(CASE WHEN boolean THEN timestamp END AS BIGINT)", "GREATEST(double, 1) < 5", "STRPOS(string, 'a') > 1",
        "CAST(FLOOR(double) AS STRING)", "CAST(SIGN(long) AS STRING)", "REVERSE(string) = 'a'",
        "double % 2 = 1", "decimal % 2 = 1",
    ],
)  # fmt: skip
def test_a_rule_that_spark_evaluates_in_another_way_is_refused(text: str) -> None:
    """CAST of a timestamp AS BIGINT is seconds in Spark and was microseconds here."""
    with pytest.raises(InvalidRequestError, match="Spark"):
        row_expression(text, TYPED, "spark")
    assert isinstance(row_expression(text, TYPED), pl.Expr)


@pytest.mark.parametrize(
    "text",
    [
        "CAST(timestamp AS DATE)", "CAST(integer + 1 AS STRING)", "CAST(decimal AS DECIMAL(12, 4))",
        "CAST(NULL AS INT)", "MOD(integer, 3) = long % 2",
        "CAST(1.50 AS DECIMAL(10, 2))", "CAST('2024-01-31' AS DATE)", "date = DATE '2024-01-31'", "decimal / double",
        "CAST(decimal AS DOUBLE)", "UPPER(string) || CAST(boolean AS STRING)", "CAST(LENGTH(string) AS BIGINT)",
        "CAST(FLOOR(double / 10) AS INT)", "CAST(CEIL(decimal) AS BIGINT)", "CAST(SIGN(double) AS INT)",
    ],
)  # fmt: skip
def test_a_rule_that_spark_evaluates_alike_is_taken(text: str) -> None:
    assert isinstance(row_expression(text, TYPED, "spark"), pl.Expr)


def test_a_number_beyond_the_integers_of_a_rule_is_refused_and_not_null() -> None:
    with pytest.raises(InvalidRequestError, match="conversion from `f64` to `i32` failed"):
        evaluate(pl.DataFrame({"double": [1e20]}), row_expression("CAST(double AS INT)", TYPED, "spark"), "the rule")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("f IS TRUE", [True, False, False]),
        ("f IS NOT TRUE", [False, True, True]),
        ("NOT (f IS FALSE)", [True, False, True]),
        ("f IS NOT FALSE", [True, False, True]),
    ],
)
def test_null_is_neither_true_nor_false(text: str, values: list[bool]) -> None:
    """To polars all of it is null where f is null: a delete by f IS NOT TRUE left these rows."""
    rows = pl.DataFrame({"f": [True, False, None]})
    for dialect in ("spark", "polars"):
        column = row_expression(text, Schema.from_arrow(rows.to_arrow().schema), dialect).alias("f")
        assert rows.select(column)["f"].to_list() == values
