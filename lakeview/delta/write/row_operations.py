"""Operations on rows: files that may hold them to positions, and positions to what becomes of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import polars as pl
import pyarrow as pa

from lakeview.delta.write.assignments import Assignments
from lakeview.delta.write.group_reader import RowsNeeded, matches_of
from lakeview.delta.write.live_files import LiveFile
from lakeview.delta.write.merge import Merge, merge_metrics
from lakeview.delta.write.merge_rows import MergeRows
from lakeview.delta.write.pending_commit import PendingCommit
from lakeview.delta.write.rewrites import Rewrite
from lakeview.delta.write.row_changes import RowChanges
from lakeview.delta.write.target import Progress
from lakeview.delta.write.update import changed_rows
from lakeview.model.clock import Clock
from lakeview.rows.matching import check_condition


def with_progress(files: Sequence[LiveFile], progress: Progress | None) -> Iterator[LiveFile]:
    """The files; `progress` is called with the bytes of those that are done, and of all."""
    total, done = sum(file.row["size"] or 0 for file in files), 0
    for file in files:
        yield file
        done += file.row["size"] or 0
        if progress is not None:
            progress(done, total)


def change_rows(
    txn: PendingCommit, where: pl.Expr, assignments: Assignments | None, progress: Progress | None = None
) -> int:
    """Delete the rows for which a condition is true, or set columns of them; returns how many.

    What an update makes of rows that go by deletion vectors is in files of its own, of many files together.
    """
    check_condition(where, txn.schema)
    txn.reads(where)
    with txn.files.operation(), txn.row_changes() as work:
        count = change_files(work, txn.live_files(where), where, assignments, txn.clock, progress)
        txn.finish(work, {"numDeletedRows" if assignments is None else "numUpdatedRows": count})
    return count


def change_files(
    work: RowChanges,
    files: Sequence[LiveFile],
    where: pl.Expr,
    assignments: Assignments | None,
    clock: Clock,
    progress: Progress | None = None,
) -> int:
    """As `change_rows`, of these files; the caller finishes the work."""
    count = 0

    def each_file() -> Iterator[Rewrite]:
        nonlocal count
        change = None
        if assignments is not None:
            change = partial(changed_rows(assignments, work.context).apply, work=work, clock=clock)
        needed = None if work.vectors else RowsNeeded(work.schema, all_may_go=change is None)
        matches = matches_of(files, work.storage, where, needed)
        for _, (file, positions) in zip(with_progress(files, progress), matches, strict=True):
            count += len(positions)
            if change is None:
                yield from work.remove(file, positions)
            else:
                yield from work.replace(file, positions, change)

    work.write(each_file())
    return count


def merge_rows(txn: PendingCommit, merge: Merge, append: Callable[[pa.Table], None]) -> None:
    """Do what the clauses of a merge say; `append` writes the rows that they insert."""
    with txn.files.operation(), txn.row_changes() as work:
        rows = MergeRows(merge, txn.schema, work, txn.clock)
        condition = rows.files_needed()
        txn.reads(pl.lit(value=True) if condition is None else condition)
        before = len(txn.files.adds)
        files = txn.live_files(condition)
        rows.change(files, work.storage, with_progress(files, merge.progress))
        rows.insert(append)
        txn.entry.parameters.update(merge.parameters())
        txn.finish(work, {})
        txn.entry.count(merge_metrics(work.counts, rows.counts, txn.files.adds[before:]))
