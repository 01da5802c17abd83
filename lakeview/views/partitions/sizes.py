"""Live files to partitions: how much each holds, how even they are, which are missing."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from lakeview.model.column_values import least_records, live_records
from lakeview.model.snapshot import Snapshot
from lakeview.views.conform import conform
from lakeview.views.partitions.keys import (
    key_values,
    partition_keys,
    partition_names,
    sequence_key,
    time_key,
    whole_sequence,
)
from lakeview.views.sums import total, with_least

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
    """PARTITION_SIZES of a snapshot; empty when it is not partitioned, and none of its files is in a partition."""
    files = snapshot.files
    if not partition_names(snapshot):
        return pl.DataFrame(schema=PARTITION_SIZES)
    values = _typed_values(files)
    live = live_records()
    sums = (
        files.select("partition_text", "size", live.alias("live"))
        .hstack(values)
        .group_by("partition_text")
        .agg(
            files=pl.len().cast(pl.Int64),
            bytes=total("size"),
            records=total("live"),
            median_size=pl.col("size").quantile(0.5, "nearest").cast(pl.Int64),
            **{name: pl.col(name).first() for name in values.columns},
        )
    )
    # a part that an earlier spec did not have is null: `2026-06` comes before `2026-06/EWR`, as a folder before its own
    nulls_last = [i == 0 for i in range(len(values.columns) + 1)]
    return (
        sums.sort(*values.columns, "partition_text", nulls_last=nulls_last)
        .with_columns(share=pl.when(total("bytes") > 0).then(pl.col("bytes") / total("bytes")))
        .pipe(conform, PARTITION_SIZES)
    )


def with_row_bounds(sizes: pl.DataFrame, snapshot: Snapshot) -> pl.DataFrame:
    """PARTITION_SIZES with the least number of rows where the exact one is unknown and the log proves one, and `mark`:
    "≥" there, else "". The same bound as for the whole table (`least_records`)."""
    least = _least_records(snapshot, sizes.filter(pl.col("records").is_null())["partition_text"])
    return with_least(sizes.join(least, on="partition_text", how="left", maintain_order="left"), "least")


def least_records_of(snapshot: Snapshot, partition: str) -> int | None:
    """At least how many rows a partition has; None where the log proves no bound."""
    least = _least_records(snapshot, pl.Series([partition]))["least"]
    return None if least.is_empty() else int(least[0])


def _least_records(snapshot: Snapshot, partitions: pl.Series) -> pl.DataFrame:
    """`partition_text` and `least`, of the partitions for which the log proves a bound."""
    schema = {"partition_text": pl.String(), "least": pl.Int64()}
    deletes = snapshot.delete_files
    if partitions.is_empty() or (not deletes.is_empty() and deletes["partition_text"].has_nulls()):
        return pl.DataFrame(schema=schema)  # deletes without a partition are about any of them
    inside = pl.col("partition_text").is_in(partitions.implode())
    of_files = snapshot.files.filter(inside).partition_by("partition_text", as_dict=True)
    of_deletes = {} if deletes.is_empty() else deletes.filter(inside).partition_by("partition_text", as_dict=True)
    bounds = {name: least_records(files, of_deletes.get((name,))) for (name,), files in of_files.items()}
    least = pl.DataFrame({"partition_text": list(bounds), "least": list(bounds.values())}, schema=schema)
    return least.filter(pl.col("least") > 0)


def partition_skew(sizes: pl.DataFrame) -> Skew:
    """Skew of PARTITION_SIZES; files of no partition are none."""
    sizes = sizes.drop_nulls("partition_text")
    if sizes.is_empty():
        return Skew(0, None, 0, 0, None, None, 0, 0, None)
    largest: dict[str, Any] = {"partition_text": None, "bytes": None}
    if has_sizes := not sizes["bytes"].has_nulls():
        largest = sizes.sort("bytes", descending=True).row(0, named=True)
    most = sizes.sort("files", descending=True).row(0, named=True)
    medians = sizes.select(pl.col("bytes", "files").quantile(0.5, "nearest")).row(0, named=True)
    median_bytes, median_files = int(medians["bytes"]) if has_sizes else None, int(medians["files"])
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
    """Partitions that are missing between two that are there, of one key of numbers, buckets, years, ... or hours; of
    several keys the steps of the one in time that no partition has (`month=2026-09`).

    Keys are taken as their texts tell them (`partition_keys`). Nothing is called missing where more than half of the
    sequence is: then it is none. At most _MOST_MISSING.
    """
    if snapshot.files.is_empty():
        return []
    partitions = snapshot.files["partition_text"].drop_nulls().unique()
    name = sequence_key(snapshot)
    if name is not None:
        texts = partition_keys(partitions, [name]).to_series(0)
    else:
        values = {key: key_values(partitions, key) for key in partition_names(snapshot)}
        name = next((key for key, texts in values.items() if time_key(texts) is not None), None)
        if name is None:
            return []
        texts = values[name]
    there = set(texts.drop_nulls())
    missing = [text for text in whole_sequence(texts) if text not in there]
    return [f"{name}={text}" for text in missing[:_MOST_MISSING]]


def _typed_values(files: pl.DataFrame) -> pl.DataFrame:
    """The typed partition values as columns `key_0`, `key_1`, ...: the user's names may be any."""
    if "partition" not in files.columns:
        return files.select(key_0=pl.col("partition_text"))
    values = files["partition"].struct.unnest()
    values.columns = [f"key_{i}" for i in range(values.width)]
    return values
