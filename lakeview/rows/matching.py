"""A condition and rows in memory to which of them it selects: what deletes and overwrites go by."""

import polars as pl
import pyarrow as pa

from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.predicates.evaluation import not_evaluated


def frame_of(batch: pa.RecordBatch | pa.Table) -> pl.DataFrame:
    """Rows of Arrow as a frame, column by column: polars takes some names for patterns."""
    columns = {name: pl.from_arrow(batch.column(i)) for i, name in enumerate(batch.schema.names)}
    return pl.DataFrame(columns) if columns else pl.DataFrame(height=batch.num_rows)


def evaluate(frame: pl.DataFrame, expression: pl.Expr, subject: str) -> pl.Series:
    """An expression over a frame, as long as it. InvalidRequestError where it cannot be evaluated."""
    try:
        values = frame.select(expression.alias("value")).to_series()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise not_evaluated(subject, error, "compare columns with values of their own types") from error
    if values.len() not in (1, frame.height):
        raise InvalidRequestError(
            f"{subject} has {values.len():,} values for {frame.height:,} rows",
            fix="give an expression with one value a row",
            place="where",
            kind="bad-predicate",
        )
    return values if values.len() == frame.height else values.new_from_index(0, frame.height)


def check_condition(where: pl.Expr, schema: Schema, subject: str = "the condition") -> None:
    """InvalidRequestError as `matching_rows`, before any row is read: where all files are skipped, none is."""
    names = list(dict.fromkeys(where.meta.root_names()))
    matching_rows(pl.DataFrame(schema=schema.select(names).to_polars()), where, subject)


def matching_rows(frame: pl.DataFrame, where: pl.Expr, subject: str = "the condition") -> pl.Series:
    """Whether the condition is true of each row; null is not true.

    InvalidRequestError (kind bad-predicate) where it is none, or cannot be evaluated.
    """
    mask = evaluate(frame, where, subject)
    if mask.dtype not in (pl.Boolean, pl.Null):
        raise InvalidRequestError(
            f"{subject} is {mask.dtype}, not true or false",
            fix="write a comparison",
            place="where",
            kind="bad-predicate",
        )
    return mask.cast(pl.Boolean).fill_null(value=False)
