"""What a scan is asked for, and record batches to frames that answer it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from lakeview.model.schema import Schema


@dataclass(frozen=True, slots=True)
class RowQuery:
    """Columns and rows of files that polars asks for.

    `schema`: the columns to read, of the output and of the predicate, in the table's order; `types`: theirs in polars;
    `output`: the names to give, in this order; `predicate`: which rows, all without one.
    """

    schema: Schema
    types: pl.Schema
    output: Sequence[str]
    predicate: pl.Expr | None = None

    def frames(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
        """The rows of record batches in `schema` that satisfy the predicate, in the columns of the output."""
        for batch in batches:
            frame = self._frame(batch)
            yield self.output_columns(frame if self.predicate is None else frame.filter(self.predicate))

    def output_columns(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The columns of the output, addressed without patterns; without any, the same number of rows."""
        return frame.select([frame[name] for name in self.output]) if self.output else frame

    def _frame(self, batch: pa.RecordBatch) -> pl.DataFrame:
        names = self.schema.names
        if not names:
            return pl.DataFrame(height=batch.num_rows)
        frame = pl.from_arrow(batch)
        assert isinstance(frame, pl.DataFrame)
        frame.columns = names  # polars gives a column without a name one of its own
        types = self.types
        # one by one: DataFrame.cast takes a name such as ^x$ for a pattern, and minutes over thousands of columns
        return pl.DataFrame({s.name: s if s.dtype == types[s.name] else s.cast(types[s.name]) for s in frame})
