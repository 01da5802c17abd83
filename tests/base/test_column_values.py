"""Expressions that readers and lookers share."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from lakeview.model.column_values import all_differ, format_expression


@pytest.mark.parametrize(
    ("template", "parts", "texts"),
    [
        ("day {}", ["n"], ["day 1", None, "day -3"]),
        ("{} of {}!", ["n", pl.lit("some")], ["1 of some!", None, "-3 of some!"]),
        ("{}", [pl.col("n") * 1.5], ["1.5", None, "-4.5"]),
    ],
)
def test_texts_with_values_in_them(template: str, parts: list[Any], texts: list[str | None]) -> None:
    frame = pl.concat([pl.DataFrame({"n": [n]}, schema={"n": pl.Int64()}) for n in (7, 1, None, -3)], rechunk=False)
    rest = frame.filter(pl.col("n").ne_missing(7))  # its first chunk is empty now
    assert rest.select(format_expression(template, *parts)).to_series().to_list() == texts


@pytest.mark.parametrize(
    ("texts", "is_unique"),
    [([], True), (["a", "b"], True), (["a", None], True), (["a", "b", "a"], False), ([None, None], False)],
)
def test_whether_no_value_occurs_twice(texts: list[str | None], is_unique: bool) -> None:
    assert all_differ(pl.Series(texts, dtype=pl.String)) == is_unique
