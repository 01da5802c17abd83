"""Answers about one version of a table, each computed on demand by a view and cached by version."""

import polars as pl

from lakeview import views
from lakeview.inspection import absent_columns, history, schemas, statistics
from lakeview.inspection.frames import SchemaVersion, TableFrames
from lakeview.inspection.schemas import feature_origins
from lakeview.inspection.statistics import ClusteringAnswers, ColumnAnswers, clustering_answers, column_answers
from lakeview.model.arguments import days_of, integer_of
from lakeview.model.errors import LakeviewError
from lakeview.model.snapshot import Snapshot
from lakeview.model.snapshot_sources import as_declared
from lakeview.predicates import predicate
from lakeview.predicates.expressions import conjuncts

MAX_FILES_AT_A_GLANCE = 200_000
"""Of more files the statistics of all columns take seconds: they are read on Schema, Pruning and Quality only."""


class Answers:
    """What the views show of one version of a table."""

    def __init__(self, frames: TableFrames, version: int | None = None) -> None:
        self.frames = frames
        self._version = version

    @property
    def version(self) -> int:
        """The version that the answers are about."""
        return self.frames.latest if self._version is None else self._version

    @property
    def branch(self) -> str | None:
        """The ref whose newest version this is; None at any other version and where the table has no refs."""
        if self.version != self.frames.latest or self.frames.refs.is_empty():
            return None
        return str(self.frames.refs["name"][0]) if self.frames.ref is None else self.frames.ref

    @property
    def snapshot(self) -> Snapshot:
        """The table at this version; the newest one of a branch has the table's schema as it is now."""
        return self.frames.snapshot(self.version, self.branch)

    def list_ahead(self) -> None:
        """Begins the listing of a remote table's folder, for who asks for `readability` or findings after others."""
        self.frames.table.list_ahead()

    # -- what happened

    def timeline(self) -> pl.DataFrame:
        """TIMELINE, oldest first: exact from file lifetimes; summed from commits where the files cannot be followed.

        Its suspicious loads are those of `anomalies`."""
        latest, ref = self.frames.latest, self.frames.ref

        def compute() -> pl.DataFrame:
            anomalies = self.anomalies()  # first: what reads statistics reads the files with them
            return views.quality.anomalies.with_anomalies(history.commit_timeline(self.frames), anomalies)

        return self.frames.get_or_make("timeline", compute, latest, ref)

    def anomalies(self) -> pl.DataFrame:
        """ANOMALIES: loads up to the latest version that are not as expected; by their rows alone where statistics
        cannot be read."""
        latest, ref = self.frames.latest, self.frames.ref

        def compute() -> pl.DataFrame:
            try:
                changes = self.quality()
            except LakeviewError:  # of an unsupported or broken table
                changes = views.quality.anomalies.NO_CHANGES
            return views.quality.anomalies.anomalies(history.commit_timeline(self.frames), changes)

        return self.frames.get_or_make("anomalies", compute, latest, ref)

    def has_baseline(self) -> bool:
        """True if loads up to the latest version could be compared with earlier ones, so that a bad one is known."""
        latest, ref = self.frames.latest, self.frames.ref

        def compute() -> bool:
            try:
                changes = self.quality()
            except LakeviewError:  # of an unsupported or broken table: rows in its commits alone show no bad column
                return False
            return views.quality.anomalies.has_baseline(history.commit_timeline(self.frames), changes)

        return self.frames.get_or_make("has baseline", compute, latest, ref)

    def off_branch_commits(self) -> pl.DataFrame:
        """OFF_BRANCH: commits that are not on the line of versions that ends at the latest one."""
        return history.off_branch_commits(self.frames)

    def on_branch(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of a frame with a column `version` whose versions are on the line that ends at the latest one."""
        return frame.join(self.off_branch_commits(), on="version", how="anti", maintain_order="left")

    def branch_commits(self) -> pl.DataFrame:
        """COMMITS of the line of versions that is shown, newest first."""
        return views.timeline.branches.of_line(self.frames.history, self.frames.refs, self.frames.latest)

    def arrivals(self) -> pl.DataFrame:
        """PARTITION_ARRIVALS: when each partition of this version was first written, and which came late."""
        return history.arrivals(self.frames, self.version)

    def events(self) -> pl.DataFrame:
        """EVENTS: the few commits worth naming in a picture."""
        try:
            versions = self.schema_versions()
        except LakeviewError:  # events are then named by their operation
            versions = []
        return views.timeline.events.events(self.timeline(), versions)

    def readability(self) -> pl.DataFrame:
        """RIBBON: which versions can still be read, and which the next vacuum or snapshot expiration would end."""
        return history.readability(self.frames)

    def cadence(self) -> views.timeline.readability.Cadence:
        """When the last commit came, and how often commits usually come."""
        commits = views.timeline.commits.on_branch(self.timeline())
        return views.timeline.readability.cadence(commits, self.frames.clock())

    def audit(self) -> pl.DataFrame:
        """AUDIT of all commits up to the latest version, oldest first. Costs the whole log, once."""
        return self.frames.get_or_make("audit", self.frames.table.audit, self.frames.latest, entries=8)

    # -- columns

    def schema_versions(self) -> list[SchemaVersion]:
        """Every schema the table had, oldest first, as far as those versions can still be read; the last 200."""
        return schemas.readable_schemas(self.frames, self.frames.schemas.tail(absent_columns.MAX_SCHEMAS))

    def schema_changes(self) -> pl.DataFrame:
        """SCHEMA_CHANGES, oldest first: which version changed which column, and how."""
        return schemas.schema_changes(self.schema_versions())

    def columns(self) -> ColumnAnswers:
        """What the statistics of all columns show of this version."""
        return self.frames.get_or_make(
            "columns", lambda: column_answers(self.frames, self.snapshot), self.version, self.branch
        )

    def clustering(self) -> ClusteringAnswers:
        """How well the files of this version are clustered by each column."""
        return self.frames.get_or_make(
            "clustering", lambda: clustering_answers(self.frames, self.snapshot), self.version, self.branch
        )

    def files_without_statistics(self) -> pl.DataFrame:
        """The rows of STATISTICS of this version without any value: of files without statistics."""
        return self.frames.get_or_make(
            "files without statistics",
            lambda: statistics.files_without_statistics(self.frames, self.snapshot),
            self.version,
        )

    def contradictions(self) -> pl.DataFrame:
        """CONTRADICTIONS of the statistics of this version; of a wide table those of its first columns."""
        return self.frames.get_or_make(
            "contradictions",
            lambda: statistics.statistics_contradictions(self.frames, self.snapshot),
            self.version,
        )

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
        return self.frames.plan(where, self.version)

    def file_verdicts(self, where: str, part: int | None = None) -> pl.DataFrame:
        """FILE_VERDICTS of this version for a filter in SQL, or for one of the conditions that it joins by AND."""

        def compute() -> pl.DataFrame:
            snapshot = self.frames.snapshot(self.version)
            condition = predicate(where, snapshot.schema)
            views.pruning.plan.check_condition(condition, snapshot.schema)
            if part is not None:
                condition = conjuncts(condition)[part]
            table = self.frames.table
            plan = table.plan(where if part is None else condition, as_declared(table, self.version))
            columns = views.pruning.plan.filter_columns(condition, snapshot.schema)
            recorded = absent_columns.complete_statistics(self.frames, self.version, columns)
            return views.pruning.plan.file_verdicts(plan, condition, recorded, snapshot.files)

        return self.frames.get_or_make("file verdicts", compute, self.version, where, part, entries=64)

    def compare(self, before: int, after: int) -> pl.DataFrame:
        """COMPARISON: what differs between two versions in totals, columns, settings and partitions."""
        ends = integer_of(before, "before"), integer_of(after, "after")
        return views.compare.summary.comparison(*map(self.frames.snapshot, ends))

    # -- trust

    def constraints(self) -> views.quality.verdicts.ConstraintVerdicts:
        """What the statistics prove of the table's own constraints; of a huge table of the first ones."""

        def compute() -> views.quality.verdicts.ConstraintVerdicts:
            return statistics.constraint_verdicts(self.frames, self.snapshot)

        return self.frames.get_or_make("constraints", compute, self.version, self.branch, entries=16)

    def load_columns(self) -> tuple[tuple[str, ...], int]:
        """The leaf columns whose loads are compared, and how many leaf columns there are."""
        # lifetimes come in the types of the newest version
        return statistics.load_columns(self.frames, self.newest)

    @property
    def newest(self) -> Snapshot:
        """The newest version of the line of versions that is shown; the newest one that can be read, if it cannot."""
        latest = Answers(self.frames).snapshot
        try:
            _ = latest.num_files
        except LakeviewError:
            versions = self.on_branch(self.frames.of_log("readable versions"))
            readable = versions.filter("readable")["version"]
            if readable.is_empty():
                raise
            return self.frames.snapshot(readable[0])
        return latest

    def quality(self) -> pl.DataFrame:
        """SUDDEN: each load and column compared with the loads before it: rows, null share, range, and what is an
        anomaly."""
        latest, ref = self.frames.latest, self.frames.ref
        return self.frames.get_or_make("quality", self._quality, latest, ref, self.load_columns()[0], entries=16)

    def _quality(self) -> pl.DataFrame:
        lifetimes = self.frames.changed_lifetimes(self.load_columns()[0])
        loads = views.quality.column_loads.column_loads(lifetimes, history.commit_timeline(self.frames))
        return views.quality.sudden_changes.sudden_changes(loads)

    def column_states(self) -> pl.DataFrame:
        """COLUMN_STATES of every version."""
        columns = self.load_columns()[0]

        def compute() -> pl.DataFrame:
            recorded = self.frames.column_lifetimes(columns)
            lifetimes = absent_columns.lifetimes_with_absent_columns(self.frames, self.newest, recorded)
            return views.quality.column_states.column_states(lifetimes, self.timeline())

        return self.frames.get_or_make(
            "column states", compute, self.frames.latest, self.frames.ref, columns, entries=8
        )

    # -- maintenance and engines

    def retention_simulation(self) -> views.retention.simulation.Retention:
        """What a vacuum or snapshot expiration of the whole table would find now, whichever ref is shown."""
        return history.retention_simulation(self.frames)

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

    def requirements(self) -> pl.DataFrame:
        """NEEDS: what this version asks of engines, and which commit asked for it first."""
        return self.frames.get_or_make("requirements", self._requirements, self.version, self.frames.latest)

    def _requirements(self) -> pl.DataFrame:
        snapshot = self.frames.snapshot(self.version)
        return views.engines.requirements.needs(snapshot, feature_origins(self.frames, self.version, snapshot.format))

    def requirements_when_shared(self) -> pl.DataFrame:
        """NEEDS of recipients once this version is shared; empty for a format that is not shared as it is."""

        def compute() -> pl.DataFrame:
            snapshot = self.frames.snapshot(self.version)
            origins = feature_origins(self.frames, self.version, snapshot.format)
            return views.engines.requirements.shared_needs(snapshot, origins)

        return self.frames.get_or_make("requirements when shared", compute, self.version, self.frames.latest)

    def engines(self) -> pl.DataFrame:
        """COMPATIBILITY: which engines read and write this version, and the feature that keeps the others from it."""
        return views.engines.compatibility.compatibility(self.requirements(), self.snapshot.format)
