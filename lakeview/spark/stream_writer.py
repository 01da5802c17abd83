"""Micro-batches to commits, each at most once: a commit names the query and the number of its batch. The writer is that
of the format that the table has."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lakeview.model.errors import InvalidRequestError, LakeviewError
from lakeview.spark.iceberg_writer import IcebergWriter, iceberg_table
from lakeview.spark.options import WriteOptions
from lakeview.spark.writer import LakeviewWriter
from lakeview.storage import open_storage

_OF_SPARK = ("checkpointlocation", "queryname")
"""Options of a query that Spark hands on to its sink."""


class _Query(msgspec.Struct, frozen=True):
    """The file `metadata` of a checkpoint location."""

    id: str


class LakeviewStreamWriter(DataSourceStreamArrowWriter):
    """Writes each micro-batch as one commit that names the id of the query, which its checkpoint location keeps, and
    the number of the batch: by `txn {appId, version}` (delta protocol, Transaction Identifiers), in Iceberg by the
    snapshot's summary. A batch that Spark runs again after a crash is known by them, and changes nothing.

    Output mode append, or complete, which replaces all rows. Made on the driver for each batch, and copied to tasks.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        by_name = {name.lower(): value for name, value in options.items()}
        app_id = by_name.pop("txnappid", None) or _query_id(by_name.get("checkpointlocation"))
        own_options = {name: value for name, value in by_name.items() if name not in _OF_SPARK}
        self.mode = "Complete" if overwrite else "Append"
        write_options = WriteOptions.parse({**own_options, "txnappid": app_id, "txnversion": "0"}, overwrite=overwrite)
        self.batch = sink(write_options, schema, overwrite=overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """The rows of one task to files."""
        return self.batch.write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """The files of a batch as one commit, unless the table has it already."""
        batch = self.batch
        batch.options = replace(batch.options, app_version=batchId)
        if isinstance(batch, IcebergWriter):
            batch.commit(messages)
            return
        batch.options = replace(batch.options, operation="STREAMING UPDATE")
        parameters = {"outputMode": self.mode, "queryId": batch.options.app_id, "epochId": str(batchId)}
        batch.commit(messages, parameters)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002
        """Remove the files of the tasks that ended well; the failed ones have removed theirs."""
        self.batch.abort(messages)


def _query_id(checkpoint: str | None) -> str:
    """The id of the query that a checkpoint location belongs to. InvalidRequestError where none is known."""
    if checkpoint is None:
        raise InvalidRequestError(
            "the query has no checkpointLocation: a batch that is run again could not be told from a new one",
            fix='give .option("checkpointLocation", folder), or txnAppId, a name that no other query has',
            place="checkpointLocation",
        )
    try:
        data = open_storage(checkpoint).read("metadata")
        return msgspec.json.decode(data, type=_Query).id
    except (FileNotFoundError, msgspec.DecodeError) as error:
        raise InvalidRequestError(
            f"{checkpoint} names no query: its file metadata is missing or broken",
            fix="give txnAppId, a name that no other query has",
            place="checkpointLocation",
        ) from error
    except LakeviewError as error:
        raise type(error)(
            f"the id of the query cannot be read from {checkpoint}: {error.message}",
            fix="give txnAppId, a name that no other query has, if lakeview does not know such addresses",
            place="checkpointLocation",
        ) from error


_OF_DELTA: Mapping[str, str] = {
    "partition_by": "partitionBy", "merge_schema": "mergeSchema", "operation": "operation", "user_name": "userName",
    "user_metadata": "userMetadata", "data_change": "dataChange", "statistics": "statistics",
    "properties": "delta.*", "replace_files": "replaceFiles", "overwrite_schema": "overwriteSchema",
}  # fmt: skip
"""Options, by their field, that ask for what a snapshot of Iceberg does not have or its writer does not do."""

_OF_ICEBERG: Mapping[str, str] = {
    "without_catalog": "withoutCatalog", "relocate": "relocate", "snapshot_properties": "snapshot-property.*",
}  # fmt: skip


def sink(options: WriteOptions, schema: StructType, *, overwrite: bool) -> LakeviewWriter | IcebergWriter:
    """The writer of rows that have these columns; of a Delta table where there is none yet.

    InvalidRequestError for options of the other format, and what the writers raise.
    """
    table = iceberg_table(options)
    check_options(options, is_iceberg=table is not None)
    if table is None:
        return LakeviewWriter(options, schema, overwrite=overwrite)
    return IcebergWriter(table, options, schema, overwrite=overwrite)


def check_options(options: WriteOptions, *, is_iceberg: bool) -> None:
    """InvalidRequestError for options of the format that the table does not have."""
    unset = WriteOptions(options.path)
    others = _OF_DELTA if is_iceberg else _OF_ICEBERG
    option = next((word for name, word in others.items() if getattr(options, name) != getattr(unset, name)), None)
    if option is not None:
        problem = f"for Delta tables, and {options.path} is an Iceberg table"
        if not is_iceberg:
            problem = f"for Iceberg tables, and there is none at {options.path}"
        raise InvalidRequestError(
            f"{option} is an option {problem}",
            fix="leave it out" if is_iceberg else "leave it out, or make the table first",
            place=option,
            kind="option-of-delta" if is_iceberg else "option-of-iceberg",
        )
