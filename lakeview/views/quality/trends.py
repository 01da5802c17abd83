"""Loads to trends: one value a load, the expected range, and the loads outside it."""

from typing import Literal

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.views.conform import conform
from lakeview.views.quality.column_loads import LOAD_LANES
from lakeview.views.quality.sudden_changes import around
from lakeview.views.thresholds import (
    BAND_SPREADS,
    GAP_DAYS,
    HISTORICAL_DAYS,
    HISTORICAL_DAYS_MAX,
    HISTORICAL_LOADS,
    LAG_DAYS,
    LAG_GAPS,
    LOAD_TIMES,
    RANGE_WIDTHS,
)

LOAD_TREND = pl.Schema(
    {
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "writer": pl.String(),
        "value": pl.Float64(),
        "mark": pl.String(),
        "band_low": pl.Float64(),
        "band_high": pl.Float64(),
        "outside": pl.Boolean(),
        "repaired": pl.Boolean(),
        "band_days": pl.Float64(),
    }
)
"""One row a load, oldest first. `value` null where unknown, `mark` "" exact, "≤" or "≥" a bound, "≈" of some files;
the band is the median of the loads around ± 3 median absolute deviations, null where too few have a value; `repaired`:
a later load removed it again; `band_days`: the days since the load before, where the band is of rows a day times
these, null where it is of rows a load."""

_DAY_MS = 86_400_000


def null_trend(changes: pl.DataFrame, column: str) -> pl.DataFrame:
    """LOAD_TREND of a column's null share, from SUDDEN."""
    rows = changes.filter(pl.col("column") == column)
    trend = _add_band(rows.with_columns(value="null_share", stays=pl.col("taken_back_by").is_null()))
    return _finish(trend.with_columns(pl.col("band_high").clip(None, 1.0)), "sudden")


def range_trend(changes: pl.DataFrame, column: str, end: Literal["low", "high"]) -> pl.DataFrame:
    """LOAD_TREND of the min or the max of a column of numbers; empty for other columns."""
    rows = changes.filter(pl.col("column") == column)
    if rows[end].null_count() == rows.height:
        return pl.DataFrame(schema=LOAD_TREND)
    bound, is_beyond = {
        "low": ("\N{GREATER-THAN OR EQUAL TO}", pl.col("low") < pl.col("usual_low")),
        "high": ("\N{LESS-THAN OR EQUAL TO}", pl.col("high") > pl.col("usual_high")),
    }[end]
    mark = pl.when("range_exact").then(pl.lit("")).otherwise(pl.lit(bound))
    rows = rows.with_columns(mark=mark, value=end, stays=pl.col("taken_back_by").is_null())
    return _finish(_add_band(rows).with_columns(sudden_range=pl.col("sudden_range") & is_beyond), "sudden_range")


def range_trends(changes: pl.DataFrame, column: str) -> dict[str, pl.DataFrame]:
    """LOAD_TREND of the `minimum` and of the `maximum` where it has an anomaly; without any, that of the maximum."""
    trends = {"minimum": range_trend(changes, column, "low"), "maximum": range_trend(changes, column, "high")}
    return {word: trend for word, trend in trends.items() if trend["outside"].any()} or {"maximum": trends["maximum"]}


def state_trend(states: pl.DataFrame, column: str, measure: str) -> pl.DataFrame:
    """LOAD_TREND of COLUMN_STATES, the whole table at every version: `null_share`, `low` or `high`; no band."""
    rows = states.filter(pl.col("column") == column)
    marks = {
        "null_share": pl.col("mark"),
        "low": pl.lit("\N{GREATER-THAN OR EQUAL TO}"),
        "high": pl.lit("\N{LESS-THAN OR EQUAL TO}"),
    }
    bounds = {"exact": pl.lit(""), "partial": pl.lit("\N{ALMOST EQUAL TO}")}
    exact = pl.coalesce(
        *(pl.when(pl.col("range_is") == name).then(mark) for name, mark in bounds.items()), marks[measure]
    )
    none = pl.lit(None, dtype=pl.Float64)
    trend = rows.with_columns(
        value=measure,
        mark=marks[measure] if measure == "null_share" else exact,
        writer=pl.lit(None, dtype=pl.String),
        band_low=none,
        band_high=none,
        out=pl.lit(value=False),
    )
    return _finish(trend, "out")


