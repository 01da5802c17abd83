"""The profile of a table on Spark: facts in one aggregate over all columns, then frequencies in another.

Frequencies are exact. The columns of one type are unpivoted to rows of column and value, and grouped: distinct values
are counted after a shuffle that spills to disk, where conditional sums would evaluate each bin for every row. The
driver gets at most a row for each bin of a column.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import polars as pl
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as spark_types

import lakeview as lv
from lakeview.model.errors import InvalidRequestError
from lakeview.spark.tables import table
from lakeview.views.data.aggregates import TOP, Facts, Frequencies
from lakeview.views.data.profile import profile_of

_SEARCH_STEPS = (16, 8, 4, 2, 1)
"""Of a binary search among the edges of at most 32 bins."""


def profile(
    spark: SparkSession,
    address: str,
    *,
    version: int | None = None,
    where: str | None = None,
    columns: Sequence[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    on_step: Callable[[str], object] = lambda _: None,
) -> tuple[pl.DataFrame, int]:
    """PROFILE of the rows of a version (the latest without one) that satisfy `where`, and how many there are.

    The same figures as `lakeview.views.data.profile.profile` of the same rows; without `columns` of all columns that
    can be read. `storage_options` as those of `lakeview.spark.table`. `on_step` is called with what is done next, and
    ends the profile by an exception. InvalidRequestError for no column at all, UnsupportedTableError for a column of a
    type that Spark lacks; errors as `lakeview.spark.table`.
    """
    if columns is not None and not columns:
        raise InvalidRequestError(
            "the profile names no column", fix="name one or more, or leave columns out for all of them", place="columns"
        )
    on_step("planning")
    source = lv.open_table(address, storage_options=storage_options)
    snapshot = source.snapshot(version)
    schema = snapshot.schema
    readable = [name for name in schema.names if name not in schema.unreadable]
    names = readable if columns is None else list(dict.fromkeys(schema.resolve_names(columns, "columns")))
    rows = table(spark, address, version=snapshot.version, columns=names, where=where, storage_options=storage_options)
    kinds = source.scan(snapshot.version).collect_schema()
    return profile_of([SparkAggregates(rows, {name: kinds[name] for name in names}, on_step)])


class SparkAggregates:
    """The columns of a DataFrame. `kinds`: their names and types in polars, in the same order."""

    def __init__(
        self, rows: DataFrame, kinds: Mapping[str, pl.DataType], on_step: Callable[[str], object] = lambda _: None
    ) -> None:
        # under positions: a column may have any name
        self._rows = rows.toDF(*map(str, range(len(kinds))))
        self._kinds = dict(kinds)
        self._on_step = on_step

    def facts(self) -> list[Facts]:
        """As `Aggregates.facts`: one job."""
        aggregates = [f.count(f.lit(1)).alias("rows")]
        positions = {name: str(i) for i, name in enumerate(self._kinds)}
        for name, kind in self._kinds.items():
            values, at = f.col(positions[name]), positions[name]
            aggregates.append(f.count(values).alias(f"{at} known"))
            if not Facts(name, kind, 0, 0, 0, None, None).is_countable:
                continue
            if kind.is_float():
                values = f.when(~f.isnan(values), values)
                aggregates.append(f.count(values).alias(f"{at} numbers"))
            aggregates += [f.min(values).alias(f"{at} low"), f.max(values).alias(f"{at} high")]
        self._on_step("facts of all columns")
        row = _frame(self._rows.agg(*aggregates)).row(0, named=True)
        return [self._facts(name, positions[name], row) for name in self._kinds]

    def frequencies(self, edges: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, Frequencies]]:
        """As `Aggregates.frequencies`: one job."""
        if not edges:
            return
        families: dict[str, dict[int, Sequence[Any]]] = {}
        for position, name in enumerate(self._kinds):
            if name in edges:
                family = _family(self._rows.schema[position].dataType)
                families.setdefault(family, {})[position] = edges[name]
        self._on_step("values of all columns")
        frames = [self._family_frequencies(family, columns) for family, columns in families.items()]
        rows = _frame(reduce(partial(DataFrame.unionByName, allowMissingColumns=True), frames))
        by_column = rows.partition_by("column", as_dict=True)
        for position, (name, kind) in enumerate(self._kinds.items()):
            if name in edges:
                of_column = by_column.get((position,), rows.clear())
                top = of_column[f"top {_family(self._rows.schema[position].dataType)}"]
                yield name, _column_frequencies(of_column, top, kind, len(edges[name]))

    def _facts(self, name: str, at: str, row: Mapping[str, Any]) -> Facts:
        kind, rows = self._kinds[name], row["rows"]
        non_nulls = row[f"{at} known"]
        nans = non_nulls - row.get(f"{at} numbers", non_nulls)
        low, high = (_value(row.get(f"{at} {end}"), kind) for end in ("low", "high"))
        return Facts(name, kind, rows, rows - non_nulls, nans, low, high)

    def _family_frequencies(self, family: str, columns: Mapping[int, Sequence[Any]]) -> DataFrame:
        """Rows for the columns at these positions, whose edges are given: `column` (its position), `bin`, `distinct`,
        `rows` and the most frequent values under a name of the family."""
        # the cast of a wider type: cells of columns alike have one
        cells = ", ".join(f"{at}, cast(`{at}` as {family})" for at in columns)
        values = self._rows.selectExpr(f"stack({len(columns)}, {cells}) as (column, value)").where("value IS NOT NULL")
        if family == "double":
            values = values.where("NOT isnan(value)")
        counts = values.groupBy("column", "value").agg(f.count(f.lit(1)).alias("rows"))
        most = f.min_by(f.struct("value", "rows"), f.struct(-f.col("rows"), "value"), TOP)
        return (
            _add_bins(counts, columns, family)
            .groupBy("column", "bin")
            .agg(f.count(f.lit(1)).alias("distinct"), f.sum("rows").alias("rows"), most.alias(f"top {family}"))
        )


def _column_frequencies(rows: pl.DataFrame, top: pl.Series, kind: pl.DataType, bins: int) -> Frequencies:
    """What the rows of one column add up to."""
    entries = [entry for of_bin in top.to_list() for entry in of_bin]
    values = [(_value(entry["value"], kind), entry["rows"]) for entry in entries]
    values.sort(key=lambda entry: (-entry[1], entry[0]))
    heights = dict(rows.select("bin", "rows").iter_rows())
    return Frequencies(int(rows["distinct"].sum()), [heights.get(i, 0) for i in range(bins)], values[:TOP])


def _add_bins(counts: DataFrame, columns: Mapping[int, Sequence[Any]], family: str) -> DataFrame:
    """The counts with `bin`: how many edges after the first the value has reached. A binary search, since comparing
    with the very edges gives the bins of other engines, and arithmetic would not."""
    counts = counts.withColumn("bin", f.lit(0))
    if not any(columns.values()):
        return counts
    by_column = f.create_map(*(part for at, edges in columns.items() for part in (f.lit(at), _array(edges, family))))
    counts = counts.withColumn("edges", by_column[f.col("column")])
    for step in _SEARCH_STEPS:
        further = f.col("bin") + f.lit(step)
        is_beyond = f.get(f.col("edges"), further) <= f.col("value")
        counts = counts.withColumn("bin", f.when(is_beyond, further).otherwise(f.col("bin")))
    return counts


def _array(edges: Sequence[Any], family: str) -> Column:
    # pyspark takes old points in time by another calendar; as text they are exact, as decimals are
    values = (f.lit(edge if isinstance(edge, int | float) else str(edge)).cast(family) for edge in edges)
    return f.array(*values).cast(f"array<{family}>")


def _family(kind: spark_types.DataType) -> str:
    """The type that values of a column are counted as: whole numbers of all widths together, and fractions."""
    if isinstance(kind, spark_types.ByteType | spark_types.ShortType | spark_types.IntegerType | spark_types.LongType):
        return "bigint"
    if isinstance(kind, spark_types.FloatType | spark_types.DoubleType):
        return "double"
    return kind.simpleString()


def _frame(rows: DataFrame) -> pl.DataFrame:
    frame = pl.from_arrow(rows.toArrow())
    assert isinstance(frame, pl.DataFrame)
    return frame


def _value(value: Any, kind: pl.DataType) -> Any:
    """A value as polars gives those of this type; -0.0 is 0.0, as in all profiles."""
    if value is None or not kind.is_float():
        return value
    return value + 0.0
