"""Rows of many files to files that they share, a partition each: rows that leave their partition, and change data."""

from collections.abc import Mapping
from threading import Lock
from typing import Any

import polars as pl
import pyarrow as pa

from lakeview.delta.log.actions import AddFile
from lakeview.delta.write.writer import FileWriter
from lakeview.rows.arrays import values_to_arrow


class SharedFiles:
    """Files that several threads write rows to. Memory as `OpenFiles`."""

    def __init__(self, writer: FileWriter) -> None:
        self._files = writer.open_files()
        self._lock = Lock()

    def write(self, rows: pa.RecordBatch) -> None:
        """Write rows as `FileWriter.write_conformed` takes them."""
        with self._lock:
            self._files.write(rows)

    def close(self) -> list[AddFile]:
        """Write the rest; all files, not committed yet."""
        return self._files.close()

    def discard(self) -> list[AddFile]:
        """Leave nothing of files that are not whole; those that are."""
        self._files.discard()
        return self._files.results


def rows_with(rows: pa.RecordBatch, values: Mapping[str, Any]) -> pl.Series:
    """Which rows have these values of columns; null equals null."""
    stays = pl.repeat(True, rows.num_rows, eager=True)
    for name, value in values.items():
        column = rows.column(name)
        stays &= pl.Series(column).eq_missing(pl.Series(values_to_arrow([value], column.type)))
    return stays
