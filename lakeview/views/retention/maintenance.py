"""A snapshot, its retention and its log to findings about maintenance: vacuum, checkpoints, rewrites."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from lakeview.model.findings import Finding, Severity
from lakeview.model.snapshot import Snapshot
from lakeview.views.retention.policy import SHORTEST_KEPT
from lakeview.views.retention.remedies import cleanup_command, command, keep_longer_command
from lakeview.views.retention.simulation import Retention, simulate
from lakeview.views.sums import total_of
from lakeview.views.timeline.readability import cadence
from lakeview.views.units import counted, format_age, format_bytes, format_percent

HISTORY_SHARE = 0.4
HISTORY_BYTES = 64 << 20
"""History is costly from this share of all retained bytes and this size on."""

CHECKPOINT_TIMES = 10
DEFAULT_CHECKPOINT_INTERVAL = 10
"""A checkpoint is stale after this many times the commits between two, by default so many."""

LOG_SHARE = 0.1
LOG_BYTES = 64 << 20
"""A log is large from this share of the live bytes and this size on."""

TOMBSTONES_TIMES = 5
TOMBSTONES_AT_LEAST = 10_000
"""Removed files weigh on checkpoints from this many times the live ones and this number on."""

DELETE_FILES_TIMES = 0.5
DELETE_FILES_AT_LEAST = 20
"""Files that only delete rows pile up from so many a data file, and this number on."""


def maintenance_findings(snapshot: Snapshot, *, log: pl.DataFrame | None = None) -> list[Finding]:
    """Findings about rewrites and, with LOG_FILES, about checkpoints and the log's size; in no order."""
    found = [*_tombstones(snapshot), *_delete_files(snapshot)]
    if log is not None and not log.is_empty():
        found += [*_checkpoint(snapshot, log), *_log_size(snapshot, log)]
    return found


def history_findings(
    snapshot: Snapshot, retention: Retention, commits: pl.DataFrame | None, now: datetime
) -> list[Finding]:
    """Findings about the cost of history and the next cleanup, in no order; COMMITS give the cadence."""
    if retention.versions.is_empty() or retention.undated:
        return []
    return [*_history(snapshot, retention, now), *_retention(snapshot, retention, commits, now)]


def _history(snapshot: Snapshot, retention: Retention, now: datetime) -> list[Finding]:
    kept = retention.retained_bytes
    whole = None if retention.live_bytes is None else kept + retention.live_bytes
    if whole == 0:
        return []
    share = None if whole is None else kept / whole
    dear = share is not None and share >= HISTORY_SHARE and kept >= HISTORY_BYTES
    evidence = f"{format_percent(share)} of the bytes retained, {counted(retention.files.height, 'file')}"
    return [
        Finding(
            "history-cost",
            Severity.ATTENTION if dear else Severity.PASS,
            f"History costs {format_bytes(kept)}",
            evidence,
            f"{HISTORY_SHARE:.0%} of the bytes retained, at least {format_bytes(HISTORY_BYTES)}".replace("%", " %"),
            remedy="vacuum files that only old versions need" if dear else None,
            page="health",
            effect="storage is paid for old versions" if dear else None,
            command=cleanup_command(snapshot, retention.policy, retention.policy.keep, now) if dear else None,
        )
    ]


def _retention(snapshot: Snapshot, retention: Retention, commits: pl.DataFrame | None, now: datetime) -> list[Finding]:
    policy = retention.policy
    found = []
    files = policy.rule == "removed files"
    if files and policy.keep < SHORTEST_KEPT:
        found.append(
            Finding(
                "retention-short",
                Severity.ATTENTION,
                f"Removed files are retained for {format_age(policy.keep)} only",
                f"set by {policy.declared}",
                format_age(SHORTEST_KEPT),
                remedy="retain them for a week or more",
                page="health",
                effect="a query or a writer that takes longer may lose files it reads",
                command=keep_longer_command(snapshot, SHORTEST_KEPT),
            )
        )
    done = simulate(retention, policy.keep)
    if done.lost is None:
        limit = "no readable version needs the files that a cleanup removes"
        return [
            *found,
            Finding(
                "cleanup-ends-no-version", Severity.PASS, "The next cleanup ends no version", "", limit, page="health"
            ),
        ]
    usual = None if commits is None else cadence(commits, now).usual
    last = done.versions_left <= 1 < done.versions_left + done.versions
    freed = "an unknown number of bytes" if done.is_unknown else f"at least {format_bytes(done.bytes)}"
    evidence = f"{retention.what} are retained for {format_age(policy.keep)}; it frees {freed}"
    if last and usual is not None and usual > policy.keep:
        evidence += f"; commits come every {format_age(usual)}"
    found.append(
        Finding(
            "cleanup-ends-versions",
            Severity.ATTENTION if last else Severity.NOTE,
            f"The next cleanup ends {done.lost}",
            evidence,
            "an earlier version stays readable",
            done.lost,
            remedy="retain history for longer, or give these versions up" if last else None,
            page="health",
            effect="no earlier version is left to restore" if last else "these versions can no longer be read then",
            command=keep_longer_command(snapshot, _keeps_another(retention, usual)) if last else None,
        )
    )
    return found


