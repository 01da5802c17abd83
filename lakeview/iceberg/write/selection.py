"""What an overwrite or a delete replaces: the rows for which a condition is true, or those of some partitions."""

from __future__ import annotations

from collections.abc import Callable, Collection

import polars as pl
import pyarrow as pa

from lakeview.iceberg.scan.pruning import Pruning
from lakeview.iceberg.state import State
from lakeview.iceberg.write.context import WriteContext
from lakeview.iceberg.write.partition_tuples import Tuple
from lakeview.iceberg.write.rewritten_manifest import partition_tuples
from lakeview.model.errors import ConstraintViolationError, UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.predicates.expressions import parse
from lakeview.predicates.row_wise import row_wise
from lakeview.rows.matching import check_condition, frame_of, matching_rows

EVERY = pl.lit(value=True)
"""The condition that all rows satisfy."""


class Selection:
    """Rows of a table of which a condition is true, by the data files that hold them; null is not true."""

    def __init__(self, condition: pl.Expr = EVERY) -> None:
        self.condition = condition

    @classmethod
    def parse(cls, where: str | pl.Expr | None, schema: Schema) -> Selection:
        """The rows for which a condition is true, all without one.

        InvalidRequestError for a condition that is none, is not of each row by itself, or cannot be evaluated.
        """
        if where is None:
            return Selection()
        condition = row_wise(where, schema)
        check_condition(condition, schema)
        return Selection(condition)

    @property
    def everything(self) -> bool:
        """Whether all rows of the table are meant."""
        return self.condition is EVERY

    def metrics(self, state: State) -> Collection[int]:
        """The ids of the columns whose metrics tell."""
        return self._pruning(state).columns

    def manifests(self, state: State, manifests: pl.DataFrame) -> pl.Series:
        """Whether each of these MANIFESTS of data files may name files with such rows."""
        return self._pruning(state).manifests(manifests)

    def files(self, state: State, entries: pl.DataFrame) -> pl.Series:
        """Whether each of these ENTRIES, with `metrics`, may be of a file with such rows."""
        return self._pruning(state).by_all(entries)

    def whole_files(self, state: State, entries: pl.DataFrame) -> pl.Series:
        """Whether each of these ENTRIES, with `metrics`, is proved to be of a file with no other rows."""
        return self._pruning(state).proves_matches(entries)

    def _pruning(self, state: State) -> Pruning:
        return Pruning(state.metadata, state.metadata.schema, state.columns, parse(self.condition))


class ByPartition(Selection):
    """Rows of partitions, `tuples`, of the context's spec: files go whole. Metrics tell nothing of them, nor manifests.

    UnsupportedTableError for a table with files of another spec, which may hold rows of these partitions.
    """

    everything = False

    def __init__(self, context: WriteContext, tuples: Collection[Tuple]) -> None:
        super().__init__()
        self._context = context
        self._keys = {tuple(map(repr, each)) for each in tuples}  # NaN would differ from itself

    def metrics(self, state: State) -> Collection[int]:  # noqa: ARG002 (tuples tell)
        return ()

    def manifests(self, state: State, manifests: pl.DataFrame) -> pl.Series:  # noqa: ARG002 (tuples tell)
        return pl.Series([True] * manifests.height, dtype=pl.Boolean)

    def files(self, state: State, entries: pl.DataFrame) -> pl.Series:  # noqa: ARG002 (tuples tell)
        if (entries["spec_id"] != self._context.spec.spec_id).any():
            raise UnsupportedTableError(
                "the table has files of an earlier partition spec, which belong to no partition of the current one",
                fix="say by a condition which rows are replaced",
                kind="several-partition-specs",
            )
        mask = [tuple(map(repr, each)) in self._keys for each in partition_tuples(entries, self._context)]
        return pl.Series(mask, dtype=pl.Boolean)

    whole_files = files


def check_inside(where: str | pl.Expr, schema: Schema) -> Callable[[pa.RecordBatch], None]:
    """A function that refuses rows of the table's columns of which the condition is not true: they would be there twice
    after the next overwrite. ConstraintViolationError."""
    condition = row_wise(where, schema)
    names = list(dict.fromkeys(condition.meta.root_names()))

    def check(batch: pa.RecordBatch) -> None:
        inside = matching_rows(frame_of(batch.select(names)), condition)
        outside = batch.num_rows - int(inside.sum())
        if outside:
            raise ConstraintViolationError(
                f"{outside:,} rows lie outside {str(where)!r}, which the overwrite replaces",
                fix="filter the rows, or widen the condition",
                place="where",
                kind="replace-where",
            )

    return check
