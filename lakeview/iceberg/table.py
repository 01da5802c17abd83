"""An Iceberg table: its metadata file to snapshots, history and rows."""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

import polars as pl

from lakeview.iceberg.lint import check
from lakeview.iceberg.manifests.statistics import asked_leaves, statistics_frame
from lakeview.iceberg.metadata import versions
from lakeview.iceberg.metadata.locate import Place, Pointer, locate
from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT, SnapshotEntry
from lakeview.iceberg.metadata.time_travel import describe_snapshot, entry_of
from lakeview.iceberg.metadata_frames import MetadataFrames
from lakeview.iceberg.scan.changes import Step, change_tasks, end_difference, plan_frame, steps
from lakeview.iceberg.scan.data_files import LINEAGE
from lakeview.iceberg.scan.metadata_columns import with_metadata_columns
from lakeview.iceberg.state import State
from lakeview.iceberg.write.operations import Operations
from lakeview.model.arguments import integer_of, names_of, optional_integer
from lakeview.model.change_columns import change_schema
from lakeview.model.errors import CorruptTableError, VersionNotFoundError
from lakeview.model.findings import Finding
from lakeview.model.physical_file import PhysicalFile
from lakeview.model.range_read import RangeRead, RangeTasks
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot, milliseconds
from lakeview.model.table_display import TableDisplay
from lakeview.predicates.evaluation import condition_of
from lakeview.rows.footers import listed_size, physical_file
from lakeview.rows.lazy import lazy_rows
from lakeview.rows.tasks import FileTask, of_files, select_columns
from lakeview.storage import Storage


