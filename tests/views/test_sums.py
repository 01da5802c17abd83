"""Bounds as they are shown are bounds."""

from __future__ import annotations

import polars as pl

from lakeview.views.sums import shown_bounds


def test_bounds_are_rounded_away_from_what_they_bound() -> None:
    shares = pl.DataFrame(
        {"null_share": [0.83851, 0.02341, 0.02341, 0.003, 0.003, None], "mark": ["≥", "≤", "", "≤", "≥", None]}
    )
    assert shares.select(shown_bounds()).to_series().to_list() == [0.838, 0.024, 0.02341, 0.003, 0.003, None]
