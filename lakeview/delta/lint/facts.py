"""A table's log to the facts its checks look at: the files of its folder, every readable commit, the live files.

Nothing here raises for what a log does wrong: what cannot be read is a fact too. Stores that do not answer do raise.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import polars as pl

from lakeview.delta.data.schemas import parse_schema
from lakeview.delta.features import column_mapping_mode
from lakeview.delta.lint.commit_rows import COMMITS_READ, EVENTS, change_file_paths, commit_row, file_events
from lakeview.delta.log.actions import DomainMetadata, Metadata, Protocol, Txn, table_protocol
from lakeview.delta.log.checkpoints import UNREADABLE
from lakeview.delta.log.commits import Commit, only
from lakeview.delta.log.file_actions import file_actions
from lakeview.delta.log.log_segment import CheckpointFiles, checkpoints_of, complete_checkpoints
from lakeview.delta.log.paths import LOG_FOLDER, canonical
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.log.times import in_commit_start
from lakeview.model.errors import (
    AccessDeniedError,
    CorruptTableError,
    LakeviewError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from lakeview.model.schema import Schema

_CHUNK = 256


LIVE = ("size", "partition_values", "records", "vector")
"""What of a live file the checks look at, besides its key, path, deletion vector and deleted rows."""

STATED = ("records", "stats", "stats_parsed")
"""What the checks of statistics look at: the largest part of a log, so it is read for them alone."""


@dataclass(slots=True)
class CommitContents:
    """What the readable commits hold: rows of COMMITS_READ, EVENTS, (version, action) of four kinds of actions, and the
    files that cdc actions name."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    events: list[pl.DataFrame] = field(default_factory=list)
    protocols: list[tuple[int, Protocol]] = field(default_factory=list)
    metadata: list[tuple[int, Metadata]] = field(default_factory=list)
    txns: list[tuple[int, Txn]] = field(default_factory=list)
    domains: list[tuple[int, DomainMetadata]] = field(default_factory=list)
    change_files: list[str] = field(default_factory=list)


