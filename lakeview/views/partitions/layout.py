"""PARTITION_SIZES to what a picture of the partitions needs: a sequence in time with its gaps, or a grid of two keys;
and what comes next."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import polars as pl

from lakeview.model.column_values import format_expression
from lakeview.model.snapshot import Snapshot
from lakeview.views.conform import conform
from lakeview.views.partitions.keys import (
    Grain,
    key_values,
    partition_keys,
    sequence_key,
    time_key,
    whole_sequence,
)
from lakeview.views.partitions.sizes import PARTITION_SIZES
from lakeview.views.sums import zero_where
from lakeview.views.thresholds import LATE_PARTITION_STEPS

TIME_PARTITIONS = pl.Schema(
    {
        "partition_text": pl.String(),
        "label": pl.String(),
        "start": pl.Datetime("us"),
        "files": pl.Int64(),
        "bytes": pl.Int64(),
        "records": pl.Int64(),
        "missing": pl.Boolean(),
    }
)
"""One row a step in time from the first partition to the last, in order. `label`: its key alone; `missing`: there is no
such partition, and files, bytes and records are 0; `bytes` and `records` null where a file does not tell."""

PARTITION_CELLS = pl.Schema(
    {
        "x": pl.String(),
        "y": pl.String(),
        "partition_text": pl.String(),
        "files": pl.Int64(),
        "bytes": pl.Int64(),
        "records": pl.Int64(),
    }
)
"""One row a pair of key values that has files; in the order of the partitions. `x`: the key with more values."""

MOST_ACROSS, MOST_DOWN = 60, 60
_MOST_DAY_BARS = 45
"""More days than this are a calendar."""


@dataclass(frozen=True, slots=True)
class ExpectedPartition:
    """The partition that comes next: its text, when it is due by the usual step between partitions, and how long it is
    overdue, None where it is not."""

    partition: str
    due: datetime
    overdue: timedelta | None


def by_keys(names: Sequence[str], sizes: pl.DataFrame) -> list[tuple[list[str], pl.DataFrame]]:
    """PARTITION_SIZES apart by the first of their keys, each with the keys that it has: months and hours of two Iceberg
    specs have no axis in common. Files of no partition are with the last."""
    parts = []
    for name in names:
        part = sizes.filter(pl.col("partition_text").str.starts_with(f"{name}="))
        texts = part["partition_text"]
        own = [n for n in names if n == name or texts.str.contains(f"/{pl.escape_regex(n)}=").any()]
        parts += [] if part.is_empty() else [(own, part)]
    if len(parts) < 2:
        return [(list(names), sizes)]
    keys, last = parts[-1]
    return [*parts[:-1], (keys, pl.concat([last, sizes.filter(pl.col("partition_text").is_null())]))]


def time_partitions(names: Sequence[str], sizes: pl.DataFrame) -> tuple[Grain, pl.DataFrame] | None:
    """The grain and TIME_PARTITIONS of partitions by one key (`names`), of time; None for others, and for endless
    sequences."""
    if len(names) != 1 or sizes.is_empty():
        return None
    texts = partition_keys(sizes["partition_text"], names).to_series(0)
    key = time_key(texts)
    if key is None:
        return None
    rows = sizes.with_columns(label=texts, start=key.moments(texts)).drop_nulls("start")
    starts = key.dates(texts)
    steps = key.steps(starts[0], starts[-1]) if starts.len() else starts
    if not steps.len():
        return None
    labels = pl.Series([key.text(moment) for moment in steps.to_list()], dtype=pl.String)
    every = pl.DataFrame({"start": steps, "label": labels})
    all_steps = every.join(rows.drop("label"), on="start", how="left", maintain_order="left")
    partitions = all_steps.with_columns(
        zero_where(pl.col("partition_text").is_null(), "files", "records", "bytes"),
        missing=pl.col("partition_text").is_null(),
        partition_text=pl.coalesce("partition_text", format_expression("{}={}", pl.lit(names[0]), "label")),
    )
    return key.grain, conform(partitions, TIME_PARTITIONS)


def number_steps(names: Sequence[str], sizes: pl.DataFrame) -> pl.DataFrame | None:
    """`partition_text` of every step from the first partition to the last, of partitions by one key (`names`) of whole
    numbers or buckets; None for others, and where more than half of the steps is missing."""
    if len(names) != 1 or sizes.is_empty():
        return None
    every = whole_sequence(partition_keys(sizes["partition_text"], names).to_series(0))
    return pl.DataFrame({"partition_text": [f"{names[0]}={text}" for text in every]}) if every else None


def picture_kind(names: Sequence[str], sizes: pl.DataFrame) -> Literal["bars", "calendar", "heatmap", "treemap"]:
    """The picture of partitions by these keys: a calendar of many days, a heatmap of two keys, a treemap of more; bars
    of all others."""
    if len(names) > 2:
        return "treemap"
    if not partition_cells(names, sizes).is_empty():
        return "heatmap"
    in_time = time_partitions(names, sizes)
    return "calendar" if in_time and in_time[0] == "day" and in_time[1].height > _MOST_DAY_BARS else "bars"


def with_missing(names: Sequence[str], sizes: pl.DataFrame) -> pl.DataFrame:
    """`with_gaps` of partitions by one key of time, whole numbers or buckets; PARTITION_SIZES of others as it is."""
    in_time = time_partitions(names, sizes)
    steps = number_steps(names, sizes) if in_time is None else in_time[1]
    return sizes if steps is None else with_gaps(sizes, steps)


def with_gaps(sizes: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """PARTITION_SIZES with a row of no files for each missing one of TIME_PARTITIONS or `number_steps`, in their order;
    partitions that are no step come last."""
    every = steps.select("partition_text")
    all_steps = every.join(sizes, on="partition_text", how="left", maintain_order="left")
    rest = sizes.join(every, on="partition_text", how="anti", nulls_equal=True, maintain_order="left")
    step_sizes = all_steps.with_columns(zero_where(pl.col("files").is_null(), "files", "records", "bytes", "share"))
    return pl.concat([conform(step_sizes, PARTITION_SIZES), rest])


def expected_partition(
    snapshot: Snapshot, sizes: pl.DataFrame, arrivals: pl.DataFrame, now: datetime
) -> ExpectedPartition | None:
    """The next partition in time, from PARTITION_ARRIVALS; None without a key of time, or too few to tell a step.

    It is due one usual step (the median between first writes) after the last one came, and overdue half a step later.
    Steps shorter than half of what a partition spans are those of a backfill, and tell no cadence.
    """
    name = sequence_key(snapshot)
    first_writes = arrivals["first_written"].drop_nulls().sort()
    if name is None or first_writes.len() < 3:
        return None
    texts = partition_keys(sizes["partition_text"], [name]).to_series(0)
    key = time_key(texts)
    if key is None:
        return None
    steps = first_writes.diff().drop_nulls()
    usual: object = steps.filter(steps > timedelta()).quantile(0.5, "nearest")  # typed as a number, and a duration here
    last: object = key.dates(texts).max()
    if not isinstance(usual, timedelta) or not isinstance(last, datetime):
        return None
    following = key.after(last)
    if usual < (following - last) / 2:
        return None
    due = first_writes[-1] + usual
    late = now - due
    overdue = late if late > usual * (LATE_PARTITION_STEPS - 1) else None
    return ExpectedPartition(f"{name}={key.text(following)}", due, overdue)


def half_of_the_bytes(sizes: pl.DataFrame) -> int:
    """How many of the largest partitions hold half of the bytes; 0 where there are none or they are unknown."""
    if sizes["bytes"].has_nulls():
        return 0
    shares = sizes["bytes"].sort(descending=True).cum_sum()
    return 0 if not shares.len() or not shares[-1] else int((shares < shares[-1] / 2).sum()) + 1


def partition_cells(names: Sequence[str], sizes: pl.DataFrame) -> pl.DataFrame:
    """PARTITION_CELLS of partitions by two keys, `names`: of each the values with most bytes, MOST_ACROSS and
    MOST_DOWN of them.

    A partition from before a key was added, or after it was dropped, is at `no <key>`; without both it is left out.
    """
    if len(names) != 2:
        return pl.DataFrame(schema=PARTITION_CELLS)
    texts = sizes["partition_text"]
    keys = partition_keys(texts, names)
    alone = [partition_keys(texts, [name]).to_series(0).set(keys["key_0"].is_not_null(), None) for name in names]
    keys = keys.select(
        key_0=pl.coalesce("key_0", alone[0], pl.when(alone[1].is_not_null()).then(pl.lit(f"no {names[0]}"))),
        key_1=pl.coalesce("key_1", alone[1], pl.when(alone[0].is_not_null()).then(pl.lit(f"no {names[1]}"))),
    )
    cells = sizes.select("partition_text", "files", "bytes", "records").hstack(keys).drop_nulls(["key_0", "key_1"])
    across, down = ("key_0", "key_1") if keys["key_0"].n_unique() >= keys["key_1"].n_unique() else ("key_1", "key_0")
    for name, most in ((across, MOST_ACROSS), (down, MOST_DOWN)):
        largest = (
            cells.group_by(name).agg(pl.col("bytes").sum()).sort("bytes", descending=True, nulls_last=True).head(most)
        )
        cells = cells.filter(pl.col(name).is_in(largest[name].implode()))
    return cells.rename({across: "x", down: "y"}).pipe(conform, PARTITION_CELLS)


def axis_texts(values: pl.Series, key: str, sizes: pl.DataFrame) -> list[str]:
    """The values of an axis of PARTITION_CELLS in order, `values`: of a sequence with the steps between them that no
    partition of PARTITION_SIZES has."""
    texts = values.unique(maintain_order=True)
    there = key_values(sizes["partition_text"].drop_nulls(), key)
    every = pl.Series(whole_sequence(there), dtype=pl.String)
    inside = every.is_in(texts.implode())
    if not inside.any():
        return texts.to_list()
    first, last = (inside.to_list().index(True), inside.len() - inside.reverse().to_list().index(True))
    steps = every.slice(first, last - first)
    steps = steps.filter(steps.is_in(texts.implode()) | ~steps.is_in(there.implode()))
    return [*steps, *texts.filter(~texts.is_in(steps.implode()))]


def names(sizes: pl.DataFrame, most: int | None = None) -> list[str]:
    """The partitions of PARTITION_SIZES, in their order; the largest `most` ones, largest first, if there are more."""
    partitions = sizes.drop_nulls("partition_text")
    return (partitions if most is None else largest(partitions, most))["partition_text"].to_list()


def largest(sizes: pl.DataFrame, most: int) -> pl.DataFrame:
    """PARTITION_SIZES as it is, or the `most` largest of more partitions, largest first."""
    return sizes if sizes.height <= most else sizes.sort("bytes", descending=True).head(most)


def most_files(sizes: pl.DataFrame) -> str:
    """The partition of PARTITION_SIZES that has most files."""
    return str(sizes.drop_nulls("partition_text").sort("files", descending=True)["partition_text"][0])


def axes(names: Sequence[str], sizes: pl.DataFrame) -> tuple[str, str]:
    """Two keys: first the one of more values, which is drawn across."""
    keys = partition_keys(sizes["partition_text"], names)
    first, second = names
    return (first, second) if keys["key_0"].n_unique() >= keys["key_1"].n_unique() else (second, first)


def sizes_note(sizes: pl.DataFrame) -> str:
    """What bars of PARTITION_SIZES count."""
    if sizes["records"].has_nulls():
        return "rows unknown where a file has no row count; dashed line: median"
    return "rows, from the log; dashed line: median"
