"""The compare page's rows: their cost, the row difference on demand, and its table."""

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import answers, display_rows
from lakeview.app.compare.panels import Pair
from lakeview.app.components import ROW_HEIGHT, dark, escape, nothing
from lakeview.app.query import budget, runner
from lakeview.app.query.request import Request
from lakeview.app.session import OpenTable
from lakeview.app.table_cells import pandas_rows
from lakeview.app.widget_state import link_widget
from lakeview.app.widths import SENTENCE, heading_width, longest
from lakeview.model.printable import visible

KEY = "key"
MOST_SHOWN = 250
"""Rows of the table: with 1,000 the server computes their colours for 0.3 s (benches/bench_navigation.py: Compare)."""
_KINDS = {
    views.compare.row_pairs.ADDED: "added",
    views.compare.row_pairs.REMOVED: "removed",
    views.compare.row_pairs.CHANGED: "changed",
}
ROWS_NOTE = "from the files that only one of the two has; rows that were only rewritten are no difference"


def cost(now: OpenTable, pair: Pair) -> budget.Cost:
    """What reading the files that only one of the two versions has costs, by the log."""
    plan = now.frames.difference_plan(pair.before.version, pair.after.version)
    return budget.Cost(plan.height, views.sums.total_of(plan["size"]), pair.before.num_files + pair.after.num_files)


def row_difference(now: OpenTable, pair: Pair, cost: budget.Cost) -> views.compare.rows.RowDifference | None:
    """The row difference, at once where it is cheap, else once the reader starts it.

    Rows are read in a process of their own that the budget or the reader ends.
    """
    if cost.files == 0:
        nothing("No row changed.", "Both versions have the same files and deletes.")
        return None
    versions = (pair.before.version, pair.after.version)
    cheaper = "versions closer together"
    with st.container(horizontal=True, vertical_alignment="center"):
        limits = budget.controls("A comparison")
        is_asked = budget.button(
            "Compare rows", versions, cost, limits, key="compare-rows", at_most=False, cheaper=cheaper, on_arrival=True
        )
    if not is_asked:
        return None
    request = Request(
        now.address, pair.after.version, views.compare.rows.MOST_ROWS, runner.MEMORY, base=pair.before.version
    )
    answer = budget.answer(request, limits)
    counts = {name: count for name, count in answer.counts.items() if name not in ("stopped", "cancelled")}
    return views.compare.rows.RowDifference(**counts, rows=answer.rows)


def rows_table(difference: views.compare.rows.RowDifference, now: OpenTable, pair: Pair) -> None:
    """How many rows came and went, and the first of them as a diff: rows of one key on both sides as one."""
    left_out = dict.fromkeys((*pair.before.schema.unreadable, *pair.after.schema.unreadable))
    without = f", without {escape(', '.join(left_out))}, of a type that cannot be read" if left_out else ""
    plan = now.frames.difference_plan(pair.before.version, pair.after.version)
    st.markdown(
        f"{'' if difference.rows_undecided is None else 'At least '}{_counts(difference)} &ensp; "
        f":small[:gray[{views.compare.rows.extent(difference, plan)}{without}]]"
    )
    if note := views.compare.rows.undecided_text(difference):
        st.markdown(f":small[:gray[{note}]]")
    if difference.rows.is_empty():
        return
    names = difference.rows.columns[1:]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        default_key = views.compare.row_pairs.found_key(difference.rows)
        key = st.multiselect(
            "Key of a row",
            names,
            format_func=visible,
            key=link_widget(KEY, default_key, names, many=True),
            help="Rows with the same values in these columns are one row that changed. "
            + ("Found: the fewest columns that name each row once." if default_key else "None was found that fits."),
            width=420,
        )
        different = views.compare.row_pairs.repeat_rows(difference.rows)
        pairs, changed_cells = views.compare.row_pairs.row_pairs(different, key)
        counts = dict(pairs[views.compare.row_pairs.CHANGE].value_counts().iter_rows())
        kinds = [kind for kind in _KINDS if counts.get(kind)]
        is_part = different.height < difference.gains + difference.losses
        choice = st.pills(
            f"Show, of the first {different.height:,} different rows" if is_part else "Show",
            kinds,
            selection_mode="multi",
            format_func=lambda kind: f"{kind} {_KINDS.get(kind, '')} {counts.get(kind, 0):,}",
            key=link_widget("kinds", [], kinds, many=True),
        )
    shown_pairs = pairs[views.compare.row_pairs.CHANGE].is_in(choice or kinds)
    rows = pairs.filter(shown_pairs)
    if rows.height > MOST_SHOWN:
        st.markdown(f":small[:gray[the first {MOST_SHOWN} of {rows.height:,}; the header's download has all]]")
    after = views.data.changes.first_after(now.look.timeline(), pair.before.version, pair.after.version)
    reasons = answers.reason_columns(now, pair.after.version, pair.before.version if after is None else after)
    first = views.compare.row_pairs.changed_first(changed_cells, names, key)
    columns_in_order = views.timeline.events.columns_first(rows, list(dict.fromkeys((*first, *reasons))), after=2)
    _diff_table(columns_in_order, changed_cells.filter(shown_pairs))


