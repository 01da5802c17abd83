"""A polars expression to a tree: an expression that a caller hands in, or that was printed from checked SQL.

Comparisons of a column with a constant, null tests, membership and prefixes are read. Everything else is `Unknown` and
skips no file: pruning may only ever leave out what cannot match.
"""

import io
import json
from collections.abc import Iterator
from typing import Any

import polars as pl

from lakeview.predicates.tree import (
    MIRRORED,
    And,
    Comparison,
    Constant,
    IsIn,
    IsNull,
    Node,
    Or,
    Path,
    StartsWith,
    Unknown,
    negate,
)

_NOT_SERIALISED = (RecursionError, pl.exceptions.ComputeError)
"""Nested too deep, or a function of the user's, which polars needs a pickler for."""


def parse(where: pl.Expr) -> Node:
    """Returns a polars expression as a tree, in which what has no form or is nested too deep is Unknown."""
    try:
        return _node(json.loads(where.meta.serialize(format="json")))
    except _NOT_SERIALISED:
        return Unknown()


def conjuncts(where: pl.Expr) -> list[pl.Expr]:
    """Returns the conditions that a filter joins by AND at its top, in order; the filter alone where it joins none."""
    try:
        parts = [_expression(part) for part in _conjuncts(json.loads(where.meta.serialize(format="json")))]
    except _NOT_SERIALISED:
        return [where]
    terms = [part for part in parts if part is not None]
    return terms if 1 < len(terms) == len(parts) else [where]


def _conjuncts(value: Any) -> Iterator[Any]:
    match value:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            yield from _conjuncts(left)
            yield from _conjuncts(right)
        case _:
            yield value


_OPS = {"Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}


def _node(value: Any) -> Node:
    if not _columns(value):
        return _constant(value)
    match value:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd" | "Or" | "LogicalOr" as op, "right": right}}:
            return (And if op.endswith("And") else Or)(_node(left), _node(right))
        case {"BinaryExpr": {"left": left, "op": str(op), "right": right}} if op in _OPS:
            return _comparison(left, _OPS[op], right)
        case {"Function": {"input": list(inputs), "function": function}}:
            return _function(_words(function), inputs, function)
        case {"Cast": {"expr": inner, "dtype": {"Literal": "Boolean"}}} if _column(inner) is None:
            return _node(inner)
        case {"Alias": [inner, _]}:
            return _node(inner)
        case {"Column": str(name)}:
            return Comparison((name,), "=", pl.Series([True]))
    return Unknown()


def _columns(value: Any) -> bool:
    if isinstance(value, dict):
        return "Column" in value or "Selector" in value or any(_columns(v) for v in value.values())
    return isinstance(value, list) and any(_columns(v) for v in value)


def _column(value: Any) -> Path | None:
    match value:
        case {"Column": str(name)}:
            return (name,)
        case {"Function": {"input": [inner], "function": {"StructExpr": {"FieldByName": str(name)}}}}:
            above = _column(inner)
            return None if above is None else (*above, name)
    return None


def _literal(value: Any) -> pl.Series | None:
    """A part without columns, evaluated: one value or, for membership, several."""
    if _columns(value):
        return None
    match value:
        case {"Literal": {"Dyn": {"Float": float(number)}} | {"Scalar": {"Float64": float(number)}}}:
            return pl.Series([number], dtype=pl.Float64)
        case {"Literal": {"Scalar": {"Int64": int(number)}}}:  # a query of polars takes as long as all else here
            return pl.Series([number], dtype=pl.Int64)
        case {"Literal": {"Scalar": {"String": str(text)}}}:
            return pl.Series([text], dtype=pl.String)
    expression = _expression(value)
    try:
        return None if expression is None else pl.select(expression).to_series()
    except pl.exceptions.PolarsError:
        return None


def _expression(value: Any) -> pl.Expr | None:
    """A part as an expression; None if polars does not read it, or not as it is: polars' reader of JSON makes of one
    float in ten its neighbour."""
    try:
        expression = pl.Expr.deserialize(io.StringIO(json.dumps(value)), format="json")
    except (pl.exceptions.PolarsError, ValueError):
        return None
    return expression if json.loads(expression.meta.serialize(format="json")) == value else None


def _constant(value: Any) -> Node:
    values = _literal(value)
    if values is None or values.len() != 1 or values.dtype not in (pl.Boolean, pl.Null):
        return Unknown()
    return Constant(values[0])


def _comparison(left: Any, op: str, right: Any) -> Node:
    path, value = _column(left), _literal(right)
    if path is None:
        path, value, op = _column(right), _literal(left), MIRRORED[op]
    if path is None or value is None or value.len() != 1:
        return Unknown()
    if value[0] is None:
        return Constant(None)
    return Comparison(path, op, value)


def _words(function: Any) -> str:
    """`{"Sql": {"Binary": "Gt"}}` as `Gt`, `{"Boolean": {"IsIn": {...}}}` as `IsIn`: the innermost known word."""
    while isinstance(function, dict) and len(function) == 1:
        name, inner = next(iter(function.items()))
        if not isinstance(inner, str) and not (isinstance(inner, dict) and name in ("Boolean", "Sql", "Binary")):
            return str(name)
        function = inner
    return str(function)


def _function(word: str, inputs: list[Any], function: Any) -> Node:
    path = _column(inputs[0]) if inputs else None
    if word == "Not":
        return negate(_node(inputs[0]))
    if word in ("IsIn", "In") and len(inputs) == 2:
        return _in(inputs, function)
    if word in _OPS and len(inputs) == 2:
        return _comparison(inputs[0], _OPS[word], inputs[1])
    if path is None:
        return Unknown()
    if word in ("IsNull", "IsNotNull"):
        return IsNull(path, is_negated=word == "IsNotNull")
    if word == "IsBetween" and len(inputs) == 3:
        return _between(inputs, function)
    return _starts_with(path, inputs) if word == "StartsWith" and len(inputs) == 2 else Unknown()


def _starts_with(path: Path, inputs: list[Any]) -> Node:
    prefix = _literal(inputs[1])
    if prefix is not None and prefix.len() == 1 and isinstance(prefix[0], str):
        return StartsWith(path, prefix[0])
    return Unknown()


def _in(inputs: list[Any], function: Any) -> Node:
    operand, is_widened = inputs[0], False
    match operand:  # polars puts the cast there itself when it optimises a comparison with larger constants
        case {"Cast": {"expr": inner, "dtype": {"Literal": "Int64"}}}:
            operand, is_widened = inner, True
    path, values = _column(operand), _literal(inputs[1])
    options = function.get("Boolean", {}).get("IsIn", {}) if isinstance(function, dict) else {}
    if path is None or values is None or (isinstance(options, dict) and options.get("nulls_equal")):
        return Unknown()
    if isinstance(values.dtype, pl.List | pl.Array) and values.len() == 1:
        values = values.explode()
    return IsIn(path, values, is_widened=is_widened)


def _between(inputs: list[Any], function: Any) -> Node:
    closed_ends = function["Boolean"]["IsBetween"].get("closed", "Both") if "Boolean" in function else "Both"
    low = _comparison(inputs[0], ">=" if closed_ends in ("Both", "Left") else ">", inputs[1])
    high = _comparison(inputs[0], "<=" if closed_ends in ("Both", "Right") else "<", inputs[2])
    return And(low, high)
