"""What the findings about one version are derived from, and the findings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakeview import views
from lakeview.model.errors import CorruptTableError, LakeviewError, UnsupportedTableError
from lakeview.model.findings import Finding
from lakeview.views.health.findings import Evidence

if TYPE_CHECKING:
    from lakeview.inspection.inspection import Inspection


def with_unreadable(look: Inspection) -> list[Finding]:
    """The findings about a version; of one that cannot be opened the one that says so."""
    try:
        _ = look.snapshot.files
    except (CorruptTableError, UnsupportedTableError) as error:
        return [views.health.history.unreadable_finding(look.version, error)]
    return look.findings()


def past(look: Inspection) -> list[Finding]:
    """The findings that need the readability of every version."""
    evidence = Evidence(
        look.frames.snapshot(look.version),
        versions=look.frames.of_log("readable versions"),
        retention=look.retention_simulation(),
        commits=look.branch_commits(),
    )
    return views.health.findings.past_findings(evidence, look.frames.clock())


def present(look: Inspection) -> list[Finding]:
    """The findings that do not need the readability of every version."""
    snapshot = look.snapshot
    evidence = Evidence(
        snapshot,
        commits=look.branch_commits(),
        statistics=look.files_without_statistics() if look.is_small else None,
        lifetimes=look.frames.lifetimes,
        log=look.frames.of_log("log files"),
        rules=look.constraints(),
        arrivals=look.arrivals() if snapshot.partition_columns else None,
        loads=look.quality(),
        contradictions=look.contradictions() if look.is_small else None,
    )
    return views.health.findings.findings(evidence, look.frames.clock())


def lake_evidence(look: Inspection) -> Evidence:
    """The Evidence by which a table is judged among many; of a large table without the whole log or statistics."""
    frames, snapshot = look.frames, look.snapshot
    newest = Evidence(snapshot, versions=frames.of_log("readable versions"), commits=look.branch_commits())
    try:
        newest = replace(newest, log=frames.of_log("log files"))  # at most one listing
        if not views.lake.is_shallow(snapshot, frames.history):
            return newest
        evidence = replace(newest, lifetimes=frames.lifetimes, retention=look.retention_simulation())
        if not views.lake.has_few_statistics(snapshot):
            return evidence
        statistics = frames.recorded_statistics(look.version)
        return replace(
            evidence,
            statistics=statistics,
            rules=look.constraints(),
            loads=look.quality(),
            contradictions=look.contradictions(),
            audit=look.audit_at_once(),
        )
    except LakeviewError:  # the newest version can be read, but not the whole log
        return newest
