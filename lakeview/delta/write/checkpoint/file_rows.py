"""FILE_ACTIONS to the `add` and `remove` structs of a checkpoint (delta protocol, Checkpoint Schema)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa

from lakeview.delta.data.column_rules import clustering_columns
from lakeview.delta.data.partition_values import partition_fields
from lakeview.delta.data.schemas import table_schema
from lakeview.delta.data.statistics import physical_leaves
from lakeview.delta.log.actions import Metadata
from lakeview.delta.log.file_actions import COLUMN_TYPES, text_maps
from lakeview.delta.log.paths import encode_paths
from lakeview.delta.log.replay import Replay
from lakeview.delta.properties import value
from lakeview.delta.write.checkpoint.struct_statistics import StructStatistics, documents_of, parsed_partitions
from lakeview.delta.write.context import indexed_leaves
from lakeview.model.data_types import Field
from lakeview.model.table_metadata import TableProtocol
from lakeview.rows.bitmaps import corrupt_vector

TEXTS = pl.Map(pl.String(), pl.String())

_VECTOR = pl.Struct(
    {
        "storageType": pl.String(),
        "pathOrInlineDv": pl.String(),
        "offset": pl.Int32(),
        "sizeInBytes": pl.Int32(),
        "cardinality": pl.Int64(),
    }
)
_COMMON: Mapping[str, tuple[str, pl.DataType]] = {
    "path": ("path", pl.String()),
    "partitionValues": ("partition_values", TEXTS),
    "size": ("size", pl.Int64()),
    "dataChange": ("data_change", pl.Boolean()),
    "deletionVector": ("vector", _VECTOR),
    "baseRowId": ("base_row_id", pl.Int64()),
    "defaultRowCommitVersion": ("default_row_commit_version", pl.Int64()),
}
_ADD = {
    **_COMMON,
    "modificationTime": ("modified", pl.Int64()),
    "tags": ("tags", TEXTS),
    "clusteringProvider": ("clustering_provider", pl.String()),
}
# "remove actions in a checkpoint hold neither stats nor tags"  delta protocol, Checkpoint Schema
_REMOVE = {
    **_COMMON,
    "deletionTimestamp": ("modified", pl.Int64()),
    "extendedFileMetadata": ("extended_file_metadata", pl.Boolean()),
}
"""Field of the struct to column of FILE_ACTIONS, and the field's type."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the adds of a table's checkpoints hold beside the fields that all have.

    `documents`: `stats` as JSON text. `structs`: reads `stats_parsed`; None where the table does not want it.
    `partitions`: the columns of `partitionValues_parsed`, none where it is left out.
    """

    documents: bool
    structs: StructStatistics | None
    partitions: Sequence[Field]

    @property
    def columns(self) -> list[str]:
        """The columns of FILE_ACTIONS that are needed."""
        texts = ["stats", "stats_parsed"] if self.documents or self.structs is not None else []
        return list(dict.fromkeys([*(column for column, _ in (*_ADD.values(), *_REMOVE.values())), *texts]))


@dataclass(frozen=True)
class Definition:
    """What the shape of a table's checkpoints follows from, as a value that can travel to another process. `domains`:
    DOMAIN_METADATA."""

    metadata: Metadata
    protocol: TableProtocol
    domains: pl.DataFrame

    @classmethod
    def of(cls, state: Replay) -> Definition:
        """That of a version."""
        return cls(state.metadata, state.table_protocol, state.domain_metadata())


def shape_of(definition: Definition) -> Shape:
    """What a table's properties ask of its checkpoints: `delta.checkpoint.writeStatsAsJson` (true where it is not set)
    and `delta.checkpoint.writeStatsAsStruct` (false)."""
    properties = definition.metadata.properties
    documents = value(properties, "delta.checkpoint.writeStatsAsJson") is not False
    if not value(properties, "delta.checkpoint.writeStatsAsStruct"):
        return Shape(documents, None, ())
    schema = table_schema(definition.metadata.schema_string, definition.protocol, properties)
    partition_columns = definition.metadata.partition_columns or []
    leaves = physical_leaves(schema, None, partition_columns)
    if documents:  # without them, statistics of the other columns would be lost
        clustering = clustering_columns(schema, definition.domains)
        indexed_names = indexed_leaves(schema, partition_columns, properties, clustering)
        leaves = [leaf for leaf in leaves if leaf[1] in indexed_names]
    return Shape(documents, StructStatistics(leaves), partition_fields(schema, partition_columns))


def add_structs(actions: pl.DataFrame, shape: Shape) -> pl.Series:
    """FILE_ACTIONS of adds as a series of structs called `add`."""
    columns = _columns(actions, _ADD)
    # readers ignore it; Spark writes false, and so a checkpoint does not depend on what it is made from
    columns["dataChange"] = pl.Series([False]).new_from_index(0, actions.height)
    structs = actions["stats_parsed"] if "stats_parsed" in actions.columns else None
    stats = actions["stats"] if "stats" in actions.columns else _nulls(pl.String(), actions.height)
    if shape.documents:
        columns["stats"] = documents_of(stats, structs)
    if shape.structs is not None:
        columns["stats_parsed"] = shape.structs.read(stats, structs)
        if shape.partitions:
            columns["partitionValues_parsed"] = parsed_partitions(columns["partitionValues"], shape.partitions)
    return pl.DataFrame(columns).to_struct("add")


ACTION_STRUCTS: Mapping[str, Callable[[pl.DataFrame, Shape], pl.Series]] = {
    "add": add_structs,
    "remove": lambda actions, _: pl.DataFrame(_columns(actions, _REMOVE)).to_struct("remove"),
}
"""Kinds of file actions, in the order in which a checkpoint holds them."""


def action_types(shape: Shape) -> dict[str, pa.DataType]:
    """The types of the structs, by kind."""
    return _types(shape.documents) if shape.structs is None else _types_of(shape)


@cache
def _types(documents: bool) -> dict[str, pa.DataType]:
    return _types_of(Shape(documents, None, ()))


def _types_of(shape: Shape) -> dict[str, pa.DataType]:
    empty = pl.DataFrame(schema={**COLUMN_TYPES})
    return {kind: build(empty, shape).to_arrow().type for kind, build in ACTION_STRUCTS.items()}


def _columns(actions: pl.DataFrame, fields: Mapping[str, tuple[str, pl.DataType]]) -> dict[str, pl.Series]:
    columns = {}
    for name, (column, dtype) in fields.items():
        match column:
            case "path":
                columns[name] = encode_paths(actions["path"])
            case "tags":
                columns[name] = _tags(actions["tags"])
            case "vector":
                columns[name] = _vectors(actions["vector"])
            case _ if column in actions.columns:
                columns[name] = actions[column]
            case _:
                columns[name] = _nulls(dtype, actions.height)
    return columns


def _vectors(vectors: pl.Series) -> pl.Series:
    """CorruptTableError for numbers that no checkpoint can hold; readers of the commit do not notice them."""
    structs = vectors.struct.rename_fields(list(_VECTOR.to_schema()))
    try:
        return structs.cast(_VECTOR)
    except pl.exceptions.InvalidOperationError as error:
        fits = pl.all_horizontal(pl.col("offset", "sizeInBytes").is_between(-(1 << 31), (1 << 31) - 1))
        wide = structs.struct.unnest().filter(~fits)["pathOrInlineDv"]
        raise corrupt_vector(str(next(iter(wide), None)), "its offset or its size has more than 32 bits") from error


def _nulls(dtype: pl.DataType, rows: int) -> pl.Series:
    return pl.Series([None], dtype=dtype).new_from_index(0, rows)


def _tags(texts: pl.Series) -> pl.Series:
    if texts.null_count() == texts.len():
        return _nulls(TEXTS, texts.len())
    tags: dict[str, Any] = {text: msgspec.json.decode(text) for text in texts.drop_nulls().unique()}
    return text_maps([None if text is None else tags[text] for text in texts])
