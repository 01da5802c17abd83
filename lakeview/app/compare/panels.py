"""The compare page's parts: which two versions, what differs in log and statistics, and the rows on demand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import cache, columns, display_rows, selection
from lakeview.app.components import MAX_ROWS, ROW_HEIGHT, dark, escape, fold, frame, grid, nothing, stack, tile
from lakeview.app.memo import cached
from lakeview.app.query import budget, runner
from lakeview.app.query.worker import Request
from lakeview.app.row_links import row_link
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import linked
from lakeview.model.snapshot import Snapshot

FILES_NOTE = "added right, removed left, log scale"
SHIFT_NOTE = "null share, %: ring before, dot after; from statistics alone"
KEY = "key"
_KINDS = {
    views.compare.row_pairs.ADDED: "added",
    views.compare.row_pairs.REMOVED: "removed",
    views.compare.row_pairs.CHANGED: "changed",
}
ROWS_NOTE = "from the files that only one of the two has; rows that were only rewritten are no difference"
_COLOURS = {
    r"\+[\d.,]+( [kMG])? rows": "green",
    r"\N{MINUS SIGN}[\d.,]+( [kMG])? rows": "orange",
    r"\d[\d,]* files? written \([^)]*\)": "green",
    r"(?<![\d,])[1-9][\d,]* removed \([^)]*\)": "orange",
    r"\d+ columns? (added|dropped|renamed|with another type)": "violet",
    r"(?<=; )[^;]* stood out": "orange",
}
"""What is coloured in the sentence, and how."""
SETTINGS_NOTE = "properties, protocol and features"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two versions, the base first."""

    before: Snapshot
    after: Snapshot


def current_pair(now: OpenTable) -> Pair | None:
    """The base, or without one the version before, and the version shown; None where they are one and the same, and
    where there is none before."""
    base = now.base_snapshot
    if base is None:
        before = views.timeline.commits.version_before(now.look.timeline(), now.version)
        base = None if before is None else now.snapshot_of(before)
    return None if base is None or base.version == now.version else Pair(base, now.snapshot)


def offers(now: OpenTable) -> None:
    """Bases worth choosing, to press: a link to the page one is on would not come into the address bar."""
    choices = views.compare.versions.base_choices(now.look.timeline(), now.version)
    if not choices:
        shown = views.units.format_version(now.version)
        if now.snapshot.timestamp is None:
            nothing(f"Earlier versions than {shown} are not known.", "Choose any version above: it is requested.")
        else:
            nothing(f"{shown} has no version before it.", "Choose a later version above.", "timeline")
        return
    st.markdown("**Compare with** &ensp; :small[:gray[or choose any version above]]")
    timeline = now.look.timeline()
    timestamps = dict(zip(timeline["version"], timeline["timestamp"], strict=True))
    for choice in choices:
        when = views.units.format_moment(timestamps.get(choice.version))
        label = f"{choice.label} · {views.units.format_version(choice.version)}, {when}"
        st.button(
            f":blue[{escape(label)} :material/chevron_right:]",
            key=f"offer-{choice.version}",
            type="tertiary",
            on_click=selection.select_base,
            args=(choice.version,),
        )


def sentence(now: OpenTable, pair: Pair) -> None:
    """One sentence that can be copied into a ticket, and where its figures come from."""
    text = views.compare.versions.sentence(pair.before, pair.after, now.look.timeline())
    with st.container(horizontal=True, vertical_alignment="top"):
        st.markdown(_coloured(text), width="stretch")
        with st.popover("", icon=":material/content_copy:", type="tertiary", help="As text, for a ticket"):
            st.code(text, language=None, wrap_lines=True)
    known = None not in (pair.before.num_records, pair.after.num_records)
    rows = "and rows" if known else "; rows are unknown, some files have no row count"
    st.markdown(f":small[:gray[From the log alone: exact for columns, settings, files, bytes {rows}.]]")


def _coloured(text: str) -> str:
    """The sentence with what came and went in colour."""
    shown = escape(text)
    for pattern, colour in _COLOURS.items():
        shown = re.sub(pattern, rf":{colour}[**\g<0>**]", shown)
    return shown


def same_in_both(equal: Sequence[str]) -> None:
    """One line for all that does not differ."""
    if equal:
        st.markdown(f":small[:gray[The same in both versions: {', '.join(equal)}.]]")


def tiles(pair: Pair) -> None:
    """Five figures: now, and what changed."""
    with grid(165, 5):
        for label, value, change in views.compare.versions.difference_tiles(pair.before, pair.after):
            tile(label, value, change)


