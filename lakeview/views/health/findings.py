"""Snapshots and frames to findings, worst first, each with its evidence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from lakeview.model.findings import Finding, Severity
from lakeview.model.snapshot import Snapshot
from lakeview.views.audit import audit_findings
from lakeview.views.health.history import (
    arrival_findings,
    cadence_findings,
    emptied_findings,
    sequence_arrivals,
    version_findings,
)
from lakeview.views.health.kinds import EMPTIED, UNREADABLE, finding
from lakeview.views.health.layout import contradiction_findings, file_findings, partition_findings, statistics_findings
from lakeview.views.health.maintenance import history_findings, log_findings
from lakeview.views.quality.anomalies import NO_CHANGES, anomalies, anomaly_findings, normal_finding
from lakeview.views.quality.lateness import lateness_findings
from lakeview.views.quality.verdicts import ConstraintVerdicts, Verdict
from lakeview.views.retention.remedies import restore_command
from lakeview.views.retention.simulation import Retention
from lakeview.views.timeline.commits import timeline, up_to
from lakeview.views.timeline.readability import NO_NEWER_EVENTS, ON_TIME
from lakeview.views.units import count_text

MOST_RULES_NAMED = 3

ORDER = (Severity.BROKEN, Severity.ATTENTION, Severity.NOTE, Severity.PASS)

OPEN = (Severity.BROKEN, Severity.ATTENTION)
"""The severities of findings that ask for an action."""

NUMBERS = ("nothing", "one thing", "two things", "three things", "four things", "five things", "six things")

FINDINGS = pl.Schema(
    {
        "id": pl.String(),
        "severity": pl.String(),
        "title": pl.String(),
        "evidence": pl.String(),
        "remedy": pl.String(),
        "command": pl.String(),
        "effect": pl.String(),
        "threshold": pl.String(),
        "place": pl.String(),
        "rule": pl.String(),
        "page": pl.String(),
        "commit": pl.Int64(),
    }
)
"""One row a finding, as `Finding` declares them; `title` is its claim."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The input of `findings`: a Snapshot, and where they were read VERSIONS, COMMITS, STATISTICS, LIFETIMES, what a
    cleanup finds, LOG_FILES, the proofs of constraints, PARTITION_ARRIVALS, SUDDEN, CONTRADICTIONS and AUDIT.

    What is None is not judged; without SUDDEN loads are judged by their rows alone."""

    snapshot: Snapshot
    versions: pl.DataFrame | None = None
    commits: pl.DataFrame | None = None
    statistics: pl.DataFrame | None = None
    lifetimes: pl.DataFrame | None = None
    retention: Retention | None = None
    log: pl.DataFrame | None = None
    rules: ConstraintVerdicts | None = None
    arrivals: pl.DataFrame | None = None
    loads: pl.DataFrame | None = None
    contradictions: pl.DataFrame | None = None
    audit: pl.DataFrame | None = None


def findings(evidence: Evidence, now: datetime) -> list[Finding]:
    """Every finding, worst first. PARTITION_ARRIVALS are computed from lifetimes and commits unless they are given."""
    snapshot = evidence.snapshot
    every = [] if evidence.rules is None else rule_findings(evidence.rules)
    every += _commit_findings(evidence, now)
    without = {"no-files"} if any(f.id == EMPTIED for f in every) else set()
    every += [f for f in file_findings(snapshot) if f.id not in without]
    every += [*statistics_findings(snapshot, evidence.statistics)]
    every += contradiction_findings(snapshot, evidence.contradictions)
    every += [*partition_findings(snapshot), *log_findings(snapshot, evidence.log)]
    every += [] if evidence.audit is None else audit_findings(evidence.audit)
    return worst_first([*every, *past_findings(evidence, now)])


def _commit_findings(evidence: Evidence, now: datetime) -> list[Finding]:
    """Findings about loads: anomalies, whether new data is on time, and late partitions."""
    commits, snapshot = evidence.commits, evidence.snapshot
    if commits is None:
        return []
    arrivals = sequence_arrivals(snapshot, evidence.lifetimes, commits, evidence.arrivals)
    line = timeline(commits, evidence.lifetimes, arrivals=arrivals)
    changes = NO_CHANGES if evidence.loads is None else evidence.loads
    bad = anomalies(line, changes, snapshot.version)
    every = anomaly_findings(bad, now, restore_command(snapshot, line, bad))
    until_then = pl.col("version").is_in(up_to(line, snapshot.version)["version"].implode())
    every += [] if every else normal_finding(changes.filter(until_then))
    emptied_tables = emptied_findings(snapshot, line, now)
    every = [*(each for each in emptied_tables if each.commit not in {bad.commit for bad in every}), *every]
    return [*every, *lateness_findings(changes), *cadence_findings(commits, now), *arrival_findings(arrivals)]


def past_findings(evidence: Evidence, now: datetime) -> list[Finding]:
    """Those of `findings` about old versions: which can be read (VERSIONS), and what retaining them costs."""
    versions, retention = evidence.versions, evidence.retention
    past = [] if versions is None else version_findings(versions, evidence.snapshot.version)
    if retention is not None:
        past += history_findings(evidence.snapshot, retention, evidence.commits, now)
    return worst_first(past)


def findings_frame(findings: Sequence[Finding]) -> pl.DataFrame:
    """FINDINGS of a list, in its order."""
    rows = [
        {name: getattr(each, "claim" if name == "title" else name) for name in FINDINGS}
        | {"severity": each.severity.value}
        for each in findings
    ]
    return pl.DataFrame(rows, schema=FINDINGS, orient="row")


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by severity, stable; maintenance comes last: that a cleanup ends versions holds for most tables."""
    return sorted(findings, key=lambda f: (ORDER.index(f.severity), f.page == "health"))


