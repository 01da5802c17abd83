"""The choice of one commit, the table of commits, one commit's drawer, and the key of the readability ribbon."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import cache, columns, errors, timeline_filters
from lakeview.app.components import MAX_ROWS, ROW_HEIGHT, escape, facts, fold, frame, link, nothing
from lakeview.app.memo import cached
from lakeview.app.selection import link as selected
from lakeview.app.session import OpenTable
from lakeview.app.timeline import commit_rows
from lakeview.app.widget_state import linked
from lakeview.model.errors import LakeviewError

COMMIT, PAGE = "commit", "commits-page"
BRANCHES = "Branches and tags"
_PAGE = 200
_CHOICES = 400
_MAX_ACTIONS = 200
_MAX_CHANGES = 5
_REASON_ICONS = {"red": ":material/error:", "orange": ":material/warning:", "gray": ":material/info:"}
_STATE_WORDS = {
    "gone": ("\N{LOWER ONE QUARTER BLOCK}", "gray"),
    "risk": ("\N{LOWER FIVE EIGHTHS BLOCK}", "orange"),
    "kept": ("\N{FULL BLOCK}", "blue"),
    "broken": ("\N{MULTIPLICATION X}", "red"),
}


def tabs(now: OpenTable) -> list[str]:
    """The page's tabs; branches only where the table has any."""
    names = ["Commits", "Writers", "File lifetimes"]
    return names if now.refs.is_empty() else [*names, BRANCHES]


def ribbon_key(runs: pl.DataFrame) -> None:
    """One line of text: what the ribbon's heights mean, and the versions of each state."""
    parts = []
    for state, (glyph, colour) in _STATE_WORDS.items():
        text = views.timeline.readability.runs_text(runs, state)
        if text is not None:
            parts.append(f":{colour}[{glyph} {state} {text}]")
    st.markdown(f":small[**Can it still be read?** &ensp; {' &ensp; '.join(parts)}]")


def pick_from_chart(key: str) -> None:
    """A click on a mark of the chart chooses its version, a drag its span of time."""
    selection = st.session_state[key].get("selection", {})
    if timeline_filters.brushed(selection):
        return
    for picked in selection.values():
        if isinstance(picked, list):
            versions = [row["version"] for row in picked if isinstance(row, Mapping) and "version" in row]
            if versions:
                _choose(versions[-1])


def open_commit(now: OpenTable, timeline: pl.DataFrame, matching: pl.DataFrame) -> int:
    """The commit whose drawer is open: the one the URL names, which the filters may leave out; else that of the version
    shown or the newest, of those that match the filters if any does.

    The URL keeps it as `commit`: written here and not bound to a widget, which would write its label.
    """
    given = {str(version): int(version) for version in timeline["version"]}
    named = given.get(st.query_params.get(COMMIT, "").removeprefix("v"))
    if named is not None:
        return named
    versions = (timeline if matching.is_empty() else matching)["version"]
    return now.version if now.version in versions else int(versions[-1])


