"""The schema page's parts: the tree of columns, the difference of two versions, and the life of each column."""

from __future__ import annotations

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import answers
from lakeview.app.commits import told_before
from lakeview.app.components import MAX_ROWS, ROW_HEIGHT, dark, escape, fold, frame, link, nothing, stack
from lakeview.app.selection import hold
from lakeview.app.selection import link as selected
from lakeview.app.session import Opened
from lakeview.app.widget_state import held
from lakeview.model.errors import LakeviewError
from lakeview.model.snapshot import Snapshot

_INDENT = "\N{NO-BREAK SPACE}" * 4
_CLASS_GLYPHS = {
    "breaks readers": "\N{MULTIPLICATION X}",
    "breaks some readers": "\N{BLACK UP-POINTING TRIANGLE}",
    "breaks writers": "\N{BLACK UP-POINTING TRIANGLE}",
    "safe": "\N{CHECK MARK}",
}
_FILTER = "find"
_MANY_COLUMNS = 20
_GLYPHS = {"added": "+", "dropped": "\N{MINUS SIGN}", "same": "="}


def tree(now: Opened) -> pl.DataFrame:
    """SCHEMA_TREE of the version shown, with what its statistics tell, and `rules`: what the table says beside."""
    rules = views.schema.rules.column_rules(now.snapshot.rules)
    told = answers.schema_tree(now).join(rules, on="path", how="left", maintain_order="left")
    if now.statistics_files.is_empty():
        return told.with_columns(ndv=pl.lit(None, dtype=pl.Int64))
    distinct = views.files.manifests.distinct_values(
        now.statistics_files, views.timeline.branches.line(now.history, now.version)
    )
    return told.join(distinct, on="path", how="left", maintain_order="left")


def constraints(now: Opened) -> pl.DataFrame:
    """CONSTRAINTS of the version shown."""
    return views.schema.rules.constraints(now.snapshot.rules)


def constraints_note(rules: pl.DataFrame) -> str:
    """How many constraints there are, and what a row has to do with them."""
    return f"{views.units.counted(rules.height, 'constraint')} · a write that breaks one is refused"


def constraints_table(rules: pl.DataFrame) -> None:
    """One row a constraint of the table: its name and its expression."""
    column = st.column_config
    shown = {"name": column.TextColumn("constraint", width=200), "rule": column.TextColumn("every row", width=600)}
    frame(rules, shown, key="constraints")


def tree_note(now: Opened, columns: pl.DataFrame) -> str:
    """How many columns, how many of them nested, and when the schema last changed."""
    nested = columns.filter(pl.col("depth") > 0).height
    parts = [views.units.counted(columns.height - nested, "column")]
    if nested:
        parts.append(f"{nested:,} nested")
    last = answers.schemas_up_to(now).tail(1)
    for version, moment in last.select("version", "timestamp").iter_rows():
        when = (
            "not told"
            if moment is None
            else f"{views.units.format_version(version)}, {views.units.format_date(moment)}"
        )
        parts.append(f"last change {when}")
    return " · ".join(parts)


