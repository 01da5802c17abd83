"""The change log of a Delta table: what each commit of a range changed, as recorded, oldest first.

"Commits with cdc files give only those"; files that a commit only rearranged (`dataChange` false) are no change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from lakeview.delta.data.schemas import table_schema
from lakeview.delta.log.actions import AddCDCFile, AddFile, Metadata, Protocol, RemoveFile, table_protocol
from lakeview.delta.log.change_actions import cdc_actions, merged_nothing, recorded_files
from lakeview.delta.log.commits import Commit, Definition, may_have_key, mentions, only, parse_commit
from lakeview.delta.log.history import History
from lakeview.delta.log.paths import canonical, decode_paths
from lakeview.delta.table import DeltaTable
from lakeview.model.schema import Schema
from lakeview.model.table_metadata import TableProtocol

FileAction = AddFile | RemoveFile | AddCDCFile
PartitionText = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that a commit added, removed, or recorded changes in. `path`: canonical, relative to the table;
    `partition_values` and `size`: of a remove that lacks them, those of the add that it undoes."""

    action: FileAction
    path: str
    partition_values: PartitionText
    size: int | None


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """The changes of a commit, or of one piece of a large commit."""

    version: int
    actions: Sequence[FileAction]
    _earlier: _EarlierFiles

    def files(self, start: int = 0) -> Iterator[ChangedFile]:
        """The changed files from a position in `actions` on."""
        actions = self.actions[start:]
        for action, path in zip(actions, self._earlier.paths(actions), strict=True):
            yield ChangedFile(action, path, *self._earlier.of(self.version, action, path))


class ChangeLog:
    """Reads the changes of a Delta table from its log. Safe to use from several threads."""

    def __init__(self, table: DeltaTable) -> None:
        self._table = table
        self._history = History(table.log)

    def times(self) -> pl.DataFrame:
        """TIMES: `version` and the `timestamp` that time travel uses, oldest first."""
        return self._history.times()

    def metadata(self, start: int, end: int) -> dict[int, Metadata]:
        """The metaData in force at `start`, and each later one up to `end`, by version."""
        later = {version: metadata for version, (_, metadata) in self._later(start, end) if metadata is not None}
        return {start: self._table.state(start).metadata, **later}

    def protocols(self, start: int, end: int) -> dict[int, Protocol]:
        """The protocol in force at `start`, and each later one up to `end`, by version."""
        later = {version: protocol for version, (protocol, _) in self._later(start, end) if protocol is not None}
        return {start: self._table.state(start).protocol, **later}

    def _later(self, start: int, end: int) -> Iterator[tuple[int, Definition]]:
        """The definitions of the commits after `start`, up to `end`."""
        log = self._table.log
        versions = [version for version in log.versions() if start < version <= end]
        return ((version, definition or (None, None)) for version, definition in log.definitions(versions))

    def schema(self, metadata: Metadata, protocol: Protocol) -> Schema:
        """The schema of a metaData action under a protocol."""
        depth = self._table.storage.config.max_schema_depth
        return table_schema(metadata.schema_string, table_protocol(protocol), metadata.properties, max_depth=depth)

    def definitions(self, start: int, end: int) -> Iterator[tuple[TableProtocol, Metadata, Schema]]:
        """Each combination of protocol and metadata that was in force from `start` to `end`, oldest first."""
        protocols, documents = self.protocols(start, end), self.metadata(start, end)
        for version in sorted({*protocols, *documents}):
            protocol = protocols[max(v for v in protocols if v <= version)]
            metadata = documents[max(v for v in documents if v <= version)]
            yield table_protocol(protocol), metadata, self.schema(metadata, protocol)

    def has_vectors(self, start: int, end: int, *, feed: bool) -> bool:
        """True if a changed file of the range has a deletion vector. Commits that mention none are not decoded."""
        protocols = self.protocols(start, end).values()
        return any("deletionVectors" in (p.reader_features or ()) for p in protocols) and any(
            not isinstance(action, AddCDCFile) and action.deletion_vector is not None
            for _, actions in self._each(range(start, end + 1), feed=feed, key="deletionVector")
            for action in actions
        )

    def changes(self, versions: range, *, feed: bool) -> Iterator[CommitChanges]:
        """The changes of commits, each large one in several pieces of about 4 MiB.

        `feed`: files of the change feed where a commit recorded one, else adds and removes. CorruptTableError or
        VersionNotFoundError is raised with the piece that is broken or missing.
        """
        earlier = _EarlierFiles(self._table)
        for commit, actions in self._each(versions, feed=feed):
            yield CommitChanges(commit.version, actions, earlier)
            earlier.learn(commit)

    def _each(
        self, versions: range, *, feed: bool, key: str | None = None
    ) -> Iterator[tuple[Commit, Sequence[FileAction]]]:
        """Commits, large ones in pieces, and the changes of each piece. Pieces without `key`, at any depth, are left
        out, undecoded."""
        log = self._table.log
        feeds: dict[int, bool | None] = {}
        for version, data in log.each_piece(versions):
            if key is not None and not may_have_key(data, key):
                continue
            with log.whole_lines():
                commit = parse_commit(data, version)
            if not feed or not log.in_pieces(version):
                yield commit, _changed_files(commit, feed=feed)
                continue
            if version not in feeds:
                feeds = {version: self._records_feed(version)}
            match feeds[version]:
                case True:
                    yield commit, list(cdc_actions(commit))
                case False:
                    yield commit, ()
                case None:
                    yield commit, _changed_files(commit, feed=False)

    def _records_feed(self, version: int) -> bool | None:
        """Of a commit that comes in pieces: True if it has cdc actions, False if it is a MERGE that changed nothing,
        None for any other. Pieces that mention neither are not decoded."""
        nothing = False
        for _, data in self._table.log.each_piece([version]):
            if mentions(data, "cdc", "commitInfo"):
                commit = parse_commit(data, version)
                if next(cdc_actions(commit), None) is not None:
                    return True
                nothing = nothing or merged_nothing(commit)
        return False if nothing else None


