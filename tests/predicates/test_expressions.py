"""Expressions of polars to trees and parts: numbers are those that were given, to the bit."""

from __future__ import annotations

import random

import polars as pl
import pytest

from lakeview.predicates.expressions import conjuncts, parse
from lakeview.predicates.tree import Comparison, Unknown

CHANCE = random.Random(7)
NUMBERS = [0.09940033823870109, 0.1, -0.0, 1e300, 5e-324, *(CHANCE.random() for _ in range(200))]
"""One in ten is another number once polars has read it from JSON."""


@pytest.mark.parametrize("dtype", [None, pl.Float64])
def test_a_number_that_a_column_is_compared_with_is_the_one_given(dtype: type[pl.Float64] | None) -> None:
    for number in NUMBERS:
        for node in (parse(pl.col("x") >= pl.lit(number, dtype)), parse(pl.lit(number, dtype) <= pl.col("x"))):
            assert isinstance(node, Comparison)
            assert (node.op, node.value.to_list()) == (">=", [number])


def test_a_calculated_number_is_the_one_calculated_or_unknown() -> None:
    nodes = [(parse(pl.col("x") == -pl.lit(number)), -number) for number in NUMBERS]
    for node, number in nodes:
        assert isinstance(node, Unknown) or (isinstance(node, Comparison) and node.value.to_list() == [number])
    assert sum(isinstance(node, Comparison) for node, _ in nodes) > len(nodes) / 2


def test_conditions_that_are_split_select_the_same_rows() -> None:
    rows = pl.DataFrame({"x": NUMBERS, "y": [1] * len(NUMBERS)})
    split = 0
    for number in NUMBERS:
        parts = conjuncts((pl.col("x") == number) & (pl.col("y") == 1))
        assert rows.filter(*parts)["x"].to_list() == [number]
        split += len(parts) == 2
    assert split > len(NUMBERS) / 2
