"""The compare page: a sentence, the differences, rows at a price; and without a base the sensible ones."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from lakeview import open_table, views
from lakeview.app.compare.rows import cell_widths
from lakeview.app.query import budget
from lakeview.app.query.answers import Answer
from lakeview.app.widths import heading_width
from lakeview.model.snapshot import Snapshot
from tests.builders.actions import remove
from tests.builders.feeds import ids_file
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.pages.app import open_page, text

pytestmark = pytest.mark.app


def test_without_a_base_the_version_before_is_compared_and_others_are_offered(good: Path) -> None:
    app = open_page("compare", good)
    assert not app.exception
    assert "flights from v5" in app.code[0].value
    assert "vs previous" in app.selectbox(key="pick_base").options
    labels = {button.key: button.label for button in app.button}
    assert "the version before · v5" in labels["offer-5"]
    assert "before the last schema change · v3" in labels["offer-3"]
    app.button(key="offer-3").click().run()
    assert app.query_params["base"] == "3"
    assert "no comparison" not in app.selectbox(key="pick_base").options
    assert "flights from v3" in app.code[0].value


def test_two_versions_are_told_in_one_sentence(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = []
    difference = views.compare.versions.partition_difference

    def count(before: Snapshot, after: Snapshot) -> pl.DataFrame:
        pairs.append((before.version, after.version))
        return difference(before, after)

    monkeypatch.setattr(views.compare.versions, "partition_difference", count)
    app = open_page("compare", good, version="4", base="1")
    assert not app.exception
    (sentence,) = (code.value for code in app.code)
    assert sentence.startswith("flights from v1 (2026-03-02) to v4 (2026-03-05): +40 rows, 1 column added")
    assert "Rows 60 +40 from 20" in text(app)
    assert len(pairs) <= 1  # of a million files it takes a second
    changes = app.dataframe[0].value
    assert changes.to_dict("records")[0]["column"] == "cancelled"


def test_rows_that_cost_little_are_read_on_arrival(good: Path) -> None:
    app = open_page("compare", good, version="3", base="1")
    assert app.button(key="compare-rows").label.startswith("Compare rows: reads 2 files")
    assert not app.exception
    assert ":green[**+40**] rows" in text(app)
    assert "exact, of 40 rows read" in text(app)
    assert "No null share moved by 0.1 %, no bound of one by 1.0 %; min or max of" in text(app)


def test_rows_of_one_key_are_shown_as_one_that_changed(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create({"same": "long", "x": "long", "id": "long"})
    history.commit(history.data("a", {"same": [7, 7, 7], "x": [10, 20, 30], "id": [1, 2, 3]}))
    history.commit(remove("a"), history.data("b", {"same": [7, 7, 7], "x": [10, 21, 40], "id": [1, 2, 4]}))
    app = open_page("compare", tmp_path / "t")
    assert not app.exception
    assert app.multiselect(key="key").value == ["id"]
    diff = app.dataframe[-1].value
    assert diff["_changed_columns"].fillna("").tolist() == ["1", "", ""]
    assert diff.columns.tolist() == ["_change", "_changed_columns", "id", "x", "same"]
    assert diff.drop(columns="_changed_columns").values.tolist() == [
        ["~", "2", "20 → 21", "7"],
        ["+", "4", "40", "7"],
        ["\N{MINUS SIGN}", "3", "30", "7"],
    ]
    open_page("compare", tmp_path / "t", kinds="~")
    app.button_group(key="kinds").set_value(["+"]).run()
    assert app.dataframe[-1].value["id"].tolist() == ["4"]


def test_of_many_different_rows_the_first_are_shown_and_all_are_there_to_download(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create({"id": "long"})
    history.commit(history.data("a", {"id": [1]}))
    history.commit(history.data("b", {"id": list(range(2, 302))}))
    app = open_page("compare", tmp_path / "t")
    assert not app.exception
    assert "the first 250 of 300; the header's download has all" in text(app)
    assert len(app.dataframe[-1].value) == 250


def test_kinds_are_counted_among_the_rows_that_are_there_and_say_so(
    good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = Answer(pl.DataFrame({"_difference": [1, 1], "month": [2, 3]}), {"gains": 40, "losses": 0, "rows_read": 60})
    monkeypatch.setattr("lakeview.app.query.runner.run", lambda *_, **__: some)
    app = open_page("compare", good, version="3", base="1")
    assert not app.exception
    (pills,) = app.get("button_group")
    assert pills.proto.label == "Show, of the first 2 different rows"


@pytest.mark.parametrize("base", ["99", "s99"])
def test_a_base_that_is_no_version_is_called_the_version_compared_with(good: Path, base: str) -> None:
    app = open_page("compare", good, version="3", base=base)
    assert not app.exception
    assert ":gray[Where] &ensp; the version compared with" in text(app)


def test_a_base_may_come_later(good: Path) -> None:
    app = open_page("compare", good, version="1", base="3")
    assert not app.exception
    assert ":orange[**\N{MINUS SIGN}40**] rows &ensp;" in text(app)


def test_files_of_the_versions_between_need_not_be_there(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create({"id": "long"})
    history.commit(ids_file(history, "a", 1)).commit(remove("a"), ids_file(history, "b", 1, 2))
    history.commit(remove("b"), ids_file(history, "c", 1, 2, 3))
    history.remove("b")
    app = open_page("compare", tmp_path / "t", version="3", base="1")
    assert not app.exception
    assert ":green[**+2**] rows" in text(app)


def test_versions_of_the_same_files_have_no_rows_to_compare(good: Path) -> None:
    app = open_page("compare", good, version="6", base="4")
    assert not app.exception
    assert "No row changed." in text(app)
    assert "The same in both versions: the schema, properties and protocol, the files" in text(app)


def test_a_price_above_the_budget_is_not_paid(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(budget.BUDGETS, "256 MiB", 10)
    app = open_page("compare", good, version="3", base="1", budget="256 MiB")
    assert not app.exception
    assert app.button(key="compare-rows").disabled
    assert "More than the budget: choose a larger one, or versions closer together." in text(app)
    monkeypatch.setattr(budget, "BUDGETS", dict.fromkeys(budget.BUDGETS, 10))
    app = open_page("compare", good, version="3", base="1")
    assert "More than any budget: choose versions closer together." in text(app), "there is no larger one"


@pytest.mark.usefixtures("own_processes")
def test_a_comparison_that_takes_too_long_is_ended_and_not_begun_again(
    good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(budget.SECONDS, "10 s", 0.000_1)
    monkeypatch.setattr("lakeview.app.query.runner.STEP", 0.001)
    monkeypatch.setattr("lakeview.app.query.runner.GRACE", 0.0)
    app = open_page("compare", good, version="3", base="1", seconds="10 s")
    assert not app.exception
    assert "The comparison was stopped after 0.0001 seconds" in text(app)
    app.run()
    assert "**Ended without an answer** :gray[the comparison was stopped after 0.0001 seconds" in text(app)
    assert app.button(key="compare-rows").label.startswith("Compare rows: reads 2 files")


def test_a_comparison_that_stops_says_what_differs_for_certain_and_what_was_compared(
    good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = Answer(
        pl.DataFrame({"_difference": [1], "month": [2]}),
        {"gains": 1, "losses": 0, "rows_read": 30, "rows_undecided": 2, "stopped": 1},
    )
    monkeypatch.setattr("lakeview.app.query.runner.run", lambda *_, **__: part)
    app = open_page("compare", good, version="3", base="1")
    assert not app.exception
    page_text = text(app)
    assert "Stopped after 30 s" in page_text
    assert "At least :green[**+1**] row" in page_text
    assert "a part, of 30 rows of 2 files read" in page_text
    assert list(app.dataframe[-1].proto.column_order) == ["_change", "month"], "no row changed: no count of columns"
    assert "2 rows more are in one version so far" in page_text


def test_a_comparison_is_kept_while_one_looks_around(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_page("compare", good, version="3", base="1")
    app.button(key="compare-rows").click().run()
    monkeypatch.setattr("lakeview.app.query.runner.run", None)
    app.run()
    assert not app.exception
    assert ":green[**+40**] rows" in text(app)


def test_a_column_of_an_unknown_type_is_left_out(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create({"id": "long", "odd": "interval day"})
    history.commit(ids_file(history, "a", 1)).commit(ids_file(history, "b", 2, 3))
    app = open_page("compare", tmp_path / "t", version="2", base="1")
    assert not app.exception
    assert ":green[**+2**] rows" in text(app)
    assert "without odd, of a type that cannot be read" in text(app)


def test_rows_of_the_second_format(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", [{"id": 1, "name": "id", "required": False, "type": "long"}], version=3)
    first = history.append("a", [{"id": i} for i in range(9)])
    base = open_table(history.address).latest_version
    history.delete_vectors("v", {first: [0, 1]})
    latest_version = open_table(history.address).latest_version
    app = open_page("compare", history.address, version=str(latest_version), base=str(base))
    assert not app.exception
    assert ":orange[**\N{MINUS SIGN}2**] rows &ensp;" in text(app)
    assert sorted(app.dataframe[-1].value["id"]) == ["0", "1"]


def test_a_number_far_below_is_as_wide_as_it_is_drawn() -> None:
    rows = pl.DataFrame({"^kWh$": [*[None] * 50, "9999999.5000"], "address": ["a street " * 40] * 51})
    assert cell_widths(rows) == {"^kWh$": heading_width("9999999.5000")}
