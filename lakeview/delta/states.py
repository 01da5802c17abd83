"""A log's versions to replayed states, cached, with the schema and the description that each has."""

import re
import threading
from collections.abc import Iterator

from lakeview.delta.data.partition_values import partition_fields
from lakeview.delta.data.readability import check_data_files
from lakeview.delta.data.schemas import table_schema
from lakeview.delta.features import check_readable, column_mapping_mode, supports_column_mapping
from lakeview.delta.log.definitions import newest_in_commit_start
from lakeview.delta.log.log_segment import LogSegment
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.log.times import CommitTimes, in_commit_start
from lakeview.model.column_values import moment
from lakeview.model.data_types import Field
from lakeview.model.schema import Schema
from lakeview.model.table_metadata import TableMetadata

_MAX_STATES = 8
_NEW_NAME = re.compile(r"col-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A physical name that no mapping began with: those of the columns there are then are their names."""


class States:
    """The states of one log at the versions that were read last. Safe to use from several threads."""

    def __init__(self, log: TableLog) -> None:
        self._log = log
        self._address = log.storage.root
        self._lock = threading.RLock()
        self._states: dict[int, Replay] = {}
        self._schemas: dict[int, Schema] = {}
        self._checked_schema: Schema | None = None
        self._cleanups = log.cleanups

    def readable(self, version: int, *, by_number: bool) -> Replay:
        """The state at a version. UnsupportedTableError for a protocol that is not implemented, and for a table that a
        catalog manages unless the version is asked for `by_number`."""
        state = self._replay(version)
        check_readable(
            state.table_protocol, state.properties, self._address, by_number=by_number, newest=self._log.latest
        )
        return state

    def schema(self, state: Replay) -> Schema:
        """The table's columns in a state."""
        with self._lock:  # thousands of columns take a while to parse, and a scan asks several times
            if state.version not in self._schemas:
                self._schemas[state.version] = table_schema(
                    state.metadata.schema_string,
                    state.table_protocol,
                    state.properties,
                    max_depth=self._log.storage.config.max_schema_depth,
                )
                _drop_oldest(self._schemas)
            return self._schemas[state.version]

    def partitions(self, state: Replay) -> list[Field]:
        """The partition columns in a state."""
        return partition_fields(self.schema(state), state.metadata.partition_columns or [])

    def mappings(self, earlier: Replay, later: Replay) -> Iterator[tuple[Schema, Schema]]:
        """The schemas before and after column mapping ended or began between two versions, newest first: files have
        other names for columns then."""
        if all(_is_mapped(state) for state in (earlier, later)):
            may_differ = not all(_NEW_NAME.fullmatch(f.stored_name) for f in self.schema(later))
        else:
            may_differ = any(supports_column_mapping(state.table_protocol) for state in (earlier, later))
        versions = [v for v in self._log.versions() if earlier.version < v <= later.version] if may_differ else []
        changes = [version for version, definition in self._log.definitions(versions) if definition and any(definition)]
        for version in reversed(changes):
            before, after = self._replay(version - 1), self._replay(version)
            if _is_mapped(before) != _is_mapped(after):
                yield self.schema(before), self._with_same_names(before, after)

    def _with_same_names(self, before: Replay, after: Replay) -> Schema:
        """The schema after mapping ended or began, with the columns' names of before. Only a restore gives others: it
        begins the mapping of then again, and by that columns may have been renamed until it ended."""
        own, earlier = self.schema(after), self.schema(before)
        if _is_mapped(before) or {field.stored_name for field in own} <= set(earlier.names):
            return own
        versions = [version for version in self._log.versions() if 0 < version <= before.version]
        for version, definition in self._log.definitions(versions[::-1]):
            if definition and any(definition) and _is_mapped(self._replay(version - 1)):
                return self.schema(self._replay(version - 1))
        return own

    def require_parquet(self, state: Replay) -> None:
        """UnsupportedTableError if the rows of a state are in files of another format, or of types changed wrongly."""
        schema = self.schema(state)
        if schema is not self._checked_schema:  # thousands of columns take a while
            check_data_files(state.metadata.format.provider, schema, self._address)
            self._checked_schema = schema

    def describe(self, state: Replay) -> TableMetadata:
        """What a snapshot of a state knows without its files."""
        metadata = state.metadata
        start = in_commit_start(state.table_protocol, state.properties)
        if start is not None and state.version < self._log.latest:  # the feature may have been turned off since
            start = newest_in_commit_start(self._log)
        return TableMetadata(
            address=self._address,
            format="delta",
            version=state.version,
            timestamp=CommitTimes(self._log, start).of(state.version),
            schema=self.schema(state),
            partition_columns=tuple(metadata.partition_columns or ()),
            properties=state.properties,
            protocol=state.table_protocol,
            id=metadata.id,
            name=metadata.name,
            description=metadata.description,
            created=moment(metadata.created_time),
            data_format=metadata.format.provider,
        )

    def _replay(self, version: int) -> Replay:
        with self._lock:
            if self._cleanups != self._log.cleanups:  # states read on when asked for more: from files that are gone
                self._states.clear()
                self._cleanups = self._log.cleanups
            if version not in self._states:
                segment = self._log.segment(version)
                self._states[version] = Replay(self._log, segment, self._earlier(segment))
                _drop_oldest(self._states)
            return self._states[version]

    def _earlier(self, segment: LogSegment) -> Replay | None:
        """The state to go on from: the newest that has loaded something, if only commits lie between.

        A checkpoint between is passed over only by a table that has followed the log past it; otherwise what can be
        read would depend on what was read before.
        """
        floor = -1 if segment.checkpoint is None else segment.checkpoint.version
        bases = [s.base for v, s in self._states.items() if v < segment.version and s.base is not None]
        usable = [s for s in bases if s.version >= floor or s.version in self._log.tips]
        newest = max(usable, key=lambda s: s.version, default=None)
        return newest if newest and self._log.has_commits(newest.version + 1, segment.version) else None


def _is_mapped(state: Replay) -> bool:
    return column_mapping_mode(state.table_protocol, state.properties) != "none"


def _drop_oldest(cache: dict[int, Replay] | dict[int, Schema]) -> None:
    while len(cache) > _MAX_STATES:
        del cache[next(iter(cache))]
