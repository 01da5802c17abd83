"""What polars, which evaluates conditions and values, gives and refuses, to errors of ours."""

import re

import polars as pl

from lakeview.model.errors import InvalidRequestError, UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.predicates import predicate

_PYTHON_ADVICE = re.compile(r" \(create native python .*\)")
_BEYOND_64_BITS = re.compile(r"conversion from `i128` to `i64` failed .*: \[(-?\d+)")
_TOO_LARGE = "is no integer of 64 bits"
_WITH_ZONE, _WITHOUT_ZONE = "Datetime('μs', 'UTC')", "Datetime('μs')"
_ZONES_MIXED = (
    "a timestamp with a time zone is compared with one without; a constant with an offset has a zone, as "
    "TIMESTAMP '2024-01-01 00:00:00+00:00'"
)


def condition_of(where: str | pl.Expr, schema: Schema) -> pl.Expr:
    """A filter as `predicate` reads it; InvalidRequestError (kind bad-predicate) also where it is a value.

    A comparison that polars refuses is left to those that evaluate it: Spark casts a text to a timestamp.
    """
    condition = predicate(where, schema, casts_texts=True)
    try:
        columns = pl.LazyFrame(schema=schema.select(condition.meta.root_names()).to_polars())
        dtype = columns.select(condition.alias("condition")).collect_schema()["condition"]
    except (pl.exceptions.PolarsError, UnsupportedTableError):
        return condition
    if dtype not in (pl.Boolean, pl.Null):
        raise InvalidRequestError(
            f"the condition is {dtype}, not true or false", fix="write a comparison", place="where",
            kind="bad-predicate",
        )  # fmt: skip
    return condition


def reason(error: BaseException) -> str:
    """Why polars refused a condition or query, in one line, without its advice for those who write Python."""
    line = next(iter(str(error).strip().splitlines()), type(error).__name__)
    if _WITH_ZONE in line and _WITHOUT_ZONE in line:
        return _ZONES_MIXED
    if beyond := _BEYOND_64_BITS.match(line):
        return f"{beyond[1]} {_TOO_LARGE}"
    return _PYTHON_ADVICE.sub("", line)


def not_evaluated(subject: str, error: BaseException, fix: str) -> InvalidRequestError:
    """The error (kind bad-predicate) for what polars refused to evaluate."""
    why = reason(error)
    if why.endswith(_TOO_LARGE):
        fix = "leave such rows out, or write TRY_CAST(... AS BIGINT), which is null for them"
    return InvalidRequestError(f"{subject} cannot be evaluated: {why}", fix=fix, place="where", kind="bad-predicate")
