"""What commits say they did against what their actions do."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from lakeview.delta.audit.metrics import FIGURES, count_empty_files, differences, is_partial_write
from lakeview.delta.lint.facts import LogFacts
from lakeview.delta.lint.report import differing, finding, some
from lakeview.delta.log.paths import commit_name
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import count_text


def agree_with_actions(facts: LogFacts) -> Iterator[Finding]:
    """operationMetrics, written as numbers or as text, against the file actions of the same commit."""
    commits = facts.commits.filter(pl.col("operation").is_in(list(FIGURES)))
    sums = {row["version"]: row for row in _sums(facts).iter_rows(named=True)}
    nothing = dict.fromkeys(("added", "removed", "rows", "bytes"), 0)
    wrong: list[tuple[int, str]] = []
    empty: list[tuple[int, str]] = []
    columns = commits.select("version", "operation", "parameters", "metrics", "cdcs")
    for version, operation, parameters, metrics, change_files in columns.iter_rows():
        actions = sums.get(version, nothing)
        # with deletion vectors engines do not count a file that only got a new vector, or count it in another way
        if metrics is None or actions.get("vectors") or is_partial_write(operation, parameters):
            continue
        pairs = list(differences(operation, metrics, actions, change_files))
        if pairs:
            (empty if count_empty_files(pairs) else wrong).append(
                (version, f"v{version} {operation}: {differing(pairs)}")
            )
    if empty:
        yield finding(
            "metrics-count-empty-files",
            Severity.NOTE,
            f"{count_text(len(empty), 'commit counts', 'commits count')} more files than {_its(len(empty))} actions"
            " add",
            f"{some([text for _, text in empty], limit=1)}; Spark counts files without rows that it then leaves out",
            section="Commit Provenance Information",
            place=commit_name(empty[0][0]),
        )
    if wrong:
        yield finding(
            "metrics-disagree",
            Severity.ATTENTION,
            f"{count_text(len(wrong), 'commit did', 'commits did')} something else than {_its(len(wrong))} metrics say",
            some([text for _, text in wrong]),
            section="Commit Provenance Information",
            place=commit_name(wrong[0][0]),
            remedy="go by the actions; the writer counts wrongly, or the commit was changed afterwards",
        )


def _its(number: int) -> str:
    return "its" if number == 1 else "their"


def _sums(facts: LogFacts) -> pl.DataFrame:
    """Files added and removed, rows and bytes added by version; rows are null where a file does not count them."""
    added = pl.col("added")
    rows = pl.col("records").filter(added)
    return facts.events.group_by("version").agg(
        added.sum().cast(pl.Int64).alias("added"),
        (~added).sum().cast(pl.Int64).alias("removed"),
        pl.when(rows.null_count() == 0).then(rows.sum()).alias("rows"),
        pl.col("size").filter(added).sum().alias("bytes"),
        pl.col("deletion_vector").is_not_null().any().alias("vectors"),
    )
