"""When each partition was written: its loads over time, and those that came late."""

from collections.abc import Sequence
from datetime import timedelta

import polars as pl

from lakeview.model.column_values import format_expression
from lakeview.model.frames import UTC_MILLIS
from lakeview.views.conform import conform
from lakeview.views.sums import total
from lakeview.views.thresholds import LATE_PARTITION_STEPS, OUT_OF_ORDER_SHARE
from lakeview.views.timeline.lifetimes import continuations
from lakeview.views.timeline.loads import elapsed_text
from lakeview.views.units import version_label

PARTITION_WRITES = pl.Schema(
    {
        "partition_text": pl.String(),
        "timestamp": UTC_MILLIS,
        "until": UTC_MILLIS,
        "files": pl.Int64(),
        "bytes": pl.Int64(),
        "records": pl.Int64(),
        "first_version": pl.Int64(),
        "last_version": pl.Int64(),
        "open_loads": pl.List(pl.String()),
        "repaired_loads": pl.List(pl.String()),
    }
)
"""One row a partition and span of time in which commits that changed data added files to it. `bytes` and `records`
written, null when a file does not tell; the last two name the versions of bad loads, newest first (with a TIMELINE
only)."""

PARTITION_ARRIVALS = pl.Schema(
    {
        "partition_text": pl.String(),
        "first_version": pl.Int64(),
        "first_written": UTC_MILLIS,
        "lag": pl.Duration("ms"),
        "late": pl.Boolean(),
        "note": pl.String(),
    }
)
"""One row a partition, in order. `lag`: how long after the first later partition it was first written, null when it
came before them all; `note` of a late one: how long after it was due, one usual step after those before it."""

_SPANS = {
    "1s": timedelta(seconds=1),
    "10s": timedelta(seconds=10),
    "1m": timedelta(minutes=1),
    "10m": timedelta(minutes=10),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "1d": timedelta(days=1),
    "1w": timedelta(days=7),
    "2w": timedelta(days=14),
    "1mo": timedelta(hours=730),
    "3mo": timedelta(hours=2190),
    "1y": timedelta(days=365),
}
"""Spans that polars truncates to, and their lengths."""
_MOST_SPANS = 28


def partition_writes(
    files: pl.DataFrame,
    lifetimes: pl.DataFrame,
    commits: pl.DataFrame,
    *,
    partitions: Sequence[str] | None = None,
    limit: int = 2000,
) -> pl.DataFrame:
    """PARTITION_WRITES from FILES (live), LIFETIMES and COMMITS or TIMELINE; the last `limit` rows.

    A file that is no longer live belongs to the partition whose live files share its folder; others are left out.
    Commits that only rearrange rows do not count. `partitions` keeps these, in this order.
    """
    loads = _loads_by_partition(files, lifetimes, commits)
    if partitions is not None:
        loads = loads.filter(pl.col("partition_text").is_in(list(partitions)))
    if loads.is_empty():
        return pl.DataFrame(schema=PARTITION_WRITES)
    span = _span(loads["timestamp"])
    start = pl.col("timestamp").dt.truncate(span)
    order = pl.DataFrame({"partition_text": list(partitions or loads["partition_text"].unique().sort())})
    return (
        loads.sort("commit_order")
        .group_by("partition_text", start.alias("timestamp"))
        .agg(
            files=pl.col("files").sum(),
            bytes=total("bytes"),
            records=total("records"),
            first_version=pl.col("version").first(),
            last_version=pl.col("version").last(),
            open_loads=pl.col("name").filter(pl.col("bad") & ~pl.col("repaired")).reverse(),
            repaired_loads=pl.col("name").filter("bad", "repaired").reverse(),
        )
        .with_columns(until=pl.col("timestamp").dt.offset_by(span))
        .join(order.with_row_index("order"), on="partition_text")
        .sort("order", "timestamp")
        .tail(limit)  # of many partitions the chart has room for the last ones
        .pipe(conform, PARTITION_WRITES)
    )


