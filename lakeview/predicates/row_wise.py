"""Conditions and values of users to expressions whose result for a row depends on that row alone.

Files are read batch by batch: an aggregate, such as `col("id").max()`, would be that of each batch.
"""

import re

import polars as pl

from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import shorten
from lakeview.model.schema import Schema
from lakeview.predicates.condition import row_expression

_MOST_SHOWN = 200
_LOOKUPS = (".is_in([", ".replace([", ".replace_strict([")
"""Functions, as polars prints them after their value, that look it up in the series that follow."""
_OVER_LISTS = (".list.eval(", ".list.agg(", ".arr.eval(", ".arr.agg(")
"""Functions that take an expression for the elements of each list: other rows are not in it."""
_ROW_BY_ROW = re.compile(
    r"\[\(|\.when\(|as_struct\(|pl\.field\(|\.(?:"  # operators, and what is printed before its values
    r"(?:str|dt|list|arr|struct|bin|cat|name)\.(?!explode|concat_vertical)|"
    r"(?:abs|negate|not|is_(?:null|not_null|nan|not_nan|finite|infinite|in|between|close)|round\w*|floor|ceil|sign|log\w*"
    r"|exp|sqrt|cbrt|pow|fill_null|coalesce|clip|cast|strict_cast|\w+_horizontal|replace|replace_strict|alias|python_udf"
    r"|(?:arc)?(?:sin|cos|tan)h?|arctan2|cot|degrees|radians|truncate|hash|reinterpret|to_physical|repeat_by"
    r"|bitwise_(?:count|leading|trailing)_\w+)\()"
)
"""Functions of one row's values as polars prints them after the first value, for expressions that it does not judge."""
_LIST_FILTER = re.compile(r"\.(?:list|arr)\.eval\(col\(\"\"\)")


def row_wise(value: str | pl.Expr, schema: Schema, place: str = "where") -> pl.Expr:
    """SQL text over the columns of a schema, or an expression of polars, as an expression that is checked.

    InvalidRequestError for anything else, an unknown column (kind unknown-column), an expression with a selector (kind
    columns-not-named), and one whose result for one row depends on others (kind not-row-wise).
    """
    if isinstance(value, str):
        return row_expression(value, schema)  # which has no form for aggregates and windows
    if not isinstance(value, pl.Expr):
        raise InvalidRequestError(
            f"{place} holds {value!r}, which is neither SQL text nor an expression of polars",
            fix="write SQL, such as 'price * 2', or pl.lit of a value",
            place=place,
            kind="bad-assignment",
        )
    if value.meta.has_multiple_outputs():  # the columns that are read are those that it names
        raise InvalidRequestError(
            f"{shorten(str(value), _MOST_SHOWN)} does not name its columns, but selects them",
            fix="name each one, as pl.col('price'), whose name is no pattern such as * or ^x$",
            place=place,
            kind="columns-not-named",
        )
    if _LIST_FILTER.search(str(value)) and "" not in schema:
        raise InvalidRequestError(
            "list.filter is not taken in conditions and values: to polars it names a column without a name",
            fix="write list.eval(pl.element().filter(...))",
            place=place,
            kind="columns-not-named",
        )
    schema.require(value.meta.root_names(), place=place)
    check_row_wise(value, place)
    return value


def check_row_wise(expression: pl.Expr, place: str = "where") -> None:
    """InvalidRequestError (kind not-row-wise) for an expression whose result for one row depends on other rows."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        inputs = node.meta.pop()
        try:
            if not _is_of_one_row(node):
                text = shorten(str(node), _MOST_SHOWN)
                raise _not_row_wise(f"{text} depends on more than one row, and rows are changed one by one", place)
        except pl.exceptions.PolarsError:
            # polars asks for the columns' types to look into a function of the user's, list.eval and with_fields
            function = _function(node, inputs)
            if _ROW_BY_ROW.match(function) is None:
                raise _not_row_wise(
                    f"{shorten(str(node), _MOST_SHOWN)} may depend on more than one row: over a function of the "
                    f"user's, list.eval or with_fields {function.partition('(')[0]} is not known to go row by row",
                    place,
                ) from None
            inputs = inputs[-1:] if function.startswith(_OVER_LISTS) else inputs
        # printed only where it may be one: nodes of a long condition are long
        if any(i.meta.is_literal() for i in inputs[:-1]) and _function(node, inputs).startswith(_LOOKUPS):
            # the value is last, and before it comes what is looked up; the default of replace_strict is the fourth
            inputs = [i for at, i in enumerate(reversed(inputs)) if not (at in (1, 2) and i.meta.is_literal())]
        waiting += inputs


def _not_row_wise(message: str, place: str) -> InvalidRequestError:
    fix = "compute it first, from table.scan(), and give its value"
    return InvalidRequestError(message, fix=fix, place=place, kind="not-row-wise")


def _function(node: pl.Expr, inputs: list[pl.Expr]) -> str:
    """A function as polars prints it after its value, which is the last of the inputs."""
    return str(node).removeprefix(str(inputs[-1])) if inputs else str(node)


def _is_of_one_row(node: pl.Expr) -> bool:
    """False also for what gives more or fewer rows, such as `filter`, and for a series, whose values stand for rows."""
    if node.meta.is_literal():
        return node.meta.is_scalar() or pl.select(node).height == 1
    return node.meta.is_row_separable() and (node.meta.is_length_preserving() or node.meta.is_scalar())
