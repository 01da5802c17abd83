"""Expectations to the rows that fail them: conditions by the library's predicates on executors, keys by Spark."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial, reduce
from typing import NamedTuple

import polars as pl
import polars.selectors as cs
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

from lakeview.model.errors import InvalidRequestError, RuleError
from lakeview.model.schema import Schema
from lakeview.predicates import predicate
from lakeview.rows import matching
from lakeview.spark.arrow_functions import map_batches
from lakeview.spark.pipelines.config import REMOVING, Action, Expectation
from lakeview.spark.pipelines.publication import Result
from lakeview.spark.types import column, from_spark

FAILED = "\1failed"
"""The column that tells which expectations a row fails: their numbers."""

_RANK, _EXISTING = "\1rank", "\1known"
_SAMPLE_CHARACTERS = 2000


class Counts(NamedTuple):
    """Rows of one publication: read, dropped and quarantined, and the outcome of each expectation."""

    rows: int
    dropped: int
    quarantined: int
    results: tuple[Result, ...]


def check_rules(rules: Sequence[Expectation], schema: Schema) -> None:
    """RuleError for a condition that rows of this schema cannot be checked against, and for unique columns that it does
    not have, with the name of the expectation. Nothing is read."""
    for rule in rules:
        try:
            schema.require(rule.unique)
            if rule.condition is not None:
                check_condition(rule.condition, schema)
        except InvalidRequestError as error:
            raise RuleError(f"expectation {rule.name}: {error.message}", fix=error.fix, place=rule.name) from error


def check_condition(condition: str, schema: Schema) -> None:
    """InvalidRequestError for a condition that cannot be evaluated for rows of this schema."""
    matching.check_condition(predicate(condition, schema), schema, condition)


def failed_rows(rows: pl.DataFrame, condition: str, schema: Schema) -> pl.Series:
    """Which rows do not satisfy a condition: where it is false and where it is null, as a constraint of SQL's would be
    on a column that may not be null."""
    expression = predicate(condition, schema)
    names = list(dict.fromkeys(expression.meta.root_names()))
    return ~matching.matching_rows(rows.select(cs.by_name(names)) if names else rows, expression)


def failures(batch: pa.RecordBatch, conditions: Sequence[tuple[int, str]], schema: Schema) -> list[list[int]]:
    """The numbers of the conditions that each row of a batch fails."""
    numbers: list[list[int]] = [[] for _ in range(batch.num_rows)]
    rows = pl.DataFrame(pl.from_arrow(batch))
    for number, condition in conditions:
        for row in failed_rows(rows, condition, schema).arg_true():
            numbers[row].append(number)
    return numbers


def mark_failures(rows: DataFrame, rules: Sequence[Expectation], existing_rows: DataFrame | None) -> DataFrame:
    """The rows and FAILED. A row with a key that an earlier row has fails a unique expectation: earlier by the JSON
    text of the row, so that the same rows are kept each time. Rows that a removing expectation has
    failed, and rows with a null in the key, share theirs with no other.

    `existing_rows`: those that are in the table and stay; their keys count as earlier ones.
    """
    schema = from_spark(rows.schema)
    conditions = [(number, rule.condition) for number, rule in enumerate(rules) if rule.condition is not None]
    if conditions:
        schema_with_failures = StructType([*rows.schema.fields, StructField(FAILED, ArrayType(IntegerType()))])
        frame = map_batches(rows, partial(_add_failures, conditions=conditions, schema=schema), schema_with_failures)
    else:
        frame = rows.withColumn(FAILED, f.array().cast(ArrayType(IntegerType())))
    for number, rule in enumerate(rules):
        if rule.unique:
            frame = _unique(frame, number, rule, is_removed(rules), existing_rows)
    return frame


def is_removed(rules: Sequence[Expectation], actions: Iterable[Action] = REMOVING) -> Column:
    """Whether a row fails an expectation of one of these actions."""
    numbers = [number for number, rule in enumerate(rules) if rule.action in set(actions)]
    tests = [f.array_contains(FAILED, number) for number in numbers]
    return reduce(Column.__or__, tests, f.lit(False))


def count(rows: DataFrame, rules: Sequence[Expectation]) -> Counts:
    """What became of the rows, by one pass. Samples are the failed rows whose JSON text is the smallest and largest."""
    in_quarantine = is_removed(rules, {Action.QUARANTINE})
    sums = [f.count("*").alias("rows"), f.count_if(in_quarantine).alias("quarantined")]
    sums.append(f.count_if(is_removed(rules) & ~in_quarantine).alias("dropped"))
    # with the nulls: a row that fails because a column is null shows that column
    row = _text(rows.drop(FAILED), {"ignoreNullFields": "false"})
    for number in range(len(rules)):
        fails = f.array_contains(FAILED, number)
        sums.append(f.count_if(fails).alias(f"failed {number}"))
        sums += [of(f.when(fails, row)).alias(f"{of.__name__} {number}") for of in (f.min, f.max)]
    totals = rows.agg(*sums).collect()[0].asDict()
    results = []
    for number, rule in enumerate(rules):
        sample = dict.fromkeys(totals[f"{end} {number}"] for end in ("min", "max"))
        texts = tuple(text for text in sample if text is not None and len(text) <= _SAMPLE_CHARACTERS)
        results.append(Result(rule.name, rule.action, rule.text, int(totals[f"failed {number}"]), texts))
    return Counts(int(totals["rows"]), int(totals["dropped"]), int(totals["quarantined"]), tuple(results))


def latest_of_keys(rows: DataFrame, keys: Sequence[str], order_by: Sequence[str]) -> DataFrame:
    """One row a key: the one with the largest values of `order_by`; and all rows with a null in the key, which a merge
    inserts each."""
    order = [column(name).desc_nulls_last() for name in order_by]
    window = Window.partitionBy(*map(column, keys)).orderBy(*order, _text(rows).desc())
    alone = reduce(Column.__or__, [column(key).isNull() for key in keys])
    return rows.withColumn(_RANK, f.row_number().over(window)).where(alone | (column(_RANK) == 1)).drop(_RANK)


def _add_failures(
    batches: Iterable[pa.RecordBatch], conditions: Sequence[tuple[int, str]], schema: Schema
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        numbers = pa.array(failures(batch, conditions, schema), pa.list_(pa.int32()))
        yield batch.append_column(FAILED, numbers)


def _unique(
    rows: DataFrame, number: int, rule: Expectation, is_removed: Column, existing_rows: DataFrame | None
) -> DataFrame:
    keys = [column(name) for name in rule.unique]
    counts = ~is_removed & reduce(Column.__and__, [key.isNotNull() for key in keys])
    window = Window.partitionBy(*keys, counts).orderBy(_text(rows.drop(FAILED)))
    with_ranks = rows.withColumn(_RANK, f.row_number().over(window))
    fails = counts & (column(_RANK) > 1)
    if existing_rows is not None:
        others = [f"{_EXISTING} {i}" for i in range(len(keys))]
        there = existing_rows.select(*[key.alias(other) for key, other in zip(keys, others, strict=True)]).distinct()
        same = [key == column(other) for key, other in zip(keys, others, strict=True)]
        there = there.withColumn(_EXISTING, f.lit(True))
        with_ranks = with_ranks.join(there, reduce(Column.__and__, same), "left")
        fails |= counts & column(_EXISTING).isNotNull()
    numbers = f.when(fails, f.concat(column(FAILED), f.array(f.lit(number)))).otherwise(column(FAILED))
    return with_ranks.withColumn(FAILED, numbers).select(*[column(name) for name in rows.columns])


def _text(rows: DataFrame, options: dict[str, str] | None = None) -> Column:
    return f.to_json(f.struct(*[column(name) for name in rows.columns]), options)


def free_name(rows: DataFrame, name: str) -> str:
    """A name that no column of the rows has."""
    while name.casefold() in {other.casefold() for other in rows.columns}:
        name += "_"
    return name
