"""A log to its runs: unbroken commits with the files that were live before them, each commit read once."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from lakeview.delta.audit.records import CommitRecord, commit_record
from lakeview.delta.log.actions import DomainMetadata, Metadata, Protocol
from lakeview.delta.log.checkpoints import UNREADABLE, Checkpoint
from lakeview.delta.log.commits import Commit, readable
from lakeview.delta.log.file_actions import COLUMN_TYPES, IDENTITY, file_actions
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
_FILES_AT_ONCE = 1_024
"""Commits whose file actions become one frame."""


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
        """One row a commit with file actions: `adds`, `removes`, `rearranges` (every action has dataChange=false),
        `vectors` (some action has one), `bytes_added`, and `rows_added`, null where an add has no count: physical."""
        is_add = pl.col("added")
        rows = pl.col("records").filter(is_add)
        return (
            self.events.group_by("version")
            .agg(
                is_add.sum().cast(pl.Int64).alias("adds"),
                (~is_add).sum().cast(pl.Int64).alias("removes"),
                (~pl.col("data_change")).all().alias("rearranges"),
                pl.col("deletion_vector").is_not_null().any().alias("vectors"),
                pl.col("size").filter(is_add).cast(pl.Int128).sum().alias("bytes_added"),
                pl.when(rows.null_count() == 0).then(rows.cast(pl.Int128).sum()).alias("rows_added"),
            )
            .sort("version")
        )

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

    def live_at(self, version: int) -> pl.DataFrame | None:
        """`key` and `deletion_vector` of the files live at a version; None where the log no longer knows."""
        if self.base is None or not self.first - 1 <= version <= self.records[-1].version:
            return None
        every = pl.concat(
            [self.base.select("version", *IDENTITY, "added"), self.events.select("version", *IDENTITY, "added")]
        )
        newest = every.filter(pl.col("version") <= version).unique(IDENTITY, keep="last", maintain_order=True)
        return newest.filter("added").select(IDENTITY)


def live_files(log: TableLog, version: int) -> pl.DataFrame | None:
    """As `Run.live_at`, of any version: by its checkpoint, or else from the newest one below. None where the log no
    longer knows."""
    own = next((checkpoint for checkpoint in log.checkpoints() if checkpoint.version == version), None)
    if own is not None:
        with suppress(*UNREADABLE, VersionNotFoundError):
            return log.checkpoint(own).adds([]).select(IDENTITY)
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
    versions = _versions_to_read(log, bases, start, log.latest if end is None else end)
    records: list[CommitRecord] = []
    columns = [name for name in EVENTS if name != "key"]
    pieces = _pieces(readable(log.each_bytes(versions)), records)
    frames = [file_actions(piece, log.storage.root, columns).select(EVENTS.names()) for piece in pieces]
    events = pl.concat([pl.DataFrame(schema=EVENTS), *frames])
    for group in _consecutive_runs(records, bases):
        first, end_of_run = group[0].version, group[-1].version
        own = events if len(group) == len(records) else events.filter(pl.col("version").is_between(first, end_of_run))
        if first == 0:
            yield Run(log, group, own, pl.DataFrame(schema=EVENTS))
        elif first - 1 in bases:
            yield _from_checkpoint(log, group, own, log.checkpoint(bases[first - 1]))
        else:
            yield Run(log, group, own, None)


def _versions_to_read(log: TableLog, bases: Collection[int], start: int | None, end: int) -> list[int]:
    versions = [v for v in log.versions() if v <= end]
    if start is None:
        return versions
    with_commits = set(versions)
    base = max((v for v in bases if v < start and v + 1 in with_commits), default=-1)
    return [v for v in versions if v > base]


def _pieces(commits: Iterator[Commit], records: list[CommitRecord]) -> Iterator[list[Commit]]:
    """The commits, some at a time; their records are added to `records`."""
    piece: list[Commit] = []
    for commit in commits:
        records.append(commit_record(commit))
        piece.append(commit)
        if len(piece) == _FILES_AT_ONCE:
            yield piece
            piece = []
    yield piece


def _consecutive_runs(records: Sequence[CommitRecord], bases: Collection[int]) -> Iterator[list[CommitRecord]]:
    """Commits of consecutive versions; a run whose past is unknown ends at the first checkpoint."""
    group: list[CommitRecord] = []
    has_base = False
    for record in records:
        version = record.version
        if group and (version != group[-1].version + 1 or (not has_base and version - 1 in bases)):
            yield group
            group = []
        if not group:
            has_base = version == 0 or version - 1 in bases
        group.append(record)
    if group:
        yield group


def _from_checkpoint(log: TableLog, group: list[CommitRecord], events: pl.DataFrame, checkpoint: Checkpoint) -> Run:
    try:
        adds = checkpoint.adds(["size", "records", "base_row_id"])
        protocol, metadata = checkpoint.protocol_and_metadata()
        domains = checkpoint.domains()
    except (*UNREADABLE, VersionNotFoundError):
        return Run(log, group, events, None)
    base = adds.with_columns(
        pl.lit(checkpoint.version, pl.Int64).alias("version"),
        pl.lit(value=True).alias("added"),
        pl.lit(value=True).alias("data_change"),
    )
    for name in EVENTS.names():
        if name not in base.columns:
            base = base.with_columns(pl.lit(None, EVENTS[name]).alias(name))
    return Run(log, group, events, base.select(EVENTS.names()), checkpoint, protocol, metadata, domains)
