"""Clauses of a merge to expressions over the rows of both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from lakeview.delta.write.identity import check_identities
from lakeview.delta.write.live_files import evaluated
from lakeview.delta.write.merge import SOURCE, TARGET, Clause
from lakeview.delta.write.row_wise import row_wise
from lakeview.delta.write.stored_columns import holds_variants
from lakeview.model.schema import Schema


@dataclass(frozen=True)
class ClauseRule:
    """A clause, its expressions checked; `values`: of each column that it sets, None for the source column of its name
    (which a name such as ^x$ could not tell polars). `variants`: those of the columns that are variants."""

    clause: Clause
    where: pl.Expr | None
    values: Mapping[str, pl.Expr | None]
    variants: frozenset[str] = frozenset()

    def values_of(self, rows: pl.DataFrame, stored: pl.DataFrame | None = None) -> dict[str, pl.Series]:
        """The values of rows, by column. `stored`: the rows with variants as their bytes, which variants are set by."""
        named = any(e is None for e in self.values.values())
        source = rows[SOURCE].struct.unnest() if named else pl.DataFrame()
        return {
            name: source[name]
            if e is None
            else evaluated(
                rows if stored is None or name not in self.variants else stored, e, f"the value of column {name}"
            )
            for name, e in self.values.items()
        }

    def holds(self, frame: pl.DataFrame) -> pl.Series:
        """For which rows of both sides the clause's condition is true."""
        if self.where is None:
            return pl.repeat(True, frame.height, eager=True)
        return evaluated(frame, self.where, "the condition of a clause").cast(pl.Boolean).fill_null(value=False)


def clause_rule(clause: Clause, sides: Schema, table: Schema, source: Schema) -> ClauseRule:
    """A clause over rows of these columns, `sides`. InvalidRequestError for one that is no clause of this table."""
    where = None if clause.where is None else row_wise(clause.where, sides)
    if clause.does == "delete":
        return ClauseRule(clause, where, {})
    if clause.assignments is None:
        if clause.does == "insert":
            table.require(source.names, place="source")
        return ClauseRule(clause, where, dict.fromkeys(n for n in source.names if n in table))
    if clause.does == "update":
        check_identities(clause.assignments, table)
    table.require(list(clause.assignments), place="assignments")
    values = {n: row_wise(e, sides, "assignments") for n, e in clause.assignments.items()}
    return ClauseRule(clause, where, values, frozenset(n for n in values if holds_variants(table[n])))


def text_names(rules: Sequence[ClauseRule], table: Schema) -> frozenset[str]:
    """The columns of a table that rules read and that, if they are variants, they read as text."""
    texts = [e for rule in rules for n, e in rule.values.items() if e is not None and n not in rule.variants]
    names = {n for e in (*texts, *(r.where for r in rules if r.where is not None)) for n in e.meta.root_names()}
    return frozenset(table.names if TARGET in names else names)


def both_sides(own: pl.DataFrame, sides: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Columns by their own names, and each side as a struct by its name."""
    columns = {name: own[name] for name in own.columns if name not in (TARGET, SOURCE)}
    return pl.DataFrame({**columns, **{side: frame.to_struct(side) for side, frame in sides.items()}})
