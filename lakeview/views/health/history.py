"""VERSIONS, COMMITS and lifetimes to findings about old versions, the cadence of loads, and loads out of line."""

from dataclasses import replace
from datetime import datetime

import polars as pl

from lakeview.model.errors import LakeviewError
from lakeview.model.findings import Finding, Severity
from lakeview.model.snapshot import Snapshot
from lakeview.views.health.kinds import EMPTIED, UNREADABLE, finding
from lakeview.views.partitions.keys import sequence_key
from lakeview.views.partitions.sizes import partition_sizes
from lakeview.views.partitions.writes import partition_arrivals
from lakeview.views.retention.remedies import command
from lakeview.views.timeline.branches import on_branch
from lakeview.views.timeline.commits import up_to
from lakeview.views.timeline.readability import LATE, ON_TIME, cadence, readability, readability_runs, runs_text
from lakeview.views.units import count_text, format_age, format_moment, format_version

_NO_REASON = "the log does not record why"
_REMEDIES = {
    "which is not read": "read it with an engine that reads this format",
    "outside the table and the allowed roots": "add its folder to LAKEVIEW_ROOTS if you trust this table",
}
"""What to do about reasons why a version cannot be read, by their last words, other than that a file is missing."""


def version_findings(versions: pl.DataFrame, version: int) -> list[Finding]:
    """Findings about versions that cannot be read: the selected one by a finding of its own, then the others."""
    ribbon = readability(versions)
    here = pl.col("version") == version
    own = ribbon.filter(here & (pl.col("state") != "kept"))
    others = ribbon.with_columns(state=pl.when(here & (pl.col("state") == "broken")).then(None).otherwise("state"))
    runs = readability_runs(others)
    findings = [
        _by_reason(
            finding(
                UNREADABLE,
                Severity.BROKEN,
                "This version cannot be read",
                reason or _NO_REASON,
                format_version(version),
            )
        )
        for reason in own["reason"]
    ]
    if (broken_runs := runs_text(runs, "broken")) is not None:
        reason = _last_reason(others, "broken", _NO_REASON)
        claim = f"History has a hole: {broken_runs} cannot be read"
        findings.append(_by_reason(finding("versions-unreadable", Severity.ATTENTION, claim, reason, broken_runs)))
    if (span := runs_text(runs, "gone")) is not None:
        reason = _last_reason(others, "gone", "older than the retained log")
        findings.append(finding("versions-gone", Severity.NOTE, f"{span} can no longer be read", reason, span))
    return findings


def _by_reason(unreadable: Finding) -> Finding:
    """The same with the remedy for its reason, where that is not a missing file."""
    remedies = (fix for reason, fix in _REMEDIES.items() if unreadable.evidence.endswith(reason))
    return replace(unreadable, remedy=next(remedies, unreadable.remedy))


def unreadable_finding(version: int, error: LakeviewError) -> Finding:
    """That a version cannot be opened, by the error in its way."""
    claim, place = "This version cannot be read", format_version(version)
    unread = finding(UNREADABLE, Severity.BROKEN, claim, error.message, place)
    return replace(unread, remedy=error.fix, effect=None)


def _last_reason(ribbon: pl.DataFrame, state: str, unknown: str) -> str:
    versions = ribbon.filter(pl.col("state") == state)
    version, reason = versions.select("version", "reason").row(-1)
    if reason is None:
        return unknown
    return str(reason) if versions.height == 1 else f"{format_version(version)}: {reason}"


def emptied_findings(snapshot: Snapshot, timeline: pl.DataFrame, now: datetime) -> list[Finding]:
    """A finding that a commit took the last rows of the table; none for one that never had rows, by TIMELINE. A table
    that was emptied before and filled again is one that its writers empty as a routine."""
    line = on_branch(up_to(timeline, snapshot.version))
    empty = line.select(((pl.col("files") == 0) | (pl.col("records") == 0)).fill_null(value=False)).to_series()
    if empty.all() or not empty[-1]:
        return []
    began = empty & ~empty.shift(1, fill_value=True)
    severity = Severity.ATTENTION if began.sum() == 1 else Severity.NOTE
    commit, before = line.row(began.arg_true()[-1], named=True), line.row(began.arg_true()[-1] - 1, named=True)
    moment = commit["timestamp"]
    details = [
        commit["operation"],
        None if moment is None else f"{format_age(now - moment)} ago, {format_moment(moment)} UTC",
        None if before["records"] is None else f"{count_text(before['records'], 'row')} before",
    ]
    since = format_version(commit["version"])
    by = "" if commit["writer"] is None else f", by {commit['writer']}"
    run = command("restore", snapshot, version=str(before["version"]))
    claim, evidence = f"The table is empty since {since}{by}", "; ".join(filter(None, details))
    return [finding(EMPTIED, severity, claim, evidence, since, command=run, commit=commit["version"])]


def cadence_findings(commits: pl.DataFrame, now: datetime) -> list[Finding]:
    """A finding that says whether the next load is late; none without a cadence."""
    rhythm = cadence(commits, now)
    if rhythm.usual is None:
        return []
    evidence = (
        f"{format_age(rhythm.age)} ago, expected every {format_age(rhythm.usual)}; {format_moment(rhythm.last)} UTC"
    )
    if rhythm.late:
        return [finding(LATE, Severity.ATTENTION, "No new data for longer than expected", evidence)]
    return [finding(ON_TIME, Severity.PASS, "The last commit is on time", evidence)]


def sequence_arrivals(
    snapshot: Snapshot, lifetimes: pl.DataFrame | None, commits: pl.DataFrame, arrivals: pl.DataFrame | None
) -> pl.DataFrame | None:
    """PARTITION_ARRIVALS, these or computed ones; None unless partitions can be a sequence: one key, three or more."""
    if lifetimes is None or sequence_key(snapshot) is None:
        return None
    sizes = partition_sizes(snapshot)
    if sizes.height < 3:
        return None
    return partition_arrivals(sizes, snapshot.files, lifetimes, commits) if arrivals is None else arrivals


def arrival_findings(arrivals: pl.DataFrame | None) -> list[Finding]:
    """A finding about the partition of PARTITION_ARRIVALS that came latest after later ones."""
    late = pl.DataFrame() if arrivals is None else arrivals.filter("late").sort("lag", descending=True)
    if late.is_empty():
        return []
    row = late.row(0, named=True)
    more = f"; {count_text(late.height - 1, 'other partition')} late too" if late.height > 1 else ""
    first = f"{format_version(row['first_version'])} on {format_moment(row['first_written'])} UTC"
    claim = f"{row['partition_text']} arrived {row['note']}"
    evidence = f"first rows by {first}, after later ones{more}"
    return [finding("partition-late", Severity.ATTENTION, claim, evidence, row["partition_text"])]
