"""Somebody who looks at the app: opens links, waits until a page is drawn, and notes what the browser complained of."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Error, Locator, Page, expect

WIDTHS = {"wide": 1440, "narrow": 900}
HEIGHT = 1000
OWN_PROBES = re.compile(r"/_stcore/(health|host-config)$")
"""Where Streamlit itself looks for its server: on a deep link first below the page's name, and is told 404."""

PATIENCE = 180_000
"""Milliseconds: a cold server reads a whole log before the first page, and at a load of 40 on two cores that took more
than a minute."""

_TICK = 50
"""Milliseconds between two looks at a page. (Playwright's own expectations look again after up to a second; a look with
every frame makes the browser draw every frame.)"""

_MOST_STEPS = 30
"""Steps in the history of a tab that is used again: a browser records 50, and tests count them."""

_idle: list[Page] = []
"""Tabs to be used again: the app's scripts are compiled in them, which is half of what a page costs in a new tab."""

_ASKED = """
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (message) {
    if (!this.isHeard) this.addEventListener("message", () => { window.isAsked = false; });
    this.isHeard = window.isAsked = true;
    return send.call(this, message);
};
"""
"""Notes whether the server was asked what it has not begun to answer: until it does, the app calls itself drawn."""

_SETTLED = """() => {
    const drawn = !window.isAsked
        && document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning"
        && !document.querySelector("[data-testid=stSkeleton], [data-stale=true]");
    const quiet = window.quiet;
    if (!drawn || quiet?.link !== location.href) {
        window.quiet = drawn ? {link: location.href, looks: 0} : null;
        return false;
    }
    return ++quiet.looks > 12;
}"""
"""Drawn for more than half a second at one address: what was done last may only begin to be asked. Looks are counted
and not time, of which a busy page may lose a second between two of them."""
_CHARTS_HAVE_SIZES = """() => [...document.querySelectorAll("[data-testid=stVegaLiteChart]")].every(chart => {
    const box = chart.querySelector("canvas, svg.marks")?.getBoundingClientRect();
    return box?.width && box.height;
})"""


class Visitor:
    """One tab of a browser. What its console calls an error, and what its scripts do not catch, is in `complaints`."""

    def __init__(self, page: Page, server: str) -> None:
        self.page = page
        self.server = server
        self.complaints: list[str] = []
        page.on("console", self._note)
        page.on("pageerror", self._note_uncaught)

    def open(self, path: str) -> None:
        self.page.goto(f"{self.server}{path}")
        self.settle()

    def go(self, title: str) -> None:
        """To another page, by its link in the sidebar."""
        self.page.get_by_test_id("stSidebar").get_by_role("link", name=title, exact=True).click()
        expect(self.page.get_by_role("heading", name=title, exact=True)).to_be_visible()
        self.settle()

    def settle(self) -> None:
        """Waits until the page is drawn, and checks that nothing went wrong."""
        self.page.evaluate("window.quiet = null")
        self.page.wait_for_function(_SETTLED, polling=_TICK, timeout=PATIENCE)
        assert self.page.get_by_test_id("stException").count() == 0

    def charts(self) -> None:
        """Waits until every chart has drawn its marks."""
        self.page.wait_for_function(_CHARTS_HAVE_SIZES, polling=_TICK, timeout=PATIENCE)

    def parameters(self) -> dict[str, str]:
        """The query parameters of the address bar, of each the first value."""
        return {key: values[0] for key, values in parse_qs(urlsplit(self.page.url).query).items()}

    @property
    def steps(self) -> int:
        """How many steps the browser's history of this tab has."""
        return int(self.page.evaluate("history.length"))

    @property
    def link(self) -> str:
        """What one would copy from the address bar, without the server."""
        return self.page.url.removeprefix(self.server)

    def close(self) -> None:
        """Ends the session; what the browser complained of until then is a failure."""
        self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.page.remove_listener("console", self._note)
        self.page.remove_listener("pageerror", self._note_uncaught)
        if self.steps > _MOST_STEPS:
            self.page.close()
        else:
            self.page.goto(f"{self.server}/_stcore/health")  # a text of the same site: its scripts stay compiled
            _idle.append(self.page)
        assert self.complaints == []

    @property
    def main(self) -> Locator:
        """The page beside the sidebar."""
        return self.page.get_by_test_id("stMain")

    def _note_uncaught(self, error: Error) -> None:
        self.complaints.append(f"uncaught: {error}")

    def _note(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not OWN_PROBES.search(message.location.get("url", "")):
            self.complaints.append(f"{message.text} {message.location.get('url', '')}".strip())


def somebody(browser: Browser, server: str, *, width: str = "wide", theme: str = "light") -> Visitor:
    """A visitor with a session of their own: a full load ends that of the visitor who had the tab before. All tabs have
    one cache: without it each loads the app's scripts again."""
    if browser.contexts:
        context = browser.contexts[0]
    else:
        context = browser.new_context()
        context.set_default_timeout(PATIENCE)  # Playwright's own 30 s were too few for an address at a load of 25
        context.add_init_script(_ASKED)
    page = _idle.pop() if _idle else context.new_page()
    page.mouse.move(0, 0)
    page.set_viewport_size({"width": WIDTHS[width], "height": HEIGHT})
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")
    return Visitor(page, server)
