"""The compare page's parts from the log: which two versions, and what differs in definition, files and statistics."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import columns, downloads, selection
from lakeview.app.cache import cache_values
from lakeview.app.components import dark, escape, fold, frame, grid, nothing, stack, tile
from lakeview.app.null_shares import absent_column
from lakeview.app.row_links import pick_link, row_link
from lakeview.app.session import OpenTable
from lakeview.app.table_cells import Column
from lakeview.app.widths import HALF
from lakeview.inspection.absent_columns import absent_shares, complete_statistics
from lakeview.model.errors import VersionNotFoundError
from lakeview.model.printable import first_few
from lakeview.model.snapshot import Snapshot
from lakeview.views.thresholds import LOOSE_SHIFT_SHARE, SHIFT_SHARE

FILES_NOTE = "added right, removed left, log scale"
SHIFT_NOTE = "null share, %: ring before, dot after; pale: before the column existed; from statistics alone"
_COLOURS = {
    r"(?<! to )((0|\+[\d,]+) to )?\+[\d.,]+( [kMG])? rows?": "green",
    r"\N{MINUS SIGN}[\d.,]+( [kMG])?( to (0|\N{MINUS SIGN}[\d,]+))? rows?": "orange",
    r"\d[\d,]* files? written \([^)]*\)": "green",
    r"\d[\d,]*( files?)? removed \([^)]*\)": "orange",
    r"\d+ columns? (added|dropped|renamed|with another type)": "violet",
    r"(?<=; )bad load (?![^;]*, repaired by )[^;]*(?=[;.])": "orange",
    r"(?<=; )[^;]* bad loads? too": "orange",
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
    where there is none before. VersionNotFoundError that names the base, where the table has no such version."""
    base = now.compared_version
    if base is None or base == now.version:
        return None
    try:
        before = replace(now, version=base).snapshot
    except VersionNotFoundError as error:
        raise VersionNotFoundError(error.message, fix=error.fix, place=selection.BASE) from error
    return Pair(before, now.snapshot)


def offers(now: OpenTable) -> None:
    """Bases worth choosing, to press: a link to the page one is on would not come into the address bar."""
    choices = views.compare.versions.base_choices(now.look.timeline(), now.version)
    if not choices:
        name = views.units.format_version(now.version)
        if now.snapshot.timestamp is None:
            nothing(f"Earlier versions than {name} are not known.", "Choose any version above: it is requested.")
        else:
            first = "The table has no version yet" if now.version < 0 else f"{name} is the first version"
            later = "Nothing was written since." if now.version == now.latest else "Choose a later version above."
            nothing(f"{first}: there is nothing to compare.", later, "timeline")
        return
    st.markdown("**Compare with** &ensp; :small[:gray[or choose any version above]]")
    timeline = now.look.timeline()
    timestamps = dict(zip(timeline["version"], timeline["timestamp"], strict=True))
    links = st.container(horizontal=True, gap="small")
    for version, why in choices.items():
        when = views.units.format_moment(timestamps.get(version))
        label = f"{why} · {views.units.format_version(version)}, {when}"
        links.button(
            f":blue[{escape(label)} :material/chevron_right:]",
            key=f"offer-{version}",
            type="tertiary",
            on_click=selection.select_base,
            args=(version,),
        )


def sentence(text: str, pair: Pair) -> None:
    """The sentence, to be copied into a ticket, and where its figures come from."""
    with st.container(horizontal=True, vertical_alignment="top", wrap=False):
        st.markdown(_colour_changes(text), width="stretch")
        with st.popover("", icon=":material/content_copy:", type="tertiary", help="As text, for a ticket"):
            st.code(text, language=None, wrap_lines=True)
    exact = "columns, settings, files, bytes and rows"
    if None in (pair.before.num_records, pair.after.num_records):
        exact = "columns, settings, files and bytes; the rows of a version are a bound, or unknown"
    st.markdown(f":small[:gray[From the log alone: exact for {exact}.]]")


def _colour_changes(text: str) -> str:
    """The sentence with what came and went in colour."""
    markdown = escape(text)
    for pattern, colour in _COLOURS.items():
        markdown = re.sub(pattern, rf":{colour}[**\g<0>**]", markdown)
    return markdown


def same_in_both(equal: Sequence[str]) -> None:
    """One line for all that does not differ."""
    if equal:
        st.markdown(f":small[:gray[The same in both versions: {', '.join(equal)}.]]")


def tiles(now: OpenTable, pair: Pair) -> None:
    """Five figures: now, and what changed."""
    with grid(165, 5):
        for label, value, change in views.compare.summary.difference_tiles(
            pair.before, pair.after, partitions(now, pair)
        ):
            tile(label, value, change)


def settings_note(rows: pl.DataFrame) -> str:
    """How many settings differ."""
    count = views.compare.versions.count_changes(rows)
    return f"{count:,} of {rows.height:,} differ · {SETTINGS_NOTE}"


def settings_table(rows: pl.DataFrame, pair: Pair) -> None:
    """One row a setting, changes first."""
    _difference_table(rows, pair, {"name": columns.text("name")}, {}, key="settings")


def _difference_table(
    rows: pl.DataFrame, pair: Pair, what: Mapping[str, Column], more: Mapping[str, Column], *, key: str
) -> None:
    before, after = (views.units.format_version(side.version) for side in (pair.before, pair.after))
    values = {"before": columns.text(before), "after": columns.text(after)}
    kinds = {"change": columns.change(), **what, **values, **more}
    frame(rows, kinds, key=key, place=HALF, height=9 * 28, unknown="")


