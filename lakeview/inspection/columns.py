"""What the statistics of all columns show of one version, each part gathered in one pass."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from lakeview import views
from lakeview.inspection.absent_columns import absent_shares
from lakeview.inspection.frames import TableFrames
from lakeview.model.column_values import least_records
from lakeview.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ColumnAnswers:
    """SCHEMA_TREE and NULL_SHARES of a version."""

    tree: pl.DataFrame
    shares: pl.DataFrame


@dataclass(frozen=True, slots=True)
class ClusteringAnswers:
    """How files are clustered at a version: CLUSTERING with the best columns first, DEPTHS of the first of them, and
    filters worth trying."""

    columns: pl.DataFrame
    depths: pl.DataFrame
    examples: tuple[str, ...]


def column_answers(frames: TableFrames, snapshot: Snapshot) -> ColumnAnswers:
    """Null shares and ranges of every column of a version."""
    statistics = frames.statistics(snapshot.version)
    files, records = snapshot.files, snapshot.num_records
    least = least_records(files, snapshot.delete_files)
    shares = views.schema.null_shares.null_shares(statistics, files, least, records)
    absent = absent_shares(frames, snapshot, statistics)
    tree = views.schema.columns.schema_tree(
        snapshot.schema, statistics, records, files=files, least=least, shares=shares, absent=absent
    )
    return ColumnAnswers(tree, shares)


def clustering_answers(frames: TableFrames, snapshot: Snapshot) -> ClusteringAnswers:
    """The overlaps of every column's ranges at a version."""
    statistics, files = frames.statistics(snapshot.version), snapshot.files
    measure = views.pruning.clustering
    columns = measure.clustering(snapshot.schema, statistics, files)
    columns = columns.sort("reads_share", nulls_last=True, maintain_order=True)
    return ClusteringAnswers(
        columns,
        measure.depth_profile(statistics, files, next(iter(columns["column"]), "")),
        tuple(views.pruning.plan.example_filters(snapshot, statistics, columns)),
    )
