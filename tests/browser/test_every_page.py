"""Every page as it is drawn, light and dark, wide and narrow: with its heading, for eyes, ears and keys, nothing cut.

A tour goes to each page once, by the sidebar, and looks at it in all the ways that fit it: loading is what costs.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import Browser

from lakeview.app.pages import PAGES
from tests.browser.accessibility import hidden
from tests.browser.independent import IcebergMetadata
from tests.browser.keyboard import walk
from tests.browser.visitor import HEIGHT, WIDTHS, somebody
from tests.browser.widths import cut, hidden_columns

pytestmark = [pytest.mark.browser, pytest.mark.long]

FORMATS, THEMES = {"Delta": "demo/flights", "Iceberg": "demo/departures"}, ("light", "dark")
SUITE = (("Delta", "light"), ("Iceberg", "dark"))
TOURS = [
    pytest.param(table, theme, id=f"{format_}, {theme}", marks=() if (format_, theme) in SUITE else pytest.mark.breadth)
    for format_, table in FORMATS.items()
    for theme in THEMES
]
"""Table and theme: each of both in one tour of `make test`, the other pairs in `make breadth`."""


@pytest.mark.parametrize(("table", "theme"), TOURS)
def test_every_page_keeps_the_selection_and_nothing_is_wrong_with_it(
    table: str, theme: str, browser: Browser, server: str, demo_lake: Path
) -> None:
    visitor = somebody(browser, server, theme=theme)
    selection = SELECTIONS[table](demo_lake)
    messages, widths = [], ["wide", "narrow"]
    visitor.open(f"/?{urlencode(selection)}")
    for name, entry in PAGES.items():
        if not entry.default:
            visitor.go(entry.title)
            assert urlsplit(visitor.page.url).path == f"/{name}"
            assert visitor.parameters() == selection
        wrong = []
        for width in widths:
            wrong += hidden_columns(visitor, width)
            if width == "wide":
                wrong += hidden(visitor, dark=theme == "dark", is_whole=entry.default)
            else:
                wrong += cut(visitor)
            if width == "narrow" and theme == "light":  # keys meet the same controls in the dark, and wide
                visitor.page.set_viewport_size({"width": WIDTHS["narrow"], "height": HEIGHT})  # it is drawn sooner
                wrong += walk(visitor, is_whole=entry.default)
        widths.reverse()  # the next page comes at this one's last width: each size is another drawing
        messages += [f"{name}: {one}" for one in wrong]
    assert not messages, "\n".join(sorted(set(messages)))
    visitor.close()


def _snapshots(lake: Path) -> dict[str, str]:
    snapshots = IcebergMetadata(lake, "departures").snapshots
    last, first = (str(snapshots[n]["snapshot-id"]) for n in (-1, 0))
    return {"table": "demo/departures", "version": last, "base": first}


SELECTIONS = {
    "demo/flights": lambda _: {"table": "demo/flights", "version": "75", "base": "60"},
    "demo/departures": _snapshots,
}
"""Both versions chosen; the newer is the latest, of which pages tell most."""
