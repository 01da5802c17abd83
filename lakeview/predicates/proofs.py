"""A tree and the bounds of its columns to what is proved of a file: all its rows satisfy the condition, or some do not.

A row satisfies a condition only if it is true of it: null violates it, as false does, and no writer may add such a row
(delta protocol, Column Invariants; Delta's engines hold CHECK constraints to the same). This is not the CHECK of the
SQL standard, which null satisfies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import polars as pl

from lakeview.predicates import limits
from lakeview.predicates.bounds import Bounds, may_match, repeat
from lakeview.predicates.tree import IsIn, Node, Path, complement, conjuncts, paths

PROOFS = pl.Schema({"satisfied": pl.Boolean(), "violations": pl.Int64()})
"""One row a file: `satisfied`: every row satisfies the condition; `violations`: live rows that violate it, at least; 0
where none is proved to. A file with neither is unknown."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Bounds of one column, and where its `nulls` are counted among live rows: elsewhere they are those of the file as
    it was written, of which some may be deleted by now."""

    bounds: Bounds
    exact_nulls: pl.Series

    @classmethod
    def of_values(cls, values: pl.Series) -> Evidence:
        """Evidence of a column that has one value in all rows of each file."""
        return cls(Bounds.of_values(values), repeat(True, values.len()))

    @classmethod
    def of_statistics(cls, column: pl.Series, records: pl.Series) -> Evidence:
        """Evidence of a column of STATISTICS in files of so many rows as written."""
        statistics = column.struct.unnest()
        bounds = Bounds(
            statistics["min"],
            statistics["max"],
            statistics["exact"].fill_null(False),
            statistics["null_count"],
            records.fill_null(-1),
        )
        return cls(bounds, statistics["null_count_exact"].fill_null(False))


def proofs(node: Node, evidence: Mapping[Path, Evidence], live: pl.Series) -> pl.DataFrame:
    """PROOFS of files with `live` rows (null where unknown); a column that is not in `evidence` proves nothing."""
    empty = (live == 0).fill_null(False)
    is_satisfied = _proves_satisfied(node, evidence, live.len()) | empty
    violations = pl.Series("violations", [0] * live.len(), dtype=pl.Int64)
    for part in conjuncts(node):
        if isinstance(part, IsIn) and part.values.null_count():
            continue  # `NOT IN (1, NULL)` is never true in SQL, and what reads the tree ignores nulls in the list
        violations = _most(violations, _violations(part, evidence, live))
    return pl.DataFrame({"satisfied": is_satisfied, "violations": violations.set(empty, 0)}, schema=PROOFS)


def _proves_satisfied(node: Node, evidence: Mapping[Path, Evidence], height: int) -> pl.Series:
    """Where no row breaks it: for every way in which columns of a row can be null, the opposite matches no row."""
    is_satisfied = repeat(True, height)
    names = list(dict.fromkeys(paths(node)))
    if len(names) > limits.PROOF_COLUMNS or not set(names) <= evidence.keys():
        return repeat(False, height)
    opposite = complement(node)
    for case in product((False, True), repeat=len(names)):
        possible, bounds = repeat(True, height), {}
        for path, null in zip(names, case, strict=True):
            column = evidence[path].bounds
            possible &= (column.nulls > 0).fill_null(True) if null else ~_all_null(column)
            bounds[path] = (
                _of_null(column) if null else replace(column, nulls=repeat(0, height), records=repeat(1, height))
            )
        is_satisfied &= ~possible | ~may_match(opposite, bounds.get, height)
    return is_satisfied


def _violations(part: Node, evidence: Mapping[Path, Evidence], live: pl.Series) -> pl.Series:
    """Live rows that violate a condition, at least: all where none can match it, else those of recorded values."""
    height = live.len()
    bounds = {path: column.bounds for path, column in evidence.items()}
    least = pl.select(
        pl.when(~may_match(part, bounds.get, height)).then(live.fill_null(0)).otherwise(pl.lit(0, pl.Int64))
    ).to_series()
    names = list(dict.fromkeys(paths(part)))
    for path in names:
        others = [other for other in names if other != path]
        if path not in evidence or any(other not in evidence for other in others):
            continue
        alone = repeat(True, height)
        other_bounds = {}
        for other in others:
            alone &= _constant(bounds[other])
            other_bounds[other] = bounds[other]
        for there, rows, witness in _witnesses(evidence[path]):
            no = ~may_match(part, {**other_bounds, path: witness}.get, height) & there & alone
            least = _most(least, pl.select(pl.when(no).then(rows).otherwise(pl.lit(0, pl.Int64))).to_series())
    return least


def _witnesses(column: Evidence) -> Iterator[tuple[pl.Series, pl.Series, Bounds]]:
    """Values that occur in live rows: where they do, how often at least, and bounds of such a row alone."""
    bounds = column.bounds
    height = bounds.low.len()
    for value in (bounds.low, bounds.high):
        there = (bounds.exact & value.is_not_null()).fill_null(False)
        alone = Bounds(value, value, repeat(True, height), repeat(0, height), repeat(1, height), repeat(0, height))
        yield there, repeat(1, height), alone
    yield ((bounds.nulls > 0) & column.exact_nulls).fill_null(False), bounds.nulls.fill_null(0), _of_null(bounds)


def _constant(column: Bounds) -> pl.Series:
    """Where every row has the same value."""
    one = ((column.low == column.high) & column.exact & (column.nulls == 0)).fill_null(False)
    if column.low.dtype.is_float():
        one &= repeat(False, one.len()) if column.nans is None else (column.nans == 0).fill_null(False)
    return one | _all_null(column)


def _of_null(column: Bounds) -> Bounds:
    height = column.low.len()
    nothing = column.low.clear(height)
    return Bounds(nothing, nothing, repeat(False, height), repeat(1, height), repeat(1, height), repeat(0, height))


def _all_null(column: Bounds) -> pl.Series:
    return (column.nulls == column.records).fill_null(False)


def _most(one: pl.Series, other: pl.Series) -> pl.Series:
    return pl.select(pl.max_horizontal(one.alias("one"), other.alias("other"))).to_series()
