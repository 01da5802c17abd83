"""Statistics of files to the share of nulls of each column, exact or bounded, without reading a row."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.views.sums import shown_bounds
from lakeview.views.thresholds import is_unusual_share
from lakeview.views.values import statistic

NULL_SHARES = pl.Schema(
    {
        "column": pl.String(),
        "null_count": pl.Int64(),
        "records": pl.Int64(),
        "null_share": pl.Float64(),
        "exact": pl.Boolean(),
        "mark": pl.String(),
        "files": pl.Int64(),
        "files_known": pl.Int64(),
    }
)
"""One row a leaf column. `null_count` and `records` add up `files_known` of `files` files, those that count both;
`null_share` null when there are none; `mark` as `null_share_mark` of SCHEMA_TREE."""

NULL_SHARES_BY_VERSION = pl.Schema(
    {
        "column": pl.String(),
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "null_share": pl.Float64(),
        "exact": pl.Boolean(),
        "mark": pl.String(),
        "usual": pl.Float64(),
        "unusual": pl.Boolean(),
    }
)
"""One row a leaf column and version it was there in. `usual`: the median of the column's exact shares; `unusual`: an
exact share far off it, both in shares and against how the column varies."""


def null_shares(
    statistics: pl.DataFrame, files: pl.DataFrame, least: int | None = None, records: int | None = None
) -> pl.DataFrame:
    """NULL_SHARES from STATISTICS and FILES of one version, which has at least `least` live rows, or just `records`."""
    columns = [c for c in statistics.columns if c not in ("_path", "_deletion_vector")]
    return shares_frame(
        [share_of_column(column, part, records, least) for column, part in each_column(statistics, files, columns)]
    )


def files_without_statistics(statistics: pl.DataFrame) -> pl.DataFrame:
    """The rows of STATISTICS whose files count the nulls of no column: they carry no statistics."""
    has_counts = pl.Series([False], dtype=pl.Boolean).new_from_index(0, statistics.height)
    for column in statistics.columns:
        if column not in ("_path", "_deletion_vector"):
            null_count = statistic(statistics[column].struct.unnest(), "null_count", pl.Int64())
            has_counts = has_counts | null_count.is_not_null()
    return statistics.filter(~has_counts)


def each_column(
    statistics: pl.DataFrame, files: pl.DataFrame | None, columns: Sequence[str]
) -> Iterator[tuple[str, pl.DataFrame]]:
    """For each column one row a file: `records, deleted, null_count, null_count_exact, exact, min, max`.

    Columns are taken one by one, as series: their names are the user's and may be anything, and they are copied.
    """
    if files is None:
        unknown = pl.Series([None] * statistics.height, dtype=pl.Int64)
        counts = pl.DataFrame({"records": unknown, "deleted": unknown})
    else:
        counts = counts_of(statistics, files)
    for column in columns:
        values = statistics[column].struct.unnest()
        part = pl.DataFrame(
            {
                "records": counts["records"],
                "deleted": counts["deleted"],
                "null_count": statistic(values, "null_count", pl.Int64()),
                "null_count_exact": statistic(values, "null_count_exact", pl.Boolean()),
                "exact": statistic(values, "exact", pl.Boolean()),
                "min": statistic(values, "min", pl.Null()),
                "max": statistic(values, "max", pl.Null()),
            }
        )
        yield column, part


def counts_of(statistics: pl.DataFrame, files: pl.DataFrame) -> pl.DataFrame:
    """`records` and `deleted` of each row of STATISTICS, null for a file that FILES does not have."""
    counts = files.select("path", pl.col("deletion_vector").alias("dv"), "records", deleted="deleted_records")
    path, vector = statistics["_path"], statistics["_deletion_vector"]
    if path.equals(counts["path"]) and vector.equals(counts["dv"]):  # both are in the log's order as a rule
        return counts
    keys = pl.DataFrame({"path": path, "dv": vector})
    once = counts.filter(pl.col("path").is_in(path.implode())).unique(["path", "dv"])  # STATISTICS may be a sample
    return keys.join(once, on=["path", "dv"], how="left", nulls_equal=True, maintain_order="left")


def shares_frame(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """NULL_SHARES of the rows that `share_of_column` gives: made at once, a frame for each takes a millisecond."""
    return pl.DataFrame(rows, schema=NULL_SHARES, orient="row").with_columns(shown_bounds())


def share_of_column(column: str, part: pl.DataFrame, records: int | None, least: int | None = None) -> dict[str, Any]:
    """One row of NULL_SHARES, its bounds not yet rounded; with `records` (live rows) nulls are a share of those where
    files do not count rows.

    Of a file with deleted rows only none and all are certain (Delta, "Per-file Statistics"): others have between as
    many nulls as were counted and so many fewer as rows are deleted. `least`: a bound of the live rows, where not all
    files tell how many of theirs are deleted.
    """
    if part["records"].null_count() == part.height and records is not None:
        part = part.with_columns(records=pl.lit(None, pl.Int64), deleted=pl.lit(0, pl.Int64))
        rows_of_files = False
    else:
        rows_of_files = True
    sums = part.select(_sums(rows_of_files)).row(0, named=True)
    share, mark = _bound(sums, records if not rows_of_files else sums["rows"], least)
    row = {"column": column, "null_share": share, "exact": mark == "" and share is not None}
    row |= {"null_count": sums["most"] if sums["files_known"] else None, "files": sums["files"]}
    over = records if not rows_of_files else sums["rows_counted"]
    row |= {"records": over if sums["files_known"] else None, "files_known": sums["files_known"]}
    return row | {"mark": None if share is None else mark}


@cache
def _sums(rows_of_files: bool) -> tuple[pl.Expr, ...]:  # made once: of a wide table they are half the time
    """Sums of the files of `each_column`; without `rows_of_files` those count no rows."""
    nulls, rows, deletes = pl.col("null_count"), pl.col("records"), pl.col("deleted")
    has_counts = nulls.is_not_null() & (rows.is_not_null() | pl.lit(not rows_of_files))
    full = (nulls >= rows).fill_null(value=False)
    most = pl.when(full).then(rows - deletes.fill_null(0)).otherwise(nulls)
    surely = pl.when(pl.col("null_count_exact").fill_null(value=False) & (deletes == 0)).then(nulls)
    wholly = pl.when(full & deletes.is_not_null()).then(rows - deletes)
    fewest = pl.coalesce(surely, wholly, pl.when(deletes > 0).then((nulls - deletes).clip(0)), 0)
    return (
        pl.len().cast(pl.Int64).alias("files"),
        has_counts.sum().cast(pl.Int64).alias("files_known"),
        fewest.filter(has_counts).sum().alias("fewest"),
        most.filter(has_counts).sum().alias("most"),
        pl.when(rows.is_not_null().all()).then((rows - deletes.fill_null(0)).sum()).alias("rows"),
        (rows - deletes.fill_null(0)).filter(has_counts).sum().alias("rows_counted"),
        deletes.is_not_null().all().alias("certain_rows"),
        (rows - deletes).sum().alias("least"),
    )


def _bound(sums: Mapping[str, Any], rows: int | None, least: int | None) -> tuple[float | None, str]:
    """The share of nulls and its mark: exact, else at most so large where all files count their nulls, else at least so
    large; an estimate where the number of rows is unknown, or bounded by less than the nulls that were counted."""
    if not sums["files_known"]:
        return None, ""
    complete = sums["files_known"] == sums["files"]
    if rows is None:
        return (min(sums["most"] / sums["rows_counted"], 1.0) if sums["rows_counted"] > 0 else None), "≈"
    if rows <= 0:
        return None, ""
    if complete and sums["fewest"] == sums["most"] and (sums["certain_rows"] or not sums["most"]):
        return min(sums["most"] / rows, 1.0), ""
    if complete:
        fewest_rows = rows if sums["certain_rows"] else max(least or 0, sums["least"])
        if sums["certain_rows"] or sums["most"] < fewest_rows:
            return min(sums["most"] / fewest_rows, 1.0), "≤"
        return min(sums["most"] / rows, 1.0), "≈"
    return min(sums["fewest"] / rows, 1.0), "≥"


def null_shares_by_version(
    versions: Sequence[tuple[int, datetime | None, pl.DataFrame, pl.DataFrame]],
) -> pl.DataFrame:
    """NULL_SHARES_BY_VERSION from (version, timestamp, STATISTICS, FILES) for each, oldest first."""
    frames = [
        null_shares(statistics, files).select(
            "column",
            pl.lit(version, dtype=pl.Int64).alias("version"),
            pl.lit(timestamp, dtype=UTC_MILLIS).alias("timestamp"),
            "null_share",
            "exact",
            "mark",
        )
        for version, timestamp, statistics, files in versions
    ]
    empty = pl.DataFrame(schema={n: NULL_SHARES_BY_VERSION[n] for n in NULL_SHARES_BY_VERSION.names()[:6]})
    distance = (pl.col("null_share") - pl.col("usual")).abs()
    return (
        pl.concat([empty, *frames])
        # what some files leave out moves a share that is no more than a bound: only exact ones are compared
        .with_columns(usual=pl.when("exact").then("null_share").median().over("column"))
        .with_columns(spread=pl.when("exact").then(distance).median().over("column"))
        .with_columns(unusual=(is_unusual_share(distance, pl.col("spread")) & pl.col("exact")).fill_null(value=False))
        .select(NULL_SHARES_BY_VERSION.names())
    )
