"""The lake page: every table below a root, each read on its own; what cannot be read is listed with its reason."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from lakeview.app.components import ROW_HEIGHT, escape
from lakeview.app.lake import panels, survey
from lakeview.app.pages import PAGES
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.pages import tables
from tests.pages.app import open_page, text
from tests.pages.test_hostile_text import LIVE


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    below = tmp_path_factory.mktemp("lake")
    for build in (tables.good, tables.empty, tables.silent, tables.corrupt, tables.unsupported):
        (below / "silver").mkdir(exist_ok=True)
        build(below / "silver" / build.__name__)
    return below


def read(root: Path | str, **parameters: str) -> AppTest:
    """The page once all logs are read."""
    app = open_page("lake", root=str(root), **parameters)
    assert survey.table_survey(str(root), int(parameters.get("read-at-most", "200"))).done.wait(30)
    return app.run()


def listing(app: AppTest) -> Any:
    return app.dataframe[0].value


def figures(app: AppTest) -> Any:
    return app.dataframe[1].value.set_index("name")


def test_every_table_is_listed_and_the_unreadable_come_first(root: Path) -> None:
    app = read(root)
    assert not app.exception
    rows = listing(app)
    assert sorted(rows["name"]) == [f"silver/{n}" for n in ("corrupt", "empty", "good", "silent", "unsupported")]
    assert set(rows["name"][:2]) == {"silver/corrupt", "silver/unsupported"}
    assert [table.proto.row_height for table in app.dataframe] == [ROW_HEIGHT, ROW_HEIGHT]
    assert "timeTurner" in rows.set_index("name").loc["silver/unsupported", "remark"], "why, not what to do"
    assert text(app).index("5 tables: 2 unreadable") < text(app).index("Tables under a root")


def test_a_remark_that_a_narrow_page_cuts_stands_whole_below_the_table(root: Path, tmp_path: Path) -> None:
    app = read(root)
    remark = listing(app).set_index("name").loc["silver/unsupported", "remark"]
    assert f"silver/unsupported &ensp; :gray[{escape(remark)}]" in text(app)
    tables.good(tmp_path / "t")
    assert "t &ensp; :gray[" not in text(read(tmp_path)), "a short one stands in its row alone"


def test_the_verdict_is_that_of_the_overview_and_costs_stand_beside(root: Path) -> None:
    app = read(root)
    rows = figures(app)
    assert not listing(app)["remark"].str.contains("judged by").any()
    assert (rows.loc["silver/good", "small"], rows.loc["silver/good", "versions"]) == (100, 7)
    assert rows.loc["silver/good", "retained"].endswith("KiB")
    assert rows.loc["silver/corrupt", ["small", "versions", "retained"]].isna().all()
    app = read(root, **{"lake-table": "silver/good"})
    verdict = next(m.value for m in app.markdown if m.value.startswith("Readable"))
    overview = open_page("overview", root / "silver" / "good")
    assert verdict in text(overview)


def test_tables_of_the_second_format_are_judged_alike(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", [{"id": 1, "name": "id", "required": False, "type": "long"}])
    history.append("a", [{"id": 1}, {"id": 2}])
    app = read(tmp_path)
    assert not listing(app)["remark"].str.contains("judged by").any()
    assert figures(app)["versions"].to_list() == [1]


def test_a_large_table_is_judged_by_its_newest_version_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.good(tmp_path / "t")
    monkeypatch.setattr(sys.modules["lakeview.views.lake"], "MOST_FILES", 2)
    app = read(tmp_path)
    assert listing(app)["remark"][0].endswith("; judged by newest version, commits, log listing")
    assert figures(app)["retained"].isna().all()


def test_a_share_of_small_files_just_below_all_is_not_all(tmp_path: Path) -> None:
    tables.silent(tmp_path / "t")
    app = read(tmp_path)
    rows = survey.table_survey(str(tmp_path), 200)
    rows.results = [result and replace(result, small_share=0.9998) for result in rows.results]
    assert figures(app.run())["small"].to_list() == [99.98]


def test_an_unreadable_table_says_why(root: Path) -> None:
    rows = survey.Survey(str(root), 200, survey.read_table)
    assert rows.done.wait(30)
    verdicts = dict(survey.tables_of(rows).select("name", "verdict").iter_rows())
    assert "timeTurner" in verdicts["silver/unsupported"]
    assert verdicts["silver/corrupt"]


def test_only_so_many_logs_are_read(root: Path) -> None:
    survey_found = survey.Survey(str(root), 2, survey.read_table)
    assert survey_found.done.wait(30)
    assert survey_found.pending == 0
    assert survey.tables_of(survey_found)["state"].to_list().count("not read") == 3


def test_states_and_names_narrow_the_list(root: Path) -> None:
    assert set(listing(read(root, state="unreadable"))["name"]) == {"silver/corrupt", "silver/unsupported"}
    assert list(listing(read(root, name="goo"))["name"]) == ["silver/good"]
    assert "No table passes these filters" in text(read(root, name="nowhere"))


def test_a_chosen_table_links_into_every_page(root: Path) -> None:
    app = read(root, **{"lake-table": "silver/good"})
    assert not app.exception
    titles = [entry.title for entry in PAGES.values() if entry.of_table]
    labels = [link.label for link in app.page_link]
    assert all(any(title in label for label in labels) for title in titles)


def test_the_columns_of_all_tables_are_searched(root: Path) -> None:
    app = open_page("lake", root=str(root), tab="Columns")
    assert survey.column_survey(str(root), 200).done.wait(30)
    app.run()
    assert not app.exception
    every = app.dataframe[0].value
    assert {"silver/good", "silver/silent"} <= set(every["table"])
    app.number_input(key="nulls-above").set_value(5.0).run()
    some = app.dataframe[0].value
    assert next(iter(some["column"])) == "cancelled"
    assert (some["null"] > 5).all()
    app.text_input(key="column-name").set_value("nothing of the kind").run()
    assert "No column passes this search" in text(app)


def test_a_root_without_tables_says_so(tmp_path: Path) -> None:
    for tab in ("Tables", "Columns"):
        page_text = text(open_page("lake", root=str(tmp_path), tab=tab))
        assert "No table was found below this root" in page_text
        assert "0 columns" not in page_text


def test_no_root_says_what_to_type() -> None:
    app = open_page("lake")
    assert not app.exception
    assert "No root is named" in text(app)


@pytest.mark.usefixtures("fresh_server")
def test_a_root_outside_the_allowed_ones_is_refused(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEVIEW_ROOTS", str(tmp_path))
    app = open_page("lake", root=str(root))
    assert not app.exception
    assert "outside-roots" in text(app)
    assert not app.dataframe


def test_the_configured_root_is_the_first_one_shown(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEVIEW_ROOTS", str(root))
    app = open_page("lake")
    assert not app.exception
    assert app.text_input(key="root").value == str(root)
    assert "5 tables" in text(app)


def test_names_are_no_markup(tmp_path: Path) -> None:
    evil = "![m](x) [l](x) :red[r] $e$ `c`"
    DeltaHistory(tmp_path / evil).create({"a": "long"})
    app = read(tmp_path, **{"lake-table": evil})
    assert not app.exception
    assert [value for value in (m.value for m in app.markdown) if LIVE.search(value)] == []


def fragments_of(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """The fragments that a page registers from now on."""
    fragments: list[Callable[[], None]] = []

    def register(draw: Callable[[], None]) -> Callable[[], None]:
        fragments.append(draw)
        return draw

    monkeypatch.setattr(st, "fragment", lambda **_: register)
    return fragments


def test_a_reading_has_most_of_the_time_between_two_drawings_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    reading: Any = SimpleNamespace(pending=1, reads=2, done=SimpleNamespace(wait=waits.append))
    clock = iter([10.0, 13.0, 30.0, 30.5, 40.0, 40.1])
    monkeypatch.setattr(panels, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(st, "session_state", {})
    fragments = fragments_of(monkeypatch)
    panels.progressive(reading, lambda _: None)  # draws once
    for _ in range(2):
        fragments[0]()
    assert waits[:2] == [0, panels.PATIENCE]
    assert sum(waits[2:]) == panels.PAUSE * (3.0 + 0.5)


def test_a_click_does_not_wait_for_the_next_drawing_of_a_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    class Click(Exception):
        """Ends a run, as Streamlit does where the run reads the state."""

    class State(dict[str, Any]):
        is_clicked = False

        def get(self, key: str, default: Any = None) -> Any:
            if self.is_clicked:
                raise Click
            return super().get(key, default)

    waits: list[float] = []
    reading: Any = SimpleNamespace(pending=1, reads=2, done=SimpleNamespace(wait=waits.append))
    clock = iter([10.0, 40.0])
    monkeypatch.setattr(panels, "perf_counter", lambda: next(clock))
    state = State()
    monkeypatch.setattr(st, "session_state", state)
    fragments = fragments_of(monkeypatch)
    panels.progressive(reading, lambda _: None)
    state.is_clicked = True
    waits.clear()
    with pytest.raises(Click):
        fragments[0]()
    assert sum(waits) < 1.0