def settings_note(rows: pl.DataFrame) -> str:
    """How many settings differ."""
    changed = views.compare.versions.changed(rows)
    return f"{changed:,} of {rows.height:,} differ · {SETTINGS_NOTE}"


def settings_table(rows: pl.DataFrame, pair: Pair) -> None:
    """One row a setting, changes first."""
    frame(
        rows,
        {
            "change": columns.change(width=86),
            "name": columns.text("name", 200),
            "before": columns.text(views.units.format_version(pair.before.version), 105),
            "after": columns.text(views.units.format_version(pair.after.version), 105),
        },
        key="settings",
        height=9 * 28,
        unknown="",
    )


def schema_note(changes: pl.DataFrame, pair: Pair) -> str:
    """How many fields changed, and of how many."""
    changed = views.units.counted(changes.height, "change")
    return f"{changed} · {len(pair.after.schema):,} columns · matched by field id or name"


def schema_table(changes: pl.DataFrame, pair: Pair) -> None:
    """One row a change: sign and word, column, before and after, what it breaks."""
    frame(
        changes,
        {
            "change": columns.change(width=86),
            "column": columns.text("column", 118),
            "before": columns.text(views.units.format_version(pair.before.version), 92),
            "after": columns.text(views.units.format_version(pair.after.version), 92),
            "breaks": columns.text("what it breaks", 114),
        },
        key="schema-changes",
        height=9 * 28,
        unknown="",
    )


def partitions(now: OpenTable, pair: Pair) -> pl.DataFrame:
    """PARTITION_DIFF of the two versions."""
    return _partitions(now.address, pair.before.version, pair.after.version, now.branch)


@cached(16)
def _partitions(address: str, before: int, after: int, branch: str | None) -> pl.DataFrame:
    return views.compare.versions.partition_difference(
        cache.snapshot(address, before), cache.snapshot(address, after, branch)
    )


def partition_picture(rows: pl.DataFrame) -> None:
    """Files by partition, and their twin: a table with bytes and rows."""
    if not views.compare.versions.has_file_changes(rows):
        nothing("Both versions have the same files.", "The commits between them did not change data.")
        return
    stack(charts.compare.partition_diff_chart(rows, dark=dark()), key="partition-diff")
    counts = {name: columns.number(name.replace("_", " "), 90) for name in rows.columns[1:]}
    with fold("As a table", "partitions-table"):
        frame(
            rows,
            {"partition_text": columns.text("partition", 170), **counts},
            key="partition-rows",
            unknown="unknown",
            **row_link(
                "partition-rows", rows, "partitions", lambda row: selection.link(partition=row["partition_text"])
            ),
        )


def shifts(now: OpenTable, pair: Pair) -> pl.DataFrame:
    """STATISTICS_SHIFT of the two versions."""
    return _shifts(now.address, pair.before.version, pair.after.version, now.branch)


@cached(16)
def _shifts(address: str, before: int, after: int, branch: str | None) -> pl.DataFrame:
    sides = [cache.statistics(address, version) for version in (before, after)]
    return views.compare.statistics.statistics_shift(
        cache.snapshot(address, before), cache.snapshot(address, after, branch), *sides
    )


def shift_picture(rows: pl.DataFrame, pair: Pair) -> None:
    """Null shares as dumbbells, and their twin with the ranges."""
    if rows.is_empty():
        nothing("No column has statistics in both versions.", "The writers left them out.", "files")
        return
    stack(charts.compare.shift_chart(rows, dark=dark()), key="shift")
    base, shown = (views.units.format_version(s.version) for s in (pair.before, pair.after))
    with fold("As a table, with min and max", "statistics-table"):
        frame(
            rows,
            {
                "column": columns.text("column", 150),
                "change": columns.text("change", 70),
                "before_mark": columns.mark(width=24),
                "before": columns.percent(f"null {base}, %", 90, decimals=2),
                "after_mark": columns.mark(width=24),
                "after": columns.percent(f"null {shown}, %", 90, decimals=2),
                "min_before": columns.text(f"min {base}", 120),
                "min_after": columns.text(f"min {shown}", 120),
                "max_before": columns.text(f"max {base}", 120),
                "max_after": columns.text(f"max {shown}", 120),
                "range_is": columns.text("range is", 70),
            },
            key="shift-rows",
            **row_link("shift-rows", rows, "quality", lambda row: selection.link(column=row["column"])),
            unknown="",
        )


def cost(now: OpenTable, pair: Pair) -> budget.Cost:
    """What reading the files that only one of the two versions has costs, by the log."""
    plan = _plan(now.address, pair.before.version, pair.after.version)
    return budget.Cost(plan.height, views.sums.total_of(plan["size"]), pair.before.num_files + pair.after.num_files)


