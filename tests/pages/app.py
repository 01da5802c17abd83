"""The app in a test: opened as a browser would open a link, and what it says as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from lakeview.app.pages import PAGES

ROOT = Path(__file__).resolve().parents[2]
TABLE_PAGES = [name for name, entry in PAGES.items() if entry.of_table]
TIMEOUT = 300
"""Seconds until a run that hangs is given up; the first of a process imports what pages need."""


def open_page(page: str, table: str | Path | None = None, /, **parameters: str | list[str]) -> AppTest:
    """The page as a pasted link opens it: no other page is drawn before it."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    if table is not None:
        app.query_params["table"] = str(table)
    for key, value in parameters.items():
        app.query_params[key] = value
    return app.switch_page(PAGES[page].file).run()


def column_widths(table: Any) -> dict[str, int]:
    """Pixels of each column of a table on a page."""
    return {name: column["width"] for name, column in json.loads(table.proto.columns).items() if "width" in column}


def text(app: AppTest) -> str:
    """Everything the page says in words, without the marks of markdown."""
    texts = [element.value for element in app.markdown]
    texts += [f"{m.label} {m.value} {m.delta}" for m in app.metric]
    texts += [element.value for element in app.toast]
    return "\n".join(texts).replace("\\", "")
