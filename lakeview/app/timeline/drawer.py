"""One commit's drawer: why it stands out, what it changed, its rows, metadata and actions as recorded."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl
import streamlit as st
from msgspec.structs import replace

from lakeview import views
from lakeview.app import answers, commits, display_rows, errors
from lakeview.app.cache import cache_values
from lakeview.app.components import MAX_ROWS, ROW_HEIGHT, SEVERITY_ICONS, escape, facts, fold, link, nothing
from lakeview.app.query import budget, runner
from lakeview.app.query.request import Request
from lakeview.app.selection import link as selected
from lakeview.app.session import OpenTable
from lakeview.model.errors import LakeviewError
from lakeview.model.printable import shorten

_MAX_ACTIONS = 200
_MAX_CHANGES = 5
_LONGEST_OPERATION = 80

_LIMIT, _SECONDS = 50, 30.0

_KINDS = {"added": ("insert", "update_postimage"), "removed": ("delete", "update_preimage")}


def drawer(now: OpenTable, timeline: pl.DataFrame, version: int) -> None:
    """One commit: why it stands out, what it changed, then who wrote it with what, its metrics and raw actions."""
    commits_of_version = now.frames.history.filter(pl.col("version") == version)
    commit = commits_of_version.row(0, named=True)
    engine = commits_of_version.select(views.timeline.writers.engine_name()).item(0, 0)
    state = timeline.row(by_predicate=pl.col("version") == version, named=True)
    with st.container(horizontal=True, vertical_alignment="center", key="drawer-title"):
        operation = escape(shorten(commit["operation"] or "no operation recorded", _LONGEST_OPERATION))
        st.markdown(f"**{views.units.format_version(version)} · {operation}**", width="content")
        st.space("stretch")
        commits.commit_picker(timeline, version)
    reason = views.timeline.events.reason(timeline, now.look.anomalies(), version)
    if reason is not None:
        line, severity = reason
        st.markdown(f"{SEVERITY_ICONS[severity]} {escape(line)}")
    _changes(now, timeline, version, commit, state)
    message = _actions(now, version).message
    if message is not None:
        st.markdown(f":gray[Message:] {escape(message)}")
    facts(_commit_facts(commit, state, engine))
    with fold("Metrics from the writer", "metrics", icon=":material/monitoring:"):
        metrics = _json_pairs(commit["metrics"])
        if metrics:
            facts(metrics)
        else:
            st.markdown(":gray[The writer recorded none.]")
    with fold("Raw actions", "raw", icon=":material/data_object:") as raw:
        if raw.open:
            _raw_actions(now, version)


def _changes(
    now: OpenTable, timeline: pl.DataFrame, version: int, commit: Mapping[str, Any], state: Mapping[str, Any]
) -> None:
    """What the commit added and removed, how it changed the schema, and its rows."""
    for glyph, what, colour in (("+", "added", "green"), ("\N{MINUS SIGN}", "removed", "orange")):
        if state[f"files_{what}"] != 0:
            st.markdown(f":{colour}[**{glyph}**] {escape(_amount(state, what) or 'unknown')}")
    if state["files_redeleted"]:
        st.markdown(f":orange[**~**] {_redeletion_text(state)}")
    before = views.timeline.commits.version_before(timeline, version)
    if state["schema_changed"] and before is not None:
        _schema_change(now, before, version)
    st.markdown(f":gray[Table after it:] {_state(state)}")
    if before is not None:
        link("compare", f"Compare with {views.units.format_version(before)}", selected(version=version, base=before))
    if commit["files_added"] != 0 or commit["files_removed"] != 0:
        _draw_rows(now, version)


def _commit_facts(commit: Mapping[str, Any], state: Mapping[str, Any], engine: str | None) -> dict[str, str | None]:
    version = commit["version"]
    return (
        ({} if views.units.format_version(version) == f"v{version}" else {"version": str(version)})
        | {
            "writer": state["writer"] or "not recorded",
            "engine": engine or "not recorded",
            "committed": f"{views.units.format_moment(commit['timestamp'], seconds=True)} UTC",
        }
        | _json_pairs(commit["parameters"])
    )


def _schema_change(now: OpenTable, before: int, version: int) -> None:
    """What the commit changed of the schema, the first few changes in words, and a link to all of them."""
    try:
        changes = views.schema.diff.diff_schemas(
            now.frames.snapshot(before).schema, now.frames.snapshot(version).schema
        )
    except LakeviewError as error:  # one of the two cannot be rebuilt
        st.markdown(f":small[:gray[Its schema change is unknown: {escape(errors.public_text(error.message))}]]")
        return
    for change in changes.head(_MAX_CHANGES).iter_rows(named=True):
        values = " \N{RIGHTWARDS ARROW} ".join(escape(text) for text in (change["before"], change["after"]) if text)
        st.markdown(f":violet[:material/schema:] {change['change']} **{escape(change['column'])}** :gray[{values}]")
    more = changes.height - _MAX_CHANGES
    label = f"{views.units.count_text(more, 'more change')}" if more > 0 else "What it breaks"
    if not changes.is_empty():
        link("schema", label, selected(version=version, base=before, tab="What changed"))


def _raw_actions(now: OpenTable, version: int) -> None:
    """The actions of one commit as recorded, at most 200, and which kinds there are."""
    actions = _actions(now, version)
    kinds = ", ".join(f"{name} {count:,}" for name, count in actions.kinds)
    st.markdown(f":small[:gray[{escape(kinds)}]]")
    if actions.count > _MAX_ACTIONS:
        st.markdown(f":small[:gray[the first {_MAX_ACTIONS} of {actions.count:,}]]")
    st.code(actions.first, language=None, height=280, wrap_lines=True)


@dataclass(frozen=True, slots=True)
class _Actions:
    """A summary of one commit's actions: how many of each kind and in all, the first as recorded, and the message that
    the writer left in `userMetadata`. All actions of a commit of a million files are too large to be cached."""

    kinds: tuple[tuple[str, int], ...]
    count: int
    first: str
    message: str | None


@cache_values(64, of=())
def _actions(now: OpenTable, version: int) -> _Actions:
    actions = now.frames.commit(version)
    kinds = tuple(actions["kind"].value_counts(sort=True).iter_rows())
    first = "\n".join(actions["action"].head(_MAX_ACTIONS).drop_nulls())
    return _Actions(kinds, actions.height, first, views.timeline.commits.commit_message(actions))


def _amount(row: Mapping[str, Any], what: str) -> str | None:
    records, files, size = (row[f"{kind}_{what}"] for kind in ("records", "files", "bytes"))
    if files is None:
        return None
    parts = [views.units.count_text(files, "file")]
    if files:
        parts.append(views.units.format_bytes(size))
        parts.append("rows unknown" if records is None else views.units.count_text(records, "row"))
    return ", ".join(parts)


def _redeletion_text(state: Mapping[str, Any]) -> str:
    """How many files stayed on with other deleted rows and, of a commit that changed no other file, how many rows."""
    text = f"{views.units.count_text(state['files_redeleted'], 'file')} with other deleted rows"
    if state["files_added"] or state["files_removed"] or None in (state["records_added"], state["records_removed"]):
        return text
    return f"{text}, {views.units.format_row_change(state['records_added'] - state['records_removed'])}"


def _state(state: Mapping[str, Any]) -> str:
    records, least = state["records"], state["least_records"]
    if records is None and not least and state["files"] is None and state["bytes"] is None:
        return "unknown"
    bound = f"at least {views.units.count_text(least, 'row')}" if least else "rows unknown"
    rows = bound if records is None else views.units.count_text(records, "row")
    files = "files unknown" if state["files"] is None else views.units.count_text(state["files"], "file")
    return f"{rows}, {files}, {views.units.format_bytes(state['bytes'])}"


def _json_pairs(text: str | None) -> dict[str, str | None]:
    """The members of a JSON object as text: lists of values with commas between; what is nested deeper stays JSON."""
    if not text:
        return {}
    value = json.loads(text)
    if not isinstance(value, dict):
        return {"value": text}
    return {k: _plain_text(v) for k, v in list(value.items())[:MAX_ROWS] if v is not None}


def _plain_text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if not text.startswith("["):
        return text
    try:
        parts = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    if any(isinstance(part, list | dict) for part in parts):
        return text
    return ", ".join(part if isinstance(part, str) else json.dumps(part) for part in parts) or "none"


def _draw_rows(now: OpenTable, version: int) -> None:
    """A fold with the first rows that the commit added; nothing is read before it is unfolded."""
    with fold("Preview its rows", "preview", icon=":material/table_rows:") as rows:
        if rows.open:
            with errors.messages(here="timeline"):
                _preview_rows(now, version)


def _preview_rows(now: OpenTable, version: int) -> None:
    plan = now.frames.changes_plan(version, version)
    # a change data file says row by row what each is: its kind is null
    added_files = plan.filter(pl.col("change_type").is_null() | (pl.col("change_type") == "insert"))
    cost = budget.Cost.of_plan(plan if added_files.is_empty() else added_files)
    if cost.files == 0:
        nothing("No row changed.", "This commit added and removed none.")
        return
    if not cost.is_cheap:
        size = "of unknown size" if cost.size is None else views.units.format_bytes(cost.size)
        st.markdown(f":gray[Its rows are in {views.units.count_text(cost.files, 'file')}, {size}.]")
    else:
        request = Request(now.address, version, _LIMIT, runner.MEMORY, start=version)
        with st.spinner("Reading rows", show_time=True):
            way, answer = "added", runner.first_rows(replace(request, change_types=_KINDS["added"]), _SECONDS)
            if answer.rows.is_empty():
                way, answer = "removed", runner.first_rows(replace(request, change_types=_KINDS["removed"]), _SECONDS)
        budget.say_if_stopped(answer, _SECONDS)
        rows = answer.rows.drop("_change_type", "_commit_version", "_commit_timestamp")
        rows = views.timeline.events.columns_first(rows, answers.reason_columns(now, version))
        st.markdown(f":small[:gray[{budget.amount(answer, _LIMIT, 'row')} that it {way}]]")
        display_rows.table(rows, key="commit-rows", height=8 * ROW_HEIGHT)
    link("data", "All its changes on the Data page", selected(version=version, base=None, tab="Changes"))
