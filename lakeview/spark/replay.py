"""The live files of a table as a Spark DataFrame: the driver reads the last commits or the manifest list, tasks the
checkpoint's files or the manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, MapType, StringType, StructField, StructType, TimestampType

import lakeview as lv
from lakeview.delta.log.file_actions import PARTITION_VALUES, not_replaced
from lakeview.delta.table import DeltaTable
from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT
from lakeview.iceberg.opening import open_iceberg
from lakeview.iceberg.table import IcebergTable
from lakeview.model.config import task_settings
from lakeview.spark.addresses import unsupported_format
from lakeview.spark.dml.jobs import parts_frame, parts_of
from lakeview.spark.types import arrow_schema
from lakeview.storage.access import StoreAccess

FILES = StructType(
    [
        StructField("path", StringType()),
        StructField("size", LongType()),
        StructField("modified", TimestampType()),
        StructField("partition_values", MapType(StringType(), StringType())),
        StructField("records", LongType()),
        StructField("deleted_records", LongType()),
    ]
)
"""One row a live file: its path as decoded from the log, bytes, modification time, partition values as the log has
them, physical rows by its statistics (null where it has none), and rows that are deleted of it (null where that is
unknown, as with Iceberg's delete files)."""

SIZE_CLASSES = (1 << 20, 16 << 20, 128 << 20, 1 << 30)
"""Ends, in bytes, of the classes of `roll_up`."""

_COLUMNS = ("size", "modified", "partition_values", "records")
_MANIFEST_COLUMNS = ("path", "size", "modified", "records", "deleted_records")

TASK_BYTES = 8 << 20
"""Of manifests, as they lie in the store, that one task reads."""


def files(
    spark: SparkSession,
    address: str,
    version: int | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """FILES of a version (the latest without one), for tables whose list of files outgrows one machine.

    Of an Iceberg table the driver reads the manifest list, and each task some of its manifests. Of a Delta table there
    are two phases (delta protocol, Action Reconciliation): the driver replays the commits after the checkpoint, and
    each task reads one file of the checkpoint (a part, or a sidecar) and leaves out what those commits name. The driver
    holds the files that the commits after the checkpoint touch, and nothing of the others. `storage_options` are those
    of `open_table`; tasks get them, and Spark shows none.
    UnsupportedTableError for a shared table; else errors as `snapshot`.
    """
    table = lv.open_table(address, storage_options=storage_options)
    if isinstance(table, IcebergTable):
        return _manifest_files(spark, table, version)
    if not isinstance(table, DeltaTable):
        fix = "list its files with lakeview.open_table(address).files()"
        raise unsupported_format(address, "shared", "Delta and Iceberg tables are replayed", fix)
    pieces, tail = table.state(version).pieces(_COLUMNS)
    keys = tail.select("key", "deletion_vector")
    read = partial(_live_rows, table.address, table.storage.config.roots, StoreAccess.of(table.storage), keys)
    old = parts_frame(spark, pieces).mapInArrow(read, FILES)
    return old.union(spark.createDataFrame(pa.Table.from_batches([_batch(tail.filter("added"))]), FILES))


def roll_up(
    spark: SparkSession,
    address: str,
    version: int | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """The live files of a version by partition and size: `partition_values`, `larger_than` (bytes, the lower end of the
    class), `files`, `bytes`, `records` and `deleted_records` (null where those of a file are unknown).
    Arguments and errors as `files`.
    """
    size = f.col("size")
    lower = f.lit(0).cast("long")
    for end in SIZE_CLASSES:
        lower = f.when(size >= end, f.lit(end)).otherwise(lower)
    entries = f.array_sort(f.map_entries(f.col("partition_values")))

    def total(name: str) -> Column:
        return f.when(~f.max(f.col(name).isNull()), f.sum(name)).alias(name)

    return (
        files(spark, address, version, storage_options=storage_options)
        .groupBy(entries.alias("entries"), lower.alias("larger_than"))
        .agg(
            f.count("*").alias("files"),
            f.sum("size").alias("bytes"),
            total("records"),
            total("deleted_records"),
        )
        .withColumn("partition_values", f.map_from_entries("entries"))
        .select("partition_values", "larger_than", "files", "bytes", "records", "deleted_records")
    )


def _manifest_files(spark: SparkSession, table: IcebergTable, version: int | None) -> DataFrame:
    reader = ManifestReader.of(table, version)
    tasks = pack_manifests(table.manifests(reader.version)) if reader.version != NO_SNAPSHOT else []
    read = partial(_manifest_rows, reader)
    # a file that two manifests list counts once, as in the library
    return parts_frame(spark, tasks).mapInArrow(read, FILES).dropDuplicates(["path"])


def _manifest_rows(reader: ManifestReader, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return map(_batch, reader.files(parts_of(batches)))


def _live_rows(
    root: str, roots: Sequence[str], access: StoreAccess, keys: pl.DataFrame, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The live files of pieces of a checkpoint, in a task."""
    storage = access.open(root, roots)
    for piece in parts_of(batches):
        for frame in piece.each_action(storage, "add", _COLUMNS):
            yield _batch(not_replaced(frame, keys))


def _batch(adds: pl.DataFrame) -> pa.RecordBatch:
    """FILE_ACTIONS of adds as FILES."""
    unknown = pl.repeat(None, adds.height, dtype=pl.Int64(), eager=True)
    columns = {name: adds[name] if name in adds.columns else unknown for name in FILES.names}
    columns["modified"] = columns["modified"].cast(pl.Datetime("ms", "UTC"))
    target = arrow_schema(FILES)
    arrays = [column.to_arrow().cast(field.type) for column, field in zip(columns.values(), target, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=target)


@dataclass(frozen=True)
class ManifestReader:
    """Reads manifests of one snapshot in tasks. `address`: of the metadata file, so that all tasks read one state."""

    address: str
    version: int
    access: StoreAccess
    roots: tuple[str, ...]
    relocate: Mapping[str, str]

    @staticmethod
    def of(table: IcebergTable, version: int | None) -> ManifestReader:
        """The reader of a version (the current snapshot without one)."""
        store = table.storage
        address = f"{store.root.rstrip('/')}/{table.metadata_file.path}"
        pinned_version = table.snapshot(version).version
        return ManifestReader(address, pinned_version, StoreAccess.of(store), tuple(store.config.roots), table.relocate)

    def files(self, parts: Iterable[list[str]]) -> Iterator[pl.DataFrame]:
        """The live files of manifests, a frame for each list of recorded paths. `partition_values` are maps of texts,
        as those of Delta are."""
        table = open_iceberg(
            self.address, storage_options=self.access.options, config=task_settings(self.roots), relocate=self.relocate
        )
        for paths in parts:
            files = table.files(self.version, manifests=paths)
            yield files.select(*_MANIFEST_COLUMNS, partition_values=_texts(files))


def pack_manifests(manifests: pl.DataFrame) -> list[list[str]]:
    """The paths of MANIFESTS of data, as many together as one task reads."""
    data = manifests.filter(pl.col("content") == "data")
    task = data["size"].fill_null(TASK_BYTES).cum_sum() // TASK_BYTES
    return [part["path"].to_list() for _, part in data.group_by(task, maintain_order=True)]


def _texts(files: pl.DataFrame) -> pl.Series:
    """The partition of each file as a map of texts."""
    if "partition" not in files.columns:
        return pl.Series([{}] * files.height, dtype=PARTITION_VALUES)
    parts = files["partition"].struct.unnest()
    texts = [part.bin.encode("base64") if part.dtype == pl.Binary else part.cast(pl.String()) for part in parts]
    entries = [pl.struct(key=pl.lit(text.name), value=pl.lit(text)) for text in texts]
    return parts.select(pl.concat_list(entries)).to_series().cast(PARTITION_VALUES)
