"""Assignments to columns, and the rows that they make of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import polars as pl
import pyarrow as pa

from lakeview.delta.data.row_tracking import ROW_COMMIT_VERSION
from lakeview.delta.write.context import WriteContext
from lakeview.delta.write.identity import check_identities
from lakeview.delta.write.live_files import evaluated, frame_of
from lakeview.delta.write.row_changes import RowChanges
from lakeview.delta.write.row_rules import RowRules, row_rules
from lakeview.delta.write.row_wise import row_wise
from lakeview.delta.write.stored_columns import holds_variants, readable_rows
from lakeview.model.clock import Clock
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema

Assignments: TypeAlias = Mapping[str, str | pl.Expr]
"""Column -> what it is set to: an expression in SQL over the columns of the row, or one of polars."""


@dataclass(frozen=True)
class RowChange:
    """Assignments that are checked, and the rules that the rows they make have to keep."""

    assignments: Mapping[str, pl.Expr]
    rules: RowRules
    tracked: Schema

    def rows(self, source: pa.RecordBatch, clock: Clock) -> pa.RecordBatch:
        """The rows of a batch with the assignments applied. Columns that the table generates follow their columns."""
        values = self._values(source)
        computed = {rule.name for rule in self.rules.generated} - values.keys()
        names = [f.name for f in self.rules.schema if f.name not in computed]
        columns = [values[n].to_arrow() if n in values else source.column(n) for n in names]
        return self.rules.conform(pa.RecordBatch.from_arrays(columns, names=names), clock=clock)

    def _values(self, source: pa.RecordBatch) -> dict[str, pl.Series]:
        """The assigned values. What is assigned to a variant sees other variants as their bytes, which it keeps."""
        schema = self.rules.schema
        others = [e for name, e in self.assignments.items() if not holds_variants(schema[name])]
        text_names = {name for e in others for name in e.meta.root_names()}
        rows = readable_rows(source, schema, text_names)
        stored = frame_of(source)
        shown = stored if rows is source else frame_of(rows)
        return {
            name: evaluated(stored if holds_variants(schema[name]) else shown, e, f"the value of column {name}")
            for name, e in self.assignments.items()
        }

    def apply(self, batch: pa.RecordBatch, work: RowChanges, clock: Clock) -> pa.RecordBatch:
        """The rows of a batch of the table with the assignments applied, before and after as change data."""
        rows = self.rows(batch, clock)
        if work.feed:
            work.record("update_preimage", [batch])
            work.record("update_postimage", [rows])
        return with_tracking(rows, batch, self.tracked)


def with_tracking(rows: pa.RecordBatch, source: pa.RecordBatch, tracked: Schema) -> pa.RecordBatch:
    """The rows with the ids of those they were made of; the version of their last change is that of this commit."""
    for field in tracked:
        is_version = field.name == ROW_COMMIT_VERSION
        values = pa.nulls(rows.num_rows, pa.int64()) if is_version else source.column(field.name)
        rows = rows.append_column(pa.field(field.name, pa.int64()), values)
    return rows


def changed_rows(assignments: Assignments, context: WriteContext) -> RowChange:
    """Assignments as expressions over the columns of a table.

    InvalidRequestError for none, a column that is not there, or what is no expression over the columns of one row;
    ConstraintViolationError for an identity column whose values the table alone gives.
    """
    if not assignments:
        raise InvalidRequestError("an update without assignments changes nothing", fix="say which columns to set")
    schema = context.schema
    found = {}
    for name, value in assignments.items():
        schema.require([name])
        found[name] = row_wise(value, schema, "assignments")
    check_identities(found, schema)
    return RowChange(found, rules_of_changes(context), Schema(context.tracked))


def rules_of_changes(context: WriteContext) -> RowRules:
    """The rules for rows that were in the table before: their identities and defaults are what they hold."""
    rules = context.rules or row_rules(context.schema, {})
    return replace(rules, identities=(), defaults=(), stored_variants=True)
