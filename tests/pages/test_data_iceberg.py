"""The data page on the second format: rows a filter keeps, SQL and changes, whose versions are 64-bit numbers."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from lakeview import open_table, views
from tests.builders.iceberg import IcebergHistory
from tests.pages.app import open_page, text

FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "day", "required": False, "type": "date"},
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two months, of the first of which two rows were deleted."""
    history = IcebergHistory(tmp_path_factory.mktemp("data") / "notes", FIELDS, [(2, "month", "day_month")], version=3)
    first = history.append("a", [{"id": i, "day": date(2024, 1, i + 1)} for i in range(9)])
    history.append("b", [{"id": 100, "day": date(2024, 2, 1)}])
    history.delete_vectors("v", {first: [0, 1]})
    return history.address


def test_rows_a_filter_keeps(table: str) -> None:
    app = open_page("data", table, where="day >= DATE '2024-02-01'")
    assert app.button(key="read").label.startswith("Read rows: reads 1 file, ")
    app.button(key="read").click().run()
    assert not app.exception
    assert app.dataframe[0].value["id"].to_list() == [100]


def test_sql(table: str) -> None:
    app = open_page("data", table, tab="SQL", sql="select count(*) as n from t")
    app.button(key="run").click().run()
    assert not app.exception
    assert app.dataframe[1].value["n"].to_list() == [8]


def test_changes(table: str) -> None:
    versions = [views.units.format_version(v) for v in open_table(Path(table)).versions()["version"]]
    app = open_page("data", table, tab="Changes", commits="last 5 commits")
    assert not app.exception
    assert "files and deletion vectors" in text(app)
    assert set(app.dataframe[0].value["version"]) == set(versions)
    app.button(key="read-changes").click().run()
    assert not app.exception
    assert app.dataframe[1].value["_change_type"].value_counts().to_dict() == {"insert": 10, "delete": 2}