class LogFacts:
    """What a log holds, each part read once when a check asks for it.

    `now`: an aware moment to judge ages by; None if ages are not judged.
    """

    def __init__(self, log: TableLog, now: datetime | None = None) -> None:
        self.log = log
        self.storage = log.storage
        self.now = now
        self.files = log.files
        self.checkpoints: list[CheckpointFiles] = complete_checkpoints(self.files)

    # -- the folder

    @cached_property
    def folder(self) -> pl.DataFrame:
        """LISTING of the files below the table's root."""
        return self.storage.walk()

    @cached_property
    def data(self) -> pl.DataFrame:
        """LISTING of the files below the table's root, those of its log left out."""
        return self.folder.filter(~pl.col("name").str.starts_with(f"{LOG_FOLDER}/"))

    def has_checkpoint(self, version: int) -> bool:
        """Whether there is a complete checkpoint of a version, now where there was none when the log was listed."""
        if any(c.version == version for c in self.checkpoints):
            return True
        if version < 0:
            return False
        return any(c.version == version for c in checkpoints_of(self.log.list_files(version)))

    def read(self, name: str) -> bytes | None:
        """A whole file of the log folder; None if it is not there, or larger than the limit."""
        try:
            return self.storage.read(f"{LOG_FOLDER}/{name}")
        except (FileNotFoundError, UnsupportedTableError, AccessDeniedError):
            return None

    # -- the commits

    @cached_property
    def contents(self) -> CommitContents:
        """What the commits hold, read once."""
        contents = CommitContents()
        files = self.log.commit_files()
        times = files["modified"].dt.epoch("ms").to_list()
        for start in range(0, files.height, _CHUNK):
            versions = files["version"][start : start + _CHUNK].to_list()
            commits, troubles = self._commits(versions)
            by_version = {c.version: c for c in commits}
            for version, file_time in zip(versions, times[start : start + _CHUNK], strict=True):
                row = {"version": version, "modified": file_time, "trouble": troubles.get(version)}
                contents.rows.append(row | (commit_row(by_version[version]) if version in by_version else {}))
            contents.events.append(file_events(commits, self.storage.root))
            contents.protocols += only("protocol", commits)
            contents.metadata += only("meta_data", commits)
            contents.txns += only("txn", commits)
            contents.domains += only("domain_metadata", commits)
            contents.change_files += change_file_paths(commits)
        return contents

    def _commits(self, versions: Sequence[int]) -> tuple[list[Commit], dict[int, str]]:
        try:
            return self.log.commits(versions), {}
        except (*UNREADABLE, VersionNotFoundError):
            commits, troubles = [], {}
            for version in versions:
                try:
                    commits.append(self.log.commit(version))
                except (*UNREADABLE, VersionNotFoundError) as error:
                    troubles[version] = error.message
            return commits, troubles

    @cached_property
    def commits(self) -> pl.DataFrame:
        """COMMITS_READ."""
        names = COMMITS_READ.names()
        return pl.DataFrame(
            {n: [row.get(n) for row in self.contents.rows] for n in names}, schema=COMMITS_READ, strict=True
        )

    @cached_property
    def events(self) -> pl.DataFrame:
        """EVENTS, in the order recorded."""
        return pl.concat([pl.DataFrame(schema=EVENTS), *self.contents.events])

    @property
    def change_files(self) -> pl.Series:
        """Keys of the files that cdc actions name, wherever in the table they lie."""
        return canonical(pl.Series("key", self.contents.change_files, dtype=pl.String), self.storage.root)

    @cached_property
    def runs(self) -> list[tuple[int, CheckpointFiles | None, int]]:
        """(first version, checkpoint it starts from, last version) of each unbroken run of readable commits.

        A run starts at version 0, or at a checkpoint above a gap or a broken commit.
        """
        whole = {r["version"] for r in self.contents.rows if r["trouble"] is None}
        bases = {c.version: c for c in self.checkpoints}
        runs: list[tuple[int, CheckpointFiles | None, int]] = []
        for version in sorted({*whole, *bases}):
            if runs and version == runs[-1][2] + 1 and version in whole:
                runs[-1] = (*runs[-1][:2], version)
            elif version == 0 and version in whole:
                runs.append((0, None, 0))
            elif version in bases:
                runs.append((version, bases[version], version))
        return runs

    # -- the latest version

    @cached_property
    def replay(self) -> Replay | None:
        """The replayed log at the latest version; None where it cannot be rebuilt: `trouble` says why."""
        return self._rebuilt[0]

    @property
    def trouble(self) -> LakeviewError | None:
        """Why the latest version cannot be rebuilt."""
        return self._rebuilt[1]

    @cached_property
    def _rebuilt(self) -> tuple[Replay | None, LakeviewError | None]:
        try:
            replay = Replay(self.log, self.log.segment(self.log.latest))
            _ = replay.protocol, replay.metadata, replay.adds([])
        except (*UNREADABLE, VersionNotFoundError) as error:
            return None, error
        return replay, None

    @property
    def live(self) -> pl.DataFrame:
        """The live files at the latest version with LIVE; none where they cannot be read."""
        return self._live[0]

    @property
    def knows_files(self) -> bool:
        """Whether the live files can be read."""
        return self._live[1]

    @cached_property
    def stated_files(self) -> pl.DataFrame:
        """The live files at the latest version with STATED; none where they cannot be read."""
        return self._adds(STATED)[0]

    @cached_property
    def _live(self) -> tuple[pl.DataFrame, bool]:
        return self._adds(LIVE)

    def _adds(self, columns: Sequence[str]) -> tuple[pl.DataFrame, bool]:
        if self.replay is not None:
            with suppress(*UNREADABLE):
                return self.replay.adds(columns), True
        return file_actions([], self.storage.root, columns), False

    @cached_property
    def latest_protocol(self) -> Protocol | None:
        """The protocol in force, or the newest that some commit holds."""
        if self.replay is not None:
            return self.replay.protocol
        return self.contents.protocols[-1][1] if self.contents.protocols else None

    @cached_property
    def latest_metadata(self) -> Metadata | None:
        """The metadata in force, or the newest that some commit holds."""
        if self.replay is not None:
            return self.replay.metadata
        return self.contents.metadata[-1][1] if self.contents.metadata else None

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties, as far as they can be read."""
        return {} if self.latest_metadata is None else self.latest_metadata.properties

    @cached_property
    def schema(self) -> Schema | None:
        """The table's schema; None where it has none that can be read."""
        if self.latest_metadata is None:
            return None
        try:
            depth = self.storage.config.max_schema_depth
            return parse_schema(self.latest_metadata.schema_string, is_mapped=self.has_column_mapping, max_depth=depth)
        except CorruptTableError:
            return None

    @property
    def features(self) -> frozenset[str]:
        """Every feature that the protocol names."""
        protocol = self.latest_protocol
        if protocol is None:
            return frozenset()
        return frozenset({*(protocol.reader_features or ()), *(protocol.writer_features or ())})

    @property
    def has_column_mapping(self) -> bool:
        """Whether columns go by physical names: a mode is set that is known, and the protocol knows of modes."""
        if self.latest_protocol is None:
            return False
        try:
            return column_mapping_mode(table_protocol(self.latest_protocol), self.properties) != "none"
        except UnsupportedTableError:
            return False

    @property
    def in_commit_start(self) -> int | None:
        """The version from which commits carry their own time; None where the table does not use them."""
        if self.latest_protocol is None:
            return None
        return in_commit_start(table_protocol(self.latest_protocol), self.properties)


def json_file(data: bytes | None) -> dict[str, Any] | None:
    """The object in the bytes of a file, as Python reads JSON; None where they hold no object."""
    try:
        value = json.loads(data or b"")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
