"""What a transaction has gathered to the bytes of one log entry, placed after all that was committed meanwhile."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import Any, Self

import polars as pl

from lakeview.delta.data.column_rules import clustering_columns
from lakeview.delta.data.row_tracking import tracked_fields
from lakeview.delta.data.schemas import schema_text
from lakeview.delta.log.actions import AddFile, DomainMetadata, Txn
from lakeview.delta.log.commits import Commit, encode_actions, json_text
from lakeview.delta.log.replay import Replay
from lakeview.delta.properties import value
from lakeview.delta.write.commit_loop import CommitLoop, follow_up
from lakeview.delta.write.conflicts import Intent, Winner, check_conflict, isolation_level
from lakeview.delta.write.context import MATERIALIZE_PARTITIONS, WriteContext, write_context
from lakeview.delta.write.definition import Definition
from lakeview.delta.write.deletion_vectors import (
    Rearrangement,
    VectorChange,
    follow_deletes,
    join_vectors,
    replace_vectors,
)
from lakeview.delta.write.entry import Entry, next_in_commit_time
from lakeview.delta.write.evolution import check_types
from lakeview.delta.write.file_changes import FileChanges
from lakeview.delta.write.identity import with_marks
from lakeview.delta.write.live_files import LiveFile, live_files
from lakeview.delta.write.row_changes import RowChanges, record_whole_files
from lakeview.delta.write.row_ids import high_water_mark, later_mark, mark_domain, tracks_rows, with_row_ids
from lakeview.delta.write.target import Target
from lakeview.delta.write.writer import ENGINE, FileWriter
from lakeview.model.arguments import function_of, mapping_of, optional_text, text_of
from lakeview.model.clock import Clock
from lakeview.model.errors import CorruptTableError
from lakeview.model.schema import Schema
from lakeview.storage import Storage


class PendingCommit:
    """What a transaction has gathered on one version of a table, and how it becomes the next one.

    `definition` and `files` are what the commit holds, `entry` what it says about itself; `version` is what it became.
    """

    def __init__(
        self,
        table: Target,
        operation: str,
        *,
        parameters: Mapping[str, Any] | None,
        metrics: Mapping[str, Any] | None,
        user: str | None,
        user_metadata: str | None,
        engine: str | None,
        clock: Clock,
    ) -> None:
        self._table = table
        self._storage = table.storage
        table.refresh()
        if table.log.is_replaced:  # a commit would follow those of a table that is no longer there
            raise CorruptTableError(
                f"{table.storage.root} was moved away, or deleted and created again, since it was opened",
                fix="open it again",
                place=table.storage.root,
                kind="another-table",
            )
        self._base: Replay = table.state()
        self.clock = clock
        self.entry = Entry(
            text_of(operation, "operation"),
            mapping_of({} if parameters is None else parameters, "parameters"),
            mapping_of({} if metrics is None else metrics, "metrics"),
            optional_text(user, "user"),
            optional_text(user_metadata, "user_metadata"),
            optional_text(engine, "engine") or ENGINE,
            function_of(clock, "clock"),
        )
        self._loop = CommitLoop(table, self.entry.txn_id)
        self.definition = Definition(self._base, table.storage.root)
        self.files = FileChanges(table.storage, clock)
        self._whole_adds: list[AddFile] = []
        self._whole_removes: list[dict[str, Any]] = []
        self._vector_changes: list[VectorChange] = []
        self._rearrangements: list[Rearrangement] = []
        self.domains: list[DomainMetadata] = []
        self._marks: dict[str, int] = {}
        self._txns: dict[str, Txn] = {}
        self.intent = Intent()
        self._earlier_mark = -1
        self._done_before = False
        self._commits_always = False
        self.version: int | None = None
        self.checkpoint_error: str | None = None
        self.definition.check_writable()

    @property
    def storage(self) -> Storage:
        """The store of the table."""
        return self._storage

    @property
    def schema(self) -> Schema:
        """The schema rows are written as: the table's, or the evolved one."""
        return self.definition.schema

    def context(self) -> WriteContext:
        """What another process needs to write files for this transaction.

        UnsupportedTableError for a type that is not written, and a rule that cannot be evaluated; CorruptTableError for
        partition columns that cannot be such.
        """
        check_types(self.schema)
        partitions = [field.name for field in self.definition.partitions]
        context = write_context(
            self._storage.root, self.schema, partitions, self.definition.properties, self._clustering
        )  # fmt: skip
        return replace(
            context,
            tracked_fields=tracked_fields(self.schema, self.definition.properties) if self._keeps_row_ids else (),
            materialize_partitions=context.materialize_partitions or self.definition.supports(MATERIALIZE_PARTITIONS),
            vectors=self.definition.enables("deletionVectors", "delta.enableDeletionVectors"),
            feed=bool(value(self.definition.properties, "delta.enableChangeDataFeed")),
        )

    def file_writer(self, **changes: Any) -> FileWriter:
        """What writes files for this transaction; `changes`: fields of its context that have other values."""
        return FileWriter(replace(self.context(), **changes), self._storage, self.clock)

    def row_changes(self) -> RowChanges:
        """Where an operation says which rows go and come."""
        return RowChanges(self.file_writer(), self.files)

    def reads(self, expression: pl.Expr) -> None:
        """Note that the operation depends on all rows for which a condition may be true."""
        self.intent.reads = expression if self.intent.reads is None else self.intent.reads | expression

    def live_files(self, where: pl.Expr | None) -> list[LiveFile]:
        """The live files that may hold rows for which a condition is true, all without one."""
        return live_files(self._base, self.definition, self._storage, where, self._clustering)

    def raise_row_id_mark(self, mark: int) -> None:
        """Give row ids above those up to a mark of an earlier version, which come back with their files."""
        if mark > self._row_id_mark:
            self._row_id_mark = self._earlier_mark = mark

    def finish(self, work: RowChanges, metrics: Mapping[str, int]) -> None:
        """Take what an operation did into the commit, and its counts into operationMetrics."""
        self._vector_changes += work.finish()
        self.entry.count({**work.counts, **metrics})

    @property
    def _has_changes(self) -> bool:
        """Whether there is something to commit: also for an append of no rows, and for a replacement of the table."""
        files = self.files
        changes = self._commits_always or files.adds or files.removes or self.domains or self._txns
        return bool(changes) or self.definition.is_changed

    # -- committing

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()
        elif not self._loop.unsure:  # commit() was called, and may have been made
            self.files.discard()

    def commit(self) -> int | None:
        """Commit; returns the version, or None if nothing was changed. What did not commit leaves no data files."""
        if not self._has_changes or self.version is not None:
            return self.version
        if self._done_before:
            self.files.discard()
            return None
        if self._marks:
            self.definition.change_metadata(schema_string=schema_text(with_marks(self.schema, self._marks)))
        if self.domains or tracks_rows(self.definition):
            self.definition.support_dependencies()
        loop = self._loop
        try:
            if self.files.changes:
                with self.row_changes() as work:
                    record_whole_files(work, self.definition, self._whole_adds, self._whole_removes)
                    work.finish()
            self.files.check()
            self.version = loop.run(self._base.version, self._encode, self._follow)
        except BaseException:
            if not loop.unsure:  # a commit that may be there needs its files
                self.files.discard()
            raise
        self.files.discard_unused()
        # what is added again without a remove was live before: counting actions would count it twice
        is_reconciled = not self.files.live_again
        self.checkpoint_error = follow_up(
            self._table, self.version, self.definition.properties, self.clock, is_reconciled=is_reconciled
        )
        return self.version

    def _intent(self) -> Intent:
        changes = {a.data_change for a in self.files.adds} | {r.data_change for r in self.files.removes.values()}
        return replace(
            self.intent,
            removes=self.files.removed_paths | self.files.live_again,
            vectors=frozenset(change.file.key for change in self._vector_changes)
            | frozenset(file.key for move in self._rearrangements if move.is_ordered for file in move.files),
            app_ids=frozenset(self._txns),
            domains=frozenset(d.domain for d in self.domains),
            changes_metadata=self.definition.changes_metadata,
            changes_protocol=self.definition.changes_protocol,
            rearranges=not self.definition.changes_metadata and changes == {False},
            level=isolation_level(self.definition.properties),
            schema=self.schema,
            partitions=tuple(self.definition.partitions),
        )

    def _follow(self, commit: Commit) -> None:
        """Place what we mean to do after a commit that was first; CommitConflictError if the two collide."""
        winner = Winner(commit, self._storage)
        check_conflict(winner, self._intent(), self.definition.metadata, self.definition.protocol)
        overlap = self.intent.only_deletes and not self.files.changes
        joined_vectors = join_vectors(self._vector_changes, winner, overlap=overlap)
        if joined_vectors is not None:
            self._replace_vectors(joined_vectors)
        self._rearrangements = follow_deletes(self._rearrangements, winner, self.files)
        if commit.definition != (None, None):
            self.definition.adopt(self._table.state(commit.version))
            self.definition.check_writable()
        if tracks_rows(self.definition):
            self._row_id_mark = later_mark(commit, self._row_id_mark)

    def _replace_vectors(self, changes: list[VectorChange]) -> None:
        before = sum(len(change.positions) for change in self._vector_changes)
        self.files.withdraw({change.file.key for change in self._vector_changes})
        self._vector_changes = [change for change in changes if change.positions]
        replace_vectors(self._vector_changes, self.files, self.context().folder_prefix())
        if "numDeletedRows" in self.entry.counts:
            now = sum(len(change.positions) for change in self._vector_changes)
            self.entry.counts["numDeletedRows"] -= before - now

    def _encode(self, version: int) -> bytes:
        """The bytes of the commit as that version."""
        adds, domain = self.files.adds, None
        if adds and tracks_rows(self.definition):
            adds, domain = with_row_ids(adds, version, self._row_id_mark)
        if domain is None and -1 < self._earlier_mark == self._row_id_mark:
            domain = mark_domain(self._earlier_mark)
        in_commit = next_in_commit_time(self._table.log, self.definition, version, self.clock())
        if self.entry.operation == "WRITE":
            self.entry.parameters.setdefault("partitionBy", json_text(self.definition.partition_columns))
        info = self.entry.info(
            read_version=self._base.version,
            blind=bool(adds) and not self.files.removes and self.intent.reads is None,
            files=self.files,
            in_commit=in_commit,
            level=isolation_level(self.definition.properties),
            row_ids_kept=self._keeps_row_ids,
        )
        domains = [("domainMetadata", d) for d in (*self.domains, domain) if d is not None]
        txns = [("txn", txn) for txn in self._txns.values()]
        return encode_actions(
            [
                ("commitInfo", info),
                *self.definition.actions(version, in_commit),
                *txns,
                *domains,
                *self.files.actions(adds),
            ]
        )

    @property
    def _keeps_row_ids(self) -> bool:
        """Whether rows that are written again keep their ids: row tracking is enabled, not only supported."""
        return self.definition.enables("rowTracking", "delta.enableRowTracking")

    @cached_property
    def _row_id_mark(self) -> int:
        return high_water_mark(self._base)

    @cached_property
    def _clustering(self) -> list[str]:
        if not self.definition.supports("clustering"):
            return []
        return clustering_columns(self.schema, self._base.domain_metadata())
