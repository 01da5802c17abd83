"""Filters to trees, and trees against bounds."""

from __future__ import annotations

import polars as pl
import pytest

from lakeview.predicates import predicate
from lakeview.predicates.bounds import Bounds, may_match
from lakeview.predicates.expressions import parse
from lakeview.predicates.tree import (
    And,
    Comparison,
    Constant,
    IsIn,
    IsNull,
    Node,
    Or,
    StartsWith,
    Unknown,
    paths,
)


def node_text(node: Node) -> str:
    """A tree in one line."""
    match node:
        case And(left, right) | Or(left, right):
            return f"({node_text(left)} {type(node).__name__.lower()} {node_text(right)})"
        case Comparison(path, op, value):
            return f"{'.'.join(path)} {op} {value[0]}"
        case IsIn(path, values, negated):
            return f"{'.'.join(path)} {'not ' if negated else ''}in {values.to_list()}"
        case IsNull(path, negated):
            return f"{'.'.join(path)} is {'not ' if negated else ''}null"
        case StartsWith(path, prefix):
            return f"{'.'.join(path)} starts with {prefix}"
        case Constant(value):
            return str(value)
    return "unknown"


READ = [
    ("a = 1", "a = 1"), ("1 = a", "a = 1"), ("1 < a", "a > 1"), ("5 >= a", "a <= 5"), ("a <> 1", "a != 1"),
    ("a = 1 AND b = 2", "(a = 1 and b = 2)"), ("a = 1 OR b = 2", "(a = 1 or b = 2)"),
    ("NOT a = 1", "a != 1"), ("NOT (a < 1 AND b > 2)", "(a >= 1 or b <= 2)"),
    ("NOT (a < 1 OR NOT b > 2)", "(a >= 1 and b > 2)"),
    ("a IS NULL", "a is null"), ("NOT a IS NULL", "a is not null"), ("a IS NOT NULL", "a is not null"),
    ("a IN (1, 2)", "a in [1, 2]"), ("a NOT IN (1, 2)", "a not in [1, 2]"),
    ("a BETWEEN 1 AND 2", "(a >= 1 and a <= 2)"), ("a NOT BETWEEN 1 AND 2", "(a < 1 or a > 2)"),
    ("STARTS_WITH(a, 'x')", "a starts with x"), ("a", "a = True"), ("NOT a", "unknown"),
    ("TRUE", "True"), ("1 = 2", "False"), ("NOT 1 = 2", "True"), ("a = NULL", "None"),
    ("a = b", "unknown"), ("a + 1 = 2", "unknown"), ("UPPER(a) = 'X'", "unknown"), ("a % 2 = 0", "unknown"),
    ("NOT STARTS_WITH(a, 'x')", "unknown"), ("a = 1 AND UPPER(b) = 'X'", "(a = 1 and unknown)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tree"), READ, ids=[t for t, _ in READ])
def test_a_condition_is_read(text: str, tree: str) -> None:
    assert node_text(parse(predicate(text))) == tree


EXPRESSIONS: list[tuple[pl.Expr, str]] = [
    (pl.col("a").struct.field("b") == 1, "a.b = 1"),
    (pl.col("a").is_in([1, None]), "a in [1, None]"),
    (pl.col("a").is_in([1], nulls_equal=True), "unknown"),
    (pl.col("a").cast(pl.Int64).is_in(pl.Series([1]).implode()), "a in [1]"),
    (pl.col("a").is_between(1, 2, closed="none"), "(a > 1 and a < 2)"),
    (~pl.col("a").is_between(1, 2, closed="left"), "(a < 1 or a >= 2)"),
    (pl.col("a").eq_missing(1), "unknown"),
    ((pl.col("a") == 1).alias("x"), "a = 1"),
    (pl.col("^a.*$") == 1, "unknown"),
    (pl.all_horizontal(pl.col("a") == 1, pl.col("b") == 2), "unknown"),
    (pl.col("a") == pl.col("a").max(), "unknown"),
]


@pytest.mark.parametrize(("expression", "tree"), EXPRESSIONS, ids=[str(e)[:40] for e, _ in EXPRESSIONS])
def test_an_expression_is_read(expression: pl.Expr, tree: str) -> None:
    assert node_text(parse(expression)) == tree


def test_a_long_list_is_no_long_condition() -> None:
    values = ", ".join(str(-i - 0.5) for i in range(20_000))
    assert isinstance(parse(predicate(f"id IN ({values}) AND city = '{'or ' * 3_000}'")), And)


def test_an_expression_too_deep_to_look_at_skips_no_file() -> None:
    deep = pl.lit(value=False)
    for i in range(900):
        deep = deep | (pl.col("id") == i)
    assert parse(deep) == Unknown()


def test_a_long_chain_of_sql_is_read_whole() -> None:
    assert len(list(paths(parse(predicate(" OR ".join(f"id = {i}" for i in range(2_000))))))) == 2_000


def test_the_columns_of_a_tree_are_listed() -> None:
    assert list(paths(parse(predicate("a = 1 AND (b IS NULL OR UPPER(c) = 'X')")))) == [("a",), ("b",)]


FILES = Bounds(
    low=pl.Series([1, 5, None, 3, 4]),
    high=pl.Series([4, 9, None, 3, 4]),
    exact=pl.Series([True, True, False, True, False]),
    nulls=pl.Series([0, 2, 7, 0, None], dtype=pl.Int64),
    records=pl.Series([7, 7, 7, 7, None], dtype=pl.Int64),
)
"""1 to 4 without nulls; 5 to 9 with some; all null; 3 only; about 4, and nothing known of nulls."""

MATCHES: list[tuple[str, list[int]]] = [
    ("a = 3", [1, 0, 0, 1, 0]), ("a <> 3", [1, 1, 0, 0, 1]), ("a <> 4", [1, 1, 0, 1, 1]),
    ("a < 1", [0, 0, 0, 0, 0]), ("a <= 1", [1, 0, 0, 0, 0]), ("a > 4", [0, 1, 0, 0, 0]), ("a >= 4", [1, 1, 0, 0, 1]),
    ("a IS NULL", [0, 1, 1, 0, 1]), ("a IS NOT NULL", [1, 1, 0, 1, 1]),
    ("a IN (3, 7)", [1, 1, 0, 1, 0]), ("a NOT IN (3, 7)", [1, 1, 0, 0, 1]),
    ("a = 3 OR a IS NULL", [1, 1, 1, 1, 1]), ("a = 3 AND a = 9", [0, 0, 0, 0, 0]),
    ("UPPER(a) = 'X'", [1, 1, 1, 1, 1]), ("UPPER(a) = 'X' AND a > 4", [0, 1, 0, 0, 0]), ("a = 'x'", [1, 1, 1, 1, 1]),
    ("1 = 2", [0, 0, 0, 0, 0]), ("a = NULL", [0, 0, 0, 0, 0]),
]  # fmt: skip


@pytest.mark.parametrize(("where", "expected"), MATCHES, ids=[w for w, _ in MATCHES])
def test_bounds_tell_which_files_may_match(where: str, expected: list[int]) -> None:
    matches = may_match(parse(predicate(where)), lambda _: FILES, 5)
    assert [int(v) for v in matches] == expected


def test_a_column_of_which_nothing_is_known_spares_no_file() -> None:
    assert may_match(parse(predicate("a = 3")), lambda _: None, 2).to_list() == [True, True]
    assert isinstance(parse(predicate("a = b")), Unknown)
