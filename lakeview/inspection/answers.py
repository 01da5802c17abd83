"""Answers about one version of a table, each computed on demand by a view and cached by version."""

import polars as pl

from lakeview import views
from lakeview.inspection import absent_columns, schemas
from lakeview.inspection.frames import SchemaVersion, cache_answer
from lakeview.inspection.schemas import feature_origins
from lakeview.inspection.statistics import StatisticsAnswers
from lakeview.model.arguments import days_of, integer_of
from lakeview.model.errors import LakeviewError
from lakeview.model.snapshot_sources import as_declared
from lakeview.predicates import predicate
from lakeview.predicates.expressions import conjuncts

MAX_FILES_AT_A_GLANCE = 200_000
"""Of more files the statistics of all columns take seconds: they are read on Schema, Pruning and Quality only."""


class Answers(StatisticsAnswers):
    """What the views show of one version of a table."""

    def list_ahead(self) -> None:
        """Begins the listing of a remote table's folder, for who asks for `readability` or findings after others."""
        self.frames.table.list_ahead()

    # -- what happened

    @cache_answer("frames.latest", "frames.ref")
    def timeline(self) -> pl.DataFrame:
        """TIMELINE, oldest first: exact from file lifetimes; summed from commits where the files cannot be followed.

        Its suspicious loads are those of `anomalies`."""
        anomalies = self.anomalies()  # first: what reads statistics reads the files with them
        return views.quality.anomalies.with_anomalies(self.commit_timeline(), anomalies)

    @cache_answer("frames.latest", "frames.ref")
    def anomalies(self) -> pl.DataFrame:
        """ANOMALIES: loads up to the latest version that are not as expected; by their rows alone where statistics
        cannot be read."""
        try:
            changes = self.quality()
        except LakeviewError:  # of an unsupported or broken table
            changes = views.quality.anomalies.NO_CHANGES
        return views.quality.anomalies.anomalies(self.commit_timeline(), changes)

    @cache_answer("frames.latest", "frames.ref")
    def has_baseline(self) -> bool:
        """True if loads up to the latest version could be compared with earlier ones, so that a bad one is known."""
        try:
            changes = self.quality()
        except LakeviewError:  # of an unsupported or broken table: rows in its commits alone show no bad column
            return False
        return views.quality.anomalies.has_baseline(self.commit_timeline(), changes)

    def events(self) -> pl.DataFrame:
        """EVENTS: the few commits worth naming in a picture."""
        try:
            versions = self.schema_versions()
        except LakeviewError:  # events are then named by their operation
            versions = []
        return views.timeline.events.events(self.timeline(), versions)

    def cadence(self) -> views.timeline.readability.Cadence:
        """When the last commit came, and how often commits usually come."""
        commits = views.timeline.branches.on_branch(self.timeline())
        return views.timeline.readability.cadence(commits, self.frames.clock())

    @cache_answer("frames.latest", entries=8)
    def audit(self) -> pl.DataFrame:
        """AUDIT of all commits up to the latest version, oldest first. Costs the whole log, once."""
        return self.frames.table.audit()

    # -- columns

    def schema_versions(self) -> list[SchemaVersion]:
        """Every schema the table had, oldest first, as far as those versions can still be read; the last 200."""
        return schemas.readable_schemas(self.frames, self.frames.schemas.tail(absent_columns.MAX_SCHEMAS))

    def schema_changes(self) -> pl.DataFrame:
        """SCHEMA_CHANGES, oldest first: which version changed which column, and how."""
        return schemas.schema_changes(self.schema_versions())

    # -- files

    @property
    def is_small(self) -> bool:
        """True if the statistics of all columns are read to show the table at a glance."""
        return self.snapshot.num_files <= MAX_FILES_AT_A_GLANCE

    def files(self) -> pl.DataFrame:
        """FILES of this version."""
        return self.snapshot.files

    def partitions(self) -> pl.DataFrame:
        """PARTITION_SIZES of this version."""
        return views.partitions.sizes.partition_sizes(self.snapshot)

    def pruning(self, where: str | pl.Expr) -> pl.DataFrame:
        """PLAN of this version: which files a filter (SQL or polars) would read, and why not the others."""
        if isinstance(where, str):
            return self.frames.plan(where, self.version)
        table = self.frames.table  # expressions have no hash, and are not cached
        return table.plan(where, as_declared(table, self.version))

    @cache_answer("version", entries=64)
    def file_verdicts(self, where: str, part: int | None = None) -> pl.DataFrame:
        """FILE_VERDICTS of this version for a filter in SQL, or for one of the conditions that it joins by AND."""
        snapshot = self.frames.snapshot(self.version)
        condition = predicate(where, snapshot.schema)
        views.pruning.plan.check_condition(condition, snapshot.schema)
        if part is not None:
            condition = conjuncts(condition)[part]
        table = self.frames.table
        plan = table.plan(where if part is None else condition, as_declared(table, self.version))
        columns = views.pruning.plan.filter_columns(condition, snapshot.schema)
        statistics = absent_columns.complete_statistics(self.frames, self.version, columns)
        return views.pruning.plan.file_verdicts(plan, condition, statistics, snapshot.files)

    def compare(self, before: int, after: int) -> pl.DataFrame:
        """COMPARISON: what differs between two versions in totals, columns, settings and partitions."""
        ends = integer_of(before, "before"), integer_of(after, "after")
        return views.compare.summary.comparison(*map(self.frames.snapshot, ends))

    # -- trust

    def quality(self) -> pl.DataFrame:
        """SUDDEN: each load and column compared with the loads before it: rows, null share, range, and what is an
        anomaly."""
        return self._quality(self.load_columns()[0])

    @cache_answer("frames.latest", "frames.ref", entries=16)
    def _quality(self, columns: tuple[str, ...]) -> pl.DataFrame:
        lifetimes = self.frames.changed_lifetimes(columns)
        loads = views.quality.column_loads.column_loads(lifetimes, self.commit_timeline())
        return views.quality.sudden_changes.sudden_changes(loads)

    def column_states(self) -> pl.DataFrame:
        """COLUMN_STATES of every version."""
        return self._column_states(self.load_columns()[0])

    @cache_answer("frames.latest", "frames.ref", entries=8)
    def _column_states(self, columns: tuple[str, ...]) -> pl.DataFrame:
        lifetimes = self.frames.column_lifetimes(columns)
        lifetimes = absent_columns.lifetimes_with_absent_columns(self.frames, self.newest, lifetimes)
        return views.quality.column_states.column_states(lifetimes, self.timeline())

    # -- maintenance and engines

    def known_retention(self) -> views.retention.simulation.Retention | None:
        """`retention_simulation`; None, unknown, for a version before a newest one that cannot be read."""
        try:
            return self.retention_simulation()
        except LakeviewError:
            if self.version == self.frames.latest:
                raise
            return None

    def retention(self, days: float) -> pl.DataFrame:
        """RIBBON after a cleanup that retains so many days: the state of each version it would end is `risk`."""
        return views.retention.simulation.retention_ribbon(self.retention_simulation(), days_of(days, "days"))

    @cache_answer("version", "frames.latest")
    def requirements(self) -> pl.DataFrame:
        """NEEDS: what this version asks of engines, and which commit asked for it first."""
        snapshot = self.frames.snapshot(self.version)
        return views.engines.requirements.needs(snapshot, feature_origins(self.frames, self.version, snapshot.format))

    @cache_answer("version", "frames.latest")
    def requirements_when_shared(self) -> pl.DataFrame:
        """NEEDS of recipients once this version is shared; empty for a format that is not shared as it is."""
        snapshot = self.frames.snapshot(self.version)
        origins = feature_origins(self.frames, self.version, snapshot.format)
        return views.engines.requirements.shared_needs(snapshot, origins)

    def engines(self) -> pl.DataFrame:
        """COMPATIBILITY: which engines read and write this version, and the feature that keeps the others from it."""
        return views.engines.compatibility.compatibility(self.requirements(), self.snapshot.format)
