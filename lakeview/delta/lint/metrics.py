"""What commits say they did against what their actions do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from lakeview.delta.lint.commit_rows import long
from lakeview.delta.lint.facts import LogFacts
from lakeview.delta.lint.report import counted, differing, finding, some
from lakeview.delta.log.paths import commit_name
from lakeview.model.findings import Finding, Severity

_WRITES = ("WRITE", "CREATE TABLE AS SELECT", "REPLACE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT")
_WRITE_METRICS = {
    "numFiles": "added", "numOutputRows": "rows", "numOutputBytes": "bytes", "numRemovedFiles": "removed",
    "num_added_files": "added", "num_added_rows": "rows", "num_removed_files": "removed",
}  # fmt: skip
_STREAMED = {
    "numAddedFiles": "added", "numRemovedFiles": "removed", "numOutputRows": "rows", "numOutputBytes": "bytes",
}  # fmt: skip
_CHANGED = {
    "numAddedFiles": "added", "numRemovedFiles": "removed", "num_added_files": "added", "num_removed_files": "removed",
}  # fmt: skip
_MERGED = {
    "numTargetFilesAdded": "added", "numTargetFilesRemoved": "removed",
    "num_target_files_added": "added", "num_target_files_removed": "removed",
}  # fmt: skip
_COMPACTED = {
    "numAddedFiles": "added", "numRemovedFiles": "removed", "numFilesAdded": "added", "numFilesRemoved": "removed",
    "numAddedBytes": "bytes",
}  # fmt: skip
_FIGURES: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(_WRITES, _WRITE_METRICS),
    "STREAMING UPDATE": _STREAMED,
    "DELETE": _CHANGED,
    "UPDATE": _CHANGED,
    "MERGE": _MERGED,
    "OPTIMIZE": _COMPACTED,
    "REORG": _COMPACTED,
}
"""Operation -> metric -> what of the actions it counts. Metrics that engines count in different ways are left out."""

_WITH_CHANGE_FILES = ("num_added_files", "num_target_files_added")
"""Metrics in which delta-rs counts the files of a change data feed as well."""


def agree_with_actions(facts: LogFacts) -> Iterator[Finding]:
    """operationMetrics, written as numbers or as text, against the file actions of the same commit."""
    told = facts.commits.filter(pl.col("operation").is_in(list(_FIGURES)))
    sums = {row["version"]: row for row in _sums(facts).iter_rows(named=True)}
    nothing = dict.fromkeys(("added", "removed", "rows", "bytes"), 0)
    wrong: list[tuple[int, str]] = []
    empty: list[tuple[int, str]] = []
    columns = told.select("version", "operation", "parameters", "metrics", "cdcs")
    for version, operation, parameters, metrics, change_files in columns.iter_rows():
        actions = sums.get(version, nothing)
        # with deletion vectors engines do not count a file that only got a new vector, or count it in another way
        if metrics is None or actions.get("vectors") or _partial(operation, parameters):
            continue
        pairs = list(_differences(_FIGURES[operation], metrics, actions, change_files))
        if pairs:
            (empty if _counts_empty_files(pairs) else wrong).append(
                (version, f"v{version} {operation}: {differing(pairs)}")
            )
    if empty:
        yield finding(
            "metrics-count-empty-files",
            Severity.NOTE,
            f"{counted(len(empty), 'commit counts', 'commits count')} more files than {_its(len(empty))} actions add",
            f"{some([text for _, text in empty], limit=1)}; Spark counts files without rows that it then leaves out",
            section="Commit Provenance Information",
            place=commit_name(empty[0][0]),
        )
    if wrong:
        yield finding(
            "metrics-disagree",
            Severity.ATTENTION,
            f"{counted(len(wrong), 'commit did', 'commits did')} something else than {_its(len(wrong))} metrics say",
            some([text for _, text in wrong]),
            section="Commit Provenance Information",
            place=commit_name(wrong[0][0]),
            remedy="go by the actions; the writer counts wrongly, or the commit was changed afterwards",
        )


def _differences(
    figures: Mapping[str, str], metrics: Mapping[str, object], actions: Mapping[str, Any], change_files: int
) -> Iterator[tuple[str, int, int]]:
    """(metric, as recorded, as the actions count it) where the two differ."""
    for name, what in figures.items():
        recorded, actual = long(metrics.get(name)), actions[what]
        if recorded is None or actual is None or recorded == actual:
            continue
        if not (name in _WITH_CHANGE_FILES and recorded == actual + change_files):
            yield name, recorded, actual


def _counts_empty_files(pairs: Sequence[tuple[str, int, int]]) -> bool:
    """Whether only files and bytes differ, and there are more of them in the metrics: rows are as the actions say."""
    written = {"numFiles", "numAddedFiles", "numTargetFilesAdded", "numOutputBytes", "numAddedBytes"}
    return all(name in written and said > found for name, said, found in pairs)


def _its(number: int) -> str:
    return "its" if number == 1 else "their"


def _partial(operation: str, parameters: Mapping[str, object] | None) -> bool:
    """Whether a write replaced some rows of files, so that files it copied count in one engine and not in another."""
    return operation in _WRITES and bool((parameters or {}).get("predicate"))


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
