"""Steps of the browser's history: each choice is one, back shows what was there; a first visit may be to any page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from lakeview.app.pages import PAGES
from tests.browser.app_server import serving
from tests.browser.controls import Control, change, place
from tests.browser.hand import Hand
from tests.browser.visitor import PATIENCE, Visitor, somebody
from tests.pages import tables

pytestmark = pytest.mark.browser


def field(visitor: Visitor, key: str) -> Locator:
    """What a select box of the page says."""
    return place(visitor, Control("stSelectbox", f"st-key-{key}", 0)).locator("input").first


def view_state(visitor: Visitor) -> dict[str, str]:
    """The heading, and what the pickers of a version and a commit say where they are."""
    pickers = {key: field(visitor, key) for key in ("pick_version", "pick_commit")}
    values = {key: picker.input_value() for key, picker in pickers.items() if picker.count()}
    return {"heading": visitor.main.locator("h2").inner_text(), **values}


@pytest.mark.long
def test_each_choice_is_one_step_and_back_and_forward_show_what_was_there(visitor: Visitor) -> None:
    visitor.open("/timeline?table=demo/flights&version=40&base=30")
    begun = visitor.steps
    moves: list[Callable[[], object]] = [
        lambda: change(visitor, Control("stSelectbox", "st-key-pick_version", 0)),
        lambda: change(visitor, Control("stSelectbox", "st-key-pick_commit", 0)),
        lambda: change(visitor, Control("stTabs", "st-key-tab", 0)),
        lambda: visitor.go("Schema"),
        lambda: change(visitor, Control("stSelectbox", "st-key-pick_table", 0)),
        lambda: visitor.go("Sharing"),
    ]
    links, views = [visitor.link], [view_state(visitor)]
    for number, move in enumerate(moves, start=1):
        move()
        visitor.settle()
        assert visitor.steps == begun + number, f"after {visitor.link}"
        links.append(visitor.link)
        views.append(view_state(visitor))
    assert views[2]["pick_commit"] != views[1]["pick_commit"]
    last = len(moves)
    back = [(-1, position) for position in range(last - 1, -1, -1)]
    forward = [(1, 1), (last - 1, last)]  # the rest in one jump
    for step, position in (*back, *forward):
        visitor.page.evaluate(f"history.go({step})")
        visitor.page.wait_for_url(visitor.server + links[position], timeout=PATIENCE)
        heading = visitor.main.get_by_role("heading", name=views[position]["heading"], exact=True)
        expect(heading).to_be_visible()
        for key in views[position].keys() - {"heading"}:
            expect(field(visitor, key)).to_have_value(views[position][key])
        visitor.settle()
        assert visitor.link == links[position]
    assert visitor.steps == begun + len(moves)


def test_the_palette_is_one_key_a_name_and_enter_without_a_pause(visitor: Visitor) -> None:
    visitor.open("/files?table=demo/flights")
    visitor.main.locator(".st-key-path input").fill("part")  # not entered yet
    for name in ("weather", "claims"):
        for _ in range(2):  # pressing it again changes nothing
            visitor.page.keyboard.press("Control+k")
        visitor.page.keyboard.type(name)
        visitor.page.keyboard.press("Enter")
        visitor.page.wait_for_url(f"**table=demo%2F{name}*", timeout=PATIENCE)
        expect(visitor.page.get_by_role("dialog")).to_have_count(0)
        visitor.settle()


def test_one_step_back_leads_to_the_lake_whose_link_named_a_table_without_a_version(visitor: Visitor) -> None:
    visitor.open("/lake?table=demo/flights")
    begun = visitor.steps
    visitor.go("Overview")
    assert visitor.parameters()["version"]
    assert visitor.steps == begun + 1
    visitor.page.go_back()
    visitor.page.wait_for_url("**/lake?table=demo/flights", timeout=PATIENCE)
    expect(visitor.main.get_by_role("heading", name="Lake", exact=True)).to_be_visible()


def test_one_step_back_from_the_demo_lake_is_the_start(visitor: Visitor) -> None:
    visitor.open("/")
    visitor.page.get_by_role("button", name="Open demo / flights").click()
    expect(visitor.page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
    visitor.settle()
    assert set(visitor.parameters()) == {"table", "version"}
    visitor.page.go_back()
    expect(visitor.page.get_by_role("button", name="Open demo / flights")).to_be_visible()


def test_one_step_back_from_a_row_of_a_table_shows_the_tab_that_was_left(visitor: Visitor) -> None:
    left = "/quality?table=demo%2Fflights&version=75&tab=By+partition"
    visitor.open(left)
    Hand(visitor).press_row("column-partitions", 0)
    visitor.page.wait_for_url("**/partitions?*", timeout=PATIENCE)
    visitor.settle()
    visitor.page.go_back()
    visitor.page.wait_for_url(visitor.server + left, timeout=PATIENCE)
    expect(visitor.main.locator(".st-key-column-partitions")).to_be_visible()
    visitor.settle()
    visitor.page.go_forward()
    visitor.page.wait_for_url("**/partitions?*", timeout=PATIENCE)


def test_the_sidebar_marks_the_page_and_keeps_its_place(browser: Browser, server: str) -> None:
    visitor = somebody(browser, server)
    visitor.page.set_viewport_size({"width": 1440, "height": 420})  # the pages' links do not fit
    visitor.open("/timeline?table=demo/flights")
    links = visitor.page.get_by_test_id("stSidebar").locator(".stPageLink a")
    assert links.count() == len(PAGES)
    scrolled = """() => document.querySelector("[data-testid=stSidebarContent]").scrollTop"""
    links.last.scroll_into_view_if_needed()
    before = visitor.page.evaluate(scrolled)
    assert before > 0
    visitor.go("Pipelines")
    # a slow machine may still be moving it back
    visitor.page.wait_for_function(f"before => ({scrolled})() === before", arg=before, timeout=PATIENCE)
    grounds = links.evaluate_all("all => all.map(link => getComputedStyle(link).backgroundColor)")
    here = list(PAGES).index("pipelines")
    assert grounds.count(grounds[here]) == 1, "the page that is shown is marked, and no other"
    visitor.close()


def drag(visitor: Visitor, start: float, end: float) -> None:
    """Draws over a part of the timeline's first chart, both in shares of its width."""
    box = visitor.page.locator(".st-key-timeline-1").bounding_box()
    assert box is not None
    mouse, height = visitor.page.mouse, box["y"] + box["height"] * 0.6
    mouse.move(box["x"] + box["width"] * start, height)
    mouse.down()
    for share in ((start + end) / 2, end):
        mouse.move(box["x"] + box["width"] * share, height, steps=4)
    mouse.up()


