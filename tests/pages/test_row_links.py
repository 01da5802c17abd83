"""A click on a row of a table leads to the page, the commit or the column that it is about."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import polars as pl
import pytest

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
