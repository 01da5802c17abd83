"""A page to what keys alone miss on it: Tab reaches what a hand can operate, shows where it is, and gets out again."""

from __future__ import annotations

from tests.browser.controls import KINDS, TEXTS
from tests.browser.visitor import Visitor

MOST_STOPS = 250
"""Presses of Tab after which a page counts as a trap; the longest has about a hundred stops."""

GROUPS = ", ".join(
    "[role=tablist]" if kind == "stTabs" else f"[data-testid={kind}]" for kind in (*KINDS, *TEXTS, "stDataFrame")
)
"""Controls with one stop for the whole of them: arrows go on inside. (Tabs hold the whole page below them.)"""

STREAMLITS_OWN = (
    "main",  # the page itself, which keys scroll
    "[data-testid=stPageLink-NavLink]:is(.here)",  # a link to the page one is on is marked as if it had the focus
)
"""Stops on which Streamlit shows no focus."""

# how the control around a stop looks while it has the focus is kept, to be compared with how it looks without; what
# changes slowly is brought to its end first
_STOP = """async group => {
    await new Promise(done => requestAnimationFrame(done));
    const at = document.activeElement;
    if (!at || at === document.body) return "out";
    if (window.stops.at(-1)?.at === at) return "inside";  // a table: its cells, one after the other
    if (!window.root.contains(at) || window.stops.some(stop => stop.at === at)) return "end";
    window.look = element => {
        const near = element.closest(group) ?? element.parentElement ?? element;
        for (const change of document.getAnimations()) if (change instanceof CSSTransition) change.finish();
        return JSON.stringify([near, ...[...near.querySelectorAll("*")].slice(0, 80)].map(one => {
            const s = getComputedStyle(one);
            const outline = s.outlineStyle === "none" ? "" : s.outline;
            return [outline, s.boxShadow, s.borderColor, s.backgroundColor, s.color, s.textDecorationLine];
        }));
    };
    window.stops.push({at, look: window.look(at)});
    return "on";
}"""

_PLACES = """group => {
    const seen = element => element.checkVisibility({opacityProperty: true, visibilityProperty: true});
    const single = "button:not([disabled]), a[href], summary, input:not([disabled]), textarea:not([disabled])";
    const places = [...document.querySelectorAll(group)];
    for (const one of document.querySelectorAll(single))
        if (!one.closest(group) && !one.closest("[data-testid=stElementToolbar], [aria-hidden=true]")) places.push(one);
    const name = one => (one.dataset.testid ?? one.tagName.toLowerCase()) + " "
        + ((one.closest("[class*=st-key-]")?.className.match(/st-key-[\\w-]+/) ?? [""])[0] + " "
        + (one.getAttribute("aria-label") ?? one.innerText ?? "").split("\\n")[0].slice(0, 40)).trim();
    return places
        .filter(place => window.root.contains(place) && seen(place))
        .filter(place => !window.stops.some(stop => place.contains(stop.at)))
        .map(place => `not reached: ${name(place)}`);
}"""

# a table is a canvas that draws its own ring
_UNSEEN = """own => {
    for (const link of document.links) link.classList.toggle("here", link.pathname === location.pathname);
    document.activeElement.blur();
    return window.stops
        .filter(stop => stop.at.isConnected && !stop.at.matches(own) && !stop.at.closest("[data-testid=stDataFrame]"))
        .filter(stop => window.look(stop.at) === stop.look)
        .map(stop => `no focus is seen: ${stop.at.outerHTML.slice(0, 160)}`);
}"""


_START = """isWhole => {
    window.stops = [];
    const main = document.querySelector("[data-testid=stMain]");
    window.root = isWhole ? document : main;
    if (isWhole) document.activeElement.blur();
    else main.focus();
}"""


def walk(visitor: Visitor, *, is_whole: bool) -> list[str]:
    """Tabs through the page until it comes out again; what was not reached, and where no focus was to be seen. Not
    `is_whole`: without the sidebar, which is the same on every page."""
    visitor.page.evaluate(_START, is_whole)
    for _ in range(MOST_STOPS):
        visitor.page.keyboard.press("Tab")
        # a table that is drawn when it comes into sight lets go of the focus; the next Tab goes on from there
        if visitor.page.evaluate(_STOP, GROUPS) == "end":
            break
    else:
        return [f"no way out after {MOST_STOPS} stops"]
    places: list[str] = visitor.page.evaluate(_PLACES, GROUPS)
    unseen: list[str] = visitor.page.evaluate(_UNSEEN, ", ".join(STREAMLITS_OWN))
    return places + unseen
