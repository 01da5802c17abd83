"""The data page: the price first, then the rows; versions, moments and filters; what goes wrong is said."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakeview.app.query.budget import BUDGETS
from tests.builders.actions import struct
from tests.builders.history import DeltaHistory
from tests.pages import tables
from tests.pages.app import open_page, text


def test_the_filter_that_is_suggested_is_one_of_this_table(good: Path) -> None:
    assert open_page("data", good).text_input(key="where").placeholder == "month IS NOT NULL"


@pytest.mark.parametrize("limit", ["CHEAP", "CHEAP_FILES"])
def test_rows_are_there_on_arrival_where_reading_is_cheap(
    limit: str, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page("data", good)
    assert not app.exception
    assert "Rows of v6" in text(app)
    assert app.dataframe[0].value.shape == (60, 4)
    monkeypatch.setattr(f"lakeview.app.query.budget.{limit}", 2)
    app = open_page("data", good)
    assert app.button(key="read").label.startswith("Read rows: reads at most 3 files, ")
    assert "Rows of v6" not in text(app)


@pytest.mark.parametrize(
    ("stats", "cost", "amount"),
    [({"numRecords": 60}, "1 file", "the first 50 of 180]"), (None, "3 files", "the first 50]")],
    ids=["counted", "not counted"],
)
def test_the_first_rows_cost_the_files_that_hold_them(
    tmp_path: Path, stats: dict[str, int] | None, cost: str, amount: str
) -> None:
    history = DeltaHistory(tmp_path / "t").create({"id": "long"})
    for name in "abc":
        history.commit(history.data(name, {"id": list(range(60))}, stats=stats))
    app = open_page("data", tmp_path / "t", limit="50")
    assert not app.exception
    assert app.button(key="read").label.startswith(f"Read rows: reads at most {cost}, ")
    assert amount in text(app)
    assert len(app.dataframe[0].value) == 50


def test_rows_of_a_commit_are_there_on_arrival(good: Path) -> None:
    app = open_page("data", good, version="2", tab="Changes")
    assert not app.exception
    assert "**Changed rows**" in text(app)


@pytest.mark.parametrize("tab", ["Rows", "SQL"])
def test_a_version_that_is_not_whole_says_so_in_the_first_line(tab: str, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create({"id": "long"})
    rows = {"id": list(range(60))}
    missing = history.data("b", rows, stats={"numRecords": 60})
    history.commit(history.data("a", rows, stats={"numRecords": 60}), missing)
    (tmp_path / "t" / missing["add"]["path"]).unlink()
    app = open_page("data", tmp_path / "t", limit="50", tab=tab)
    line = "**v1 is not whole: 1 of its data files is missing from the store; the log records 120 rows in 1 column; "
    assert f":red[:material/error:] {line}only those of the other files can be read**" in text(app)
    assert "v1 has 120 rows" not in text(app)
    assert ("the first 50; the log records 120 rows" in text(app)) == (tab == "Rows")


def test_rows_are_shown_once_asked_for(good: Path) -> None:
    app = open_page("data", good)
    app.button(key="read").click().run()
    assert not app.exception
    assert app.dataframe[0].value.shape == (60, 4)


_MAP = {"type": "map", "keyType": "date", "valueType": "long", "valueContainsNull": True}
_PAIRS = [(date(2026, 3, 1), 2**60), (date(2026, 3, 2), None)]
_TEXT = '{"2026-03-01": 1152921504606846976, "2026-03-02": null}'
_DAYS = pa.map_(pa.date32(), pa.int64())
MAPS: dict[str, tuple[Any, pa.DataType, Any, str]] = {
    "a map": (_MAP, _DAYS, _PAIRS, _TEXT),
    "a map in a list": (
        {"type": "array", "elementType": _MAP, "containsNull": True}, pa.list_(_DAYS), [_PAIRS], f"[{_TEXT}]",
    ),
    "a map in a struct": (struct(x=_MAP), pa.struct({"x": _DAYS}), {"x": _PAIRS}, f'{{"x": {_TEXT}}}'),
}  # fmt: skip


@pytest.mark.parametrize(("declared", "arrow_type", "value", "expected"), MAPS.values(), ids=list(MAPS))
def test_maps_are_shown_as_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, declared: Any, arrow_type: pa.DataType, value: Any, expected: str
) -> None:
    history = DeltaHistory(tmp_path / "t").create({"m": declared})
    history.commit(history.data("f", {"m": pa.array([value, None], arrow_type)}))
    app = open_page("data", tmp_path / "t")
    app.button(key="read").click().run()
    assert not app.exception
    column = app.dataframe[0].value["m"]
    assert column[0] == expected
    assert column.isna().to_list() == [False, True]
    assert "automatic fixes" not in caplog.text


def test_a_filter_lowers_the_price(good: Path) -> None:
    app = open_page("data", good, where="month = 2 AND delay > 30")
    assert app.button(key="read").label.startswith("Read rows: reads 1 file, ")
    assert "skipped: 2 by partition" in text(app)
    assert "columns; those where month = 2 AND delay > 30 are in at most 1 of 3 files, " in text(app)
    app.button(key="read").click().run()
    rows = app.dataframe[0].value
    assert set(rows["month"]) == {2}
    assert rows["delay"].min() > 30


def test_a_filter_can_be_chosen_instead_of_written(good: Path) -> None:
    app = open_page("data", good)
    app.selectbox(key="filter-column").set_value("carrier").run()
    app.text_input(key="filter-value").set_value("UA").run()
    app.button(key="read").click().run()
    assert not app.exception
    assert set(app.dataframe[0].value["carrier"]) == {"UA"}


def test_a_value_of_another_type_is_refused(good: Path) -> None:
    app = open_page("data", good)
    app.selectbox(key="filter-column").set_value("delay").run()
    app.text_input(key="filter-value").set_value("much").run()
    assert not app.exception
    assert "'much' is no integer" in text(app)


def test_a_filter_that_no_file_can_satisfy_reads_nothing(good: Path) -> None:
    app = open_page("data", good, where="month = 12")
    assert "No file can hold such rows" in text(app)


@pytest.mark.parametrize("page", ["data", "pruning"])
def test_a_comparison_with_null_comes_with_what_to_write(page: str, good: Path) -> None:
    app = open_page(page, good, where="delay = NULL")
    assert not app.exception
    assert "**delay = NULL is true for no row: write delay IS NULL**" in text(app)


def test_a_filter_that_is_no_sql_is_refused(good: Path) -> None:
    app = open_page("data", good, where="delay >>> 3 and", tab="Profile")
    assert not app.exception
    assert "The condition 'delay >>> 3 and' cannot be read" in text(app)
    assert "Null share by column" in text(app)


def test_a_filter_on_a_column_that_is_not_there_is_refused(good: Path) -> None:
    app = open_page("data", good, where="nope > 3")
    assert not app.exception
    assert "There is no column nope" in text(app)
    assert "**v6 has 60 rows in 4 columns" in text(app)


def test_a_filter_whose_types_do_not_fit_is_refused(good: Path) -> None:
    app = open_page("data", good, where="delay > 'x'")
    app.button(key="read").click().run()
    assert not app.exception
    assert "The rows cannot be filtered by delay > 'x'" in text(app)


def test_rows_of_a_moment(good: Path) -> None:
    app = open_page("data", good, when="at a moment")
    app.datetime_input(key="moment").set_value(datetime(2026, 3, 3, 12, tzinfo=UTC)).run()
    assert not app.exception
    assert "v2 was the latest at 2026-03-03 12:00 UTC" in text(app)


@pytest.mark.parametrize("tab", ["Rows", "Profile"])
def test_the_first_line_counts_the_rows_of_the_moment(good: Path, tab: str) -> None:
    app = open_page("data", good, when="at a moment", moment="2026-03-03T12:00:00", tab=tab)
    assert not app.exception
    assert "**v2 has " in text(app)


def test_a_moment_before_the_first_version_is_refused(good: Path) -> None:
    app = open_page("data", good, when="at a moment")
    app.datetime_input(key="moment").set_value(datetime(2026, 2, 1, tzinfo=UTC)).run()
    assert not app.exception
    assert "version-not-found" in text(app)


@pytest.mark.parametrize(
    ("ids", "limit", "amount"), [((0, 50), "50", "the first 50"), ((0, 60), "100", "all that can be read, 60")]
)
def test_rows_of_the_other_files_are_shown_where_the_first_is_missing(
    ids: tuple[int, int], limit: str, amount: str, tmp_path: Path
) -> None:
    history = DeltaHistory(tmp_path / "t").create({"id": "long"})
    files = [history.data(name, {"id": list(range(60))}, stats={"numRecords": 60}) for name in ("a", "b")]
    history.commit(*files)
    (tmp_path / "t" / files[0]["add"]["path"]).unlink()
    app = open_page("data", tmp_path / "t", limit=limit)
    assert app.dataframe[0].value["id"].to_list() == list(range(*ids))
    assert amount in text(app)


def test_a_missing_data_file_is_named_and_the_rest_stays(tmp_path: Path) -> None:
    root = tables.file_missing(tmp_path / "flights")
    app = open_page("data", root, where="month = 1")
    app.button(key="read").click().run()
    assert not app.exception
    assert "data-file-missing" in text(app)
    again = text(app.run())
    assert "but not in the store; restore it, or read another version" in again, "what to do is not lost"
    assert "load-1.parquet" in text(app)


@pytest.mark.parametrize("limit", [50, 1000])
def test_the_limit_holds(limit: int, tmp_path: Path) -> None:
    table = tables.LogWriter(tmp_path / "wide").create()
    table.commit("WRITE", table.add("load", tables.flights(1, 1200), 1))
    app = open_page("data", tmp_path / "wide", limit=str(limit))
    app.button(key="read").click().run()
    assert app.dataframe[0].value.shape[0] == limit


def test_a_link_to_a_tab_that_is_gone_shows_the_rows(good: Path) -> None:
    app = open_page("data", good, tab="Nulls over time")
    assert not app.exception
    assert app.button(key="read").label.startswith("Read rows")


def test_more_than_the_budget_is_not_read(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUDGETS, "256 MiB", 100)
    app = open_page("data", good, tab="SQL", sql="select 1 as one from t", budget="256 MiB")
    assert app.button(key="run").disabled
    app = open_page("data", good, where="month = 2", budget="256 MiB")
    assert app.button(key="read").disabled
    assert "choose a larger one, or a filter that skips files." in text(app)
    app = open_page("data", good, tab="Changes", commits="last 5 commits", budget="256 MiB")
    assert app.button(key="read-changes").disabled
    assert "choose a larger one, or fewer commits." in text(app), "this tab has no filter"


def test_changes_are_told_by_the_log_before_they_are_read(good: Path) -> None:
    app = open_page("data", good, tab="Changes", commits="last 5 commits")
    assert not app.exception
    rows_read = app.dataframe[0].value
    assert rows_read["version"].to_list() == ["v6", "v5", "v3", "v2"]
    assert rows_read["rows"].fillna(-1).to_list() == [-1, 60, 20, 20]  # what was removed is not counted in this log
    assert app.button(key="read-changes").label.startswith("Read changed rows: reads at most 4 files, ")
    app.button(key="read-changes").click().run()
    assert not app.exception
    rows = app.dataframe[1].value
    assert list(rows.columns[:3]) == ["_change_type", "_commit_version", "_commit_timestamp"]
    assert set(rows["_commit_version"]) <= {"v2", "v3", "v5", "v6"}


def test_changes_since_the_version_compared_with(good: Path) -> None:
    app = open_page("data", good, tab="Changes", base="4", commits="since the version compared with")
    assert app.dataframe[0].value["version"].to_list() == ["v6", "v5"]


def test_a_base_that_comes_later_has_no_changes(good: Path) -> None:
    app = open_page("data", good, tab="Changes", version="2", base="4", commits="since the version compared with")
    assert "No commit leads to this version" in text(app)


def test_a_commit_that_touched_no_row_says_so(good: Path) -> None:
    app = open_page("data", good, tab="Changes", version="4")
    assert "No row changed" in text(app)


def test_a_tab_that_the_link_does_not_know_takes_no_choice_away(good: Path) -> None:
    app = open_page("data", good, tab="sql")
    app.session_state["tab"] = "SQL"
    app.run()
    assert [area.label for area in app.text_area] == ["SQL"]
    assert app.query_params["tab"] in ("SQL", ["SQL"])
