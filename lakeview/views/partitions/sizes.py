"""Live files to partitions: how much each holds, how even they are, which are missing, when each was written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import polars as pl

from lakeview.model.column_values import formatted, live_records
from lakeview.model.frames import UTC_MILLIS
from lakeview.model.snapshot import Snapshot
from lakeview.views.files.rows import least_records
from lakeview.views.partitions.keys import partition_keys, whole_sequence
from lakeview.views.sums import total
from lakeview.views.thresholds import LATE_PARTITION_STEPS, OUT_OF_ORDER_SHARE
from lakeview.views.timeline.lifetimes import continued
from lakeview.views.timeline.loads import elapsed
from lakeview.views.units import version_label

PARTITION_SIZES = pl.Schema(
    {
        "partition_text": pl.String(),
        "files": pl.Int64(),
        "bytes": pl.Int64(),
        "records": pl.Int64(),
        "median_size": pl.Int64(),
        "share": pl.Float64(),
    }
)
"""One row a partition, in the order of its typed values (nulls last). `records`: live rows, null when a file does not
tell, as `bytes`; `median_size` of its files, bytes; `share` of the table's bytes."""

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
        "last_written": UTC_MILLIS,
        "lag": pl.Duration("ms"),
        "late": pl.Boolean(),
        "note": pl.String(),
    }
)
"""One row a partition, in order. `lag`: how long after the first later partition it was first written, null when it
came before them all; `note` of a late one: how long after it was due, one usual step after those before it."""

_SPANS = ("1h", "6h", "1d", "1w", "2w", "1mo", "3mo", "1y")
_SPAN_LENGTHS = tuple(timedelta(hours=h) for h in (1, 6, 24, 168, 336, 730, 2190, 8760))
_MOST_SPANS = 28
_MOST_MISSING = 1000


@dataclass(frozen=True, slots=True)
class Skew:
    """How uneven partitions are: the largest against the median, in bytes and in files. Ratios None without bytes;
    everything about bytes is None where those of one partition are unknown."""

    partitions: int
    largest: str | None
    largest_bytes: int | None
    median_bytes: int | None
    bytes_ratio: float | None
    most_files: str | None
    most_files_count: int
    median_files: int
    files_ratio: float | None


def partition_sizes(snapshot: Snapshot) -> pl.DataFrame:
    """PARTITION_SIZES of a snapshot; empty when it is not partitioned."""
    files = snapshot.files
    if not snapshot.partition_columns:
        return pl.DataFrame(schema=PARTITION_SIZES)
    typed = _typed_values(files)
    live = live_records()
    grouped = (
        files.select("partition_text", "size", live.alias("live"))
        .hstack(typed)
        .group_by("partition_text")
        .agg(
            files=pl.len().cast(pl.Int64),
            bytes=total("size"),
            records=total("live"),
            median_size=pl.col("size").quantile(0.5, "nearest").cast(pl.Int64),
            **{name: pl.col(name).first() for name in typed.columns},
        )
    )
    # a part that an earlier spec did not have is null: `2026-06` comes before `2026-06/EWR`, as a folder before its own
    nulls_last = [i == 0 for i in range(len(typed.columns) + 1)]
    return (
        grouped.sort(*typed.columns, "partition_text", nulls_last=nulls_last)
        .with_columns(share=pl.when(total("bytes") > 0).then(pl.col("bytes") / total("bytes")))
        .select(PARTITION_SIZES.names())
        .cast(PARTITION_SIZES)
    )


