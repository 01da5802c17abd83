"""Bounds as they are shown are bounds."""

from __future__ import annotations

import polars as pl
import pytest

from lakeview.views.sums import shown_bounds


def test_bounds_are_rounded_away_from_what_they_bound() -> None:
    shares = pl.DataFrame(
        {"null_share": [0.83851, 0.02341, 0.02341, 0.003, 0.003, None], "mark": ["≥", "≤", "", "≤", "≥", None]}
    )
    assert shares.select(shown_bounds()).to_series().to_list() == [0.838, 0.024, 0.02341, 0.003, 0.003, None]


def test_bounds_near_none_and_all_are_not_rounded_to_these() -> None:
    shares = pl.DataFrame({"null_share": [0.000213, 0.999784, 0.0, 1.0], "mark": ["≥", "≤", "≤", "≥"]})
    assert shares.select(shown_bounds()).to_series().to_list() == pytest.approx([0.00021, 0.99979, 0.0, 1.0], abs=1e-12)
