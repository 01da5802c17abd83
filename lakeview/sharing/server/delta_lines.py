"""Actions of a Delta log to the protocol's lines: what clients must implement, heads, and the lines of adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from lakeview.delta.data.schemas import schema_text
from lakeview.delta.data.type_widening import type_changes
from lakeview.delta.features import column_mapping_mode
from lakeview.delta.log.actions import Metadata, Protocol
from lakeview.delta.log.vector_paths import vector_file
from lakeview.model.schema import ArrayType, DataType, Field, MapType, Schema, StructType
from lakeview.model.snapshot import TableProtocol
from lakeview.sharing.protocol.messages import CHANGE_FEED, FileFormat, MetadataLine, ProtocolLine, ResponseFormat
from lakeview.sharing.server.lines import Row, delta_row, parquet_row, servable
from lakeview.sharing.server.refusals import unsupported

_FEED = "delta.enableChangeDataFeed"
_ONLY_OF_THE_LOG = frozenset({"v2Checkpoint", "vacuumProtocolCheck", "catalogManaged", "catalogOwned-preview"})
"""Reader features that concern who reads the log: our clients do not."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})

_OF_TYPES = {
    "timestampNtz": ("timestamp_ntz",), "variantType": ("variant",), "variantType-preview": ("variant",),
    "variantShredding": ("variant",), "variantShredding-preview": ("variant",), "geospatial": ("geometry", "geography"),
}  # fmt: skip
"""Reader features that matter only where a column has such a type."""


def feed(metadata: Metadata) -> bool:
    """Whether the table's writers record changes."""
    return metadata.properties.get(_FEED, "").lower() == "true"


def needed_features(
    protocol: TableProtocol, properties: Mapping[str, str], schema: Schema, *, vectors: bool
) -> frozenset[str]:
    """What a client must implement beyond plain Parquet to read files right that were written so; in lower case."""
    found = set(protocol.reader_features or ()) - _ONLY_OF_THE_LOG
    if column_mapping_mode(protocol, properties) == "none":
        found.discard("columnMapping")
    else:
        found.add("columnMapping")
    found.discard("deletionVectors")
    if vectors:
        found.add("deletionVectors")
    types = set(_types(schema))
    found = {f for f in found if f not in _OF_TYPES or not types.isdisjoint(_OF_TYPES[f])}
    if not any(type_changes(f) for f in _fields(schema.fields)):
        found -= {"typeWidening", "typeWidening-preview"}
    return frozenset(f.removesuffix("-preview").lower() for f in found)


def _fields(fields: tuple[Field, ...]) -> Iterator[Field]:
    for field in fields:
        yield field
        for inner in nested_structs(field.type):
            yield from _fields(inner.fields)


def nested_structs(type_: DataType) -> Iterator[StructType]:
    """The structs a type is, or that its elements, keys and values are."""
    match type_:
        case StructType():
            yield type_
        case ArrayType(element):
            yield from nested_structs(element)
        case MapType(key, value):
            yield from nested_structs(key)
            yield from nested_structs(value)


def _types(schema: Schema) -> Iterator[str]:
    return (str(f.type).partition("(")[0] for f in _fields(schema.fields))


# -- lines


