"""Commits to what happened: COMMITS, whole or by page, the life of every file, and schema changes."""

import threading
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import polars as pl

from lakeview.delta.log.commit_rows import HEADS, SUMS, TOTALS, Head, head_of, heads_frame, read_commits, totals
from lakeview.delta.log.commits import readable
from lakeview.delta.log.definitions import (
    begins_at_zero,
    newest_in_commit_start,
    read_bases,
    schema_before,
    schema_texts,
)
from lakeview.delta.log.earlier_files import KNOWN_FILES, before, in_checkpoint
from lakeview.delta.log.file_actions import IDENTITY
from lakeview.delta.log.file_events import (
    ACTIONS,
    EVENTS,
    bridge_gaps,
    events_of,
    lifetimes_of,
    live_events,
    states_before,
)
from lakeview.delta.log.log_segment import CheckpointFiles
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.log.times import CommitTimes
from lakeview.model.column_values import moments
from lakeview.model.frames import COMMITS, SCHEMAS

_ROWS = pl.Schema({**HEADS, **TOTALS})
"""One row a commit. Of a corrupt one only its version and the reason are known, and `data_change` is false."""

_NO_ROWS, _NO_EVENTS = pl.DataFrame(schema=_ROWS), pl.DataFrame(schema=EVENTS)
# made once: they are half of what opening a small table takes

_Earlier = Callable[[int, pl.DataFrame], pl.DataFrame]
"""From the first version of an unbroken run of commits, and EVENTS of removals in it, to KNOWN_FILES of what they
removed."""


