"""Actions of a Delta log as lines of the sharing protocol: heads, and the lines of adds."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from lakeview.delta.sharing import Metadata, Protocol, is_true, schema_text, vector_path, without_nulls
from lakeview.model.data_types import Field
from lakeview.model.schema import Schema
from lakeview.model.type_tree import map_fields
from lakeview.sharing.protocol.messages import CHANGE_FEED, FileFormat, MetadataLine, ProtocolLine, ResponseFormat
from lakeview.sharing.server.lines import Row, delta_row, parquet_row, servable
from lakeview.sharing.server.refusals import unsupported_form


def records_changes(metadata: Metadata) -> bool:
    """True if the table's writers record a change feed."""
    return is_true(metadata.properties, "delta.enableChangeDataFeed")


def heads(
    protocol: Protocol, metadata: Metadata, schema: Schema, sizes: tuple[int, int | None] | None
) -> Mapping[ResponseFormat, tuple[object, object]]:
    """The bodies of protocol and metaData lines, by format. `sizes`: the number of files and their bytes, where they
    are given."""
    files, size = sizes or (None, None)
    own = {k: v for k, v in metadata.properties.items() if k.startswith("delta.")}  # others are not shared
    plain = MetadataLine(
        id=metadata.id,
        name=metadata.name,
        description=metadata.description,
        format=FileFormat(metadata.format.provider),
        schema_string=public_schema(schema),
        partition_columns=list(metadata.partition_columns or ()),
        configuration={CHANGE_FEED: "true"} if records_changes(metadata) else None,
        size=size,
        num_files=files,
    )
    body = {
        **msgspec.to_builtins(metadata),
        # "format.options must be an object": the kernel's clients refuse anything else
        "format": {"provider": metadata.format.provider, "options": dict(metadata.format.options or {})},
        "partitionColumns": list(metadata.partition_columns or ()),
        "configuration": own,
    }
    delta = {"deltaMetadata": without_nulls(body)} | without_nulls({"size": size, "numFiles": files})
    delta_protocol = {"deltaProtocol": without_nulls(msgspec.to_builtins(protocol))}
    return {
        ResponseFormat.PARQUET: (ProtocolLine(min_reader_version=1), plain),
        ResponseFormat.DELTA: (delta_protocol, delta),
    }


def public_schema(schema: Schema) -> str:
    """schemaString with the comments people wrote, and nothing else of the columns' metadata."""
    return schema_text(Schema(tuple(public_field(f) for f in schema)))


def public_field(field: Field) -> Field:
    """A column with its comment, and nothing else that the log records of it."""
    comment = {} if field.comment is None else {"comment": field.comment}
    return Field(field.name, map_fields(field.type, public_field), field.nullable, comment)


def add_row(row: Mapping[str, Any], response_format: ResponseFormat, scheme: str) -> Row:
    """The line of a live file, a row of FILE_ACTIONS."""
    action = {
        "size": row["size"],
        "modificationTime": row["modified"] or 0,
        "dataChange": row["data_change"],
        "stats": row["stats"],
        "tags": None if row["tags"] is None else msgspec.Raw(row["tags"].encode()),
        "baseRowId": row["base_row_id"],
        "defaultRowCommitVersion": row["default_row_commit_version"],
    }
    values, vector = row["partition_values"] or {}, row["vector"]
    return action_row("file", "add", row["key"], action, values, vector, response_format, scheme)


def action_row(
    kind: str,
    action_kind: str,
    path: str,
    action: Mapping[str, Any],
    values: Mapping[str, str | None],
    vector: Mapping[str, Any] | None,
    response_format: ResponseFormat,
    scheme: str,
    common: Mapping[str, Any] = MappingProxyType({}),
) -> Row:
    """The line of a file: of `kind` with the protocol's own fields, or with the log's action of `action_kind`.

    `values`: its partition values; `vector`: its deletion vector, a value of VECTOR; `common`: version and timestamp,
    where an answer gives them. 400 for a deletion vector in parquet format, which cannot express it: deleted rows would
    come back. Only a table whose protocol lacks the feature, against the specification, has one there.
    """
    path = servable(path)
    if response_format is ResponseFormat.PARQUET:
        if vector is not None:
            raise unsupported_form(
                "Unsupported Delta Table Properties: files have deletion vectors that the protocol denies"
            )
        body = {"partitionValues": {k: v or "" for k, v in values.items()}, "size": action.get("size") or 0, **common}
        if action_kind == "add" and action["stats"] is not None:
            body["stats"] = action["stats"]
        return parquet_row(kind, path, body, scheme)
    fields = without_nulls({**action, "partitionValues": values, "deletionVector": _vector_action(vector)})
    vector_file = None if vector is None else vector_path(vector)  # None for an inline one
    return delta_row(action_kind, path, fields, None if vector_file is None else servable(vector_file), common, scheme)


def _vector_action(vector: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A value of VECTOR as the log spells it."""
    if vector is None:
        return None
    return without_nulls(
        {
            "storageType": vector["storage_type"],
            "pathOrInlineDv": vector["path_or_inline_dv"],
            "offset": vector["offset"],
            "sizeInBytes": vector["size_in_bytes"],
            "cardinality": vector["cardinality"],
        }
    )
