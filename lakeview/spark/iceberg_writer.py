"""Batch writing to Iceberg tables: Arrow batches on the executors to data files, and on the driver those files to one
snapshot."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

import lakeview as lv
from lakeview.iceberg.table import IcebergTable
from lakeview.iceberg.write.changes import check_partitions, overwrite
from lakeview.iceberg.write.commits import check_commits
from lakeview.iceberg.write.context import write_context
from lakeview.iceberg.write.data_file import NewFile, check_columns_fit, write_files
from lakeview.iceberg.write.metadata_file import StreamBatch
from lakeview.iceberg.write.selection import ByPartition, Selection, check_inside
from lakeview.iceberg.write.snapshot_commit import ENGINE, CommitOptions, SnapshotCommit
from lakeview.model.errors import CommitConflictError, NotATableError
from lakeview.spark.aborted_writes import FilesWriter, FilesWritten, files_written, is_repeated, remove_files
from lakeview.spark.arrow_functions import in_utc
from lakeview.spark.options import WriteOptions
from lakeview.spark.types import from_spark
from lakeview.storage import Storage
from lakeview.storage.access import StoreAccess


class IcebergWriter(FilesWriter):
    """Writes to an Iceberg table.

    Raises UnsupportedTableError for a table that is not written, InvalidRequestError for columns that are not the
    table's, and for a replaceWhere that is no condition on them, before any row is written.
    An overwrite replaces what is there when the writer is made.
    """

    def __init__(self, table: IcebergTable, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        check_commits(table, without_catalog=options.without_catalog)
        # with what the configuration of the driver says: a task may have no such file
        self.options = replace(options, access=StoreAccess.of(table.storage))
        self.roots = table.storage.config.roots
        self.is_ignored = options.is_ignored()
        self.context = replace(write_context(table.state), write_id=uuid.uuid4().hex)
        if options.max_rows is not None:
            self.context = replace(self.context, rows_per_file=options.max_rows)
        check_columns_fit(from_spark(schema).to_arrow(), self.context)
        self.overwrite = overwrite
        self.base = table.latest_version
        if options.dynamic:
            check_partitions(self.context, table.address)
        Selection.parse(options.replace_where, self.context.schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FilesWritten:
        """The rows of one task to files. A task that fails removes what it wrote; Spark may then run it again.

        The row that a refusal names is counted from 0 in the rows of the task.
        """
        if self.is_ignored:
            return FilesWritten([])
        where = self.options.replace_where
        check = None if where is None else check_inside(where, self.context.schema)
        files = write_files(self.context, map(in_utc, iterator), self._storage(), check)
        return FilesWritten(files, is_repeated=is_repeated())

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """All files of all tasks as one snapshot, for an overwrite in place of what it replaces; none where nothing
        comes and nothing goes, or where the table has what `txnAppId` and `txnVersion` name.

        CommitConflictError if the table's columns or partition spec are no longer those by which the files were
        written, or if another writer changed what an overwrite replaces; the files are removed then.
        """
        file_messages = files_written(messages)
        files = [file for message in file_messages for file in message.files]
        if not files and (not self.overwrite or self.options.dynamic):
            return
        try:
            table = self._table()
        except BaseException:
            self._discard(files)
            raise
        engine = {**self.options.snapshot_properties, **ENGINE, "spark-version": pyspark.__version__}
        name, number = self.options.app_id, self.options.app_version
        batch = None if name is None or number is None else StreamBatch(name, number)
        options = CommitOptions(self.options.clock, engine, self.options.without_catalog, batch)
        if self.overwrite:
            selection = Selection.parse(self.options.replace_where, self.context.schema)
            if self.options.dynamic:
                selection = ByPartition(self.context, {file.partition for file in files})
            overwrite(table, self.base, self.context, files, selection, options)
        else:
            SnapshotCommit(table, self.context, files, options).run()
        self._remove_first_runs(file_messages)

    def _table(self) -> IcebergTable:
        table = iceberg_table(self.options)
        if table is None:
            raise CommitConflictError(
                f"there is no Iceberg table at {self.options.path} any more",
                fix="make the table again, and write again",
                place=self.options.path,
                kind="table-gone",
            )
        return table

    def _discard(self, files: Sequence[NewFile]) -> None:
        self._storage().delete_each(file.address for file in files)

    def _remove_others(self, files: Sequence[NewFile]) -> None:
        locations = self.context.locations
        flat = not (self.context.spec.fields and locations.partition_folders) and not locations.hashes_names
        storage = self.options.access.open(locations.folder, self.roots)
        others = [file.address for file in files]
        remove_files(storage, self.context.write_id, one_folder=flat, besides=others)

    def _storage(self) -> Storage:
        return self.options.access.open(self.context.root, self.roots)


def iceberg_table(options: WriteOptions) -> IcebergTable | None:
    """The Iceberg table that rows are to go to; None if there is none, or a table of another format."""
    try:
        table = lv.open_table(options.path, storage_options=options.access.options, relocate=options.relocate)
    except NotATableError:
        return None
    return table if isinstance(table, IcebergTable) else None
