"""Manifests of an Iceberg snapshot, some to each task, to the live data files that they name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from lakeview.delta.log.file_actions import PARTITION_VALUES
from lakeview.iceberg.opening import open_iceberg
from lakeview.iceberg.table import IcebergTable
from lakeview.model.config import task_settings
from lakeview.storage.access import StoreAccess

TASK_BYTES = 8 << 20
"""Of manifests, as they lie in the store, that one task reads."""

_COLUMNS = ("path", "size", "modified", "records", "deleted_records")


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
        pinned = table.snapshot(version).version
        return ManifestReader(address, pinned, StoreAccess.of(store), tuple(store.config.roots), table.relocate)

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
        """The live files of manifests, a frame for each list of recorded paths in the column `paths` of the batches.
        `partition_values` are maps of texts, as those of Delta are."""
        table = open_iceberg(
            self.address, storage_options=self.access.options, config=task_settings(self.roots), relocate=self.relocate
        )
        for batch in batches:
            for paths in batch["paths"].to_pylist():
                files = table.files(self.version, manifests=paths)
                yield files.select(*_COLUMNS, partition_values=_texts(files))


def packed(manifests: pl.DataFrame) -> list[list[str]]:
    """The paths of MANIFESTS of data, as many together as one task reads."""
    data = manifests.filter(pl.col("content") == "data")
    task = data["size"].fill_null(TASK_BYTES).cum_sum() // TASK_BYTES
    return [part["path"].to_list() for _, part in data.group_by(task, maintain_order=True)]


def _texts(files: pl.DataFrame) -> pl.Series:
    """The partition of each file as a map of texts."""
    if "partition" not in files.columns:
        return pl.Series([{}] * files.height, dtype=PARTITION_VALUES)
    parts = files["partition"].struct.unnest()
    entries = [pl.struct(key=pl.lit(part.name), value=pl.lit(_text(part))) for part in parts]
    return parts.select(pl.concat_list(entries)).to_series().cast(PARTITION_VALUES)


def _text(values: pl.Series) -> pl.Series:
    return values.bin.encode("base64") if values.dtype == pl.Binary else values.cast(pl.String())