def rows_trend(timeline: pl.DataFrame) -> pl.DataFrame:
    """LOAD_TREND of the rows of each append, from TIMELINE: outside where it is an anomaly there and is more than
    LOAD_TIMES the max of the loads around, or less than the min by as much. Some appends change the schema."""
    evolves = (pl.col("lane") == "schema") & pl.col("data_change") & (pl.col("files_removed").fill_null(0) == 0)
    loads = timeline.filter(((pl.col("lane") == "append") | evolves) & (pl.col("files_added").fill_null(1) > 0))
    days = pl.col("timestamp").diff().dt.total_milliseconds() / _DAY_MS
    rows = loads.with_columns(
        value=pl.col("records_added").cast(pl.Float64), mark=pl.lit(""), stays=~pl.col("suspicious"), gap=days
    )
    baseline = pl.when("stays").then("value")
    # a day's rows after a month's are no surprise where the day is all that has passed
    sooner = (pl.col("gap") / around(pl.col("gap"), "median")).fill_nan(1.0).fill_null(1.0).clip(None, 1.0)
    trend = _banded_by_gap(rows).with_columns(
        few=(pl.col("value") * LOAD_TIMES < around(baseline, "min") * sooner).fill_null(value=False),
        many=(pl.col("suspicious") & (pl.col("value") > around(baseline, "max") * LOAD_TIMES)).fill_null(value=False),
    )
    return _finish(trend.with_columns(out=pl.col("few") | pl.col("many")), "out")


def event_column(changes: pl.DataFrame) -> str | None:
    """The column of event times: the one of dates or times with a max in most loads; None without one."""
    trend = changes.group_by("column", maintain_order=True).agg(pl.col("newest").is_not_null().sum())
    trend = trend.filter(pl.col("newest") > 0).sort("newest", descending=True, maintain_order=True)
    return None if trend.is_empty() else str(trend["column"][0])


def lag_trend(changes: pl.DataFrame, column: str) -> pl.DataFrame:
    """LOAD_TREND of the days from the newest event a load brought, by a column of dates or times, to its commit.

    Corrections come late by their nature: only appends fall out. Events that were not over then fall out where they lie
    as far ahead of the loads around.
    """
    mark = pl.when("range_exact").then(pl.lit("")).otherwise(pl.lit("\N{GREATER-THAN OR EQUAL TO}"))
    rows = changes.filter((pl.col("column") == column) & (pl.col("lane") == "append"))
    rows = rows.with_columns(value=lag_days(), mark=mark, stays=pl.col("taken_back_by").is_null())
    between = pl.col("timestamp").diff().dt.total_milliseconds() / _DAY_MS
    least = pl.max_horizontal(pl.lit(LAG_DAYS), LAG_GAPS * between.median())
    ahead = _far_out(rows, least)["far_below"] & (rows["value"] < 0).fill_null(value=False)
    trend = _far_out(rows.with_columns(stays=pl.col("stays") & ~ahead), least)
    return _finish(_add_band(trend).with_columns(far=pl.col("far") | ahead), "far")


def far_back(changes: pl.DataFrame, column: str) -> pl.DataFrame:
    """`version, days` of the appends whose oldest event, not the newest one, lies years further back than those of the
    loads around; the days are to the commit."""
    rows = changes.filter((pl.col("column") == column) & (pl.col("lane") == "append"))
    stays = pl.col("taken_back_by").is_null()
    oldest, newest = (
        _far_out(rows.with_columns(value=lag_days(end), stays=stays), HISTORICAL_DAYS) for end in ("oldest", "newest")
    )
    return oldest.filter(pl.col("far") & ~newest["far"]).select("version", days="value")


def lag_days(event: str = "newest") -> pl.Expr:
    """Days from the newest event of a load, or the `oldest`, to its commit."""
    return (pl.col("timestamp").dt.epoch("ms") - pl.col(event).dt.epoch("ms")) / _DAY_MS


