"""Batch writing: Arrow batches on the executors to data files, and on the driver those files to one commit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any

import msgspec
import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

import lakeview as lv
from lakeview.delta.data.type_widening import widens_unasked
from lakeview.delta.log.actions import AddFile
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.context import WriteContext, write_context
from lakeview.delta.write.create import check_creatable
from lakeview.delta.write.evolution import merge_schemas
from lakeview.delta.write.file_changes import paths_of
from lakeview.delta.write.transaction import Transaction
from lakeview.delta.write.writer import discard, write_files
from lakeview.model.clock import Clock, system_clock
from lakeview.model.errors import CommitConflictError, InvalidRequestError, NotATableError, UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.rows.conform import check_columns_fit
from lakeview.spark.addresses import delta_table
from lakeview.spark.native import quoted
from lakeview.spark.options import IfExists, Statistics, WriteOptions
from lakeview.spark.replacement import Replacement, check_replaceable
from lakeview.spark.types import from_spark
from lakeview.storage import Storage, open_storage
from lakeview.storage.access import StoreAccess

ENGINE = f"lakeview/{lv.__version__} Apache-Spark/{pyspark.__version__}"


@dataclass
class FilesWritten(WriterCommitMessage):
    """The files of one task and its number of rows, for the driver; `definition`: what the table was to the task."""

    adds: list[AddFile]
    rows: int
    definition: str


class LakeviewWriter(DataSourceArrowWriter):
    """Made on the driver, copied to each task for `write`, and asked on the driver to `commit` or `abort`.

    A table that is not there is created by the commit: a write that fails leaves none behind. Raises
    InvalidRequestError when the rows' columns and fields are not the table's, and for a replaceWhere that does not
    select whole partitions, before any row is written.
    """

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        # with what the configuration of the driver says: a task may have no such file
        storage = open_storage(options.path, options=options.access.options)
        self.options = options = replace(options, access=StoreAccess.of(storage))
        self.overwrite = overwrite
        rows_schema = from_spark(schema)
        self.ignored = False
        try:
            table = _open(options)
        except NotATableError:
            self.rows_schema: Schema | None = None
            self.definition = ""
            self.context = context_of_new(options, rows_schema)
        else:
            self.ignored = is_ignored(options)
            self.rows_schema = rows_schema if options.merge_schema or options.overwrite_schema else None
            self.context = context_of(table, options, rows_schema, overwrite=overwrite)
            self.definition = _definition(table)
        if options.max_rows is not None:
            self.context = replace(self.context, rows_per_file=options.max_rows)
        self.replacement = Replacement(options, self.context, overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FilesWritten:
        """The rows of one task to files. A task that fails removes what it wrote; Spark may then run it again.

        The row that a refusal names is counted from 0 in the rows of the task.
        """
        if self.ignored:
            return FilesWritten([], 0, self.definition)
        rows = _Counted(self.replacement.checked(iterator))
        counts_only = self.options.statistics is Statistics.COUNTS
        adds = write_files(
            replace(self.context, indexed=frozenset()) if counts_only else self.context,
            rows,
            data_change=self.options.data_change,
            statistics=self.options.statistics is not Statistics.NONE,
            clock=clock_of(self.options.commit_timestamp),
            storage=self._storage(),
        )
        return FilesWritten(adds, rows.count, self.definition)

    def commit(
        self, messages: Sequence[WriterCommitMessage | None], parameters: Mapping[str, Any] | None = None
    ) -> None:
        """All files of all tasks as one commit, after a commit that creates the table if it is not there.

        `parameters`: operationParameters in place of those of a write.
        CommitConflictError when another writer was first and the two collide, or when the table's columns, rules or
        features are no longer those by which the files were written; Spark then calls `abort`.
        """
        written = _file_messages(messages)
        adds = [add for message in written for add in message.adds]
        clock = clock_of(self.options.commit_timestamp)
        try:
            created = None if self.ignored else self._create(clock)
            if created is None and is_ignored(self.options):
                self._discard(messages)
                return
            table = _open(self.options) if created is None else created
        except BaseException:
            self._discard(messages)
            raise
        described, metrics = self._described(adds, sum(message.rows for message in written))
        with table.transaction(
            self.options.operation,
            parameters=described if parameters is None else dict(parameters),
            metrics=metrics,
            user=self.options.user_name,
            user_metadata=self.options.user_metadata,
            engine=ENGINE,
            clock=clock,
        ) as transaction:
            # they go if the commit is not made, and stay if no reply says whether it was
            transaction.files.written += paths_of(adds)
            if created is None:
                _check_definition(table, written)
            if self.options.app_id is not None and self.options.app_version is not None:
                transaction.set_transaction(self.options.app_id, self.options.app_version, once=True)
            if self.rows_schema is not None and self.options.merge_schema:
                _evolve(transaction, self.rows_schema)
            self.replacement.apply(transaction, adds, self.rows_schema)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove the files of the tasks that ended well; the failed ones have removed theirs.

        Where every task ended well a commit was tried, which has removed them itself, or must leave them: a store that
        did not answer may have taken it. A task that Spark ends after its last row, before its word reaches the driver,
        leaves files that no commit names: nobody reads them, and the log doctor tells of them.
        """
        if any(message is None for message in messages):
            self._discard(messages)

    def _discard(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        storage = self._storage()
        for message in _file_messages(messages):
            discard(message.adds, storage)

    def _storage(self) -> Storage:
        return self.options.access.open(self.context.root)

    def _create(self, clock: Clock) -> DeltaTable | None:
        """The table, made now; None if it is there."""
        try:
            _open(self.options)
        except NotATableError:
            return lv.create_table(
                self.options.path,
                self.context.schema,
                partition_by=list(self.context.partition_columns),
                properties=dict(self.options.properties),
                user=self.options.user_name,
                clock=clock,
                storage_options=self.options.access.options,
            )
        return None

    def _described(self, adds: Sequence[AddFile], rows: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """operationParameters and operationMetrics, in the words the operation is known by."""
        size = sum(add.size for add in adds)
        if not self.options.data_change:
            replaced = self.options.replace_files or ()
            return {"predicate": "[]"}, {
                "numAddedFiles": len(adds),
                "numAddedBytes": size,
                "numRemovedFiles": len(replaced),
            }
        parameters: dict[str, Any] = {
            "mode": "Overwrite" if self.overwrite else "Append",
            "partitionBy": list(self.context.partition_columns),
        }
        if self.options.dynamic:
            parameters["partitionOverwriteMode"] = "dynamic"
        if self.options.replace_where is not None:
            parameters["predicate"] = self.options.replace_where
        return parameters, {"numFiles": len(adds), "numOutputRows": rows, "numOutputBytes": size}


def is_ignored(options: WriteOptions) -> bool:
    """Whether rows are not written, because a table is there. InvalidRequestError where there must be none."""
    if options.if_exists is IfExists.ERROR:
        raise InvalidRequestError(
            f"there is a table at {options.path}, and ifExists is error",
            fix="leave ifExists out to append or overwrite, or write to another address",
            place=options.path,
            kind="table-exists",
        )
    return options.if_exists is IfExists.IGNORE


def _definition(table: DeltaTable) -> str:
    """A digest of what tells how the latest version is written: protocol, columns and properties."""
    state = table.state()
    return blake2b(msgspec.json.encode((state.protocol, state.metadata)), digest_size=16).hexdigest()


def _check_definition(table: DeltaTable, messages: Sequence[FilesWritten]) -> None:
    if any(message.definition != _definition(table) for message in messages):
        raise CommitConflictError(
            f"the columns, properties or features of {table.address} changed while the rows were written",
            fix="write again: the rows are then held against the table as it is now",
            place=table.address,
            kind="metadata-changed",
        )


def context_of_new(options: WriteOptions, rows_schema: Schema) -> WriteContext:
    """How files of a table are written that the commit will create."""
    for name in options.partition_by:
        if name not in rows_schema:
            raise InvalidRequestError(
                f"partitionBy names {name}, which is no column of the rows",
                fix=f"choose from {', '.join(rows_schema.names)}",
                place=name,
            )
    if options.properties.get("delta.columnMapping.mode", "none").lower() != "none":
        raise UnsupportedTableError(
            "columns of a table that is not there yet cannot be mapped: files would have names that the table does not",
            fix="create the table first: lakeview.create_table() with the property",
            place="delta.columnMapping.mode",
            kind="unsupported-property",
        )
    check_creatable(rows_schema, options.partition_by, options.properties, options.path)
    root = open_storage(options.path, options=options.access.options).root
    return write_context(root, rows_schema, options.partition_by, options.properties)


def _open(options: WriteOptions) -> DeltaTable:
    fix = "write to another path, or with the engine that owns the table; Iceberg tables take batches, no streams"
    return delta_table(options.path, "written in this way", fix, options.access)


def context_of(table: DeltaTable, options: WriteOptions, rows_schema: Schema, *, overwrite: bool) -> WriteContext:
    """How files of this table are written, with what `mergeSchema` adds to its schema.

    Asks a transaction that is never committed. Before any row is written it refuses a table we may not write, columns
    or fields that the two do not share and types that never fit; options that contradict what the table is; and what
    an overwrite may not, or cannot, remove.
    """
    transaction = table.transaction(options.operation)
    if options.overwrite_schema:
        transaction.remove()
        transaction.replace_schema(rows_schema)
    elif options.merge_schema:
        _evolve(transaction, rows_schema)
    context = replace(transaction.context(), fill_missing=options.merge_schema)
    if options.partition_by and options.partition_by != context.partition_columns:
        raise InvalidRequestError(
            f"{table.address} is partitioned by {', '.join(context.partition_columns) or 'nothing'}",
            fix="leave partitionBy out: it is for a table that is created",
            place="partitionBy",
        )
    current = table.snapshot().properties
    for name, wanted in options.properties.items():
        if current.get(name, "").lower() != wanted.lower():
            raise InvalidRequestError(
                f"{name} is {wanted}, and {table.address} has {current.get(name, 'no such property')}: options set the "
                "properties of a table that is created",
                fix="leave the option out, or set the property with set_properties() of a transaction",
                place=name,
                kind="property-of-existing-table",
            )
    check_columns_fit(rows_schema.to_arrow(), context.schema, fill_missing=options.merge_schema)
    if overwrite:
        check_replaceable(transaction, options)
    return context


def _evolve(transaction: Transaction, rows: Schema) -> None:
    """Add what the rows have and the table lacks to its schema, if there is anything; in a table whose types are
    widened, give columns the wider types that the rows have."""
    if transaction.definition.properties.get("delta.enableTypeWidening", "").lower() == "true":
        given = {field.name.casefold(): field.type for field in rows}
        for field in transaction.schema:
            type_ = given.get(field.name.casefold(), field.type)
            if type_ != field.type and widens_unasked(field.type, type_):
                transaction.widen_column(quoted(field.name), type_)
    merged = merge_schemas(transaction.schema, rows)
    if merged != transaction.schema:
        transaction.evolve(merged)


def clock_of(moment: datetime | None) -> Clock:
    """A clock that stands still at a given timestamp, or the system's."""
    return system_clock if moment is None else lambda: moment


def _file_messages(messages: Sequence[WriterCommitMessage | None]) -> list[FilesWritten]:
    """The messages of the tasks that succeeded."""
    return [message for message in messages if isinstance(message, FilesWritten)]


class _Counted:
    """Batches, counted while they pass."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self.batches = batches
        self.count = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self.batches:
            self.count += batch.num_rows
            yield batch
