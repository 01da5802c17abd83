"""What the statistics of all columns show of one version, gathered in one pass."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import polars as pl

from lakeview import views
from lakeview.inspection.absent_columns import absences
from lakeview.inspection.frames import TableFrames
from lakeview.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ColumnAnswers:
    """What the statistics of all columns show of a version: SCHEMA_TREE, NULL_SHARES, the rows of STATISTICS without
    any value, CLUSTERING with the best columns first, DEPTHS of the first of them, and filters worth trying."""

    tree: pl.DataFrame
    shares: pl.DataFrame
    without_statistics: pl.DataFrame
    clustering: pl.DataFrame
    depths: pl.DataFrame
    examples: tuple[str, ...]


def column_answers(frames: TableFrames, snapshot: Snapshot) -> ColumnAnswers:
    """The answers about a version: statistics of a million files are read in seconds, and are too large to be cached
    beside what is made of them."""
    statistics, recorded = frames.statistics(snapshot.version), frames.recorded_statistics(snapshot.version)
    files = snapshot.files
    least = views.files.rows.least_records(files, snapshot.delete_files)
    schema, columns = snapshot.schema, views.schema.columns
    with ThreadPoolExecutor(2, thread_name_prefix="lakeview-statistics") as pool:  # a second each of a million files
        tree = pool.submit(columns.schema_tree, schema, statistics, snapshot.num_records, files=files, least=least)
        shares = pool.submit(columns.null_shares, statistics, files, least)
        clustering = views.pruning.clustering.clustering(schema, statistics, files)
        clustering = clustering.sort("reads_share", nulls_last=True, maintain_order=True)
        rows, absent = snapshot.num_records or least, absences(frames, snapshot)
        return ColumnAnswers(
            views.schema.births.with_absent_shares(tree.result(), absent, recorded, statistics, rows),
            shares.result(),
            columns.files_without_statistics(recorded),
            clustering,
            views.pruning.clustering.depth_profile(statistics, files, next(iter(clustering["column"]), "")),
            tuple(views.pruning.plan.example_filters(snapshot, statistics, clustering)),
        )
