"""The app in a real browser: the sidebar, a click on the timeline, a pasted link, keys alone."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from lakeview.app.pages import PAGES
from tests.browser.visitor import PATIENCE, Visitor, somebody

pytestmark = pytest.mark.browser


def test_the_sidebar_leads_to_every_page_and_keeps_the_selection(visitor: Visitor) -> None:
    visitor.open("/overview?table=demo/flights&version=40&base=30")
    for name, entry in PAGES.items():
        if entry.default:
            continue
        visitor.go(entry.title)
        assert urlsplit(visitor.page.url).path == f"/{name}"
        assert visitor.parameters() == {"table": "demo/flights", "version": "40", "base": "30"}


def test_a_click_on_the_timeline_shows_why_that_commit_stands_out_without_scrolling(visitor: Visitor) -> None:
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


def test_a_pasted_link_opens_the_same_view(visitor: Visitor, browser: Browser, server: str) -> None:
    visitor.open("/schema?table=demo/flights&version=70&base=2&tab=What+changed")
    expect(visitor.page.get_by_text("v2 to v70")).to_be_visible()
    visitor.page.locator(".st-key-share button").first.click()
    link = visitor.page.get_by_role("dialog").locator("code").inner_text()
    elsewhere = somebody(browser, server)
    elsewhere.open(link.removeprefix(server))
    expect(elsewhere.page.get_by_text("v2 to v70")).to_be_visible()
    assert elsewhere.parameters() == visitor.parameters()
    elsewhere.close()


def test_the_first_visit_opens_the_demo_lake(visitor: Visitor) -> None:
    visitor.open("/")
    visitor.page.get_by_role("button", name="Open demo / flights").click()
    expect(visitor.page.get_by_role("heading", name="Overview", exact=True)).to_be_visible(timeout=PATIENCE)
    visitor.settle()
    assert visitor.parameters()["table"] == "demo/flights"


def test_rows_are_read_when_asked_for(visitor: Visitor) -> None:
    visitor.open("/data?table=demo/flights&where=month+%3D+2&limit=50")
    visitor.page.get_by_role("button", name="Read rows").click()
    expect(visitor.page.get_by_text("the first 50 where month = 2")).to_be_visible(timeout=PATIENCE)
    visitor.settle()


def test_an_address_that_is_no_table_is_explained(visitor: Visitor, tmp_path: Path) -> None:
    visitor.open(f"/overview?table={tmp_path}")
    expect(visitor.page.get_by_text("not-a-table")).to_be_visible()


def test_a_page_is_operated_by_keys_alone(visitor: Visitor) -> None:
    visitor.open("/schema?table=demo/flights")
    visitor.main.get_by_role("tab").first.focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_url("**tab=*")
    visitor.settle()
    assert visitor.parameters()["tab"] == "What changed"
