"""The link holds the view: the state of every widget is in it, by `link_widget`, or by what this list says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

WIDGETS = {
    "checkbox", "date_input", "datetime_input", "expander", "multiselect", "number_input", "pagination", "pills",
    "radio", "segmented_control", "select_slider", "selectbox", "slider", "tabs", "text_area", "text_input", "toggle",
}  # fmt: skip

WRITTEN_BY_THE_PAGE = {
    "'pick_base'", "'pick_commit'", "'pick_file'", "'pick_partition'", "'pick_ref'", "'pick_table'",
    "'pick_version'", "'range'", "LANES", "WRITER",
}  # fmt: skip
"""Widgets whose parameters are written apart, because their labels are no values: `tests/browser/test_links.py` and
`test_navigation.py` operate them."""

OF_NO_VIEW = {
    "'audit-days'": "of the operator's own audit log",
    "'example'": "fills another widget in, which is in the link",
    "'link-follows'": "in the dialog that shows the link",
    "'offered-root'": "fills another widget in, which is in the link",
    "'profile-life'": "of a profile that is made",
    "'profile-recipient'": "of a profile that is made",
    "'typed-address'": "opens a table",
    "'typed-profile'": "opens a page",
    "_TARGET": "of the dialog that goes elsewhere",
    "None": "tabs of the dialog that shows code",
    "key": "of `picker`: its calls give the key",
}


def widgets() -> Iterator[tuple[str, str | None]]:
    """Where each widget is made, also by `picker`, and its key; None for one that `link_widget` gave it."""
    for path in [*(ROOT / "lakeview/app").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]:
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "picker":
                yield f"{path.relative_to(ROOT)} line {call.lineno}", ast.unparse(call.args[2])
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in WIDGETS:
                if getattr(call.func.value, "id", "st") != "st":
                    continue
                key = next((word.value for word in call.keywords if word.arg == "key"), None)
                is_linked = isinstance(key, ast.Call) and getattr(key.func, "id", "") == "link_widget"
                yield f"{path.relative_to(ROOT)} line {call.lineno}", None if is_linked else ast.unparse(key or _NONE)


_NONE = ast.Constant(None)


def test_the_state_of_every_widget_is_in_the_link() -> None:
    keys = list(widgets())
    assert sum(key is None for _, key in keys) > 40
    others = {key: place for place, key in keys if key is not None}
    assert {key: place for key, place in others.items() if key not in WRITTEN_BY_THE_PAGE | OF_NO_VIEW.keys()} == {}
    assert (WRITTEN_BY_THE_PAGE | OF_NO_VIEW.keys()) - others.keys() == set(), "no longer there"
