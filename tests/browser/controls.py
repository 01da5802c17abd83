"""What can be operated on a page, as the browser has it: every control of every page, also of pages to come.

A control is known by Streamlit's test id and the key of the widget it belongs to. `change` does what a hand would do:
it picks another option, opens another tab, moves a slider, turns a page.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass

from playwright.sync_api import Locator
from playwright.sync_api import TimeoutError as TooLate

from tests.browser.visitor import PATIENCE, Visitor

KINDS = (
    "stTabs", "stSelectbox", "stMultiSelect", "stButtonGroup", "stRadio", "stCheckbox", "stSlider", "stPagination",
    "stExpander",
)  # fmt: skip
"""Controls with a closed set of states. Texts are typed by `change_text`: what fits is the page's own affair."""

TEXTS = ("stTextInput", "stTextArea", "stNumberInput", "stDateTimeInput", "stDateInput")

_TRIES, _OPENS = 3, 5_000

_AGE = re.compile(r"^read .* ago$|\bago\b|\b\d+ (s|min|h)\b")

_KEY = """element => {
    for (let node = element; node; node = node.parentElement)
        for (const name of node.classList) if (name.startsWith("st-key-")) return name;
    return "";
}"""

_VIEW = """main => {
    const said = [main.innerText];
    for (const field of main.querySelectorAll("input, textarea"))
        said.push(field.type === "checkbox" || field.type === "radio" ? String(field.checked) : field.value);
    for (const one of main.querySelectorAll("[aria-checked=true], [aria-selected=true], [aria-current=page]"))
        said.push(one.innerText);
    return said.join("\\n");
}"""


@dataclass(frozen=True, slots=True)
class Control:
    """One control: Streamlit's test id of its kind, the class its key gives it, and which of those it is."""

    kind: str
    key: str
    number: int

    def __str__(self) -> str:
        return f"{self.kind} {self.key.removeprefix('st-key-') or 'without a key'}"


def controls(visitor: Visitor, kinds: tuple[str, ...] = KINDS) -> list[Control]:
    """The controls that are there now, tabs first."""
    controls_found = []
    for kind in kinds:
        counts: dict[str, int] = {}
        for element in visitor.main.get_by_test_id(kind).all():
            if not element.is_visible():
                continue
            key = str(element.evaluate(_KEY))
            controls_found.append(Control(kind, key, counts.get(key, 0)))
            counts[key] = counts.get(key, 0) + 1
    return controls_found


def place(visitor: Visitor, control: Control) -> Locator:
    """The control's element."""
    if not control.key:
        return visitor.main.get_by_test_id(control.kind).nth(control.number)
    inside = visitor.main.locator(f".{control.key}").get_by_test_id(control.kind)
    itself = visitor.main.locator(f".{control.key}[data-testid={control.kind}]")
    return inside.or_(itself).nth(control.number)


def change(visitor: Visitor, control: Control) -> bool:
    """Puts the control into another state than it is in; False where it has only one or is not there any more."""
    element = place(visitor, control)
    if element.count() == 0 or not element.is_visible():
        return False
    before = visitor.page.url
    changed = _CHANGES[control.kind](visitor, element)
    if changed:
        with suppress(TooLate):  # some links are written by the server, when its run has begun
            visitor.page.wait_for_url(lambda address: address != before, timeout=_OPENS)
    visitor.settle()
    return changed


def view(visitor: Visitor) -> list[str]:
    """What the page shows: its words with those of its pictures, and the states of its controls; without ages, which
    grow while one looks. (Tables are canvases that draw themselves when they come into sight: they are not compared.)
    """
    visitor.settle()
    visitor.charts()
    state = str(visitor.main.evaluate(_VIEW))
    return [line.strip() for line in state.splitlines() if line.strip() and not _AGE.search(line)]


def _another_option(visitor: Visitor, element: Locator) -> bool:
    for _ in range(_TRIES - 1):  # a list that opens while the page is still moving closes again
        with suppress(TooLate):
            return _pick_another(visitor, element, _OPENS)
    return _pick_another(visitor, element, PATIENCE)


def _pick_another(visitor: Visitor, element: Locator, patience: int) -> bool:
    options = visitor.page.get_by_role("listbox").get_by_role("option")
    element.locator("input").first.click()
    options.first.wait_for(timeout=patience)
    others = [n for n, option in enumerate(options.all()) if option.get_attribute("aria-selected") != "true"]
    if not others:
        visitor.page.keyboard.press("Escape")
        return False
    options.nth(others[len(others) // 2]).click(timeout=patience)
    return True


def _another_button(visitor: Visitor, element: Locator) -> bool:
    idle = [b for b in element.get_by_role("button").all() if b.get_attribute("aria-pressed") != "true"]
    idle += [b for b in element.get_by_role("radio").all() if b.get_attribute("aria-checked") != "true"]
    if not idle:
        return False
    idle[-1].click()
    return True


def _another_tab(visitor: Visitor, element: Locator) -> bool:
    tabs = [tab for tab in element.get_by_role("tab").all() if tab.get_attribute("aria-selected") != "true"]
    if not tabs:
        return False
    tabs[-1].click()
    return True


def _one_step(visitor: Visitor, element: Locator) -> bool:
    thumb = element.locator("input[type=range]").first
    before = thumb.input_value()
    for arrow in ("ArrowLeft", "ArrowRight"):
        thumb.focus()
        visitor.page.keyboard.press(arrow)
        if thumb.input_value() != before:
            return True
    return False


def _tick(visitor: Visitor, element: Locator) -> bool:
    element.locator("label").first.click()
    return True


def _fold(visitor: Visitor, element: Locator) -> bool:
    element.locator("summary").first.click()
    return True


def _another_page(visitor: Visitor, element: Locator) -> bool:
    pages = [b for b in element.get_by_role("button").all() if (b.inner_text() or "").strip().isdecimal()]
    idle = [b for b in pages if b.get_attribute("aria-current") is None]
    if not idle:
        return False
    idle[0].click()
    return True


_CHANGES = {
    "stTabs": _another_tab,
    "stSelectbox": _another_option,
    "stMultiSelect": _another_option,
    "stButtonGroup": _another_button,
    "stRadio": _another_option,
    "stCheckbox": _tick,
    "stSlider": _one_step,
    "stPagination": _another_page,
    "stExpander": _fold,
}
