"""The schema page's parts: the tree of columns, the difference of two versions, and each column's history."""

from datetime import datetime

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import answers, columns, widths
from lakeview.app.commits import open_picked
from lakeview.app.components import BROKEN_LINES, MAX_ROWS, ROW_HEIGHT, dark, escape, fold, frame, link, nothing, stack
from lakeview.app.null_shares import null_columns
from lakeview.app.row_links import row_link
from lakeview.app.selection import link as selected
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import choice, link_widget, page_number
from lakeview.inspection.schemas import readable_schemas, schema_changes
from lakeview.model.errors import LakeviewError
from lakeview.model.snapshot import Snapshot

_CLASS_GLYPHS = {
    "breaks readers": "\N{MULTIPLICATION X}",
    "breaks some readers": "\N{BLACK UP-POINTING TRIANGLE}",
    "breaks writers": "\N{BLACK UP-POINTING TRIANGLE}",
    "safe": "\N{CHECK MARK}",
}
_FILTER = "find"
_MANY_COLUMNS = 20
_SHORT_COMMENT = 12
"""Letters of a comment that fit a line at 900 pixels; longer ones are broken, if most rows have one, or else stand
below the table, too."""
_MOST_COMMENTS = 20


def answer(now: OpenTable) -> str:
    """How many columns there are, and what changed last."""
    schemas = answers.schemas_up_to(now)
    changes = schema_changes(readable_schemas(now.look.frames, schemas.tail(2)))
    return views.first_lines.schema_line(changes, len(now.snapshot.schema), schemas)


def tree(now: OpenTable) -> pl.DataFrame:
    """COLUMN_TREE of the version shown: types, statistics, rules and estimated distinct values."""
    rules = views.schema.columns.column_rules(now.snapshot.rules)
    versions = views.timeline.branches.line(now.frames.history, now.version)
    distinct = views.files.manifests.distinct_values(now.frames.of_log("statistics files"), versions)
    return views.schema.tree.column_tree(now.look.columns().tree, rules, distinct)


def constraints_note(rules: pl.DataFrame) -> str:
    """How many constraints there are, and what they do."""
    return f"{views.units.count_text(rules.height, 'constraint')} · a write that violates one is refused"


def constraints_table(rules: pl.DataFrame) -> None:
    """One row a constraint of the table: its name and its expression."""
    frame(rules, {"name": columns.text("constraint"), "rule": columns.text("every row")}, key="constraints")


def tree_note(now: OpenTable, tree: pl.DataFrame) -> str:
    """How many columns, how many of them nested, when the schema last changed, and what min and max are."""
    return " · ".join(
        [
            *views.schema.tree.column_counts(tree),
            *views.schema.column_history.last_change(answers.schemas_up_to(now)),
            *views.schema.tree.range_note(tree),
        ]
    )


def tree_table(tree: pl.DataFrame) -> None:
    """The tree: one row a column, nested ones indented; null share and range from statistics alone. A wide one can be
    searched, and is shown by page."""
    tree = _search(tree)
    if tree.is_empty():
        nothing("No column matches.", "Names, paths and comments were searched.")
        return
    part = tree.slice((page_number(tree.height, MAX_ROWS, "tree-page") - 1) * MAX_ROWS, MAX_ROWS)
    table_columns = {
        "id": columns.text("id"),
        "name": columns.text("column", of="label", least=widths.NAME),
        "type": columns.text("type"),
        "required": columns.text("not null", of="nullable", words={"true": "", "false": "\N{CHECK MARK}"}),
        "rules": columns.text("rules", help="defaults, generated and identity columns, clustering, ..."),
        "mark": columns.bound(of="null_share_mark"),
        **null_columns(part, 0),
        "minimum": columns.bound_text("min", of="min_text", least=_uncut(part["min_text"])),
        "maximum": columns.bound_text("max", of="max_text", least=_uncut(part["max_text"])),
        "range": columns.range_kind("range"),
        "distinct": columns.number(
            "distinct", help="an estimate recorded by a writer, for this version or an earlier one"
        ),
        "comment": columns.text("comment"),
    }
    for name in ("id", "rules", "comment", "distinct"):
        if part[name].null_count() == part.height:
            del table_columns[name]
    if part["nullable"].all():
        del table_columns["required"]
    if part["range_is"].n_unique() == 1:  # the note says so
        del table_columns["range"]
    long = part.filter(pl.col("comment").str.len_chars() > _SHORT_COMMENT)
    # all rows are as high as one: one that needs two lines does not double a table of short ones
    are_most_long = 2 * long.height > part.height
    row_height = BROKEN_LINES if are_most_long else ROW_HEIGHT
    frame(part, table_columns, key="schema-tree", row_height=row_height, height=30 * ROW_HEIGHT)
    for path, comment in long.head(0 if are_most_long else _MOST_COMMENTS).select("path", "comment").iter_rows():
        st.markdown(f":small[{escape(path)} &ensp; :gray[{escape(comment)}]]")


def _uncut(bounds: pl.Series) -> int:
    """Pixels of a date, and of the longest whole number: one without its last digits is another number."""
    numbers = bounds.filter(bounds.str.contains(r"^-?\d+$"))
    return max([widths.DAY, *map(widths.heading_width, widths.longest(numbers, None))])


