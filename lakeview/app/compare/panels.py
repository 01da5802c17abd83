"""The compare page's parts: which two versions, what differs in log and statistics, and the rows at a price."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import answers, cache, selection
from lakeview.app import display_rows as shown_rows
from lakeview.app.components import MAX_ROWS, dark, escape, fold, frame, grid, nothing, stack, tile
from lakeview.app.memo import kept
from lakeview.app.query import budget, runner
from lakeview.app.query.worker import Request
from lakeview.app.session import Opened
from lakeview.model.snapshot import Snapshot

FILES_NOTE = "added right, removed left, log scale"
SHIFT_NOTE = "null share, %: ring before, dot after; from statistics alone"
ROWS_NOTE = "from the files that only one of the two has; copies that a rewrite made are no difference"
SETTINGS_NOTE = "properties, protocol and features"
_GLYPHS = {"added": "+ added", "dropped": "\N{MINUS SIGN} dropped", "changed": "~ changed", "same": "= same"}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two versions, the base first."""

    before: Snapshot
    after: Snapshot


def chosen(now: Opened) -> Pair | None:
    """The base and the version shown; None without a base, and where they are one and the same."""
    base = now.base_snapshot
    return None if base is None or base.version == now.version else Pair(base, now.snapshot)


def offers(now: Opened) -> None:
    """Bases worth choosing, to press: a link to the page one is on would not come into the address bar."""
    choices = views.compare.versions.base_choices(answers.timeline(now), now.version)
    if not choices:
        shown = views.units.format_version(now.version)
        if now.snapshot.timestamp is None:
            nothing(f"What came before {shown} is not told here.", "Choose any version above: it is asked for.")
        else:
            nothing(f"{shown} has no version before it.", "Choose a later version above.", "timeline")
        return
    st.markdown("**Compare with** &ensp; :small[:gray[or choose any version above]]")
    moments = dict(answers.timeline(now).select("version", "timestamp").iter_rows())
    for choice in choices:
        when = views.units.format_moment(moments.get(choice.version))
        label = f"{choice.label} · {views.units.format_version(choice.version)}, {when}"
        st.button(
            f":blue[{escape(label)} :material/chevron_right:]",
            key=f"offer-{choice.version}",
            type="tertiary",
            on_click=selection.select_base,
            args=(choice.version,),
        )


def sentence(now: Opened, pair: Pair) -> None:
    """One sentence that can be copied into a ticket, and where its figures come from."""
    text = views.compare.versions.sentence(pair.before, pair.after, answers.timeline(now))
    st.code(text, language=None, wrap_lines=True)
    known = None not in (pair.before.num_records, pair.after.num_records)
    rows = "and rows" if known else "; rows are unknown, as some file does not count them"
    st.markdown(f":small[:gray[From the log alone: exact for columns, settings, files, bytes {rows}.]]")


def tiles(pair: Pair) -> None:
    """Five figures: now, and what changed."""
    with grid(165, 5):
        for label, value, change in views.compare.versions.difference_tiles(pair.before, pair.after):
            tile(label, value, change)


def settings_note(rows: pl.DataFrame) -> str:
    """How many settings differ."""
    changed = rows.filter(pl.col("change") != "same").height
    return f"{changed:,} of {rows.height:,} differ · {SETTINGS_NOTE}"


