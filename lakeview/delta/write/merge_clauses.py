"""Clauses of a merge to expressions over the rows of both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from lakeview.delta.write.assignments import check_assignments
from lakeview.delta.write.merge import SOURCE, TARGET, Clause
from lakeview.delta.write.schema_changes import Path
from lakeview.model.schema import Schema
from lakeview.predicates.row_wise import row_wise
from lakeview.rows.matching import check_condition, evaluate, matching_rows

_SUBJECT = "the condition of a clause"


@dataclass(frozen=True)
class ClauseRule:
    """A clause, its expressions checked; `values`: of each column or field that it sets, by its path, None for the
    source column of its name (which a name such as ^x$ could not tell polars). `variants`: those of them that are
    variants."""

    clause: Clause
    where: pl.Expr | None
    values: Mapping[Path, pl.Expr | None]
    variants: frozenset[Path] = frozenset()

    def values_of(self, rows: pl.DataFrame, stored: pl.DataFrame | None = None) -> dict[Path, pl.Series]:
        """The values of rows, by path. `stored`: the rows with variants as their bytes, which variants are set by."""
        by_name = any(e is None for e in self.values.values())
        source = rows[SOURCE].struct.unnest() if by_name else pl.DataFrame()
        return {
            path: source[path[0]]
            if e is None
            else evaluate(
                rows if stored is None or path not in self.variants else stored,
                e,
                f"the value of column {'.'.join(path)}",
            )
            for path, e in self.values.items()
        }

    def holds(self, frame: pl.DataFrame) -> pl.Series:
        """For which rows of both sides the clause's condition is true."""
        if self.where is None:
            return pl.repeat(True, frame.height, eager=True)
        return matching_rows(frame, self.where, _SUBJECT)


def clause_rule(clause: Clause, sides: Schema, table: Schema, source: Schema) -> ClauseRule:
    """A clause over rows of these columns, `sides`. InvalidRequestError for one that is no clause of this table."""
    where = None if clause.where is None else row_wise(clause.where, sides)
    if where is not None:
        check_condition(where, sides, _SUBJECT)
    if clause.does == "delete":
        return ClauseRule(clause, where, {})
    if clause.assignments is None:
        if clause.does == "insert":
            table.require(source.names, place="source")
        return ClauseRule(clause, where, dict.fromkeys((n,) for n in source.names if n in table))
    assignments = check_assignments(clause.assignments, table, sides, is_new=clause.does == "insert")
    values = {path: assigned.value for path, assigned in assignments.items()}
    return ClauseRule(clause, where, values, frozenset(path for path, a in assignments.items() if a.is_variant))


def text_names(rules: Sequence[ClauseRule], table: Schema) -> frozenset[str]:
    """The columns of a table that rules read and that, if they are variants, they read as text."""
    texts = [e for rule in rules for path, e in rule.values.items() if e is not None and path not in rule.variants]
    names = {n for e in (*texts, *(r.where for r in rules if r.where is not None)) for n in e.meta.root_names()}
    return frozenset(table.names if TARGET in names else names)


def both_sides(own: pl.DataFrame, sides: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Columns by their own names, and each side as a struct by its name."""
    columns = {name: own[name] for name in own.columns if name not in (TARGET, SOURCE)}
    return pl.DataFrame({**columns, **{side: frame.to_struct(side) for side, frame in sides.items()}})