def schema_note(changes: pl.DataFrame, pair: Pair) -> str:
    """How many fields changed, and of how many."""
    count = views.units.count_text(changes.height, "change")
    of = views.units.count_text(len(pair.after.schema), "column")
    return f"{count} · {of} · matched by field id or name"


def schema_table(changes: pl.DataFrame, pair: Pair) -> None:
    """One row a change: sign and word, column, before and after, what it breaks."""
    breaks = {"breaks": columns.text("what it breaks")}
    _difference_table(changes, pair, {"column": columns.text("column")}, breaks, key="schema-changes")


def partitions(now: OpenTable, pair: Pair) -> pl.DataFrame:
    """PARTITION_DIFF of the two versions."""
    return _partitions(now, pair.before.version, pair.after.version)


@cache_values(16, of=("branch",))
def _partitions(now: OpenTable, before: int, after: int) -> pl.DataFrame:
    frames = now.frames
    return views.compare.versions.partition_difference(frames.snapshot(before), frames.snapshot(after, now.branch))


def _partition_keys(pair: Pair) -> list[str]:
    """The keys of the partitions of either version."""
    names = (views.partitions.keys.partition_names(snapshot) for snapshot in (pair.before, pair.after))
    return list(dict.fromkeys(chain.from_iterable(names)))


def _partition_link(row: Mapping[str, Any]) -> dict[str, str]:
    return selection.link(partition=row["partition_text"])


def partition_picture(rows: pl.DataFrame, pair: Pair) -> None:
    """Files by partition, and their twin: a table with bytes and rows."""
    if not views.compare.versions.has_file_changes(rows):
        nothing("Both versions have the same files.", "The commits between them did not change data.")
        return
    keys = _partition_keys(pair)
    pictures = charts.compare.partition_diff_chart(rows, keys=keys, dark=dark())
    if pictures:
        stack(pictures, key="partition-diff", on_pick=lambda key: pick_link(key, "partitions", _partition_link))
    else:
        files = views.units.count_text(int(rows["files_redeleted"].sum()), "file")
        nothing("No file was added or removed.", f"Rows of {files} were deleted, or brought back.")
    counts = {name: columns.number(name.replace("_", " ")) for name in rows.columns[1:]}
    with fold("As a table", "partitions-table"):
        frame(
            rows,
            {"partition_text": columns.partition(keys), **counts},
            key="partition-rows",
            place=HALF,
            unknown="unknown",
            **row_link("partition-rows", rows, "partitions", _partition_link),
        )


def shifts(now: OpenTable, pair: Pair) -> pl.DataFrame:
    """STATISTICS_SHIFT of the two versions."""
    return _shifts(now, pair.before.version, pair.after.version)


@cache_values(16, of=("latest", "ref", "branch"))
def _shifts(now: OpenTable, before: int, after: int) -> pl.DataFrame:
    old, new = (complete_statistics(now.frames, version) for version in (before, after))
    base, current = now.frames.snapshot(before), now.frames.snapshot(after, now.branch)
    absent = absent_shares(now.frames, current, new)
    return views.compare.statistics.statistics_shift(base, current, old, new, absent)


def shifts_on_demand(now: OpenTable, pair: Pair) -> None:
    """What shifted in the statistics of very many files, once it is unfolded."""
    with fold("Statistics shift: reads the statistics of every file of both versions", "shift-fold") as expander:
        if not expander.open:
            return
        rows = shifts(now, pair)
        downloads.offer("statistics shift", rows)
        st.markdown(f":small[:gray[{SHIFT_NOTE}]]")
        if views.compare.statistics.has_shifts(rows):
            shift_picture(rows, pair)
        else:
            nothing("No null share moved by 0.1 %, and no min or max.", "By the statistics of all files.")


def shift_picture(rows: pl.DataFrame, pair: Pair) -> None:
    """Null shares as dumbbells, and their twin with the ranges: of what is equal nothing."""
    rows = rows.filter(~pl.col("change").is_in(["same", "unknown"]))
    if pictures := charts.compare.shift_chart(rows, dark=dark()):
        stack(pictures, key="shift")
    else:
        shares = map(views.units.format_percent, (SHIFT_SHARE, LOOSE_SHIFT_SHARE))
        none = "No null share moved by {}, no bound of one by {}".format(*shares)
        st.markdown(f"{none}; min or max of {escape(first_few(rows['column']))} did.")
    base, current = (views.units.format_version(s.version) for s in (pair.before, pair.after))
    with fold("As a table, with min and max", "statistics-table"):
        frame(
            rows,
            {
                "column": columns.text("column"),
                "change": columns.text("change"),
                "before_mark": columns.bound(),
                "before": columns.percent(f"null {base}, %", decimals=2),
                "after_mark": columns.bound(),
                "after": columns.percent(f"null {current}, %", decimals=2),
                "absent": absent_column(),
                "min_before": columns.text(f"min {base}"),
                "min_after": columns.text(f"min {current}"),
                "max_before": columns.text(f"max {base}"),
                "max_after": columns.text(f"max {current}"),
                "range_is": columns.range_kind(),
            },
            key="shift-rows",
            place=HALF,
            **row_link("shift-rows", rows, "quality", lambda row: selection.link(column=row["column"])),
            unknown="",
        )
