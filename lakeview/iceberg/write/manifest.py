"""New data files to one manifest, and to its record in manifest lists (iceberg spec, Manifests)."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import fastavro
import msgspec

from lakeview.iceberg.write.avro_schemas import entry_schema, partition_names
from lakeview.iceberg.write.context import WriteContext
from lakeview.iceberg.write.data_file import NewFile
from lakeview.iceberg.write.partition_tuples import Tuple
from lakeview.iceberg.write.recorded_values import outer_zero, single_bytes

_ADDED = 1
BLOCK_BYTES = 64 << 20
"""What version 1 asks for and no reader uses."""


def write_manifest(context: WriteContext, files: Sequence[NewFile], snapshot_id: int) -> bytes:
    """A manifest of added files; sequence numbers are left to inheritance, so that it holds for every attempt."""
    names = partition_names(context)
    return manifest_file(context, (_entry(file, names, snapshot_id) for file in files), "data")


def manifest_file(context: WriteContext, entries: Iterable[Mapping[str, Any]], content: str) -> bytes:
    """A manifest of these entries, all of the context's partition spec; `content`: data or deletes."""
    fields = [
        {"name": f.name, "transform": f.transform.text, "source-id": f.source_ids[0], "field-id": f.field_id}
        for f in context.spec.fields
    ]
    header = {
        "schema": context.schema_text,
        "schema-id": str(context.schema_id),
        "partition-spec": msgspec.json.encode(fields).decode(),
        "partition-spec-id": str(context.spec.spec_id),
        "format-version": str(context.format_version),
        **({} if context.format_version == 1 else {"content": content}),
    }
    return avro_file(entry_schema(context), entries, header)


def avro_file(schema: dict[str, Any], records: Iterable[Mapping[str, Any]], header: Mapping[str, str]) -> bytes:
    """An Avro file of these records."""
    buffer = io.BytesIO()
    fastavro.writer(buffer, schema, records, codec="deflate", metadata=dict(header))
    return buffer.getvalue()


def manifest_record(context: WriteContext, files: Sequence[NewFile], snapshot_id: int) -> dict[str, Any]:
    """What a manifest list records of a manifest of added files, but for its path, its length and its numbers."""
    return {
        "partition_spec_id": context.spec.spec_id,
        "content": 0,
        "added_snapshot_id": snapshot_id,
        "added_files_count": len(files),
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": sum(file.records for file in files),
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "partitions": partition_summaries(context, [file.partition for file in files]),
        "key_metadata": None,
        "first_row_id": None,
    }


def _entry(file: NewFile, names: Sequence[str], snapshot_id: int) -> dict[str, Any]:
    counts = {
        name: _pairs(getattr(file, name))
        for name in (
            "column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds",
        )
    }  # fmt: skip
    return {
        "status": _ADDED,
        "snapshot_id": snapshot_id,
        "sequence_number": None,
        "file_sequence_number": None,
        "data_file": {
            "content": 0,
            "file_path": file.path,
            "file_format": "PARQUET",
            "partition": dict(zip(names, file.partition, strict=True)),
            "record_count": file.records,
            "file_size_in_bytes": file.size,
            "block_size_in_bytes": BLOCK_BYTES,
            **counts,
            "split_offsets": list(file.split_offsets),
            "first_row_id": None,
        },
    }


def _pairs(values: Mapping[int, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in sorted(values.items())]


def partition_summaries(context: WriteContext, tuples: Sequence[Tuple]) -> list[dict[str, Any]] | None:
    """For each part of the spec whether nulls and NaN occur, and its bounds, so that readers skip the manifest.

    None where a part has values without an order that all readers share: null bounds say that it has no values.
    """
    summaries = []
    for position, type_ in enumerate(context.result_types):
        values = [tuple_[position] for tuple_ in tuples]
        ordered = [v for v in values if v is not None and v == v]
        bounds = [None, None] if type_ is None or not ordered else [
            single_bytes(outer_zero(bound(ordered), side), type_) for side, bound in enumerate((min, max))
        ]  # fmt: skip
        if ordered and None in bounds:
            # lower_bound: "... or null if all values are null or NaN"  Manifest Lists
            return None
        nan = any(v is not None and v != v for v in values)
        summaries.append({
            "contains_null": None in values, "contains_nan": nan, "lower_bound": bounds[0], "upper_bound": bounds[1],
        })  # fmt: skip
    return summaries