def with_row_bounds(sizes: pl.DataFrame, snapshot: Snapshot) -> pl.DataFrame:
    """PARTITION_SIZES with the least number of rows where the exact one is unknown and the log proves one, and `mark`:
    "≥" there, else "". The same bound as for the whole table (`views.files.rows.least_records`)."""
    unknown = sizes.filter(pl.col("records").is_null())["partition_text"]
    deletes = snapshot.delete_files
    if unknown.is_empty() or (not deletes.is_empty() and deletes["partition_text"].has_nulls()):
        return sizes.with_columns(mark=pl.lit(""))  # deletes without a partition are about any of them
    inside = pl.col("partition_text").is_in(unknown.implode())
    of_files = snapshot.files.filter(inside).partition_by("partition_text", as_dict=True)
    of_deletes = {} if deletes.is_empty() else deletes.filter(inside).partition_by("partition_text", as_dict=True)
    bounds = {name: least_records(files, of_deletes.get((name,))) for (name,), files in of_files.items()}
    least = pl.DataFrame(
        {"partition_text": list(bounds), "least": list(bounds.values())},
        schema={"partition_text": pl.String(), "least": pl.Int64()},
    ).filter(pl.col("least") > 0)
    bounded = sizes.join(least, on="partition_text", how="left", maintain_order="left")
    mark = pl.when(pl.col("records").is_null() & pl.col("least").is_not_null()).then(
        pl.lit("\N{GREATER-THAN OR EQUAL TO}")
    )
    return bounded.with_columns(mark=mark.otherwise(pl.lit("")), records=pl.coalesce("records", "least")).drop("least")


def partition_skew(sizes: pl.DataFrame) -> Skew:
    """Skew of PARTITION_SIZES."""
    if sizes.is_empty():
        return Skew(0, None, 0, 0, None, None, 0, 0, None)
    largest: dict[str, Any] = {"partition_text": None, "bytes": None}
    if known := not sizes["bytes"].has_nulls():
        largest = sizes.sort("bytes", descending=True).row(0, named=True)
    most = sizes.sort("files", descending=True).row(0, named=True)
    medians = sizes.select(pl.col("bytes", "files").quantile(0.5, "nearest")).row(0, named=True)
    median_bytes, median_files = int(medians["bytes"]) if known else None, int(medians["files"])
    return Skew(
        sizes.height,
        largest["partition_text"],
        largest["bytes"],
        median_bytes,
        largest["bytes"] / median_bytes if median_bytes else None,
        most["partition_text"],
        most["files"],
        median_files,
        most["files"] / median_files if median_files else None,
    )


def missing_partitions(snapshot: Snapshot) -> list[str]:
    """Partitions that are missing between two that are there, of one key of numbers, buckets, years, ... or hours.

    Keys are taken as their texts tell them (`partition_keys`). Nothing is called missing where more than half of the
    sequence is: then it is none. At most _MOST_MISSING.
    """
    if len(snapshot.partition_columns) != 1 or snapshot.files.is_empty():
        return []
    name = snapshot.partition_columns[0]
    texts = partition_keys(snapshot.files["partition_text"].drop_nulls().unique(), [name]).to_series(0)
    there = set(texts.drop_nulls())
    gone = [text for text in whole_sequence(texts) if text not in there]
    return [f"{name}={text}" for text in gone[:_MOST_MISSING]]


def partition_writes(
    files: pl.DataFrame,
    lifetimes: pl.DataFrame,
    commits: pl.DataFrame,
    *,
    partitions: Sequence[str] | None = None,
    limit: int = 2000,
) -> pl.DataFrame:
    """PARTITION_WRITES from FILES (live), LIFETIMES and COMMITS or TIMELINE; at most `limit` rows.

    A file that is no longer live belongs to the partition whose live files share its folder; others are left out.
    Commits that only rearrange rows do not count. `partitions` keeps these, in this order.
    """
    written = _loads_by_partition(files, lifetimes, commits)
    if partitions is not None:
        written = written.filter(pl.col("partition_text").is_in(list(partitions)))
    if written.is_empty():
        return pl.DataFrame(schema=PARTITION_WRITES)
    span = _span(written["timestamp"])
    start = pl.col("timestamp").dt.truncate(span)
    order = pl.DataFrame({"partition_text": list(partitions or written["partition_text"].unique().sort())})
    return (
        written.sort("written")
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
        .head(limit)
        .select(PARTITION_WRITES.names())
        .cast(PARTITION_WRITES)
    )


