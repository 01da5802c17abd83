"""The pipelines page's parts: which root, what its newest runs did, and all runs."""

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import cache, columns, downloads, errors
from lakeview.app.cache import cache_values
from lakeview.app.components import MAX_ROWS, ROW_HEIGHT, dark, escape, frame, more_rows, nothing, stack
from lakeview.app.pipelines.run import without_zeros
from lakeview.app.row_links import pick_state, row_pick
from lakeview.app.tables import root_input
from lakeview.app.widget_state import link_widget
from lakeview.inspection import PipelineInspection
from lakeview.inspection.pipelines import read_records, record_address
from lakeview.model.pipelines import TABLES
from lakeview.views.pipelines import RunOutcome

RUN = "run"
RUNS_NOTE = (
    "● succeeded, ◆ rows failed an expectation, ▲ interrupted, ✚ failed; a click on a mark or a row chooses the run"
)
_MOST_PIPELINES = 5
_ICONS = {
    RunOutcome.FAILED: ":red[:material/error:]",
    RunOutcome.INTERRUPTED: ":orange[:material/warning:]",
    RunOutcome.ROWS_FAILED: ":orange[:material/warning:]",
}
_BEGIN = """lakeview pipeline init shop   # a small project that runs
lakeview pipeline run shop    # dry run, run, publish below shop/lake"""


def chosen_records() -> PipelineInspection | None:
    """What is recorded below the chosen root; None, and why, where nothing is."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        root = root_input("the output folder of pipelines, or an address in a store")
        if st.button("Read again", icon=":material/refresh:", key="read-again") and root is not None:
            forget_runs(root)
    if root is None:
        nothing("No root is named.", "Type the folder below which pipelines publish their tables.")
        return None
    look = recorded_runs(root)
    if look.has_runs():
        return look
    nothing(
        "No run of a pipeline is recorded below this root.",
        "There is no table _lakeview/runs in it, or it has no rows. A pipeline writes it when it runs:",
    )
    st.code(_BEGIN, language=None)
    return None


def sentences(runs: pl.DataFrame) -> None:
    """One line a pipeline: what its newest run did."""
    lines = views.pipelines.run_sentences(runs, cache.now())
    for outcome, sentence in lines.select("outcome", "sentence").head(_MOST_PIPELINES).iter_rows():
        icon = _ICONS.get(outcome, ":gray[:material/check_circle:]")
        st.markdown(f"{icon} **{escape(errors.public_text(sentence))}**")
    if lines.height > _MOST_PIPELINES:
        st.markdown(f":small[:gray[the {_MOST_PIPELINES} of {lines.height:,} pipelines that ran last]]")


def chosen_run(runs: pl.DataFrame) -> str:
    """Draws the runs; returns the id of the chosen one, the newest unless the link names another."""
    rows = runs.head(MAX_ROWS)
    ids = rows["run_id"].to_list()
    run_id = st.session_state[link_widget(RUN, ids[0], ids)]
    labels = {row["run_id"]: _label(row) for row in rows.iter_rows(named=True)}
    stack(charts.pipelines.run_bars(rows, run_id, dark=dark()), key="runs-bars", on_pick=pick_state(RUN, "run_id"))
    _run_table(rows)
    more_rows(runs.height, "runs", first="newest")
    return str(
        st.selectbox(
            "Run", ids, key=link_widget(RUN, ids[0], ids), format_func=lambda run: labels.get(run, run), width=420
        )
    )


def download(look: PipelineInspection) -> None:
    """Offers all that is recorded as files."""
    if st.button("Download", icon=":material/download:", key="download"):
        frames = {"runs": look.runs(), "expectations": look.expectations(), "lineage": look.lineage()}
        downloads.dialog("pipelines", frames)


def _run_table(rows: pl.DataFrame) -> None:
    table_columns = {
        "outcome": columns.text("status", help="✕ failed, ▲ interrupted, ◆ rows failed, ✓ succeeded"),
        "started": columns.timestamp("started, UTC", of="started"),
        "duration_ms": columns.duration("duration"),
        "rows_in": columns.number("rows in"),
        "rows_out": columns.number("rows out"),
        "rows_dropped": columns.number("dropped"),
        "rows_quarantined": columns.number("quarantined"),
        "failed": columns.number("failed", of="rows_failed", help="rows, each counted once an expectation"),
        "error": columns.text("error"),
        "pipeline": columns.text("pipeline"),
    }
    if rows["pipeline"].n_unique() == 1:
        del table_columns["pipeline"]
    if rows["error"].null_count() == rows.height:
        del table_columns["error"]
    frame(
        rows.with_columns(
            outcome=_signs(rows),
            error=pl.Series([e and errors.public_text(e) for e in rows["error"]], dtype=pl.String),
        ),
        without_zeros(rows, table_columns),
        key="runs-table",
        height=8 * ROW_HEIGHT,
        **row_pick("runs-table", rows["run_id"].to_list(), lambda run: st.session_state.update({RUN: run})),
    )


def _signs(rows: pl.DataFrame) -> pl.Series:
    """The status of each run, after the sign of its outcome."""
    signs = charts.pipelines.SIGNS
    outcomes = zip(views.pipelines.run_outcomes(rows), rows["status"], strict=True)
    return pl.Series([f"{signs.get(outcome, '')} {status}".lstrip() for outcome, status in outcomes], dtype=pl.String)


def _label(run: Mapping[str, Any]) -> str:
    return f"{views.units.format_moment(run['started'], seconds=True)} · {run['status']} · {run['pipeline']}"


def recorded_runs(root: str) -> PipelineInspection:
    """The answers about the pipelines that publish below a root, as of at most 30 s ago."""
    return PipelineInspection(root, lambda name, address: _rows(address, cache.latest(address).version, name))


def forget_runs(root: str) -> None:
    """Forgets what was read below a root: the next page reads it again."""
    for name in TABLES:
        cache.forget(record_address(root, name))


@cache_values(12)
def _rows(address: str, version: int, name: str) -> pl.DataFrame:
    """The rows of a version; a version that was just written may be read as the one before."""
    _ = version
    return read_records(cache.table(address), name)
