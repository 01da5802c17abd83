"""A table of very many files: what takes seconds is read where it is asked for, and told to be unread elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeview.app.pages import PAGES
from lakeview.delta.table import DeltaTable
from lakeview.inspection import answers, statistics
from tests.builders.actions import add
from tests.builders.history import DeltaHistory
from tests.pages.app import open_page, text

pytestmark = [pytest.mark.app, pytest.mark.usefixtures("fresh_server")]


@pytest.fixture(autouse=True)
def statistics_asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Three files are very many here. What was asked of statistics."""
    monkeypatch.setattr(answers, "MAX_FILES_AT_A_GLANCE", 2)
    calls: list[object] = []
    own = DeltaTable.statistics

    def watched(self: DeltaTable, version: int | None = None, columns: object = None) -> object:
        calls.append(columns)
        return own(self, version, columns)  # type: ignore[arg-type]  # handed on as it came

    monkeypatch.setattr(DeltaTable, "statistics", watched)
    return calls


def test_the_overview_says_that_their_statistics_were_not_read(good: Path, statistics_asked: list[object]) -> None:
    app = open_page("overview", good)
    assert not app.exception
    glance = next(f.value for f in app.dataframe if "since" in f.value.columns)
    assert set(glance["statistics"]) == {"not read"}
    assert glance["null"].isna().all()
    assert not statistics_asked


@pytest.mark.parametrize("page", ["partitions", "health", "timeline", "files"])
def test_pages_that_show_none_do_not_read_them(good: Path, page: str, statistics_asked: list[object]) -> None:
    assert not open_page(page, good).exception
    assert not statistics_asked


def test_pruning_reads_them_once_and_the_past_when_it_is_asked_for(good: Path, statistics_asked: list[object]) -> None:
    app = open_page("pruning", good)
    assert not app.exception
    assert statistics_asked == [None]
    assert "at earlier versions" in str([e.label for e in app.expander])
    opened = open_page("pruning", good, **{"course-fold": "True"})
    assert not opened.exception
    assert len(opened.get("vega_lite_chart")) > len(app.get("vega_lite_chart"))


def test_pruning_says_by_how_many_files_it_estimates(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "MAX_RANKED_FILES", 2)
    monkeypatch.setattr(statistics, "SAMPLED_FILES", 2)
    app = open_page("pruning", good)
    assert not app.exception
    assert text(app).count(", estimated from 2 of 3 files") == 3


def test_pruning_says_that_a_sample_alone_has_no_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    DeltaHistory(tmp_path / "t").create().commit(*(add(f"f{number}") for number in range(3)))
    monkeypatch.setattr(statistics, "MAX_RANKED_FILES", 2)
    monkeypatch.setattr(statistics, "SAMPLED_FILES", 2)
    page = text(open_page("pruning", tmp_path / "t"))
    assert "No file has min and max of a column, estimated from 2 of 3 files." in page


def test_compare_reads_those_of_both_versions_when_it_is_asked_for(good: Path, statistics_asked: list[object]) -> None:
    app = open_page("compare", good)
    assert not app.exception
    assert not statistics_asked
    assert "Statistics shift" in str([e.label for e in app.expander])
    unfolded = open_page("compare", good, **{"shift-fold": "True"})
    assert not unfolded.exception
    assert statistics_asked == [None, None]


def test_the_schema_page_reads_them(good: Path, statistics_asked: list[object]) -> None:
    assert not open_page("schema", good).exception
    assert statistics_asked == [None]


def test_the_files_page_reads_those_of_the_column_that_is_chosen(good: Path, statistics_asked: list[object]) -> None:
    app = open_page("files", good, **{"statistics-of": "carrier"})
    assert not app.exception
    assert statistics_asked == [["carrier"]]


LISTS_FILES = {"overview", "timeline", "health"}


@pytest.mark.parametrize("page", [name for name, entry in PAGES.items() if entry.of_table])
def test_the_folder_is_listed_where_it_is_shown_what_can_be_read(
    good: Path, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listing a million files takes as long as reading their statistics."""
    looked = []
    own = DeltaTable.versions

    def watched(self: DeltaTable, *, look: bool = True) -> object:
        looked.append(look)
        return own(self, look=look)

    monkeypatch.setattr(DeltaTable, "versions", watched)
    app = open_page(page, good, version="3", base="2")
    assert not app.exception
    assert (True in looked) == (page in LISTS_FILES)
    assert len(app.selectbox(key="pick_version").options) > 3