def tree_table(columns: pl.DataFrame) -> None:
    """The tree: one row a column, nested ones indented; null share and range from statistics alone. A wide one can be
    searched, and is shown by page."""
    column = st.column_config
    columns = _found(columns)
    if columns.is_empty():
        nothing("No column is called so.", "Neither its name, its path nor its comment holds these letters.")
        return
    pages = -(-columns.height // MAX_ROWS)
    page = st.pagination(pages, key=held("tree-page", 1, range(1, pages + 1))) if pages > 1 else 1
    rows = columns.slice((page - 1) * MAX_ROWS, MAX_ROWS).select(
        id=pl.col("id").cast(pl.String),
        name=pl.lit(_INDENT).repeat_by("depth").list.join("") + pl.col("name"),
        type="type",
        null=pl.col("null_share") * 100,
        mark=pl.col("null_share_mark").fill_null(""),
        coverage=pl.col("coverage") * 100,
        minimum="min_text",
        maximum="max_text",
        range="range_is",
        distinct="ndv",
        required=pl.when("nullable").then(pl.lit("")).otherwise(pl.lit("not null")),
        rules="rules",
        comment="comment",
    )
    shown = {
        "id": column.TextColumn("id", width=44),
        "name": column.TextColumn("column", width=150),
        "type": column.TextColumn("type", width=104),
        "required": column.TextColumn("", width=64),
        "rules": column.TextColumn(
            "rules", width=220, help="defaults, generated and identity columns, clustering, ..."
        ),
        "mark": column.TextColumn("", width=26, help="≥ or ≤: a bound; ≈: some files do not count; empty: exact"),
        "null": column.ProgressColumn("null, %", format="%.1f", min_value=0, max_value=100, width=100),
        "coverage": column.NumberColumn(
            "with min/max, %", format="%.0f", width=104, help="the share of files that tell them"
        ),
        "minimum": column.TextColumn("min", width=118),
        "maximum": column.TextColumn("max", width=118),
        "range": column.TextColumn("range is", width=70, help="exact, a bound, or partial: some files do not tell"),
        "distinct": column.NumberColumn(
            "distinct", format="localized", width=66, help="an estimate of its writer's, for this version or an earlier"
        ),
        "comment": column.TextColumn("comment", width=140),
    }
    for name in ("id", "rules", "comment", "distinct"):
        if rows[name].null_count() == rows.height:
            del shown[name]
    if (rows["required"] == "").all():
        del shown["required"]
    frame(rows, shown, key="schema-tree", height=30 * ROW_HEIGHT)


def _found(columns: pl.DataFrame) -> pl.DataFrame:
    """The columns that hold what is searched for, in their path or comment; all where there is nothing to search."""
    if columns.height <= _MANY_COLUMNS:
        return columns
    wanted = st.text_input(
        "Find a column",
        key=held(_FILTER),
        placeholder="find a column",
        label_visibility="collapsed",
        icon=":material/search:",
        width=260,
    )
    if not wanted:
        return columns
    text = pl.concat_str("path", "comment", separator=" ", ignore_nulls=True).str.to_lowercase()
    return columns.filter(text.str.contains(wanted.lower(), literal=True))


def compared(now: Opened) -> tuple[Snapshot, Snapshot]:
    """The two versions to compare: the base and the one shown, or without a base the schema before this one."""
    after = now.snapshot
    base = now.base_snapshot
    if base is not None:
        return base, after
    return now.snapshot_of(_before_last_change(now)), after


def _before_last_change(now: Opened) -> int:
    """The readable version just before the last change of the schema; the version shown if it never changed."""
    newest_first = answers.versions(now)["version"]
    for change in reversed(answers.schemas_up_to(now)["version"].to_list()):
        place = newest_first.index_of(change)
        for version in newest_first.slice(0 if place is None else place + 1, 0 if place is None else 1):
            try:
                now.snapshot_of(version)
            except LakeviewError:  # its log is gone: there is no schema to compare with
                continue
            return int(version)
    return now.version


def diff_title(before: Snapshot, after: Snapshot) -> str:
    """From which version to which; the same one twice where a schema was declared that nothing is written with yet."""
    return f"{views.units.format_version(before.version)} to {views.units.format_version(after.version)}"


def diff_note(changes: pl.DataFrame) -> str:
    """How many changes are of which class, and how columns were matched."""
    matched = "matched by field id or name; choose a version to compare with above"
    return matched if changes.is_empty() else f"{views.schema.breaking.breaking_verdict(changes)} · {matched}"


def diff_table(told: pl.DataFrame, before: int, after: int) -> None:
    """BREAKING: glyph and word, column, before and after, what it breaks and how bad that is."""
    column = st.column_config
    rows = told.with_columns(
        change=pl.col("change").replace_strict(_GLYPHS, default="~") + pl.lit(" ") + pl.col("change"),
        mark=pl.col("class").replace_strict(_CLASS_GLYPHS, default=""),
    )
    frame(
        rows,
        {
            "mark": column.TextColumn("", width=26, help="✕ breaks readers, ▲ some readers or writers, ✓ safe"),
            "change": column.TextColumn("change", width=104),
            "column": column.TextColumn("column", width=150),
            "before": column.TextColumn(views.units.format_version(before), width=170),
            "after": column.TextColumn(views.units.format_version(after), width=170),
            "class": column.TextColumn("class", width=136),
            "breaks": column.TextColumn("what it breaks", width=220),
        },
        key="schema-diff",
    )


def diff_rules(told: pl.DataFrame) -> None:
    """Why the changes are of their classes: each rule once, worst class first."""
    with fold("What breaks, and why", "why", icon=":material/rule:", opened=True):
        for name in views.schema.breaking.CLASSES:
            rules = told.filter(pl.col("class") == name)["rule"].unique(maintain_order=True)
            for rule in rules:
                st.markdown(f"{_CLASS_GLYPHS[name]} **{name}** :gray[{escape(rule)}]")


def lives_table(lives: pl.DataFrame) -> None:
    """One row a column that ever was: where it begins, how often it changed, and where it ends."""
    column = st.column_config
    rows = lives.select(
        "column",
        since=pl.when(pl.col("born_timestamp").is_not_null()).then(views.units.version_label("born")),
        committed=pl.col("born_timestamp").dt.strftime("%Y-%m-%d %H:%M"),
        changes="changes",
        last="last_change",
        ended=views.units.version_label("dropped"),
    )
    frame(
        rows,
        {
            "column": column.TextColumn("column", width=200),
            "since": column.TextColumn("since", width=96),
            "committed": column.TextColumn("committed, UTC", width=130),
            "changes": column.NumberColumn("changes", width=70),
            "last": column.TextColumn("last change", width=320),
            "ended": column.TextColumn("dropped in", width=96),
        },
        key="column-lives",
        height=12 * ROW_HEIGHT,
    )


def lanes(now: Opened, lives: pl.DataFrame, history: pl.DataFrame) -> None:
    """The life of each column as a line: where it begins, changes and ends."""
    moments = now.history["timestamp"].drop_nulls()
    if not moments.is_empty():
        until = moments.sort().to_list()[-1]
        stack(charts.column_lifetimes.column_lanes(lives, history, until, dark=dark()), key="column-lanes")


def blame(history: pl.DataFrame, timeline: pl.DataFrame) -> None:
    """Links to the commit of a change: on the timeline, and compared with what was before."""
    labels = {
        version: f"{views.units.format_version(version)} · {writer or 'writer not recorded'}"
        for version, writer in history.select("version", "writer").iter_rows()
    }
    newest_first = [str(v) for v in dict.fromkeys(history.sort("timestamp", descending=True)["version"])][:MAX_ROWS]
    write = hold("blamed", next(iter(newest_first), ""), newest_first)
    with st.container(horizontal=True, vertical_alignment="center"):
        chosen = st.selectbox(
            "Commit of a change",
            newest_first,
            format_func=lambda version: labels[int(version)],
            key="blamed",
            on_change=write,
            label_visibility="collapsed",
            width=260,
        )
        if chosen:
            link("timeline", "The commit", selected(version=int(chosen), commit=chosen))
            before = told_before(timeline, int(chosen))
            if before is not None:
                label = f"Compare with {views.units.format_version(before)}"
                link("compare", label, selected(version=int(chosen), base=before))


def history_table(history: pl.DataFrame) -> None:
    """Every change of every column with the commit and writer to blame, newest first."""
    column = st.column_config
    rows = (
        history.sort("timestamp", descending=True, maintain_order=True)
        .head(MAX_ROWS)
        .select(
            "column",
            "change",
            "before",
            "after",
            "operation",
            "writer",
            version=views.units.version_label("version"),
            committed=pl.col("timestamp").dt.strftime("%Y-%m-%d %H:%M"),
        )
    )
    frame(
        rows,
        {
            "version": column.TextColumn("version", width=96),
            "committed": column.TextColumn("committed, UTC", width=130),
            "column": column.TextColumn("column", width=200),
            "change": column.TextColumn("change", width=100),
            "before": column.TextColumn("before", width=130),
            "after": column.TextColumn("after", width=130),
            "operation": column.TextColumn("operation", width=120),
            "writer": column.TextColumn("writer", width=120),
        },
        key="column-history",
        height=16 * ROW_HEIGHT,
    )
