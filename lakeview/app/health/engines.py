"""Who can read the table: the matrix of engines, and of recipients if it is shared."""

from __future__ import annotations

import re

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app.components import escape, fold, nothing, words
from lakeview.app.session import OpenTable

_HIGHEST = 640
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_ANSWERS = {
    "read": {"yes": "\N{CHECK MARK} reads", "no": "\N{MULTIPLICATION X} fails", "unknown": "? unknown"},
    "write": {
        "yes": "\N{CHECK MARK} writes",
        "no": "\N{MULTIPLICATION X} fails",
        "never": "\N{EN DASH} never",
        "unknown": "? unknown",
    },
}


def note() -> str:
    """The date of the rules, and what they are based on."""
    day = views.engines.compatibility.rules_date().isoformat()
    return f"rules of {day}, each with its source, or tested with that release; what they do not cover is unknown"


def matrix(now: OpenTable) -> pl.DataFrame:
    """One row an engine, with the feature to blame and the commit that enabled it; then the features that the version
    requires, and the recipients that could read it if shared. Returns COMPATIBILITY of the engines."""
    needed = now.look.requirements()
    engines = views.engines.compatibility.compatibility(needed, now.snapshot.format)
    if engines.is_empty():
        nothing("There are no rules for this table format.", "Which engines can read it is unknown.")
        return engines
    _table(engines)
    _required("This version requires", needed)
    shared = now.look.requirements_when_shared()
    recipients = views.engines.compatibility.recipients(shared, now.snapshot.format)
    if not recipients.is_empty():
        with fold("Who could read it if shared", "recipients-fold"):
            _table(recipients)
            _required("Recipients need", shared)
    return engines


def _table(engines: pl.DataFrame) -> None:
    rows = views.engines.compatibility.in_words(engines)
    cells: dict[str, list[str]] = {
        "engine": rows["engine"].to_list(),
        "read": [_unbroken(_ANSWERS["read"][answer]) for answer in engines["read"]],
        "write": [_unbroken(_ANSWERS["write"][answer]) for answer in engines["write"]],
        "because of": [_with_whole_days(text) for text in rows["cause"]],
        "in words": rows["because"].to_list(),
    }
    if engines["write"].eq("never").all():
        del cells["write"]
    days = [_with_whole_days(day) for day in rows["checked"]]
    sources = [f"[{day}]({url})" if url else day for day, url in zip(days, rows["source"], strict=True)]
    escaped = {name: [escape(text) for text in texts] for name, texts in cells.items()}
    words({**escaped, "checked": sources}, height=_HIGHEST)


def _unbroken(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _with_whole_days(text: str | None) -> str:
    """A text whose days stay on one line."""
    return _DAY.sub(lambda day: day.group().replace("-", "\N{NON-BREAKING HYPHEN}"), text or "")


def _required(words: str, needs: pl.DataFrame) -> None:
    """The required features, each with the commit that enabled it."""
    features = ", ".join(views.engines.compatibility.required_features(needs)) or "nothing beyond the first protocol"
    st.markdown(f":small[:gray[{words}: {escape(features)}.]]")
