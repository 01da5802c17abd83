"""A transaction: changes gathered, then committed as one log entry, exclusively, or not at all."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

import msgspec
import polars as pl
import pyarrow as pa

from lakeview.delta.data.partition_values import partition_columns, partition_fields
from lakeview.delta.data.schemas import parse_schema, schema_text
from lakeview.delta.features import check_writable
from lakeview.delta.log.actions import AddFile, Metadata, RemoveFile, Txn
from lakeview.delta.log.commits import encode_actions
from lakeview.delta.log.paths import canonical, decoded, encode_path
from lakeview.delta.log.record_counts import records
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.times import CommitTimes, in_commit_start
from lakeview.delta.properties import value
from lakeview.delta.write.batches import Frame, batches_of, conformed_table
from lakeview.delta.write.checkpoint import write_checkpoint
from lakeview.delta.write.commit_loop import CommitLoop
from lakeview.delta.write.conflicts import Intent
from lakeview.delta.write.evolution import check_evolution, check_types
from lakeview.delta.write.partition_conditions import partition_condition, selected
from lakeview.delta.write.property_checks import check_honoured, check_settable
from lakeview.delta.write.rules import active_features, check_supported
from lakeview.delta.write.target import Target
from lakeview.delta.write.writer import ENGINE, WriteContext, discard, write_context, write_files
from lakeview.model.clock import Clock
from lakeview.model.errors import ConstraintViolationError, CorruptTableError, InvalidRequestError, LakeviewError
from lakeview.model.schema import Field, Schema
from lakeview.model.snapshot import milliseconds

__all__ = ["Transaction"]

_EVERY = pl.lit(value=True)


class Transaction:
    """One commit in the making, on the table's latest version.

    Data files are written as changes are made; the commit is one file, created only if it is not there. When another
    writer was first, ours follows it if nothing collides (appends never do), otherwise CommitConflictError names what
    did. Left by an exception, nothing is committed and the files written are removed.
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
        if table.log.replaced:  # a commit would follow those of a table that is no longer there
            raise CorruptTableError(
                f"{table.storage.root} was moved away, or deleted and made anew, since it was opened",
                fix="open it again",
                place=table.storage.root,
                kind="another-table",
            )
        self._base: Replay = table.state()
        self._operation = operation
        self._parameters = dict(parameters or {})
        self._metrics = dict(metrics or {})
        self._extra = {"userName": user, "userMetadata": user_metadata}
        self._engine = engine or ENGINE
        self._clock = clock
        self._id = str(uuid.uuid4())
        self._metadata: Metadata | None = None
        self._adds: list[AddFile] = []
        self._written: list[AddFile] = []
        self._removes: dict[str, RemoveFile] = {}
        self._txns: dict[str, Txn] = {}
        self._reads: pl.Expr | None = None
        self._touched = False
        self.version: int | None = None
        self.checkpoint_error: str | None = None
        self._check_writable()

    # -- what can be changed

    @property
    def schema(self) -> Schema:
        """The schema rows are written as: the table's, or the evolved one."""
        return parse_schema((self._metadata or self._base.metadata).schema_string)

    def context(self) -> WriteContext:
        """What another process needs to write files for this transaction."""
        check_types(self.schema)
        return write_context(
            self._storage.root, self.schema, self._base.metadata.partition_columns or [], self._properties()
        )

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
        adds = write_files(context, batches_of(frame), statistics=statistics, clock=self._clock, storage=self._storage)
        self._written += adds
        self.add(adds)

    def overwrite(self, frame: Frame, where: str | pl.Expr | None = None) -> None:
        """Remove the files of whole partitions (all without `where`) and write rows in their place.

        ConstraintViolationError if a row lies outside `where`; nothing is written then.
        """
        rows = conformed_table(frame, self.schema)
        if where is not None:
            expression = self._on_partitions(where)
            values = pl.DataFrame(pl.from_arrow(rows.select(self._base.metadata.partition_columns or [])))
            outside = rows.num_rows - (selected(values, rows.num_rows, expression).sum() if rows.num_rows else 0)
            if outside:
                raise ConstraintViolationError(
                    f"{outside:,} rows lie outside {where!r}, which the overwrite replaces",
                    fix="filter the rows, or widen the condition",
                    kind="replace-where",
                )
        self.remove(where)
        self.append(rows)

    def add(self, adds: Sequence[AddFile]) -> None:
        """Add files that are written already, by this process or another; the log entry is what makes them live."""
        self._touched = True
        self._adds += adds

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
        if data_change and value(self._properties(), "delta.appendOnly"):
            raise ConstraintViolationError(
                "the table is append-only (delta.appendOnly): data may be rearranged, not removed",
                fix="unset delta.appendOnly if the data may go",
                kind="append-only",
            )
        self._touched = True
        live = self._base.adds(["size", "partition_values"])
        if paths is not None:
            live = self._named(live, paths)
        else:
            expression = _EVERY if where is None else self._on_partitions(where)
            live = live.filter(self._selected(live, expression))
            self._reads = expression if self._reads is None else self._reads | expression
        now = milliseconds(self._clock())
        for key, path, size, values in live.select("key", "path", "size", "partition_values").iter_rows():
            self._removes[key] = RemoveFile(
                encode_path(path), now, data_change, extended_file_metadata=True, partition_values=values, size=size
            )
        return live.height

    def evolve(self, schema: Schema) -> None:
        """Change the schema: nullable columns and fields of structs may be added, comments changed.

        InvalidRequestError for anything else, UnsupportedTableError for a type that is not written.
        """
        check_evolution(self.schema, schema)
        check_types(schema)
        self._change_metadata(schema_string=schema_text(schema))

    def replace_schema(self, schema: Schema) -> None:
        """Give the table another schema altogether, for the rows that come next.

        InvalidRequestError unless this commit has removed every file, whose columns the schema would have to keep.
        """
        left = set(self._base.adds([])["key"]) - self._removes.keys()
        if left or self._adds or self._partitions():
            raise InvalidRequestError(
                "the schema of a table can be replaced only by a commit that replaces all of its files first, and not "
                "where it is partitioned",
                fix="remove all files before, or evolve the schema",
                kind="schema-change",
            )
        check_types(schema)
        self._change_metadata(schema_string=schema_text(schema))

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set table properties; the others stay.

        InvalidRequestError for an unknown `delta.*` property or a value that cannot be meant, UnsupportedTableError for
        one that would not be honoured, or whose feature the table lacks.
        """
        check_settable(properties)
        known = (self._metadata or self._base.metadata).configuration or {}
        self._change_metadata(configuration={**known, **properties})
        self._check_writable()

    def set_transaction(self, app_id: str, version: int) -> None:
        """Record how far an application has got, with this commit."""
        self._touched = True
        self._txns[app_id] = Txn(app_id, version, milliseconds(self._clock()))

    # -- committing

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()
        else:
            discard(self._written, self._storage)

    def commit(self) -> int | None:
        """Commit; returns the version, or None if nothing was changed. What did not commit leaves no data files."""
        if not self._touched or self.version is not None:
            return self.version
        loop = CommitLoop(self._table, self._id)
        try:
            self._check_keys()
            self.version = loop.run(self._base.version, self._encode, self._intent())
        except LakeviewError:
            if not loop.unsure:  # a commit that may be there needs its files
                discard(self._written, self._storage)
            raise
        self._checkpoint(self.version)
        return self.version

    def _intent(self) -> Intent:
        changes = {a.data_change for a in self._adds} | {r.data_change for r in self._removes.values()}
        return Intent(
            reads=self._reads,
            removes=frozenset(self._removes),
            app_ids=frozenset(self._txns),
            changes_metadata=self._metadata is not None,
            rearranges=self._metadata is None and changes == {False},
            partitions=tuple(self._partitions()),
        )

    def _encode(self, version: int) -> bytes:
        now = self._clock()
        blind = bool(self._adds) and not self._removes and self._reads is None
        info = {
            "timestamp": milliseconds(now),
            "operation": self._operation,
            "operationParameters": self._parameters,
            "operationMetrics": {k: str(v) for k, v in {**self._counted(), **self._metrics}.items()},
            "readVersion": self._base.version,
            "isolationLevel": "Serializable",
            "isBlindAppend": blind,
            "engineInfo": self._engine,
            "txnId": self._id,
            **{k: v for k, v in self._extra.items() if v is not None},
        }
        enabled = in_commit_start(self._base.table_protocol, self._properties())
        if enabled is not None:
            # In-Commit Timestamps: "the larger of" now and one millisecond above the previous commit's
            previous = CommitTimes(self._table.log, enabled).of(version - 1)
            own = now if previous is None else max(now, previous + timedelta(milliseconds=1))
            info["inCommitTimestamp"] = milliseconds(own)
        return encode_actions(self._actions(info))

    def _actions(self, info: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        yield "commitInfo", info
        if self._metadata is not None:
            yield "metaData", self._metadata
        for txn in self._txns.values():
            yield "txn", txn
        for remove in self._removes.values():
            yield "remove", remove
        for add in self._adds:
            yield "add", add

    def _counted(self) -> dict[str, int]:
        counts = records(pl.Series("stats", [a.stats for a in self._adds], dtype=pl.String), None)
        found = {
            "numFiles": len(self._adds),
            "numOutputBytes": sum(a.size for a in self._adds),
            "numRemovedFiles": len(self._removes),
            "numRemovedBytes": sum(r.size or 0 for r in self._removes.values()),
        }
        return found if counts.has_nulls() else {**found, "numOutputRows": int(counts.sum())}

    def _check_keys(self) -> None:
        """ "A single log entry MUST NOT include more than one action that reconciles with each other." """
        paths = decoded(pl.Series("path", [a.path for a in self._adds], dtype=pl.String))
        keys = canonical(paths, self._storage.root).to_list()
        if len(set(keys)) < len(keys) or set(keys) & self._removes.keys():
            twice = next(k for k in keys if keys.count(k) > 1 or k in self._removes)
            raise InvalidRequestError(
                f"the file {twice} would be added or removed twice in one commit",
                fix="add and remove each file once",
                kind="duplicate-file-action",
            )

    def _checkpoint(self, version: int) -> None:
        every: int = value(self._properties(), "delta.checkpointInterval") or 10
        try:
            self._table.refresh()
            if version % every == 0:
                write_checkpoint(self._table, version)
        except (LakeviewError, OSError, ValueError, TypeError, pa.ArrowException, pl.exceptions.PolarsError) as error:
            # a side effect that must never fail a commit: the next one is due in a few commits
            self.checkpoint_error = str(error)

    # -- inside

    def _properties(self) -> dict[str, str]:
        return (self._metadata or self._base.metadata).properties

    def _partitions(self) -> list[Field]:
        metadata = self._base.metadata
        return partition_fields(parse_schema(metadata.schema_string), metadata.partition_columns or [])

    def _check_writable(self) -> None:
        metadata = self._metadata or self._base.metadata
        check_writable(self._base.table_protocol, active_features(metadata), self._storage.root)
        check_honoured(metadata.properties, self._storage.root)

    def _change_metadata(self, **changes: Any) -> None:
        self._touched = True
        changed = msgspec.structs.replace(self._metadata or self._base.metadata, **changes)
        check_supported(self._base.metadata, changed, self._base.table_protocol, self._storage.root)
        self._metadata = changed

    def _on_partitions(self, where: str | pl.Expr) -> pl.Expr:
        return partition_condition(where, self.schema, self._base.metadata.partition_columns or [])

    def _selected(self, live: pl.DataFrame, expression: pl.Expr) -> pl.Series:
        values = pl.DataFrame(partition_columns(live["partition_values"], self._partitions()))
        return selected(values, live.height, expression)

    def _named(self, live: pl.DataFrame, paths: Sequence[str]) -> pl.DataFrame:
        keys = canonical(pl.Series("key", list(paths), dtype=pl.String), self._storage.root)
        found = live.filter(live["key"].is_in(keys.implode()))
        if found.height < keys.n_unique():
            missing = next(k for k in keys if k not in set(live["key"]))
            raise InvalidRequestError(f"{missing} is no live file of the table", place=missing, kind="file-not-live")
        return found
