"""Who can read the table: the matrix of engines, and of recipients once it is shared."""

from __future__ import annotations

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.ui import upkept
from lakeview.ui.components import ROW_HEIGHT, escape, fold, frame, nothing
from lakeview.ui.opened import Opened

_ROWS = 16
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
    day = views.rules_date().isoformat()
    return f"rules of {day}, each with its source, or tried with that release; what they do not say is unknown"


def matrix(now: Opened) -> pl.DataFrame:
    """One row an engine, with the feature to blame and what turned it on; then what the version asks for, and who could
    read it once it is shared. Returns COMPATIBILITY of the engines."""
    needed = upkept.needs(now.address, now.version, now.latest)
    told = views.compatibility(needed, now.snapshot.format)
    if told.is_empty():
        nothing("No rules speak of this kind of table.", "Who can read it is not known.")
        return told
    _table(told, key="engines")
    _asked("This version asks for", needed)
    shared = upkept.shared_needs(now.address, now.version, now.latest)
    recipients = views.recipients(shared, now.snapshot.format)
    if not recipients.is_empty():
        with fold("Who could read it, once it is shared", "recipients-fold"):
            _table(recipients, key="recipients")
            _asked("Recipients need", shared)
    return told


def _table(told: pl.DataFrame, *, key: str) -> None:
    column = st.column_config
    writes = not told["write"].eq("never").all()
    rows = told.select(
        engine=pl.concat_str("engine", "version", separator=" "),
        read=pl.col("read").replace_strict(_ANSWERS["read"]),
        write=pl.col("write").replace_strict(_ANSWERS["write"]),
        blame="blame",
        since=pl.when(pl.col("blame").is_not_null()).then(views.turned_on()),
        because="because",
        checked=pl.col("checked").cast(pl.String),
        source=pl.col("sources").str.split("\n").list.eval(pl.element().filter(pl.element().str.starts_with("https")))
        .list.first(),
    )  # fmt: skip
    frame(
        rows if writes else rows.drop("write"),
        {
            "engine": column.TextColumn("engine", width=196),
            "read": column.TextColumn("read", width=72),
            **({"write": column.TextColumn("write", width=78)} if writes else {}),
            "blame": column.TextColumn("because of", width=112),
            "since": column.TextColumn("turned on by", width=120),
            "because": column.TextColumn("in words", width=332),
            "checked": column.TextColumn("checked", width=80),
            "source": column.LinkColumn("source", width=60, display_text="source"),
        },
        key=key,
        height=_ROWS * ROW_HEIGHT,
        unknown="",
    )


def _asked(words: str, needed: pl.DataFrame) -> None:
    """What is asked for, each with the version that turned it on."""
    told = needed.select(pl.format("{} ({})", "feature", views.turned_on(brief=True))).to_series()
    asked = ", ".join(told.to_list()) or "nothing beyond the first protocol"
    st.markdown(f":small[:gray[{words}: {escape(asked)}.]]")
