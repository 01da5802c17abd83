"""Counts of rows that no file has are unknown: summed up they would turn negative, and be told as exact."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.log import record_counts
from lakeview.delta.log.record_counts import records
from lakeview.model.limits import FILE_ROWS
from tests.builders.actions import add, metadata, protocol
from tests.builders.history import DeltaHistory

COUNTS = {"the most": (FILE_ROWS, FILE_ROWS), "more": (FILE_ROWS + 1, None), "all of 64 bits": (2**63 - 1, None),
          "fewer than none": (-1, None), "none": (0, 0)}  # fmt: skip


@pytest.mark.parametrize("later", [False, True], ids=["the first key", "a later key"])
@pytest.mark.parametrize(("count", "expected"), COUNTS.values(), ids=list(COUNTS))
def test_a_count_that_no_file_has_is_unknown(tmp_path: Path, count: int, expected: int | None, *, later: bool) -> None:
    stats = {"minValues": {}, "numRecords": count} if later else {"numRecords": count}
    history = DeltaHistory(tmp_path / "t").create().commit(add("f", stats=stats))
    opened = lv.open_table(history.address)
    assert opened.snapshot().num_records == expected
    assert opened.lifetimes()["records"].to_list() == [expected]
    history.checkpoint().without(0, 1)
    assert lv.open_table(history.address).snapshot().num_records == expected


WRITTEN = {
    '{"numRecords":5,"minValues":{"numRecords":7}}': 5, '{"numRecords":5}': 5, '{ "numRecords": 5, "x": 1}': 5,
    '{"numRecords"\r\n:\t5 }': 5, '{"numRecords":9223372036854775807,"x":1}': None,
    '{"numRecords":92233720368547758070,"x":1}': None, '{"numRecords":-5,"x":1}': None,
    '{"numRecords":5.5,"x":1}': None,
    '{"numRecords":+5,"x":1}': None, '{"numRecords":+5}': None, '{"numRecords":05,"x":1}': None,
    '{"numRecords": 05}': None, '{"numRecords":0,"x":1}': 0, '{"numRecords":0}': 0, '{"numRecords":10,"x":1}': 10,
    '{"numRecords":"5","x":1}': None, '{"numRecords":null,"x":1}': None, '{"numRecords":\u0665,"x":1}': None,
    '{"minValues":{"numRecords":7}}': None, '{"minValues":{"numRecords":7},"numRecords":5}': 5,
    '{"\\u006eumRecords":5}': 5, '{"numRecords":5\u00a0,"x":1}': None, "[]": None, "": None,
}  # fmt: skip


def test_a_document_has_one_count_however_it_is_written() -> None:
    assert records(pl.Series([*WRITTEN]), None).to_list() == [*WRITTEN.values()]
    assert [record_counts.records_of(text) for text in WRITTEN] == [*WRITTEN.values()]


def test_a_count_that_stands_first_costs_no_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(record_counts, "_num_records")
    assert records(pl.Series([*WRITTEN][:4]), None).to_list() == [5] * 4


def test_a_count_of_a_struct_is_held_to_the_same() -> None:
    parsed = pl.Series([5, -5, 2**60], dtype=pl.Int64)
    assert records(pl.Series([None] * 3, dtype=pl.String), parsed).to_list() == [5, None, None]


def test_rows_that_are_left_are_unknown_where_more_were_deleted_than_there_are(tmp_path: Path) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "sizeInBytes": 40, "cardinality": 10}
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    history = DeltaHistory(tmp_path / "t").commit(protocol(3, 7, **features), metadata())
    history.commit(add("f", records=3, deletionVector=vector), add("g", records=5))
    opened = lv.open_table(history.address)
    assert opened.snapshot().num_records is None
    assert opened.lifetimes()["records"].to_list() == [None, 5]
    assert opened.history()["records_added"].to_list() == [None, 0]