class IcebergTable(Operations, MetadataFrames, TableDisplay):
    """An Iceberg table at one address. Implements `lakeview.model.table.Table`; safe to use from several threads.

    Versions are snapshot ids; a table that never had a snapshot is at version -1. `relocate`: recorded prefixes to
    where they lie now, for files that were moved apart from the table's folder. `pointer`: the catalog that knows its
    current metadata file, where it was opened from one.
    """

    format = "iceberg"

    def __init__(
        self,
        storage: Storage,
        place: Place,
        relocate: Mapping[str, str] | None = None,
        pointer: Pointer | None = None,
    ) -> None:
        self.relocate: Mapping[str, str] = dict(relocate or {})
        self.pointer = pointer
        self._lock = threading.Lock()
        self.state = State(storage, place, locate(storage, place), self.relocate)
        """Its metadata at the last refresh, for the writer."""

    @property
    def storage(self) -> Storage:
        """The store of its folder; a table of a catalog may move to another one with a refresh."""
        return self.state.storage

    @property
    def address(self) -> str:
        """Where it was opened, normalised, without credentials."""
        if self.pointer is not None:
            return self.pointer.address
        state = self.state
        if state.place.explicit is None:
            return state.storage.root
        return f"{state.storage.root.rstrip('/')}/{state.metadata_file.path}"

    @property
    def latest_version(self) -> int:
        """The current snapshot's id at the last refresh; -1 where there is none."""
        return self.state.metadata.current_snapshot_id

    def refresh(self) -> bool:
        """True if there is a newer metadata file; costs one listing, or one request to its catalog, whose newest
        credentials are used from then on. One opened by its metadata file's address never changes.

        CorruptTableError if the folder now holds another table, NotATableError if its catalog no longer holds it.
        """
        self.state.history.folder.forget()
        storage, place = self.state.storage, self.state.place
        if self.pointer is not None:
            storage, place = self.pointer.current()
        elif place.explicit is not None:
            return False
        metadata_file = locate(storage, place)
        with self._lock:
            before = self.state
            if before.storage.adopt_credentials(storage):  # so that snapshots read before use them too
                storage = before.storage
                if metadata_file == before.metadata_file:
                    return False
            after = State(storage, place, metadata_file, self.relocate, before)
            if before.metadata.table_uuid != after.metadata.table_uuid:
                raise CorruptTableError(
                    f"{self.address} was the table {before.metadata.table_uuid} and is {after.metadata.table_uuid} now",
                    fix="open it again, if the new one is the one you mean",
                    place=metadata_file.path, kind="another-table",
                )  # fmt: skip
            self.state = after
        return (after.storage.root, after.metadata_file.path) != (before.storage.root, before.metadata_file.path)

    def snapshot(self, version: int | None = None, *, at: datetime | None = None, ref: str | None = None) -> Snapshot:
        """The table at a snapshot id, a moment or a ref; the current snapshot without any.

        The current one and branches have the table's current schema, ids, moments and tags the schema they were written
        with. VersionNotFoundError, InvalidRequestError (a naive moment, several of the three).
        """
        state = self.state
        entry, schema = self._snapshot_and_schema(state, version, at, ref)
        files = state.files(entry)
        metadata = describe_snapshot(state.metadata, self.address, entry, schema, state.columns)
        return Snapshot(metadata, files, counts=files.totals, table=self)

    def versions(self, *, look: bool = True) -> pl.DataFrame:
        """VERSIONS, newest first; one listing of the table's folder tells which files are gone. With `look=False`
        `readable` is null, and neither a folder nor a manifest is looked at."""
        return self.state.history.versions() if look else versions.listed_versions(self.state.metadata)

    def list_ahead(self) -> None:
        """Begins the listing of a remote table's folder that the next `versions()` needs."""
        self.state.history.folder.begin()

    def commit(self, version: int) -> pl.DataFrame:
        """ACTIONS of one snapshot: the snapshot itself, then the files it added and removed."""
        state = self.state
        return state.history.commit(self._entry(state, integer_of(version, "version")))

    def files(
        self,
        version: int | None = None,
        columns: Sequence[str] | None = None,
        *,
        manifests: Collection[str] | None = None,
    ) -> pl.DataFrame:
        """FILES at a snapshot with these columns; with `manifests` those in manifests of these recorded paths."""
        state = self.state
        entry, _ = self._snapshot_and_schema(state, version)
        return state.files(entry).files(columns, manifests)

    def lifetimes(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        state = self.state
        leaves = None if columns is None else asked_leaves(state.metadata.schema, columns)
        return state.lifetimes.of(state.metadata.current_snapshot_id, leaves)

    def statistics(self, version: int | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        state = self.state
        entry, schema = self._snapshot_and_schema(state, version)
        files = state.files(entry)
        leaves = asked_leaves(schema, columns)
        parts = []
        for entries in files.each_data_entries([f.id for _, f in leaves if f.id is not None]):
            deletes = files.deletion_columns(entries)
            parts.append(statistics_frame(entries, deletes["deletion_vector"], deletes["deleted_records"], leaves))
        return pl.concat(parts, rechunk=False)

    def plan(self, where: str | pl.Expr, version: int | None = None) -> pl.DataFrame:
        state = self.state
        entry, schema = self._snapshot_and_schema(state, version)
        return state.scan(entry, schema).plan(condition_of(where, schema))

    def physical(self, path: str, version: int | None = None) -> PhysicalFile:
        state = self.state
        entry, schema = self._snapshot_and_schema(state, version)
        files = state.files(entry)
        deletes = files.delete_files().select("path", "size")
        size = listed_size(pl.concat([files.files(["path", "size"]), deletes]), path, self.address)
        return physical_file(state.storage, state.locations.resolve(path), size, schema, "id", recorded_path=path)

    def scan(
        self,
        version: int | None = None,
        *,
        at: datetime | None = None,
        ref: str | None = None,
        paths: Sequence[str] | None = None,
        row_tracking: bool = False,
        metadata_columns: Sequence[str] = (),
    ) -> pl.LazyFrame:
        """The rows at a snapshot, pinned now; filters prune manifests and files.

        `paths`: of these data files alone, by their paths in FILES; reading raises InvalidRequestError for one that the
        version has not.
        `metadata_columns`: which of `_file`, `_pos`, `_deleted`, `_spec_id`, `_partition`, `_row_id` and
        `_last_updated_sequence_number` follow the table's columns; with `_deleted`, deleted rows are given too, marked.
        `row_tracking` stands for the last two, null for rows from before the table kept them. InvalidRequestError for
        one the table cannot give. Collecting raises DataFileMissingError, CorruptTableError, and UnsupportedTableError
        for a type or a file format without rows.
        """
        state = self.state
        entry, schema = self._snapshot_and_schema(state, version, at, ref)
        names = [*metadata_columns, *(f.name for f in LINEAGE if row_tracking)]
        schema = with_metadata_columns(schema, names, state.metadata, state.columns)
        places = None if paths is None else [state.locations.resolve(path) for path in names_of(paths, "paths")]
        return lazy_rows(of_files(state.scan(entry, schema).tasks, places), schema, state.storage)

    def tasks(
        self, version: int | None = None, columns: Sequence[str] | None = None, where: str | pl.Expr | None = None
    ) -> list[FileTask]:
        """The files a read needs, each as a value that another process can read by itself (`lakeview.rows.tasks`);
        `where` skips files, it does not filter rows."""
        state = self.state
        entry, schema = self._snapshot_and_schema(state, version)
        tasks = state.scan(entry, schema).tasks(None if where is None else condition_of(where, schema))
        return select_columns(tasks, schema, columns)

    def tasks_as(self, version: int, schema: Schema, paths: Sequence[str] | None = None) -> list[FileTask]:
        """The files of a snapshot, or those of these recorded paths, with the columns of another version's schema."""
        state = self.state
        tasks = state.scan(self._entry(state, version), schema).tasks(None)
        places = None if paths is None else set(map(state.locations.resolve, paths))
        return tasks if places is None else [task for task in tasks if task.path in places]

    def check(self, now: datetime | None = None) -> list[Finding]:
        """What the metadata and the manifests contradict, worst first, and files that no snapshot names: with `now`
        those older than a day. Costs every manifest and one listing."""
        if now is not None:
            milliseconds(now)  # refuses a naive moment
        return check(self.state, now)

    def audit(self, start: int | None = None, end: int | None = None) -> pl.DataFrame:
        """AUDIT: for every snapshot from `start` to `end` (both included, in the order of commits) and every law that
        applies to it, whether the manifests prove it, show a violation, or cannot tell. VersionNotFoundError."""
        from lakeview.iceberg.audit import audit

        state = self.state
        first, last = optional_integer(start, "version"), optional_integer(end, "version")
        for version in (first, last):
            if version is not None:
                self._entry(state, version)
        return audit(state.metadata, state.tree, first, last)

    # -- inside

    def _changes(self, start: int | datetime, end: int | datetime | None) -> RangeRead:
        """The range lies on one branch, in snapshots; their parents have to be there."""
        state = self.state
        point = (None, end) if isinstance(end, datetime) else (end, None)
        last, schema = self._snapshot_and_schema(state, *point)
        if last is None:
            raise VersionNotFoundError(f"{self.address} has no snapshot", fix="there are no changes to ask for")
        opening = milliseconds(start) if isinstance(start, datetime) else self._entry(state, start)
        pairs = steps(state.metadata, state.tree, opening, last)

        def tasks() -> Iterator[tuple[Step, str, FileTask]]:
            return change_tasks(pairs, schema, lambda entry, schema: state.scan(entry, schema).tasks(None))

        def rows() -> pl.LazyFrame:
            return lazy_rows(lambda _where: (task for _, _, task in tasks()), change_schema(schema), state.storage)

        def all_tasks() -> RangeTasks:
            return change_schema(schema), [(task, None) for _, _, task in tasks()]

        return RangeRead(lambda: plan_frame(tasks()), rows, all_tasks)

    def _difference(self, base: int, version: int | None) -> RangeRead:
        """Of any two snapshots, on any branches; the columns are those of the one that was made later."""
        state = self.state
        ends = [self._snapshot_and_schema(state, base), self._snapshot_and_schema(state, version)]
        order = {entry.snapshot_id: place for place, entry in enumerate(versions.in_order(state.metadata))}
        _, schema = max(ends, key=lambda end: -1 if end[0] is None else order[end[0].snapshot_id])
        first, last = ((NO_SNAPSHOT if e is None else e.snapshot_id, state.scan(e, schema)) for e, _ in ends)
        return end_difference(first, last, schema).range_read(state.storage)

    def _entry(self, state: State, version: int) -> SnapshotEntry:
        return entry_of(state.metadata, self.address, version)
