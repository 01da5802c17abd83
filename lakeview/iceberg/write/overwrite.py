"""Rows in place of others: files that go, files with the rows of theirs that stay, and one snapshot of all that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec
import pyarrow as pa

from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT
from lakeview.iceberg.scan.data_files import LINEAGE
from lakeview.iceberg.scan.metadata_columns import with_metadata_columns
from lakeview.iceberg.state import State
from lakeview.iceberg.write.commits import Target
from lakeview.iceberg.write.context import WriteContext
from lakeview.iceberg.write.data_file import NewFile
from lakeview.iceberg.write.files import discard, write_files
from lakeview.iceberg.write.removal import Base, Removal
from lakeview.iceberg.write.selection import Selection
from lakeview.iceberg.write.snapshot_commit import SnapshotCommit
from lakeview.iceberg.write.stream_batch import StreamBatch
from lakeview.model.clock import Clock
from lakeview.model.errors import CommitConflictError
from lakeview.rows.matching import frame_of, matching_rows
from lakeview.rows.parquet import read_task
from lakeview.rows.tasks import FileTask
from lakeview.storage import Storage


def overwrite(
    table: Target,
    base_id: int,
    context: WriteContext,
    files: Sequence[NewFile],
    selection: Selection,
    *,
    clock: Clock,
    engine: Mapping[str, str],
    without_catalog: bool,
    batch: StreamBatch | None = None,
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
        removal, mixed = _plan(state, base_id, selection)
        removal.partitions(context, state)  # refuses specs whose manifests are not written
        if mixed:
            rest = write_files(_with_lineage(context), _rows_that_stay(mixed, selection, state.storage), state.storage)
        if not files and removal.files.is_empty():
            return None
    except BaseException:
        discard([file.address for file in files], state.storage)
        raise
    commit = SnapshotCommit(
        table,
        context,
        [*files, *rest],
        removal,
        clock=clock,
        engine=engine,
        without_catalog=without_catalog,
        batch=batch,
    )
    return commit.run()


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
    untouched, mixed = set(), []
    for path in partly["path"]:
        task = tasks[state.locations.resolve(path)]
        matches, others = _count(task, selection, state.storage)
        if not matches:
            untouched.add(path)
        elif others:
            mixed.append(task)
    return Removal(base, base.entries.filter(~base.entries["path"].is_in(list(untouched)))), mixed


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
