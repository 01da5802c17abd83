"""Lifetimes of files to the state of the table at every version: files, bytes, rows, each column's nulls and bounds.

Nothing but the log is needed, and hardly more than one listing: O(files + versions x log versions) for each column,
many columns at a time.
"""

from collections.abc import Sequence

import polars as pl

from lakeview.views.timeline.live_intervals import Side, Stays, with_positions

TREND = pl.Schema(
    {
        "version": pl.Int64(),
        "files": pl.Int64(),
        "bytes": pl.Int64(),
        "records": pl.Int64(),
        "least_records": pl.Int64(),
    }
)
"""One row a version, oldest first. `bytes` and `records` (live rows) are null where one of a live file is unknown;
`least_records`: those of the files whose rows are known, at least so many.
If the lifetimes had statistics, `statistics` is a struct with one struct a column, named as there: `min, max` (of
all rows), `null_count`, `exact` (min and max occur) and `null_count_exact`. A bound is null where a live file that may
hold values has none, and in a version without values; `some_min` and `some_max` are those of the files that have one.
A null count is null where one of a live file is unknown; `nulls` is then the sum of the exact ones, a lower bound."""

_AT_ONCE = 2_000_000
"""So many values, files times columns, are added up together: one pass for most tables, and bounded memory."""


def trend(lifetimes: pl.DataFrame, versions: pl.Series | None = None) -> pl.DataFrame:
    """TREND from LIFETIMES, which may have a column `statistics`: a struct with one field of STATISTICS a column.

    `versions`: those to tell about, in any order; all from the first that the lifetimes name to the last without them.
    """
    at = _versions(lifetimes, versions)
    stays = Stays(lifetimes, at)
    files = pl.Series([True], dtype=pl.Boolean).new_from_index(0, lifetimes.height)
    sums = stays.sums(
        {"files": files, **_known_values("bytes", lifetimes["size"]), **_known_values("records", lifetimes["records"])}
    )
    totals = sums.select(
        at, "files", _exact_sum("bytes"), _exact_sum("records"), pl.col("records").alias("least_records")
    )
    if "statistics" not in lifetimes.columns:
        return totals
    # by place and under names of ours: a series called ^x$ would be a pattern to polars
    names, columns = lifetimes["statistics"].struct.fields, lifetimes["statistics"].struct.unnest().get_columns()
    width = max(1, _AT_ONCE // max(1, lifetimes.height))
    parts = [
        column
        for first in range(0, len(columns), width)
        for column in _columns(stays, lifetimes, columns[first : first + width])
    ]
    return (
        totals.with_columns(pl.DataFrame(dict(zip(names, parts, strict=True))).to_struct("statistics"))
        if parts
        else totals
    )


def states(lifetimes: pl.DataFrame, versions: pl.Series) -> pl.DataFrame:
    """TREND from LIFETIMES for versions whose ids may be in any order; `version` is the position among them."""
    spans = with_positions(lifetimes, versions).with_columns(added="from", removed="to")
    return trend(spans, pl.int_range(versions.len(), eager=True))


def _versions(lifetimes: pl.DataFrame, versions: pl.Series | None) -> pl.Series:
    if versions is not None:
        return versions.cast(pl.Int64).drop_nulls().unique().sort().alias("version")
    endpoints = pl.concat([lifetimes["added"], lifetimes["removed"]]).drop_nulls()
    first, last = endpoints.min(), endpoints.max()
    if not isinstance(first, int) or not isinstance(last, int):  # no file, or none that came or went
        return pl.Series("version", [], dtype=pl.Int64)
    return pl.int_range(first, last + 1, dtype=pl.Int64, eager=True).alias("version")


def _known_values(name: str, values: pl.Series) -> dict[str, pl.Series]:
    """What `_exact_sum` needs: the values, and which are unknown."""
    return {name: values, f"{name} unknown": values.is_null()}


def _exact_sum(name: str) -> pl.Expr:
    """A sum of which no part is unknown, else null."""
    return pl.when(pl.col(f"{name} unknown") == 0).then(name).alias(name)


def _columns(stays: Stays, lifetimes: pl.DataFrame, statistics: Sequence[pl.Series]) -> list[pl.Series]:
    """The struct of TREND for each of these columns."""
    counts: dict[str, pl.Series] = {}
    bounds: dict[str, tuple[Side, pl.Series]] = {}
    for i, column in enumerate(statistics):
        fields = column.struct.unnest()
        # deleted rows may be the ones with values: without an exact count a file with deletes may have others
        exact = fields["null_count_exact"].fill_null(value=False) | lifetimes["deletion_vector"].is_null()
        same = (fields["null_count"] == lifetimes["records"]) & exact
        holds = ~same.fill_null(value=False)
        counts |= _known_values(f"{i} nulls", fields["null_count"])
        counts[f"{i} exact nulls"] = fields["null_count"].zip_with(
            fields["null_count_exact"].fill_null(value=False), pl.Series([0]).new_from_index(0, column.len())
        )
        counts[f"{i} loose"] = holds & ~fields["exact"].fill_null(value=False)
        counts[f"{i} nulls loose"] = ~fields["null_count_exact"].fill_null(value=False)
        for side in _SIDES:
            counts[f"{i} no {side}"] = holds & fields[side].is_null()
            bounds[f"{i} {side}"] = side, fields[side] if holds.all() else fields[side].set(~holds, None)
    every = pl.concat([stays.sums(counts), stays.extremes(bounds)], how="horizontal")
    return every.select(_statistic(i) for i in range(len(statistics))).get_columns()


_SIDES: tuple[Side, ...] = ("min", "max")


def _statistic(i: int) -> pl.Expr:
    low, high = (pl.when(pl.col(f"{i} no {side}") == 0).then(f"{i} {side}") for side in _SIDES)
    return pl.struct(
        low.alias("min"),
        high.alias("max"),
        _exact_sum(f"{i} nulls").alias("null_count"),
        ((pl.col(f"{i} loose") == 0) & low.is_not_null() & high.is_not_null()).alias("exact"),
        (pl.col(f"{i} nulls loose") == 0).alias("null_count_exact"),
        pl.col(f"{i} exact nulls").alias("nulls"),
        *(pl.col(f"{i} {side}").alias(f"some_{side}") for side in _SIDES),
    ).alias(str(i))
