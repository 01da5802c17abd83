"""The app in a real browser: a click on the timeline, keys alone."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import expect

import lakeview as lv
from tests.browser.visitor import PATIENCE, Visitor

pytestmark = pytest.mark.browser

ROWS_SCROLLED = "() => document.querySelector('[class*=st-key-commits-] .dvn-scroller')?.scrollTop > 0"


def test_a_click_on_the_timeline_shows_why_that_commit_stands_out_without_scrolling(
    visitor: Visitor,
) -> None:
    visitor.page.set_viewport_size({"width": 1440, "height": 900})
    visitor.open("/timeline?table=demo/flights")
    visitor.charts()
    assert "commit" not in visitor.parameters()
    panel = visitor.page.locator(".st-key-timeline-1")  # the first with an axis; above it are the events' names
    box = panel.bounding_box()
    assert box is not None
    # a rule without ink stands over each version; the last, a bad load, a hundredth of the plot from its right end
    axis, margin = 56, 6
    last = axis + (box["width"] - axis - margin) * 0.988
    panel.click(position={"x": last, "y": box["height"] * 0.6})
    visitor.page.wait_for_url("**commit=*", timeout=PATIENCE)
    visitor.settle()
    version = visitor.parameters()["commit"]
    drawer = visitor.page.locator(".st-key-drawer")
    for words in (f"v{version} · ", "Bad load: ", "Table after it"):
        expect(drawer.get_by_text(words).first).to_be_in_viewport(ratio=1)
    assert visitor.main.evaluate("main => main.scrollTop") == 0
    expect(visitor.page.locator(".vg-tooltip")).to_have_count(1)
    expect(visitor.page.locator(".vg-tooltip.visible")).to_have_count(0)  # it would lie over the drawer


def test_the_table_of_commits_shows_the_row_of_an_old_one(visitor: Visitor) -> None:
    visitor.open("/timeline?table=demo/flights&commit=5")
    visitor.page.wait_for_function(ROWS_SCROLLED, timeout=PATIENCE)


def test_a_page_is_operated_by_keys_alone(visitor: Visitor) -> None:
    visitor.open("/schema?table=demo/flights")
    visitor.main.get_by_role("tab").first.focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_url("**tab=*")
    visitor.settle()
    assert visitor.parameters()["tab"] == "What changed"


def test_a_long_location_is_shown_whole(visitor: Visitor, tmp_path: Path) -> None:
    place = tmp_path / ("long_name_" * 20)
    lv.create_table(place, pl.DataFrame({"a": [1]}).to_arrow().schema)
    visitor.page.set_viewport_size({"width": 900, "height": 900})
    visitor.open(f"/overview?table={place}")
    value = visitor.main.locator("[data-testid=stTable] p").filter(has_text=place.name)
    expect(value).to_have_count(1)
    assert value.evaluate("text => text.scrollWidth <= text.clientWidth")
