"""Rows to delete to position delete files, committed: what pyiceberg reads but has no call to write.

The library appends files of any content; only the manifest they go into must say that it holds deletes (iceberg spec,
Manifests: "A manifest stores files for a single content type"). This follows pyiceberg 0.12, which the pin keeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestWriter,
    ManifestWriterV2,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles

_PATH_ID, _POSITION_ID = 2147483546, 2147483545
_SCHEMA = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": str(_PATH_ID)}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": str(_POSITION_ID)}),
    ]
)


class _DeleteManifest(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _AppendDeletes(_FastAppendFiles):
    """A snapshot that adds delete files and keeps everything else."""

    def new_manifest_writer(self, spec: PartitionSpec) -> ManifestWriter:
        return _DeleteManifest(spec, self.schema(), self.new_manifest_output(), self._snapshot_id, self._compression)


def delete_positions(
    table: Table, positions: Mapping[DataFile, Sequence[int]], snapshot_properties: Mapping[str, str]
) -> None:
    """Delete rows of data files of the table's newest spec by their numbers, which count from 0: one delete file for
    each data file, one snapshot for all."""
    with table.transaction() as transaction:
        deletes = _AppendDeletes(Operation.DELETE, transaction, table.io, snapshot_properties=dict(snapshot_properties))
        for number, (file, rows) in enumerate(positions.items()):
            deletes.append_data_file(_write_delete_file(table, f"{deletes.commit_uuid}-{number}", file, sorted(rows)))
        deletes.commit()


def _write_delete_file(table: Table, name: str, target: DataFile, rows: Sequence[int]) -> DataFile:
    """A delete file in the partition of its target, with bounds that name the target alone."""
    folder = target.file_path.rpartition("/")[0]
    path = f"{folder}/{name}-deletes.parquet"
    output = table.io.new_output(path)
    with output.create() as stream:
        pq.write_table(pa.table([[target.file_path] * len(rows), list(rows)], schema=_SCHEMA), stream)
    path_bytes = target.file_path.encode()
    return DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=target.partition,
        record_count=len(rows),
        file_size_in_bytes=len(output),
        lower_bounds={_PATH_ID: path_bytes},
        upper_bounds={_PATH_ID: path_bytes},
        sort_order_id=None,
        spec_id=target.spec_id,
        equality_ids=None,
        key_metadata=None,
    )