def partition_arrivals(
    sizes: pl.DataFrame, files: pl.DataFrame, lifetimes: pl.DataFrame, commits: pl.DataFrame
) -> pl.DataFrame:
    """PARTITION_ARRIVALS in the order of PARTITION_SIZES: which partition was first written after later ones."""
    arrivals = (
        _loads_by_partition(files, lifetimes, commits)
        .sort("commit_order")
        .group_by("partition_text")
        .agg(
            first_version=pl.col("version").first(),
            first_written=pl.col("timestamp").min(),
        )
    )
    first_writes = sizes.select("partition_text").join(arrivals, on="partition_text", how="left", maintain_order="left")
    # the earliest among the later ones, seen from each partition
    later_first = pl.col("first_written").cum_min(reverse=True).shift(-1)
    lag = pl.col("first_written") - later_first
    steps = first_writes["first_written"].drop_nulls().sort().diff().drop_nulls().dt.total_milliseconds()
    usual = timedelta(milliseconds=_median(steps.filter(steps > 0)))
    late = (pl.col("lag") > usual * LATE_PARTITION_STEPS).fill_null(False)
    in_time = late.sum() <= OUT_OF_ORDER_SHARE * pl.len()
    # due one step after the partitions before it, and before any later one
    due = pl.min_horizontal(pl.col("first_written").cum_max().shift(1) + usual, later_first)
    return (
        first_writes.with_columns(lag=pl.when(lag > 0).then(lag))
        .with_columns(late=late & in_time)
        .with_columns(
            note=pl.when("late").then(format_expression("{} late", elapsed_text(pl.col("first_written") - due)))
        )
        .pipe(conform, PARTITION_ARRIVALS)
    )


def _loads_by_partition(files: pl.DataFrame, lifetimes: pl.DataFrame, commits: pl.DataFrame) -> pl.DataFrame:
    """`partition_text, version, commit_order, timestamp, files, bytes, records, name, bad, repaired`: one row a
    partition and commit that changed data and added files to it."""
    is_judged = "suspicious" in commits.columns
    order = pl.col("position") if "position" in commits.columns else pl.int_range(pl.len())
    loads = commits.filter("data_change").select(
        "version",
        "timestamp",
        commit_order=order,
        name=version_label("version"),
        bad=pl.col("suspicious") if is_judged else pl.lit(value=False),
        repaired=pl.col("taken_back_by").is_not_null() if is_judged else pl.lit(value=False),
    )
    # a file that stays on with other deleted rows was not written again
    new = pl.col("added").is_in(loads["version"].implode()) & ~continuations(lifetimes)["went_on"]
    return (
        _with_partition(files, lifetimes, new)
        .drop_nulls("partition_text")
        .group_by("partition_text", version="added")
        .agg(files=pl.len(), bytes=total("size"), records=total("records"))
        .join(loads.drop_nulls("timestamp"), on="version")
    )


def _with_partition(files: pl.DataFrame, lifetimes: pl.DataFrame, where: pl.Expr) -> pl.DataFrame:
    """The wanted LIFETIMES with the partition of each file as `partition_text`, null where nothing tells it."""
    if lifetimes["path"].equals(files["path"]):  # as a rule where nothing was removed; else texts are compared
        return lifetimes.hstack([files["partition_text"]]).filter(where)
    stays = lifetimes.filter(where)
    partitions = files.select("path", "partition_text")
    matches = partitions.filter(pl.col("path").is_in(stays["path"].implode())).unique("path")
    in_partitions = stays.join(matches, on="path")
    removed_files = stays.join(matches, on="path", how="anti")
    return (
        in_partitions
        if removed_files.is_empty()
        else pl.concat([in_partitions, in_folders(removed_files, partitions.drop_nulls())])
    )


def in_folders(removed_files: pl.DataFrame, partitions_of_files: pl.DataFrame) -> pl.DataFrame:
    """Files that are no longer live, in the partition of the live files of their folder if those have but one."""
    folder = pl.col("path").str.replace(r"/?[^/]*$", "").alias("folder")
    folders = (
        partitions_of_files.group_by(folder)
        .agg(pl.col("partition_text").first(), partitions=pl.col("partition_text").n_unique())
        .filter(pl.col("partitions") == 1)
        .select("folder", "partition_text")
    )
    return removed_files.with_columns(folder).join(folders, on="folder", how="left").drop("folder")


def _median(values: pl.Series) -> float:
    median = values.quantile(0.5, "nearest")
    return 0.0 if median is None else float(median)


def _span(moments: pl.Series) -> str:
    first, last = moments.sort().to_list()[0], moments.sort().to_list()[-1]
    return next((span for span, length in _SPANS.items() if (last - first) / length <= _MOST_SPANS), "1y")
