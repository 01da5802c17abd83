"""A manifest and the files of it that go to the manifest that takes its place (iceberg spec, Manifests)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from lakeview.iceberg.manifests.fields import FILE_FIELDS
from lakeview.iceberg.state import State
from lakeview.iceberg.write.commits import unsupported_table
from lakeview.iceberg.write.context import WriteContext, check_spec
from lakeview.iceberg.write.manifest import BLOCK_BYTES, manifest_file, manifest_record, partition_names
from lakeview.iceberg.write.metrics import to_recorded_values
from lakeview.iceberg.write.partition_tuples import Tuple
from lakeview.model.errors import UnsupportedTableError

_EXISTING, _DELETED = 0, 2
_CONTENT = ("data", "deletes")
_CARRIED = {f.column: f.name for f in FILE_FIELDS if f.column is not None and f.versions}
"""Columns of ENTRIES to fields of data files in manifests."""


def rewrite_manifest(
    manifest: Mapping[str, Any], entries: pl.DataFrame, is_removed: pl.Series, context: WriteContext, snapshot_id: int
) -> tuple[bytes, dict[str, Any]]:
    """The manifest (one of MANIFESTS) without some files, and its record: they are recorded as deleted by this
    snapshot, the others with the numbers that they have. `entries`: ENTRIES and REST of those live in it;
    `is_removed`: which of them go.

    `context`: of the partition spec of the manifest. UnsupportedTableError for a file without its size or rows.
    """
    # the deleted ones last: what inherits a row id counts the rows before it
    entries = entries.with_columns(is_removed.alias("is_removed")).sort("is_removed", maintain_order=True)
    unknown = entries.filter(pl.col("records").is_null() | pl.col("size").is_null())
    if unknown.height:
        raise UnsupportedTableError(
            f"the manifest {manifest['manifest_path']} does not say how large {unknown['path'][0]} is",
            fix="have the table's manifests rewritten by the engine that owns it",
            place=str(manifest["manifest_path"]),
            kind="unsupported-manifest",
        )
    tuples = partition_tuples(entries, context)
    names = partition_names(context)
    content = int(manifest["content"])
    rows = entries.drop("partition", strict=False)  # its times may be none that Python has
    data = manifest_file(
        context,
        (
            _entry(row, dict(zip(names, tuple_, strict=True)), snapshot_id)
            for row, tuple_ in zip(rows.iter_rows(named=True), tuples, strict=True)
        ),
        _CONTENT[content],
    )
    existing_files, deleted_files = (entries.filter(pl.col("is_removed") == which) for which in (False, True))
    oldest = existing_files["sequence_number"].min()
    counts = {
        "existing_files_count": existing_files.height,
        "deleted_files_count": deleted_files.height,
        "existing_rows_count": int(existing_files["records"].sum()),
        "deleted_rows_count": int(deleted_files["records"].sum()),
    }
    record = manifest_record(context, snapshot_id, content, tuples, counts)
    # "The minimum data sequence number of all live data or delete files in the manifest"
    return data, record if oldest is None else {**record, "min_sequence_number": oldest}


def context_of_spec(context: WriteContext, state: State, spec_id: int) -> WriteContext:
    """The context for manifests of a partition spec, which may not be the current one.

    UnsupportedTableError for a spec that is not there, or whose manifests are not written.
    """
    spec, subject = state.metadata.specs.get(spec_id), f"files were written with the partition spec {spec_id}"
    if spec is None:
        raise unsupported_table(f"{subject}, which the table does not have any more", "unsupported-transform")
    is_current = spec_id == state.metadata.default_spec_id
    check_spec(spec, state.metadata.schema, "the table is" if is_current else f"files of the spec {spec_id} are")
    own = {column.field.field_id for column in state.columns if spec_id in column.specs}
    if any(f.field_id not in own for f in spec.fields if f.transform.name != "void"):
        raise unsupported_table(
            f"{subject}, which calls a field as another spec calls another one", "unsupported-transform"
        )
    return replace(context, spec=spec)


def partition_tuples(entries: pl.DataFrame, context: WriteContext) -> list[Tuple]:
    """The partition tuples of ENTRIES of the context's spec, as manifests record them."""
    parts: list[list[Any]] = []
    by_key = {s.name: s for s in entries["partition"].struct.unnest()} if "partition" in entries.columns else {}
    for field in context.spec.fields:
        values = by_key.get(f"f{field.field_id}")
        is_void = field.transform.name == "void" or values is None
        parts.append([None] * entries.height if is_void or values is None else to_recorded_values(values).to_list())
    return list(zip(*parts, strict=True)) if parts else [()] * entries.height


def _entry(row: Mapping[str, Any], partition: Mapping[str, Any], snapshot_id: int) -> dict[str, Any]:
    fields = {field: row[column] for column, field in _CARRIED.items()}
    return {
        "status": _DELETED if row["is_removed"] else _EXISTING,
        "snapshot_id": snapshot_id if row["is_removed"] else row["snapshot_id"],
        "sequence_number": row["sequence_number"],
        "file_sequence_number": row["file_sequence_number"],
        "data_file": {**fields, "partition": partition, "block_size_in_bytes": BLOCK_BYTES},
    }
