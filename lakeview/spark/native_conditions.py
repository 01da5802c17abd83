"""Whether Spark's own Parquet writer writes the files that a table needs: in its types, by its names and rules."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakeview.delta.write.context import WriteContext
from lakeview.delta.write.row_rules import RowRules
from lakeview.model.data_types import PrimitiveType
from lakeview.model.schema import Schema
from lakeview.model.type_tree import nodes
from lakeview.spark.partition_keys import has_key
from lakeview.spark.types import PRIMITIVES, from_spark

CODECS: Mapping[str, str] = {
    "none": "uncompressed", "snappy": "snappy", "gzip": "gzip", "zstd": "zstd", "lz4": "lz4_raw",
}  # fmt: skip
"""Compressions as Arrow calls them, to Spark's words."""

_SETTINGS: Mapping[str, str] = {
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""What the session has to say: a write has no options for these."""

_VOID = PrimitiveType("void")

_MOST_PARTITIONS = 12
"""Partition columns: each is a folder of up to 240 characters in the path of a file, of which systems take 4,096."""


def is_native(frame: DataFrame, context: WriteContext) -> bool:
    """Whether Spark writes the rows as our own writer does: each column has the type of the table's, and no rule has to
    be evaluated, but for columns that must not be null."""
    columns = frame.columns
    keys = {name.casefold() for name in columns}
    return (
        len(keys) == len(columns)
        and _is_plain(context)
        and all(_is_stored_alike(context, name) for name in context.schema.names)
        and _has_no_rules(context.rules or RowRules(context.schema), keys)
        and _types_match(from_spark(frame.schema), context.schema)
        and _has_settings(frame.sparkSession, context.schema)
    )


def _is_plain(context: WriteContext) -> bool:
    """Whether no property asks for files that Spark does not write."""
    return (
        context.compression in CODECS
        and context.page_version == "1.0"
        and context.target_bytes is None
        and len(context.partition_columns) <= _MOST_PARTITIONS
        and not context.materialize_partitions
    )


def _is_stored_alike(context: WriteContext, name: str) -> bool:
    """Whether Spark stores the values of a column, and their nulls are seen afterwards."""
    field = context.schema[name]
    if name in context.partition_columns:
        return has_key(field)
    if any(isinstance(n.type, PrimitiveType) and n.type.name not in PRIMITIVES for n in nodes([field])):
        return False
    if isinstance(field.type, PrimitiveType) or not pa.types.is_nested(_type_of(Schema((field,)))):
        return field.type != _VOID
    is_mapped = field.physical_name is not None or field.id is not None
    has_void = any(node.type == _VOID for node in nodes([field]))
    is_demanding = not field.nullable or _type_of(Schema((field,))) != _type_of(Schema((field,)).as_nullable())
    return not (is_mapped or has_void or is_demanding)


def _type_of(schema: Schema) -> pa.DataType:
    return schema.to_arrow().field(0).type


def _has_no_rules(rules: RowRules, columns: set[str]) -> bool:
    """Whether nothing is computed of the rows, which have these columns, or checked of them."""
    absent = [rule for rule in rules.defaults if rule.name.casefold() not in columns]
    return not (rules.checks or rules.generations or rules.identities or absent)


def _types_match(rows: Schema, schema: Schema) -> bool:
    """Whether no value is converted: types are alike at every depth, and fields in one order."""
    types = {field.name.casefold(): field.type for field in schema.as_nullable().to_arrow()}
    return all(types[field.name.casefold()] == field.type for field in rows.to_arrow())


def _has_settings(spark: SparkSession, schema: Schema) -> bool:
    names: Sequence[str] = list(_SETTINGS)
    if all(node.type != PrimitiveType("timestamp") for node in nodes(schema)):
        names = names[:-1]
    return all((spark.conf.get(name) or "").lower() == _SETTINGS[name].lower() for name in names)
