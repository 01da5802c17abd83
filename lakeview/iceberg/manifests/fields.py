"""The fields of manifests and manifest lists: what files call them, what frames call them, and which versions of the
format have them (iceberg spec, Manifests, Manifest Lists)."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl

_I32, _I64 = pl.Int32(), pl.Int64()
_ALL, _V1, _V2, _V3, _NONE = (1, 2, 3), (1,), (2, 3), (3,), ()


class ManifestField(NamedTuple):
    """`name`: the specification's; `type`: Avro's, None of one whose type is given apart; `versions`: of the format in
    which it is written, `not_null`: of these those in which it may not be null; `column`: in frames, None where it is
    no column of theirs; `dtype`: of that column."""

    name: str
    id: int
    type: Any
    versions: Sequence[int] = _ALL
    not_null: Sequence[int] = _NONE
    column: str | None = None
    dtype: pl.DataType | None = None

    @property
    def key(self) -> str:
        """What readable files call it."""
        return f"f{self.id}"

    def avro(self, type_: Any, version: int) -> dict[str, Any]:
        """The field of an Avro record."""
        if version in self.not_null:
            return {"name": self.name, "field-id": self.id, "type": type_}
        return {"name": self.name, "field-id": self.id, "type": ["null", type_], "default": None}


def avro_record(
    name: str, fields: Iterable[ManifestField], version: int, types: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """The Avro schema of a record as a version of the format has it. `types`: of fields that have none themselves."""
    own = [f.avro(f.type or types[f.name], version) for f in fields if version in f.versions]
    return {"type": "record", "name": name, "fields": own}


def frame_schema(fields: Iterable[ManifestField]) -> pl.Schema:
    """The columns of frames that hold these fields."""
    return pl.Schema({f.column: f.dtype for f in fields if f.column is not None and f.dtype is not None})


def _map(key_id: int, value_id: int, value: str) -> dict[str, Any]:
    """A map from ids, which are no texts: an array of pairs."""
    pair = [ManifestField("key", key_id, "int", _ALL, _ALL), ManifestField("value", value_id, value, _ALL, _ALL)]
    return {"type": "array", "logicalType": "map", "items": avro_record(f"k{key_id}_v{value_id}", pair, 1)}


def _array(element_id: int, items: Any) -> dict[str, Any]:
    return {"type": "array", "element-id": element_id, "items": items}


_COUNTS = pl.List(pl.Struct({"key": _I32, "value": _I64}))
_BOUNDS = pl.List(pl.Struct({"key": _I32, "value": pl.Binary()}))

_F = ManifestField
ENTRY_FIELDS = (
    _F("status", 0, "int", _ALL, _ALL, "status", _I32),
    _F("snapshot_id", 1, "long", _ALL, _V1, "snapshot_id", _I64),
    _F("sequence_number", 3, "long", _V2, _NONE, "sequence_number", _I64),
    _F("file_sequence_number", 4, "long", _V2, _NONE, "file_sequence_number", _I64),
    _F("data_file", 2, None, _ALL, _ALL),
)
FILE_FIELDS = (
    _F("content", 134, "int", _V2, _V2, "content", _I32),
    _F("file_path", 100, "string", _ALL, _ALL, "path", pl.String()),
    _F("file_format", 101, "string", _ALL, _ALL, "format", pl.String()),
    _F("partition", 102, None, _ALL, _ALL),
    _F("record_count", 103, "long", _ALL, _ALL, "records", _I64),
    _F("file_size_in_bytes", 104, "long", _ALL, _ALL, "size", _I64),
    _F("block_size_in_bytes", 105, "long", _V1, _V1),  # no reader uses it
    _F("column_sizes", 108, _map(117, 118, "long"), _ALL, _NONE, "column_sizes", _COUNTS),
    _F("value_counts", 109, _map(119, 120, "long"), _ALL, _NONE, "value_counts", _COUNTS),
    _F("null_value_counts", 110, _map(121, 122, "long"), _ALL, _NONE, "null_value_counts", _COUNTS),
    _F("nan_value_counts", 137, _map(138, 139, "long"), _ALL, _NONE, "nan_value_counts", _COUNTS),
    _F("lower_bounds", 125, _map(126, 127, "bytes"), _ALL, _NONE, "lower_bounds", _BOUNDS),
    _F("upper_bounds", 128, _map(129, 130, "bytes"), _ALL, _NONE, "upper_bounds", _BOUNDS),
    _F("key_metadata", 131, "bytes", _NONE, _NONE, "key_metadata", pl.Binary()),  # no encrypted file is written
    _F("split_offsets", 132, _array(133, "long"), _ALL, _NONE, "split_offsets", pl.List(_I64)),
    _F("equality_ids", 135, _array(136, "int"), _V2, _NONE, "equality_ids", pl.List(_I32)),
    _F("sort_order_id", 140, "int", _ALL, _NONE, "sort_order_id", _I32),
    _F("first_row_id", 142, "long", _V3, _NONE, "first_row_id", _I64),
    _F("referenced_data_file", 143, "string", _V2, _NONE, "referenced_data_file", pl.String()),
    _F("content_offset", 144, "long", _V3, _NONE, "content_offset", _I64),
    _F("content_size_in_bytes", 145, "long", _V3, _NONE, "content_size", _I64),
)
SUMMARY_FIELDS = (
    _F("contains_null", 509, "boolean", _ALL, _ALL, "f509", pl.Boolean()),
    _F("contains_nan", 518, "boolean", _ALL, _NONE, "f518", pl.Boolean()),
    _F("lower_bound", 510, "bytes", _ALL, _NONE, "f510", pl.Binary()),
    _F("upper_bound", 511, "bytes", _ALL, _NONE, "f511", pl.Binary()),
)
LIST_FIELDS = (
    _F("manifest_path", 500, "string", _ALL, _ALL, "manifest_path", pl.String()),
    _F("manifest_length", 501, "long", _ALL, _ALL, "manifest_length", _I64),
    _F("partition_spec_id", 502, "int", _ALL, _ALL, "partition_spec_id", _I32),
    _F("content", 517, "int", _V2, _V2, "content", _I32),
    _F("sequence_number", 515, "long", _V2, _V2, "sequence_number", _I64),
    _F("min_sequence_number", 516, "long", _V2, _V2, "min_sequence_number", _I64),
    _F("added_snapshot_id", 503, "long", _ALL, _ALL, "added_snapshot_id", _I64),
    _F("added_files_count", 504, "int", _ALL, _V2, "added_files_count", _I64),
    _F("existing_files_count", 505, "int", _ALL, _V2, "existing_files_count", _I64),
    _F("deleted_files_count", 506, "int", _ALL, _V2, "deleted_files_count", _I64),
    _F("added_rows_count", 512, "long", _ALL, _V2, "added_rows_count", _I64),
    _F("existing_rows_count", 513, "long", _ALL, _V2, "existing_rows_count", _I64),
    _F("deleted_rows_count", 514, "long", _ALL, _V2, "deleted_rows_count", _I64),
    _F(
        "partitions", 507, _array(508, avro_record("r508", SUMMARY_FIELDS, 1)), _ALL, _NONE, "partitions",
        pl.List(pl.Struct(frame_schema(SUMMARY_FIELDS))),
    ),
    _F("key_metadata", 519, "bytes", _ALL, _NONE, "key_metadata", pl.Binary()),
    _F("first_row_id", 520, "long", _V3, _NONE, "first_row_id", _I64),
)  # fmt: skip

ENTRY_NAMES = {f.name: f.id for f in (*ENTRY_FIELDS, *FILE_FIELDS)}
LIST_NAMES = {f.name: f.id for f in (*LIST_FIELDS, *SUMMARY_FIELDS)} | {
    f"{kind}_data_files_count": number for kind, number in (("added", 504), ("existing", 505), ("deleted", 506))
}
"""Ids by name, for files whose fields carry none. Writers have spelled some names in two ways."""
