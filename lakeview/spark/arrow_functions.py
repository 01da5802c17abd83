"""Functions of Arrow batches over DataFrames whose columns have any names, in sessions of any time zone.

pyspark 4.3 hands columns to such functions by parsing their names: the dot of `a.b` is taken for the field of a struct,
and one backtick is a syntax error. So they are handed over by position. Timestamps come in the time zone of the
session, and conditions are evaluated in UTC, as everywhere in lakeview.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lakeview.rows.arrays import map_child_fields

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)
BatchFunction: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def positions(rows: DataFrame) -> list[str]:
    """Names for the columns by their places, which need no quotes."""
    return [f"c{number}" for number in range(len(rows.columns))]


def map_batches(rows: DataFrame, function: BatchFunction, schema: StructType | str) -> DataFrame:
    """What a function gives for the batches of each partition, as `mapInArrow`."""
    return rows.toDF(*positions(rows)).mapInArrow(partial(_with_names, rows.columns, function), schema)


def _with_names(
    names: Sequence[str], function: BatchFunction, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    return function(in_utc(batch.rename_columns(names)) for batch in batches)


def in_utc(rows: Rows) -> Rows:
    """The rows with the zone UTC in timestamps that have one, at every depth."""
    schema = pa.schema([_field_in_utc(field) for field in rows.schema])
    return rows if schema.equals(rows.schema) else rows.cast(schema)


def _field_in_utc(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return field.with_type(pa.timestamp(kind.unit, "UTC"))
    return field.with_type(map_child_fields(kind, _field_in_utc))
