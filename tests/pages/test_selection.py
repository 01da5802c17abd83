"""The URL holds what is looked at: links open it, pickers write it, other pages keep it, a refresh finds commits."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.state.query_params import QueryParams
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import ElementTree

from lakeview.app import cache, selection, widget_state
from lakeview.app import tables as app_tables
from lakeview.app.frame.pickers import NO_COMPARISON, version_text
from lakeview.app.lake import survey
from lakeview.app.pages import PAGES
from tests.pages import tables
from tests.pages.app import open_page, text


def test_a_link_opens_the_version_it_names(good: Path) -> None:
    app = open_page("files", good, version="2")
    assert "v2" in text(app)
    assert app.selectbox(key="pick_version").value == "2"
    assert "You are looking at v2, 4 versions behind the latest" in text(app).replace("**", "")


def test_a_link_to_no_version_does_not_say_that_it_is_shown(good: Path) -> None:
    page_text = text(open_page("files", good, version="9999"))
    assert "**v9999 is no version of this table.**" in page_text
    assert "You are looking at" not in page_text


def test_a_link_without_a_version_says_which_is_shown(good: Path) -> None:
    app = open_page("overview", good)
    assert app.query_params["version"] == "6"


VERSION_SCRIPT = """
import streamlit as st
from lakeview.model.errors import LakeviewError
from lakeview.app import selection

try:
    st.text(selection.current())
except LakeviewError as error:
    st.text(error)
"""


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("version", "abc", "the link asks for version 'abc', which is no number"),
        ("base", "abc", "the link compares with version 'abc', which is no number"),
        ("version", "1e3", "the link asks for version '1e3', which is no number"),
        ("version", "\x00\u202e7", r"the link asks for version '\x00\u202e7', which is no number"),
        (
            "version",
            "9" * 5_000,
            f"the link asks for version '{'9' * 39}\N{HORIZONTAL ELLIPSIS}', a number that no version has",
        ),
        ("version", str(1 << 63), f"the link asks for version '{1 << 63}', a number that no version has"),
        ("version", "v7", "version=7"),
        ("version", str(-(1 << 63)), f"version={-(1 << 63)}"),
    ],
    ids=lambda text: text[:20],
)
def test_versions_of_a_link_are_numbers_or_said_to_be_none(key: str, value: str, message: str) -> None:
    app = AppTest.from_string(VERSION_SCRIPT)
    app.query_params.update({"table": "t", key: value})
    app.run()
    assert not app.exception
    assert message in app.text[0].value


def test_another_page_keeps_the_selection(good: Path) -> None:
    app = open_page("overview", good, version="3", base="1")
    app.switch_page(PAGES["files"].file).run()
    assert app.query_params["table"] == str(good)
    assert app.query_params["version"] == "3"
    assert app.query_params["base"] == "1"


def test_a_sidebar_link_that_drops_the_parameters_keeps_the_selection(good: Path) -> None:
    app = open_page("overview", good, version="3")
    app.query_params.clear()
    app.switch_page(PAGES["schema"].file).run()
    assert app.query_params["version"] == "3"


def test_picking_a_version_writes_the_url(good: Path) -> None:
    app = open_page("files", good)
    app.selectbox(key="pick_version").set_value("1").run()
    assert app.query_params["version"] == "1"
    app.button(key="go-latest").click().run()
    assert app.query_params["version"] == "6"


@pytest.mark.parametrize(
    ("label", "version"),
    [("s17 · latest", "s17"), ("v1 · 2026-10-25", "v1"), ("vs v1", "v1"), ("vs previous", NO_COMPARISON), ("12", "12")],
)
def test_a_label_of_an_earlier_run_is_the_version_it_names(label: str, version: str) -> None:
    assert version_text(label) == version


def test_pickers_that_the_browser_reports_together_keep_the_table_and_each_other(good: Path) -> None:
    """As after a step back from a page that was not drawn yet."""
    app = open_page("files", good)
    app.selectbox(key="pick_version").set_value("3")
    app.selectbox(key="pick_base").set_value("1").run()
    assert {key: app.query_params[key] for key in selection.OWN if key in app.query_params} == {
        "table": str(good), "version": "3", "base": "1",
    }  # fmt: skip


def test_picking_a_base_compares_the_schemas(good: Path) -> None:
    app = open_page("schema", good, tab="What changed")
    app.selectbox(key="pick_base").set_value("1").run()
    assert app.query_params["base"] == "1"
    assert "v1 to v6" in text(app)
    changes = app.dataframe[0].value
    assert changes["column"].to_list() == ["cancelled"]
    assert changes["change"].to_list() == ["+ added"]


def test_without_a_base_the_schema_is_compared_with_the_one_before(good: Path) -> None:
    app = open_page("schema", good, tab="What changed")
    assert "v3 to v6" in text(app)


@pytest.mark.parametrize("typed", ["{}", ' "{}" '], ids=["as it is", "as copied from a terminal"])
def test_a_typed_address_opens_a_table(good: Path, typed: str) -> None:
    app = open_page("start")
    app.text_input(key="typed-address").set_value(typed.format(good)).run()
    assert not app.exception
    assert "Is this table all right?" in text(app)


@pytest.fixture
def growing(good: Path, tmp_path: Path) -> Path:
    """A table of its own, to be written to."""
    return Path(shutil.copytree(good, tmp_path / "growing"))


def test_refresh_shows_a_new_commit(growing: Path) -> None:
    app = open_page("timeline", growing)
    tables.append_to(growing, 7)
    app.button(key="refresh").click().run()
    assert app.query_params["version"] == "7"
    assert "v7 is here" in text(app)


def test_refresh_leaves_who_looks_at_an_old_version_there(growing: Path) -> None:
    app = open_page("files", growing, version="2")
    tables.append_to(growing, 7)
    app.button(key="refresh").click().run()
    assert app.query_params["version"] == "2"
    assert "The page stays on v2 until you move" in text(app)


def test_a_new_commit_is_announced_and_the_page_stays(growing: Path) -> None:
    app = open_page("files", growing)
    tables.append_to(growing, 7)
    cache.latest.clear()  # as if 30 s had passed
    app.run()
    assert "The page stays on v6 until you move" in text(app)
    assert app.query_params["version"] == "6"
    assert "You are looking at v6, 1 version behind the latest" in text(app).replace("**", "")
    app.run()
    assert "The page stays on v6 until you move" not in text(app)


def test_a_table_that_was_made_anew_is_read_anew(growing: Path) -> None:
    app = open_page("files", growing)
    shutil.rmtree(growing)
    tables.silent(growing)
    app.button(key="refresh").click().run()
    assert not app.exception
    assert "This table was recreated" in text(app)
    assert app.query_params["version"] == "1"


def test_what_was_read_of_other_tables_stays_when_one_was_made_anew(growing: Path, good: Path) -> None:
    open_page("files", good)
    snapshot_before = cache.frames(str(good), 6).snapshot(6)
    test_a_table_that_was_made_anew_is_read_anew(growing)
    assert cache.frames(str(good), 6).snapshot(6) is snapshot_before


def test_refresh_without_a_new_commit_says_so(good: Path) -> None:
    app = open_page("files", good)
    app.button(key="refresh").click().run()
    assert "v6 is still the latest" in text(app)


WIDGET_SCRIPT = """
import streamlit as st
from lakeview.app.widget_state import begin, link_widget

