"""Commits to what happened: COMMITS, whole or by page, the life of every file, and schema changes."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

import polars as pl

from lakeview.delta.log.actions import Metadata, Protocol
from lakeview.delta.log.checkpoints import UNREADABLE, Checkpoint
from lakeview.delta.log.commit_facts import CommitFacts, Identity, Known, read_facts
from lakeview.delta.log.earlier_files import before, in_checkpoint
from lakeview.delta.log.file_events import EVENTS, collect, lifetimes_of, live_events
from lakeview.delta.log.file_lines import log_lines, mentions
from lakeview.delta.log.log_segment import CheckpointFiles
from lakeview.delta.log.replay import table_protocol
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.log.times import CommitTimes, asks_for_in_commit_times, in_commit_start
from lakeview.model.errors import CorruptTableError
from lakeview.model.frames import COMMITS, SCHEMAS, moments

_Told = tuple[Protocol | None, Metadata | None]
_Action = TypeVar("_Action", Protocol, Metadata)


class History:
    """What the commits of a log tell. Each commit is read once; a refresh reads the new ones.

    Of a corrupt commit nothing is known but that it is there, and it takes nothing else with it.
    """

    def __init__(self, log: TableLog) -> None:
        self._log = log
        self._lock = threading.RLock()
        self._facts: dict[int, CommitFacts] = {}
        self._events: list[pl.DataFrame] = []
        self._through: set[int] = set()
        self._told: dict[int, _Told] = {}
        self._whole: tuple[Any, pl.DataFrame] | None = None
        self._lives: tuple[Any, pl.DataFrame] | None = None
        self._base_read = False
        self._base: tuple[int, Protocol | None, Metadata | None] | None = None
        self.base_trouble: str | None = None

    # -- reading

    def _all(self) -> dict[int, CommitFacts]:
        with self._lock:
            versions = self._log.versions()
            missing = [v for v in versions if v not in self._through] if len(self._through) < len(versions) else []
            if missing:
                self._read(missing)
            return self._facts

    def _read(self, versions: Sequence[int]) -> None:
        live: dict[Identity, Known] = {}
        found: list[CommitFacts] = []
        events: dict[str, list[Any]] = {name: [] for name in EVENTS}
        previous: int | None = None
        for version, data in self._log.each_bytes(versions):
            if previous is not None and version != previous + 1:
                live = {}  # between lies what nobody knows: a checkpoint has to tell what was there
            previous = version
            facts, own = read_facts(version, data, self._log.storage.root, live)
            found.append(facts)
            collect(events, version, own)
        frame = pl.DataFrame(events, schema=EVENTS)
        self._complete([f for f in found if f.unknown])
        # only now: what fails before is tried again, and nothing counts twice
        self._events.append(frame)
        self._facts |= {f.version: f for f in found}
        self._told |= {f.version: (f.protocol, f.metadata) for f in found}
        self._through |= set(versions)

    def _complete(self, open_ends: Sequence[CommitFacts]) -> None:
        """Tell commits that removed files not met what these files were: by earlier commits, or by the checkpoint that
        their unbroken run of commits starts from."""
        starts = self._starts() if open_ends else {}
        groups: dict[CheckpointFiles | None, list[CommitFacts]] = {}
        for facts in open_ends:
            groups.setdefault(self._base_of(facts.version, starts[facts.version]), []).append(facts)
        for base, group in groups.items():
            wanted = {identity for facts in group for identity, _ in facts.unknown}
            known = self._met(wanted, -1 if base is None else base.version)
            if base is not None and (rest := wanted - known.keys()):
                known |= in_checkpoint(self._log.checkpoint(base), rest)
            for facts in group:
                facts.complete(known)

    def _met(self, wanted: set[Identity], above: int) -> dict[Identity, Known]:
        """The latest word of the commits read before, above a version, on these files."""
        if not self._events:
            return {}
        events = pl.concat(self._events)
        keys = pl.Series([key for key, _ in wanted], dtype=pl.String)
        near = events[events["key"].is_in(keys.implode()).arg_true()].filter(pl.col("version") > above)
        columns = near.select("key", "deletion_vector", "added", "size", "records")
        return {
            (key, vector): (size, records) if added else (None, None)
            for key, vector, added, size, records in columns.iter_rows()
            if (key, vector) in wanted
        }

    def _starts(self) -> dict[int, int]:
        """Of each version, the first one of its unbroken run of commits."""
        starts: dict[int, int] = {}
        for version in self._log.versions():
            starts[version] = starts.get(version - 1, version)
        return starts

    def _base_of(self, version: int, start: int) -> CheckpointFiles | None:
        """The oldest complete checkpoint that a run of commits goes on from, below this version."""
        if start == 0:
            return None
        return next((c for c in self._log.checkpoints() if start - 1 <= c.version < version), None)

    # -- what happened

    def commits(self, limit: int | None = None, before_version: int | None = None) -> pl.DataFrame:
        """COMMITS, newest first: at most `limit`, of versions below `before_version`.

        Removed rows and bytes come from the adds they undo, null where those are gone. A page reads its own commits,
        and where they remove files as much of the log before them as it takes to find what those were.
        """
        with self._lock:
            every = self._log.versions()
            versions = every if before_version is None else every[: bisect_left(every, before_version)]
            if limit is not None and limit < len(versions):
                versions = versions[len(versions) - max(limit, 0) :]
            if len(versions) < len(every) and len(self._through) < len(every):
                self._read_page([v for v in versions if v not in self._facts])
                return self._frame(versions)
            self._all()
            state = len(every), self._log.latest
            if self._whole is None or self._whole[0] != state:
                self._whole = state, self._frame(every)
            whole = self._whole[1]
            return whole if len(versions) == whole.height else whole.filter(pl.col("version").is_in(versions))

    def _read_page(self, versions: Sequence[int]) -> None:
        live: dict[Identity, Known] = {}
        runs: list[list[CommitFacts]] = []
        for version, data in self._log.each_bytes(versions):
            if not runs or version != runs[-1][-1].version + 1:
                live = {}
                runs.append([])
            runs[-1].append(read_facts(version, data, self._log.storage.root, live)[0])
        for run in runs:
            wanted = {identity for facts in run for identity, _ in facts.unknown}
            known = before(self._log, run[0].version, wanted) if wanted else {}
            for facts in run:
                facts.complete(known)
        found = [facts for run in runs for facts in run]
        self._facts |= {f.version: f for f in found}
        self._told |= {f.version: (f.protocol, f.metadata) for f in found}

    def _frame(self, versions: Sequence[int]) -> pl.DataFrame:
        whole = len(versions) == len(self._log.versions())
        facts = self._all() if whole else self._facts
        rows = [facts[v] for v in reversed(versions)]
        changed = self._schema_changes(versions)
        recorded = {f.version: f.info.timestamp for f in rows} if whole else None
        times = self._times(rows, recorded)
        columns: dict[str, Any] = {
            "version": [f.version for f in rows],
            "recorded_timestamp": [f.info.timestamp for f in rows],
            "schema_changed": [f.version in changed for f in rows],
            "protocol_changed": [f.protocol is not None for f in rows],
            "data_change": [f.data_change for f in rows],
            **{name: [getattr(f.info, name) for f in rows] for name in _INFO},
            # of a corrupt commit nothing is known
            **{name: [None if f.broken is not None else getattr(f, name) for f in rows] for name in _TOTALS},
        }
        frame = pl.DataFrame(columns, schema={n: COMMITS[n] for n in columns} | {"recorded_timestamp": pl.Int64()})
        return frame.with_columns(
            moments("recorded_timestamp"),
            pl.col("version").alias("position"),
            pl.when(pl.col("version") > 0).then(pl.col("version") - 1).alias("parent"),
            *times.reverse().select("timestamp", "timestamp_source").get_columns(),
        ).select(COMMITS.names())

    def _times(self, rows: Iterable[CommitFacts], recorded: Mapping[int, int | None] | None) -> pl.DataFrame:
        own = {f.version: f.info.in_commit_timestamp for f in rows}
        # where no commit carries its own time, it does not matter from which version on it would count
        start = self._in_commit_start() if any(t is not None for t in own.values()) else None
        times = CommitTimes(self._log, start).frame(own, recorded)
        return times if recorded is not None else times.filter(pl.col("version").is_in(list(own)))

    def _schema_changes(self, versions: Sequence[int]) -> set[int]:
        """Those of these versions whose schema differs from the one before them that the log still tells."""
        changed = set()
        older: str | None = None
        known = False
        for version in versions:
            metadata = self._facts[version].metadata
            if metadata is not None and metadata.schema_string is not None:
                if not known:
                    older, known = self._schema_before(version), True
                if older != metadata.schema_string:
                    changed.add(version)
                older = metadata.schema_string
        return changed

    def _schema_before(self, version: int) -> str | None:
        """The schema in force before a commit; None where the log no longer tells one."""
        newest = self._newest(itemgetter(1), version)
        return next((m.schema_string for m in newest if m.schema_string is not None), None)

    def _newest(self, which: Callable[[_Told], _Action | None], below: int) -> Iterator[_Action]:
        """The protocol or the metadata in force below a version, newest first: of the commits after the newest
        checkpoint, of that checkpoint, and so on back; what cannot be read is passed over."""
        end = below
        for checkpoint in [*(c for c in reversed(self._log.checkpoints()) if c.version < below), None]:
            start = -1 if checkpoint is None else checkpoint.version
            versions = self._log.versions()
            for told in self._tell(versions[bisect_right(versions, start) : bisect_left(versions, end)][::-1]):
                if (action := which(told)) is not None:
                    yield action
            if checkpoint is not None:
                end = checkpoint.version + 1
                if (known := self._already_told(which, checkpoint.version)) is not None:
                    yield known
                    continue
                try:
                    held = which(self._log.checkpoint(checkpoint).protocol_and_metadata())
                except UNREADABLE:
                    continue
                if held is not None:
                    yield held

    def _already_told(self, which: Callable[[_Told], _Action | None], version: int) -> _Action | None:
        """What is in force at a version, if the commits read so far tell it: then no checkpoint has to."""
        while (facts := self._facts.get(version)) is not None and facts.broken is None:
            if (action := which((facts.protocol, facts.metadata))) is not None:
                return action
            version -= 1
        return None

    def _tell(self, versions: Sequence[int]) -> Iterator[_Told]:
        """The protocol and metaData actions of these commits, in this order; nothing of one that is corrupt.

        Commits are searched as bytes, and those parsed that may hold one.
        """
        unknown = groupby(self._log.each_piece([v for v in versions if v not in self._told]), key=itemgetter(0))
        for version in versions:
            if version not in self._told:
                self._told[version] = _told(next(unknown)[1])
            yield self._told[version]

    def broken(self) -> dict[int, str]:
        """Commits that cannot be read, and why."""
        return {v: f.broken for v, f in self._all().items() if f.broken is not None}

    def times(self) -> pl.DataFrame:
        """TIMES of every commit still there; commits are read only where their own word counts."""
        start = self._in_commit_start()
        own: dict[int, int | None] = {}
        if start is not None:
            facts = self._all()
            own = {v: f.info.in_commit_timestamp for v, f in facts.items()}
        return CommitTimes(self._log, start).frame(own)

    def _in_commit_start(self) -> int | None:
        """The version from which commits carry their own time, by the newest protocol and properties that can be read,
        for the log's own sake: no protocol check; None where they do not.

        Searched newest first: the commits after the newest checkpoint, that checkpoint, and only where it tells nothing
        what lies before it.
        """
        end = self._log.latest + 1
        with self._lock:
            metadata = next(self._newest(itemgetter(1), end), None)
            if metadata is None or not asks_for_in_commit_times(metadata.properties):
                return None  # without the property nobody has to look for the protocol
            protocol = next(self._newest(itemgetter(0), end), None)
        return None if protocol is None else in_commit_start(table_protocol(protocol), metadata.properties)

    # -- the life of files and schemas

    def base_version(self) -> int | None:
        """The checkpoint version before which the commits do not reach back; None if they begin at version 0."""
        return None if self._oldest() is None else self.base_checkpoint().version

    def base_checkpoint(self) -> CheckpointFiles:
        """The oldest complete checkpoint. LookupError where there is none."""
        return next(iter(self._log.checkpoints()))

    def _oldest(self) -> Checkpoint | None:
        if self._log.versions()[:1] == [0] or not self._log.checkpoints():
            return None
        return self._log.checkpoint(self.base_checkpoint())

    def base_actions(self) -> tuple[int, Protocol | None, Metadata | None] | None:
        """The version, protocol and metaData of the checkpoint the history starts from; None if it starts at 0.

        Both are None where that checkpoint cannot be read: `base_trouble` says why.
        """
        with self._lock:
            if not self._base_read:
                checkpoint = self._oldest()
                if checkpoint is not None:
                    try:
                        self._base = (checkpoint.version, *checkpoint.protocol_and_metadata())
                    except UNREADABLE as error:
                        self._base, self.base_trouble = (checkpoint.version, None, None), error.message
                self._base_read = True
            return self._base

    def lifetimes(self) -> pl.DataFrame:
        """LIFETIMES: each stay of a file in the table, from the oldest version the log can still rebuild."""
        with self._lock:
            self._all()
            state = len(self._through), self._log.latest
            if self._lives is not None and self._lives[0] == state:
                return self._lives[1]
            base = pl.DataFrame(schema=EVENTS)
            events = pl.concat([base, *self._events])
            checkpoint = self._oldest()
            if checkpoint is not None:
                events = events.filter(pl.col("version") > checkpoint.version)
                try:
                    base = live_events(checkpoint)
                except UNREADABLE as error:  # not kept: it may be restored, without a commit that tells so
                    self.base_trouble = error.message
                    return lifetimes_of(base, events)
            self._lives = state, lifetimes_of(base, events)
            return self._lives[1]

    def schemas(self) -> pl.DataFrame:
        """SCHEMAS, oldest first; the first row is the oldest schema the log still tells."""
        metadata = self.properties()
        base = self.base_actions()
        if base is not None and base[2] is not None:
            metadata = {base[0]: base[2]} | {v: m for v, m in metadata.items() if v > base[0]}
        rows: list[tuple[int, str]] = []
        for version in sorted(metadata):
            text = metadata[version].schema_string
            if text is not None and (not rows or rows[-1][1] != text):
                rows.append((version, text))
        frame = pl.DataFrame(rows, schema={"version": pl.Int64(), "schema": pl.String()}, orient="row")
        return frame.join(self.times(), on="version", how="left", maintain_order="left").select(SCHEMAS.names())

    def protocols(self) -> dict[int, Protocol]:
        """Every protocol action of the commits, by version."""
        return {v: told[0] for v, told in self._all_told().items() if told[0] is not None}

    def properties(self) -> dict[int, Metadata]:
        """Every metaData action of the commits, by version."""
        return {v: told[1] for v, told in self._all_told().items() if told[1] is not None}

    def _all_told(self) -> dict[int, _Told]:
        with self._lock:
            for _ in self._tell(self._log.versions()):
                pass
            return dict(sorted(self._told.items()))


def _told(pieces: Iterable[tuple[int, bytes]]) -> _Told:
    """The last protocol and the last metaData among the pieces of one commit; neither of a commit that is corrupt."""
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    for version, data in pieces:
        if mentions(data, "protocol", "metaData"):
            try:
                lines = log_lines(data, version)
            except CorruptTableError:
                return None, None
            protocol = next((line.protocol for line in reversed(lines) if line.protocol is not None), protocol)
            metadata = next((line.meta_data for line in reversed(lines) if line.meta_data is not None), metadata)
    return protocol, metadata


_TOTALS = ("files_added", "files_removed", "bytes_added", "bytes_removed", "records_added", "records_removed")
_INFO = ("operation", "parameters", "metrics", "engine", "client_version", "user")