def _search(tree: pl.DataFrame) -> pl.DataFrame:
    """The columns whose path or comment contains the text typed; all of a tree too small to be searched."""
    if tree.height <= _MANY_COLUMNS:
        return tree
    text = st.text_input(
        "Find a column",
        key=link_widget(_FILTER),
        placeholder="find a column",
        label_visibility="collapsed",
        icon=":material/search:",
        width=260,
    )
    return views.schema.tree.search(tree, text or "")


def compared_versions(now: OpenTable) -> tuple[Snapshot, Snapshot]:
    """The two versions to compare: the base and the one shown, or without a base the schema before this one."""
    after = now.snapshot
    base = now.base_snapshot
    if base is not None:
        return base, after
    return now.frames.snapshot(_before_last_change(now)), after


def _before_last_change(now: OpenTable) -> int:
    """The readable version just before the last change of the schema; the version shown if it never changed."""
    newest_first = now.look.on_branch(now.frames.of_log("versions"))["version"]
    for change in reversed(answers.schemas_up_to(now)["version"].to_list()):
        place = newest_first.index_of(change)
        for version in newest_first.slice(0 if place is None else place + 1, 0 if place is None else 1):
            try:
                now.frames.snapshot(version)
            except LakeviewError:  # its log is gone: there is no schema to compare with
                continue
            return int(version)
    return now.version


def diff_title(before: Snapshot, after: Snapshot) -> str:
    """From which version to which; the same one twice where a schema was declared that nothing is written with yet."""
    return f"{views.units.format_version(before.version)} to {views.units.format_version(after.version)}"


def diff_note(changes: pl.DataFrame) -> str:
    """How many changes are of which class, and how columns were matched."""
    matching = "matched by field id or name; choose a version to compare with above"
    return matching if changes.is_empty() else f"{views.schema.breaking.breaking_verdict(changes)} · {matching}"


def diff_table(changes: pl.DataFrame, before: int, after: int) -> None:
    """BREAKING: a sign for how bad it is, the change, column, before and after, and what it breaks."""
    frame(
        changes,
        {
            "risk": columns.mark(_CLASS_GLYPHS, of="class", help="✕ breaks readers, ▲ some readers or writers, ✓ safe"),
            "change": columns.change(),
            "column": columns.text("column", least=widths.NAME),
            "before": columns.text(views.units.format_version(before)),
            "after": columns.text(views.units.format_version(after)),
            "breaks": columns.text("what it breaks", least=widths.SENTENCE),
        },
        key="schema-diff",
    )


def diff_rules(changes: pl.DataFrame) -> None:
    """Why the changes are of their classes: each rule once, worst class first."""
    with fold("What breaks, and why", "why", icon=":material/rule:", is_open=True):
        for name, rule in views.schema.breaking.rules(changes):
            st.markdown(f"{_CLASS_GLYPHS[name]} **{name}** :gray[{escape(rule)}]")


def lifetimes_table(lifetimes: pl.DataFrame) -> None:
    """One row a column that ever was: when it was added, how often it changed, and when it was dropped."""
    frame(
        lifetimes,
        {
            "column": columns.text("column"),
            "since": columns.version("since", of="since"),
            "committed": columns.timestamp(of="born_timestamp"),
            "changes": columns.number("changes"),
            "last_change": columns.text("last change"),
            "dropped": columns.version("dropped in"),
        },
        key="column-lives",
        **row_link("column-lives", lifetimes, "quality", lambda row: selected(column=row["column"])),
        height=12 * ROW_HEIGHT,
    )


def lanes(now: OpenTable, lifetimes: pl.DataFrame, history: pl.DataFrame) -> None:
    """The lifetime of each column as a line: where it begins, changes and ends."""
    until = now.frames.history["timestamp"].max()
    if isinstance(until, datetime):
        stack(
            charts.lanes.column_lanes(lifetimes, history, until, dark=dark()), key="column-lanes", on_pick=open_picked
        )


def blame(history: pl.DataFrame, timeline: pl.DataFrame) -> None:
    """Links to the commit of a change: on the timeline, and compared with the version before it."""
    labels = {
        version: f"{views.units.format_version(version)} · {writer or 'writer not recorded'}"
        for version, writer in zip(history["version"], history["writer"], strict=True)
    }
    newest_first = [str(v) for v in dict.fromkeys(history["version"])][:MAX_ROWS]
    if not newest_first:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        text = choice("Commit of a change", newest_first, "blamed", format_func=lambda v: labels[int(v)], width=260)
        version = int(text)
        link("timeline", "The commit", selected(version=version, commit=text))
        before = views.timeline.commits.version_before(timeline, version)
        if before is not None:
            label = f"Compare with {views.units.format_version(before)}"
            link("compare", label, selected(version=version, base=before))


def history_table(history: pl.DataFrame) -> None:
    """Every change of every column with the commit and writer to blame, newest first."""
    table_columns = {
        "version": columns.version(),
        "committed": columns.date("committed", of="timestamp"),
        "column": columns.text("column", least=widths.NAME),
        "change": columns.text("change"),
        "before": columns.text("before"),
        "after": columns.text("after"),
        "operation": columns.text("operation", least=widths.NAME),
        "writer": columns.text("writer"),
    }
    for name in ("operation", "writer"):  # the commit has them; names need the room
        if history.height > 1 and history[name].n_unique() == 1:
            del table_columns[name]
    frame(
        history,
        table_columns,
        key="column-history",
        **row_link("column-history", history, "timeline", lambda row: selected(commit=row["version"])),
        height=16 * ROW_HEIGHT,
    )