def _picker(commits: pl.DataFrame, version: int) -> None:
    """Chooses a commit: the twin widget of a click in the chart."""
    newest_first = commits.reverse()
    around = max(0, (newest_first["version"].index_of(version) or 0) - _CHOICES // 2)
    near = newest_first.slice(around, _CHOICES)  # of a long history the neighbours; the table has them all
    options = [str(version) for version in near["version"]]
    moments = dict(zip(options, near["timestamp"], strict=True))
    st.session_state["pick_commit"] = str(version)
    st.selectbox(
        "Commit",
        options,
        format_func=lambda text: (
            f"{views.units.format_version(int(text))} · {views.units.format_moment(moments.get(text))}"
        ),
        key="pick_commit",
        on_change=lambda: _choose(st.session_state["pick_commit"]),
        label_visibility="collapsed",
        width=210,
    )


def _choose(version: int | str) -> None:
    others = {key: st.query_params.get_all(key) for key in st.query_params if key not in (COMMIT, PAGE)}
    st.query_params.from_dict(
        {**others, COMMIT: str(version)}
    )  # at once: one step; the table turns to the commit's page


def commit_table(commits: pl.DataFrame, version: int) -> None:
    """The commits, newest first, by page; choosing a row opens its drawer."""
    if commits.is_empty():
        nothing("No commit matches these filters.", "Choose more operations, another writer or more time.")
        return
    newest_first = commits.reverse()
    position = newest_first["version"].index_of(version)
    pages = max(1, -(-newest_first.height // _PAGE))
    page = 1
    if pages > 1:
        page = st.pagination(pages, key=linked(PAGE, (position or 0) // _PAGE + 1, range(1, pages + 1)))
    rows = newest_first.slice((page - 1) * _PAGE, _PAGE)
    inside = -1 if position is None else position - (page - 1) * _PAGE
    key = f"commits-{version}-{page}"
    frame(
        views.timeline.commits.with_marks(rows).with_columns(
            records_change=pl.col("records_added") - pl.col("records_removed")
        ),
        {
            "mark": columns.mark(
                _GLYPHS, width=24, help="the kind of commit, as in the chart above; ✚: an anomalous load"
            ),
            "version": columns.version(width=_width(rows["version"])),
            "committed": columns.timestamp(width=112),
            "operation": columns.text("operation", 72),
            "writer": columns.text("writer", 78),
            "change": columns.number(
                "rows \N{PLUS-MINUS SIGN}", 56, of="records_change", help="rows added less rows removed"
            ),
        },
        key=key,
        height=8 * ROW_HEIGHT,
        unknown="unknown",
        selection_mode="single-row",
        selection_default={"selection": {"rows": [inside]}} if 0 <= inside < rows.height else None,
        on_select=lambda: _pick_from_table(key, rows["version"].to_list()),
    )


_GLYPHS = {
    "anomaly": "\N{HEAVY GREEK CROSS}",
    "aside": "\N{BLACK DOWN-POINTING TRIANGLE}",
    "append": "\N{BLACK CIRCLE}",
    "change": "\N{BLACK DIAMOND}",
    "schema": "\N{BLACK UP-POINTING TRIANGLE}",
    "maintenance": "\N{BLACK SQUARE}",
    "other": "\N{WHITE CIRCLE}",
}


def _width(versions: pl.Series) -> int:
    """Pixels for labels of versions: those of random numbers are long."""
    return 50 if versions.is_between(0, 10**9).all() else 90


def _pick_from_table(key: str, versions: list[int]) -> None:
    rows = st.session_state[key]["selection"]["rows"]
    if rows:
        _choose(versions[rows[0]])


def drawer(now: OpenTable, timeline: pl.DataFrame, version: int) -> None:
    """One commit: why it stands out, what it changed, then who wrote it with what, its metrics and raw actions."""
    commit = now.history.row(by_predicate=pl.col("version") == version, named=True)
    state = timeline.row(by_predicate=pl.col("version") == version, named=True)
    with st.container(horizontal=True, vertical_alignment="center", key="drawer-title"):
        operation = escape(commit["operation"] or "no operation recorded")
        st.markdown(f"**{views.units.format_version(version)} · {operation}**", width="content")
        st.space("stretch")
        _picker(timeline, version)
    reason = views.timeline.reasons.reason(timeline, now.look.anomalies(), version)
    if reason is not None:
        line, colour = reason
        st.markdown(f":{colour}[{_REASON_ICONS[colour]}] {escape(line)}")
    _changes(now, timeline, version, commit, state)
    message = _actions(now.address, version).message
    if message is not None:
        st.markdown(f":gray[Message:] {escape(message)}")
    facts(_commit_facts(commit))
    with fold("Metrics from the writer", "metrics", icon=":material/monitoring:"):
        metrics = _json_pairs(commit["metrics"])
        if metrics:
            facts(metrics)
        else:
            st.markdown(":gray[The writer recorded none.]")
    with fold("Raw actions", "raw", icon=":material/data_object:") as raw:
        if raw.open:
            raw_actions(now, version)


def _changes(
    now: OpenTable, timeline: pl.DataFrame, version: int, commit: Mapping[str, Any], state: Mapping[str, Any]
) -> None:
    """What the commit added and removed, how it changed the schema, and its rows."""
    for glyph, what, colour in (("+", "added", "green"), ("\N{MINUS SIGN}", "removed", "orange")):
        if commit[f"files_{what}"] != 0:
            st.markdown(f":{colour}[**{glyph}**] {escape(_amount(commit, what) or 'unknown')}")
    before = views.timeline.commits.version_before(timeline, version)
    if state["schema_changed"] and before is not None:
        _schema_change(now, before, version)
    st.markdown(f":gray[Table after it:] {_state(state)}")
    if before is not None:
        link("compare", f"Compare with {views.units.format_version(before)}", selected(version=version, base=before))
    if commit["files_added"] != 0 or commit["files_removed"] != 0:
        commit_rows.preview(now, version)


def _commit_facts(commit: Mapping[str, Any]) -> dict[str, str | None]:
    version = commit["version"]
    return (
        ({} if views.units.format_version(version) == f"v{version}" else {"version": str(version)})
        | {
            "writer": commit["user"] or "not recorded",
            "engine": " ".join(filter(None, (commit["engine"], commit["client_version"]))) or "not recorded",
            "committed": f"{views.units.format_moment(commit['timestamp'], seconds=True)} UTC",
        }
        | _json_pairs(commit["parameters"])
    )


def _schema_change(now: OpenTable, before: int, version: int) -> None:
    """What the commit changed of the schema, the first few changes in words, and a link to all of them."""
    try:
        changes = views.schema.diff.diff_schemas(now.snapshot_of(before).schema, now.snapshot_of(version).schema)
    except LakeviewError as error:  # one of the two cannot be rebuilt
        st.markdown(f":small[:gray[Its schema change is unknown: {escape(errors.public_text(error.message))}]]")
        return
    for change in changes.head(_MAX_CHANGES).iter_rows(named=True):
        values = " \N{RIGHTWARDS ARROW} ".join(escape(text) for text in (change["before"], change["after"]) if text)
        st.markdown(f":violet[:material/schema:] {change['change']} **{escape(change['column'])}** :gray[{values}]")
    more = changes.height - _MAX_CHANGES
    label = f"{views.units.counted(more, 'more change')}" if more > 0 else "What it breaks"
    if not changes.is_empty():
        link("schema", label, selected(version=version, base=before, tab="What changed"))


def raw_actions(now: OpenTable, version: int) -> None:
    """The actions of one commit as recorded, at most 200, and which kinds there are."""
    actions = _actions(now.address, version)
    kinds = ", ".join(f"{name} {count:,}" for name, count in actions.kinds)
    st.markdown(f":small[:gray[{escape(kinds)}]]")
    if actions.count > _MAX_ACTIONS:
        st.markdown(f":small[:gray[the first {_MAX_ACTIONS} of {actions.count:,}]]")
    st.code(actions.first, language="json", height=280, wrap_lines=True)


@dataclass(frozen=True, slots=True)
class _Actions:
    """A summary of one commit's actions: how many of each kind and in all, the first as recorded, and the message that
    the writer left in `userMetadata`. All actions of a commit of a million files are too large to be cached."""

    kinds: tuple[tuple[str, int], ...]
    count: int
    first: str
    message: str | None


@cached(64)
def _actions(address: str, version: int) -> _Actions:
    actions = cache.commit(address, version)
    kinds = tuple(actions["kind"].value_counts(sort=True).iter_rows())
    first = "\n".join(actions["action"].head(_MAX_ACTIONS).drop_nulls())
    return _Actions(kinds, actions.height, first, views.timeline.commits.commit_message(actions))


def _amount(row: Mapping[str, Any], what: str) -> str | None:
    records, files, size = (row[f"{kind}_{what}"] for kind in ("records", "files", "bytes"))
    if files is None:
        return None
    parts = [views.units.counted(files, "file")]
    if files:
        parts.append(views.units.format_bytes(size))
        parts.append("rows unknown" if records is None else f"{views.units.format_count(records, exact=True)} rows")
    return ", ".join(parts)


def _state(state: Mapping[str, Any]) -> str:
    rows = "rows unknown" if state["records"] is None else f"{state['records']:,} rows"
    files = "files unknown" if state["files"] is None else views.units.counted(state["files"], "file")
    return f"{rows}, {files}, {views.units.format_bytes(state['bytes'])}"


def _json_pairs(text: str | None) -> dict[str, str | None]:
    """The members of a JSON object as text; nested values stay JSON."""
    if not text:
        return {}
    value = json.loads(text)
    if not isinstance(value, dict):
        return {"value": text}
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in list(value.items())[:MAX_ROWS] if v is not None}