begin("here")
st.selectbox("Order", ["path", "size"], key=link_widget("order", "path", ["path", "size"]))
st.slider("Days", 0, 30, key=link_widget("days", 7, range(31)))
st.multiselect("Columns", ["a", "b"], key=link_widget("columns", [], ["a", "b"], many=True))
st.text_input("Where", key=link_widget("where"))
"""


def test_what_is_chosen_is_written_to_the_link_unless_it_is_the_default() -> None:
    app = AppTest.from_string(WIDGET_SCRIPT).run()
    assert dict(app.query_params) == {}
    app.selectbox(key="order").set_value("size").run()
    app.slider(key="days").set_value(3).run()
    app.multiselect(key="columns").set_value(["b", "a"]).run()
    app.text_input(key="where").set_value("a > 1").run()
    assert not app.exception
    assert dict(app.query_params) == {"order": "size", "days": "3", "columns": ["b", "a"], "where": "a > 1"}
    app.selectbox(key="order").set_value("path").run()
    assert "order" not in app.query_params


def test_another_link_sets_what_is_chosen_and_what_it_does_not_know_is_the_default() -> None:
    app = AppTest.from_string(WIDGET_SCRIPT)
    app.query_params.update({"order": "size", "days": "99", "columns": ["b", "c"], "where": "a > 1"})
    app.run()
    assert (app.selectbox(key="order").value, app.slider(key="days").value) == ("size", 7)
    assert (app.multiselect(key="columns").value, app.text_input(key="where").value) == (["b"], "a > 1")
    app.query_params["order"] = "path"  # as a step back would
    app.run()
    assert app.selectbox(key="order").value == "path"


def test_a_run_that_changes_nothing_leaves_what_is_typed_meanwhile_alone() -> None:
    app = AppTest.from_string(WIDGET_SCRIPT).run()
    assert app.text_input(key="where").proto.set_value  # as the page opens
    assert not app.run().text_input(key="where").proto.set_value
    app.text_input(key="where").set_value("a > 1").run()
    assert not app.run().text_input(key="where").proto.set_value
    assert app.text_input(key="where").value == "a > 1"


def test_a_widget_that_the_browser_has_not_drawn_yet_is_sent_its_state_with_every_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = AppTest.from_string(WIDGET_SCRIPT)
    app.query_params["where"] = "a > 1"
    app.run()
    with monkeypatch.context() as busy:
        busy.setattr(ElementTree, "get_widget_states", lambda _: WidgetStates())  # a busy browser, asked again
        app.run()
    assert app.text_input(key="where").proto.set_value
    assert app.text_input(key="where").value == "a > 1"
    assert not app.run().text_input(key="where").proto.set_value
    assert dict(app.query_params) == {"where": "a > 1"}


SOMETIMES = """
import streamlit as st
from lakeview.app.widget_state import begin, link_widget

