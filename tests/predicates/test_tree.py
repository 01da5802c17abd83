"""Trees negated, complemented, split and joined; one value in all rows, or statistics, to bounds."""

from __future__ import annotations

from itertools import product

import polars as pl
import pytest

from lakeview.predicates import predicate
from lakeview.predicates.bounds import Bounds, may_match
from lakeview.predicates.expressions import parse
from lakeview.predicates.tree import And, Node, Or, Unknown, complement, conjuncts, join, leaves, map_leaves, negate

ROWS = pl.DataFrame(
    list(product([None, 1, 2, 3], [None, True, False])), schema={"a": pl.Int64(), "b": pl.Boolean()}, orient="row"
)
CONDITIONS = (
    "a = 2",
    "a <> 2",
    "a < 2",
    "a >= 2",
    "a IN (1, 3)",
    "a IS NULL",
    "b = TRUE",
    "a > 1 AND b = FALSE",
    "a = 1 OR b <> TRUE",
)


def matches(node: Node) -> list[bool]:
    """Whether each row, as a file of its own, can match: exact, for a row's values are its bounds."""
    return may_match(node, lambda path: Bounds.of_values(ROWS[path[0]]), ROWS.height).to_list()


@pytest.mark.parametrize("where", CONDITIONS)
def test_a_tree_its_negation_and_its_complement_match_the_rows_that_polars_selects(where: str) -> None:
    truth = ROWS.select(predicate(where).alias("truth")).to_series().to_list()
    node = parse(predicate(where))
    assert matches(node) == [value is True for value in truth]
    assert matches(negate(node)) == [value is False for value in truth]
    assert matches(complement(node)) == [value is not True for value in truth]
    assert matches(parse(predicate(f"NOT ({where})"))) == matches(negate(node))


def test_conditions_joined_by_and_split_again_in_order() -> None:
    parts = [parse(predicate(f"a = {n}")) for n in range(5)]
    assert [str(part) for part in conjuncts(join(And, parts))] == [str(part) for part in parts]
    joined = join(Or, parts)
    assert list(conjuncts(joined)) == [joined]
    assert len(list(leaves(joined))) == 5


def test_leaves_are_replaced_below_every_connector() -> None:
    node = map_leaves(parse(predicate("a = 1 AND (b OR a = 3)")), lambda _: Unknown())
    assert node == And(Unknown(), Or(Unknown(), Unknown()))


def test_values_that_are_not_recorded_are_unknown() -> None:
    values = pl.Series([1.0, float("nan"), None, 4.0])
    bounds = Bounds.of_values(values, pl.Series([True, True, True, False]))
    assert bounds.low.to_list()[2:] == [None, None]
    assert bounds.exact.to_list() == [True, True, False, False]
    assert bounds.nulls.to_list() == [0, 0, 1, None]
    assert bounds.nans is not None
    assert bounds.nans.to_list() == [0, 1, 0, None]
    assert may_match(parse(predicate("a > 2")), lambda _: bounds, 4).to_list() == [False, True, False, True]