def settings_table(rows: pl.DataFrame, pair: Pair) -> None:
    """One row a setting, changes first."""
    kinds = st.column_config
    frame(
        rows.with_columns(pl.col("change").replace_strict(_GLYPHS, default="")),
        {
            "change": kinds.TextColumn("change", width=86),
            "name": kinds.TextColumn("name", width=200),
            "before": kinds.TextColumn(views.units.format_version(pair.before.version), width=105),
            "after": kinds.TextColumn(views.units.format_version(pair.after.version), width=105),
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
    """One row a change: glyph and word, column, before and after, what it breaks."""
    kinds = st.column_config
    glyph = pl.col("change").replace_strict({"added": "+", "dropped": "\N{MINUS SIGN}"}, default="~")
    frame(
        changes.with_columns(change=glyph + pl.lit(" ") + pl.col("change")),
        {
            "change": kinds.TextColumn("change", width=86),
            "column": kinds.TextColumn("column", width=118),
            "before": kinds.TextColumn(views.units.format_version(pair.before.version), width=92),
            "after": kinds.TextColumn(views.units.format_version(pair.after.version), width=92),
            "breaks": kinds.TextColumn("what it breaks", width=114),
        },
        key="schema-changes",
        height=9 * 28,
        unknown="",
    )


def partitions(now: Opened, pair: Pair) -> pl.DataFrame:
    """PARTITION_DIFF of the two versions."""
    return _partitions(now.address, pair.before.version, pair.after.version, now.branch)


@kept(16)
def _partitions(address: str, before: int, after: int, branch: str | None) -> pl.DataFrame:
    return views.compare.versions.partition_difference(
        cache.snapshot(address, before), cache.snapshot(address, after, branch)
    )


def partition_picture(rows: pl.DataFrame) -> None:
    """Files by partition, and their twin: a table with bytes and rows."""
    if rows.filter(pl.any_horizontal(pl.col("files_added", "files_removed", "files_redeleted") > 0)).is_empty():
        nothing("Both versions have the same files.", "What changed between them did not touch the data.")
        return
    stack(charts.compare.partition_diff_chart(rows, dark=dark()), key="partition-diff")
    kinds = st.column_config
    counts = {
        name: kinds.NumberColumn(name.replace("_", " "), format="localized", width=90) for name in rows.columns[1:]
    }
    with fold("The same as a table", "partitions-table"):
        frame(
            rows.head(MAX_ROWS),
            {"partition_text": kinds.TextColumn("partition", width=170), **counts},
            key="partition-rows",
            unknown="unknown",
        )


def shifts(now: Opened, pair: Pair) -> pl.DataFrame:
    """STATISTICS_SHIFT of the two versions."""
    return _shifts(now.address, pair.before.version, pair.after.version, now.branch)


@kept(16)
def _shifts(address: str, before: int, after: int, branch: str | None) -> pl.DataFrame:
    sides = [cache.statistics(address, version) for version in (before, after)]
    return views.compare.statistics.statistics_shift(
        cache.snapshot(address, before), cache.snapshot(address, after, branch), *sides
    )


def shift_picture(rows: pl.DataFrame, pair: Pair) -> None:
    """Null shares as dumbbells, and their twin with the ranges."""
    if rows.is_empty():
        nothing("No statistics tell of both versions.", "Their writers left them out.", "files")
        return
    stack(charts.compare.shift_chart(rows, dark=dark()), key="shift")
    kinds = st.column_config
    base, shown = (views.units.format_version(s.version) for s in (pair.before, pair.after))
    table = rows.head(MAX_ROWS).with_columns(before=pl.col("before") * 100, after=pl.col("after") * 100)
    with fold("The same as a table, with the ranges", "statistics-table"):
        frame(
            table,
            {
                "column": kinds.TextColumn("column", width=150),
                "change": kinds.TextColumn("change", width=70),
                "before_mark": kinds.TextColumn("", width=24),
                "before": kinds.NumberColumn(f"null {base}, %", format="%.2f", width=90),
                "after_mark": kinds.TextColumn("", width=24),
                "after": kinds.NumberColumn(f"null {shown}, %", format="%.2f", width=90),
                "min_before": kinds.TextColumn(f"min {base}", width=120),
                "min_after": kinds.TextColumn(f"min {shown}", width=120),
                "max_before": kinds.TextColumn(f"max {base}", width=120),
                "max_after": kinds.TextColumn(f"max {shown}", width=120),
                "range_is": kinds.TextColumn("range is", width=70),
            },
            key="shift-rows",
            unknown="",
        )


def price(now: Opened, pair: Pair) -> budget.Cost:
    """What reading the files that only one of the two versions has costs, by the log."""
    plan = _plan(now.address, pair.before.version, pair.after.version)
    return budget.Cost(plan.height, views.sums.total_of(plan["size"]), pair.before.num_files + pair.after.num_files)


@kept(16)
def _plan(address: str, base: int, version: int) -> pl.DataFrame:
    return cache.table(address).difference_plan(base, version)


def rows(now: Opened, pair: Pair, cost: budget.Cost) -> views.compare.rows.RowDifference | None:
    """The difference in rows once it was asked for, in a process of its own that the budget or the reader ends."""
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


def rows_table(found: views.compare.rows.RowDifference, pair: Pair) -> None:
    """How many rows came and went, and the first of them."""
    left_out = dict.fromkeys((*pair.before.schema.unreadable, *pair.after.schema.unreadable))
    without = f", without {escape(', '.join(left_out))}, of a type that cannot be read" if left_out else ""
    st.markdown(
        f":green[**+{found.gained:,}**] rows, :orange[**\N{MINUS SIGN}{found.lost:,}**] &ensp; "
        f":small[:gray[exact, of {found.read:,} rows read{without}]]"
    )
    if not found.rows.is_empty():
        shown_rows.table(found.rows, key="row-difference")