def usual_of_history(lags: pl.DataFrame) -> float | None:
    """The days from event to commit that are usual in a table whose loads bring history, from `lag_trend`: that a load
    of 2026 brings rows of 2013 says nothing of its freshness. None where the loads bring what has just happened.
    """
    usual = lags["value"].median()
    gap = (lags["timestamp"].diff().dt.total_milliseconds() / _DAY_MS).median()
    if not isinstance(usual, float):
        return None
    cadence = gap if isinstance(gap, float) else 0.0
    return usual if usual > min(max(HISTORICAL_LOADS * cadence, HISTORICAL_DAYS), HISTORICAL_DAYS_MAX) else None


def beyond(trend: pl.DataFrame, usual: float) -> pl.DataFrame:
    """LOAD_TREND of how far values and bands lie above (or, below zero, under) what is usual."""
    return trend.with_columns(pl.col("value", "band_low", "band_high") - usual)


def gap_trend(timeline: pl.DataFrame) -> pl.DataFrame:
    """LOAD_TREND of the days between a load and the one before, from TIMELINE."""
    loads = timeline.filter(pl.col("lane").is_in(LOAD_LANES) & pl.col("data_change"))
    gap = pl.col("timestamp").diff().dt.total_milliseconds() / _DAY_MS
    rows = loads.with_columns(value=gap, mark=pl.lit(""), stays=pl.lit(value=True))
    return _finish(_add_band(_far_out(rows, GAP_DAYS)), "far")


def _far_out(rows: pl.DataFrame, least: float | pl.Expr) -> pl.DataFrame:
    """`far`: above the greatest of the loads around by many times what lies between those, and by `least` days;
    `far_below`: below the least of them by as much."""
    baseline = pl.when("stays").then("value")
    most, fewest = around(baseline, "max"), around(baseline, "min")
    enough = (RANGE_WIDTHS * (most - fewest)).clip(least)
    far, below = (pl.col("value") - most) > enough, (fewest - pl.col("value")) > enough
    return rows.with_columns(far=far.fill_null(value=False), far_below=below.fill_null(value=False))


def _banded_by_gap(rows: pl.DataFrame) -> pl.DataFrame:
    """`_add_band`, by rows a day times the days since the load before where those vary less than the rows of the loads:
    a table that was loaded by the month and then by the day."""
    by_load = _add_band(rows)
    rates = _add_band(rows.with_columns(value=pl.when(pl.col("gap") > 0).then(pl.col("value") / pl.col("gap"))))
    ends = ("band_low", "band_high")
    width, rate_width = (
        (band["band_high"] - band["band_low"]) / (band["band_high"] + band["band_low"]) for band in (by_load, rates)
    )
    is_steadier = (rate_width < width).fill_null(value=False) & (rows["gap"] > 0).fill_null(value=False)
    of_days = [pl.when(is_steadier).then(rates[end] * rows["gap"]).otherwise(end).alias(end) for end in ends]
    return by_load.with_columns(*of_days, band_days=pl.when(is_steadier).then("gap"))


def _add_band(rows: pl.DataFrame) -> pl.DataFrame:
    baseline = pl.when("stays").then("value")
    trend = rows.with_columns(usual=around(baseline, "median")).with_columns(
        distance=(pl.col("value") - pl.col("usual")).abs()
    )
    spread = BAND_SPREADS * around(pl.when("stays").then("distance"), "median")
    # no farther than the loads around reach: where their sizes change the deviations are as large as the loads
    band = trend.with_columns(
        band_low=pl.max_horizontal(pl.col("usual") - spread, around(baseline, "min")),
        band_high=pl.min_horizontal(pl.col("usual") + spread, around(baseline, "max")),
    )
    # what was never below zero is not usual there
    low = pl.when(pl.col("value").min() >= 0).then(pl.col("band_low").clip(0.0)).otherwise("band_low")
    return band.with_columns(band_low=low)


def _finish(rows: pl.DataFrame, outside: str) -> pl.DataFrame:
    is_repaired = pl.col("taken_back_by").is_not_null() if "taken_back_by" in rows.columns else pl.lit(value=False)
    days = pl.col("band_days") if "band_days" in rows.columns else pl.lit(None, dtype=pl.Float64)
    trend = rows.with_columns(outside=pl.col(outside).fill_null(value=False), repaired=is_repaired, band_days=days)
    return conform(trend, LOAD_TREND)
