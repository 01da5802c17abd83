"""A snapshot, its retention and its log to findings about maintenance: vacuum, checkpoints, the size of the log."""

from datetime import datetime, timedelta

import polars as pl

from lakeview.model.findings import Finding, Severity
from lakeview.model.snapshot import Snapshot
from lakeview.views.health.kinds import finding
from lakeview.views.retention.remedies import cleanup_command, keep_longer_command
from lakeview.views.retention.simulation import Retention, simulate
from lakeview.views.thresholds import (
    CHECKPOINT_INTERVAL,
    CHECKPOINT_TIMES,
    HISTORY_BYTES,
    HISTORY_SHARE,
    LOG_BYTES,
    LOG_SHARE,
    SAFE_RETENTION,
    TOMBSTONES_MIN,
    TOMBSTONES_TIMES,
)
from lakeview.views.timeline.readability import cadence
from lakeview.views.units import count_text, format_age, format_bytes, format_percent


def log_findings(snapshot: Snapshot, log: pl.DataFrame | None = None) -> list[Finding]:
    """Findings about tombstones and, with LOG_FILES, about checkpoints and the log's size; in no order."""
    findings = _tombstones(snapshot)
    if log is not None and not log.is_empty():
        findings += [*_checkpoint(snapshot, log), *_log_size(snapshot, log)]
    return findings


def history_findings(
    snapshot: Snapshot, retention: Retention, commits: pl.DataFrame | None, now: datetime
) -> list[Finding]:
    """Findings about the cost of history and the next cleanup, in no order; COMMITS give the cadence."""
    if retention.versions.is_empty() or retention.has_no_times:
        return []
    return [*_history(snapshot, retention, now), *_retention(snapshot, retention, commits, now)]


def _history(snapshot: Snapshot, retention: Retention, now: datetime) -> list[Finding]:
    size = retention.retained_bytes
    whole = None if retention.live_bytes is None else size + retention.live_bytes
    if whole == 0:
        return []
    share = None if whole is None else size / whole
    is_costly = share is not None and share >= HISTORY_SHARE and size >= HISTORY_BYTES
    severity, claim = Severity.ATTENTION if is_costly else Severity.PASS, f"History costs {format_bytes(size)}"
    evidence = f"{format_percent(share)} of the bytes retained, {count_text(retention.files.height, 'file')}"
    run = cleanup_command(snapshot, retention.policy, retention.policy.keep, now) if is_costly else None
    return [finding("history-cost", severity, claim, evidence, command=run)]


def _retention(snapshot: Snapshot, retention: Retention, commits: pl.DataFrame | None, now: datetime) -> list[Finding]:
    policy = retention.policy
    findings = []
    if policy.rule == "removed files" and policy.keep < SAFE_RETENTION:
        claim = f"Removed files are retained for {format_age(policy.keep)} only"
        run = keep_longer_command(snapshot, SAFE_RETENTION)
        findings.append(
            finding("retention-short", Severity.ATTENTION, claim, f"set by {policy.declared_text}", command=run)
        )
    cleanup = simulate(retention, policy.keep)
    if cleanup.lost_versions is None:
        return [*findings, finding("cleanup-ends-no-version", Severity.PASS, "The next cleanup ends no version")]
    usual = None if commits is None else cadence(commits, now).usual
    last = cleanup.versions_left <= 1 < cleanup.versions_left + cleanup.versions
    freed_text = f"at least {format_bytes(cleanup.bytes)}" if cleanup.bytes else "no data file"
    freed_text = "an unknown number of bytes" if cleanup.is_unknown else freed_text
    evidence = f"{retention.what} are retained for {format_age(policy.keep)}; it frees {freed_text}"
    if last and usual is not None and usual > policy.keep:
        evidence += f"; commits come every {format_age(usual)}"
    # a note: the latest version stays, and what ends is a choice of the table's policy
    effect = "no earlier version is left to restore" if last else "these versions can no longer be read then"
    run = keep_longer_command(snapshot, _longer_retention(retention, usual)) if last else None
    claim = f"The next cleanup ends {cleanup.lost_versions}"
    return [
        *findings,
        finding(
            "cleanup-ends-versions", Severity.NOTE, claim, evidence, cleanup.lost_versions, command=run, effect=effect
        ),
    ]


def _longer_retention(retention: Retention, usual: timedelta | None) -> timedelta:
    """A retention, in whole days, with which an earlier version outlives the next cleanup, and later ones: by the
    usual gap between commits, else twice what the nearest of those versions needs today."""
    keep = retention.policy.keep
    needs = retention.versions["needs_ms"]
    nearest = needs.filter(needs > keep // timedelta(milliseconds=1)).min()
    need = timedelta(milliseconds=nearest) if isinstance(nearest, int) else timedelta()
    longest = max(keep * 2, need * 2 if usual is None else max(usual * 3, need))
    return timedelta(days=-(-longest // timedelta(days=1)))


def _checkpoint(snapshot: Snapshot, log: pl.DataFrame) -> list[Finding]:
    """Where commits are numbered files: how many readers replay after the newest checkpoint."""
    newest = log.filter(pl.col("kind") == "checkpoint")["version"].cast(pl.Int64).max()
    commits = log.filter((pl.col("kind") == "commit") & pl.col("version").is_not_null())["version"]
    if commits.is_empty():
        return []
    last = newest if isinstance(newest, int) else -1
    since = int((commits > last).sum())
    text = snapshot.properties.get("delta.checkpointInterval", "")
    interval = int(text) if text.isdecimal() and 0 < len(text) < 9 and int(text) else CHECKPOINT_INTERVAL
    is_stale = since >= CHECKPOINT_TIMES * interval
    severity, state = (Severity.ATTENTION, "stale") if is_stale else (Severity.PASS, "recent")
    limits = f"expected every {interval:,}, stale from {CHECKPOINT_TIMES * interval:,}"
    evidence = f"{count_text(since, 'commit')} since {'the first' if last < 0 else f'v{last}'}; {limits}"
    claim = f"The checkpoint is {state}"
    if last < 0:
        claim = "There is no checkpoint" if is_stale else "There is no checkpoint yet"
    return [finding("checkpoint-age", severity, claim, evidence)]


def _log_size(snapshot: Snapshot, log: pl.DataFrame) -> list[Finding]:
    size, live = int(log["size"].sum()), snapshot.size_bytes
    is_large = live is not None and size >= LOG_BYTES and size >= LOG_SHARE * live
    evidence = count_text(log.height, "file")
    if live:
        much = f"{size / live:,.0f} times" if size >= 2 * live else f"{format_percent(size / live)} of"
        evidence += f", {much} the live data"
    severity = Severity.ATTENTION if is_large else Severity.PASS
    return [finding("log-size", severity, f"The log takes {format_bytes(size)}", evidence)]


def _tombstones(snapshot: Snapshot) -> list[Finding]:
    num_tombstones, live = snapshot.tombstones.height, snapshot.num_files
    if num_tombstones < TOMBSTONES_MIN or num_tombstones < TOMBSTONES_TIMES * live:
        return []
    claim = "The log lists more removed files than live ones"
    evidence = f"{count_text(num_tombstones, 'removed file')}, {live:,} live"
    return [finding("tombstones-exceed-files", Severity.ATTENTION, claim, evidence)]
