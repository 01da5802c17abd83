"""New data files to one manifest, and to its record in manifest lists; the manifests of a snapshot and new ones to the
manifest list of the next (iceberg spec, Manifests, Manifest Lists); the Avro schemas of both (Appendix A: Avro)."""

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import fastavro
import msgspec
import polars as pl

from lakeview.iceberg.manifests.fields import (
    ENTRY_FIELDS,
    FILE_FIELDS,
    LIST_FIELDS,
    SUMMARY_FIELDS,
    ManifestField,
    avro_record,
)
from lakeview.iceberg.write.context import WriteContext, avro_name
from lakeview.iceberg.write.data_file import NewFile
from lakeview.iceberg.write.metrics import outer_zero, single_bytes
from lakeview.iceberg.write.partition_tuples import Tuple
from lakeview.model.data_types import DecimalType, Field
from lakeview.model.errors import UnsupportedTableError

_ADDED = 1
BLOCK_BYTES = 64 << 20
"""What version 1 asks for and no reader uses."""


def new_manifest(context: WriteContext, files: Sequence[NewFile], snapshot_id: int) -> tuple[bytes, dict[str, Any]]:
    """A manifest of added files, and its record; sequence numbers are left to inheritance, so that it holds for every
    attempt."""
    names = partition_names(context)
    data = manifest_file(context, (_entry(file, names, snapshot_id) for file in files), "data")
    counts = {"added_files_count": len(files), "added_rows_count": sum(file.records for file in files)}
    return data, manifest_record(context, snapshot_id, 0, [file.partition for file in files], counts)


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
    return avro_file(_entry_schema(context), entries, header)


def avro_file(schema: dict[str, Any], records: Iterable[Mapping[str, Any]], header: Mapping[str, str]) -> bytes:
    """An Avro file of these records."""
    buffer = io.BytesIO()
    fastavro.writer(buffer, schema, records, codec="deflate", metadata=dict(header))
    return buffer.getvalue()


