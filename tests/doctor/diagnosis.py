"""A table to its diagnosis, and a sound table to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakeview.model.findings import Finding, Severity
from tests.builders.actions import Action, info
from tests.builders.history import DeltaHistory
from tests.builders.opening import open_delta_table

TROUBLE = (Severity.BROKEN, Severity.ATTENTION)


def rows(history: DeltaHistory, name: str, ids: Sequence[int] = (1, 2, 3), **more: Any) -> Action:
    """A data file with a column id and its statistics; returns the add action."""
    stats = {
        "numRecords": len(ids),
        "minValues": {"id": min(ids)},
        "maxValues": {"id": max(ids)},
        "nullCount": {"id": 0, "city": len(ids)},
    }
    columns = {"id": list(ids), "city": [None] * len(ids)}
    return history.data(name, columns, stats=more.pop("stats", stats), **more)


def write(history: DeltaHistory, *names: str) -> DeltaHistory:
    """One commit that adds a file of each name, and says so."""
    adds = [rows(history, name) for name in names]
    metrics = {
        "numFiles": str(len(adds)),
        "numOutputRows": str(3 * len(adds)),
        "numOutputBytes": str(sum(a["add"]["size"] for a in adds)),
    }
    commit_info = info(
        operation="WRITE", operationMetrics=metrics, readVersion=history.version, timestamp=1_700_000_000_000
    )
    return history.commit(commit_info, *adds)


def sound(history: DeltaHistory, **create: Any) -> DeltaHistory:
    """A table with nothing wrong: v0 creates it, v1 and v2 add a file each."""
    history.create(**create)
    return write(write(history, "a.parquet"), "b.parquet")


def diagnosis(history: DeltaHistory) -> list[Finding]:
    """Everything the doctor finds, what is well left out."""
    return [f for f in open_delta_table(history.address).check() if f.severity is not Severity.PASS]


def one_finding(findings: list[Finding], severity: Severity, claim: str, evidence: str) -> list[Finding]:
    """The findings with this claim: one, of this severity and evidence, with its rule and place."""
    mine = [f for f in findings if claim in f.claim]
    assert [f.severity for f in mine] == [severity], findings
    assert evidence in mine[0].evidence, mine[0]
    assert mine[0].rule is not None
    assert mine[0].place is not None
    return mine