def _keeps_another(retention: Retention, usual: timedelta | None) -> timedelta:
    """A retention, in whole days, with which an earlier version outlives the next cleanup, and later ones: by the
    usual gap between commits, else twice what the nearest of those versions needs today."""
    keep = retention.policy.keep
    needs = retention.versions["needs_ms"]
    nearest = needs.filter(needs > keep // timedelta(milliseconds=1)).min()
    needed = timedelta(milliseconds=nearest) if isinstance(nearest, int) else timedelta()
    longest = max(keep * 2, needed * 2 if usual is None else max(usual * 3, needed))
    return timedelta(days=-(-longest // timedelta(days=1)))


def _checkpoint(snapshot: Snapshot, log: pl.DataFrame) -> list[Finding]:
    """Where commits are numbered files: how many have to be replayed one by one."""
    newest = log.filter(pl.col("kind") == "checkpoint")["version"].cast(pl.Int64).max()
    commits = log.filter((pl.col("kind") == "commit") & pl.col("version").is_not_null())["version"]
    if commits.is_empty():
        return []
    last = newest if isinstance(newest, int) else -1
    since = int((commits > last).sum())
    text = snapshot.properties.get("delta.checkpointInterval", "")
    interval = int(text) if text.isdecimal() and 0 < len(text) < 9 and int(text) else DEFAULT_CHECKPOINT_INTERVAL
    stale = since >= CHECKPOINT_TIMES * interval
    evidence = f"{counted(since, 'commit')} since {'the first' if last < 0 else f'v{last}'}"
    return [
        Finding(
            "checkpoint-age",
            Severity.ATTENTION if stale else Severity.PASS,
            "The checkpoint is stale" if stale else "The checkpoint is recent",
            evidence,
            f"{CHECKPOINT_TIMES} times the interval of {interval:,}",
            remedy="write a checkpoint; see why the writer does not" if stale else None,
            page="health",
            effect="every reader replays these commits one by one" if stale else None,
        )
    ]


def _log_size(snapshot: Snapshot, log: pl.DataFrame) -> list[Finding]:
    size, live = int(log["size"].sum()), snapshot.size_bytes
    large = live is not None and size >= LOG_BYTES and size >= LOG_SHARE * live
    share = size / live if live else None
    evidence = f"{counted(log.height, 'file')}, {format_percent(share)} of the live bytes"
    return [
        Finding(
            "log-size",
            Severity.ATTENTION if large else Severity.PASS,
            f"The log takes {format_bytes(size)}",
            evidence,
            f"{LOG_SHARE:.0%} of the live bytes, at least {format_bytes(LOG_BYTES)}".replace("%", " %"),
            remedy="shorter log retention, larger commits, a checkpoint" if large else None,
            page="health",
            effect="listing and opening the table get slower with every commit" if large else None,
        )
    ]


def _tombstones(snapshot: Snapshot) -> list[Finding]:
    gone, live = snapshot.tombstones.height, snapshot.num_files
    if gone < TOMBSTONES_AT_LEAST or gone < TOMBSTONES_TIMES * live:
        return []
    return [
        Finding(
            "tombstones-exceed-files",
            Severity.ATTENTION,
            "The log lists more removed files than live ones",
            f"{counted(gone, 'removed file')}, {live:,} live",
            f"{TOMBSTONES_TIMES} times the live files, at least {TOMBSTONES_AT_LEAST:,}",
            remedy="rewrite fewer files at once, or retain removed files for a shorter time",
            page="health",
            effect="every checkpoint contains them",
        )
    ]


def _delete_files(snapshot: Snapshot) -> list[Finding]:
    deletes, data = snapshot.delete_files.height, snapshot.num_files
    if deletes < DELETE_FILES_AT_LEAST or deletes < DELETE_FILES_TIMES * data:
        return []
    return [
        Finding(
            "delete-files-pile-up",
            Severity.ATTENTION,
            f"{deletes:,} files only delete rows",
            f"with {counted(data, 'data file')}, {format_bytes(total_of(snapshot.delete_files['size']))}",
            f"one for two data files, at least {DELETE_FILES_AT_LEAST}",
            remedy="rewrite the data files with their deletes applied",
            page="files",
            effect="every read opens and applies them",
            command=command("apply_deletes", snapshot),
        )
    ]
