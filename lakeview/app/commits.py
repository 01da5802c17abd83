"""The timeline page's parts: the choice of one commit, the table of commits and one commit's drawer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import cache, errors, timeline_filters
from lakeview.app.components import MAX_ROWS, escape, facts, fold, frame, link
from lakeview.app.memo import kept
from lakeview.app.selection import link as selected
from lakeview.app.session import Opened
from lakeview.app.widget_state import held
from lakeview.model.errors import LakeviewError

COMMIT, PAGE = "commit", "commits-page"
BRANCHES = "Branches and tags"
_PAGE = 200
_CHOICES = 400
_MAX_ACTIONS = 200
_MAX_CHANGES = 5
_STATE_WORDS = {
    "gone": ("\N{LOWER ONE QUARTER BLOCK}", "gray"),
    "risk": ("\N{LOWER FIVE EIGHTHS BLOCK}", "orange"),
    "kept": ("\N{FULL BLOCK}", "blue"),
    "broken": ("\N{MULTIPLICATION X}", "red"),
}


def tabs(now: Opened) -> list[str]:
    """What the page tells; of branches only where the table has any."""
    names = ["Commits", "Writers", "File lives"]
    return names if now.refs.is_empty() else [*names, BRANCHES]


def ribbon_key(runs: pl.DataFrame) -> None:
    """One line of text that says what the ribbon's heights mean, with the versions of each state."""
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


def chosen(now: Opened, shown: pl.DataFrame) -> int:
    """The commit whose drawer is open: the one the URL names, else that of the version shown, else the newest.

    The URL keeps it as `commit`: written here and not bound to a widget, which would write its label.
    """
    wanted = st.query_params.get(COMMIT, str(now.version)).removeprefix("v")
    versions = {str(version): version for version in shown["version"]}
    return int(versions.get(wanted, shown["version"][-1]))


