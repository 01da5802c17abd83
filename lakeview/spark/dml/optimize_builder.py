"""Files to rearrange, with the calls of Delta's own builder."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from lakeview import delta
from lakeview.model.errors import InvalidRequestError
from lakeview.spark.dml import changes, results
from lakeview.spark.dml.columns import sql_text


class DeltaOptimizeBuilder:
    """Files to write again: all, or those of the partitions that a condition selects."""

    def __init__(self, spark: SparkSession, target: delta.table.DeltaTable, where: str | None = None) -> None:
        self._spark = spark
        self._table = target
        self._where = where

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Only partitions that a condition on partition columns selects."""
        return DeltaOptimizeBuilder(self._spark, self._table, sql_text(partitionFilter))

    def executeCompaction(self) -> DataFrame:
        """Write small files again as few large ones; returns `results.OPTIMIZE`, the files that came and went."""
        return self._optimize([])

    def executeZOrderBy(self, *cols: str | Sequence[str]) -> DataFrame:
        """Order rows along a curve through columns; returns `results.OPTIMIZE`, the files that came and went."""
        names = [name for col in cols for name in ([col] if isinstance(col, str) else col)]
        if not names:
            raise InvalidRequestError("no column to order by is named", fix="name one to six", kind="bad-order")
        return self._optimize(names)

    def _optimize(self, columns: Sequence[str]) -> DataFrame:
        version = changes.optimize(self._spark, self._table, self._where, columns)
        return results.optimize_result(self._spark, self._table, version)