@pytest.mark.long
def test_the_first_visit_to_a_server_may_be_to_any_page_and_its_first_drag_is_a_range_of_time_which_a_link_keeps(
    browser: Browser, demo_lake: Path
) -> None:
    with serving(demo_lake) as address:
        visitor = somebody(browser, address)
        visitor.open("/sharing?table=demo/flights")
        expect(visitor.main.get_by_role("heading", name="Sharing", exact=True)).to_be_visible()
        expect(visitor.page.get_by_role("dialog")).to_have_count(0)
        assert visitor.link.startswith("/sharing?")
        visitor.go("Timeline")
        visitor.charts()
        caption = visitor.main.get_by_text("newest first", exact=False)
        everything = caption.first.inner_text()
        begun = visitor.steps
        drag(visitor, 0.5, 0.8)
        visitor.page.wait_for_url("**from=*", timeout=PATIENCE)
        visitor.settle()
        expect(caption.first).not_to_have_text(everything)
        some, parameters = caption.first.inner_text(), visitor.parameters()
        assert parameters["from"] < parameters["to"]
        assert visitor.steps == begun + 1
        visitor.page.reload()
        visitor.settle()
        expect(caption.first).to_have_text(some)
        assert visitor.parameters() == parameters
        visitor.main.get_by_test_id("stPopover").get_by_role("button").first.click()
        visitor.page.get_by_role("button", name="Any time").click()
        visitor.page.wait_for_url(lambda url: "from=" not in url, timeout=PATIENCE)
        visitor.settle()
        expect(caption.first).to_have_text(everything)
        visitor.close()


def test_a_table_that_goes_away_while_it_is_open_is_told_and_other_pages_work(visitor: Visitor, tmp_path: Path) -> None:
    own = tables.good(tmp_path / "own")
    visitor.open(f"/files?table={own}")
    away = own.rename(tmp_path / "away")
    visitor.page.locator(".st-key-refresh button").first.click()
    expect(visitor.main.get_by_text("not-a-table")).to_be_visible()
    visitor.settle()
    visitor.go("Schema")
    expect(visitor.main.get_by_text("not-a-table")).to_be_visible()
    visitor.go("Sharing")
    away.rename(own)
    visitor.go("Schema")
    expect(visitor.main.get_by_text("4 columns").first).to_be_visible()
