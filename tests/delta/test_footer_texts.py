"""Bounds of texts that come from a Parquet footer are those of the texts themselves."""

from __future__ import annotations

from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeview.delta.data.file_statistics import FileStatistics
from lakeview.delta.write.footer_texts import text_bounds, text_columns
from tests.builders.statistics import file_statistics

LONG = 4_097
"""Bytes of a text that Arrow leaves out of the footer."""

TEXTS: dict[str, list[str | None]] = {
    "in several row groups": ["b", "a", "d", "c", "e"],
    "with nulls": [None, "a", None, None, "b"],
    "null alone": [None] * 5,
    "empty": ["", "", "a", "", ""],
    "beyond ASCII": ["\u00e9", "z", "\U0001f600", "\ufffd", "e"],
    "a long maximum": ["a", "z" * LONG, "b", "c", "d"],
    "a long minimum": ["b", "a" * LONG, "z", "c", "d"],
    "the longest alone": ["a" * LONG] * 5,
}


@pytest.mark.parametrize("name", ["s", "a.b", "^s$", " "])
@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
def test_texts_have_the_bounds_and_nulls_that_comparing_them_gives(name: str, texts: list[str | None]) -> None:
    nested = pa.array([{"b": i, "l": ["x", "y"]} for i in range(5)])  # leaves before that of the text
    rows = pa.table({"a": nested, name: pa.array(texts, pa.string()), "z": pa.array(range(5))})
    file, footers = BytesIO(), list[pq.FileMetaData]()
    with pq.ParquetWriter(file, rows.schema, metadata_collector=footers) as writer:
        writer.write_table(rows, row_group_size=2)
    columns = text_columns(rows.schema)
    statistics = FileStatistics()
    statistics.add(rows, columns)
    for column, nulls, bounds in text_bounds(file, footers[0], columns):
        statistics.add_column(column, nulls, bounds)
    assert statistics.text() == file_statistics(rows)
