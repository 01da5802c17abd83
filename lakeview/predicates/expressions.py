"""A filter to the files it can match: SQL text or a polars expression, read into one small tree, held against bounds.

The tree knows comparisons of a column with a constant, null tests, membership, prefixes, and, or, not. Everything else
is `Unknown` and spares no file: pruning may only ever leave out what cannot match. Evaluation is three-valued.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`column op value`, op one of = != < <= > >=; never true where the column is null."""

    path: Path
    op: str
    value: pl.Series


@dataclass(frozen=True, slots=True)
class IsNull:
    """The column is null, or (`negated`) is not."""

    path: Path
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsIn:
    """The column equals one of the values, or (`negated`) none of them.

    `widened`: the column is cast to 64-bit integers first, which changes nothing if it holds narrower ones.
    """

    path: Path
    values: pl.Series
    negated: bool = False
    widened: bool = False


@dataclass(frozen=True, slots=True)
class StartsWith:
    """The text column begins with a prefix."""

    path: Path
    prefix: str


@dataclass(frozen=True, slots=True)
class And:
    """Both hold."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Or:
    """One holds."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Constant:
    """True, false or null for every row."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Unknown:
    """Anything the tree has no word for."""


Node = Comparison | IsNull | IsIn | StartsWith | And | Or | Constant | Unknown


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of one column, a value a file: all series have one length, null means unknown.

    `low <= every value that is not null <= high`; `exact`: both occur; `nulls` of `records` values are null. NaN lies
    outside the bounds of floats: `nans` are how many of them there are, None where no file tells.
    """

    low: pl.Series
    high: pl.Series
    exact: pl.Series
    nulls: pl.Series
    records: pl.Series
    nans: pl.Series | None = None


def check_columns(where: pl.Expr, schema: Schema) -> None:
    """InvalidRequestError if the filter names a column that is not there."""
    for name in where.meta.root_names():
        if name not in schema:
            raise InvalidRequestError(
                f"there is no column {name}",
                fix=f"choose from {', '.join(schema.names[:20])}",
                place="where",
                kind="unknown-column",
            )


def parse(where: pl.Expr) -> Node:
    """A polars expression as a tree; what the tree cannot say, or is nested too deep to be looked at, is Unknown."""
    try:
        return _node(json.loads(where.meta.serialize(format="json")), negated=False)
    except RecursionError:
        return Unknown()


def conjuncts(where: pl.Expr) -> list[pl.Expr]:
    """The conditions that a filter joins by AND at its top, in order; the filter alone where it joins none."""
    try:
        parts = list(_joined(json.loads(where.meta.serialize(format="json"))))
        if len(parts) < 2:
            return [where]
        return [pl.Expr.deserialize(io.StringIO(json.dumps(part)), format="json") for part in parts]
    except (RecursionError, pl.exceptions.PolarsError, ValueError):
        return [where]


def _joined(value: Any) -> Iterator[Any]:
    match value:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            yield from _joined(left)
            yield from _joined(right)
        case _:
            yield value


def paths(node: Node) -> Iterator[Path]:
    """The columns a tree speaks of."""
    if isinstance(node, And | Or):
        yield from paths(node.left)
        yield from paths(node.right)
    elif not isinstance(node, Constant | Unknown):
        yield node.path