class History:
    """What the commits of a log record. Each commit is read once; a refresh reads the new ones.

    One frame has a row for each commit that was read, one a row for each of their file actions; all else is derived.
    Of a corrupt commit only its existence is known. A checkpoint after it, or after commits that are gone, bridges the
    gap: what differs between the last state before it and the checkpoint counts as changed at the checkpoint's version.
    """

    def __init__(self, log: TableLog) -> None:
        self._log = log
        self._lock = threading.RLock()
        self._rows = _NO_ROWS
        self._events = _NO_EVENTS
        self._through: set[int] = set()
        self._frames: dict[str, tuple[tuple[int, int], pl.DataFrame]] = {}
        self._bases: list[tuple[int | None, CheckpointFiles]] = []
        self.problems: dict[int, str] = {}
        """Why the checkpoints that the last `lifetimes` needed cannot be read, by their version."""

    # -- reading

    def _all(self) -> pl.DataFrame:
        """_ROWS of all commits, oldest first, whose events are there then as well."""
        with self._lock:
            versions = self._log.versions()
            missing = [v for v in versions if v not in self._through] if self._is_behind(versions) else []
            if missing:
                heads, own, reasons = self._parse(missing)
                events = pl.concat([self._events, own.select(EVENTS.names())]).sort("version", maintain_order=True)
                # only when it is whole: what fails before is tried again, and nothing counts twice
                at_base = partial(self._at_base, events["path"])
                self._add(heads, _complete_removes(own, events, _starts(versions), at_base), reasons)
                self._events = events
                self._through |= set(missing)
            return self._rows

    def _is_behind(self, versions: Sequence[int]) -> bool:
        """Whether one of the log's versions may not have been read; a cleanup takes old ones from the log."""
        return bool(versions) and (len(self._through) < len(versions) or versions[-1] not in self._through)

    def _read_page(self, versions: Sequence[int]) -> None:
        """Read the rows of some commits, and of the log before them what it takes to find what they removed."""
        heads, own, reasons = self._parse(versions)
        events = _complete_removes(own, own, _starts(versions), lambda start, files: before(self._log, start, files))
        self._add(heads, events, reasons)

    def _parse(self, versions: Sequence[int]) -> tuple[list[Head], pl.DataFrame, dict[int, str]]:
        """What commits say, EVENTS with `data_change`, and why commits cannot be read."""
        reasons: dict[int, str] = {}
        commits = readable(self._log.each_bytes(versions), reasons)
        heads, actions = read_commits(commits, self._log.storage.root, [*ACTIONS, "data_change"], head_of)
        return heads, events_of(actions), reasons

    def _add(self, heads: Sequence[Head], events: pl.DataFrame, reasons: Mapping[int, str]) -> None:
        rows = heads_frame(heads, reasons).join(totals(events), on="version", how="left", maintain_order="left")
        nothing = pl.col("broken").is_null() & pl.col("data_change").is_null()  # a commit without file actions
        rows = rows.with_columns(
            pl.col("data_change").fill_null(value=False),
            *(pl.when(nothing).then(0).otherwise(name).alias(name) for name in SUMS),
        )
        self._rows = pl.concat([self._rows, rows.select(_ROWS.names())]).unique("version", keep="last").sort("version")
        self._log.known_definitions.put({head.version: head.definition for head in heads} | dict.fromkeys(reasons))

    def _at_base(self, paths: pl.Series, start: int, removals: pl.DataFrame) -> pl.DataFrame:
        """KNOWN_FILES of the oldest complete checkpoint that a run of commits goes on from, for those removed later.
        `paths`: those of all commits."""
        base = next((c for c in self._log.checkpoints() if c.version >= start - 1), None) if start else None
        later = removals.clear() if base is None else removals.filter(pl.col("version") > base.version)
        if base is None or not later.height:
            return _NOTHING
        return in_checkpoint(self._log, base, later, paths)

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
                versions = versions[len(versions) - limit :]
            if len(versions) < len(every) and self._is_behind(every):
                self._read_page(sorted(set(versions).difference(self._rows["version"])))
                return self._frame(self._rows.filter(pl.col("version").is_in(versions)), whole=False)
            rows = self._all()
            whole = self._from_cache("commits")
            if whole is None:
                whole = self._cache("commits", self._frame(rows, whole=True))
            return whole if len(versions) == whole.height else whole.filter(pl.col("version").is_in(versions))

    def _frame(self, rows: pl.DataFrame, *, whole: bool) -> pl.DataFrame:
        """COMMITS of _ROWS, oldest first. `whole`: they are those of all commits."""
        return (
            rows.with_columns(
                moments("timestamp").alias("recorded_timestamp"),
                pl.col("version").is_in(self._schema_changes(rows)).alias("schema_changed"),
                pl.col("version").alias("position"),
                pl.when(pl.col("version") > 0).then(pl.col("version") - 1).alias("parent"),
            )
            .drop("timestamp")
            .join(self._times(rows, whole=whole), on="version", how="left", maintain_order="left")
            .select(COMMITS.names())
            .reverse()
        )

    def _times(self, rows: pl.DataFrame, *, whole: bool) -> pl.DataFrame:
        own = dict(rows.select("version", "in_commit_timestamp").iter_rows())
        # where no commit carries its own time, it does not matter from which version on it would count
        start = newest_in_commit_start(self._log) if any(t is not None for t in own.values()) else None
        writer_times = dict(rows.select("version", "timestamp").iter_rows()) if whole else None
        return CommitTimes(self._log, start).frame(own, writer_times)

    def _schema_changes(self, rows: pl.DataFrame) -> list[int]:
        """The versions of _ROWS, oldest first, whose schema differs from the one before them that the log still
        records."""
        # what is gone or cannot be read may have changed the schema: a checkpoint may have it
        gap = pl.col("broken").is_not_null() | (pl.col("version").diff() != 1).fill_null(value=True)
        versions = []
        older, last = None, None
        schemas = rows.select("version", "schema", gap.cum_sum().alias("run")).filter(pl.col("schema").is_not_null())
        for version, schema, run in schemas.iter_rows():
            if run != last:
                older, last = schema_before(self._log, version), run
            if older != schema:
                versions.append(version)
            older = schema
        return versions

    def unreadable_commits(self) -> dict[int, str]:
        """Commits that cannot be read, and why."""
        rows = self._all().select("version", "broken").filter(pl.col("broken").is_not_null())
        return dict(rows.iter_rows())

    def times(self) -> pl.DataFrame:
        """TIMES of every commit still there; commits are read only where they carry their own time."""
        start = newest_in_commit_start(self._log)
        own = {} if start is None else dict(self._all().select("version", "in_commit_timestamp").iter_rows())
        return CommitTimes(self._log, start).frame(own)

    # -- the life of files and schemas

    def lifetimes(self) -> pl.DataFrame:
        """LIFETIMES: each stay of a file in the table, from the oldest version the log can still rebuild."""
        with self._lock:
            corrupt = self.unreadable_commits()
            lives = self._from_cache("lifetimes")
            if lives is not None:
                return lives
            bases, self.problems = read_bases(self._log, corrupt, live_events)
            from_zero = begins_at_zero(self._log, corrupt)
            files = {c.version: c for c in self._log.checkpoints()}
            starts = [None if i == 0 and not from_zero else version for i, version in enumerate(bases)]
            read = [self._log.sound_checkpoint(files[version]) for version in bases]
            self._bases = list(zip(starts, read, strict=True))
            lives = lifetimes_of(*bridge_gaps(bases, self._events, from_zero=from_zero))
            # where a checkpoint cannot be read nothing is cached: it may be restored without a commit
            return lives if self.problems else self._cache("lifetimes", lives)

    def bases(self) -> list[tuple[int | None, CheckpointFiles]]:
        """The checkpoints that lifetimes start from, oldest first, each with the `added` of the files it brings."""
        with self._lock:
            self.lifetimes()
            return self._bases

    def schemas(self) -> pl.DataFrame:
        """SCHEMAS, oldest first; the first row is the oldest schema that the log still records."""
        rows = schema_texts(self._log)
        frame = pl.DataFrame(rows, schema={"version": pl.Int64(), "schema": pl.String()}, orient="row")
        return frame.join(self.times(), on="version", how="left", maintain_order="left").select(SCHEMAS.names())

    # -- frames of everything that was read, made once for each state of the log

    def _from_cache(self, name: str) -> pl.DataFrame | None:
        state, frame = self._frames.get(name, (None, None))
        return frame if state == (len(self._through), self._log.latest) else None

    def _cache(self, name: str, frame: pl.DataFrame) -> pl.DataFrame:
        self._frames[name] = (len(self._through), self._log.latest), frame
        return frame


