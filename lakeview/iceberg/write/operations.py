"""What changes an Iceberg table, as one call each: committed or refused whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from lakeview.model.errors import UnsupportedTableError

if TYPE_CHECKING:
    from lakeview.iceberg.write.commits import Target
    from lakeview.model.clock import Clock
    from lakeview.rows.batches import Frame


class Operations:
    """The writing half of an Iceberg table. What it imports, it imports when it is called: reading loads no writer."""

    def append(self: Target, frame: Frame, *, without_catalog: bool = False, clock: Clock | None = None) -> int | None:
        """Append rows as a snapshot of the branch main; returns its id, None if there were no rows.

        Commits of a table in a folder are metadata files with the next number; one that was opened by the name it has
        in a REST catalog is changed by that. `without_catalog`: no catalog owns the table in the folder, although its
        metadata files are named as catalogs name them.

        Refused rather than altered: InvalidRequestError for columns, fields and values that the table does not hold,
        ConstraintViolationError for null in a required column, UnsupportedTableError for tables that are not written.
        CommitConflictError if the columns or the partition spec changed meanwhile; commits of others are followed.
        """
        from lakeview.iceberg.write.append import ENGINE, Append
        from lakeview.iceberg.write.context import write_context
        from lakeview.iceberg.write.files import check_columns_fit, write_files
        from lakeview.iceberg.write.writability import check_commits
        from lakeview.model.clock import system_clock
        from lakeview.rows.batches import batches_of, schema_of

        self.refresh()
        state = self.state
        check_commits(self, without_catalog=without_catalog)
        context = write_context(state)
        check_columns_fit(schema_of(frame), context)  # of a frame without rows too
        files = write_files(context, batches_of(frame), state.storage)
        if not files:
            return None
        return Append(
            self, context, files, clock=clock or system_clock, engine=ENGINE, without_catalog=without_catalog
        ).run()

    def transaction(self: Target, operation: str = "WRITE", **_: Any) -> NoReturn:
        """UnsupportedTableError: rows are appended to Iceberg tables, and nothing else is written."""
        raise UnsupportedTableError(
            f"{self.address} is an Iceberg table, which lakeview appends to and does not change otherwise: {operation}",
            fix="use append(), or the engine that owns it",
            kind="unsupported-format",
        )