_OPS = {"Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_NEGATED = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _node(value: Any, negated: bool) -> Node:
    """`negated` is pushed down to the leaves: not (a and b) is (not a) or (not b), in three-valued logic as well."""
    if not _columns(value):
        return _constant(value, negated)
    match value:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd" | "Or" | "LogicalOr" as op, "right": right}}:
            join = And if op.endswith("And") != negated else Or
            return join(_node(left, negated), _node(right, negated))
        case {"BinaryExpr": {"left": left, "op": str(op), "right": right}} if op in _OPS:
            return _comparison(left, _OPS[op], right, negated)
        case {"Function": {"input": list(inputs), "function": function}}:
            return _function(_words(function), inputs, function, negated)
        case {"Cast": {"expr": inner, "dtype": {"Literal": "Boolean"}}} if _column(inner) is None:
            return _node(inner, negated)
        case {"Alias": [inner, _]}:
            return _node(inner, negated)
        case {"Column": str(name)}:
            return Comparison((name,), "=", pl.Series([not negated]))
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
    try:
        return pl.select(pl.Expr.deserialize(io.StringIO(json.dumps(value)), format="json")).to_series()
    except (pl.exceptions.PolarsError, ValueError):
        return None


def _constant(value: Any, negated: bool) -> Node:
    found = _literal(value)
    if found is None or found.len() != 1 or found.dtype not in (pl.Boolean, pl.Null):
        return Unknown()
    truth = found[0]
    return Constant(None if truth is None else truth != negated)


def _comparison(left: Any, op: str, right: Any, negated: bool) -> Node:
    path, value = _column(left), _literal(right)
    if path is None:
        path, value, op = _column(right), _literal(left), _MIRRORED[op]
    if path is None or value is None or value.len() != 1:
        return Unknown()
    if value[0] is None:
        return Constant(None)
    return Comparison(path, _NEGATED[op] if negated else op, value)


def _words(function: Any) -> str:
    """`{"Sql": {"Binary": "Gt"}}` as `Gt`, `{"Boolean": {"IsIn": {...}}}` as `IsIn`: the innermost known word."""
    while isinstance(function, dict) and len(function) == 1:
        name, inner = next(iter(function.items()))
        if not isinstance(inner, str) and not (isinstance(inner, dict) and name in ("Boolean", "Sql", "Binary")):
            return str(name)
        function = inner
    return str(function)


def _function(word: str, inputs: list[Any], function: Any, negated: bool) -> Node:
    path = _column(inputs[0]) if inputs else None
    if word == "Not":
        return _node(inputs[0], not negated)
    if word in ("IsIn", "In") and len(inputs) == 2:
        return _in(inputs, function, negated)
    if word in _OPS and len(inputs) == 2:
        return _comparison(inputs[0], _OPS[word], inputs[1], negated)
    if path is None:
        return Unknown()
    if word in ("IsNull", "IsNotNull"):
        return IsNull(path, negated=(word == "IsNotNull") != negated)
    if word == "IsBetween" and len(inputs) == 3:
        return _between(inputs, function, negated)
    if word == "StartsWith" and len(inputs) == 2 and not negated:
        prefix = _literal(inputs[1])
        if prefix is not None and prefix.len() == 1 and isinstance(prefix[0], str):
            return StartsWith(path, prefix[0])
    return Unknown()


def _in(inputs: list[Any], function: Any, negated: bool) -> Node:
    tested, widened = inputs[0], False
    match tested:  # polars puts the cast there itself when it optimises a comparison with larger constants
        case {"Cast": {"expr": inner, "dtype": {"Literal": "Int64"}}}:
            tested, widened = inner, True
    path, values = _column(tested), _literal(inputs[1])
    options = function.get("Boolean", {}).get("IsIn", {}) if isinstance(function, dict) else {}
    if path is None or values is None or (isinstance(options, dict) and options.get("nulls_equal")):
        return Unknown()
    if isinstance(values.dtype, pl.List | pl.Array) and values.len() == 1:
        values = values.explode()
    return IsIn(path, values, negated, widened)


def _between(inputs: list[Any], function: Any, negated: bool) -> Node:
    closed = function["Boolean"]["IsBetween"].get("closed", "Both") if "Boolean" in function else "Both"
    low = _comparison(inputs[0], ">=" if closed in ("Both", "Left") else ">", inputs[1], negated)
    high = _comparison(inputs[0], "<=" if closed in ("Both", "Right") else "<", inputs[2], negated)
    return Or(low, high) if negated else And(low, high)


def may_match(node: Node, bounds: Callable[[Path], Bounds | None], height: int) -> pl.Series:
    """Whether each of `height` files can hold a row for which the filter is true. What is unknown can."""
    every = pl.Series([True], dtype=pl.Boolean).new_from_index(0, height)
    match node:
        case And(left, right):
            return may_match(left, bounds, height) & may_match(right, bounds, height)
        case Or(left, right):
            return may_match(left, bounds, height) | may_match(right, bounds, height)
        case Constant(value):
            return every if value else ~every
        case Unknown():
            return every
    known = bounds(node.path)
    if known is None:
        return every
    try:
        verdict = _leaf(node, known)
    except (pl.exceptions.PolarsError, TypeError):  # constant and column do not compare: the scan itself will say so
        return every
    return verdict.fill_null(True)


def _leaf(node: Comparison | IsNull | IsIn | StartsWith, known: Bounds) -> pl.Series:
    all_null = (known.nulls == known.records).fill_null(False)
    if isinstance(node, IsNull):
        return ~all_null if node.negated else known.nulls > 0
    if isinstance(node, StartsWith):
        length = len(node.prefix)
        low, high = known.low.str.head(length), known.high.str.head(length)
        return (low <= node.prefix) & (high >= node.prefix) & ~all_null
    if isinstance(node, IsIn):
        return _membership(node, known) & ~all_null
    return _compared(node.op, known, node.value) & ~all_null


def _compared(op: str, known: Bounds, value: pl.Series) -> pl.Series:
    unknown = pl.Series([None], dtype=pl.Boolean).new_from_index(0, known.low.len())
    # NaN is above every number for polars, and statistics leave it out: a maximum says nothing about it
    floating = known.low.dtype.is_float()
    if floating and value.dtype.is_float() and value.is_nan().any():
        return unknown
    tests: Mapping[str, Callable[[pl.Expr, pl.Expr, pl.Expr], pl.Expr]] = {
        "=": lambda low, high, v: (low <= v) & (high >= v),
        "!=": lambda low, high, v: ~((low == v) & (high == v) & pl.col("exact")),
        "<": lambda low, _, v: low < v,
        "<=": lambda low, _, v: low <= v,
        ">": lambda _, high, v: high > v,
        ">=": lambda _, high, v: high >= v,
    }
    frame = pl.DataFrame([known.low.alias("low"), known.high.alias("high"), known.exact.alias("exact")])
    met = frame.select(tests[op](pl.col("low"), pl.col("high"), pl.lit(value.alias("value"))).alias("m")).to_series()
    return _unless_nan(met, known) if floating and op in (">", ">=", "!=") else met


def _unless_nan(verdict: pl.Series, known: Bounds) -> pl.Series:
    """A verdict that holds only where no value is NaN: unknown elsewhere."""
    without = pl.Series([False] * verdict.len(), dtype=pl.Boolean) if known.nans is None else known.nans == 0
    return verdict.set(~without.fill_null(False), None)


def _membership(node: IsIn, known: Bounds) -> pl.Series:
    values = node.values.drop_nulls()
    unknown = pl.Series([None], dtype=pl.Boolean).new_from_index(0, known.low.len())
    if node.widened and not (known.low.dtype.is_signed_integer() and values.dtype == pl.Int64):
        return unknown
    if node.negated:
        # a null in the list is no reason: polars, which filters the rows, passes it over
        one = (known.low == known.high) & known.exact
        verdict = ~(one & known.low.is_in(values.implode()))
        # bounds leave NaN out, and NaN is in no list without it
        return _unless_nan(verdict, known) if known.low.dtype.is_float() else verdict
    verdict = pl.Series([False] * known.low.len(), dtype=pl.Boolean)
    for i in range(min(values.len(), 1000)):
        verdict = verdict | _compared("=", known, values.slice(i, 1))
    return verdict if values.len() <= 1000 else unknown
