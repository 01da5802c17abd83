"""One run of the pipelines page: its steps, its expectations, and rows that failed them."""

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import columns, display_rows, errors, widths
from lakeview.app.components import MAX_ROWS, ROW_HEIGHT, escape, frame, link, more_rows, nothing, prose
from lakeview.app.selection import Selection
from lakeview.app.table_cells import Column
from lakeview.app.widget_state import link_widget
from lakeview.inspection import PipelineInspection
from lakeview.model.printable import shorten
from lakeview.views.pipelines import RunOutcome

STEPS_NOTE = "in the order in which they began, UTC; rows as the step counts them"
EXPECTATIONS_NOTE = "what rows have to satisfy, those with failed rows first; ◆ rows failed, ✕ they failed the run"
_STATUS = 75
"""Pixels of a status that are not cut."""
_MOST_OF_A_SAMPLE = 4_000
_MOST_OF_A_CONDITION = 1_000


def steps(look: PipelineInspection, run_id: str) -> None:
    """Draws the steps of a run, and the errors of those that failed in full."""
    rows = look.steps(run_id)
    if rows.is_empty():
        nothing("No step of this run is recorded.", "It goes on, or its process was killed before the first one ended.")
        return
    table_columns = {
        "step": columns.text("step"),
        "dataset": columns.text("dataset", least=widths.NAME),
        "status": columns.text("status", least=_STATUS),
        "started": columns.clock("started", of="started"),
        "duration_ms": columns.duration("duration"),
        "rows_in": columns.number("rows in"),
        "rows_out": columns.number("rows out"),
        "rows_dropped": columns.number("dropped"),
        "rows_quarantined": columns.number("quarantined"),
        "version": columns.version("made", help="the version that it made"),
    }
    frame(rows, without_zeros(rows, table_columns), key="steps", height=10 * ROW_HEIGHT)
    more_rows(rows.height, "steps", note="")
    for step, dataset, error in rows.drop_nulls("error").select("step", "dataset", "error").head(5).iter_rows():
        what = f"{step} of {dataset}" if dataset else step
        st.markdown(f":red[:material/error:] **{escape(what)}** :gray[failed:]")
        st.code(shorten(errors.public_text(error), _MOST_OF_A_SAMPLE), language=None, wrap_lines=True)


def expectations(look: PipelineInspection, run_id: str) -> None:
    """Draws the expectations of a run, and the failed rows of one of them."""
    rows = look.expectations(run_id)
    if rows.is_empty():
        nothing("No expectation was checked in this run.", "A project names them below its tables: expectations.")
        return
    first = rows.head(MAX_ROWS)
    version_names = map(views.pipelines.version_name, first["dataset"], first["version"])
    prose(
        {
            "expectation": [
                f"{_sign(row)} {escape(row['expectation'] or views.units.EN_DASH)}"
                for row in first.iter_rows(named=True)
            ],
            "dataset": map(escape, version_names),
            "action": map(escape, first["action"].fill_null(views.units.EN_DASH)),
            "condition": [
                escape(shorten(text or views.units.EN_DASH, _MOST_OF_A_CONDITION)) for text in first["condition"]
            ],
            "rows failed": map(_failures, first["rows_failed"], first["rows_checked"], first["failed_share"]),
        }
    )
    more_rows(rows.height, "expectations", note="")
    failures = {_label(row): row for row in rows.filter(pl.col("rows_failed") > 0).head(MAX_ROWS).iter_rows(named=True)}
    if failures:
        choice = st.selectbox(
            "Failed rows of",
            list(failures),
            key=link_widget("expectation", next(iter(failures)), failures),
            width=420,
        )
        _failed_rows(failures[choice])


def _sign(row: Mapping[str, Any]) -> str:
    """The sign that the run has where no other expectation failed: a failure that its action refuses fails the run."""
    if row["rows_failed"] == 0:
        return charts.pipelines.SIGNS[RunOutcome.SUCCEEDED]
    return charts.pipelines.SIGNS[RunOutcome.FAILED if row["action"] == "fail" else RunOutcome.ROWS_FAILED]


def _failures(count: int | None, of_rows: int | None, share: float | None) -> str:
    """`5 of 249, 2.0 %`."""
    of = f"{views.units.format_count(count, exact=True)} of {views.units.format_count(of_rows, exact=True)}"
    whole = of if not count else f"{of}, {views.units.format_percent(share)}"
    return whole.replace(" ", "\N{NO-BREAK SPACE}")


def without_zeros(rows: pl.DataFrame, cells: Mapping[str, Column]) -> dict[str, Column]:
    """The columns but those of dropped and quarantined rows where no row was."""
    empty = {name for name in ("rows_dropped", "rows_quarantined") if not (rows[name] != 0).any()}
    return {name: column for name, column in cells.items() if name not in empty}


def _failed_rows(row: Mapping[str, Any]) -> None:
    """The condition, a few failed rows as they were recorded, and a link to all where they are in quarantine."""
    count, of_rows = row["rows_failed"], row["rows_checked"]
    condition = escape(shorten(row["condition"] or "a condition that is not recorded", _MOST_OF_A_CONDITION))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            f"{views.units.count_text(count, 'row')} of {views.units.format_count(of_rows, exact=True)} failed "
            f"**{condition}**",
            width="content",
        )
        if row["quarantine"] is not None:
            label = views.pipelines.version_name("Rows in quarantine,", row["quarantine_version"])
            link("data", label, Selection(row["quarantine"], row["quarantine_version"]).parameters())
    sample = views.pipelines.failed_rows(row["sample"])
    if sample is None:
        st.markdown(":gray[The sample that is recorded is no JSON list of rows; it is shown as it is:]")
        st.code(shorten(row["sample"], _MOST_OF_A_SAMPLE), language=None, wrap_lines=True)
    elif sample.is_empty():
        st.markdown(":gray[No failed row is recorded with it.]")
    else:
        display_rows.table(sample, key="failed-rows", height=8 * ROW_HEIGHT)
        st.markdown(f":small[:gray[{views.units.count_text(sample.height, 'row')} recorded as a sample]]")


def _label(row: Mapping[str, Any]) -> str:
    """`price is positive · orders v3`, a name for each publication of a run."""
    return f"{row['expectation']} · {views.pipelines.version_name(str(row['dataset']), row['version'])}"
