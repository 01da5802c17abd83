"""What the statistics of a version show of its columns and of how its files are clustered, and what they lack,
contradict and prove."""

from dataclasses import dataclass

import polars as pl

from lakeview import views
from lakeview.inspection.absent_columns import absent_shares, complete_statistics, sampled_statistics
from lakeview.inspection.frames import cache_answer
from lakeview.inspection.history import HistoryAnswers
from lakeview.model.column_values import least_records
from lakeview.model.contradictions import contradictions
from lakeview.model.errors import LakeviewError
from lakeview.model.schema import leaf_name
from lakeview.model.snapshot import Snapshot

FIRST_COLUMNS = 32
"""So many columns have statistics by the default of Delta's writers."""
FEW_RULES = 4
MAX_RULE_VALUES = 4_000_000
"""Files times constraints that are examined; of any table the first FEW_RULES constraints."""
MAX_RANKED_FILES = 200_000
SAMPLED_FILES = 20_000
"""Of more than MAX_RANKED_FILES files about so many are compared, to rank columns by how well files are clustered."""
MAX_LOAD_COLUMNS = 200
MAX_LOAD_VALUES = 4_000_000
"""Files times columns whose loads are compared: about two seconds; of a larger table those of its first columns."""


def own_leaves(snapshot: Snapshot) -> list[str]:
    """The names of the leaf columns whose values are in the data files, and not in the folders' names alone."""
    return [leaf_name(path) for path, _ in snapshot.schema.leaves() if path[0] not in snapshot.partition_columns]


@dataclass(frozen=True, slots=True)
class ColumnAnswers:
    """SCHEMA_TREE and NULL_SHARES of a version."""

    tree: pl.DataFrame
    shares: pl.DataFrame


@dataclass(frozen=True, slots=True)
class ClusteringAnswers:
    """How files are clustered at a version: CLUSTERING with the best columns first, DEPTHS of the first of them, and
    filters worth trying. `sample_size`: the files by which they are estimated, None where all are compared."""

    columns: pl.DataFrame
    depths: pl.DataFrame
    examples: tuple[str, ...]
    sample_size: int | None


class StatisticsAnswers(HistoryAnswers):
    """What the statistics of one version of a table show."""

    @cache_answer("version", "branch", "frames.ref")
    def columns(self) -> ColumnAnswers:
        """What the statistics of all columns show of this version: null shares and ranges."""
        snapshot = self.snapshot
        statistics = complete_statistics(self.frames, snapshot.version)
        files, records = snapshot.files, snapshot.num_records
        least = least_records(files, snapshot.delete_files)
        shares = views.schema.null_shares.null_shares(statistics, files, least, records)
        absent = absent_shares(self.frames, snapshot, statistics)
        tree = views.schema.columns.schema_tree(
            snapshot.schema, statistics, records, files=files, least=least, shares=shares, absent=absent
        )
        return ColumnAnswers(tree, shares)

    @cache_answer("version", "branch", "frames.ref")
    def clustering(self) -> ClusteringAnswers:
        """How well the files of this version are clustered by each column: how its ranges overlap; of very many files
        those of a sample, scaled up."""
        snapshot = self.snapshot
        share = SAMPLED_FILES / snapshot.num_files if snapshot.num_files > MAX_RANKED_FILES else 1.0
        statistics, files = sampled_statistics(self.frames, snapshot.version, share), snapshot.files
        measure = views.pruning.clustering
        columns = measure.clustering(snapshot.schema, statistics, files)
        columns = columns.sort("reads_share", nulls_last=True, maintain_order=True)
        return ClusteringAnswers(
            columns,
            measure.depth_profile(statistics, files, next(iter(columns["column"]), "")),
            tuple(views.pruning.plan.example_filters(snapshot, statistics, columns)),
            statistics.height if statistics.height < files.height else None,
        )

    @cache_answer("version")
    def files_without_statistics(self) -> pl.DataFrame:
        """The rows of STATISTICS of this version without any value: of files without statistics. Where the first
        columns have one in each file, others are not read."""
        leaves, version = own_leaves(self.snapshot), self.snapshot.version
        silent = views.schema.null_shares.files_without_statistics
        if len(leaves) > FIRST_COLUMNS:
            rows = silent(self.frames.recorded_statistics(version, leaves[:FIRST_COLUMNS]))
            if rows.is_empty():
                return rows
        return silent(self.frames.recorded_statistics(version))

    @cache_answer("version")
    def contradictions(self) -> pl.DataFrame:
        """CONTRADICTIONS of the statistics of this version; of a wide table those of its first columns."""
        snapshot = self.snapshot
        statistics = self.frames.recorded_statistics(snapshot.version, own_leaves(snapshot)[:FIRST_COLUMNS])
        files = snapshot.files.select("path", "records").unique("path")  # a broken log has a path with two vectors
        rows = statistics.select(path="_path").join(files, on="path", how="left", maintain_order="left")
        return contradictions(statistics, rows["records"])

    @cache_answer("version", "branch", "frames.ref", entries=16)
    def constraints(self) -> views.quality.verdicts.ConstraintVerdicts:
        """What the statistics prove of the table's own constraints; of a huge table of the first ones."""
        snapshot = self.snapshot
        rules = views.quality.constraints.stated_rules(snapshot)
        fitting = max(FEW_RULES, MAX_RULE_VALUES // max(1, snapshot.num_files))
        limit = min(views.quality.constraints.MOST_RULES, fitting)
        columns = views.quality.constraints.rule_columns(rules, snapshot.schema, limit)
        statistics = complete_statistics(self.frames, snapshot.version, columns) if rules else pl.DataFrame()
        return views.quality.verdicts.constraint_verdicts(snapshot, rules, statistics, limit)

    @property
    def newest(self) -> Snapshot:
        """The newest version of the line of versions that is shown; the newest one that can be read, if it cannot."""
        latest = HistoryAnswers(self.frames).snapshot
        try:
            _ = latest.num_files
        except LakeviewError:
            versions = self.on_branch(self.frames.of_log("readable versions"))
            readable = versions.filter("readable")["version"]
            if readable.is_empty():
                raise
            return self.frames.snapshot(readable[0])
        return latest

    def load_columns(self) -> tuple[tuple[str, ...], int]:
        """The leaf columns whose loads are compared, and how many leaf columns there are."""
        newest = self.newest  # lifetimes come in the types of the newest version
        leaves = own_leaves(newest)
        files = views.quality.column_loads.files_ever(self.frames.history, newest.num_files)
        fitting = max(1, MAX_LOAD_VALUES // max(1, self.frames.lifetimes.height if files is None else files))
        return tuple(leaves[: min(MAX_LOAD_COLUMNS, fitting)]), len(leaves)
