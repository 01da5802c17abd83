"""Conditions that replace or remove whole files: checked before anything is written, applied to partition values."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema, polars_type
from lakeview.predicates.evaluation import not_evaluated
from lakeview.predicates.query import is_nameable
from lakeview.predicates.row_wise import row_wise

_MOST_PARTITIONS = 100

_KIND = "bad-predicate"
"""As conditions that cannot be read at all."""


def partition_condition(where: str | pl.Expr, schema: Schema, partitions: Sequence[str]) -> pl.Expr:
    """The condition, if it is one on partition columns alone, and true or false for every value they can have.

    InvalidRequestError (kinds unknown-column, not-a-partition-column, bad-predicate) otherwise: a file may hold rows
    that a condition on another column selects beside others that it does not.
    """
    expression = row_wise(where, schema)
    other = [name for name in expression.meta.root_names() if name not in partitions]
    if other:
        raise InvalidRequestError(
            f"{other[0]} is no partition column: whole files can be replaced by partition only",
            fix=f"use conditions on {', '.join(partitions)}"
            if partitions
            else "leave the condition out: the table is not partitioned",
            place="where",
            kind="not-a-partition-column",
        )
    _check_evaluates(expression, where, schema, partitions)
    return expression


def select_rows(values: pl.DataFrame, rows: int, condition: pl.Expr) -> pl.Series:
    """Which rows the condition selects: true, false, or null where it is neither. `values`: their partition values.

    A condition without any column selects all rows or none, as does one on a table without partition columns.
    InvalidRequestError (kind bad-predicate) if a value cannot be converted as the condition asks.
    """
    mask = _evaluate(values, condition, "the condition")
    return mask if mask.len() == rows else pl.Series("chosen", [mask[0]] * rows, dtype=pl.Boolean)


def one_of(partitions: pl.DataFrame) -> pl.Expr:
    """The condition that a row lies in one of these partitions, a row each; of many, and of columns that no condition
    can name, that it may."""
    if partitions.height > _MOST_PARTITIONS or not all(map(is_nameable, partitions.columns)):
        return pl.lit(value=True)
    condition = pl.lit(value=False)
    for row in partitions.iter_rows(named=True):
        same = pl.lit(value=True)
        for name, value in row.items():
            column = pl.col(name)
            same &= column.is_null() if value is None else column == pl.lit(value, partitions[name].dtype)
        condition |= same
    return condition


def _check_evaluates(expression: pl.Expr, where: str | pl.Expr, schema: Schema, partitions: Sequence[str]) -> None:
    empty = pl.DataFrame(schema={name: polars_type(schema[name].type) for name in partitions})
    dtype = _evaluate(empty, expression, str(where)).dtype
    if dtype != pl.Boolean:
        raise InvalidRequestError(
            f"{where!s} is {dtype}, not true or false", fix="write a comparison", place="where", kind=_KIND
        )


def _evaluate(values: pl.DataFrame, condition: pl.Expr, name: str) -> pl.Series:
    try:
        return values.select(condition.alias("chosen")).to_series()
    except pl.exceptions.PolarsError as error:
        raise not_evaluated(name, error, "compare partition columns with values of their own types") from error
