"""Functions of Arrow batches over DataFrames whose columns have any names.

pyspark 4.3 hands columns to such functions by parsing their names: the dot of `a.b` is taken for the field of a struct,
and one backtick is a syntax error. So they are handed over by position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

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
    return function(batch.rename_columns(names) for batch in batches)