def partition_arrivals(
    sizes: pl.DataFrame, files: pl.DataFrame, lifetimes: pl.DataFrame, commits: pl.DataFrame
) -> pl.DataFrame:
    """PARTITION_ARRIVALS in the order of PARTITION_SIZES: which partition was first written after later ones."""
    written = (
        _loads_by_partition(files, lifetimes, commits)
        .sort("written")
        .group_by("partition_text")
        .agg(
            first_version=pl.col("version").first(),
            first_written=pl.col("timestamp").min(),
            last_written=pl.col("timestamp").max(),
        )
    )
    ordered = sizes.select("partition_text").join(written, on="partition_text", how="left", maintain_order="left")
    # the earliest among the later ones, seen from each partition
    later_first = pl.col("first_written").cum_min(reverse=True).shift(-1)
    lag = pl.col("first_written") - later_first
    steps = ordered["first_written"].drop_nulls().sort().diff().drop_nulls().dt.total_milliseconds()
    usual = timedelta(milliseconds=_median(steps.filter(steps > 0)))
    late = (pl.col("lag") > usual * LATE_PARTITION_STEPS).fill_null(False)
    in_time = late.sum() <= OUT_OF_ORDER_SHARE * pl.len()
    # due one step after the partitions before it, and before any later one
    due = pl.min_horizontal(pl.col("first_written").cum_max().shift(1) + usual, later_first)
    return (
        ordered.with_columns(lag=pl.when(lag > 0).then(lag))
        .with_columns(late=late & in_time)
        .with_columns(note=pl.when("late").then(formatted("{} late", elapsed(pl.col("first_written") - due))))
        .select(PARTITION_ARRIVALS.names())
        .cast(PARTITION_ARRIVALS)
    )


def _loads_by_partition(files: pl.DataFrame, lifetimes: pl.DataFrame, commits: pl.DataFrame) -> pl.DataFrame:
    """`partition_text, version, written (order), timestamp, files, bytes, records, name, bad, repaired`: one row a
    partition and commit that changed data and added files to it."""
    is_judged = "suspicious" in commits.columns
    order = pl.col("position") if "position" in commits.columns else pl.int_range(pl.len())
    loads = commits.filter("data_change").select(
        "version",
        "timestamp",
        written=order,
        name=version_label("version"),
        bad=pl.col("suspicious") if is_judged else pl.lit(value=False),
        repaired=pl.col("taken_back_by").is_not_null() if is_judged else pl.lit(value=False),
    )
    # a file that stays on with other deleted rows was not written again
    new = pl.col("added").is_in(loads["version"].implode()) & ~continued(lifetimes)["went_on"]
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
    named = partitions.filter(pl.col("path").is_in(stays["path"].implode())).unique("path")
    placed = stays.join(named, on="path")
    removed = stays.join(named, on="path", how="anti")
    return placed if removed.is_empty() else pl.concat([placed, in_folders(removed, partitions.drop_nulls())])


def in_folders(removed: pl.DataFrame, partitions_of_files: pl.DataFrame) -> pl.DataFrame:
    """Files that are no longer live, in the partition of the live files of their folder if those have but one."""
    folder = pl.col("path").str.extract(r"^(.*)/", 1).fill_null("").alias("folder")
    folders = (
        partitions_of_files.group_by(folder)
        .agg(pl.col("partition_text").first(), partitions=pl.col("partition_text").n_unique())
        .filter(pl.col("partitions") == 1)
        .select("folder", "partition_text")
    )
    return removed.with_columns(folder).join(folders, on="folder", how="left").drop("folder")


def _typed_values(files: pl.DataFrame) -> pl.DataFrame:
    """The typed partition values as columns `key_0`, `key_1`, ...: the user's names may be any."""
    if "partition" not in files.columns:
        return files.select(key_0=pl.col("partition_text"))
    values = files["partition"].struct.unnest()
    values.columns = [f"key_{i}" for i in range(values.width)]
    return values


def _median(values: pl.Series) -> float:
    found = values.quantile(0.5, "nearest")
    return 0.0 if found is None else float(found)


def _span(moments: pl.Series) -> str:
    first, last = moments.sort().to_list()[0], moments.sort().to_list()[-1]
    for span, length in zip(_SPANS, _SPAN_LENGTHS, strict=True):
        if (last - first) / length <= _MOST_SPANS:
            return span
    return _SPANS[-1]
