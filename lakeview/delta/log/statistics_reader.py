"""What reads statistics where the log is read: given by who knows the types of columns, which the log does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import polars as pl


class StatisticsReader(Protocol):
    """Statistics of a batch of adds to one column, so that their text is never held for all files at once."""

    @property
    def leaves(self) -> Sequence[str]:
        """Leaves of `stats_parsed` that are needed, such as `minValues.a`; others are not read."""

    def read(self, stats: pl.Series | None, parsed: pl.Series | None, rows: int) -> pl.Series:
        """One struct a row, as a series called `statistics`, always of the same type.

        `stats`: documents, `parsed`: structs with some of the leaves; None where a file has none.
        """


def with_statistics(
    adds: Callable[[Sequence[str]], pl.DataFrame], columns: Sequence[str], reader: StatisticsReader | None
) -> pl.DataFrame:
    """Adds with these columns, and `statistics` if there is a reader of them: from documents, as commits have them."""
    if reader is None:
        return adds(columns)
    frame = adds(list(dict.fromkeys([*columns, "stats"])))
    frame = frame.with_columns(reader.read(frame["stats"], None, frame.height).alias("statistics"))
    return frame if "stats" in columns else frame.drop("stats")
