"""A click on a row of a table leads to the page, the commit or the column that it is about."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from streamlit.runtime.state import QueryParamsProxy

from lakeview.app import commits, row_links
from lakeview.app.pages import PAGES

APP = Path(row_links.__file__).parent


def test_a_click_opens_the_page_of_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    state: dict[str, Any] = {"files": {"selection": {"rows": [1]}}}
    opened: list[tuple[str, dict[str, str]]] = []
    monkeypatch.setattr("streamlit.session_state", state)
    monkeypatch.setattr("streamlit.switch_page", lambda page, query_params: opened.append((page, query_params)))
    rows = pl.DataFrame({"path": ["a", "b"]})
    row_links.row_link("files", rows, "files", lambda row: {"file": row["path"]})["on_select"]()
    row_links.follow()
    row_links.follow()
    assert opened == [(PAGES["files"].file, {"file": "b"})]


@pytest.mark.parametrize(
    ("is_asked", "after", "is_restored"),
    [
        pytest.param(True, {"table": "t", "column": "x"}, True, id="back"),
        pytest.param(True, {"table": "t"}, True, id="back from a page that has no parameters of its own"),
        pytest.param(False, {"table": "t", "column": "x"}, True, id="back, which Streamlit forgot"),
        pytest.param(False, {"table": "t"}, False, id="a link of the sidebar"),
    ],
)
def test_one_step_back_shows_the_page_that_was_left_as_it_was(
    monkeypatch: pytest.MonkeyPatch, is_asked: bool, after: dict[str, str], is_restored: bool
) -> None:
    url = QueryParamsProxy()
    left = {"table": "t", "tab": "Columns", "engine": ["spark", "polars"]}
    opened: list[tuple[str, Any]] = []
    monkeypatch.setattr("streamlit.session_state", {})
    monkeypatch.setattr("streamlit.query_params", url)
    monkeypatch.setattr("streamlit.switch_page", lambda page, query_params: opened.append((page, query_params)))
    monkeypatch.setattr(row_links, "get_script_run_ctx", lambda: SimpleNamespace(is_history_navigation=False))
    url.from_dict(left)
    row_links.begin("lake")
    row_links.go("quality", after)
    url.from_dict(after)
    row_links.begin("quality")
    monkeypatch.setattr(row_links, "get_script_run_ctx", lambda: SimpleNamespace(is_history_navigation=is_asked))
    row_links.begin("lake")  # between the two
    texts = {"table": ["t"], "tab": ["Columns"], "engine": ["spark", "polars"]}
    assert opened[1:] == ([(PAGES["lake"].file, texts)] if is_restored else [])


@pytest.mark.parametrize("field", ["commit", "version"])
def test_a_click_on_a_mark_opens_its_commit_and_one_on_the_sum_of_others_nothing(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state: dict[str, Any] = {}
    opened: list[dict[str, str]] = []
    monkeypatch.setattr("streamlit.session_state", state)
    monkeypatch.setattr("streamlit.switch_page", lambda _, query_params: opened.append(query_params))
    for version in ("9007199254741028", None):
        state["past-0"] = {"selection": {"picked": [{field: version}]}}
        commits.open_picked("past-0")
        row_links.follow()
    assert [link["commit"] for link in opened] == ["9007199254741028"]


def test_links_of_rows_are_those_of_their_own_table() -> None:
    tables = 0
    for path in APP.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "frame":
                arguments = {word.arg: word.value for word in call.keywords}
                link = arguments.get(None)
                if isinstance(link, ast.Call):
                    assert ast.dump(link.args[0]) == ast.dump(arguments["key"]), f"{path} line {call.lineno}"
                    tables += 1
    assert tables > 10
