"""What changes a Delta table, as one call each: a transaction of its own, committed or refused whole."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from lakeview.delta.log.commits import predicates
from lakeview.delta.write.definition_operations import DefinitionOperations, WritableTable, commit_one
from lakeview.delta.write.target import Progress, Target, until_made
from lakeview.model.arguments import duration_of, flag_of, integer_of, integers_of, mapping_of, names_of
from lakeview.model.clock import Clock, system_clock
from lakeview.model.table import check_point

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    import polars as pl

    from lakeview.delta.write.assignments import Assignments
    from lakeview.delta.write.merge import Merge
    from lakeview.delta.write.transaction import Transaction
    from lakeview.rows.batches import Frame


class Operations(DefinitionOperations):
    """The writing half of a Delta table. What it imports, it imports when it is called: reading loads no writer."""

    def transaction(
        self: Target,
        operation: str = "WRITE",
        *,
        parameters: dict[str, Any] | None = None,
        metrics: dict[str, Any] | None = None,
        user: str | None = None,
        user_metadata: str | None = None,
        engine: str | None = None,
        clock: Clock | None = None,
    ) -> Transaction:
        """A transaction on the latest version: commits on leaving its `with` block, or not at all."""
        from lakeview.delta.write.transaction import Transaction

        return Transaction(
            self,
            operation,
            parameters=parameters,
            metrics=metrics,
            user=user,
            user_metadata=user_metadata,
            engine=engine,
            clock=clock or system_clock,
        )

    def append(self: WritableTable, frame: Frame) -> int | None:
        """Append rows in a transaction of their own; returns the version.

        Refused rather than altered: InvalidRequestError for columns, fields and values that the table does not hold.
        """
        from lakeview.rows.batches import one_pass

        attempt = partial(commit_one, self, "WRITE", lambda txn: txn.append(frame), mode="Append")
        return attempt() if one_pass(frame) else until_made(attempt)

    def delete(
        self: WritableTable, where: str | pl.Expr | None = None, *, progress: Progress | None = None
    ) -> int | None:
        """Delete the rows for which a condition is true, all without one; returns the version, None if there was none.

        `progress`: called with the bytes of the files done, and of all that may hold such rows.
        InvalidRequestError for a condition that cannot be evaluated, ConstraintViolationError if the table is
        append-only.
        """
        condition = predicates(where)
        return until_made(
            lambda: commit_one(self, "DELETE", lambda txn: txn.delete(where, progress=progress), predicate=condition)
        )

    def update(
        self: WritableTable,
        assignments: Assignments,
        where: str | pl.Expr | None = None,
        *,
        progress: Progress | None = None,
    ) -> int | None:
        """Set columns of the rows for which a condition is true, of all without one; returns the version.

        `assignments`: for each column, or field of a struct as `a.b`, SQL text over the row's columns, or an expression
        of polars, whose integers wrap around where SQL is refused. A null struct of which a field is set becomes one
        with the other fields null. `progress`: as of `delete`.
        """
        condition = predicates(where)
        return until_made(
            lambda: commit_one(
                self, "UPDATE", lambda txn: txn.update(assignments, where, progress=progress), predicate=condition
            )
        )

    def merge(self: WritableTable, source: Frame, on: str | Sequence[str]) -> Merge:
        """A merge of rows into the table: add clauses to it, then `execute`, which returns the version.

        `on`: a condition with `target.x` and `source.y`, or the name or names of columns that both have.
        """
        from lakeview.delta.write.merge import Merge, condition_of
        from lakeview.rows.batches import frame_from

        def run(merge: Merge) -> int | None:
            return until_made(partial(commit_one, self, "MERGE", lambda txn: txn.run_merge(merge)))

        rows = frame_from(source)
        return Merge(rows, condition_of(on, rows.columns), run)

    def optimize(
        self: WritableTable,
        where: str | pl.Expr | None = None,
        *,
        target_bytes: int | None = None,
        z_order_by: str | Sequence[str] = (),
        progress: Progress | None = None,
        user: str | None = None,
    ) -> int | None:
        """Write small files, and those with many deleted rows, again as fewer large ones; returns the version, None if
        all files are well as they are.

        `where`: a condition on partition columns; `target_bytes`: 128 MiB where neither it nor the table says;
        `z_order_by`: all files are taken but those with a `clusteringProvider`, and their rows ordered along a curve
        through these columns; `progress`: called with the bytes done and all bytes; `user`: the user name of the
        commit. The rows stay the same.
        """
        columns = names_of(z_order_by, "z_order_by")
        parameters = {"predicate": predicates(where), "zOrderBy": msgspec.json.encode(columns).decode()}

        def optimize(txn: Transaction) -> None:
            txn.optimize(where, target_bytes=target_bytes, z_order_by=columns, progress=progress)

        return until_made(lambda: commit_one(self, "OPTIMIZE", optimize, user=user, **parameters))

    def overwrite(
        self: WritableTable,
        frame: Frame,
        where: str | pl.Expr | None = None,
        *,
        progress: Progress | None = None,
    ) -> int | None:
        """Replace the rows, or those for which a condition is true; returns the version. `progress`: as of `delete`,
        for a condition on other columns than those of partitions."""
        parameters = {"mode": "Overwrite"} | ({} if where is None else {"predicate": str(where)})
        return commit_one(self, "WRITE", lambda txn: txn.overwrite(frame, where, progress=progress), **parameters)

    def overwrite_partitions(self: WritableTable, frame: Frame) -> int | None:
        """Replace the rows of the partitions that rows fall into; returns the version. The others stay."""
        parameters = {"mode": "Overwrite", "partitionOverwriteMode": "dynamic"}
        return commit_one(self, "WRITE", lambda txn: txn.overwrite_partitions(frame), **parameters)

    def recompute_statistics(
        self: WritableTable, where: str | pl.Expr | None = None, *, progress: Progress | None = None
    ) -> int | None:
        """Count the statistics of files again, by reading their rows; returns the version, None if all were right.
        `progress`: called with the bytes of the files done, and of all."""
        condition = predicates(where)

        def recompute(txn: Transaction) -> None:
            txn.recompute_statistics(where, progress=progress)

        return commit_one(self, "COMPUTE STATS", recompute, predicate=condition)

    def clone(
        self: Target,
        address: str,
        *,
        version: int | None = None,
        at: datetime | None = None,
        properties: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        storage_options: Mapping[str, Any] | None = None,
        deep: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """Make a table at another address of the files that this one has, or had at a version or a moment, with
        `properties` besides its own. They stay where they are (a shallow clone), so that reading the clone needs this
        folder among the allowed roots, and a vacuum here breaks it; or are copied with `deep`, each whole in memory.
        `progress`: called with the bytes of the files copied, and of all.

        CommitConflictError if there is a table at the address, InvalidRequestError if other files are there,
        DataFileMissingError where a file to copy is gone.
        """
        from lakeview.delta.write.deep_clone import copy_files
        from lakeview.delta.write.first_commit import clone
        from lakeview.storage import open_storage

        storage = open_storage(address, options=storage_options, config=self.storage.config, decode=True)
        settings = None if properties is None else mapping_of(properties, "properties")
        copy = partial(copy_files, progress=progress) if flag_of(deep, "deep") else None
        clone(self, storage, clock or system_clock, version, at, settings, copy)

    def restore(self: WritableTable, version: int | None = None, *, at: datetime | None = None) -> int | None:
        """Make the table what it was at a version or a moment, as a new version, which it returns; None if it is that.

        Files of versions in between stay until a vacuum. DataFileMissingError if files of that version are gone,
        CommitConflictError while a vacuum deletes files.
        """
        check_point(version, at)
        return commit_one(self, "RESTORE", lambda txn: txn.restore(version, at=at))

    # -- maintenance

    def checkpoint(
        self: Target, version: int | None = None, *, parts: int | None = None, progress: Progress | None = None
    ) -> int:
        """Write the checkpoint of a version, the latest without one; returns the version.

        V2 where the table's policy says so, else in one file, or in so many `parts`. `progress`: called with the
        file actions that are written, and with all. InvalidRequestError for parts that the table must not have.
        """
        from lakeview.delta.write.checkpoint import write_checkpoint

        count = None if parts is None else integer_of(parts, "parts")
        return write_checkpoint(self, version, parts=count, progress=progress)

    def vacuum(
        self: Target,
        retention: timedelta | None = None,
        *,
        dry_run: bool = True,
        keep_versions: Sequence[int] = (),
        allow_short_retention: bool = False,
        lite: bool = False,
        progress: Progress | None = None,
        user: str | None = None,
        clock: Clock | None = None,
    ) -> pl.DataFrame:
        """VACUUM: the files that no version within the retention needs; deleted only with `dry_run=False`.
        Everything else as `lakeview.delta.write.vacuum.vacuum`."""
        from lakeview.delta.write.vacuum import vacuum

        return vacuum(
            self,
            None if retention is None else duration_of(retention, "retention"),
            dry_run=flag_of(dry_run, "dry_run"),
            keep_versions=integers_of(keep_versions, "keep_versions"),
            allow_short_retention=flag_of(allow_short_retention, "allow_short_retention"),
            lite=flag_of(lite, "lite"),
            progress=progress,
            user=user,
            clock=clock or system_clock,
        )

    def clean_log(
        self: Target,
        retention: timedelta | None = None,
        *,
        dry_run: bool = True,
        keep_versions: Sequence[int] = (),
        allow_short_retention: bool = False,
        clock: Clock | None = None,
    ) -> pl.DataFrame:
        """LOG_CLEANUP: the files of the log before the newest checkpoint that is older than the retention; deleted only
        with `dry_run=False`.

        Everything else as `lakeview.delta.write.log_cleanup.clean_log`.
        """
        from lakeview.delta.write.log_cleanup import clean_log

        return clean_log(
            self,
            None if retention is None else duration_of(retention, "retention"),
            dry_run=flag_of(dry_run, "dry_run"),
            keep_versions=integers_of(keep_versions, "keep_versions"),
            allow_short_retention=flag_of(allow_short_retention, "allow_short_retention"),
            clock=clock or system_clock,
        )

    def write_checksum(self: Target, version: int | None = None) -> bool:
        """Write the version checksum file of a version, the latest without one, unless there is one; costs a listing of
        its live files. True if it was written."""
        from lakeview.delta.write.checksum import write_checksum

        return write_checksum(self, version, replay=True)

    def compact_log(self: Target, start: int, end: int) -> str:
        """Write one file that holds what the commits `start` to `end` add up to; returns its name in the log.

        InvalidRequestError for a range that is not in the log, or of less than two commits.
        """
        from lakeview.delta.write.log_cleanup import compact_log

        return compact_log(self, integer_of(start, "start"), integer_of(end, "end"))
