"""Commits to what happened: COMMITS, the life of every file, schema changes, and which versions can still be read."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from lakeview.delta.log.actions import CommitInfo, Metadata, Protocol
from lakeview.delta.log.checkpoints import Checkpoint
from lakeview.delta.log.commits import Commit, file_actions, only
from lakeview.delta.log.log_segment import complete_checkpoints
from lakeview.delta.log.record_counts import records
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.log.times import CommitTimes
from lakeview.errors import CorruptTableError, UnsupportedTableError
from lakeview.snapshot import COMMITS, LIFETIMES, SCHEMAS, moments

_KEY = ["key", "deletion_vector"]
_CHUNK = 256

EVENTS = pl.Schema(
    {
        "version": pl.Int64(),
        "added": pl.Boolean(),
        "key": pl.String(),
        "path": pl.String(),
        "deletion_vector": pl.String(),
        "size": pl.Int64(),
        "records": pl.Int64(),
        "data_change": pl.Boolean(),
    }
)
"""One row a file action of the commits still there; `records` are live rows."""


@dataclass(slots=True)
class _Read:
    """What has been read of the commits so far; grows by the new ones."""

    infos: dict[int, CommitInfo] = field(default_factory=dict)
    metadata: dict[int, Metadata] = field(default_factory=dict)
    protocols: dict[int, Protocol] = field(default_factory=dict)
    broken: dict[int, str] = field(default_factory=dict)
    events: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=EVENTS))


class History:
    """What the commits of a log tell. Each commit is read once; a refresh reads the new ones."""

    def __init__(self, log: TableLog) -> None:
        self._log = log
        self._read = _Read()
        self._lock = threading.RLock()
        self._base_read = False
        self._base: tuple[int, Protocol | None, Metadata | None] | None = None
        self._base_adds = pl.DataFrame(schema=EVENTS)
        self.base_trouble: str | None = None

    def _all(self) -> _Read:
        with self._lock:
            missing = [v for v in self._log.commit_files()["version"] if v not in self._read.infos]
            self._extend(self._read, missing)
            return self._read

    def _extend(self, read: _Read, versions: Sequence[int]) -> None:
        for start in range(0, len(versions), _CHUNK):
            commits = self._readable(versions[start : start + _CHUNK], read)
            # a chunk counts as read once all of it is: what fails before is tried again, and nothing counts twice
            read.events = pl.concat([read.events, _events(commits, self._log.storage.root)])
            read.metadata |= dict(only("meta_data", commits))
            read.protocols |= dict(only("protocol", commits))
            read.infos |= {c.version: c.info for c in commits}

    def _readable(self, versions: Sequence[int], read: _Read) -> list[Commit]:
        """These commits; one that is corrupt is noted, and does not take the rest of the history with it."""
        try:
            return self._log.commits(versions)
        except CorruptTableError:
            found = []
            for version in versions:
                try:
                    found.append(self._log.commit(version))
                except CorruptTableError as error:
                    read.broken[version] = error.message
                    read.infos[version] = CommitInfo()
            return found

    def broken(self) -> dict[int, str]:
        """Commits that cannot be read, and why."""
        return dict(self._all().broken)

    def times(self, properties: Mapping[str, str]) -> pl.DataFrame:
        """TIMES of every commit still there."""
        read = self._all()
        own = {v: i.in_commit_timestamp for v, i in read.infos.items()}
        return CommitTimes(self._log, properties).frame(own, {v: i.timestamp for v, i in read.infos.items()})

    def commits(self, properties: Mapping[str, str]) -> pl.DataFrame:
        """COMMITS, newest first. Removed rows and bytes come from the adds they undo, null where those are gone."""
        read = self._all()
        versions = sorted(read.infos)
        infos = [read.infos[v] for v in versions]
        frame = pl.DataFrame(
            {
                "version": versions,
                "recorded_timestamp": [i.timestamp for i in infos],
                "operation": [i.operation for i in infos],
                "parameters": [i.parameters for i in infos],
                "metrics": [i.metrics for i in infos],
                "engine": [i.engine for i in infos],
                "client_version": [i.client_version for i in infos],
                "user": [i.user for i in infos],
                "protocol_changed": [v in read.protocols for v in versions],
            },
            schema={n: COMMITS[n] for n in COMMITS if n in _INFO} | {"recorded_timestamp": pl.Int64()},
        )
        changed = self.schemas(properties).select("version", pl.lit(value=True).alias("schema_changed"))
        return (
            frame.with_columns(
                moments("recorded_timestamp"),
                pl.col("version").alias("position"),
                pl.when(pl.col("version") > 0).then(pl.col("version") - 1).alias("parent"),
            )
            .join(self.times(properties), on="version", how="left")
            .join(self._totals(), on="version", how="left")
            .join(changed, on="version", how="left")
            .with_columns(
                pl.col("schema_changed", "data_change").fill_null(value=False),
                # a commit without file actions adds and removes none; of a corrupt one nothing is known
                pl.when(pl.col("files_added").is_not_null() | pl.col("version").is_in(list(read.broken)))
                .then(pl.col(*_TOTALS))
                .otherwise(pl.lit(0, pl.Int64))
                .name.keep(),
            )
            .select(COMMITS.names())
            .cast(COMMITS)
            .sort("version", descending=True)
        )

    def _totals(self) -> pl.DataFrame:
        """Files, bytes and rows added and removed by version; a sum with an unknown part is unknown."""
        events = self._all().events
        undone = (
            self.lifetimes()
            .filter(pl.col("removed").is_not_null())
            .select(
                pl.col("removed").alias("version"),
                "path",
                "deletion_vector",
                pl.col("size").alias("old_size"),
                pl.col("records").alias("old_records"),
            )
            .unique(["version", "path", "deletion_vector"])
        )
        known = events.join(undone, on=["version", "path", "deletion_vector"], how="left", nulls_equal=True)
        size = pl.when("added").then("size").otherwise(pl.coalesce("size", "old_size"))
        rows = pl.when("added").then("records").otherwise("old_records")
        return known.group_by("version").agg(
            pl.col("added").sum().cast(pl.Int64).alias("files_added"),
            (~pl.col("added")).sum().cast(pl.Int64).alias("files_removed"),
            _sum(size.filter("added")).alias("bytes_added"),
            _sum(size.filter(~pl.col("added"))).alias("bytes_removed"),
            _sum(rows.filter("added")).alias("records_added"),
            _sum(rows.filter(~pl.col("added"))).alias("records_removed"),
            pl.col("data_change").any(),
        )

    def base_version(self) -> int | None:
        """The checkpoint version before which the commits do not reach back; None if they begin at version 0."""
        commits = self._log.commit_files()["version"]
        if commits.len() and commits[0] == 0:
            return None
        checkpoints = complete_checkpoints(self._log.files)
        return checkpoints[0].version if checkpoints else None

    def base_actions(self) -> tuple[int, Protocol | None, Metadata | None] | None:
        """The version, protocol and metaData of the checkpoint the history starts from; None if it starts at 0.

        Both are None where that checkpoint cannot be read: `base_trouble` says why.
        """
        with self._lock:
            if not self._base_read:
                version = self.base_version()
                if version is not None:
                    checkpoint = self._log.checkpoint(complete_checkpoints(self._log.files)[0])
                    try:
                        self._base = (version, *checkpoint.protocol_and_metadata())
                        self._base_adds = _live_events(checkpoint)
                    except (CorruptTableError, UnsupportedTableError) as error:
                        self._base, self.base_trouble = (version, None, None), error.message
                self._base_read = True
            return self._base

    def lifetimes(self) -> pl.DataFrame:
        """LIFETIMES: each stay of a file in the table, from the oldest version the log can still rebuild."""
        events = self._all().events
        base = self.base_actions()
        if base is not None:
            events = pl.concat([self._base_adds, events.filter(pl.col("version") > base[0])])
        one = events.unique(["version", *_KEY], keep="last", maintain_order=True)
        following = pl.col("version").shift(-1).over(_KEY, order_by="version")
        return (
            one.with_columns(following.alias("removed"))
            .filter("added")
            .with_columns(pl.when(pl.col("version") >= 0).then("version").alias("added"))
            .select(LIFETIMES.names())
            .sort("added", "path", nulls_last=False)
        )

    def schemas(self, properties: Mapping[str, str]) -> pl.DataFrame:
        """SCHEMAS, oldest first; the first row is the oldest schema the log still tells."""
        read = self._all()
        metadata = dict(read.metadata)
        base = self.base_actions()
        if base is not None and base[2] is not None:
            metadata = {base[0]: base[2]} | {v: m for v, m in metadata.items() if v > base[0]}
        rows: list[tuple[int, str]] = []
        for version in sorted(metadata):
            text = metadata[version].schema_string
            if text is not None and (not rows or rows[-1][1] != text):
                rows.append((version, text))
        frame = pl.DataFrame(rows, schema={"version": pl.Int64(), "schema": pl.String()}, orient="row")
        return frame.join(self.times(properties), on="version", how="left", maintain_order="left").select(
            SCHEMAS.names()
        )

    def protocols(self) -> dict[int, Protocol]:
        """Every protocol action of the commits, by version."""
        return dict(self._all().protocols)

    def properties(self) -> dict[int, Metadata]:
        """Every metaData action of the commits, by version."""
        return dict(self._all().metadata)


_TOTALS = ("files_added", "files_removed", "bytes_added", "bytes_removed", "records_added", "records_removed")
_INFO = {
    "version", "recorded_timestamp", "operation", "parameters", "metrics", "engine", "client_version", "user",
    "protocol_changed",
}  # fmt: skip


def _sum(values: pl.Expr) -> pl.Expr:
    return pl.when(values.null_count() == 0).then(values.sum())


def _live_events(checkpoint: Checkpoint) -> pl.DataFrame:
    """EVENTS of the files a checkpoint holds, as if added before every version."""
    adds = checkpoint.adds(["size", "stats", "parsed_records"])
    count = records(adds["stats"], adds["parsed_records"] if "parsed_records" in adds.columns else None)
    live = count - adds["deleted_records"]
    return adds.with_columns(
        pl.lit(-1, pl.Int64).alias("version"), pl.lit(value=True).alias("added"), live.alias("records"),
        pl.lit(value=True).alias("data_change"),
    ).select(EVENTS.names())  # fmt: skip


def _events(commits: Sequence[Commit], root: str) -> pl.DataFrame:
    actions = file_actions(commits, root)
    live = records(actions["stats"], None) - actions["deleted_records"]
    return actions.with_columns(live.alias("records")).select(EVENTS.names())
