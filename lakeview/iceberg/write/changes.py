"""Rows in memory and a table to one snapshot: an append, a delete, or rows in place of others, with files that go and
files with the rows of theirs that stay."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import msgspec
import polars as pl
import pyarrow as pa

from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT
from lakeview.iceberg.scan.data_files import LINEAGE
from lakeview.iceberg.scan.metadata_columns import with_metadata_columns
from lakeview.iceberg.state import State
from lakeview.iceberg.write.commits import Target, check_commits
from lakeview.iceberg.write.context import WriteContext, write_context
from lakeview.iceberg.write.data_file import NewFile, check_columns_fit, write_files
from lakeview.iceberg.write.removal import Base, Removal
from lakeview.iceberg.write.selection import ByPartition, Selection, check_inside
from lakeview.iceberg.write.snapshot_commit import CommitOptions, SnapshotCommit
from lakeview.model.clock import Clock, system_clock
from lakeview.model.errors import CommitConflictError, InvalidRequestError
from lakeview.rows.batches import Frame, batches_of, schema_of
from lakeview.rows.matching import frame_of, matching_rows
from lakeview.rows.parquet import read_task
from lakeview.rows.tasks import FileTask
from lakeview.storage import Storage


class Change:
    """Rows, None for a delete, that are to change a table as it is now. Raises for a table that is not written, and for
    columns that are not the table's."""

    def __init__(self, table: Target, frame: Frame | None, *, without_catalog: bool, clock: Clock | None) -> None:
        table.refresh()
        self._table = table
        self._frame = frame
        self._state = table.state
        self._options = CommitOptions(clock or system_clock, without_catalog=without_catalog)
        check_commits(table, without_catalog=without_catalog)
        self._context = write_context(self._state)
        if frame is not None:
            check_columns_fit(schema_of(frame), self._context)  # of a frame without rows too

    def append(self) -> int | None:
        """A snapshot with the rows."""
        files = self._write()
        if not files:
            return None
        return SnapshotCommit(self._table, self._context, files, self._options).run()

    def overwrite(self, where: str | pl.Expr | None) -> int | None:
        """A snapshot with the rows in place of those for which a condition is true."""
        schema = self._state.metadata.schema
        selection = Selection.parse(where, schema)
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
        base_id = self._state.metadata.current_snapshot_id
        return overwrite(self._table, base_id, self._context, files, selection, self._options)


def check_partitions(context: WriteContext, address: str) -> None:
    """InvalidRequestError for a table without partitions, in which none can be replaced."""
    if context.spec.is_unpartitioned:
        raise InvalidRequestError(
            f"{address} has no partitions that rows could replace",
            fix="use overwrite(), which replaces all rows, or those that a condition selects",
            place=address,
            kind="not-partitioned",
        )


def overwrite(
    table: Target,
    base_id: int,
    context: WriteContext,
    files: Sequence[NewFile],
    selection: Selection,
    options: CommitOptions,
) -> int | None:
    """Commit new files in place of the rows of a selection, as the snapshot `base_id` had them (NO_SNAPSHOT for a table
    without any); returns the id of the new snapshot, None if nothing comes and nothing goes, or
    the table has the batch already.

    A file whose rows are selected in part is written again without them. On an error the new files are removed, unless
    the commit may be there. CommitConflictError if another writer added rows that the selection may mean, or changed
    what it replaces, since the base; other errors as `SnapshotCommit.run`.
    """
    state = table.state
    rest: list[NewFile] = []
    try:
        removal, parts = _plan(state, base_id, selection)
        removal.partitions(context, state)  # refuses specs whose manifests are not written
        if parts:
            rest = write_files(_with_lineage(context), _rows_that_stay(parts, selection, state.storage), state.storage)
        if not files and removal.files.is_empty():
            return None
    except BaseException:
        state.storage.delete_each(file.address for file in files)
        raise
    return SnapshotCommit(table, context, [*files, *rest], options, removal).run()


def _plan(state: State, base_id: int, selection: Selection) -> tuple[Removal, list[FileTask]]:
    """What goes, and the files that hold rows which stay beside rows which go."""
    metadata = state.metadata
    snapshot = metadata.snapshots.get(base_id)
    if snapshot is None and base_id != NO_SNAPSHOT:
        raise CommitConflictError(
            f"the snapshot {base_id} that was read has expired since, so that changes after it are not known",
            fix="read the table again, and repeat the change",
            kind="base-expired",
        )
    base = Base(state, snapshot, selection)
    partly = base.entries.filter(~base.whole)
    if partly.is_empty():
        return Removal(base, base.entries), []
    lineage = [field.name for field in LINEAGE] if metadata.format_version > 2 else []
    schema = with_metadata_columns(metadata.schema, lineage, metadata, state.columns)
    tasks = {task.path: task for task in state.scan(snapshot, schema).tasks(selection.condition)}
    other_paths, partial_files = set(), []
    for path in partly["path"]:
        task = tasks[state.locations.resolve(path)]
        matches, others = _count(task, selection, state.storage)
        if not matches:
            other_paths.add(path)
        elif others:
            partial_files.append(task)
    return Removal(base, base.entries.filter(~base.entries["path"].is_in(list(other_paths)))), partial_files


def _count(task: FileTask, selection: Selection, storage: Storage) -> tuple[int, int]:
    """How many live rows of a file are selected, and how many are not."""
    names = list(dict.fromkeys(selection.condition.meta.root_names()))
    matches = rows = 0
    for batch in read_task(task.select(names), storage):
        rows += batch.num_rows
        matches += int(matching_rows(frame_of(batch), selection.condition).sum())
    return matches, rows - matches


def _rows_that_stay(tasks: Sequence[FileTask], selection: Selection, storage: Storage) -> Iterator[pa.RecordBatch]:
    names = list(dict.fromkeys(selection.condition.meta.root_names()))
    for task in tasks:
        for batch in read_task(task, storage):
            matches = matching_rows(frame_of(batch.select(names)), selection.condition)
            yield batch.filter((~matches).to_arrow())


def _with_lineage(context: WriteContext) -> WriteContext:
    """A context for rows that carry their lineage, which version 3 has: "When an existing row is moved to a different
    data file for any reason, writers should write `_row_id` and `_last_updated_sequence_number`"  Row Lineage."""
    if context.format_version < 3:
        return context
    document = msgspec.json.decode(context.schema_text)
    fields = [{"id": f.id, "name": f.name, "required": False, "type": "long"} for f in LINEAGE]
    text = msgspec.json.encode({**document, "fields": [*document["fields"], *fields]}).decode()
    return replace(context, schema_text=text)
