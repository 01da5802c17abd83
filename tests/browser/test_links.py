"""The link holds the view: controls write it, another browser opens it. (Back and forward: `test_navigation.py`.)"""

from __future__ import annotations

from difflib import unified_diff

import pytest
from playwright.sync_api import Browser, expect

from tests.breadth import with_breadth
from tests.browser.controls import Control, change, controls, view
from tests.browser.visitor import PATIENCE, Visitor, somebody

pytestmark = pytest.mark.browser

OWN_WIDGETS = with_breadth(["timeline", "files"], ["schema", "partitions"])
"""Pages with widgets that they write into the link themselves, the first two with every kind of them; those of the
others do it alike (`tests/contracts/test_links.py`)."""

HEADER = {f"st-key-pick_{what}" for what in ("table", "version", "base", "ref")}
"""The header's pickers: other tests have them, and another table would take the page's own controls away."""

ROUNDS = 4
"""A control may bring others: a tab those it holds, a filter its value."""


@pytest.mark.long
@pytest.mark.parametrize("page", OWN_WIDGETS)
def test_whatever_is_chosen_on_a_page_is_in_its_link(
    page: str, visitor: Visitor, browser: Browser, server: str
) -> None:
    visitor.open(f"/{page}?table=demo/flights")
    done: set[Control] = set()
    silent = []
    for _ in range(ROUNDS):
        for control in controls(visitor):
            if control.key in HEADER or control in done:
                continue
            done.add(control)
            before = visitor.link
            if change(visitor, control) and visitor.link == before:
                silent.append(str(control))
    assert silent == [], "these controls do not write the link"
    view_before = view(visitor)
    elsewhere = somebody(browser, server)
    elsewhere.open(visitor.link)
    there = view(elsewhere)
    assert list(unified_diff(view_before, there, "here", "elsewhere", lineterm="", n=0)) == []
    elsewhere.close()


def test_an_offered_base_is_in_the_link_and_stays_when_something_else_is_pressed(visitor: Visitor) -> None:
    visitor.open("/compare?table=demo/flights&version=3")
    steps = visitor.steps
    visitor.main.get_by_role("button", name="the version before").click()
    visitor.page.wait_for_url("**base=2**", timeout=PATIENCE)
    visitor.settle()
    assert visitor.steps == steps + 1
    expect(visitor.main).to_contain_text("rows read")  # they cost little
    visitor.page.go_back()
    expect(visitor.main).to_contain_text("the version before")
