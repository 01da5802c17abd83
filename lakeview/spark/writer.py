"""Batch writing: Arrow batches on the executors to data files, and on the driver those files to one commit."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

import lakeview as lv
from lakeview.delta.log.actions import AddFile
from lakeview.delta.log.commits import json_text
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.context import WriteContext
from lakeview.delta.write.create import create_log
from lakeview.delta.write.file_changes import paths_of
from lakeview.delta.write.writer import FileWriter, discard
from lakeview.model.clock import Clock
from lakeview.model.errors import CommitConflictError
from lakeview.model.schema import Schema
from lakeview.spark.aborted_writes import FilesWriter, FilesWritten, files_written, is_repeated, remove_files
from lakeview.spark.addresses import find_delta_table
from lakeview.spark.arrow_functions import in_utc
from lakeview.spark.options import Statistics, WriteOptions
from lakeview.spark.types import from_spark
from lakeview.spark.write_contexts import Replacement, context_of, context_of_new, definition, evolve
from lakeview.storage import Storage, open_storage
from lakeview.storage.access import StoreAccess

ENGINE = f"lakeview/{lv.__version__} Apache-Spark/{pyspark.__version__}"


class LakeviewWriter(FilesWriter):
    """Writes to a Delta table. One that is not there is created by the commit: a write that fails leaves none behind.

    Raises InvalidRequestError when the rows' columns and fields are not the table's, and for a replaceWhere that does
    not select whole partitions, before any row is written.
    """

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        # with what the configuration of the driver says: a task may have no such file
        storage = open_storage(options.path, options=options.access.options, decode=True)
        self.options = options = replace(options, access=StoreAccess.of(storage))
        self.overwrite = overwrite
        rows_schema = from_spark(schema)
        self.is_ignored = False
        table = _find(options)
        if table is None:
            self.rows_schema: Schema | None = None
            self.definition = ""
            self.context = context_of_new(options, rows_schema)
        else:
            self.is_ignored = options.is_ignored()
            self.rows_schema = rows_schema if options.merge_schema else None
            self.context = context_of(table, options, rows_schema, overwrite=overwrite)
            self.definition = definition(table)
        self.context = replace(self.context, write_id=uuid.uuid4().hex)
        if options.max_rows is not None:
            self.context = replace(self.context, rows_per_file=options.max_rows)
        self.replacement = Replacement(options, self.context, overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FilesWritten:
        """The rows of one task to files. A task that fails removes what it wrote; Spark may then run it again.

        The row that a refusal names is counted from 0 in the rows of the task.
        """
        if self.is_ignored:
            return FilesWritten([], 0, self.definition)
        rows = 0

        def counted_batches() -> Iterator[pa.RecordBatch]:
            nonlocal rows
            for batch in self.replacement.check_rows(map(in_utc, iterator)):
                rows += batch.num_rows
                yield batch

        writer = FileWriter(
            self.file_context(),
            self._storage(),
            self.options.clock,
            data_change=self.options.data_change,
            statistics=self.options.statistics is not Statistics.NONE,
        )
        adds = writer.write(counted_batches())
        return FilesWritten(adds, rows, self.definition, is_repeated())

    def file_context(self) -> WriteContext:
        """How the files are written, with as many statistics as are asked for."""
        counts_only = self.options.statistics is Statistics.COUNTS
        return replace(self.context, indexed_columns=frozenset()) if counts_only else self.context

    def commit(
        self, messages: Sequence[WriterCommitMessage | None], parameters: Mapping[str, Any] | None = None
    ) -> None:
        """All files of all tasks as one commit, after a commit that creates the table if it is not there.

        `parameters`: operationParameters in place of those of a write.
        CommitConflictError when another writer was first and the two collide, or when the table's columns, rules or
        features are no longer those by which the files were written; Spark then calls `abort`.
        """
        file_messages = files_written(messages)
        adds = [add for message in file_messages for add in message.files]
        clock = self.options.clock
        try:
            table = _find(self.options)
            is_new = table is None
            if self.is_ignored or (table is not None and self.options.is_ignored()):
                self._discard(adds)
                return
            table = table or self._create(clock)
        except BaseException:
            self._discard(adds)
            raise
        own_parameters, metrics = self._describe(adds, sum(message.rows for message in file_messages))
        with table.transaction(
            self.options.operation,
            parameters=own_parameters if parameters is None else dict(parameters),
            metrics=metrics,
            user=self.options.user_name,
            user_metadata=self.options.user_metadata,
            engine=ENGINE,
            clock=clock,
        ) as transaction:
            # they go if the commit is not made, and stay if no reply says whether it was
            transaction.files.paths += paths_of(adds)
            if not is_new:
                self._check_definition(table, file_messages)
            if self.options.app_id is not None and self.options.app_version is not None:
                transaction.set_transaction(self.options.app_id, self.options.app_version, once=True)
            if self.rows_schema is not None:
                evolve(transaction, self.rows_schema)
                if transaction.schema != self.context.schema:  # new columns of a mapped table: their names in the files
                    transaction.definition.change_schema(self.context.schema)
            self.replacement.apply(transaction, adds)
        self._remove_first_runs(file_messages)

    def _discard(self, files: Sequence[AddFile]) -> None:
        discard(files, self._storage())

    def _remove_others(self, files: Sequence[AddFile]) -> None:
        prefix = f"part-{self.context.write_id}"
        remove_files(self._storage(), prefix, one_folder=self.context.one_folder, besides=paths_of(files))

    def _storage(self) -> Storage:
        return self.options.access.open(self.context.root)

    def _create(self, clock: Clock) -> DeltaTable:
        storage = self._storage()  # which the files of the first rows are in
        create_log(
            storage, self.context.schema, partition_by=list(self.context.partition_columns),
            properties=dict(self.options.properties), user=self.options.user_name, clock=clock,
        )  # fmt: skip
        return DeltaTable(storage)

    def _check_definition(self, table: DeltaTable, messages: Sequence[FilesWritten]) -> None:
        """CommitConflictError where files were written for another definition of the table than it has now."""
        if all(message.definition == definition(table) for message in messages) or self._fits(table):
            return
        raise CommitConflictError(
            f"the columns, properties or features of {table.address} changed while the rows were written",
            fix="write again: the rows are then checked against the table as it is now",
            place=table.address,
            kind="metadata-changed",
        )

    def _fits(self, table: DeltaTable) -> bool:
        """Whether another writer created the table meanwhile, and files of it are written as ours were."""
        if self.definition:
            return False
        options = replace(self.options, merge_schema=False, overwrite_schema=False)
        there = context_of(table, options, self.context.schema, overwrite=self.overwrite)
        ours = self.context
        return replace(there, write_id=ours.write_id, rows_per_file=ours.rows_per_file) == ours

    def _describe(self, adds: Sequence[AddFile], rows: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """operationParameters and operationMetrics, in the words the operation is known by."""
        size = sum(add.size for add in adds)
        if not self.options.data_change:
            removed_files = self.options.replace_files or ()
            return {"predicate": "[]"}, {
                "numAddedFiles": len(adds),
                "numAddedBytes": size,
                "numRemovedFiles": len(removed_files),
            }
        parameters: dict[str, Any] = {
            "mode": "Overwrite" if self.overwrite else "Append",
            "partitionBy": json_text(self.context.partition_columns),
        }
        if self.options.dynamic:
            parameters["partitionOverwriteMode"] = "dynamic"
        if self.options.replace_where is not None:
            parameters["predicate"] = self.options.replace_where
        return parameters, {"numFiles": len(adds), "numOutputRows": rows, "numOutputBytes": size}


def _find(options: WriteOptions) -> DeltaTable | None:
    fix = "write to another path, or with the engine that owns the table"
    return find_delta_table(options.path, "written in this way", fix, options.access)
