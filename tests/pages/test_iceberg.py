"""The second format on every page: no page knows it, and none breaks on it."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from tests.builders.iceberg import IcebergHistory
from tests.pages.app import TABLE_PAGES, open_page, text

pytestmark = pytest.mark.app

FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "day", "required": False, "type": "date"},
    {"id": 3, "name": "note", "required": False, "type": "string", "doc": "what was said"},
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two partitions, a renamed column, a deletion vector and an equality delete."""
    history = IcebergHistory(
        tmp_path_factory.mktemp("iceberg") / "notes", FIELDS, [(2, "month", "day_month")], version=3
    )
    first = history.append("a", [{"id": i, "day": date(2024, 1, i + 1), "note": "x" * i} for i in range(9)])
    history.append("b", [{"id": 100, "day": date(2024, 2, 1), "note": None}])
    history.delete_vectors("v", {first: [0, 1]})
    history.evolve([*FIELDS[:2], {**FIELDS[2], "name": "remark"}])
    history.delete_equal("d", [history.fields["id"]], [{"id": 3}], partition={"day_month": 648})
    return history.address


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_every_page_draws_it(page: str, table: str) -> None:
    app = open_page(page, table)
    assert not app.exception
    assert "Iceberg" in text(app)


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_every_page_draws_a_table_without_a_snapshot(page: str, tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "empty", FIELDS)
    assert not open_page(page, history.address).exception


def test_partitions_are_named_as_people_read_them(table: str) -> None:
    frame = open_page("partitions", table).dataframe[0].value
    assert frame["partition"].to_list() == ["day_month=2024-01", "day_month=2024-02"]


def test_a_table_whose_manifests_are_gone_says_so_and_shows_its_commits(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    history.append("a", [{"id": 1, "day": None, "note": None}])
    (history.root / "metadata" / "manifest-1001.avro").unlink()
    app = open_page("timeline", history.address)
    assert not app.exception
    assert "1 commit" in text(app)


def test_metadata_that_is_none_is_a_designed_error(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    (history.root / "metadata" / "v2.metadata.json").write_text(json.dumps({"format-version": 9}))
    app = open_page("overview", history.address)
    assert not app.exception
    assert "format version 9" in text(app)
