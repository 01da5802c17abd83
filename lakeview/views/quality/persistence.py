"""Sudden changes of a column to how many loads after them are as far outside the expected share or range."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from lakeview.views.quality.sudden_changes import brings_new_rows, least_jump
from lakeview.views.thresholds import RANGE_WIDTHS
from lakeview.views.units import count_text, format_version


def loads_to_compare(changes: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """For each column with a sudden change its loads of SUDDEN that bring new rows and were not reverted."""
    columns = changes.filter(pl.col("sudden") | pl.col("sudden_range"))["column"].unique()
    loads = changes.filter(
        brings_new_rows() & pl.col("taken_back_by").is_null(), pl.col("column").is_in(columns.implode())
    )
    return {str(name): part for (name,), part in loads.partition_by("column", as_dict=True).items()}


def next_loads_alike(
    loads: Mapping[str, pl.DataFrame], load: Mapping[str, Any], *, is_above: bool | None = None
) -> str | None:
    """`still so in the next 2 loads, to v39, the newest`: how many of `loads_to_compare` right after one of SUDDEN are
    like it.

    Judged by what was expected of that load: each later one has it in its own baseline, and is no anomaly for it. One
    that is an anomaly of the column has a finding of its own, and ends them. `is_above`: beyond the max of the range or
    below its min; None for nulls. None is returned without such loads, and for a load that was reverted.
    """
    of_column = loads.get(load["column"])
    if load["taken_back_by"] is not None or of_column is None:
        return None
    place = of_column["version"].index_of(load["version"])
    if place is None or (later := of_column[place + 1 :]).is_empty():
        return None
    is_alike = _is_far(load, is_above) & ~pl.col("sudden") & ~pl.col("sudden_range")
    others = later.select(~is_alike.fill_null(value=False)).to_series().arg_true()
    count = later.height if others.is_empty() else int(others[0])
    if not count:
        return None
    last = format_version(later["version"][count - 1])
    loads_text = "load, " if count == 1 else f"{count_text(count, 'load')}, to "
    return f"still so in the next {loads_text}{last}{', the newest' if count == later.height else ''}"


def _is_far(load: Mapping[str, Any], is_above: bool | None) -> pl.Expr:
    if is_above is None:
        most = pl.lit(load["usual_most"])
        return pl.col("exact") & (pl.col("null_share") - most > least_jump(most))
    low, high = float(load["usual_low"]), float(load["usual_high"])
    beyond = pl.col("high") - high if is_above else low - pl.col("low")
    return beyond > RANGE_WIDTHS * (high - low)
