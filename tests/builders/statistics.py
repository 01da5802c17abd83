"""Statistics of rows as a writer records them."""

from __future__ import annotations

import pyarrow as pa

from lakeview.delta.data.file_statistics import FileStatistics


def file_statistics(rows: pa.Table) -> str:
    """The statistics of a file of these rows, as JSON text."""
    statistics = FileStatistics()
    statistics.add(rows)
    return statistics.text()
