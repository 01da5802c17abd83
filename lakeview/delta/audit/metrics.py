"""What commits report against what their actions do: operationMetrics by operation and engine."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lakeview.delta.audit.records import CommitRecord
from lakeview.delta.audit.run import Run
from lakeview.delta.log.commit_info import whole
from lakeview.model.audit_cases import Case, proven, unknowable, violated

WRITES = ("WRITE", "CREATE TABLE AS SELECT", "REPLACE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT")
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
FIGURES: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(WRITES, _WRITE_METRICS),
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


_NOTHING = dict.fromkeys(("added", "removed", "rows", "bytes"), 0)
"""The sums of a commit without file actions."""


def metric_differences(record: CommitRecord, sums: Mapping[str, Any] | None) -> list[tuple[str, int, int]] | str:
    """(metric, as recorded, as the actions count it) where the two differ, of an operation in FIGURES; why they cannot
    be compared. `sums`: the commit's row of `Run.sums`, None where it has no file actions."""
    operation, actions = record.info.operation or "", sums or _NOTHING
    # with deletion vectors engines do not count a file that only got a new vector, or count it in another way
    if actions.get("vectors"):
        return "engines count files with new deletion vectors in different ways"
    if operation in WRITES and record.parameters.get("predicate"):  # a write that replaced some rows of files
        return "engines count copied files of a partial overwrite in different ways"
    pairs = []
    for name, what in FIGURES[operation].items():
        metric, actual = whole(record.metrics.get(name)), actions[what]
        if metric is None or actual is None or metric == actual:
            continue
        if not (name in _WITH_CHANGE_FILES and metric == actual + len(record.change_files)):
            pairs.append((name, metric, actual))
    return pairs


def recorded_figures(operation: str, metrics: Mapping[str, object]) -> set[str]:
    """What of the actions the metrics of a commit count."""
    return {what for name, what in FIGURES[operation].items() if whole(metrics.get(name)) is not None}


def count_empty_files(pairs: Sequence[tuple[str, int, int]]) -> bool:
    """Whether only files and bytes differ, and there are more of them in the metrics: rows are as the actions say."""
    names = {"numFiles", "numAddedFiles", "numTargetFilesAdded", "numOutputBytes", "numAddedBytes"}
    return all(name in names and metric > actual for name, metric, actual in pairs)


def metrics_equal_actions(run: Run) -> Iterator[Case]:
    """metrics-equal-actions, of operations whose metrics all engines count alike."""
    sums = {row["version"]: row for row in run.sums.iter_rows(named=True)}
    for record in run.records:
        operation, row = record.info.operation, sums.get(record.version)
        if operation is None or not set(FIGURES.get(operation, ())) & set(record.metrics):
            continue
        pairs = metric_differences(record, row)
        if isinstance(pairs, str):
            yield unknowable(record.version, pairs)
        elif not pairs and row and row["rows"] is None and "rows" in recorded_figures(operation, record.metrics):
            yield unknowable(record.version, "files that the commit adds do not count their rows")
        elif not pairs:
            yield proven(record.version)
        elif count_empty_files(pairs):
            yield unknowable(record.version, "Spark counts files without rows, which it then leaves out of the commit")
        else:
            name, metric, actual = pairs[0]
            yield violated(record.version, f"{name} differs from the actions", actual, metric)
