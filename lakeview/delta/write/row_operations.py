"""Operations on rows: files that may hold them to positions, and positions to what becomes of the rows, here or in
another process; and statistics of files that are in a table, counted again from their rows."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl
import pyarrow as pa
import pyroaring

from lakeview.delta.data.file_statistics import FileStatistics
from lakeview.delta.log.actions import AddCDCFile, AddFile, RemoveFile
from lakeview.delta.write.assignments import Assignments, changed_rows
from lakeview.delta.write.context import WriteContext
from lakeview.delta.write.deletion_vectors import Rearrangement, VectorChange, with_deletions
from lakeview.delta.write.file_changes import FileChanges, Key
from lakeview.delta.write.group_reader import RowsNeeded, matches_of
from lakeview.delta.write.live_files import FILES_AT_ONCE, LiveFile
from lakeview.delta.write.merge import Merge, merge_metrics
from lakeview.delta.write.merge_rows import MergeRows
from lakeview.delta.write.pending_commit import PendingCommit
from lakeview.delta.write.rewrites import Rewrite
from lakeview.delta.write.row_changes import RowChanges
from lakeview.delta.write.stored_columns import stored_table, with_variant_binaries
from lakeview.delta.write.target import Progress, with_progress
from lakeview.delta.write.writer import FileWriter
from lakeview.model.clock import Clock, system_clock
from lakeview.rows.matching import check_condition
from lakeview.storage import Storage
from lakeview.storage.access import NO_OPTIONS, StoreAccess
from lakeview.storage.interface import ahead


def change_rows(
    txn: PendingCommit, where: pl.Expr, assignments: Assignments | None, progress: Progress | None = None
) -> int:
    """Delete the rows for which a condition is true, or set columns of them; returns how many.

    What an update makes of rows that go by deletion vectors is in files of its own, of many files together.
    """
    check_condition(where, txn.schema)
    txn.reads(where)
    with txn.files.operation(), txn.row_changes() as work:
        count = change_files(work, txn.live_files(where), where, assignments, progress)
        txn.finish(work, {"numDeletedRows" if assignments is None else "numUpdatedRows": count})
    return count


def change_files(
    work: RowChanges,
    files: Sequence[LiveFile],
    where: pl.Expr,
    assignments: Assignments | None,
    progress: Progress | None = None,
) -> int:
    """As `change_rows`, of these files; the caller finishes the work."""
    count = 0

    def each_file() -> Iterator[Rewrite]:
        nonlocal count
        change = None
        if assignments is not None:
            change = changed_rows(assignments, work)
        rows_needed = None if work.context.vectors else RowsNeeded(work.schema, all_may_go=change is None)
        matches = matches_of(files, work.storage, where, rows_needed)
        for _, (file, positions) in zip(with_progress(files, _sizes(files), progress), matches, strict=True):
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
        rows = MergeRows(merge, work)
        condition = rows.files_needed()
        txn.reads(pl.lit(value=True) if condition is None else condition)
        files = txn.live_files(condition)
        rows.change(files, with_progress(files, _sizes(files), merge.progress))
        rows.insert(append)
        txn.entry.parameters.update(merge.parameters())
        txn.finish(work, {})
        txn.entry.count(merge_metrics(work.counts, rows.counts))


@dataclass
class RowOutcome:
    """What one part did: the actions of FileChanges, and what a transaction needs to follow other commits with them.

    `paths`: of the files that were written, decoded; `counts`: in the words of operationMetrics; `whole_adds`: those of
    `adds` whose rows are all new.
    """

    adds: list[AddFile]
    removes: dict[Key, RemoveFile]
    changes: list[AddCDCFile]
    paths: list[str]
    vectors: list[VectorChange]
    counts: Counter[str]
    moves: list[Rearrangement] = field(default_factory=list)
    whole_adds: list[AddFile] = field(default_factory=list)


@dataclass(frozen=True)
class RowWork:
    """How the rows of a table are changed, as a value that can travel to another process.

    `roots`: where files may lie beside the table's own folder; `access`: what opens its store.
    """

    context: WriteContext
    roots: tuple[str, ...] = ()
    access: StoreAccess = NO_OPTIONS

    def storage(self) -> Storage:
        """The store of the table, opened in this process."""
        return self.access.open(self.context.root, self.roots)

    def run(
        self, do: Callable[[RowChanges], Sequence[Rearrangement] | None], clock: Clock = system_clock
    ) -> RowOutcome:
        """Do a part of an operation. What it wrote is removed again if it fails."""
        storage = self.storage()
        files = FileChanges(storage, clock)
        try:
            with RowChanges(FileWriter(self.context, storage, clock), files) as rows:
                moves = list(do(rows) or ())
                vectors = rows.finish()
        except BaseException:
            files.discard()
            raise
        return RowOutcome(files.adds, files.removes, files.changes, files.paths, vectors, rows.counts, moves)


def recompute_statistics(txn: PendingCommit, where: pl.Expr | None, progress: Progress | None) -> int:
    """Add files again with statistics counted from their rows, `dataChange` false; returns how many.

    Statistics are of all rows of a file, those that a deletion vector names among them; then bounds are not tight.
    """
    context = txn.context()
    data = pa.schema([f for f in context.schema.as_nullable().to_arrow() if f.name not in context.partition_columns])

    def text(file: LiveFile) -> str:
        statistics = FileStatistics(context.indexed_columns, prefix=context.string_prefix)
        columns = with_variant_binaries(context.schema.select(data.names))
        for batch in file.batches(txn.storage, columns, without=pyroaring.BitMap64()):
            statistics.add(stored_table(pa.Table.from_batches([batch]), list(columns)))
        document = statistics.text()
        return document if file.row["vector"] is None else with_deletions(document, statistics.records)

    files = txn.live_files(where)
    outcomes = ahead(text, files, FILES_AT_ONCE)
    for file, stats in zip(with_progress(files, _sizes(files), progress), outcomes, strict=True):
        if stats != file.row["stats"]:
            txn.files.add_again(file.row, stats)
    return len(txn.files.adds)


def _sizes(files: Sequence[LiveFile]) -> list[int | None]:
    return [file.row["size"] for file in files]
