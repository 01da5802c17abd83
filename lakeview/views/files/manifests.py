"""MANIFESTS, PARTITION_SPECS and STATISTICS_FILES to figures: how a version is listed, what each spec still holds, and
how many distinct values columns are said to have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from lakeview.model.frames import PARTITION_SPECS

SPEC_USE = pl.Schema({**PARTITION_SPECS, "files": pl.Int64(), "rows": pl.Int64(), "manifests": pl.Int64()})
"""PARTITION_SPECS with what the version shown still holds in each: live data files and their physical rows, null where
a manifest does not count them, and the manifests that list them."""

DISTINCT = pl.Schema({"path": pl.String(), "ndv": pl.Int64(), "ndv_version": pl.Int64()})
"""One row a column with an estimate of its distinct values, and the version it was made for."""


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
    known = manifests["overlaps"].drop_nulls()
    median = manifests["size"].median()
    return ManifestFacts(
        data,
        manifests.height - data,
        int(manifests["size"].sum()),
        float(median) if isinstance(median, int | float) else None,
        int((known > 0).sum()) if known.len() else None,
        manifests.filter(pl.col("files_deleted") > 0).height,
    )


def spec_use(specs: pl.DataFrame, manifests: pl.DataFrame) -> pl.DataFrame:
    """SPEC_USE of the version whose MANIFESTS these are, oldest spec first."""

    def live(what: str) -> pl.Expr:
        both = pl.col(f"{what}_added") + pl.col(f"{what}_existing")
        return pl.when(both.is_not_null().all()).then(both.sum())

    held = (
        manifests.filter(pl.col("content") == "data")
        .group_by("spec_id")
        .agg(files=live("files"), rows=live("rows"), manifests=pl.len().cast(pl.Int64))
    )
    joined = specs.join(held, on="spec_id", how="left", maintain_order="left")
    unused = pl.col("manifests").is_null()
    return joined.with_columns(
        *(pl.when(unused).then(0).otherwise(pl.col(name)).alias(name) for name in ("files", "rows", "manifests"))
    ).cast(SPEC_USE)


def distinct_values(statistics: pl.DataFrame, versions: Sequence[int]) -> pl.DataFrame:
    """DISTINCT from STATISTICS_FILES, each from the first of these versions (newest first) that estimates it."""
    order = pl.DataFrame({"version": list(versions)}, schema={"version": pl.Int64()}).with_row_index("age")
    single = statistics.filter(pl.col("ndv").is_not_null() & (pl.col("columns").list.len() == 1))
    return (
        single.join(order, on="version")
        .sort("age", maintain_order=True)
        .select(path=pl.col("columns").list.first(), ndv="ndv", ndv_version="version")
        .unique("path", keep="first", maintain_order=True)
        .cast(DISTINCT)
    )
