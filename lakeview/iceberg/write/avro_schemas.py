"""A format version to the Avro schemas of manifests and manifest lists (iceberg spec, Manifests, Manifest Lists,
Appendix A: Avro)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakeview.iceberg.write.context import WriteContext, avro_name
from lakeview.model.data_types import DecimalType, Field

_AVRO_TYPES: Mapping[str, Any] = {
    "boolean": "boolean", "integer": "int", "long": "long", "float": "float", "double": "double", "string": "string",
    "binary": "bytes", "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    "timestamp_ntz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
    "timestamp_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
}  # fmt: skip


def entry_schema(context: WriteContext) -> dict[str, Any]:
    """The schema of a manifest's entries."""
    version = context.format_version
    file = [
        *([] if version == 1 else [_required_field("content", 134, "int")]),
        _required_field("file_path", 100, "string"), _required_field("file_format", 101, "string"),
        _required_field("partition", 102, {"type": "record", "name": "r102", "fields": _partition_fields(context)}),
        _required_field("record_count", 103, "long"), _required_field("file_size_in_bytes", 104, "long"),
        *([_required_field("block_size_in_bytes", 105, "long")] if version == 1 else []),
        _optional("column_sizes", 108, _map(117, 118, "long")), _optional("value_counts", 109, _map(119, 120, "long")),
        _optional("null_value_counts", 110, _map(121, 122, "long")),
        _optional("nan_value_counts", 137, _map(138, 139, "long")),
        _optional("lower_bounds", 125, _map(126, 127, "bytes")),
        _optional("upper_bounds", 128, _map(129, 130, "bytes")),
        _optional("split_offsets", 132, {"type": "array", "element-id": 133, "items": "long"}),
        _optional("sort_order_id", 140, "int"),
        *([] if version == 1 else [
            _optional("equality_ids", 135, {"type": "array", "element-id": 136, "items": "int"}),
            _optional("referenced_data_file", 143, "string")]),
        *([_optional("first_row_id", 142, "long")] if version > 2 else []),
        *([_optional("content_offset", 144, "long"), _optional("content_size_in_bytes", 145, "long")]
          if version > 2 else []),
    ]  # fmt: skip
    snapshot_id = _required_field("snapshot_id", 1, "long") if version == 1 else _optional("snapshot_id", 1, "long")
    numbers = [_optional("sequence_number", 3, "long"), _optional("file_sequence_number", 4, "long")]
    data_file = _required_field("data_file", 2, {"type": "record", "name": "r2", "fields": file})
    fields = [_required_field("status", 0, "int"), snapshot_id, *([] if version == 1 else numbers), data_file]
    return {"type": "record", "name": "manifest_entry", "fields": fields}


def list_schema(version: int) -> dict[str, Any]:
    """The schema of a manifest list's records."""
    summary = [
        _required_field("contains_null", 509, "boolean"), _optional("contains_nan", 518, "boolean"),
        _optional("lower_bound", 510, "bytes"), _optional("upper_bound", 511, "bytes"),
    ]  # fmt: skip
    record = {"type": "record", "name": "r508", "fields": summary}
    count_field = _optional if version == 1 else _required_field
    numbers = [
        _required_field("content", 517, "int"), _required_field("sequence_number", 515, "long"),
        _required_field("min_sequence_number", 516, "long"),
    ]  # fmt: skip
    fields = [
        _required_field("manifest_path", 500, "string"), _required_field("manifest_length", 501, "long"),
        _required_field("partition_spec_id", 502, "int"), *([] if version == 1 else numbers),
        _required_field("added_snapshot_id", 503, "long"),
        count_field("added_files_count", 504, "int"), count_field("existing_files_count", 505, "int"),
        count_field("deleted_files_count", 506, "int"), count_field("added_rows_count", 512, "long"),
        count_field("existing_rows_count", 513, "long"), count_field("deleted_rows_count", 514, "long"),
        _optional("partitions", 507, {"type": "array", "element-id": 508, "items": record}),
        _optional("key_metadata", 519, "bytes"),
        *([_optional("first_row_id", 520, "long")] if version > 2 else []),
    ]  # fmt: skip
    return {"type": "record", "name": "manifest_file", "fields": fields}


def partition_names(context: WriteContext) -> list[str]:
    """The names of the parts of a partition tuple in Avro, which allows letters, digits and underscores."""
    return [avro_name(f.name) for f in context.spec.fields]


def _partition_fields(context: WriteContext) -> list[dict[str, Any]]:
    parts = zip(partition_names(context), context.spec.fields, context.sources, strict=True)
    return [
        _optional(name, f.field_id, "int" if source is None else _partition_type(f.transform, source[1], f.field_id))
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


def _required_field(name: str, field_id: int, type_: Any) -> dict[str, Any]:
    return {"name": name, "field-id": field_id, "type": type_}


def _optional(name: str, field_id: int, type_: Any) -> dict[str, Any]:
    return {"name": name, "field-id": field_id, "type": ["null", type_], "default": None}


def _map(key_id: int, value_id: int, value: str) -> dict[str, Any]:
    """A map from ids, which are no texts: an array of pairs."""
    fields = [_required_field("key", key_id, "int"), _required_field("value", value_id, value)]
    pair = {"type": "record", "name": f"k{key_id}_v{value_id}", "fields": fields}
    return {"type": "array", "logicalType": "map", "items": pair}
