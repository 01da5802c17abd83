"""Every law over every snapshot: metadata and manifests to AUDIT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from lakeview.iceberg.audit.laws import LAWS, Totals, summaries_add_up
from lakeview.iceberg.audit.steps import Step, Story, read_steps
from lakeview.iceberg.manifests.tree import Tree
from lakeview.iceberg.metadata.commits import commits
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.model.audit_cases import Case, unknowable
from lakeview.model.frames import AUDIT
from lakeview.model.laws import LAWS as EVERY_LAW

_SUMMARY = "summary-adds-up"


def audit(metadata: Metadata, tree: Tree, start: int | None = None, end: int | None = None) -> pl.DataFrame:
    """AUDIT of all snapshots, those of branches included, or of those between two in the order of commits.

    Costs every manifest list, and each manifest once. A snapshot whose manifests cannot be read is unknowable.
    """
    steps: list[Step] = []
    cases: list[tuple[Case, str]] = []
    for step in read_steps(metadata, tree):
        if isinstance(step, Step):
            steps.append(step)
        else:
            cases.append((unknowable(step[0].snapshot_id, step[1]), _SUMMARY))
    if steps:
        cases += _cases(Story(metadata, steps))
    names = ("version", "verdict", "reason", "expected", "found", "path", "law")
    verdicts = pl.DataFrame([(*case, law) for case, law in cases], schema={n: AUDIT[n] for n in names}, orient="row")
    heads = commits(metadata).select("version", "position", "timestamp", "operation", "engine", "client_version")
    order = {law: place for place, law in enumerate(EVERY_LAW)}
    rows = verdicts.join(heads, on="version", how="left").sort(
        "position", pl.col("law").replace_strict(order, return_dtype=pl.Int64)
    )
    places = dict(heads.select("version", "position").iter_rows())
    first, last = (None if v is None else places[v] for v in (start, end))
    if first is not None:
        rows = rows.filter(pl.col("position") >= first)
    if last is not None:
        rows = rows.filter(pl.col("position") <= last)
    return rows.select(AUDIT.names()).cast(AUDIT)


def _cases(story: Story) -> Iterator[tuple[Case, str]]:
    totals: dict[int, Totals] = {}
    for step in story.steps:
        for law, judge in LAWS.items():
            yield from ((case, law) for case in judge(step, story))
        own = totals[step.snapshot.snapshot_id] = _totals(step, totals)
        before = {} if step.base or step.parent is None else totals.get(step.parent.snapshot_id, {})
        yield from ((case, _SUMMARY) for case in summaries_add_up(step, own, before))


def _totals(step: Step, earlier_totals: Mapping[int, Totals]) -> Totals:
    """Live files and rows of a snapshot, by their names in summaries: its parent's, and what came and went."""
    parent = None if step.base or step.parent is None else earlier_totals.get(step.parent.snapshot_id)
    totals: dict[str, int | None] = {}
    for key, content, counts_rows in _TOTALS:
        before = 0 if parent is None else parent[key]
        change: int | None = 0
        for frame, sign in ((step.came, 1), (step.went, -1)):
            part = frame.filter(content)
            number = part.height if not counts_rows else None if part["records"].null_count() else part["records"].sum()
            change = None if change is None or number is None else change + sign * int(number)
        totals[key] = None if before is None or change is None else before + change
    return totals


_TOTALS = (
    ("total-data-files", pl.col("content") == 0, False),
    ("total-records", pl.col("content") == 0, True),
    ("total-delete-files", pl.col("content") != 0, False),
)
