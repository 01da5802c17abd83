"""Summaries and findings of an audit."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl

from lakeview import views
from lakeview.model.findings import Severity
from lakeview.model.frames import AUDIT

AT = datetime(2026, 3, 1, tzinfo=UTC)


def rows(*cases: tuple[int, str, str, str | None]) -> pl.DataFrame:
    """AUDIT of (version, law, verdict, engine)."""
    base: dict[str, Any] = dict.fromkeys(AUDIT.names())
    audit_rows = [
        base | {"version": v, "position": v, "timestamp": AT, "operation": "OPTIMIZE", "law": law, "verdict": verdict,
                "engine": engine, "reason": None if verdict == "proven" else "rows were lost", "expected": "5",
                "found": "4"}
        for v, law, verdict, engine in cases
    ]  # fmt: skip
    return pl.DataFrame(audit_rows, schema=AUDIT)


ROWS, METRICS = "rearrangement-conserves-rows", "metrics-equal-actions"
CASES = rows(
    (1, ROWS, "proven", "A 1"), (2, ROWS, "violated", "A 1"), (3, ROWS, "violated", "A 1"),
    (3, METRICS, "violated", "B 2"), (4, ROWS, "unknowable", None),
)  # fmt: skip


def test_violations_come_first_and_laws_are_counted() -> None:
    summary = views.audit
    assert summary.worst_first(CASES)["version"].to_list() == [3, 3, 2, 4, 1]
    counts = summary.law_counts(CASES)
    assert counts.select("law", "violated", "unknowable", "proven").rows() == [(ROWS, 2, 1, 1), (METRICS, 1, 0, 0)]
    assert summary.blame(CASES).select("engine", "commits", "first").rows() == [("A 1", 2, 2), ("B 2", 1, 3)]
    assert summary.reasons(CASES).select("law", "reason", "commits").rows() == [(ROWS, "rows were lost", 1)]
    assert summary.sentence(CASES) == "4 commits: 3 violations in 2 commits, 1 verdict unknowable, 1 proven"


def test_one_finding_a_law_and_engine() -> None:
    findings = views.audit.audit_findings(CASES)
    assert [(f.severity, f.commit) for f in findings] == [(Severity.BROKEN, 2), (Severity.ATTENTION, 3)]
    assert findings[0].evidence == "v2 OPTIMIZE: rows were lost: expected 5, found 4, and 1 further commit"
    assert findings[0].claim == "A commit of A 1 violates a law: a commit with dataChange=false conserves rows"
    assert findings[0].remedy
    assert findings[0].rule == "Delta protocol, Add File and Remove File"


def test_nothing_audited_is_nothing_found() -> None:
    empty = CASES.clear()
    assert views.audit.audit_findings(empty) == []
    assert views.audit.law_counts(empty).is_empty()
    assert views.audit.sentence(empty) == "0 commits: no violation, 0 verdicts unknowable, 0 proven"
