"""The overview's parts: the verdict, six figures with their past, the schema at a glance, protocol and properties."""

from collections.abc import Sequence

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import answers, columns, selection, uploads
from lakeview.app.answers import file_layout
from lakeview.app.components import escape, facts, finding_lines, frame, grid, link, tile
from lakeview.app.null_shares import null_columns
from lakeview.app.pages import PAGES
from lakeview.app.row_links import row_link
from lakeview.app.session import OpenTable
from lakeview.app.widths import HALF
from lakeview.model.findings import Finding, Severity, severity_counts

_MAX_PROPERTIES = 40
MOST_FINDINGS = 3
_NAME = 100
"""Pixels of a column's name in the table of columns, in a card of half the page."""


def tiles(now: OpenTable, timeline: pl.DataFrame) -> None:
    """Rows, live bytes, retained bytes, files, last commit and log size, each with its history."""
    progress = views.overview.progress(timeline, now.version, now.base)
    files = file_layout(now).facts
    with grid(160):  # six in a row on a page 1440 pixels wide, twice three at 900
        rows, size = now.snapshot.num_records, now.snapshot.size_bytes
        help_of_rows = views.overview.rows_help(rows, files.least_records)
        live_rows = views.units.format_count(rows, least=files.least_records)
        live_bytes = views.units.format_bytes(size, least=files.least_bytes)
        _state_tile("Rows", live_rows, progress, "records", rows, help_of_rows)
        _state_tile("Live bytes", live_bytes, progress, "bytes", size, views.overview.bytes_help(files))
        _retained_tile(now, progress)
        _files_tile(now, progress, files)
        _last_commit_tile(now, progress)
        _log_tile(now)


def _state_tile(
    label: str, figure: str, progress: views.overview.Progress, measure: str, value: int | None, help_text: str
) -> None:
    change = progress.change(value, measure)
    note, trend = progress.since if change else None, views.overview.samples(progress.past, measure)
    tile(label, figure, change, note=note, help=help_text, trend=trend)


def _retained_tile(now: OpenTable, progress: views.overview.Progress) -> None:
    retention = now.look.known_retention()
    if retention is None:
        tile("Retained bytes", views.units.UNKNOWN, help="The newest version cannot be read, nor which files it needs.")
        return
    is_bound, stored_bytes, course = retention.bound is not None, retention.stored_bytes, None
    if now.ref is None:
        course = views.retention.cost.retained_course(retention, progress.past)
    elif stored_bytes is not None:
        stored_bytes += views.retention.cost.ref_bytes(now.snapshot.files, now.look.frames.of_log("lifetimes"))
    scope = [", of the default branch"] if retention.refs > 1 else []
    if now.ref is not None:
        scope.append(f", and of files that only {escape(now.ref)} has")
    old = views.overview.retained_text(retention.retained_bytes, no_times=retention.has_no_times, is_bound=is_bound)
    tile(
        "Retained bytes",
        views.units.format_bytes(None if is_bound else stored_bytes, least=stored_bytes),
        old,
        note="old" if old is not None and retention.retained_bytes else None,
        help="Bytes of the latest version, and of removed files that versions which can still be read need"
        f"{''.join(scope)}.",
        trend=None if course is None else views.overview.samples(course, "bytes"),
        attention=_has_finding(now, "history-cost"),
    )


def _files_tile(now: OpenTable, progress: views.overview.Progress, files: views.files.sizes.FileFacts) -> None:
    count, small = now.snapshot.num_files, files.small_files
    tile(
        "Files",
        f"{count:,}",
        f"{small:,} under 1 MiB" if small else progress.change(count, "files"),
        note=None if small else progress.since,
        help="Data files of this version, exact, from the log.",
        trend=views.overview.samples(progress.past, "files"),
        attention=_has_finding(now, "small-files"),
    )


def _last_commit_tile(now: OpenTable, progress: views.overview.Progress) -> None:
    cadence = now.look.cadence()
    # a table that is late by its commits is so whatever its newest load brought
    lateness = "" if cadence.late else views.quality.lateness.data_lateness(now.look.quality())
    retention = now.look.known_retention()
    is_empty = cadence.age is None and retention is not None and not retention.has_no_times
    usual = None if cadence.usual is None else f"every {views.units.format_age(cadence.usual)}"
    tile(
        "Last commit",
        "none" if is_empty else views.units.format_age(cadence.age),
        "that changed data" if is_empty else f"data {lateness}" if lateness else usual,
        note=None if usual is None or lateness else "median",
        help="Age of the last commit that changed data, and the median gap between such commits; where a column has "
        "times of events, how far the newest one lies before the load that brought it.",
        trend=views.overview.commit_gaps(progress.past),
        bars=True,
        attention=cadence.late,
    )