begin("here")
if st.toggle("Filter", value=True, key="filter"):
    st.text_input("Where", key=link_widget("where"))
"""


def test_what_was_typed_is_there_again_when_its_field_is() -> None:
    app = AppTest.from_string(SOMETIMES).run()
    app.text_input(key="where").set_value("a > 1").run()
    app.run()
    app.toggle(key="filter").set_value(False).run()
    assert not app.text_input
    app.toggle(key="filter").set_value(True).run()
    assert app.text_input(key="where").value == "a > 1"
    assert app.query_params["where"] == "a > 1"


def test_a_part_that_the_browser_asked_for_earlier_does_not_undo_what_was_chosen_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = AppTest.from_string(WIDGET_SCRIPT).run()
    app.selectbox(key="order").set_value("size").run()
    app.text_input(key="where").set_value("a > 1").run()
    monkeypatch.setattr(widget_state, "_is_part", lambda: True)
    app.query_params.clear()  # as the link was when it asked
    app.run()
    assert (app.selectbox(key="order").value, app.text_input(key="where").value) == ("size", "a > 1")
    assert dict(app.query_params) == {"order": "size", "where": "a > 1"}
    monkeypatch.undo()
    app.query_params.clear()  # as a step back would
    app.run()
    assert (app.selectbox(key="order").value, app.text_input(key="where").value) == ("path", "")


def test_an_unchanged_selection_is_not_written_again(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_page("overview", good)
    writes: list[object] = []
    monkeypatch.setattr(selection, "_write", lambda parameters: writes.append(dict(parameters)))
    app.run()
    assert writes == [{"table": str(good), "version": "6"}]
    monkeypatch.undo()
    messages: list[object] = []
    monkeypatch.setattr(QueryParams, "_send_query_param_msg", lambda self: messages.append(dict(self)))
    app.run()
    assert messages == []


def test_a_folder_of_tables_lists_those_in_its_folders_and_leads_to_the_list_of_all(tmp_path: Path) -> None:
    tables.good(tmp_path / "silver" / "orders")
    app = open_page("overview", tmp_path / "silver")
    assert not app.exception
    assert "silver is no table, but has 1 table in its folders**" in text(app)
    assert "not-a-table" not in text(app)
    assert list(app.dataframe[0].value["name"]) == ["orders"]
    (below,) = [link for link in app.page_link if "List all tables below it" in link.label]
    rows = open_page("lake", **dict(parse_qsl(below.proto.query_string)))
    assert survey.table_survey(str(tmp_path / "silver"), 200).done.wait(30)
    assert list(rows.run().dataframe[0].value["name"]) == ["orders"]


def test_only_a_folder_with_files_leads_to_a_list_of_the_tables_below_it(tmp_path: Path) -> None:
    def leads_below(folder: Path) -> bool:
        return any("List all tables below it" in link.label for link in open_page("overview", folder).page_link)

    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "a.txt").write_text("a", encoding="utf-8")
    assert leads_below(tmp_path / "papers")
    assert not leads_below(tmp_path / "nothing")


def test_a_link_is_pinned_or_follows_the_latest_version(good: Path) -> None:
    app = open_page("overview", good)
    app.button(key="share").click().run()
    assert "version=6" in app.code[-1].value
    app.session_state["link-follows"] = "the latest version"
    app.button(key="share").click().run()
    assert "version=" not in app.code[-1].value
    assert f"table={good}" in app.code[-1].value.replace("%2F", "/")


def test_the_palette_goes_to_tables_pages_versions_and_columns(good: Path) -> None:
    app = open_page("overview", good)
    app.button(key="palette").click().run()
    assert not app.exception
    targets = app.selectbox(key="palette-target").options
    assert {"Timeline · page", "v3 · version, 2026-03-04", "carrier · column"} <= set(targets)


def test_the_last_part_of_one_name_in_the_picker_is_that_table_and_else_an_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("demo / claims", "lake / orders", "old / orders")
    offers = [app_tables.Offer(name.replace(" ", ""), name, name) for name in names]
    monkeypatch.setattr(app_tables, "offers", lambda: offers)
    assert [app_tables.picker_name(text) for text in ("Claims", "orders", " 'nowhere' ")] == [
        "demo/claims",
        "orders",
        "nowhere",
    ]


def test_what_was_chosen_of_one_table_is_not_taken_to_another(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.good(tmp_path / "other")
    monkeypatch.setenv("LAKEVIEW_ROOTS", f"{good},{tmp_path}")
    app = open_page("timeline", good, commit="3", tab="Commits", lanes="append")
    app.selectbox(key="pick_table").set_value(str(tmp_path / "other")).run()
    assert not app.exception
    assert set(app.query_params) == {"table", "version"}
    assert "**v6 ·" in text(app)  # the newest commit's drawer