class _EarlierFiles:
    """Partition values and sizes of changed files. Those of the table's other files are loaded when a remove first
    lacks its own, and followed from there on: one walk of the log forward."""

    def __init__(self, table: DeltaTable) -> None:
        self._table = table
        self._by_path: dict[str, tuple[PartitionText, int | None]] | None = None
        self._distinct: dict[tuple[tuple[str, str | None], ...], PartitionText] = {}

    def paths(self, actions: Sequence[FileAction]) -> list[str]:
        """Canonical paths of actions."""
        paths = decode_paths(pl.Series([a.path for a in actions], dtype=pl.String()))
        return canonical(paths, self._table.storage.root).to_list()

    def of(self, version: int, action: FileAction, path: str) -> tuple[PartitionText, int | None]:
        """The partition values and the size of a changed file of a version."""
        values, size = action.partition_values, action.size
        if values is not None and size is not None:
            return values, size
        if self._by_path is None:
            adds = self._table.state(max(version - 1, 0)).adds(["partition_values", "size"])
            rows = adds.select("key", "partition_values", "size").iter_rows()
            self._by_path = {key: (self._share(values), size) for key, values, size in rows}
        earlier_values, earlier_size = self._by_path.get(path, ({}, None))
        return earlier_values if values is None else values, earlier_size if size is None else size

    def learn(self, commit: Commit) -> None:
        """Remember what a commit adds."""
        if self._by_path is not None:
            adds = [a for _, a in only("add", [commit])]
            files = ((self._share(a.partition_values), a.size) for a in adds)
            self._by_path |= dict(zip(self.paths(adds), files, strict=True))

    def _share(self, values: dict[str, str | None] | None) -> PartitionText:
        """One dict for all files of a partition: a table has fewer partitions than files."""
        own = values or {}
        return self._distinct.setdefault(tuple(own.items()), own)


def _changed_files(commit: Commit, *, feed: bool) -> Sequence[FileAction]:
    """What a commit changed: with `feed`, "commits with cdc files give only those"."""
    if feed and (change_data := recorded_files(commit)) is not None:
        return change_data
    files = [file for a in commit.actions for file in (a.add, a.remove) if file is not None]
    return [file for file in files if file.data_change]
