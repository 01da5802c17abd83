"""Loads of columns against their baseline: which null shares and ranges are sudden changes."""

from collections.abc import Callable, Mapping

import polars as pl

from lakeview.views.conform import conform
from lakeview.views.quality.column_loads import COLUMN_LOADS
from lakeview.views.schema.columns import spread_evenly
from lakeview.views.schema.null_shares import NULL_SHARES_BY_VERSION
from lakeview.views.thresholds import (
    BASELINE_MIN,
    BASELINE_WINDOW,
    NULL_JUMP,
    NULL_JUMP_FROM_ZERO,
    NULL_ROWS,
    RANGE_WIDTHS,
    REWRITES_ROUTINE,
    is_unusual_share,
)

SUDDEN = pl.Schema(
    {
        **COLUMN_LOADS,
        "usual": pl.Float64(),
        "usual_most": pl.Float64(),
        "usual_low": pl.Float64(),
        "usual_high": pl.Float64(),
        "unusual": pl.Boolean(),
        "sudden": pl.Boolean(),
        "sudden_range": pl.Boolean(),
    }
)
"""COLUMN_LOADS with their baseline: `usual` the median and `usual_most` the max of the null shares, `usual_low` and
`usual_high` the ends of the ranges; null where fewer than five loads have them. `unusual`: a null share far from the
median; `sudden`: also far above the whole baseline, or in a reverted load where no column is; `sudden_range`: values
far outside the expected range. A load is an anomaly of its columns where one of the last two is true."""


def sudden_changes(loads: pl.DataFrame) -> pl.DataFrame:
    """SUDDEN from COLUMN_LOADS. Reverted loads are judged, but are no part of a baseline.

    A load that rewrites files is judged by what it adds to them, since a delete writes again what was there before,
    good or bad, and may leave the rows with nulls alone; nor is it part of a baseline, unless most loads rewrite files.
    """
    stays = pl.col("taken_back_by").is_null() & brings_new_rows()
    share = pl.when(stays & pl.col("exact")).then("null_share")
    low, high = pl.when(stays).then("low"), pl.when(stays).then("high")
    with_baseline = loads.with_columns(
        usual=around(share, "median").over("column"),
        usual_most=around(share, "max").over("column"),
        usual_low=around(low, "min").over("column"),
        usual_high=around(high, "max").over("column"),
        width=around(high - low, "median").over("column"),
    ).with_columns(distance=(pl.col("null_share") - pl.col("usual")).abs())
    spread = around(pl.when(stays & pl.col("exact")).then("distance"), "median").over("column").fill_null(0.0)
    # a width of none says nothing of what is far: a year that is the same for twenty loads may well become the next
    width = pl.max_horizontal("width", pl.col("usual_high") - pl.col("usual_low"))
    above = pl.col("high") - _expected_end("usual_high", "earlier_high", pl.max_horizontal)
    below = _expected_end("usual_low", "earlier_low", pl.min_horizontal) - pl.col("low")
    # infinity is not outside a range that ends there, though their difference is not a number
    outside = pl.max_horizontal(above.fill_nan(0.0), below.fill_nan(0.0))
    most = _expected_end("usual_most", "earlier_share", pl.max_horizontal)
    adds_none = (pl.col("lane") == "change") & (pl.col("null_count") - pl.col("earlier_nulls") < NULL_ROWS)
    clear = (pl.col("sudden") | pl.col("sudden_range")).any().over("version")
    return (
        with_baseline.with_columns(
            unusual=pl.col("exact") & is_unusual_share(pl.col("distance"), spread),
            sudden=pl.col("exact")
            & (pl.col("null_share") - most > least_jump(pl.col("usual_most")))
            & (pl.col("null_count") - most * pl.col("records") >= NULL_ROWS)
            & ~adds_none.fill_null(value=False),
            sudden_range=(width > 0) & (outside > RANGE_WIDTHS * width),
        )
        .with_columns(pl.col("unusual", "sudden", "sudden_range").fill_null(value=False))
        .with_columns(unusual=pl.col("unusual") | pl.col("sudden"))
        # a load that was reverted was wrong: where no column shows it clearly, the unusual ones are why
        .with_columns(sudden=pl.col("sudden") | (pl.col("unusual") & pl.col("taken_back_by").is_not_null() & ~clear))
        .pipe(conform, SUDDEN)
    )


