"""Every page as it is drawn, in both themes and two widths: with its heading, for eyes, ears and keys, and nothing cut.

A tour goes to each page once, by the sidebar, and looks at it in all the ways that fit it: loading is what costs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from lakeview.app.pages import PAGES
from tests.browser.accessibility import hidden
from tests.browser.keyboard import walk
from tests.browser.visitor import Visitor, somebody
from tests.browser.widths import cut, wide_tables

pytestmark = pytest.mark.browser

Look = Callable[[Visitor], list[str]]

TOURS: dict[str, tuple[str, str, str, tuple[Look, ...]]] = {
    "light and wide": ("demo/flights", "light", "wide", (lambda v: hidden(v, dark=False), walk, wide_tables)),
    "dark and wide": ("demo/departures", "dark", "wide", (lambda v: hidden(v, dark=True), walk)),
    "wide tables": ("demo/weather", "light", "wide", (wide_tables,)),
    "dark and narrow": ("demo/flights", "dark", "narrow", (cut,)),
    "light and narrow": ("demo/departures", "light", "narrow", (cut,)),
}
"""Table, theme, width, and what is looked at: each look tells what is wrong."""

FIRST = "demo/flights"
"""The table that is shown where a link names none."""


@pytest.mark.parametrize(("table", "theme", "width", "looks"), TOURS.values(), ids=TOURS)
def test_every_page_is_drawn_and_nothing_is_wrong_with_it(
    table: str, theme: str, width: str, looks: tuple[Look, ...], browser: Browser, server: str, pictures: Path
) -> None:
    visitor = somebody(browser, server, width=width, theme=theme)
    told = []
    visitor.open("/" if table == FIRST else f"/?table={table}")
    for name, entry in PAGES.items():
        if not entry.default:
            visitor.go(entry.title)
        visitor.charts()
        if entry.of_table:
            assert visitor.parameters()["table"] == table
        if table == FIRST:
            visitor.page.screenshot(path=pictures / f"{name}-{width}-{theme}.png")
        told += [f"{name}: {wrong}" for look in looks for wrong in look(visitor)]
    assert not told, "\n".join(sorted(set(told)))
    visitor.close()
