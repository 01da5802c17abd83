"""The timeline's tab of the audit: violations, verdicts by law, engines to blame, and what cannot be known."""

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import columns, commits, downloads, selection
from lakeview.app.components import ROW_HEIGHT, card, escape, frame, nothing, prose
from lakeview.app.row_links import row_link
from lakeview.app.session import OpenTable

AUDIT = "audit"
_MAX_ROWS = 2_000
_LAWS_NOTE = (
    "what every commit promises: proven or violated by what the log records, and unknowable where it does not record "
    "enough to tell"
)


def audit(now: OpenTable, timeline: pl.DataFrame) -> None:
    """The audit of every commit; of a long log asked for by a button that carries its cost."""
    if timeline.is_empty():
        with card():
            commits.no_commits(now)
        return
    if not now.look.is_audited_at_once and st.query_params.get(AUDIT) != "1":
        if st.button(f"Audit the commits: {_cost(now)}", type="primary", icon=":material/gavel:", key="run-audit"):
            st.query_params[AUDIT] = "1"
            st.rerun()
        st.markdown(":small[:gray[The audit reads every commit once, and no data file.]]")
        return
    with st.spinner("Auditing the commits"):
        verdicts = now.look.audit()
    downloads.offer("audit", verdicts)
    reasons = views.audit.reasons(verdicts)
    with card("Violations", views.audit.sentence(verdicts), key="audit-violations"):
        _violations(views.audit.violations(verdicts), is_all_proven=reasons.is_empty())
    with card("Verdicts by law", _LAWS_NOTE, key="audit-laws"):
        _laws(views.audit.law_counts(verdicts))
    blame = views.audit.blame(verdicts)
    if not blame.is_empty():
        with card("Engines to blame", "the writers of the commits with violations, as recorded", key="audit-blame"):
            _blame(blame)
    if not reasons.is_empty():
        with card("Unknowable, and why", "what the log would have to record", key="audit-reasons"):
            _reasons(reasons)


def _cost(now: OpenTable) -> str:
    log = now.look.frames.of_log("log files")
    size = views.units.format_bytes(views.overview.log_size(log))
    return f"reads up to {views.units.count_text(log.height, 'file')}, {size}"


def _violations(rows: pl.DataFrame, *, is_all_proven: bool) -> None:
    if rows.is_empty():
        why = "The log proves every one." if is_all_proven else "What the log cannot show is listed below."
        nothing("No commit violates a law.", why)
        return
    rows = rows.head(_MAX_ROWS)
    frame(
        rows,
        {
            "version": columns.version(),
            "committed": columns.timestamp(),
            "operation": columns.text("operation"),
            "engine": columns.text("engine", null="not recorded"),
            "title": columns.text("law", of="title"),
            "reason": columns.text("what is wrong", of="reason"),
            "expected": columns.text("expected"),
            "found": columns.text("found"),
            "path": columns.text("first file", of="path"),
        },
        key="audit-violations-table",
        **row_link("audit-violations-table", rows, "timeline", lambda row: selection.link(commit=row["version"])),
        unknown="",
        height=14 * ROW_HEIGHT,
    )


def _laws(rows: pl.DataFrame) -> None:
    promises = [
        f"{escape(sentence)} :gray[{escape(rule)}]" for sentence, rule in rows.select("sentence", "rule").iter_rows()
    ]
    counts = {name: rows[name].to_list() for name in ("violated", "unknowable", "proven")}
    prose({"law": map(escape, rows["title"]), **counts, "what it asks for": promises})


def _blame(rows: pl.DataFrame) -> None:
    frame(
        rows,
        {
            "engine": columns.text("engine", null="not recorded"),
            "client_version": columns.text("client"),
            "commits": columns.number("commits"),
            "violations": columns.number("violations"),
            "laws": columns.text("laws"),
            "first": columns.version("first commit", of="first"),
        },
        key="audit-blame-table",
        unknown="",
        height=8 * ROW_HEIGHT,
    )


def _reasons(rows: pl.DataFrame) -> None:
    prose(
        {
            "law": map(escape, rows["title"]),
            "reason": map(escape, rows["reason"]),
            "commits": rows["commits"],
        }
    )
