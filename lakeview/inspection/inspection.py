"""The inspection of a table: the answers about one of its versions, and the findings that follow from them; a
table of a lake to its row of LAKE."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

import polars as pl

from lakeview import views
from lakeview.inspection.answers import Answers
from lakeview.inspection.frames import TableFrames, cache_answer
from lakeview.model.errors import CorruptTableError, LakeviewError, UnsupportedTableError
from lakeview.model.findings import Finding, Severity
from lakeview.model.html import inspection_html
from lakeview.model.table import Table
from lakeview.views.health.findings import Evidence, findings_frame
from lakeview.views.lake import LakeEntry

_MOST_SHOWN = 5
"""Findings that a notebook shows of an inspection."""

MAX_AUDIT_BYTES = 8 << 20
"""Of a longer log the commits are audited when the user asks: this much takes about half a second."""


class Inspection(Answers):
    """Answers and findings about one version of a table, from its log and statistics alone.

    Frames hold what the views declare; a property that reads the log may raise any LakeviewError. Without a `version`
    it is about the latest version of the branch or tag `ref`, and follows `table.refresh()`. Thread-safe.
    """

    def __repr__(self) -> str:
        return f"Inspection({self.frames.table.address!r}, version={self.version})"

    def _repr_html_(self) -> str:
        table, version = self.frames.table, self.version
        try:
            findings = self.health_findings()
        except LakeviewError as error:
            return inspection_html(table.address, table.format, version, error.message, (), 0)
        worst = [f for f in findings if f.severity in views.health.findings.OPEN][:_MOST_SHOWN]
        more = sum(f.severity is not Severity.PASS for f in findings) - len(worst)
        verdict = views.health.findings.verdict(findings, is_latest=version == self.frames.latest)
        return inspection_html(table.address, table.format, version, verdict, worst, more)

    def health(self) -> pl.DataFrame:
        """FINDINGS of `health_findings`: id, severity, title, evidence, remedy, command and more."""
        return findings_frame(self.health_findings())

    def health_findings(self) -> list[Finding]:
        """The findings, worst first; of a version that cannot be opened the one finding that says so."""
        self.list_ahead()
        try:
            _ = self.snapshot.files
        except (CorruptTableError, UnsupportedTableError) as error:
            return [views.health.history.unreadable_finding(self.version, error)]
        return self.findings()

    def findings(self) -> list[Finding]:
        """The findings about this version, worst first."""
        self.list_ahead()
        present = self.present_findings()  # an error of the version itself is raised before one of its past
        return views.health.findings.worst_first([*present, *self.past_findings(), *self.audit_findings()])

    def quality_findings(self) -> list[Finding]:
        """Violated constraints, loads that are anomalies, and whether new data is on time."""
        return views.quality.anomalies.quality_findings(self.present_findings())

    @cache_answer("version", "frames.latest", "frames.ref", "branch", seconds=60)
    def present_findings(self) -> Sequence[Finding]:
        """Those of `findings` that do not need the readability of every version."""
        snapshot = self.snapshot
        evidence = Evidence(
            snapshot,
            commits=self.branch_commits(),
            statistics=self.files_without_statistics() if self.is_small else None,
            lifetimes=self.frames.lifetimes,
            log=self.frames.of_log("log files"),
            rules=self.constraints(),
            arrivals=self.arrivals() if views.partitions.keys.partition_names(snapshot) else None,
            loads=self.quality(),
            contradictions=self.contradictions() if self.is_small else None,
        )
        return views.health.findings.findings(evidence, self.frames.clock())

    @cache_answer("version", "frames.latest", seconds=60)
    def past_findings(self) -> Sequence[Finding]:
        """Those of `findings` that need the readability of every version."""
        evidence = Evidence(
            self.frames.snapshot(self.version),
            versions=self.frames.of_log("readable versions"),
            retention=self.known_retention(),
            commits=self.branch_commits(),
        )
        return views.health.findings.past_findings(evidence, self.frames.clock())

    def audit_findings(self) -> list[Finding]:
        """The laws that commits violate, by law and engine; none where the audit is asked for."""
        audit = self.audit_at_once()
        return [] if audit is None else views.audit.audit_findings(audit)

    @property
    def is_audited_at_once(self) -> bool:
        """True if the log is so short that its commits are audited without being asked."""
        files = self.frames.of_log("log files")
        return not files.is_empty() and int(files["size"].sum()) <= MAX_AUDIT_BYTES

    def audit_at_once(self) -> pl.DataFrame | None:
        """AUDIT; None for a long log, whose audit is asked for, and for one that cannot be read whole."""
        try:
            return self.audit() if self.is_audited_at_once else None
        except LakeviewError:  # a log that cannot be read whole is the log doctor's matter
            return None

    def lake_evidence(self) -> Evidence:
        """The Evidence by which a table is judged among many; of a large table without the whole log or statistics."""
        frames, snapshot = self.frames, self.snapshot
        newest = Evidence(snapshot, versions=frames.of_log("readable versions"), commits=self.branch_commits())
        try:
            newest = replace(newest, log=frames.of_log("log files"))  # at most one listing
            if not views.lake.is_shallow(snapshot, frames.history):
                return newest
            evidence = replace(newest, lifetimes=frames.lifetimes, retention=self.retention_simulation())
            if not views.lake.has_few_statistics(snapshot):
                return evidence
            statistics = frames.recorded_statistics(self.version)
            return replace(
                evidence,
                statistics=statistics,
                rules=self.constraints(),
                loads=self.quality(),
                contradictions=self.contradictions(),
                audit=self.audit_at_once(),
            )
        except LakeviewError:  # the newest version can be read, but not the whole log
            return newest


def read_entry(entry: LakeEntry, open_table: Callable[[str], Table], now: datetime) -> LakeEntry:
    """The entry with all that LAKE tells of a table, judged at this moment; `open_table`: its address to the table."""
    try:
        look = Inspection(TableFrames(open_table(entry.address), clock=lambda: now))
        return views.lake.lake_entry(entry, look.lake_evidence(), now)
    except LakeviewError as error:
        return views.lake.lake_failure(entry, error)
