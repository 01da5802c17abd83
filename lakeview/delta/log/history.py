"""Commits to what happened: COMMITS, whole or by page, the life of every file, and schema changes."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import polars as pl

from lakeview.delta.log.actions import Metadata, Protocol
from lakeview.delta.log.bases import begins_at_zero, read_bases
from lakeview.delta.log.commit_facts import CommitFacts, Identity, KnownFile, read_facts
from lakeview.delta.log.definitions import Definitions
from lakeview.delta.log.earlier_files import before, in_checkpoint
from lakeview.delta.log.file_events import EVENTS, bridged, collect, lifetimes_of, live_events
from lakeview.delta.log.log_segment import CheckpointFiles
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.log.times import CommitTimes
from lakeview.model.frames import COMMITS, SCHEMAS, moments


class History:
    """What the commits of a log record. Each commit is read once; a refresh reads the new ones.

    Of a corrupt commit only its existence is known. A checkpoint after it, or after commits that are gone, bridges the
    gap: what differs between the last state before it and the checkpoint counts as changed at the checkpoint's version.
    """

    def __init__(self, log: TableLog) -> None:
        self._log = log
        self._lock = threading.RLock()
        self._facts: dict[int, CommitFacts] = {}
        self._events: list[pl.DataFrame] = []
        self._through: set[int] = set()
        self._frames: dict[str, tuple[tuple[int, int], pl.DataFrame]] = {}
        self._bases: list[tuple[int | None, CheckpointFiles]] = []
        self.definitions = Definitions(log)
        self.problems: dict[int, str] = {}
        """Why the checkpoints that the last `lifetimes` needed cannot be read, by their version."""

    # -- reading

    def _all(self) -> dict[int, CommitFacts]:
        with self._lock:
            versions = self._log.versions()
            missing = [v for v in versions if v not in self._through] if len(self._through) < len(versions) else []
            if missing:
                self._read(missing)
            return self._facts

    def _read(self, versions: Sequence[int]) -> None:
        live: dict[Identity, KnownFile] = {}
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
        self.definitions.add({f.version: f.definition for f in found})
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

    def _met(self, identities: set[Identity], above: int) -> dict[Identity, KnownFile]:
        """The latest word of the commits read before, above a version, on these files."""
        if not self._events:
            return {}
        events = pl.concat(self._events)
        keys = pl.Series([key for key, _ in identities], dtype=pl.String)
        near = events[events["key"].is_in(keys.implode()).arg_true()].filter(pl.col("version") > above)
        columns = near.select("key", "deletion_vector", "added", "size", "records")
        return {
            (key, vector): (size, records) if added else (None, None)
            for key, vector, added, size, records in columns.iter_rows()
            if (key, vector) in identities
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
            whole = self._cached("commits")
            if whole is None:
                whole = self._cache("commits", self._frame(every))
            return whole if len(versions) == whole.height else whole.filter(pl.col("version").is_in(versions))

    def _read_page(self, versions: Sequence[int]) -> None:
        live: dict[Identity, KnownFile] = {}
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
        self.definitions.add({f.version: f.definition for f in found})

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
            **{name: list(map(attrgetter(f"info.{name}"), rows)) for name in _INFO},
            **{name: list(map(_total(name), rows)) for name in _TOTALS},
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
        start = self.definitions.in_commit_start() if any(t is not None for t in own.values()) else None
        times = CommitTimes(self._log, start).frame(own, recorded)
        return times if recorded is not None else times.filter(pl.col("version").is_in(list(own)))

    def _schema_changes(self, versions: Sequence[int]) -> set[int]:
        """Those of these versions whose schema differs from the one before them that the log still records."""
        changed = set()
        older: str | None = None
        known = False
        previous: int | None = None
        for version in versions:
            facts = self._facts[version]
            metadata = facts.metadata
            if facts.broken is not None or (previous is not None and version != previous + 1):
                known = False  # what is gone may have changed the schema: a checkpoint may have it
            previous = version
            if metadata is not None and metadata.schema_string is not None:
                if not known:
                    older, known = self.definitions.schema_before(version), True
                if older != metadata.schema_string:
                    changed.add(version)
                older = metadata.schema_string
        return changed

    def broken(self) -> dict[int, str]:
        """Commits that cannot be read, and why."""
        return {v: f.broken for v, f in self._all().items() if f.broken is not None}

    def times(self) -> pl.DataFrame:
        """TIMES of every commit still there; commits are read only where they carry their own time."""
        start = self.definitions.in_commit_start()
        own: dict[int, int | None] = {}
        if start is not None:
            own = {v: f.info.in_commit_timestamp for v, f in self._all().items()}
        return CommitTimes(self._log, start).frame(own)

    # -- the life of files and schemas

    def lifetimes(self) -> pl.DataFrame:
        """LIFETIMES: each stay of a file in the table, from the oldest version the log can still rebuild."""
        with self._lock:
            corrupt = self.broken()
            lives = self._cached("lifetimes")
            if lives is not None:
                return lives
            bases, self.problems = read_bases(self._log, corrupt, live_events)
            from_zero = begins_at_zero(self._log, corrupt)
            files = {c.version: c for c in self._log.checkpoints()}
            added = [None if i == 0 and not from_zero else version for i, version in enumerate(bases)]
            self._bases = [(first, files[version]) for first, version in zip(added, bases, strict=True)]
            events = pl.concat([pl.DataFrame(schema=EVENTS), *self._events])
            lives = lifetimes_of(*bridged(bases, events, from_zero=from_zero))
            # where a checkpoint cannot be read nothing is cached: it may be restored without a commit
            return lives if self.problems else self._cache("lifetimes", lives)

    def bases(self) -> list[tuple[int | None, CheckpointFiles]]:
        """The checkpoints that lifetimes start from, oldest first, each with the `added` of the files it brings."""
        with self._lock:
            self.lifetimes()
            return self._bases

    def schemas(self) -> pl.DataFrame:
        """SCHEMAS, oldest first; the first row is the oldest schema that the log still records."""
        rows = self.definitions.schema_texts()
        frame = pl.DataFrame(rows, schema={"version": pl.Int64(), "schema": pl.String()}, orient="row")
        return frame.join(self.times(), on="version", how="left", maintain_order="left").select(SCHEMAS.names())

    def protocols(self) -> dict[int, Protocol]:
        """Every protocol action of the commits, by version."""
        return self.definitions.protocols()

    def properties(self) -> dict[int, Metadata]:
        """Every metaData action of the commits, by version."""
        return self.definitions.metadata()

    # -- frames of everything that was read, made once for each state of the log

    def _cached(self, name: str) -> pl.DataFrame | None:
        state, frame = self._frames.get(name, (None, None))
        return frame if state == (len(self._through), self._log.latest) else None

    def _cache(self, name: str, frame: pl.DataFrame) -> pl.DataFrame:
        self._frames[name] = (len(self._through), self._log.latest), frame
        return frame


def _total(name: str) -> Callable[[CommitFacts], int | None]:
    """The sum of that name; None of a corrupt commit, of which nothing is known."""
    return lambda facts: None if facts.broken is not None else getattr(facts, name)


_TOTALS = ("files_added", "files_removed", "bytes_added", "bytes_removed", "records_added", "records_removed")
_INFO = ("operation", "parameters", "metrics", "engine", "client_version", "user")
