"""A hand with a task: what it does is counted, and a fourth click is one too many. Tables are read as drawn."""

from __future__ import annotations

import re
from typing import Literal

from playwright.sync_api import Locator, expect

from lakeview.app.components import ROW_HEIGHT
from lakeview.app.pages import PAGES
from tests.browser.visitor import Visitor

MOST = 3
"""Clicks, choices and typed texts that a task may take, from the first page on."""

_ROLES: tuple[Literal["link", "button", "tab"], ...] = ("link", "button", "tab")

_ROWS = """table => [...table.querySelectorAll("canvas table tr")].map(
    row => [...row.children].map(cell => cell.textContent))"""
"""What a table draws on its canvas, it lists inside it as well: the columns' names, then the rows in sight."""


class Hand:
    """A visitor whose clicks are counted."""

    def __init__(self, visitor: Visitor, start: str | None = None, *, table: str | None = None) -> None:
        """Who opens `start`; or, without it, who is on the overview of a table and goes to another page."""
        self.visitor = visitor
        self.main = visitor.main
        self.clicks = 0
        self._table_address = table
        if start is not None:
            visitor.page.goto(f"{visitor.server}{start}")  # what is clicked first is there before the page is drawn

    def go(self, title: str) -> None:
        """To a page by the sidebar: one click. Who has opened no page goes to the address of that link: each is clicked
        in `test_every_page.py`, and an overview to click it on costs as much as the page."""
        self._count()
        if self._table_address is None:
            self.visitor.go(title)
        else:
            path = next(path for path, page in PAGES.items() if page.title == title)
            self.visitor.open(f"/{path}?table={self._table_address}")

    def press(self, what: Locator) -> None:
        """Anything that is clicked once."""
        self._count()
        what.click()
        self.visitor.settle()

    def follow(self, words: str) -> None:
        """A link, a button, a tab or a fold of the page, by the first words on it."""
        places = self.main.locator("summary").filter(has_text=words)
        for role in _ROLES:
            places = places.or_(self.main.get_by_role(role, name=_begins(words)))
        self.press(places.first)

    def press_row(self, key: str, number: int) -> None:
        """The tick of a row, counted from 0: one click. (A click beside it chooses no row.)"""
        self._count()
        self._table(key).click(position={"x": 15, "y": ROW_HEIGHT * (number + 1.5)})
        self.visitor.settle()

    def choose(self, key: str, option: str) -> None:
        """An option of a select box, by its first words: one choice."""
        self._count()
        self.main.locator(f".st-key-{key} input").first.click()
        self.visitor.page.keyboard.type(option)
        self.visitor.page.get_by_role("option", name=_begins(option)).click()
        self.visitor.settle()

    def write(self, key: str, text: str) -> None:
        """A text and Enter: one typed text."""
        self._count()
        field = self.main.locator(f".st-key-{key} input").first
        field.fill(text)
        field.press("Enter")
        self.visitor.settle()

    def reads(self, *texts: str) -> None:
        """Each of the texts is on the page."""
        for text in texts:
            expect(self.main.get_by_text(text).filter(visible=True).first).to_be_visible()

    def rows(self, key: str) -> list[dict[str, str]]:
        """The rows that a table draws, by the names of its columns; of more than fit the first."""
        table = self._table(key)
        expect(table.locator("canvas table tr").nth(1)).to_be_attached()
        names, *rows = table.evaluate(_ROWS)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _table(self, key: str) -> Locator:
        table = self.main.locator(f".st-key-{key}").get_by_test_id("stDataFrame").first
        table.scroll_into_view_if_needed()
        return table

    def _count(self) -> None:
        self.clicks += 1
        assert self.clicks <= MOST, f"more than {MOST} clicks"


def _begins(words: str) -> re.Pattern[str]:
    """Texts that begin with whole words, behind an icon or not. (Playwright writes a pattern between slashes.)"""
    return re.compile(rf"^\W*{re.escape(words)}(?![\w.])".replace("/", r"\/"))
