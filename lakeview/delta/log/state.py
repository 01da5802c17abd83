"""What tells the files of one version: a replayed log, or a sharing server that replayed it for us."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import polars as pl

from lakeview.delta.log.statistics_reader import StatisticsReader
from lakeview.model.snapshot import TableProtocol


class TableState(Protocol):
    """A table at one version, as listings, statistics and scans need it. `Replay` is one."""

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
