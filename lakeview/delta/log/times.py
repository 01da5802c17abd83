"""Commit files and what they say to the time of each version, the one that time travel uses.

Three sources, chosen once for a table and named in COMMITS.timestamp_source:
`in-commit` (today's protocol, In-Commit Timestamps) from the version that enabled them; before it, and without them,
`file`: the commit file's modification time; and `commitInfo`: the writer's own clock, only where a copy has flattened
the file times, so that a table copied yesterday does not seem to have begun and ended yesterday.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import polars as pl

from lakeview.delta.log.actions import CommitInfo
from lakeview.delta.log.table_log import TableLog
from lakeview.errors import CorruptTableError, VersionNotFoundError
from lakeview.snapshot import UTC_MILLIS, YEAR_1, YEAR_9999, milliseconds, moments

TIMES = pl.Schema({"version": pl.Int64(), "timestamp": UTC_MILLIS, "timestamp_source": pl.String()})
"""One row a commit file, oldest first."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FLAT = timedelta(hours=1)
_FLATTENED = 100


def in_commit_start(properties: Mapping[str, str]) -> int | None:
    """The version from which commits carry their own time; None where the table does not use them."""
    if properties.get("delta.enableInCommitTimestamps", "").lower() != "true":
        return None
    text = properties.get("delta.inCommitTimestampEnablementVersion", "0")
    return int(text) if text.isdecimal() else 0


class CommitTimes:
    """The times of a log's commits. Commits are read only where their own word is needed."""

    def __init__(self, log: TableLog, properties: Mapping[str, str]) -> None:
        self._log = log
        self._start = in_commit_start(properties)

    def of(self, version: int) -> datetime | None:
        """The time of one version; None where its commit file is gone and no checkpoint file stands in."""
        # a listing that began at the checkpoint hint is enough: one version's time is not worth another listing
        files = self._log.listed_commits()
        if version not in files["version"]:
            files = self._log.commit_files()
            if version not in files["version"]:
                return None
        if self._start is not None and version >= self._start:
            own = moment(self._info(version).in_commit_timestamp)
            if own is not None:
                return own
        times = self._by_file(files).filter(pl.col("version") == version)["timestamp"]
        return moment(times.dt.epoch("ms")[0])

    def _info(self, version: int) -> CommitInfo:
        """What a commit says about itself; nothing if it is corrupt: that must not cost other versions their time."""
        try:
            return self._log.commit(version).info
        except CorruptTableError:
            return CommitInfo()

    def frame(self, in_commit: Mapping[int, int | None], recorded: Mapping[int, int | None]) -> pl.DataFrame:
        """TIMES from what the commits say: `in_commit` and `recorded` are milliseconds by version."""
        files = self._log.commit_files()
        base = self._by_file(files, recorded)
        if self._start is None:
            return base
        own = pl.DataFrame(
            {"version": list(in_commit), "own": list(in_commit.values())},
            schema={"version": pl.Int64(), "own": pl.Int64()},
        )
        own = own.filter(pl.col("version") >= self._start).with_columns(moments("own"))
        return (
            base.join(own, on="version", how="left", maintain_order="left")
            .with_columns(
                pl.coalesce("own", "timestamp").alias("timestamp"),
                pl.when(pl.col("own").is_not_null())
                .then(pl.lit("in-commit"))
                .otherwise(pl.col("timestamp_source"))
                .alias("timestamp_source"),
            )
            .select(TIMES.names())
        )

    def _by_file(self, files: pl.DataFrame, recorded: Mapping[int, int | None] | None = None) -> pl.DataFrame:
        if self._flattened(files, recorded):
            known = recorded or {v: self._info(v).timestamp for v in files["version"]}
            said = pl.Series("timestamp", [known.get(v) for v in files["version"]], dtype=pl.Int64)
            own = files.select("version", said).with_columns(moments("timestamp"))
            if not own["timestamp"].has_nulls():
                return _monotone(own, "commitInfo")
        return _monotone(files.select("version", pl.col("modified").alias("timestamp")), "file")

    def _flattened(self, files: pl.DataFrame, recorded: Mapping[int, int | None] | None) -> bool:
        """Whether a copy gave every commit file about the same time, while their writers worked for much longer."""
        times = files["modified"].drop_nulls().dt.epoch("ms").sort()
        if times.len() < 2:
            return False
        width = timedelta(milliseconds=times[-1] - times[0])
        if width >= _FLAT:
            return False
        ends = (files["version"][0], files["version"][-1])
        first, last = (recorded.get(v) if recorded else self._info(v).timestamp for v in ends)
        if first is None or last is None:
            return False
        return timedelta(milliseconds=max(0, min(last - first, 10**14))) > max(width * _FLATTENED, _FLAT)


def moment(milliseconds: int | None) -> datetime | None:
    """Milliseconds since 1970 as an aware datetime; None for none, and beyond the calendar's years."""
    if milliseconds is None or not YEAR_1 <= milliseconds < YEAR_9999:
        return None
    return _EPOCH + timedelta(milliseconds=milliseconds)


def _monotone(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    """ "if ts[i+1] <= ts[i] then ts[i+1] = ts[i] + 1 ms", as one running maximum over ts - position."""
    position = pl.int_range(pl.len(), dtype=pl.Int64)
    millis = pl.col("timestamp").dt.epoch("ms")
    return frame.with_columns(
        ((millis - position).cum_max() + position).cast(UTC_MILLIS).alias("timestamp"),
        pl.lit(source).alias("timestamp_source"),
    ).select(TIMES.names())


def version_at(times: pl.DataFrame, at: datetime, address: str) -> int:
    """The last version committed at or before a moment; a moment after the latest commit gives the latest.

    InvalidRequestError for a naive moment, VersionNotFoundError before the first commit still there.
    """
    milliseconds(at)  # refuses a naive moment
    earlier = times.filter(pl.col("timestamp") <= at)
    if not earlier.height:
        first = moment(times["timestamp"].dt.epoch("ms")[0]) if times.height else None
        begins = "an unknown time" if first is None else first.isoformat(sep=" ")
        raise VersionNotFoundError(
            f"{address} has no version at {at.isoformat(sep=' ')}: its log begins at {begins}",
            fix="ask for a later moment, or for a version by number",
        )
    return int(earlier["version"][-1])


def first_version_from(times: pl.DataFrame, at: datetime) -> int:
    """The first version committed at or after a moment; one above the latest if there is none.

    InvalidRequestError for a naive moment.
    """
    milliseconds(at)  # refuses a naive moment
    later = times.filter(pl.col("timestamp") >= at)
    return int(later["version"][0] if later.height else times["version"][-1] + 1)