def manifest_record(
    context: WriteContext, snapshot_id: int, content: int, tuples: Sequence[Tuple], counts: Mapping[str, int]
) -> dict[str, Any]:
    """What a manifest list records of a manifest, but for its path, its length and its numbers. `content`: 0 data, 1
    deletes; `tuples`: the partitions of its files; `counts`: of files and rows, those that are left out are none."""
    return {
        "partition_spec_id": context.spec.spec_id,
        "content": content,
        "added_snapshot_id": snapshot_id,
        **dict.fromkeys(_RECORDED_COUNTS, 0),
        **counts,
        "partitions": partition_summaries(context, tuples),
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
        comparable_values = [v for v in values if v is not None and v == v]
        bounds = [None, None] if type_ is None or not comparable_values else [
            single_bytes(outer_zero(bound(comparable_values), side), type_) for side, bound in enumerate((min, max))
        ]  # fmt: skip
        if comparable_values and None in bounds:
            # lower_bound: "... or null if all values are null or NaN"  Manifest Lists
            return None
        nan = any(v is not None and v != v for v in values)
        summaries.append({
            "contains_null": None in values, "contains_nan": nan, "lower_bound": bounds[0], "upper_bound": bounds[1],
        })  # fmt: skip
    return summaries


_RECORDED_COUNTS = [f.name for f in LIST_FIELDS if f.name.endswith("_count")]


class ManifestList:
    """The manifests of a new snapshot: those of its parent that stay (MANIFESTS), then new ones. `added_rows`: row ids
    that it gives out from `first_row_id` on, which version 3 has."""

    def __init__(
        self, version: int, parents: pl.DataFrame, new: Sequence[Mapping[str, Any]], sequence: int,
        first_row_id: int | None,
    ) -> None:  # fmt: skip
        self._version = version
        self._sequence = sequence
        self._first_row_id = first_row_id
        self._records = [_carry_over(row, version) for row in parents.iter_rows(named=True)]
        self._records += [{"min_sequence_number": sequence, **record, "sequence_number": sequence} for record in new]
        self.added_rows = 0 if first_row_id is None else self._give_row_ids(first_row_id)

    def encode(self, snapshot_id: int, parent: int | None) -> bytes:
        """The file."""
        header = {
            "snapshot-id": str(snapshot_id),
            "parent-snapshot-id": "null" if parent is None else str(parent),
            "format-version": str(self._version),
            **({} if self._version == 1 else {"sequence-number": str(self._sequence)}),
            **({} if self._first_row_id is None else {"first-row-id": str(self._first_row_id)}),
        }
        return avro_file(avro_record("manifest_file", LIST_FIELDS, self._version), self._records, header)

    def _give_row_ids(self, first: int) -> int:
        # "When writing the manifest list, all data manifests must be assigned a first_row_id"  Row Lineage
        following = first
        for record in self._records:
            if record["content"] == 0 and record["first_row_id"] is None:
                record["first_row_id"] = following
                following += record["added_rows_count"] + record["existing_rows_count"]
        return following - first


def _carry_over(row: Mapping[str, Any], version: int) -> dict[str, Any]:
    """A manifest of the parent as the new list records it. UnsupportedTableError if its counts are not recorded, which
    version 1 allows."""
    if row["manifest_length"] is None or (version > 1 and any(row[name] is None for name in _RECORDED_COUNTS)):
        raise UnsupportedTableError(
            f"the snapshot lists the manifest {row['manifest_path']} without its length or counts",
            fix="have the table's manifests rewritten by the engine that owns it",
            place=row["manifest_path"],
            kind="unsupported-manifest-list",
        )
    summaries = row["partitions"]
    partitions = None if summaries is None else [
        {f.name: summary[f.key] for f in SUMMARY_FIELDS} for summary in summaries
    ]  # fmt: skip
    return {**row, "partitions": partitions}


_AVRO_TYPES: Mapping[str, Any] = {
    "boolean": "boolean", "integer": "int", "long": "long", "float": "float", "double": "double", "string": "string",
    "binary": "bytes", "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    "timestamp_ntz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
    "timestamp_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
}  # fmt: skip


def _entry_schema(context: WriteContext) -> dict[str, Any]:
    """The schema of a manifest's entries."""
    version = context.format_version
    partition = {"type": "record", "name": "r102", "fields": _partition_fields(context)}
    data_file = avro_record("r2", FILE_FIELDS, version, {"partition": partition})
    return avro_record("manifest_entry", ENTRY_FIELDS, version, {"data_file": data_file})


def partition_names(context: WriteContext) -> list[str]:
    """The names of the parts of a partition tuple in Avro, which allows letters, digits and underscores."""
    return [avro_name(f.name) for f in context.spec.fields]


def _partition_fields(context: WriteContext) -> list[dict[str, Any]]:
    parts = zip(partition_names(context), context.spec.fields, context.sources, strict=True)
    return [
        ManifestField(name, f.field_id, None).avro(
            "int" if source is None else _partition_type(f.transform, source[1], f.field_id), context.format_version
        )
        for name, f, source in parts
    ]


def _partition_type(transform: Any, source: Field, field_id: int) -> Any:
    type_ = transform.result_type(source.type)
    match type_:
        case DecimalType(precision, scale):
            size = (int("9" * precision).bit_length() + 8) // 8
            decimal = {"logicalType": "decimal", "precision": precision, "scale": scale}
            return {"type": "fixed", "name": f"decimal_{field_id}", "size": size, **decimal}
    match type_.name:
        case "uuid":
            return {"type": "fixed", "name": f"uuid_{field_id}", "size": 16, "logicalType": "uuid"}
        case "fixed":
            return {"type": "fixed", "name": f"fixed_{field_id}", "size": source.metadata["length"]}
    return _AVRO_TYPES[type_.name]
