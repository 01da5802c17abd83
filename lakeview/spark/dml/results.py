"""What operations report, as DataFrames with the columns that Delta's own have."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession

from lakeview.delta.data.column_rules import clustering_columns
from lakeview.delta.log.actions import supported_features
from lakeview.delta.log.commits import info_fields
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import CorruptTableError

_JOB = ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")

HISTORY = (
    "version long, timestamp timestamp, userId string, userName string, operation string, "
    f"operationParameters map<string,string>, job struct<{', '.join(f'{name}: string' for name in _JOB)}>, "
    "notebook struct<notebookId: string>, clusterId string, readVersion long, isolationLevel string, "
    "isBlindAppend boolean, operationMetrics map<string,string>, userMetadata string, engineInfo string"
)
"""One row a commit, newest first: what its commitInfo says. Of a corrupt one only version and time are known."""

DETAIL = (
    "format string, id string, name string, description string, location string, createdAt timestamp, "
    "lastModified timestamp, partitionColumns array<string>, clusteringColumns array<string>, numFiles long, "
    "sizeInBytes long, properties map<string,string>, minReaderVersion int, minWriterVersion int, "
    "tableFeatures array<string>"
)
"""One row: the table as it is. `tableFeatures`: those that the protocol names, and those that its version implies."""

_RESTORE: Mapping[str, str] = {
    "table_size_after_restore": "tableSizeAfterRestore",
    "num_of_files_after_restore": "numOfFilesAfterRestore",
    "num_removed_files": "numRemovedFiles",
    "num_restored_files": "numRestoredFiles",
    "removed_files_size": "removedFilesSize",
    "restored_files_size": "restoredFilesSize",
}
"""Columns of a restore's one row to the metrics of its commit."""

RESTORE = ", ".join(f"{name} long" for name in _RESTORE)
"""One row: the files that came and went."""

_SIZES = "struct<min: long, max: long, avg: double, totalFiles: long, totalSize: long>"

OPTIMIZE = (
    "path string, metrics struct<numFilesAdded: long, numFilesRemoved: long, "
    f"filesAdded: {_SIZES}, filesRemoved: {_SIZES}>"
)
"""One row: the files that came and went. `min` and `max` of those that went are not recorded."""

VACUUM = "path string, size long, modified timestamp, deleted boolean"
"""One row a file that no version within the retention needs."""


def history(spark: SparkSession, table: DeltaTable, limit: int | None) -> DataFrame:
    """HISTORY of the newest commits, of all without a limit."""
    versions = table.log.versions()[::-1][:limit]
    times = dict(table.versions(look=False).select("version", "timestamp").iter_rows())
    rows = [history_row(v, times.get(v), data) for v, data in table.log.each_bytes(versions)]
    return spark.createDataFrame(rows, HISTORY)


def history_row(version: int, timestamp: datetime | None, data: bytes) -> tuple[Any, ...]:
    """A row of HISTORY, of the bytes of a commit."""
    try:
        fields = info_fields(data, version)
    except CorruptTableError:
        fields = {}
    blind = fields.get("isBlindAppend")
    return (
        version,
        timestamp,
        *(_text(fields.get(name)) for name in ("userId", "userName", "operation")),
        _texts(fields.get("operationParameters")),
        _struct(fields.get("job"), _JOB),
        _struct(fields.get("notebook"), ("notebookId",)),
        _text(fields.get("clusterId")),
        _number(fields.get("readVersion")),
        _text(fields.get("isolationLevel")),
        blind if isinstance(blind, bool) else None,
        _texts(fields.get("operationMetrics")),
        *(_text(fields.get(name)) for name in ("userMetadata", "engineInfo")),
    )


def detail_row(table: DeltaTable) -> tuple[Any, ...]:
    """The row of DETAIL of the latest version."""
    state, now = table.state(), table.snapshot()
    return (
        table.format,
        now.id,
        now.name,
        now.description,
        table.address,
        now.created,
        now.timestamp,
        now.partition_columns,
        clustering_columns(now.schema, state.domain_metadata()),
        now.num_files,
        now.size_bytes,
        now.properties,
        state.protocol.min_reader_version,
        state.protocol.min_writer_version,
        sorted(supported_features(state.protocol)),
    )


def restore_row(table: DeltaTable, version: int | None) -> tuple[int, ...]:
    """The row of RESTORE of a restore that made a version; None: the table was that already."""
    metrics = _metrics(table, version)
    if version is None:
        now = table.snapshot()
        metrics = {"tableSizeAfterRestore": now.size_bytes or 0, "numOfFilesAfterRestore": now.num_files}
    return tuple(metrics.get(name, 0) for name in _RESTORE.values())


def optimize_row(table: DeltaTable, version: int | None) -> tuple[Any, ...]:
    """The row of OPTIMIZE of an optimize that made a version; None: all files were well as they are."""
    metrics = _metrics(table, version)
    files_added, bytes_added = metrics.get("numAddedFiles", 0), metrics.get("numAddedBytes", 0)
    files_removed, bytes_removed = metrics.get("numRemovedFiles", 0), metrics.get("numRemovedBytes", 0)
    least, most = (metrics.get(name) if files_added else None for name in ("minFileSize", "maxFileSize"))
    new_files = (least, most, bytes_added / max(files_added, 1), files_added, bytes_added)
    old_files = (None, None, bytes_removed / max(files_removed, 1), files_removed, bytes_removed)
    return table.address, (files_added, files_removed, new_files, old_files)


def _metrics(table: DeltaTable, version: int | None) -> dict[str, int]:
    """The numbers among the operationMetrics of a commit; none without one."""
    fields = {} if version is None else info_fields(table.log.commit_bytes(version), version)
    return {name: int(text) for name, text in (_texts(fields.get("operationMetrics")) or {}).items() if text}


def _text(value: Any) -> str | None:
    """A text as it is, any other value as JSON."""
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()


def _texts(values: Any) -> dict[str, str | None] | None:
    return {name: _text(part) for name, part in values.items()} if isinstance(values, dict) else None


def _number(value: Any) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and -(2**63) <= value < 2**63 else None


def _struct(values: Any, names: Iterable[str]) -> tuple[str | None, ...] | None:
    return tuple(_text(values.get(name)) for name in names) if isinstance(values, dict) else None
