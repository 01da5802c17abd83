"""Findings and TIMELINE to the sentences that say why one commit stands out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from lakeview.model.findings import Finding, Severity
from lakeview.views.units import format_age, format_version

_LOAD = "load-anomaly"
"""How the ids of findings about anomalous loads begin."""


def reasons(timeline: pl.DataFrame, findings: Sequence[Finding], version: int) -> list[tuple[str, str]]:
    """Each reason as one sentence, and the colour of its meaning; the note of TIMELINE where no finding has one.

    Red: the load was wrong, repaired or not; orange: it asks for attention; gray: context.
    """
    commit = timeline.row(by_predicate=pl.col("version") == version, named=True)
    repaired = _repair(timeline, commit["timestamp"], commit["taken_back_by"])
    about = [finding for finding in findings if finding.commit == version and finding.severity is not Severity.PASS]
    sentences = [
        (f"{_claim(finding, commit['taken_back_by'])}{repaired if finding.id.startswith(_LOAD) else ''}", "red")
        if finding.id.startswith(_LOAD)
        else (f"{finding.claim}; {finding.evidence}" if finding.evidence else finding.claim, "orange")
        for finding in about
    ]
    if sentences or not commit["note"]:
        return sentences
    if not commit["suspicious"]:
        return [(commit["note"], "gray")]
    return [(f"{(commit['label'] or 'unusual load').capitalize()}: {commit['note']}", "red" if repaired else "orange")]


def _claim(finding: Finding, back: int | None) -> str:
    """`Bad load: delay reaches 9,000, expected at most 900; dest is null in 9.7 %`: claim and evidence, without the
    commit's version, writer and time, which stand beside it."""
    first = finding.claim.removeprefix(f"{format_version(finding.commit)}: ")
    _, _, rest = finding.evidence.partition(" UTC")
    return f"Bad load: {first}{rest.removesuffix('' if back is None else f'; repaired by {format_version(back)}')}"


def _repair(timeline: pl.DataFrame, bad: datetime | None, back: int | None) -> str:
    """`; repaired by v5, data-desk, 5 days later`; empty for a commit that was not reverted."""
    if back is None:
        return ""
    by = timeline.filter(pl.col("version") == back).select("writer", "timestamp")
    parts = [f"; repaired by {format_version(back)}"]
    for writer, moment in by.iter_rows():
        parts += [writer] if writer else []
        parts += [f"{format_age(moment - bad)} later"] if moment is not None and bad is not None else []
    return ", ".join(parts)
