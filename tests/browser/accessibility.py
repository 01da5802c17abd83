"""A page to what hides it from those who do not see it as drawn: what axe finds, pictures without a name.

What Streamlit itself does wrong is listed by rule and place, with the reason; everything else must be right.
"""

from __future__ import annotations

from importlib.resources import files

from tests.browser.visitor import Visitor

STREAMLITS_OWN: dict[str, tuple[str, ...]] = {
    # the column of ticks of a table whose rows can be chosen
    "empty-table-header": ('aria-colindex="1" ',),
    # the faded ink of the words next to a metric's chip
    "color-contrast": (" in stMetricDeltaDescription",),
    # Vega's brush, and layers that hold no mark
    "svg-img-alt": ("role-mark brushed_brush", 'container"></g>', 'container" pointer-events="none"></g>'),
    # the place to which a file is dragged
    "presentation-role-conflict": ('data-testid="stFileUploaderDropzone"',),
}
"""Parts of the HTML by the rule they break."""

STREAMLITS_OWN_ON_DARK: dict[str, tuple[str, ...]] = {
    # the one primary colour is the ground of a button's white words and the ink of a chosen segment or pill: white
    # words want it below a luminance of 0.18, ink on this page above 0.24
    "color-contrast": (" in stButtonGroup, chosen",),
}
"""The same, in the dark theme alone."""

AXE = files("axe_playwright_python").joinpath("axe.min.js")

_RUN = """async isWhole => {
    const SKIPPED = "[data-testid]:not([data-testid=stMarkdownContainer]):not([data-testid=stCaptionContainer])";
    const found = await axe.run(isWhole ? document : {exclude: ["[data-testid=stSidebar]"]}, {
        runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
        resultTypes: ["violations"],
        elementRef: true,
    });
    return found.violations.flatMap(rule => rule.nodes.map(node => ({
        rule: rule.id,
        html: node.html.slice(0, 200),
        inside: (node.element?.closest(SKIPPED)?.dataset.testid ?? "")
            + (node.element?.closest("[aria-checked=true], [aria-pressed=true]") ? ", chosen" : ""),
        why: node.failureSummary.split(/\\s+/).join(" ").slice(0, 200),
    })));
}"""

_NAMELESS = """main => [...main.querySelectorAll("[data-testid=stVegaLiteChart] svg.marks")].filter(
    chart => !chart.getAttribute("aria-label") && !chart.querySelector('[aria-label]:not([aria-label=""])')
).length"""


def hidden(visitor: Visitor, *, dark: bool, is_whole: bool) -> list[str]:
    """What axe finds on the page as it is, without what is Streamlit's own; and whether pictures lack names. Not
    `is_whole`: without the sidebar, which is the same on every page."""
    nameless = visitor.main.evaluate(_NAMELESS)
    silent = [f"{nameless} pictures say nothing to those who do not see them"] if nameless else []
    return _violations(visitor, dark=dark, is_whole=is_whole) + silent


def _violations(visitor: Visitor, *, dark: bool, is_whole: bool) -> list[str]:
    """What axe finds on the page as it is: rule, place and reason, without what is Streamlit's own."""
    expected = [STREAMLITS_OWN, STREAMLITS_OWN_ON_DARK] if dark else [STREAMLITS_OWN]
    if not visitor.page.evaluate("() => 'axe' in window"):  # pages of one load are one document
        visitor.page.evaluate(AXE.read_text(encoding="utf-8"))
    violations: list[dict[str, str]] = visitor.page.evaluate(_RUN, is_whole)
    return [
        f"{node['rule']}: {node['html']} in {node['inside']} ({node['why']})"
        for node in violations
        if not any(
            own in f"{node['html']} in {node['inside']}" for rules in expected for own in rules.get(node["rule"], ())
        )
    ]