def _log_tile(now: OpenTable) -> None:
    log = now.look.frames.of_log("log files")
    tile(
        "Log size",
        views.units.format_bytes(views.overview.log_size(log)),
        None if log.is_empty() else views.units.count_text(log.height, "file"),
        help="Bytes of the table's log: commits, checkpoints, metadata; from one listing.",
        trend=views.overview.samples(views.retention.cost.log_course(log), "bytes"),
        attention=_has_finding(now, "log-size") or _has_finding(now, "checkpoint-age"),
    )


def verdict(findings: Sequence[Finding], timeline: pl.DataFrame, *, is_latest: bool) -> None:
    """The worst finding first, with links to its rows, its commit and its remedy; then what it all comes to, two more
    findings, and how many are left."""
    worst = next(iter(findings), None)
    first = findings[:1] if worst is not None and worst.severity in views.health.findings.OPEN else []
    for finding in first:
        finding_lines([finding], here=finding.page)
        with st.container(horizontal=True, gap="medium"):
            if finding.page in PAGES:
                label = None if finding.commit is None else "Its commit"
                link(finding.page, label, selection.link(commit=finding.commit))
            if finding.commit is not None:
                before = views.timeline.commits.version_before(timeline, finding.commit)
                link("data", "Its rows", selection.link(version=finding.commit, base=None, tab="Changes"))
                if before is not None:
                    link("compare", "What it changed", selection.link(version=finding.commit, base=before))
            link("health", "Remedy")
    source = "the log alone" if timeline.height else "this version alone: there is no history to compare it with"
    text = escape(views.health.findings.verdict(findings, is_latest=is_latest))
    if first:
        st.markdown(f":small[:gray[{text} · from {source}]]")
    else:
        st.markdown(f":gray[:material/check_circle:] **{text}** &ensp; :small[:gray[from {source}]]")
    others = findings[len(first) :]
    finding_lines(others, limit=MOST_FINDINGS - len(first), here="overview")
    rest = [f for f in others[MOST_FINDINGS - len(first) :] if f.severity is not Severity.PASS]
    if rest:
        link("health", f"{views.units.count_text(len(rest), 'more finding')}: {severity_counts(rest)}")


def schema_note(now: OpenTable) -> str:
    """How many columns, and when the schema last changed."""
    count = views.units.count_text(len(now.snapshot.schema), "column")
    return " · ".join([count, *views.schema.column_history.last_change(answers.schemas_up_to(now))])


def schema_glance(now: OpenTable) -> None:
    """Top-level columns with type, null share and the version that added them, from the log."""
    few = now.look.is_small
    tree = now.look.columns().tree if few else views.schema.columns.schema_tree(now.snapshot.schema)
    lifetimes = views.schema.column_history.column_lives(now.look.schema_versions())
    rows = views.schema.tree.column_glance(tree, lifetimes, is_read=few)
    frame(
        rows,
        {
            "column": columns.text("column", least=_NAME),
            "type": columns.text("type"),
            "mark": columns.bound(of="null_share_mark"),
            **null_columns(rows, 40),
            "statistics": columns.text("statistics"),
            "since": columns.version("since"),
        },
        key="schema-glance",
        place=HALF,
        **row_link("schema-glance", rows, "quality", lambda row: selection.link(column=row["column"])),
        height=340,
    )


def identity(now: OpenTable) -> None:
    """Name, protocol, features, partitioning, properties; not again the description, where a property contains it."""
    s = now.snapshot
    properties = [pair for pair in (s.properties or {}).items() if pair != ("comment", s.description)]
    facts(
        {
            "name": s.name or "not named",
            "description": s.description or "none",
            "id": s.id,
            "location": uploads.public_text(s.location),
            "created": f"{views.units.format_moment(s.created)} UTC" if s.created else None,
            "partitioned by": ", ".join(s.partition_columns) or "nothing",
            "protocol": s.protocol.label,
            "features": ", ".join(s.protocol.features) or "none named",
        },
        dict(properties[:_MAX_PROPERTIES]),
    )


def _has_finding(now: OpenTable, finding_id: str) -> bool:
    return any(f.id == finding_id and f.severity in ("broken", "attention") for f in now.look.findings())
