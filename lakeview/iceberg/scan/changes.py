"""Two snapshots of one branch to the rows that changed between them: derived, since Iceberg records no change feed.

Added files are inserts and removed files are deletes. Of a file in both, rows that only the later snapshot deletes are
deletes, and rows that only the earlier one deleted are inserts: a delete file or vector may be removed or replaced by a
smaller one. A row that was only copied is deleted and inserted. A `replace` keeps the rows of its parent, by its own
definition; without a parent all its rows are new.

The rows that only one of two snapshots has come from their live files; nothing between them is read.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from lakeview.iceberg.manifests.tree import Tree, has_expired_parent
from lakeview.iceberg.metadata.refs import ancestors
from lakeview.iceberg.metadata.snapshots import SnapshotEntry
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.iceberg.scan.data_files import IcebergSource
from lakeview.iceberg.scan.plan import Scan
from lakeview.model.change_columns import CHANGE_FIELDS, CHANGE_TYPE, TIMESTAMP, VERSION, change_schema
from lakeview.model.column_values import moment
from lakeview.model.errors import InvalidRequestError, VersionNotFoundError
from lakeview.model.frames import CHANGES_PLAN
from lakeview.model.schema import Schema
from lakeview.rows.difference import Difference, difference, only_in
from lakeview.rows.tasks import FileTask


@dataclass(frozen=True, slots=True)
class Step:
    """One snapshot and the one before it; None before the first."""

    after: SnapshotEntry
    before: SnapshotEntry | None


def steps(metadata: Metadata, tree: Tree, opening: SnapshotEntry | int, last: SnapshotEntry) -> list[Step]:
    """The snapshots of one branch up to `last`, oldest first: from `opening` on, or from a moment in milliseconds.

    InvalidRequestError where `opening` is none of `last`'s ancestors, VersionNotFoundError where a parent has expired.
    """
    line = list(reversed(ancestors(metadata, last.snapshot_id)))
    if isinstance(opening, int):
        window = [s for s in line if s.timestamp_ms >= opening]
    elif opening in line:
        window = line[line.index(opening) :]
    else:
        raise InvalidRequestError(
            f"snapshot {opening.snapshot_id} does not lie before snapshot {last.snapshot_id} on its branch",
            fix="choose two snapshots of one branch, the older first",
            kind="bad-range",
        )
    if window and has_expired_parent(metadata, tree, window[0]):
        raise VersionNotFoundError(
            f"the snapshot before {window[0].snapshot_id} has expired, so that what it changed is not known",
            fix="begin with a later snapshot",
        )
    return [Step(s, None if s.parent is None else metadata.snapshots[s.parent]) for s in window]


def change_tasks(
    steps: Sequence[Step], schema: Schema, tasks: Callable[[SnapshotEntry | None, Schema], Sequence[FileTask]]
) -> Iterator[tuple[Step, str, FileTask]]:
    """The files that hold the changes, by snapshot, each with the kind of its rows. `tasks`: a snapshot's files."""
    wide = change_schema(schema)
    table = Schema(tuple(f for f in wide if f not in CHANGE_FIELDS))
    by_snapshot: dict[int | None, dict[str, FileTask]] = {None: {}}
    for step in steps:
        if step.after.operation == "replace" and step.before is not None:
            continue
        before_id = None if step.before is None else step.before.snapshot_id
        before = by_snapshot.get(before_id)
        if before is None:
            before = {t.path: t for t in tasks(step.before, table)}
        after = {t.path: t for t in tasks(step.after, table)}
        by_snapshot = {None: {}, step.after.snapshot_id: after}
        for kind, mine, other in (("delete", before, after), ("insert", after, before)):
            for task in only_in(mine, other):
                assert isinstance(task.source, IcebergSource), "a file of an Iceberg table says what reads it"
                own = {CHANGE_TYPE: kind, VERSION: step.after.snapshot_id, TIMESTAMP: moment(step.after.timestamp_ms)}
                yield step, kind, replace(task, schema=wide, source=replace(task.source, own=own))


def plan_frame(tasks: Iterator[tuple[Step, str, FileTask]]) -> pl.DataFrame:
    """CHANGES_PLAN of the files that reading changes reads."""
    rows = [
        (step.after.snapshot_id, kind, task.path, task.known_rows, task.size or None, "derived")
        for step, kind, task in tasks
    ]
    return pl.DataFrame(rows, schema=CHANGES_PLAN, orient="row")


End = tuple[int, Scan]
"""A snapshot's id and its files."""


def end_difference(base: End, version: End, schema: Schema) -> Difference:
    """What the files of two snapshots do not share, read as `schema`; either may come first."""
    shared_paths = _shared_manifests(base[1].manifests(), version[1].manifests())
    sides = [(snapshot_id, scan.tasks(None, shared_paths)) for snapshot_id, scan in (base, version)]
    return difference(sides[0], sides[1], schema)


def _shared_manifests(first: pl.DataFrame, second: pl.DataFrame) -> pl.Series:
    """The paths of the manifests of data files that both have, and whose files have the same rows in both: none where
    the delete files may differ. A million files of both are then neither read nor made tasks."""
    deletes = [set(manifests.filter(manifests["content"] != 0)["manifest_path"]) for manifests in (first, second)]
    if deletes[0] != deletes[1]:
        return first["manifest_path"].clear()
    columns = ["manifest_path", "sequence_number", "first_row_id"]
    data = first.filter(first["content"] == 0).select(columns)
    return data.join(second.select(columns), on=columns, how="semi", nulls_equal=True)["manifest_path"]