def picker(shown: pl.DataFrame, version: int) -> None:
    """Chooses a commit: the twin widget of a click in the chart."""
    newest_first = shown.reverse()
    around = max(0, (newest_first["version"].index_of(version) or 0) - _CHOICES // 2)
    near = newest_first.slice(around, _CHOICES)  # of a long history the neighbours; the table has them all
    options = near["version"].cast(pl.String).to_list()
    moments = dict(zip(options, near["timestamp"], strict=True))
    st.session_state["pick_commit"] = str(version)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**One commit** &ensp; :small[:gray[or click a row or a mark]]", width="content")
        st.space("stretch")
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
    kept = {key: st.query_params.get_all(key) for key in st.query_params if key not in (COMMIT, PAGE)}
    st.query_params.from_dict({**kept, COMMIT: str(version)})  # at once: one step; the table turns to the commit's page


def commit_table(shown: pl.DataFrame, version: int) -> None:
    """The commits, newest first, by page; choosing a row opens its drawer."""
    newest_first = shown.reverse()
    position = newest_first["version"].index_of(version) or 0
    pages = max(1, -(-newest_first.height // _PAGE))
    page = 1
    if pages > 1:
        page = st.pagination(pages, key=held(PAGE, position // _PAGE + 1, range(1, pages + 1)))
    rows = newest_first.slice((page - 1) * _PAGE, _PAGE)
    inside = position - (page - 1) * _PAGE
    table = rows.select(
        mark=pl.when("suspicious")
        .then(pl.lit("\N{HEAVY GREEK CROSS}"))
        .otherwise(pl.col("lane").replace_strict(_GLYPHS, default="")),
        version=views.units.version_label("version"),
        committed=pl.col("timestamp").dt.strftime("%Y-%m-%d %H:%M"),
        operation="operation",
        writer="writer",
        added="records_added",
        removed="records_removed",
    )
    column = st.column_config
    key = f"commits-{version}-{page}"
    frame(
        table,
        {
            "mark": column.TextColumn(
                "", width=24, help="what kind of commit, as on the picture above; ✚: a load that stands out"
            ),
            "version": column.TextColumn("version", width=_width(rows["version"])),
            "committed": column.TextColumn("committed, UTC", width=112),
            "operation": column.TextColumn("operation", width=76),
            "writer": column.TextColumn("writer", width=78),
            "added": column.NumberColumn("rows +", format="localized", width=58),
            "removed": column.NumberColumn("rows \N{MINUS SIGN}", format="localized", width=58),
        },
        key=key,
        height=420,
        unknown="unknown",
        selection_mode="single-row",
        selection_default={"selection": {"rows": [inside]}} if 0 <= inside < rows.height else None,
        on_select=lambda: _pick_from_table(key, rows["version"].to_list()),
    )


_GLYPHS = {
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


def drawer(now: Opened, timeline: pl.DataFrame, version: int) -> None:
    """One commit: who, with what, what it changed, what it said about itself, its actions as recorded."""
    row = now.history.row(by_predicate=pl.col("version") == version, named=True)
    told = timeline.row(by_predicate=pl.col("version") == version, named=True)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"**{views.units.format_version(version)} · {escape(row['operation'] or 'no operation recorded')}**",
            width="content",
        )
        if told["suspicious"]:
            st.badge(told["label"] or "suspicious", icon=":material/error:", color="red")
        elif told["schema_changed"]:
            st.badge("schema", color="violet")
    said = _actions(now.address, version).said
    if said is not None:
        st.markdown(f":gray[It says] {escape(said)}")
    if told["note"]:
        st.markdown(escape(told["note"]))
    facts(
        ({} if views.units.format_version(version) == f"v{version}" else {"version": str(version)})
        | {
            "writer": row["user"] or "not recorded",
            "engine": " ".join(filter(None, (row["engine"], row["client_version"]))) or "not recorded",
            "committed": f"{views.units.format_moment(row['timestamp'], seconds=True)} UTC",
            "added": _amount(row, "added"),
            "removed": _amount(row, "removed"),
            "table after it": _state(told),
        }
        | _json_pairs(row["parameters"])
    )
    before = told_before(timeline, version)
    if told["schema_changed"] and before is not None:
        _schema_change(now, before, version)
    with st.container(horizontal=True, vertical_alignment="center"):
        if before is not None:
            link(
                "compare", f"Compare with {views.units.format_version(before)}", selected(version=version, base=before)
            )
        link("data", "Preview its rows", selected(version=version))
    with fold("Metrics as the writer gave them", "metrics", icon=":material/monitoring:"):
        metrics = _json_pairs(row["metrics"])
        if metrics:
            facts(metrics)
        else:
            st.markdown(":gray[The writer recorded none.]")
    with fold("Raw actions", "raw", icon=":material/data_object:") as raw:
        if raw.open:
            raw_actions(now, version)


def _schema_change(now: Opened, before: int, version: int) -> None:
    """What the commit changed of the schema, the first few changes in words, and a link to all of them."""
    try:
        changes = views.schema.diff.diff_schemas(now.snapshot_of(before).schema, now.snapshot_of(version).schema)
    except LakeviewError as error:  # one of the two cannot be rebuilt
        st.markdown(f":small[:gray[What it changed of the schema is unknown: {escape(errors.told(error.message))}]]")
        return
    for change in changes.head(_MAX_CHANGES).iter_rows(named=True):
        values = " \N{RIGHTWARDS ARROW} ".join(escape(text) for text in (change["before"], change["after"]) if text)
        st.markdown(f":violet[:material/schema:] {change['change']} **{escape(change['column'])}** :gray[{values}]")
    more = changes.height - _MAX_CHANGES
    label = f"{views.units.counted(more, 'more change')}" if more > 0 else "What it breaks"
    if not changes.is_empty():
        link("schema", label, selected(version=version, base=before, tab="What changed"))


def raw_actions(now: Opened, version: int) -> None:
    """The actions of one commit as recorded, at most 200, and which kinds there are."""
    actions = _actions(now.address, version)
    kinds = ", ".join(f"{name} {count:,}" for name, count in actions.kinds)
    st.markdown(f":small[:gray[{escape(kinds)}]]")
    if actions.count > _MAX_ACTIONS:
        st.markdown(f":small[:gray[the first {_MAX_ACTIONS} of {actions.count:,}]]")
    st.code(actions.first, language="json", height=280, wrap_lines=True)


@dataclass(frozen=True, slots=True)
class _Actions:
    """Of one commit's actions how many there are of each kind and in all, the first as recorded, and what the writer
    said in its own words: a commit of a million files is too large to be kept."""

    kinds: tuple[tuple[str, int], ...]
    count: int
    first: str
    said: str | None


@kept(64)
def _actions(address: str, version: int) -> _Actions:
    found = cache.commit(address, version)
    kinds = tuple(found["kind"].value_counts(sort=True).iter_rows())
    first = "\n".join(found["action"].head(_MAX_ACTIONS).drop_nulls())
    infos = found.filter(pl.col("action").str.contains('"userMetadata"', literal=True))["action"]
    return _Actions(kinds, found.height, first, next(map(_words, infos.head(1)), None))


def _words(action: str) -> str | None:
    said = json.loads(action).get("userMetadata")
    return said if isinstance(said, str) and said else None


def told_before(timeline: pl.DataFrame, version: int) -> int | None:
    """The version before this one on the line that is told, None for the first."""
    of_line = timeline.filter((pl.col("lane") != "aside") | (pl.col("version") == version))["version"]
    position = of_line.index_of(version)
    return int(of_line[position - 1]) if position else None


def _amount(row: Mapping[str, Any], what: str) -> str | None:
    records, files, size = (row[f"{kind}_{what}"] for kind in ("records", "files", "bytes"))
    if files is None:
        return None
    parts = [views.units.counted(files, "file")]
    if files:
        parts.append(views.units.format_bytes(size))
        parts.append("rows unknown" if records is None else f"{views.units.format_count(records, exact=True)} rows")
    return ", ".join(parts)


def _state(told: Mapping[str, Any]) -> str:
    rows = "rows unknown" if told["records"] is None else f"{told['records']:,} rows"
    files = "files unknown" if told["files"] is None else views.units.counted(told["files"], "file")
    return f"{rows}, {files}, {views.units.format_bytes(told['bytes'])}"


def _json_pairs(text: str | None) -> dict[str, str | None]:
    """The members of a JSON object as text; nested values stay JSON."""
    if not text:
        return {}
    value = json.loads(text)
    if not isinstance(value, dict):
        return {"value": text}
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in list(value.items())[:MAX_ROWS] if v is not None}
