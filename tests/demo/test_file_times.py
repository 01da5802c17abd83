"""The demo's data files are as old as its log says."""

from __future__ import annotations

from pathlib import Path

from lakeview import open_table
from lakeview.delta.table import DeltaTable
from lakeview.demo.build import date_files
from tests.builders.actions import remove
from tests.builders.history import DeltaHistory


def test_a_vacuum_finds_what_the_log_says_it_will(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "lake" / "t").create()
    history.commit(history.data("a.parquet", {"id": [1]}), history.data("gone.parquet", {"id": [2]}))
    history.commit(remove("a.parquet"), remove("gone.parquet")).remove("gone.parquet")
    table = open_table(history.address)
    assert isinstance(table, DeltaTable)
    assert table.vacuum()["path"].to_list() == [], "a file of today"
    date_files(tmp_path)
    assert table.vacuum()["path"].to_list() == ["a.parquet"]
