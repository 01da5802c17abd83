"""A transaction: changes gathered, then committed as one log entry, exclusively, or not at all."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import polars as pl
import pyarrow as pa

from lakeview.delta.log.actions import AddFile, Txn
from lakeview.delta.properties import value
from lakeview.delta.write.assignments import Assignments
from lakeview.delta.write.file_changes import paths_of
from lakeview.delta.write.identity import Identity
from lakeview.delta.write.merge import Merge, condition_of
from lakeview.delta.write.optimize import TARGET_BYTES, optimize
from lakeview.delta.write.restore import check_no_vacuum, check_target, restore
from lakeview.delta.write.row_operations import RowOutcome, RowWork, change_rows, merge_rows, recompute_statistics
from lakeview.delta.write.target import Progress
from lakeview.delta.write.whole_files import EVERY, WholeFiles
from lakeview.model.arguments import integer_of, names_of, optional_integer, text_of
from lakeview.model.errors import ConstraintViolationError
from lakeview.model.snapshot import milliseconds
from lakeview.predicates.row_wise import row_wise
from lakeview.rows.batches import Frame, batches_of, frame_from
from lakeview.rows.matching import check_condition, frame_of, matching_rows
from lakeview.storage.access import StoreAccess


class Transaction(WholeFiles):
    """One commit in the making, on the table's latest version.

    Data files are written as changes are made; the commit is one file, created only if it is not there. When another
    writer was first, ours follows it if nothing collides (appends never do), otherwise CommitConflictError names what
    did. Left by an exception, nothing is committed and the files written are removed. Nor is anything committed
    after an operation that failed in its midst, whose error was caught.

    Each operation works on the table as it was before the transaction: rows that it appends itself are not deleted or
    merged into, and two operations that change the same file are refused.
    """

    def append(
        self,
        frame: Frame,
        *,
        statistics: bool = True,
        fill_missing: bool = False,
    ) -> None:
        """Write rows and add their files; no value is altered on the way.

        Columns and fields are found by name. A missing column is null, an unknown one is refused; so are unknown and
        missing fields of structs, unless `fill_missing` makes the missing ones null. Variants are given as JSON text.
        InvalidRequestError and ConstraintViolationError name the column, and the row from 0.
        """
        writer = replace(self.file_writer(fill_missing=fill_missing), statistics=statistics)
        self._add_written(writer.write(batches_of(frame), self._allocate))

    def _add_written(self, adds: Sequence[AddFile]) -> None:
        self.files.paths += paths_of(adds)
        self.add(adds)

    def overwrite(self, frame: Frame, where: str | pl.Expr | None = None, *, progress: Progress | None = None) -> None:
        """Remove the rows for which a condition is true, all without one, and write rows in their place.

        Where the condition is on partition columns alone, files go whole; else `progress` is as of `delete`.
        ConstraintViolationError if a row lies outside `where`; nothing is written then.
        """
        with self.files.operation():
            if where is None:
                self.remove()
                self.append(frame)
            else:
                self._overwrite_rows(frame, where, progress)

    def _overwrite_rows(self, frame: Frame, where: str | pl.Expr, progress: Progress | None) -> None:
        writer = self.file_writer()
        expression = row_wise(where, self.schema)
        on_partitions = set(expression.meta.root_names()) <= set(self.definition.partition_columns)
        names = (
            self.definition.partition_columns if on_partitions else list(dict.fromkeys(expression.meta.root_names()))
        )
        if on_partitions:
            expression = self._on_partitions(where)
        else:
            check_condition(expression, self.schema)
        # with what the table computes: a condition may be about it
        rows = pa.Table.from_batches(
            list(writer.conformed_rows(batches_of(frame), self._allocate)),
            schema=self.schema.as_nullable().to_arrow(),
        )
        outside = rows.num_rows - int(matching_rows(frame_of(rows.select(names)), expression).sum())
        if outside:
            raise ConstraintViolationError(
                f"{outside:,} rows lie outside {where!r}, which the overwrite replaces",
                fix="filter the rows, or widen the condition",
                kind="replace-where",
            )
        if on_partitions:
            self.remove(where)
        else:
            change_rows(self, expression, None, progress)
        self._add_written(writer.write_conformed(rows.to_batches()))

    def overwrite_partitions(self, frame: Frame) -> int:
        """Write rows, in place of all rows of the partitions that they fall into (dynamic partition overwrite).

        Returns how many files went. InvalidRequestError for a table without partitions.
        """
        self.check_has_partitions()
        before = len(self.files.adds)
        with self.files.operation():
            self.append(frame)
            return self._take_out_partitions(self.files.adds[before:])

    def delete(self, where: str | pl.Expr | None = None, *, progress: Progress | None = None) -> int | None:
        """Delete the rows for which a condition is true, all without one; returns how many, None where whole files go
        and the log does not say how many rows they have.

        Files that the condition skips are not read. Rows go by deletion vectors where the table has them enabled, else
        their files are written again. InvalidRequestError for a condition that cannot be evaluated.
        """
        self.check_may_remove()
        expression = EVERY if where is None else row_wise(where, self.schema)
        self.entry.record_condition(where)
        if set(expression.meta.root_names()) <= set(self.definition.partition_columns):
            return self._delete_files(where)
        return change_rows(self, expression, None, progress)

    def update(
        self, assignments: Assignments, where: str | pl.Expr | None = None, *, progress: Progress | None = None
    ) -> int | None:
        """Set columns of the rows for which a condition is true, of all without one; returns how many.

        `assignments`: for each column, or field of a struct as `a.b`, SQL text, a polars expression, or `pl.lit` of a
        value. Integers of polars expressions wrap around, those of SQL are refused. InvalidRequestError for an unknown
        column or an expression that cannot be evaluated, ConstraintViolationError for rows that break a rule.
        """
        self.check_may_remove()
        self.intent.only_deletes = False
        expression = EVERY if where is None else row_wise(where, self.schema)
        self.entry.record_condition(where)
        return change_rows(self, expression, assignments, progress)

    def merge(self, source: Frame, on: str | Sequence[str]) -> Merge:
        """A merge of rows into the table: add clauses to it, then `execute`; the transaction commits what it does.

        `on`: a condition with `target.x` and `source.y`, or the name or names of columns that both have. Memory follows
        the source: the table is read file by file, those left out that cannot hold one of the source's keys.
        """
        rows = frame_from(source)
        return Merge(rows, condition_of(on, rows.columns), self.run_merge)

    def optimize(
        self,
        where: str | pl.Expr | None = None,
        *,
        target_bytes: int | None = None,
        z_order_by: str | Sequence[str] = (),
        progress: Progress | None = None,
    ) -> int:
        """Write small files, and those with many deleted rows, again as fewer large ones; returns how many went.

        `where`: a condition on partition columns; `z_order_by`: all files are taken but those with a
        `clusteringProvider`, and their rows ordered along a curve through these columns; `progress`: called with the
        bytes done, and all bytes. The rows stay the same.
        """
        expression = self.on_partitions(where)
        option = optional_integer(target_bytes, "target_bytes")
        default: int = value(self.definition.properties, "delta.targetFileSize") or TARGET_BYTES
        order = names_of(z_order_by, "z_order_by")
        with self.files.operation():
            moves = optimize(
                self,
                expression,
                target_bytes=default if option is None else option,
                z_order_by=order,
                progress=progress,
            )
        self._rearrangements += moves
        return sum(len(m.files) for m in moves)

    def restore(self, version: int | None = None, *, at: datetime | None = None) -> None:
        """Make the table what it was at a version or a moment; nothing changes if it is that.

        VersionNotFoundError for a version that is not there any more, DataFileMissingError for one whose files are not,
        CommitConflictError while a vacuum deletes files.
        """
        check_target(version, at)
        self.check_may_remove()
        check_no_vacuum(self._table.log, self._base.version, milliseconds(self.clock()))
        then = self._table.state(version, at)
        self.intent.row_by_row = self.intent.only_deletes = False
        self.intent.reads_metadata = self.intent.brings_back = True
        self.reads(EVERY)
        with self.files.operation():
            metrics = restore(self, self._base, then)
        self.entry.count(metrics)
        self.entry.record_target(version, at)

    def recompute_statistics(self, where: str | pl.Expr | None = None, *, progress: Progress | None = None) -> int:
        """Count the statistics of files again, of all or those of the partitions `where` selects; returns how many had
        others. The rows are read, and stay as they are. `progress`: called with the bytes of the files done, and of
        all."""
        expression = self.on_partitions(where)
        self.reads(EVERY if expression is None else expression)
        self.intent.row_by_row = False
        return recompute_statistics(self, expression, progress)

    def run_merge(self, merge: Merge) -> None:
        """Do what the clauses of a merge say."""
        self.begin_merge(merge)
        merge_rows(self, merge, self._insert)

    def _insert(self, rows: pa.Table) -> None:
        """As `append`, of rows that a merge inserts and counts."""
        adds = self.file_writer().write(batches_of(rows), self._allocate)
        self.files.paths += paths_of(adds)
        self._add_files(adds)

    def begin_merge(self, merge: Merge) -> None:
        """What follows decides by several rows at once what becomes of each. ConstraintViolationError for a merge that
        may change or delete rows which have to stay."""
        if any(clause.does != "insert" for clause in merge.clauses):
            self.check_may_remove()
        self.intent.row_by_row = self.intent.only_deletes = False

    def set_transaction(self, app_id: str, version: int, *, once: bool = False) -> bool:
        """Record how far an application has got, with this commit; false if it has got there before.

        With `once` a commit that says so a second time is not made: what was written for it is removed.
        """
        app_id, version = text_of(app_id, "app_id"), integer_of(version, "version")
        transactions = self._base.transactions()
        done = transactions.filter((transactions["app_id"] == app_id) & (transactions["version"] >= version))
        if once and not done.is_empty():
            self._done_before = True
            return False
        self._txns[app_id] = Txn(app_id, version, milliseconds(self.clock()))
        return done.is_empty()

    def _allocate(self, identity: Identity, count: int) -> int:
        """The first of so many values of an identity column, and from here on they are taken."""
        mark = self._marks.get(identity.column)
        first = identity.next() if mark is None else mark + identity.step
        if count:
            self._marks[identity.column] = first + identity.step * (count - 1)
        return first

    def row_work(self) -> RowWork:
        """How other processes change rows for this transaction; `take` takes what they did."""
        return RowWork(self.context(), tuple(self._storage.config.roots), StoreAccess.of(self._storage))

    def take(self, outcomes: Sequence[RowOutcome], metrics: Mapping[str, int], *, only_deletes: bool = False) -> None:
        """Take what other processes did to rows, each to other files, into the commit, and what it adds up to."""
        self.intent.only_deletes = self.intent.only_deletes and only_deletes
        counts: Counter[str] = Counter()
        for outcome in outcomes:
            self.files.take(outcome.adds, outcome.removes, outcome.changes)
            self._whole_adds += outcome.whole_adds
            self._vector_changes += outcome.vectors
            self._rearrangements += outcome.moves
            counts.update(outcome.counts)  # a sum of counters leaves out zeros
        self.entry.count({**counts, **metrics})
