"""A page to what is cut on it: a page wider than the screen, figures that end in dots, pictures that leave it, tables
that hide their last columns."""

from __future__ import annotations

from tests.browser.visitor import WIDTHS, Visitor

TALL = 3000
"""Pixels: tables draw themselves when they come into sight."""

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


def cut(visitor: Visitor) -> list[str]:
    """What is cut on the page or leaves it."""
    texts: list[str] = visitor.main.evaluate(_CUT)
    return texts


_WIDE_TABLES = """main => [...main.querySelectorAll("[data-testid=stDataFrame]")].flatMap(table => {
    const place = table.querySelector(".dvn-scroller");
    if (!place || place.scrollWidth <= place.clientWidth) return [];
    if (table.closest("[class*=st-key-own-columns]")) return [];  // as wide as the user's table
    const key = table.closest("[class*=st-key-]")?.className.match(/st-key-[\\w-]+/)?.[0] ?? "a table";
    return [`${key} is ${place.scrollWidth} pixels wide, its place ${place.clientWidth}`];
})"""

_TABLES_DRAWN = """() => [...document.querySelectorAll("[data-testid=stDataFrame]")].every(
    table => !table.checkVisibility() || table.querySelector(".dvn-scroller")
)"""


def hidden_columns(visitor: Visitor, width: str) -> list[str]:
    """The tables that hide their last columns on a screen of this width, which stays as tall as they need to be
    drawn."""
    before = visitor.page.viewport_size
    visitor.page.set_viewport_size({"width": WIDTHS[width], "height": TALL})
    if before is None or before["width"] != WIDTHS[width]:
        visitor.settle()
    visitor.charts()
    visitor.page.wait_for_function(_TABLES_DRAWN)
    columns: list[str] = visitor.main.evaluate(_WIDE_TABLES)
    return columns
