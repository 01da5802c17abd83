"""What changes an Iceberg table, as one call each: committed or refused whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from lakeview.model.errors import UnsupportedTableError

if TYPE_CHECKING:
    import polars as pl

    from lakeview.iceberg.write.commits import Target
    from lakeview.model.clock import Clock
    from lakeview.rows.batches import Frame


class Operations:
    """The writing half of an Iceberg table. What it imports, it imports when it is called: reading loads no writer.

    Commits of a table in a folder are metadata files with the next number; one that was opened by the name it has in a
    REST catalog is changed by that. `without_catalog`: no catalog owns the table in the folder, although its metadata
    files are named as catalogs name them.

    Refused rather than altered: InvalidRequestError for columns, fields and values that the table does not hold,
    ConstraintViolationError for null in a required column, UnsupportedTableError for tables that are not written.
    CommitConflictError if the columns or the partition spec changed meanwhile.
    """

    def append(self: Target, frame: Frame, *, without_catalog: bool = False, clock: Clock | None = None) -> int | None:
        """Append rows as a snapshot of the branch main; returns its id, None if there were no rows.

        Commits of others are followed.
        """
        from lakeview.iceberg.write.changes import Change

        return Change(self, frame, without_catalog=without_catalog, clock=clock).append()

    def overwrite(
        self: Target,
        frame: Frame,
        where: str | pl.Expr | None = None,
        *,
        without_catalog: bool = False,
        clock: Clock | None = None,
    ) -> int | None:
        """Replace the rows for which a condition is true, all without one, as one snapshot; returns its id, None if
        nothing came and nothing went.

        Files with other rows too are written again without those that go. ConstraintViolationError if a row lies
        outside `where`. CommitConflictError if rows that the condition may mean were added, or rows that it replaces
        deleted, by another writer meanwhile; commits of others are followed otherwise.
        """
        from lakeview.iceberg.write.changes import Change

        return Change(self, frame, without_catalog=without_catalog, clock=clock).overwrite(where)

    def overwrite_partitions(
        self: Target, frame: Frame, *, without_catalog: bool = False, clock: Clock | None = None
    ) -> int | None:
        """Replace the rows of the partitions that rows fall into; returns the snapshot, None without rows. The others
        stay.

        InvalidRequestError for a table without partitions, UnsupportedTableError for one with files of an earlier
        partition spec. CommitConflictError as `overwrite`.
        """
        from lakeview.iceberg.write.changes import Change

        return Change(self, frame, without_catalog=without_catalog, clock=clock).overwrite_partitions()

    def delete(
        self: Target,
        where: str | pl.Expr | None = None,
        *,
        without_catalog: bool = False,
        clock: Clock | None = None,
    ) -> int | None:
        """Delete the rows for which a condition is true, all without one; returns the snapshot, None if there was none.

        Files with other rows too are written again without those that go (copy-on-write). CommitConflictError as
        `overwrite`.
        """
        from lakeview.iceberg.write.changes import Change

        return Change(self, None, without_catalog=without_catalog, clock=clock).overwrite(where)

    def transaction(self: Target, operation: str = "WRITE", **_: Any) -> NoReturn:
        """UnsupportedTableError: an Iceberg table is changed by single calls."""
        raise UnsupportedTableError(
            f"{self.address} is an Iceberg table, which has no transactions of several changes here: {operation}",
            fix="use append(), overwrite(), overwrite_partitions() or delete(), or the engine that owns it",
            kind="unsupported-format",
        )
