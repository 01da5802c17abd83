"""Nothing is cut: at 900 pixels no page is wider than the screen, no figure ends in dots, no picture leaves it; at 1440
no table hides its last columns."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from lakeview.ui.pages import PAGES
from tests.browser.visitor import somebody

pytestmark = pytest.mark.browser

_CUT = """main => {
    const found = [];
    const right = main.getBoundingClientRect().right;
    if (main.scrollWidth > main.clientWidth + 1) found.push(`the page is ${main.scrollWidth} pixels wide`);
    for (const text of main.querySelectorAll("[data-testid=stMetricValue] *, [data-testid=stMetricLabel] *, h2"))
        if (text.scrollWidth > text.clientWidth + 1 && getComputedStyle(text).textOverflow === "ellipsis")
            found.push(`cut: ${text.innerText}`);
    for (const chart of main.querySelectorAll("svg.marks, canvas.marks"))
        if (chart.getBoundingClientRect().right > right + 1) found.push("a picture leaves the page");
    return found;
}"""


@pytest.mark.parametrize("table", ["demo/flights", "demo/departures"])
def test_nothing_is_cut_on_a_narrow_screen(table: str, browser: Browser, server: str) -> None:
    visitor = somebody(browser, server, width="narrow")
    found = {}
    for name, entry in PAGES.items():
        visitor.open(f"/{'' if entry.default else name}?table={table}")
        visitor.charts()
        found[name] = visitor.main.evaluate(_CUT)
    assert {name: cut for name, cut in found.items() if cut} == {}
    visitor.close()


_WIDE_TABLES = """main => [...main.querySelectorAll("[data-testid=stDataFrame]")].flatMap(table => {
    const place = table.querySelector(".dvn-scroller");
    if (!place || place.scrollWidth <= place.clientWidth) return [];
    const key = table.closest("[class*=st-key-]")?.className.match(/st-key-[\\w-]+/)?.[0] ?? "a table";
    return [`${key} is ${place.scrollWidth} pixels wide, its place ${place.clientWidth}`];
})"""

_TABLES_DRAWN = """() => [...document.querySelectorAll("[data-testid=stDataFrame]")].every(
    table => !table.checkVisibility() || table.querySelector(".dvn-scroller")
)"""


@pytest.mark.parametrize("table", ["demo/flights", "demo/weather"])
def test_no_table_hides_its_last_columns_on_a_wide_screen(table: str, browser: Browser, server: str) -> None:
    visitor = somebody(browser, server)
    visitor.page.set_viewport_size({"width": 1440, "height": 3000})  # tables draw themselves when they come into sight
    found = {}
    for name, entry in PAGES.items():
        visitor.open(f"/{'' if entry.default else name}?table={table}")
        visitor.page.wait_for_function(_TABLES_DRAWN)
        found[name] = visitor.main.evaluate(_WIDE_TABLES)
    assert {name: wide for name, wide in found.items() if wide} == {}
    visitor.close()
