"""MANIFESTS, PARTITION_SPECS, delete files and STATISTICS_FILES to figures: manifests and delete files of a version,
the live files of each partition spec, and estimates of distinct values."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from lakeview.model.frames import PARTITION_SPECS, UTC_MILLIS
from lakeview.views.conform import conform
from lakeview.views.sums import zero_where

SPEC_USE = pl.Schema(
    {**PARTITION_SPECS, "files": pl.Int64(), "rows": pl.Int64(), "manifests": pl.Int64(), "state": pl.String()}
)
"""PARTITION_SPECS with the live data files of a version in each, their physical rows, both null where a manifest does
not count them, and the manifests that list them. `state`: `new files` of the default spec, `unused` of one without
files, else empty."""

MANIFEST_ROWS = pl.Schema(
    {
        "file": pl.String(),
        "content": pl.String(),
        "size": pl.Int64(),
        "files": pl.Int64(),
        "rows": pl.Int64(),
        "files_deleted": pl.Int64(),
        "spec_id": pl.Int64(),
        "partitions": pl.String(),
        "overlaps": pl.Int64(),
        "added_version": pl.Int64(),
    }
)
"""One row a manifest: its file's name, its live files (added and existing) and their rows; null where not counted."""

DELETE_FILE_ROWS = pl.Schema(
    {
        "file": pl.String(),
        "kind": pl.String(),
        "partition_text": pl.String(),
        "size": pl.Int64(),
        "records": pl.Int64(),
        "modified": UTC_MILLIS,
    }
)
"""One row a delete file: its name, and the kind of deletes in it: `deletes` where the format has only one."""

DISTINCT = pl.Schema({"path": pl.String(), "ndv": pl.Int64()})
"""One row a column with an estimate of its distinct values."""


@dataclass(frozen=True, slots=True)
class ManifestFacts:
    """How one version is listed: data and delete manifests, bytes of both, the median size, how many have a range that
    meets another's (None where no range is known), and how many list files that are gone from it."""

    data: int
    deletes: int
    size: int
    median_size: float | None
    overlapping: int | None
    with_deleted: int


def manifest_facts(manifests: pl.DataFrame) -> ManifestFacts:
    """MANIFEST figures of one version."""
    data = manifests.filter(pl.col("content") == "data").height
    overlaps = manifests["overlaps"].drop_nulls()
    median = manifests["size"].median()
    return ManifestFacts(
        data,
        manifests.height - data,
        int(manifests["size"].sum()),
        float(median) if isinstance(median, int | float) else None,
        int((overlaps > 0).sum()) if overlaps.len() else None,
        manifests.filter(pl.col("files_deleted") > 0).height,
    )


def spec_use(specs: pl.DataFrame, manifests: pl.DataFrame) -> pl.DataFrame:
    """SPEC_USE of the version whose MANIFESTS these are, oldest spec first."""

    def live(what: str) -> pl.Expr:
        both = pl.col(f"{what}_added") + pl.col(f"{what}_existing")
        return pl.when(both.is_not_null().all()).then(both.sum())

    counts = (
        manifests.filter(pl.col("content") == "data")
        .group_by("spec_id")
        .agg(files=live("files"), rows=live("rows"), manifests=pl.len().cast(pl.Int64))
    )
    specs_with_counts = specs.join(counts, on="spec_id", how="left", maintain_order="left")
    is_unused = pl.col("manifests").is_null()
    return specs_with_counts.with_columns(
        *zero_where(is_unused, "files", "rows", "manifests"),
        state=pl.when("default").then(pl.lit("new files")).when(is_unused).then(pl.lit("unused")).otherwise(pl.lit("")),
    ).cast(SPEC_USE)


def is_partitioned(specs: pl.DataFrame) -> bool:
    """True if any of PARTITION_SPECS has a field."""
    return bool((specs["fields"].list.len() > 0).any())


def manifest_rows(manifests: pl.DataFrame) -> pl.DataFrame:
    """MANIFEST_ROWS of MANIFESTS, in their order."""
    live = {what: pl.col(f"{what}_added") + pl.col(f"{what}_existing") for what in ("files", "rows")}
    names = pl.col("path").str.split("/").list.last()
    return manifests.with_columns(file=names, **live).pipe(conform, MANIFEST_ROWS)


def delete_file_rows(deletes: pl.DataFrame) -> pl.DataFrame:
    """DELETE_FILE_ROWS of a snapshot's delete files, in their order."""
    kind = pl.col("content") if "content" in deletes.columns else pl.lit("deletes")
    names = pl.col("path").str.split("/").list.last()
    return deletes.with_columns(file=names, kind=kind).pipe(conform, DELETE_FILE_ROWS)


def distinct_values(statistics: pl.DataFrame, versions: Sequence[int]) -> pl.DataFrame:
    """DISTINCT from STATISTICS_FILES, each from the first of these versions (newest first) that estimates it."""
    order = pl.DataFrame({"version": list(versions)}, schema={"version": pl.Int64()}).with_row_index("age")
    single = statistics.filter(pl.col("ndv").is_not_null() & (pl.col("columns").list.len() == 1))
    return (
        single.join(order, on="version")
        .sort("age", maintain_order=True)
        .select(path=pl.col("columns").list.first(), ndv="ndv")
        .unique("path", keep="first", maintain_order=True)
        .cast(DISTINCT)
    )
