"""What tells the files of one version, what reads their statistics where the log is read, and what the last reading of
a checkpoint gave."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import polars as pl

from lakeview.delta.log.file_actions import ALWAYS, columns_of
from lakeview.delta.log.log_segment import CheckpointFiles
from lakeview.delta.log.record_counts import row_counts
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


def with_statistics(adds: pl.DataFrame, columns: Sequence[str], reader: StatisticsReader) -> pl.DataFrame:
    """Adds with these columns, and `statistics` as read from their documents, `stats`."""
    names = [name for name in adds.columns if name != "stats" or "stats" in columns]
    return columns_of(adds, names).hstack([reader.read(adds["stats"], None, adds.height)])


def listing_columns(columns: Sequence[str]) -> list[str]:
    """What `listing_with_statistics` needs of adds, so that a listing comes with these columns and statistics."""
    return [name for name in dict.fromkeys([*columns, *_LISTING, "stats"]) if name != "records"]


def listing_with_statistics(
    adds: pl.DataFrame, columns: Sequence[str], reader: StatisticsReader
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`with_statistics` of few files, and their listing, which is asked for next: to read it by itself takes as long as
    both together (benches/bench_logs.py, all 18 columns' statistics of 100 files). `adds`: with `listing_columns`."""
    statistics = reader.read(adds["stats"], None, adds.height)
    frame = adds.hstack([row_counts(statistics, adds["stats"])])
    selections = (*ALWAYS, *columns), (*ALWAYS, *_LISTING, "records")
    result, listing = (columns_of(frame, [c for c in frame.columns if c in names]) for names in selections)
    return result.hstack([statistics]), listing


_LISTING = ("size", "modified", "partition_values", "tags")
"""What a listing of files is made of, beside `records`."""


class TableState(Protocol):
    """A table at one version, as listings, statistics and scans need it: a replayed log (`Replay`), or what a sharing
    server made of one."""

    @property
    def table_protocol(self) -> TableProtocol:
        """The protocol as the neutral value a Snapshot holds."""

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""

    def adds(self, columns: Sequence[str]) -> pl.DataFrame:
        """FILE_ACTIONS of the live files: `key`, `path`, `deletion_vector`, `deleted_records` and these columns.

        `records` (physical rows) may be asked for.
        """

    def adds_with_statistics(self, columns: Sequence[str], reader: StatisticsReader) -> pl.DataFrame:
        """`adds`, and what the reader reads of them as the column `statistics`."""

    def removes(self) -> pl.DataFrame:
        """FILE_ACTIONS of the tombstones, where `modified` is the deletion's time."""

    def transactions(self) -> pl.DataFrame:
        """TRANSACTIONS."""

    def domain_metadata(self) -> pl.DataFrame:
        """DOMAIN_METADATA."""


_DOCUMENT_BYTES = 64 << 20


class LastListing:
    """The newest listing that any checkpoint of a log gave: the files, the history and the lives of files of one
    version all start from it; and the statistics of those files that a commit after it touches, by which loads are
    compared: to decompress all documents again takes as long as the listing. Safe to use from several threads."""

    def __init__(self) -> None:
        self._entry: tuple[tuple[str, ...], pl.DataFrame] | None = None
        self._documents: tuple[tuple[str, ...], pl.Series, pl.DataFrame] | None = None

    def of(self, files: CheckpointFiles) -> pl.DataFrame | None:
        """What is known of a checkpoint's adds."""
        entry = self._entry
        return None if entry is None or entry[0] != files.names else entry[1]

    def set(self, files: CheckpointFiles, listing: pl.DataFrame) -> None:
        """Take the place of the one before."""
        self._entry = files.names, listing

    def documents(self, files: CheckpointFiles, paths: pl.Series) -> pl.DataFrame | None:
        """The adds of a checkpoint with these paths, and their `stats`; None where they have to be read."""
        listing, entry = self.of(files), self._documents
        if entry is not None and entry[0] == files.names and paths.is_in(entry[1].implode()).all():
            adds = entry[2]
        elif listing is not None and not listing["path"].is_in(paths.implode()).any():
            adds = listing.clear().with_columns(pl.lit(None, pl.String).alias("stats"))
        else:
            return None
        return adds.filter(pl.col("path").is_in(paths.implode()))

    def set_documents(self, files: CheckpointFiles, paths: pl.Series, adds: pl.DataFrame) -> None:
        """Retain those of a checkpoint's `adds` that have these paths, and their `stats`, if they all have some, which
        are not too large."""
        documents = adds.filter(pl.col("stats").is_not_null())
        is_whole = documents.height == adds["path"].is_in(paths.implode()).sum()
        if is_whole and documents["stats"].str.len_bytes().sum() <= _DOCUMENT_BYTES:
            self._documents = files.names, paths, documents
