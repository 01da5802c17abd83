"""What tells the files of one version, and what reads their statistics where the log is read."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import polars as pl

from lakeview.model.table_metadata import TableProtocol


class StatisticsReader(Protocol):
    """Statistics of a batch of adds to one column, so that their text is never held for all files at once.

    It is given by callers who know the types of columns, which the log does not.
    """

    @property
    def leaves(self) -> Sequence[str]:
        """Leaves of `stats_parsed` that are needed, such as `minValues.a`; others are not read."""

    @property
    def is_sample(self) -> bool:
        """Whether it reads some of the rows only: the struct of the others is null."""

    def read(self, stats: pl.Series | None, structs: pl.Series | None, rows: int) -> pl.Series:
        """One struct a row, as a series called `statistics`, always of the same type.

        `stats`: documents, `structs`: those with some of the leaves; None where a file has none.
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


class TableState(Protocol):
    """A table at one version, as listings, statistics and scans need it: a replayed log (`Replay`), or what a sharing
    server made of one."""

    @property
    def table_protocol(self) -> TableProtocol:
        """The protocol as the neutral value a Snapshot holds."""

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""

    def adds(self, columns: Sequence[str], statistics: StatisticsReader | None = None) -> pl.DataFrame:
        """FILE_ACTIONS of the live files: `key`, `path`, `deletion_vector`, `deleted_records` and these columns.

        `records` (physical rows) may be asked for; `statistics` adds what it reads as a column of that name.
        """

    def removes(self) -> pl.DataFrame:
        """FILE_ACTIONS of the tombstones, where `modified` is the deletion's time."""

    def transactions(self) -> pl.DataFrame:
        """TRANSACTIONS."""

    def domain_metadata(self) -> pl.DataFrame:
        """DOMAIN_METADATA."""