@cached(16)
def _plan(address: str, base: int, version: int) -> pl.DataFrame:
    return cache.table(address).difference_plan(base, version)


def rows(now: OpenTable, pair: Pair, cost: budget.Cost) -> views.compare.rows.RowDifference | None:
    """The row difference once the reader starts it, in a process of its own that the budget or the reader ends."""
    if cost.files == 0:
        nothing("No row changed.", "Both versions have the same files and deletes.")
        return None
    st.markdown(f":small[:gray[{ROWS_NOTE}]]")
    allowed = budget.controls("A comparison")
    versions = (pair.before.version, pair.after.version)
    cheaper = "versions closer together"
    if not budget.button("Compare rows", versions, cost, allowed, key="compare-rows", at_most=False, cheaper=cheaper):
        return None
    asked = Request(
        now.address, pair.after.version, views.compare.rows.MOST_ROWS, runner.MEMORY, base=pair.before.version
    )
    answer = budget.answer(asked, allowed)
    return views.compare.rows.RowDifference(**answer.counts, rows=answer.rows)


def rows_table(difference: views.compare.rows.RowDifference, pair: Pair) -> None:
    """How many rows came and went, and the first of them as a diff: rows of one key on both sides as one."""
    left_out = dict.fromkeys((*pair.before.schema.unreadable, *pair.after.schema.unreadable))
    without = f", without {escape(', '.join(left_out))}, of a type that cannot be read" if left_out else ""
    st.markdown(
        f":green[**+{difference.gained:,}**] rows, :orange[**\N{MINUS SIGN}{difference.lost:,}**] &ensp; "
        f":small[:gray[exact, of {difference.read:,} rows read{without}]]"
    )
    if difference.rows.is_empty():
        return
    names = difference.rows.columns[1:]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        found = views.compare.row_pairs.found_key(difference.rows)
        key = st.multiselect(
            "Key of a row",
            names,
            key=linked(KEY, found, names, many=True),
            help="Rows with the same values in these columns are one row that changed. "
            + ("Found: the fewest columns that name each row once." if found else "None was found that fits."),
            width=420,
        )
        pairs = views.compare.row_pairs.row_pairs(difference.rows, key)
        counts = dict(pairs[views.compare.row_pairs.CHANGE].value_counts().iter_rows())
        kinds = [kind for kind in _KINDS if counts.get(kind)]
        chosen = st.pills(
            "Show",
            kinds,
            selection_mode="multi",
            format_func=lambda kind: f"{kind} {_KINDS.get(kind, '')} {counts.get(kind, 0):,}",
            key=linked("kinds", [], kinds, many=True),
        )
    shown = pairs.filter(pl.col(views.compare.row_pairs.CHANGE).is_in(chosen)) if chosen else pairs
    total = difference.gained + difference.lost
    if difference.rows.height < total:
        st.markdown(f":small[:gray[of the first {difference.rows.height:,} different rows]]")
    _diff_table(shown)


def _diff_table(pairs: pl.DataFrame) -> None:
    """The diff with the sign and the cells that changed in colour."""
    p = charts.palette.palette(dark())
    diff = views.compare.row_pairs
    shown = pairs.head(MAX_ROWS).rename(display_rows.printable_names(pairs.columns))
    colours = {diff.ADDED: p.green_text, diff.REMOVED: p.orange_text, diff.CHANGED: p.blue_text}
    colour = shown[diff.CHANGE].replace_strict(colours, return_dtype=pl.String)
    plain = pl.Series([""], dtype=pl.String).new_from_index(0, shown.height)
    whole = ("color: " + colour).zip_with(shown[diff.CHANGE] != diff.CHANGED, plain)
    styles = {diff.CHANGE: "font-weight: 600; color: " + colour, diff.COUNT: plain}
    for name in shown.columns[2:]:
        changed = shown[name].str.contains(diff.ARROW, literal=True).fill_null(value=False)
        changed = changed & (shown[diff.CHANGE] == diff.CHANGED)
        styles[name] = ("font-weight: 600; color: " + colour).zip_with(changed, whole)
    cells, styled = shown.to_pandas(), pl.DataFrame(styles).to_pandas()
    st.dataframe(
        cells.style.apply(lambda _: styled, axis=None),
        key="row-difference",
        hide_index=True,
        row_height=ROW_HEIGHT,
        column_config={
            diff.CHANGE: st.column_config.TextColumn("", width=26),
            diff.COUNT: st.column_config.NumberColumn("changed columns", width=112),
        },
        height=15 * ROW_HEIGHT if len(cells) > 14 else "content",
    )
