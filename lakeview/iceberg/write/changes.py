"""Rows in memory and a table to one snapshot: an append, an overwrite or a delete."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pyarrow as pa

from lakeview.iceberg.write.commits import Target
from lakeview.iceberg.write.context import WriteContext, write_context
from lakeview.iceberg.write.data_file import NewFile
from lakeview.iceberg.write.files import check_columns_fit, write_files
from lakeview.iceberg.write.overwrite import overwrite
from lakeview.iceberg.write.selection import ByCondition, ByPartition, Selection, check_inside
from lakeview.iceberg.write.snapshot_commit import ENGINE, SnapshotCommit
from lakeview.iceberg.write.writability import check_commits
from lakeview.model.clock import Clock, system_clock
from lakeview.model.errors import InvalidRequestError
from lakeview.rows.batches import Frame, batches_of, schema_of


class Change:
    """Rows, None for a delete, that are to change a table as it is now. Raises for a table that is not written, and for
    columns that are not the table's."""

    def __init__(self, table: Target, frame: Frame | None, *, without_catalog: bool, clock: Clock | None) -> None:
        table.refresh()
        self._table = table
        self._frame = frame
        self._state = table.state
        self._without_catalog = without_catalog
        self._clock = clock or system_clock
        check_commits(table, without_catalog=without_catalog)
        self._context = write_context(self._state)
        if frame is not None:
            check_columns_fit(schema_of(frame), self._context)  # of a frame without rows too

    def append(self) -> int | None:
        """A snapshot with the rows."""
        files = self._write()
        if not files:
            return None
        return SnapshotCommit(
            self._table,
            self._context,
            files,
            clock=self._clock,
            engine=ENGINE,
            without_catalog=self._without_catalog,
        ).run()

    def overwrite(self, where: str | pl.Expr | None) -> int | None:
        """A snapshot with the rows in place of those for which a condition is true."""
        schema = self._state.metadata.schema
        selection = ByCondition.parse(where, schema)
        files = self._write(None if where is None else check_inside(where, schema))
        return self._replace(selection, files)

    def overwrite_partitions(self) -> int | None:
        """A snapshot with the rows in place of those of their partitions."""
        check_partitions(self._context, self._table.address)
        files = self._write()
        if not files:
            return None
        return self._replace(ByPartition(self._context, {file.partition for file in files}), files)

    def _write(self, check: Callable[[pa.RecordBatch], None] | None = None) -> list[NewFile]:
        if self._frame is None:
            return []
        return write_files(self._context, batches_of(self._frame), self._state.storage, check)

    def _replace(self, selection: Selection, files: list[NewFile]) -> int | None:
        return overwrite(
            self._table,
            self._state.metadata.current_snapshot_id,
            self._context,
            files,
            selection,
            clock=self._clock,
            engine=ENGINE,
            without_catalog=self._without_catalog,
        )


def check_partitions(context: WriteContext, address: str) -> None:
    """InvalidRequestError for a table without partitions, in which none can be replaced."""
    if context.spec.is_unpartitioned:
        raise InvalidRequestError(
            f"{address} has no partitions that rows could replace",
            fix="use overwrite(), which replaces all rows, or those that a condition selects",
            place=address,
            kind="not-partitioned",
        )