def _expected_end(usual: str, earlier: str, farther: Callable[[str, str], pl.Expr]) -> pl.Expr:
    """An end of what is expected, by the loads around and the files that are rewritten; null where one is unknown."""
    is_known = pl.col(usual).is_not_null() & (~pl.col("rewrites") | pl.col(earlier).is_not_null())
    return pl.when(is_known).then(farther(usual, earlier))


def least_jump(usual_most: pl.Expr) -> pl.Expr:
    """How far a null share lies above those of its baseline, at least, where it is a sudden change."""
    return pl.when(usual_most > 0).then(NULL_JUMP).otherwise(NULL_JUMP_FROM_ZERO)


def brings_new_rows() -> pl.Expr:
    """True for a load of COLUMN_LOADS that does not rewrite files, or of a table whose loads mostly do."""
    return ~pl.col("rewrites") | (pl.col("rewrites").mean() > REWRITES_ROUTINE)


def newest_first(changes: pl.DataFrame, column: str) -> pl.DataFrame:
    """The loads of one column of SUDDEN, newest first, with `anomaly`: its null share or its range is one."""
    rows = changes.filter(pl.col("column") == column).reverse()
    return rows.with_columns(anomaly=pl.col("sudden") | pl.col("sudden_range"))


def null_shares_by_load(
    changes: pl.DataFrame, limit: int, first: Mapping[str, int | None], order: pl.Series
) -> pl.DataFrame:
    """NULL_SHARES_BY_VERSION of at most `limit` loads of SUDDEN: those with sudden changes, then evenly spread ones.

    Without the loads before a column existed. `first`: the version that first had a column which older files lack,
    None where none has yet; `order`: all versions, oldest first.
    """
    versions = changes["version"].unique(maintain_order=True)
    odd = changes.filter("sudden")["version"].unique(maintain_order=True).tail(limit)
    even = spread_evenly(versions.to_list(), max(1, limit - odd.len()))
    place = {version: place for place, version in enumerate(order)}
    since = {column: place.get(version, 0) for column, version in first.items() if version is not None}
    since |= dict.fromkeys((column for column, version in first.items() if version is None), len(place))
    places = pl.col("version").replace_strict(place, default=None, return_dtype=pl.Int64)
    births = pl.col("column").replace_strict(since, default=0, return_dtype=pl.Int64)
    rows = changes.filter((places >= births) & pl.col("version").is_in([*even, *odd.to_list()]))
    return rows.drop("unusual").rename({"sudden": "unusual"}).select(NULL_SHARES_BY_VERSION.names())


def around(values: pl.Expr, kind: str) -> pl.Expr:
    """The median, min or max of the loads before each; of those after it where too few came before; in the midst of a
    short history, where neither are enough, of both."""

    def before(series: pl.Expr, fewest: int) -> pl.Expr:
        past: pl.Expr = getattr(series.shift(1), f"rolling_{kind}")(BASELINE_WINDOW, min_samples=fewest)
        return past

    def sides(fewest: int) -> tuple[pl.Expr, pl.Expr]:
        return before(values, fewest), before(values.reverse(), fewest).reverse()

    window = 2 * BASELINE_WINDOW + 1
    if kind == "median":
        both = values.rolling_median(window, min_samples=1, center=True)
    else:
        both = {"min": pl.min_horizontal, "max": pl.max_horizontal}[kind](*sides(1))
    has_value = values.is_not_null().cast(pl.Int64)
    others = has_value.rolling_sum(window, min_samples=1, center=True) - has_value
    return pl.coalesce(*sides(BASELINE_MIN), pl.when(others >= BASELINE_MIN).then(both))
