"""AUDIT to findings: what was violated, one finding a law and engine, with the commit to blame and the remedy."""

from __future__ import annotations

from typing import Any

import polars as pl

from lakeview.model.findings import Finding, Severity
from lakeview.model.laws import LAWS
from lakeview.views.audit.summary import violations
from lakeview.views.units import count_text, format_version

_COUNTS_ONLY = frozenset(
    {"metrics-equal-actions", "summary-adds-up", "in-commit-timestamps-increase", "sequence-numbers-increase"}
)
"""Laws whose violation leaves the table's rows as they are."""

_NO_ENGINE = "an engine that is not recorded"


def audit_findings(audit: pl.DataFrame) -> list[Finding]:
    """One finding for each law that commits of an engine violate, the first such commit to blame; empty without any."""
    wrong = violations(audit).sort("position", maintain_order=True)
    groups = wrong.group_by("law", "engine", "client_version", maintain_order=True)
    return [_finding(rows) for _, rows in groups]


def _finding(rows: pl.DataFrame) -> Finding:
    first: dict[str, Any] = rows.row(0, named=True)
    law = LAWS[first["law"]]
    commits = rows["version"].n_unique()
    others = f", and {count_text(commits - 1, 'further commit')}" if commits > 1 else ""
    operation = f" {first['operation']}" if first["operation"] else ""
    figures = f": expected {first['expected']}, found {first['found']}" if first["expected"] is not None else ""
    path = f" ({first['path']})" if first["path"] else ""
    return Finding(
        "commit-violates-law",
        Severity.ATTENTION if law.id in _COUNTS_ONLY else Severity.BROKEN,
        f"A commit of {_engine(first)} violates a law: {law.title[0].lower()}{law.title[1:]}",
        f"{format_version(first['version'])}{operation}: {first['reason']}{figures}{path}{others}",
        place=format_version(first["version"]),
        rule=law.rule,
        remedy=law.remedy,
        page="timeline",
        commit=first["version"],
    )


def _engine(row: dict[str, Any]) -> str:
    names = [str(row[name]) for name in ("engine", "client_version") if row[name]]
    # delta-rs repeats its version in both
    return " ".join(names[:1] if len(names) == 2 and names[0].endswith(names[1][-5:]) else names) or _NO_ENGINE
