"""Who can read the table: the matrix of engines, and of recipients once it is shared."""

from __future__ import annotations

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app.components import escape, fold, nothing, words
from lakeview.app.session import Opened

_HIGHEST = 640
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
    """How old the rules are, and what they go by."""
    day = views.engines.compatibility.rules_date().isoformat()
    return f"rules of {day}, each with its source, or tried with that release; what they do not say is unknown"


def matrix(now: Opened) -> pl.DataFrame:
    """One row an engine, with the feature to blame and what turned it on; then what the version asks for, and who could
    read it once it is shared. Returns COMPATIBILITY of the engines."""
    needed = now.look.requirements()
    told = views.engines.compatibility.compatibility(needed, now.snapshot.format)
    if told.is_empty():
        nothing("No rules speak of this kind of table.", "Who can read it is not known.")
        return told
    _table(told)
    _asked("This version asks for", needed)
    shared = now.look.requirements_when_shared()
    recipients = views.engines.compatibility.recipients(shared, now.snapshot.format)
    if not recipients.is_empty():
        with fold("Who could read it, once it is shared", "recipients-fold"):
            _table(recipients)
            _asked("Recipients need", shared)
    return told


def _table(told: pl.DataFrame) -> None:
    never = told["write"].eq("never").all()
    shown = {
        "engine": told.select(pl.concat_str("engine", "version", separator=" ")).to_series(),
        "read": _together(told["read"].replace_strict(_ANSWERS["read"])),
        "write": _together(told["write"].replace_strict(_ANSWERS["write"])),
        "because of": _days(
            told.select(
                pl.concat_str("blame", pl.lit(" ("), views.engines.compatibility.turned_on(), pl.lit(")"))
            ).to_series()
        ),
        "in words": told["because"],
    }
    cells = {
        name: [escape(text or "") for text in texts] for name, texts in shown.items() if not (never and name == "write")
    }
    links = told["sources"].str.split("\n").list.eval(pl.element().filter(pl.element().str.starts_with("https")))
    days = _days(told["checked"].cast(pl.String))
    sources = [f"[{day}]({link})" if link else day for day, link in zip(days, links.list.first(), strict=True)]
    words({**cells, "checked": sources}, height=_HIGHEST)


def _together(texts: pl.Series) -> pl.Series:
    return texts.str.replace_all(" ", "\N{NO-BREAK SPACE}")


def _days(texts: pl.Series) -> pl.Series:
    """Texts whose days stay on one line."""
    dash = "\N{NON-BREAKING HYPHEN}"
    return texts.str.replace_all(r"(\d{4})-(\d\d)-(\d\d)", f"${{1}}{dash}${{2}}{dash}${{3}}")


def _asked(words: str, needed: pl.DataFrame) -> None:
    """What is asked for, each with the version that turned it on."""
    told = needed.select(
        pl.concat_str("feature", pl.lit(" ("), views.engines.compatibility.turned_on(brief=True), pl.lit(")"))
    ).to_series()
    asked = ", ".join(told.to_list()) or "nothing beyond the first protocol"
    st.markdown(f":small[:gray[{words}: {escape(asked)}.]]")
