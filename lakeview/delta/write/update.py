"""Rows to the rows that assignments make of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl
import pyarrow as pa

from lakeview.delta.write.assignments import Assignment, Assignments, check_assignments, with_values
from lakeview.delta.write.context import WriteContext
from lakeview.delta.write.rewrites import Numbers
from lakeview.delta.write.row_changes import RowChanges
from lakeview.delta.write.row_rules import RowRules, row_rules
from lakeview.delta.write.schema_changes import Path
from lakeview.delta.write.stored_columns import readable_rows
from lakeview.model.arguments import mapping_of
from lakeview.model.clock import Clock
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.rows.matching import evaluate, frame_of


@dataclass(frozen=True)
class RowChange:
    """Assignments that are checked, and the rules that the rows they make have to keep."""

    assignments: Mapping[Path, Assignment]
    rules: RowRules
    tracked_schema: Schema

    def rows(self, source: pa.RecordBatch, clock: Clock) -> pa.RecordBatch:
        """The rows of a batch with the assignments applied. Columns that the table generates follow their columns."""
        values = self._values(source)
        computed = {rule.name for rule in self.rules.generated} - {path[0] for path in values}
        names = [f.name for f in self.rules.schema if f.name not in computed]
        arrays = {path: series.to_arrow() for path, series in values.items()}
        return self.rules.conform(with_values(source, names, arrays), clock=clock)

    def _values(self, source: pa.RecordBatch) -> dict[Path, pl.Series]:
        """The assigned values. What is assigned to a variant sees other variants as their bytes, which it keeps."""
        others = [assigned.value for assigned in self.assignments.values() if not assigned.is_variant]
        text_names = {name for e in others for name in e.meta.root_names()}
        rows = readable_rows(source, self.rules.schema, text_names)
        stored = frame_of(source)
        frame = stored if rows is source else frame_of(rows)
        return {
            path: evaluate(stored if is_variant else frame, value, f"the value of column {'.'.join(path)}")
            for path, (value, is_variant) in self.assignments.items()
        }

    def apply(self, batch: pa.RecordBatch, _: Numbers, *, work: RowChanges, clock: Clock) -> pa.RecordBatch:
        """The rows of a batch of the table with the assignments applied, before and after as change data."""
        rows = self.rows(batch, clock)
        if work.feed:
            work.record("update_preimage", [batch])
            work.record("update_postimage", [rows])
        return with_tracking(rows, batch, self.tracked_schema)


def with_tracking(rows: pa.RecordBatch, source: pa.RecordBatch, tracked: Schema) -> pa.RecordBatch:
    """The rows with the ids of those they were made of; the version of their last change is that of this commit."""
    if not tracked:
        return rows
    row_id, version = tracked.names
    rows = rows.append_column(pa.field(row_id, pa.int64()), source.column(row_id))
    return rows.append_column(pa.field(version, pa.int64()), pa.nulls(rows.num_rows, pa.int64()))


def changed_rows(assignments: Assignments, context: WriteContext) -> RowChange:
    """Assignments as expressions over the columns of a table; errors as `check_assignments`, and for none."""
    if not mapping_of(assignments, "assignments"):
        raise InvalidRequestError("an update without assignments changes nothing", fix="say which columns to set")
    schema = context.schema
    return RowChange(check_assignments(assignments, schema, schema), rules_of_changes(context), Schema(context.tracked))


def rules_of_changes(context: WriteContext) -> RowRules:
    """The rules for rows that were in the table before: their identities and defaults are what they hold."""
    rules = context.rules or row_rules(context.schema, {})
    return replace(rules, identities=(), defaults=(), stored_variants=True)