def verdict(findings: Sequence[Finding], *, is_latest: bool = True) -> str:
    """One sentence over the findings: `Readable and fresh, but three things need attention`; only the latest version is
    fresh."""
    ids = {f.id for f in findings}
    is_fresh = is_latest and ON_TIME in ids and NO_NEWER_EVENTS not in ids
    state = "Readable and fresh" if is_fresh else "Readable"
    num_broken, attention = open_findings(findings)
    parts = []
    if num_broken:
        parts.append(f"{_number(num_broken)} {'is' if num_broken == 1 else 'are'} broken")
    if attention:
        things = _number(attention).split(" ")[0] if num_broken else _number(attention)
        parts.append(f"{things} {'needs' if attention == 1 else 'need'} attention")
    if UNREADABLE in ids:
        return f"Not readable: {' and '.join(parts)}"
    if parts:
        return f"{state}, but {' and '.join(parts)}"
    return f"{state}, and nothing needs attention"


def open_findings(findings: Sequence[Finding]) -> tuple[int, int]:
    """How many of the findings are broken, and how many need attention."""
    num_broken, attention = (sum(f.severity is s for f in findings) for s in (Severity.BROKEN, Severity.ATTENTION))
    return num_broken, attention


def headline(findings: Sequence[Finding]) -> str:
    """The worst finding's claim, or that nothing needs attention: what is said of a table first."""
    worst = next(iter(worst_first(findings)), None)
    return worst.claim if worst is not None and worst.severity in OPEN else verdict(findings)


def rule_findings(verdicts: ConstraintVerdicts) -> list[Finding]:
    """One finding about the table's constraints that some rows are proved to violate; none without such rows."""
    rules = verdicts.rules.filter(pl.col("verdict") == Verdict.VIOLATED.value)
    if rules.is_empty():
        return []
    claim = f"{rules['name'][0]} is violated"
    if rules.height > 1:
        claim = f"{rules.height:,} of the table's constraints are violated"
    texts = [
        f"{row['rule']} in {'' if row['certainty'] == 'exact' else 'at least '}"
        f"{count_text(row['files_violating'], 'file')}, {count_text(row['records_violating'], 'row')} or more"
        for row in rules.head(MOST_RULES_NAMED).iter_rows(named=True)
    ]
    more = f"; and {rules.height - MOST_RULES_NAMED:,} more" if rules.height > MOST_RULES_NAMED else ""
    return [finding("constraint-violated", Severity.ATTENTION, claim, f"{'; '.join(texts)}{more}")]


def _number(n: int) -> str:
    return NUMBERS[n] if n < len(NUMBERS) else f"{n:,} things"
