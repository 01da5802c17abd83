"""A finding that cites a section of the Iceberg specification."""

from __future__ import annotations

from lakeview.model.findings import Finding, Severity


def spec_finding(
    finding_id: str, severity: Severity, claim: str, evidence: str, section: str, place: str | None = None
) -> Finding:
    """A finding of the log doctor. `section`: of the specification, whose rule is broken."""
    remedy = None if severity is Severity.NOTE else "have the table repaired by the engine that owns it"
    return Finding(finding_id, severity, claim, evidence, None, place, f"Iceberg spec, {section}", remedy, "timeline")
