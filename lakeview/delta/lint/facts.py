"""A table's log to the facts its checks look at: the files of its folder, every readable commit, the live files.

Nothing here raises for what a log does wrong: what cannot be read is a fact too. Stores that do not answer do raise.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import Any

import polars as pl

from lakeview.delta.audit.records import CommitRecord, commit_record
from lakeview.delta.audit.run import unbroken_runs
from lakeview.delta.data.schemas import parse_schema
from lakeview.delta.features import column_mapping_mode
from lakeview.delta.log.actions import Metadata, Protocol, table_protocol
from lakeview.delta.log.change_actions import decode_cdc
from lakeview.delta.log.checkpoints import UNREADABLE
from lakeview.delta.log.commit_rows import read_commits
from lakeview.delta.log.commits import Definition, readable
from lakeview.delta.log.file_actions import file_actions
from lakeview.delta.log.log_segment import CheckpointFiles, checkpoints_of, complete_checkpoints
from lakeview.delta.log.paths import LOG_FOLDER, canonical, decode_path
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.log.times import in_commit_start
from lakeview.delta.properties import is_true
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

_EVENTS = ("version", "size", "data_change", "records")


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

    def size_of(self, checkpoint: CheckpointFiles) -> int:
        """The bytes of a checkpoint's own files."""
        return int(self.files.filter(pl.col("name").is_in(list(checkpoint.names)))["size"].sum())

    def read(self, name: str) -> bytes | None:
        """A whole file of the log folder; None if it is not there, or larger than the limit."""
        try:
            return self.storage.read(f"{LOG_FOLDER}/{name}")
        except (FileNotFoundError, UnsupportedTableError, AccessDeniedError):
            return None

    # -- the commits

    @property
    def records(self) -> list[CommitRecord]:
        """Every readable commit, oldest first."""
        return self._commits[0]

    @property
    def events(self) -> pl.DataFrame:
        """FILE_ACTIONS of the readable commits in the order recorded: `version`, `added`, `key`, `path`,
        `deletion_vector`, `size`, `data_change`, `records` (physical rows) and `deleted_records`."""
        return self._commits[1]

    @property
    def troubles(self) -> dict[int, str]:
        """Why commits cannot be read, by version, oldest first."""
        return self._commits[2]

    @cached_property
    def _commits(self) -> tuple[list[CommitRecord], pl.DataFrame, dict[int, str]]:
        troubles: dict[int, str] = {}
        commits = readable(self._each_bytes(troubles), troubles)
        records, events = read_commits(commits, self.storage.root, _EVENTS, commit_record)
        return records, events, dict(sorted(troubles.items()))

    def _each_bytes(self, troubles: dict[int, str]) -> Iterator[tuple[int, bytes]]:
        """(version, bytes) of the commits; `troubles` gets why others are not to be had."""
        versions = self.log.versions()
        for chunk in (versions[i : i + _CHUNK] for i in range(0, len(versions), _CHUNK)):
            try:
                pieces = list(self.log.each_bytes(chunk))
            except (*UNREADABLE, VersionNotFoundError):
                pieces = []
                for version in chunk:
                    try:
                        pieces.append((version, self.log.commit_bytes(version)))
                    except (*UNREADABLE, VersionNotFoundError) as error:
                        troubles[version] = error.message
            yield from pieces

    @property
    def metadata(self) -> list[tuple[int, Metadata]]:
        """(version, metaData) of every metaData action of the commits."""
        return [(commit.version, action) for commit in self.records for action in commit.metadatas]

    def newest_definition(self, first: int, last: int) -> Definition:
        """The last protocol and the last metaData action of the commits from one version to another."""
        newest: Definition = None, None
        for commit in self._definitions:
            if first <= commit.version <= last:
                newest = commit.protocol or newest[0], commit.metadata or newest[1]
        return newest

    @cached_property
    def _definitions(self) -> list[CommitRecord]:
        return [commit for commit in self.records if commit.protocols or commit.metadatas]

    @property
    def change_files(self) -> pl.Series:
        """Keys of the files that cdc actions name, wherever in the table they lie; a commit with an action that cannot
        be read names none after it."""
        paths: list[str] = []
        for commit in self.records:
            with suppress(CorruptTableError):
                paths.extend(decode_path(action.path) for action in decode_cdc(commit.change_files, commit.version))
        return canonical(pl.Series("key", paths, dtype=pl.String), self.storage.root)

    @cached_property
    def runs(self) -> list[tuple[CheckpointFiles | None, range]]:
        """The unbroken runs of readable commits that begin at version 0, or after a checkpoint, which comes first."""
        bases = {c.version: c for c in self.checkpoints}
        runs = unbroken_runs([commit.version for commit in self.records], bases)
        return [(bases.get(run[0] - 1), run) for run in runs if run[0] == 0 or run[0] - 1 in bases]

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
    def row_ids(self) -> pl.DataFrame:
        """The live files at the latest version with their row ids and `records`; none where they cannot be read."""
        return self._adds(("base_row_id", "default_row_commit_version", "records"))[0]

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
        return self.newest_definition(0, self.log.latest)[0] if self.replay is None else self.replay.protocol

    @cached_property
    def latest_metadata(self) -> Metadata | None:
        """The metadata in force, or the newest that some commit holds."""
        return self.newest_definition(0, self.log.latest)[1] if self.replay is None else self.replay.metadata

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties, as far as they can be read."""
        return {} if self.latest_metadata is None else self.latest_metadata.properties

    @property
    def partition_columns(self) -> list[str]:
        """The names of the partition columns, as far as they can be read."""
        return [] if self.latest_metadata is None else self.latest_metadata.partition_columns or []

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

    def is_on(self, feature: str, name: str) -> bool:
        """Whether the protocol names a feature, and the property that turns it on is true."""
        return feature in self.features and is_true(self.properties, name)

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