_NOTHING = pl.DataFrame(schema=KNOWN_FILES)


def _starts(versions: Sequence[int]) -> pl.DataFrame:
    """`version` and the first version of its unbroken run of commits, `start`."""
    run = (pl.col("version").diff() != 1).fill_null(value=True).cum_sum()
    frame = pl.DataFrame({"version": versions}, schema={"version": pl.Int64()})
    return frame.with_columns(pl.col("version").first().over(run).alias("start"))


def _complete_removes(own: pl.DataFrame, events: pl.DataFrame, starts: pl.DataFrame, earlier: _Earlier) -> pl.DataFrame:
    """The events `own`, and of what they remove `size_before` and `records_before`: as `events` say since the start of
    the unbroken run of commits, else as `earlier` says, else null."""
    own_removes = own.filter(~pl.col("added")).join(starts, on="version", how="left", maintain_order="left")
    removals = states_before(own_removes, events)
    parts = [own.filter("added"), removals.filter("met")]
    for (start,), unmet in removals.filter(~pl.col("met")).group_by("start"):
        own_columns = unmet.drop("size_before", "records_before")
        files = earlier(start, unmet)
        parts.append(own_columns.join(files, on=IDENTITY, how="left", nulls_equal=True))
    return pl.concat(parts, how="diagonal")
