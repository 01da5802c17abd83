"""Commit files and what they say to the time of each version, the one that time travel uses.

Three sources, chosen once for a table and named in COMMITS.timestamp_source:
`in-commit` (today's protocol, In-Commit Timestamps) from the version that enabled them; before it, and without them,
`file`: the commit file's modification time; and `commitInfo`: the writer's own clock, only where a copy has flattened
the file times, so that a table copied yesterday does not seem to have begun and ended yesterday, and in a store that
tells no times.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime

import polars as pl

from lakeview.delta.features import MAX_WRITER_VERSION
from lakeview.delta.log.commit_info import CommitInfo
from lakeview.delta.log.paths import LogFile
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.properties import is_true
from lakeview.model.column_values import moment, moments
from lakeview.model.errors import CorruptTableError, VersionNotFoundError
from lakeview.model.frames import UTC_MILLIS
from lakeview.model.snapshot import milliseconds
from lakeview.model.table_metadata import TableProtocol

TIMES = pl.Schema({"version": pl.Int64(), "timestamp": UTC_MILLIS, "timestamp_source": pl.String()})
"""One row a commit file, oldest first."""

_FLAT = 3_600_000
_FLATTENED = 100


def in_commit_start(protocol: TableProtocol, properties: Mapping[str, str]) -> int | None:
    """The version from which commits carry their own time; None where the table does not use them.

    "This feature is enabled when the table property is set to true" and the protocol names it (delta protocol,
    In-Commit Timestamps): no writer version implies it, so the property alone has no force.
    """
    is_named = protocol.min_writer_version == MAX_WRITER_VERSION and "inCommitTimestamp" in (
        protocol.writer_features or ()
    )
    if not is_named or not asks_for_in_commit_times(properties):
        return None
    text = properties.get("delta.inCommitTimestampEnablementVersion", "0")
    return int(text) if text.isdecimal() and len(text) < 20 else 0


def asks_for_in_commit_times(properties: Mapping[str, str]) -> bool:
    """Whether the property is set that has a force only where the protocol names the feature."""
    return is_true(properties, "delta.enableInCommitTimestamps")


def time_before(log: TableLog, start: int, version: int) -> datetime | None:
    """The time of the commit before a version that is to be committed; `start` as of CommitTimes. The commit's own word
    comes first: a listing may be older and lack it."""
    if version > start:
        with suppress(CorruptTableError, VersionNotFoundError):  # a checkpoint stands in for it
            own = moment(next(log.infos([version - 1]))[1].in_commit_timestamp)
            if own is not None:
                return own
    return CommitTimes(log, start).of(version - 1)


class CommitTimes:
    """The times of a log's commits. Commits are read only where their own word is needed."""

    def __init__(self, log: TableLog, start: int | None) -> None:
        """`start`: the version from which commits carry their own time (`in_commit_start`); None where they do not."""
        self._log = log
        self._start = start
        self._infos: dict[int, CommitInfo] = {}

    def of(self, version: int) -> datetime | None:
        """The time of one version; None where its commit file is gone and no checkpoint file stands in."""
        # a listing that began at the checkpoint hint is enough: one version's time is not worth another listing
        commits = self._log.listed_commits()
        at = _position(commits, version)
        if at is None or (self._log.is_partial and self._may_be_flattened(commits)):
            commits = self._log.commit_list()
            at = _position(commits, version)
            if at is None:
                return None
        if self._start is not None and version >= self._start:
            own = moment(self._info(version).in_commit_timestamp)
            if own is not None:
                return own
        if all(c.modified is None for c in commits):  # a web server: one commit's word costs one request, all cost all
            return moment(self._info(version).timestamp)
        return moment(self._times(commits, None)[0][at])

    def _info(self, version: int) -> CommitInfo:
        """What a commit says about itself; nothing if it is corrupt: that must not cost other versions their time."""
        if version not in self._infos:
            self._infos[version] = next(self._log.infos([version]))[1]
        return self._infos[version]

    def frame(
        self, in_commit: Mapping[int, int | None], claims: Mapping[int, int | None] | None = None
    ) -> pl.DataFrame:
        """TIMES from what the commits say: `in_commit` and `claims` (of writers) are milliseconds by version.

        Without `claims`, commits are read for it where file times turn out to be those of a copy.
        """
        commits = self._log.commit_list()
        times, source = self._times(commits, claims)
        sources = [source] * len(commits)
        if self._start is not None:
            for i in range(bisect_left(commits, self._start, key=lambda c: c.version), len(commits)):
                own = in_commit.get(commits[i].version)
                if moment(own) is not None:
                    times[i], sources[i] = own, "in-commit"
        return pl.DataFrame(
            {"version": [c.version for c in commits], "timestamp": times, "timestamp_source": sources},
            schema={**TIMES, "timestamp": pl.Int64()},
        ).with_columns(moments("timestamp"))

    def _times(
        self, commits: Sequence[LogFile], claims: Mapping[int, int | None] | None
    ) -> tuple[list[int | None], str]:
        """The times of these commits and their source, those aside that commits carry themselves."""
        recorded_times = self._recorded_times(commits, claims) if self._is_flattened(commits, claims) else None
        if recorded_times is None:
            return _monotone([c.modified for c in commits]), "file"
        return _monotone(recorded_times), "commitInfo"

    def _may_be_flattened(self, commits: Sequence[LogFile]) -> bool:
        """Whether the whole log has to be listed to know if a copy flattened it: the files of its newest commits have
        about the same time, and that of the last one is far from its writer's."""
        last = commits[-1]
        if last.modified is None or any(c.modified is None or last.modified - c.modified >= _FLAT for c in commits):
            return False
        own = self._info(last.version).timestamp
        return own is not None and abs(last.modified - own) > _FLAT

    def _recorded_times(
        self, commits: Sequence[LogFile], claims: Mapping[int, int | None] | None
    ) -> list[int | None] | None:
        """What each commit's writer says of its time; None where one of them says nothing."""
        if claims is None:
            claims = {v: info.timestamp for v, info in self._log.infos([c.version for c in commits])}
        times = [claims.get(c.version) for c in commits]
        return None if any(moment(t) is None for t in times) else times

    def _is_flattened(self, commits: Sequence[LogFile], claims: Mapping[int, int | None] | None) -> bool:
        """Whether a copy gave every commit file about the same time, while their writers worked for much longer; and
        whether the store tells no times at all."""
        times = [c.modified for c in commits if c.modified is not None]
        if not times:
            return bool(commits)
        if len(times) < 2:
            return False
        width = max(times) - min(times)
        if width >= _FLAT:
            return False
        ends = (commits[0].version, commits[-1].version)
        first, last = (claims.get(v) if claims else self._info(v).timestamp for v in ends)
        if first is None or last is None:
            return False
        return last - first > max(width * _FLATTENED, _FLAT)


def _position(commits: Sequence[LogFile], version: int) -> int | None:
    at = bisect_left(commits, version, key=lambda c: c.version)
    return at if at < len(commits) and commits[at].version == version else None


def _monotone(times: Sequence[int | None]) -> list[int | None]:
    """ "if ts[i+1] <= ts[i] then ts[i+1] = ts[i] + 1 ms"; one that is not known stays unknown and moves no other."""
    timestamps: list[int | None] = []
    last: int | None = None
    at = 0
    for i, time in enumerate(times):
        if time is not None:
            time, at = (time if last is None else max(time, last + i - at)), i
            last = time
        timestamps.append(time)
    return timestamps


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
