"""A transaction: changes gathered, then committed as one log entry, exclusively, or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import polars as pl
import pyarrow as pa

from lakeview.delta.data.partition_values import partition_columns
from lakeview.delta.log.actions import AddFile, Txn
from lakeview.delta.log.file_actions import PARTITION_VALUES
from lakeview.delta.log.paths import canonical
from lakeview.delta.properties import value
from lakeview.delta.write.batches import Frame, batches_of, frame_from
from lakeview.delta.write.definition_changes import DefinitionChanges
from lakeview.delta.write.file_changes import REMOVAL_COLUMNS, paths_of
from lakeview.delta.write.identity import Identity
from lakeview.delta.write.live_files import LiveFile
from lakeview.delta.write.merge import Merge, condition_of
from lakeview.delta.write.new_statistics import recompute_statistics
from lakeview.delta.write.optimize import TARGET_BYTES, optimize
from lakeview.delta.write.partition_conditions import one_of, partition_condition, selected
from lakeview.delta.write.restore import restore
from lakeview.delta.write.row_changes import RowChanges
from lakeview.delta.write.row_operations import change_rows, live_files, merge_rows
from lakeview.delta.write.row_wise import row_wise
from lakeview.delta.write.row_work import RowOutcome, RowWork
from lakeview.delta.write.target import Progress
from lakeview.delta.write.update import Assignments
from lakeview.delta.write.writer import conformed_rows, write_conformed, write_files
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.model.snapshot import milliseconds

_EVERY = pl.lit(value=True)


class Transaction(DefinitionChanges):
    """One commit in the making, on the table's latest version.

    Data files are written as changes are made; the commit is one file, created only if it is not there. When another
    writer was first, ours follows it if nothing collides (appends never do), otherwise CommitConflictError names what
    did. Left by an exception, nothing is committed and the files written are removed.

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
        missing fields of structs, unless `fill_missing` makes the missing ones null. InvalidRequestError and
        ConstraintViolationError name the column, and the row from 0.
        """
        context = replace(self.context(), fill_missing=fill_missing)
        adds = write_files(
            context,
            batches_of(frame),
            statistics=statistics,
            clock=self.clock,
            storage=self._storage,
            allocate=self._allocate,
        )
        self._add_written(adds)

    def _add_written(self, adds: Sequence[AddFile]) -> None:
        self.files.written += paths_of(adds)
        self.add(adds)

    def overwrite(self, frame: Frame, where: str | pl.Expr | None = None) -> None:
        """Remove the rows for which a condition is true, all without one, and write rows in their place.

        Where the condition is on partition columns alone, files go whole. ConstraintViolationError if a row lies
        outside `where`; nothing is written then.
        """
        if where is None:
            self.remove()
            self.append(frame)
            return
        context = self.context()
        expression = row_wise(where, self.schema)
        on_partitions = set(expression.meta.root_names()) <= set(self.definition.partition_columns)
        names = (
            self.definition.partition_columns if on_partitions else list(dict.fromkeys(expression.meta.root_names()))
        )
        if on_partitions:
            expression = self._on_partitions(where)
        # with what the table computes: a condition may be about it
        rows = pa.Table.from_batches(
            list(conformed_rows(context, batches_of(frame), self.clock, self._allocate)),
            schema=self.schema.relaxed().to_arrow(),
        )
        values = pl.DataFrame(pl.from_arrow(rows.select(names)))
        outside = rows.num_rows - (selected(values, rows.num_rows, expression).sum() if rows.num_rows else 0)
        if outside:
            raise ConstraintViolationError(
                f"{outside:,} rows lie outside {where!r}, which the overwrite replaces",
                fix="filter the rows, or widen the condition",
                kind="replace-where",
            )
        if on_partitions:
            self.remove(where)
        else:
            change_rows(self, expression, None)
        self._add_written(write_conformed(context, rows.to_batches(), clock=self.clock, storage=self._storage))

    def overwrite_partitions(self, frame: Frame) -> int:
        """Write rows, in place of all rows of the partitions that they fall into (dynamic partition overwrite).

        Returns how many files went. InvalidRequestError for a table without partitions.
        """
        self.check_has_partitions()
        before = len(self.files.adds)
        self.append(frame)
        return self._take_out_partitions(self.files.adds[before:])

    def replace_partitions(self, adds: Sequence[AddFile]) -> int:
        """As `overwrite_partitions`, with files that are written already."""
        self.check_has_partitions()
        self.add(adds)
        return self._take_out_partitions(adds)

    def check_has_partitions(self) -> None:
        """InvalidRequestError for a table without partitions; ConstraintViolationError for one whose rows have to
        stay."""
        if not self.definition.partition_columns:
            raise InvalidRequestError(
                f"{self._storage.root} has no partitions that rows could fall into",
                fix="overwrite() replaces all rows, or those that a condition selects",
                kind="not-partitioned",
            )
        self.check_may_remove()

    def _take_out_partitions(self, adds: Sequence[AddFile]) -> int:
        """Remove what was in the partitions of these files before them; returns how many files went."""
        values = pl.Series([dict(a.partition_values or {}) for a in adds], dtype=PARTITION_VALUES)
        partitions = pl.DataFrame(partition_columns(values, self.definition.partitions)).unique()
        live = self._base.adds([*REMOVAL_COLUMNS, "records"])
        of_file = pl.DataFrame(partition_columns(live["partition_values"], self.definition.partitions))
        there = of_file.with_row_index("\0row").join(partitions, on=partitions.columns, how="semi", nulls_equal=True)
        self.reads(one_of(partitions))
        self._take_out(live[there["\0row"]], data_change=True)
        return there.height

    def add(self, adds: Sequence[AddFile]) -> None:
        """Add files that are written already, by this process or another; the log entry is what makes them live."""
        self._touched = True
        self.files.adds += adds
        self._whole_adds += [a for a in adds if a.data_change]

    def remove(
        self,
        where: str | pl.Expr | None = None,
        *,
        paths: Sequence[str] | None = None,
        data_change: bool = True,
    ) -> int:
        """Remove live files: those of the partitions `where` selects, those of `paths` (decoded), or all.

        Returns how many. InvalidRequestError for a condition on other than partition columns, or a path not live.
        """
        return self._remove(where, paths, data_change=data_change).height

    def _remove(self, where: str | pl.Expr | None, paths: Sequence[str] | None, *, data_change: bool) -> pl.DataFrame:
        if data_change:
            self.check_may_remove()
        self._touched = True
        live = self._base.adds([*REMOVAL_COLUMNS, "records"])
        if paths is not None:
            live = self._named(live, paths)
        else:
            expression = _EVERY if where is None else self._on_partitions(where)
            live = live.filter(self._selected(live, expression))
            self.reads(expression)
        self._take_out(live, data_change=data_change)
        return live

    def _take_out(self, live: pl.DataFrame, *, data_change: bool) -> None:
        now = milliseconds(self.clock())
        rows = live.to_dicts()
        for row in rows:
            self.files.remove(row, now, data_change=data_change)
        self._whole_removes += rows if data_change else []

    def delete(self, where: str | pl.Expr | None = None) -> int | None:
        """Delete the rows for which a condition is true, all without one; returns how many, None where whole files go
        and the log does not say how many rows they have.

        Files that the condition skips are not read. Rows go by deletion vectors where the table has them enabled, else
        their files are written anew. InvalidRequestError for a condition that cannot be evaluated.
        """
        self.check_may_remove()
        expression = _EVERY if where is None else row_wise(where, self.schema)
        if set(expression.meta.root_names()) <= set(self.definition.partition_columns):
            return self._delete_files(where)
        return change_rows(self, expression, None)

    def update(self, assignments: Assignments, where: str | pl.Expr | None = None) -> int | None:
        """Set columns of the rows for which a condition is true, of all without one; returns how many.

        `assignments`: for each column SQL text, a polars expression, or `pl.lit` of a value. InvalidRequestError for an
        unknown column or an expression that cannot be evaluated, ConstraintViolationError for rows that break a rule.
        """
        self.check_may_remove()
        self._only_deletes = False
        expression = _EVERY if where is None else row_wise(where, self.schema)
        return change_rows(self, expression, assignments)

    def merge(self, source: Frame, on: str | Sequence[str]) -> Merge:
        """A merge of rows into the table: add clauses to it, then `execute`; the transaction commits what it does.

        `on`: a condition with `target.x` and `source.y`, or the names of columns that both have. Memory follows the
        source: the table is read file by file, those left out that cannot hold one of the source's keys.
        """
        return Merge(frame_from(source), condition_of(on), self.run_merge)

    def optimize(
        self,
        where: str | pl.Expr | None = None,
        *,
        target_bytes: int | None = None,
        z_order_by: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> int:
        """Write small files, and those with many deleted rows, again as fewer large ones; returns how many went.

        `where`: a condition on partition columns; `z_order_by`: all files are taken, and their rows ordered along a
        curve through these columns; `progress`: told of bytes done, and of how many. The rows stay the same.
        """
        expression = self.on_partitions(where)
        size: int = target_bytes or value(self.definition.properties, "delta.targetFileSize") or TARGET_BYTES
        moved = optimize(self, expression, target_bytes=size, z_order_by=z_order_by, progress=progress)
        self._rearrangements += moved
        self._touched = self._touched or bool(moved)
        return sum(len(m.files) for m in moved)

    def restore(self, version: int | None = None, *, at: datetime | None = None) -> None:
        """Make the table what it was at a version or a moment; nothing changes if it is that.

        VersionNotFoundError for a version that is not there any more, DataFileMissingError for one whose files are not.
        """
        self.check_may_remove()
        then = self._table.state(version, at)
        self._row_by_row = self._only_deletes = False
        self._reads_metadata = True
        self.reads(_EVERY)
        metrics = restore(self, self._base, then)
        self.entry.metrics.update(metrics)
        changes = metrics["numRemovedFiles"] or metrics["numRestoredFiles"] or self.domains
        self._touched = self._touched or bool(changes) or self.definition.changes_metadata

    def recompute_statistics(self, where: str | pl.Expr | None = None) -> int:
        """Count the statistics of files again, of all or those of the partitions `where` selects; returns how many had
        others. The rows are read, and stay as they are."""
        expression = self.on_partitions(where)
        self.reads(_EVERY if expression is None else expression)
        self._row_by_row = False
        count = recompute_statistics(self, expression)
        self._touched = self._touched or bool(count)
        return count

    def run_merge(self, merge: Merge) -> None:
        """Do what the clauses of a merge say."""
        self.begin_merge()
        merge_rows(self, merge)

    def begin_merge(self) -> None:
        """What follows decides by several rows at once what becomes of each."""
        self.check_may_remove()
        self._row_by_row = self._only_deletes = False

    def replace_schema(self, schema: Schema) -> None:
        """Give the table another schema altogether, for the rows that come next.

        InvalidRequestError unless this commit has removed every file, whose columns the schema would have to keep.
        """
        left = set(self._base.adds([])["key"]) - self.files.removed_paths
        if left or self.files.adds or self.definition.partition_columns:
            raise InvalidRequestError(
                "the schema of a table can be replaced only by a commit that replaces all of its files first, and not "
                "where it is partitioned",
                fix="remove all files before, or evolve the schema",
                kind="schema-change",
            )
        self._change_schema(schema)

    def set_transaction(self, app_id: str, version: int, *, once: bool = False) -> bool:
        """Record how far an application has got, with this commit; false if it has got there before.

        With `once` a commit that says so a second time is not made: what was written for it is removed.
        """
        known = self._base.transactions()
        done = known.filter((known["app_id"] == app_id) & (known["version"] >= version))
        if once and not done.is_empty():
            self._done_before = True
            return False
        self._touched = True
        self._txns[app_id] = Txn(app_id, version, milliseconds(self.clock()))
        return done.is_empty()

    def _allocate(self, identity: Identity, count: int) -> int:
        """The first of so many values of an identity column, and from here on they are taken."""
        mark = self._marks.get(identity.column)
        first = identity.next() if mark is None else mark + identity.step
        if count:
            self._marks[identity.column] = first + identity.step * (count - 1)
        return first

    def _delete_files(self, where: str | pl.Expr | None) -> int | None:
        gone = self._remove(where, None, data_change=True)
        self.entry.metrics.update(numRemovedFiles=gone.height, numRemovedBytes=int(gone["size"].sum()))
        rows = gone["records"] - gone["deleted_records"]
        return None if rows.has_nulls() else int(rows.sum())

    def live_files(self, where: pl.Expr | None) -> list[LiveFile]:
        """The live files that may hold rows for which a condition is true, all without one."""
        return live_files(self._base, self.definition, self._storage, where)

    def finish(self, work: RowChanges, metrics: Mapping[str, int]) -> None:
        """Take what an operation did into the commit, and its counts into operationMetrics."""
        self._vector_changes += work.finish()
        self.entry.metrics.update({**work.counts, **metrics})
        self._touched = self._touched or bool(self.files.removes or self.files.adds)

    def row_work(self) -> RowWork:
        """How other processes change rows for this transaction; `take` takes what they did."""
        with self.row_changes() as work:
            return RowWork(work.context, work.vectors, work.feed, tuple(self._storage.config.roots))

    def take(self, outcomes: Sequence[RowOutcome], metrics: Mapping[str, int], *, only_deletes: bool = False) -> None:
        """Take what other processes did to rows, each to other files, into the commit, and what it adds up to."""
        self._only_deletes = self._only_deletes and only_deletes
        counts: Counter[str] = Counter()
        for outcome in outcomes:
            self.files.take(outcome.adds, outcome.removes, outcome.changes)
            self._whole_adds += outcome.whole_adds
            self._vector_changes += outcome.vectors
            self._rearrangements += outcome.moves
            counts += outcome.counts
        self.entry.metrics.update({**counts, **metrics})
        self._touched = self._touched or bool(self.files.removes or self.files.adds)

    def check_may_remove(self) -> None:
        """ConstraintViolationError for a table whose rows have to stay."""
        if value(self.definition.properties, "delta.appendOnly"):
            raise ConstraintViolationError(
                "the table is append-only (delta.appendOnly): data may be rearranged, not removed",
                fix="unset delta.appendOnly if the data may go",
                kind="append-only",
            )

    def on_partitions(self, where: str | pl.Expr | None) -> pl.Expr | None:
        """A condition on partition columns, None without one. InvalidRequestError for one on another column."""
        return None if where is None else self._on_partitions(where)

    def _on_partitions(self, where: str | pl.Expr) -> pl.Expr:
        return partition_condition(where, self.schema, self.definition.partition_columns)

    def _selected(self, live: pl.DataFrame, expression: pl.Expr) -> pl.Series:
        values = pl.DataFrame(partition_columns(live["partition_values"], self.definition.partitions))
        return selected(values, live.height, expression)

    def _named(self, live: pl.DataFrame, paths: Sequence[str]) -> pl.DataFrame:
        keys = canonical(pl.Series("key", list(paths), dtype=pl.String), self._storage.root)
        found = live.filter(live["key"].is_in(keys.implode()))
        if found.height < keys.n_unique():
            missing = next(k for k in keys if k not in set(live["key"]))
            raise InvalidRequestError(f"{missing} is no live file of the table", place=missing, kind="file-not-live")
        return found