def _counts(difference: views.compare.rows.RowDifference) -> str:
    """`+40 rows` and how many were lost; what did not change is left out."""
    signs = ((":green[**+{:,}**]", difference.gains), (":orange[**\N{MINUS SIGN}{:,}**]", difference.losses))
    first, *rest = [sign.format(count) for sign, count in signs if count] or ["**0**"]
    word = "row" if max(difference.gains, difference.losses) == 1 else "rows"
    return ", ".join([f"{first} {word}", *rest])


def cell_widths(rows: pl.DataFrame) -> dict[str, int]:
    """Pixels of columns whose cells are short: the browser measures the first rows alone, and cuts a number further
    down to one of fewer digits."""
    widest = {name: [name, *longest(rows[name], None)] for name in rows.columns}
    widths = {name: max(map(heading_width, texts)) for name, texts in widest.items()}
    return {name: width for name, width in widths.items() if width <= SENTENCE}


def _diff_table(pairs: pl.DataFrame, changed_cells: pl.DataFrame) -> None:
    """The diff with the sign and the cells that changed in colour.

    Not whole rows: the browser looks each cell up in the text of all styles, when it draws the table and again when it
    leaves the page (0.4 s for 776 whole rows; benches/bench_navigation.py: the page after Compare).
    """
    p = charts.palette.palette(dark())
    diff = views.compare.row_pairs
    rows = pairs.head(MOST_SHOWN).rename(display_rows.printable_names(pairs.columns))
    colours = {diff.ADDED: p.green_text, diff.REMOVED: p.orange_text, diff.CHANGED: p.blue_text}
    strong = "font-weight: 600; color: " + rows[diff.CHANGE].replace_strict(colours, return_dtype=pl.String)
    plain = pl.Series([""], dtype=pl.String).new_from_index(0, rows.height)
    styles = {diff.CHANGE: strong, diff.COUNT: plain}
    for name, shown_name in zip(pairs.columns[2:], rows.columns[2:], strict=True):
        styles[shown_name] = strong.zip_with(changed_cells[name].head(rows.height), plain)
    # as text: beside rows that came or went, which have none, pandas shows a count as 1.000000
    cells = pandas_rows(rows.with_columns(pl.col(diff.COUNT).cast(pl.String)))
    styles_of_cells = pandas_rows(pl.DataFrame(styles))
    has_changed_rows = bool((rows[diff.CHANGE] == diff.CHANGED).any())
    with st.container(key=f"{display_rows.OWN_COLUMNS}difference"):
        st.dataframe(
            cells.style.apply(lambda _: styles_of_cells, axis=None),
            key="row-difference",
            hide_index=True,
            placeholder=views.units.EN_DASH,
            column_order=rows.columns if has_changed_rows else [name for name in rows.columns if name != diff.COUNT],
            row_height=ROW_HEIGHT,
            column_config={
                diff.CHANGE: st.column_config.TextColumn("", width=26),
                diff.COUNT: st.column_config.TextColumn("changed columns", width=112, alignment="right"),
            }
            | {name: st.column_config.TextColumn(width=width) for name, width in cell_widths(rows[:, 2:]).items()},
            height=15 * ROW_HEIGHT if len(cells) > 14 else "content",
        )
