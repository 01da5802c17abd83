"""Who can read the table: the matrix of engines, and of recipients if it is shared."""

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import columns
from lakeview.app.components import ROW_HEIGHT, escape, fold, frame, nothing
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import link_widget
from lakeview.model.errors import LakeviewError

_ENGINE = 243
"""Pixels of the longest name of an engine."""
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


def reading_note(now: OpenTable) -> str:
    """How many engines read the version, or cannot; "" where its needs are unknown."""
    try:
        return views.first_lines.reading_engines(now.look.engines(), now.version)
    except LakeviewError:
        return ""


def matrix(now: OpenTable) -> pl.DataFrame:
    """How many engines read the version, the features that it requires, and a row for each engine, with the feature to
    blame and the commit that enabled it; the recipients that could read it if shared. Returns COMPATIBILITY of the
    engines."""
    needs, engines = now.look.requirements(), now.look.engines()
    if engines.is_empty():
        nothing("There are no rules for this table format.", "Which engines can read it is unknown.")
        return engines
    st.markdown(f"**{escape(views.first_lines.engines_line(engines, now.version))}**")
    _required_features("This version requires", needs)
    _causes(engines, "engine")
    looked_for = st.text_input(
        "Find an engine",
        key=link_widget("find-engine"),
        placeholder="find an engine or a feature",
        label_visibility="collapsed",
        icon=":material/search:",
        width=260,
    )
    matches = views.engines.compatibility.search(engines, looked_for or "")
    if matches.is_empty():
        nothing("No engine or feature has this in its name.", f"The rules know {engines.height} engines.")
    else:
        _table(matches, "engines")
    recipient_needs = now.look.requirements_when_shared()
    recipients = views.engines.compatibility.recipients(recipient_needs, now.snapshot.format)
    if not recipients.is_empty():
        with fold("Who could read it if shared", "recipients-fold"):
            _required_features("Recipients need", recipient_needs)
            _causes(recipients, "recipient")
            _table(recipients, "recipients")
    return engines


def _causes(engines: pl.DataFrame, kind: str) -> None:
    """Each feature that stops some of them or leaves it open, with what enabled it."""
    every = views.units.count_text(engines.height, kind)
    for cause, counts in views.engines.compatibility.causes_in_words(engines):
        st.markdown(f"{escape(cause)} &ensp; :gray[of {every}: {counts}]")


def _table(engines: pl.DataFrame, key: str) -> None:
    engines = views.engines.compatibility.problems_first(engines)
    answers = (engines[side].replace_strict(_ANSWERS[side]) for side in ("read", "write"))
    rows = views.engines.compatibility.in_words(engines).with_columns(answers)
    table_columns = {
        "engine": columns.text("engine", least=_ENGINE),
        "read": columns.text("read"),
        "write": columns.text("write"),
        "because of": columns.text("because of", of="cause"),
        "checked": columns.text("checked"),
        "source": columns.link("source", "source"),
    }
    if (rows["checked"] == views.engines.compatibility.rules_date().isoformat()).all():  # the note has the day
        del table_columns["checked"]
    if engines["write"].eq("never").all():
        del table_columns["write"]
    frame(rows, table_columns, key=key, height=(rows.height + 1) * ROW_HEIGHT + 8, unknown="")
    notes = views.engines.compatibility.notes(engines)  # longer than a cell: below, where a line breaks
    if notes:
        st.markdown(":small[" + "  \n".join(f"{escape(of)} &ensp; :gray[{escape(note)}]" for of, note in notes) + "]")


def _required_features(words: str, needs: pl.DataFrame) -> None:
    """The required features, each with the commit that enabled it."""
    features = ", ".join(views.engines.compatibility.required_features(needs)) or "nothing beyond the first protocol"
    st.markdown(f":small[:gray[{words}: {escape(features)}.]]")
