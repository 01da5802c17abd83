"""Every page for those who do not see it as drawn: axe finds nothing, pictures have names, keys reach what hands reach.

What Streamlit itself does wrong is listed by rule and place, with the reason; everything else must be right.
"""

from __future__ import annotations

from importlib.resources import files

import pytest
from playwright.sync_api import Browser

from lakeview.ui.pages import PAGES
from tests.browser.visitor import Visitor, somebody

pytestmark = pytest.mark.browser

STREAMLITS_OWN: dict[str, tuple[str, ...]] = {
    # the column of ticks of a table whose rows can be chosen
    "empty-table-header": ('aria-colindex="1" ',),
    # its colours of code; the faded ink of the words beside a metric's chip; the one primary colour is the ground of a
    # button's white words and the ink of a chosen segment: on dark no colour is right for both
    "color-contrast": ('<span class="token ', " in stMetricDeltaDescription", " in stButtonGroup"),
    # Vega's brush, and layers that hold no mark
    "svg-img-alt": ("role-mark brushed_brush", 'container"></g>'),
}
"""Parts of the HTML by the rule they break."""

AXE = files("axe_playwright_python").joinpath("axe.min.js")

_RUN = """async () => {
    const SKIPPED = "[data-testid]:not([data-testid=stMarkdownContainer]):not([data-testid=stCaptionContainer])";
    const found = await axe.run(document, {
        runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
        resultTypes: ["violations"],
        elementRef: true,
    });
    return found.violations.flatMap(rule => rule.nodes.map(node => ({
        rule: rule.id,
        html: node.html.slice(0, 200),
        inside: node.element?.closest(SKIPPED)?.dataset.testid ?? "",
        why: node.failureSummary.split(/\\s+/).join(" ").slice(0, 200),
    })));
}"""

_NAMELESS = """main => [...main.querySelectorAll("[data-testid=stVegaLiteChart] svg.marks")].filter(
    chart => !chart.getAttribute("aria-label") && !chart.querySelector('[aria-label]:not([aria-label=""])')
).length"""


_FOCUSED = """() => {
    const link = document.activeElement.closest("[data-testid=stSidebar] .stPageLink a");
    if (link) return "nav " + link.getAttribute("href");
    for (let node = document.activeElement; node; node = node.parentElement)
        for (const name of node.classList) if (name.startsWith("st-key-")) return name;
    return "";
}"""


def violations(visitor: Visitor) -> list[str]:
    """What axe finds on the page as it is: rule, place and reason, without what is Streamlit's own."""
    visitor.page.evaluate(AXE.read_text(encoding="utf-8"))
    found: list[dict[str, str]] = visitor.page.evaluate(_RUN)
    return [
        f"{node['rule']}: {node['html']} in {node['inside']} ({node['why']})"
        for node in found
        if not any(own in f"{node['html']} in {node['inside']}" for own in STREAMLITS_OWN.get(node["rule"], ()))
    ]


@pytest.mark.parametrize(
    ("theme", "table"),
    [("light", "demo/flights"), ("dark", "demo/flights"), ("light", "demo/departures")],
)
def test_axe_finds_nothing_on_any_page(theme: str, table: str, browser: Browser, server: str) -> None:
    visitor = somebody(browser, server, theme=theme)
    found = {}
    for name, entry in PAGES.items():
        visitor.open(f"/{'' if entry.default else name}?table={table}")
        visitor.charts()
        found[name] = violations(visitor)
        nameless = visitor.main.evaluate(_NAMELESS)
        if nameless:
            found[name].append(f"{nameless} pictures say nothing to those who do not see them")
    told = sorted({f"{name}: {one}" for name, wrong in found.items() for one in wrong})
    assert not told, "\n".join(told)
    visitor.close()


def test_the_keyboard_reaches_what_hands_reach(visitor: Visitor) -> None:
    visitor.open("/timeline?table=demo/flights")
    visitor.charts()
    reached = set()
    for _ in range(100):
        visitor.page.keyboard.press("Tab")
        reached.add(visitor.page.evaluate(_FOCUSED))
    for key in ("pick_table", "pick_version", "pick_base", "refresh", "share", "code", "download"):
        assert f"st-key-{key}" in reached, key
    assert len({where for where in reached if where.startswith("nav ")}) == len(PAGES)


def test_a_page_is_operated_by_keys_alone(visitor: Visitor) -> None:
    visitor.open("/schema?table=demo/flights")
    visitor.main.get_by_role("tab").first.focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_url("**tab=*")
    visitor.settle()
    assert visitor.parameters()["tab"] == "What changed"
