"""Verdicts on a table's constraints to what is left to look for: the rules that statistics do not prove."""

from __future__ import annotations

import polars as pl

from lakeview.views.quality.constraints import Verdict


def open_rules(rules: pl.DataFrame) -> list[tuple[str, str]]:
    """Name and filter of the rows that violate each rule of KEPT_RULES, for rules not proved to be satisfied and whose
    violations a filter can find."""
    unproved = rules.filter(pl.col("verdict") != Verdict.KEPT.value).drop_nulls("breaking")
    return list(unproved.select("name", "breaking").iter_rows())