def heads(
    protocol: Protocol, metadata: Metadata, schema: Schema, sizes: tuple[int, int | None] | None
) -> Mapping[ResponseFormat, tuple[object, object]]:
    """The bodies of protocol and metaData lines. `sizes`: files and bytes, if they are to be told
    and known."""
    files, size = sizes or (None, None)
    own = {k: v for k, v in metadata.properties.items() if k.startswith("delta.")}  # others are nobody's business
    plain = MetadataLine(
        id=metadata.id,
        name=metadata.name,
        description=metadata.description,
        format=FileFormat(metadata.format.provider),
        schema_string=public_schema(schema),
        partition_columns=list(metadata.partition_columns or ()),
        configuration={CHANGE_FEED: "true"} if feed(metadata) else None,
        size=size,
        num_files=files,
    )
    recorded = {
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        # "format.options must be an object": the kernel's clients refuse anything else
        "format": {"provider": metadata.format.provider, "options": dict(metadata.format.options or {})},
        "schemaString": metadata.schema_string,
        "partitionColumns": list(metadata.partition_columns or ()),
        "configuration": own,
        "createdTime": metadata.created_time,
    }
    delta = {"deltaMetadata": known(recorded)} | known({"size": size, "numFiles": files})
    named = {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "readerFeatures": protocol.reader_features,
        "writerFeatures": protocol.writer_features,
    }
    return {
        ResponseFormat.PARQUET: (ProtocolLine(min_reader_version=1), plain),
        ResponseFormat.DELTA: ({"deltaProtocol": known(named)}, delta),
    }


def known(values: Mapping[str, Any]) -> dict[str, Any]:
    """What is there: the log leaves nulls out."""
    return {k: v for k, v in values.items() if v is not None}


def public_schema(schema: Schema) -> str:
    """schemaString with the comments people wrote, and nothing else of the columns' metadata."""
    return schema_text(Schema(tuple(public_field(f) for f in schema)))


def public_field(field: Field) -> Field:
    """A column with its comment, and nothing else that the log records of it."""
    comment = {} if field.comment is None else {"comment": field.comment}
    return Field(field.name, _public_type(field.type), field.nullable, comment)


def _public_type(type_: DataType) -> DataType:
    match type_:
        case StructType(fields):
            return StructType(tuple(public_field(f) for f in fields))
        case ArrayType(element, nulls):
            return ArrayType(_public_type(element), nulls)
        case MapType(key, value, nulls):
            return MapType(_public_type(key), _public_type(value), nulls)
    return type_


def add_row(
    kind: str,
    row: Mapping[str, Any],
    response_format: ResponseFormat,
    scheme: str,
    beside: Mapping[str, Any] = _NOTHING,
) -> Row:
    """The line of an add, a row of FILE_ACTIONS. `beside`: version and timestamp, where they are told."""
    path = servable(row["key"])
    values = row["partition_values"] or {}
    if response_format is ResponseFormat.PARQUET:
        require_no_vector(row["vector"])
        body = {"partitionValues": {k: v or "" for k, v in values.items()}, "size": row["size"], **beside}
        return parquet_row(kind, path, body if row["stats"] is None else {**body, "stats": row["stats"]}, scheme)
    tags = None if row["tags"] is None else msgspec.Raw(row["tags"].encode())
    action = {
        "partitionValues": values,
        "size": row["size"],
        "modificationTime": row["modified"] or 0,
        "dataChange": row["data_change"],
        "stats": row["stats"],
        "tags": tags,
        "deletionVector": vector_action(row["vector"]),
        "baseRowId": row["base_row_id"],
        "defaultRowCommitVersion": row["default_row_commit_version"],
    }
    return delta_row("add", path, known(action), vector_path(row["vector"]), beside, scheme)


def require_no_vector(vector: object) -> None:
    """400 for a deletion vector in parquet format, which has no word for it: deleted rows would come back. A table has
    one there only if its protocol does not say so, as it has to."""
    if vector is not None:
        raise unsupported("Unsupported Delta Table Properties: files have deletion vectors that the protocol denies")


def vector_action(vector: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A value of VECTOR as the log spells it."""
    if vector is None:
        return None
    return known(
        {
            "storageType": vector["storage_type"],
            "pathOrInlineDv": vector["path_or_inline_dv"],
            "offset": vector["offset"],
            "sizeInBytes": vector["size_in_bytes"],
            "cardinality": vector["cardinality"],
        }
    )


def vector_path(vector: Mapping[str, Any] | None) -> str | None:
    """The file a deletion vector lies in; None for an inline one. Refusal for one outside the table."""
    if vector is None:
        return None
    found = vector_file(vector["storage_type"], vector["path_or_inline_dv"])
    return None if found is None else servable(found)
