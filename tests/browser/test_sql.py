"""The SQL tab in a browser: what is typed runs by Ctrl+Enter while the editor has the focus."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from tests.browser.visitor import Visitor


def _run(visitor: Visitor, editor: Locator, query: str) -> None:
    editor.fill(query)
    editor.press("Control+Enter")
    visitor.settle()


def test_ctrl_enter_runs_what_is_typed(visitor: Visitor) -> None:
    visitor.open("/data?table=demo/airlines&tab=SQL")
    editor, answer = visitor.page.get_by_role("textbox", name="SQL"), visitor.page.get_by_text("Answer", exact=True)
    assert editor.evaluate("editor => getComputedStyle(editor).fontFamily") == "monospace"
    editor.press("Control+Enter")  # the query that is there
    expect(answer).to_be_visible()
    visitor.settle()
    _run(visitor, editor, "select from t where")
    expect(visitor.page.get_by_text("the query cannot be read")).to_be_visible()
    _run(visitor, editor, "select count(*) as n from t")
    expect(answer).to_be_visible()
    expect(visitor.page.get_by_text("all 1 row", exact=True)).to_be_visible()
