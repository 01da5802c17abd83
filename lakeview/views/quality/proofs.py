"""A condition and what is known of the columns of each file to what is proved of its rows: all keep it, some break it.

A row keeps a condition only if it is true of it: null breaks it, as false does, and no writer may add such a row (delta
protocol, Column Invariants; Delta's engines hold CHECK constraints to the same). This is not the CHECK of the SQL
standard, which null satisfies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import polars as pl

from lakeview.predicates.expressions import (
    And,
    Bounds,
    Comparison,
    Constant,
    IsIn,
    IsNull,
    Node,
    Or,
    Path,
    StartsWith,
    Unknown,
    may_match,
    paths,
)

PROOFS = pl.Schema({"held": pl.Boolean(), "broken": pl.Int64()})
"""One row a file: `held`: every row keeps the condition; `broken`: at least so many live rows break it, 0 where none is
known to. Neither proved is unknown."""

MOST_COLUMNS = 5
"""A condition on more columns is not proved to hold: each doubles the cases of what is null."""

_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class Known:
    """Bounds of one column, and where its `nulls` are counted among live rows: elsewhere they are those of the file as
    it was written, of which some may be deleted by now."""

    bounds: Bounds
    counted: pl.Series


def proofs(node: Node, known: Mapping[Path, Known], live: pl.Series) -> pl.DataFrame:
    """PROOFS of files with `live` rows (null where unknown); a column that is not in `known` proves nothing."""
    empty = (live == 0).fill_null(False)
    held = _held(node, known, live.len()) | empty
    broken = pl.Series("broken", [0] * live.len(), dtype=pl.Int64)
    for part in _parts(node):
        broken = _most(broken, _broken(part, known, live))
    return pl.DataFrame({"held": held, "broken": broken.set(empty, 0)}, schema=PROOFS)


def _held(node: Node, known: Mapping[Path, Known], height: int) -> pl.Series:
    """Where no row breaks it: for every way in which columns of a row can be null, the opposite matches no row."""
    held = _all(True, height)
    asked = list(dict.fromkeys(paths(node)))
    if len(asked) > MOST_COLUMNS or not set(asked) <= known.keys():
        return _all(False, height)
    opposite = untrue(node)
    for case in product((False, True), repeat=len(asked)):
        possible, bounds = _all(True, height), {}
        for path, null in zip(asked, case, strict=True):
            column = known[path].bounds
            possible &= (column.nulls > 0).fill_null(True) if null else ~_all_null(column)
            bounds[path] = _of_null(column) if null else replace(column, nulls=_count(0, height), records=_one(height))
        held &= ~possible | ~may_match(opposite, bounds.get, height)
    return held


def _broken(part: Node, known: Mapping[Path, Known], live: pl.Series) -> pl.Series:
    """How many live rows at least break a condition: all where none can match it, else those whose values are known."""
    height = live.len()
    bounds = {path: column.bounds for path, column in known.items()}
    found = pl.select(
        pl.when(~may_match(part, bounds.get, height)).then(live.fill_null(0)).otherwise(pl.lit(0, pl.Int64))
    ).to_series()
    asked = list(dict.fromkeys(paths(part)))
    for path in asked:
        others = [other for other in asked if other != path]
        if path not in known or any(other not in known for other in others):
            continue
        alone = _all(True, height)
        fixed = {}
        for other in others:
            alone &= _constant(bounds[other])
            fixed[other] = bounds[other]
        for there, rows, witness in _witnesses(known[path]):
            no = ~may_match(part, {**fixed, path: witness}.get, height) & there & alone
            found = _most(found, pl.select(pl.when(no).then(rows).otherwise(pl.lit(0, pl.Int64))).to_series())
    return found


def _witnesses(column: Known) -> Iterator[tuple[pl.Series, pl.Series, Bounds]]:
    """Values that occur in live rows: where they do, how often at least, and bounds of such a row alone."""
    bounds = column.bounds
    height = bounds.low.len()
    for value in (bounds.low, bounds.high):
        there = (bounds.exact & value.is_not_null()).fill_null(False)
        alone = Bounds(value, value, _all(True, height), _count(0, height), _one(height), _count(0, height))
        yield there, _one(height), alone
    yield ((bounds.nulls > 0) & column.counted).fill_null(False), bounds.nulls.fill_null(0), _of_null(bounds)


def _constant(column: Bounds) -> pl.Series:
    """Where every row has the same value."""
    one = ((column.low == column.high) & column.exact & (column.nulls == 0)).fill_null(False)
    if column.low.dtype.is_float():
        one &= _all(False, one.len()) if column.nans is None else (column.nans == 0).fill_null(False)
    return one | _all_null(column)


def untrue(node: Node) -> Node:
    """The tree that is true of the rows of which `node` is not: false or null."""
    match node:
        case And(left, right):
            return Or(untrue(left), untrue(right))
        case Or(left, right):
            return And(untrue(left), untrue(right))
        case Comparison(path, op, value) if value.null_count() == 0:
            return Or(Comparison(path, _OPPOSITE[op], value), IsNull(path))
        case IsIn(path, values, negated, widened) if values.null_count() == 0:
            return Or(IsIn(path, values, not negated, widened), IsNull(path))
        case IsNull(path, negated):
            return IsNull(path, not negated)
        case Constant(value):
            return Constant(value is not True)
    return Unknown()


def _parts(node: Node) -> Iterator[Node]:
    """The conditions that all have to hold."""
    match node:
        case And(left, right):
            yield from _parts(left)
            yield from _parts(right)
        case IsIn(_, values, _, _) if values.null_count():
            yield Unknown()  # `NOT IN (1, NULL)` is never true in SQL, and what reads the tree passes nulls over
        case StartsWith() | Comparison() | IsIn() | IsNull() | Or() | Constant() | Unknown():
            yield node


def _of_null(column: Bounds) -> Bounds:
    height = column.low.len()
    nothing = column.low.clear(height)
    return Bounds(nothing, nothing, _all(False, height), _one(height), _one(height), _count(0, height))


def _all_null(column: Bounds) -> pl.Series:
    return (column.nulls == column.records).fill_null(False)


def _most(one: pl.Series, other: pl.Series) -> pl.Series:
    return pl.select(pl.max_horizontal(one.alias("one"), other.alias("other"))).to_series()


def _all(value: bool, height: int) -> pl.Series:
    return pl.Series([value], dtype=pl.Boolean).new_from_index(0, height)


def _one(height: int) -> pl.Series:
    return _count(1, height)


def _count(count: int, height: int) -> pl.Series:
    return pl.Series([count], dtype=pl.Int64).new_from_index(0, height)
