"""A log to its runs: unbroken commits with the files that were live before them, each commit read once."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import polars as pl

from lakeview.delta.audit.records import CommitRecord, commit_record
from lakeview.delta.log.actions import DomainMetadata, Metadata, Protocol
from lakeview.delta.log.checkpoints import UNREADABLE, Checkpoint
from lakeview.delta.log.commit_rows import read_commits
from lakeview.delta.log.commits import Definition, readable
from lakeview.delta.log.file_actions import COLUMN_TYPES, IDENTITY, file_actions
from lakeview.delta.log.log_segment import CheckpointFiles
from lakeview.delta.log.table_log import TableLog
from lakeview.model.errors import VersionNotFoundError

EVENTS = pl.Schema(
    {
        name: COLUMN_TYPES[name]
        for name in (
            "version", "added", "key", "deletion_vector", "size", "data_change", "records", "deleted_records",
            "base_row_id", "default_row_commit_version",
        )
    }
)  # fmt: skip
"""One row a file action, in the order recorded. `records`: physical rows of an add, `deleted_records` the cardinality
of its deletion vector."""

FOREVER = 2**63 - 1


@dataclass(frozen=True)
class Run:
    """An unbroken run of readable commits. `base`: EVENTS of the files that were live before it, as if added by the
    version before; None where the log no longer knows them."""

    log: TableLog
    records: Sequence[CommitRecord]
    events: pl.DataFrame
    base: pl.DataFrame | None
    checkpoint: Checkpoint | None = None
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    domains: Sequence[DomainMetadata] = field(default_factory=tuple)

    @property
    def first(self) -> int:
        """The version of its first commit."""
        return self.records[0].version

    @cached_property
    def by_version(self) -> dict[int, CommitRecord]:
        """Its records by version."""
        return {record.version: record for record in self.records}

    @cached_property
    def definitions(self) -> dict[int, Definition]:
        """The protocol and the metadata in force at the version before its first commit and at each of its versions;
        None for one that the log no longer shows."""
        in_force: Definition = self.protocol, self.metadata
        by_version = {self.first - 1: in_force}
        for record in self.records:
            in_force = record.protocol or in_force[0], record.metadata or in_force[1]
            by_version[record.version] = in_force
        return by_version

    @property
    def unknown_past(self) -> str:
        """Why files that no commit of the run names are unknown."""
        return f"the log before version {self.first} is gone, and no checkpoint of it can be read"

    @cached_property
    def tombstones(self) -> pl.Series:
        """Keys of the files that were removed before it and are not live, as far as its checkpoint still has them."""
        if self.checkpoint is None or self.base is None:
            return pl.Series("key", dtype=pl.String)
        try:
            keys = self.checkpoint.removes([])["key"]
        except (*UNREADABLE, VersionNotFoundError):
            return pl.Series("key", dtype=pl.String)
        return keys.filter(~keys.is_in(self.base["key"].implode()))

    @cached_property
    def story(self) -> pl.DataFrame:
        """Events of the files that more than one action names, and those of the base, by identity and version.

        `before` (version), `was_live`, `records_before`, `deleted_before`: what the last earlier action of the same
        file says; `after`: the version of its next action. Of an identity that a version names twice the last counts.
        """
        hashes = self.events["key"].hash()
        is_met = (
            hashes.is_duplicated() if hashes.n_unique() < hashes.len() else pl.repeat(False, len(hashes), eager=True)
        )
        is_met |= ~self.events["added"]
        if self.base is not None and self.base.height:
            is_met |= self.events["key"].is_in(self.base["key"].implode())
        events = self.events.filter(is_met)
        if self.base is not None and self.base.height:
            events = pl.concat([self.base.filter(pl.col("key").is_in(events["key"].implode())), events])
        events = events.unique(["version", *IDENTITY], keep="last", maintain_order=True).sort(*IDENTITY, "version")
        same = _same(1)
        before = {
            "version": "before",
            "added": "was_live",
            "records": "records_before",
            "deleted_records": "deleted_before",
        }
        return events.with_columns(
            *(pl.when(same).then(pl.col(name).shift(1)).alias(alias) for name, alias in before.items()),
            pl.when(_same(-1)).then(pl.col("version").shift(-1)).alias("after"),
        )

    @cached_property
    def removals(self) -> pl.DataFrame:
        """The removes of `story`."""
        return self.story.filter(~pl.col("added"))

    @cached_property
    def lives(self) -> pl.DataFrame:
        """The stays of the files in `story`: live from `version` to `after` - 1; `after` is FOREVER without an end."""
        return self.story.filter("added").with_columns(pl.col("after").fill_null(FOREVER))

    @cached_property
    def sums(self) -> pl.DataFrame:
        """`sums_of` its events."""
        return sums_of(self.events)

    @cached_property
    def balances(self) -> pl.DataFrame:
        """One row a commit with file actions: live rows it added (`rows_in`) and took away (`rows_out`), and of how
        many files each is unknown (`unknown_in`, `unknown_out`). An add of a live file replaces it."""
        own = self.events.filter("added").unique(["version", *IDENTITY], keep="last", maintain_order=True)
        live = _live("records", "deleted_records")
        came = own.group_by("version").agg(
            live.cast(pl.Int128).sum().alias("rows_in"), live.null_count().alias("unknown_in")
        )
        again = self.story.filter(~pl.col("added") | pl.col("was_live").fill_null(value=False))
        live_before = _live("records_before", "deleted_before")
        went = again.group_by("version").agg(
            live_before.cast(pl.Int128).sum().alias("rows_out"), live_before.null_count().alias("unknown_out")
        )
        every = self.sums.select("version")
        return (
            every.join(came, on="version", how="left")
            .join(went, on="version", how="left")
            .with_columns(pl.exclude("version").fill_null(0))
            .sort("version")
        )

    def read_adds(self, versions: Sequence[int], columns: Sequence[str]) -> pl.DataFrame:
        """FILE_ACTIONS with these columns of what commits add: they are read again."""
        return file_actions(readable(self.log.each_bytes(versions)), self.log.storage.root, columns).filter("added")

    def live_at(self, version: int) -> pl.DataFrame | None:
        """`key` and `deletion_vector` of the files live at a version; None where the log no longer knows."""
        if self.base is None or not self.first - 1 <= version <= self.records[-1].version:
            return None
        every = pl.concat(
            [self.base.select("version", *IDENTITY, "added"), self.events.select("version", *IDENTITY, "added")]
        )
        newest = every.filter(pl.col("version") <= version).unique(IDENTITY, keep="last", maintain_order=True)
        return newest.filter("added").select(IDENTITY)


def sums_of(events: pl.DataFrame) -> pl.DataFrame:
    """One row a commit with file actions: files `added` and `removed`, `rearranges` (every action has
    dataChange=false), `vectors` (some action has one), added `bytes`, and added `rows`, null where an add has no count:
    physical."""
    is_add = pl.col("added")
    rows = pl.col("records").filter(is_add)
    return (
        events.group_by("version")
        .agg(
            is_add.sum().cast(pl.Int64).alias("added"),
            (~is_add).sum().cast(pl.Int64).alias("removed"),
            (~pl.col("data_change")).all().alias("rearranges"),
            pl.col("deletion_vector").is_not_null().any().alias("vectors"),
            pl.col("size").filter(is_add).cast(pl.Int128).sum().alias("bytes"),
            pl.when(rows.null_count() == 0).then(rows.cast(pl.Int128).sum()).alias("rows"),
        )
        .sort("version")
    )


def live_files(log: TableLog, version: int) -> pl.DataFrame | None:
    """As `Run.live_at`, of any version: by its checkpoint, or else from the newest one below. None where the log no
    longer knows."""
    own = next((checkpoint for checkpoint in log.checkpoints() if checkpoint.version == version), None)
    if own is not None:
        with suppress(*UNREADABLE, VersionNotFoundError):
            return log.read_checkpoint(own, lambda checkpoint: checkpoint.adds([])).select(IDENTITY)
    runs = (run for run in read_runs(log, version, version) if version in run.by_version)
    return next((run.live_at(version) for run in runs), None)


def _same(step: int) -> pl.Expr:
    vector = pl.col("deletion_vector")
    return (pl.col("key").shift(step) == pl.col("key")) & vector.shift(step).eq_missing(vector)


def _live(records: str, deletes: str) -> pl.Expr:
    return pl.col(records) - pl.col(deletes)


def read_runs(log: TableLog, start: int | None = None, end: int | None = None) -> Iterator[Run]:
    """The runs of a log that have commits from `start` to `end`, oldest first. Commits that cannot be read part runs.

    With `start` the log is read from the newest checkpoint before it.
    """
    bases = {c.version: c for c in log.checkpoints()}
    commits = readable(log.each_bytes(_versions_to_read(log, bases, start, log.latest if end is None else end)))
    columns = [name for name in EVENTS if name != "key"]
    records, actions = read_commits(commits, log.storage.root, columns, commit_record)
    events, by_version = actions.select(EVENTS.names()), {record.version: record for record in records}
    for run in unbroken_runs(list(by_version), bases):
        group = [by_version[version] for version in run]
        own = events if len(group) == len(records) else events.filter(pl.col("version").is_between(run[0], run[-1]))
        if run[0] == 0:
            yield Run(log, group, own, pl.DataFrame(schema=EVENTS))
        elif run[0] - 1 in bases:
            yield _from_checkpoint(log, group, own, bases[run[0] - 1])
        else:
            yield Run(log, group, own, None)


def _versions_to_read(log: TableLog, bases: Collection[int], start: int | None, end: int) -> list[int]:
    versions = [v for v in log.versions() if v <= end]
    if start is None:
        return versions
    with_commits = set(versions)
    base = max((v for v in bases if v < start and v + 1 in with_commits), default=-1)
    return [v for v in versions if v > base]


def unbroken_runs(versions: Sequence[int], bases: Collection[int]) -> Iterator[range]:
    """The runs of consecutive versions among these, which ascend; one whose past is unknown ends at the first
    checkpoint. `bases`: the versions of checkpoints."""
    starts = [i for i, version in enumerate(versions) if i == 0 or version != versions[i - 1] + 1]
    for start, end in pairwise([*starts, len(versions)]):
        run = range(versions[start], versions[end - 1] + 1)
        has_past = run[0] == 0 or run[0] - 1 in bases
        begin = run[0] if has_past else next((v for v in run[1:] if v - 1 in bases), run[0])
        yield from filter(None, (run[: begin - run[0]], run[begin - run[0] :]))


def _from_checkpoint(log: TableLog, group: list[CommitRecord], events: pl.DataFrame, files: CheckpointFiles) -> Run:
    def read(base: Checkpoint) -> tuple[Checkpoint, pl.DataFrame, Definition, list[DomainMetadata]]:
        return base, base.adds(["size", "records", "base_row_id"]), base.definition, base.domains()

    try:
        checkpoint, adds, (protocol, metadata), domains = log.read_checkpoint(files, read)
    except (*UNREADABLE, VersionNotFoundError):
        return Run(log, group, events, None)
    base = adds.with_columns(
        pl.lit(checkpoint.version, pl.Int64).alias("version"),
        pl.lit(value=True).alias("added"),
        pl.lit(value=True).alias("data_change"),
    )
    base = pl.concat([pl.DataFrame(schema=EVENTS), base], how="diagonal").select(EVENTS.names())
    return Run(log, group, events, base, checkpoint, protocol, metadata, domains)
