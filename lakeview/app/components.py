"""The pieces every page is drawn with: titles, cards, findings, tiles, facts, empty states and stacked charts."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lakeview.app import selection, uploads, widths
from lakeview.app.chart_specs import plain_spec
from lakeview.app.pages import PAGES
from lakeview.app.row_links import note_unseen
from lakeview.app.table_cells import Column, cells_and_columns, pandas_rows
from lakeview.app.widget_state import link_widget
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import choices, shorten, visible

ROW_HEIGHT = 28
BROKEN_LINES = 57
MAX_ROWS = 1_000
NARROW = "narrow-"
"""What the key of a container begins with that pages wider than `widths.NARROW_PAGE` do not show."""
MOST_SHOWN = 40
"""Letters of a name that a link has wrong."""
_LONGEST_FACT = 3_000
"""Letters of a name or value beside others: a log may have any number."""
_UNSCROLLED = 20
"""Rows of sentences that are shown without a scroll bar."""

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$:])")
_ESCAPED_TOO = re.compile(
    r"(?<=:)(?=(?:[\w+/-]*[A-Za-z+/-][\w+/-]*|100|1234):)|(?<=@)(?=\w)|(?<!\S)(?=(?:<?->|<-|--|[<>~]=)(?!\S))"
)
"""After the colon that begins an icon or emoji, `:material/check:`, and the sign of a mail address; and before arrows,
dashes and comparisons between spaces, `>=`: Streamlit replaces them or makes a link where they are escaped, too."""

_WORD_JOINER = "\N{WORD JOINER}"

SEVERITY_ICONS = {
    Severity.BROKEN: ":red[:material/error:]",
    Severity.ATTENTION: ":orange[:material/warning:]",
    Severity.NOTE: ":gray[:material/info:]",
    Severity.PASS: ":gray[:material/check_circle:]",
}
"""The icon of a finding, in markdown."""


def escape(text: str) -> str:
    """Text of the table's own, so that markdown shows it as it is, and what is unseen in it as its escape."""
    return _SPECIAL.sub(r"\\\1", _ESCAPED_TOO.sub(_WORD_JOINER, visible(text)))


def dark() -> bool:
    """Whether the reader's theme is dark, as of this run."""
    return st.context.theme.type == "dark"


def title(page: str) -> None:
    """The page's title, and its question beside it."""
    entry = PAGES[page]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.markdown(f"## {entry.title}", anchors=False, width="content")
        st.markdown(f":gray[{entry.question}]", width="content")


def card(
    heading: str | None = None, note: str = "", *, key: str | None = None, stretch: bool = False, icon: str = ""
) -> DeltaGenerator:
    """A bordered container; its heading in bold, after the icon of that name, with a note in small gray that explains
    what is drawn."""
    container = st.container(border=True, key=key, height="stretch" if stretch else "content", gap="small")
    if heading is not None:
        heading = f":material/{icon}: {escape(heading)}" if icon else escape(heading)
        container.markdown(f"**{heading}** &ensp; :small[:gray[{note}]]" if note else f"**{heading}**")
    return container


@contextmanager
def heading_row(heading: str, note: str) -> Iterator[None]:
    """A heading as that of a `card`, and what is drawn meanwhile at the end of its line."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{heading}** &ensp; :small[:gray[{note}]]", width="content")
        st.space("stretch")
        yield


def link(page: str, label: str | None = None, parameters: Mapping[str, str] | None = None) -> None:
    """A link to another page that keeps what is selected; `parameters` replace the selection's own."""
    entry = PAGES[page]
    st.page_link(
        entry.file,
        label=f":blue[{label or entry.title} :material/chevron_right:]",
        icon="",
        query_params=dict(selection.link() if parameters is None else parameters),
    )


def finding_lines(
    findings: Sequence[Finding],
    *,
    limit: int = 3,
    here: str | None = None,
    below: Callable[[Finding], str] | None = None,
) -> None:
    """One line a finding: icon, claim, evidence, and a link to the page that shows it best, unless that is `here`.

    Limit, place, rule and remedy are in its help, unless the page tells them `below` the line, in markdown.
    """
    for finding in findings[:limit]:
        with st.container(horizontal=True, vertical_alignment="top", gap="small", wrap=False):
            st.markdown(SEVERITY_ICONS[finding.severity], width="content")
            evidence = f" :gray[{escape(finding.evidence)}]" if finding.evidence else ""
            more = below(finding) if below is not None else ""
            st.markdown(
                f"**{escape(finding.claim)}**{evidence}" + (f"  \n{more}" if more else ""),
                width="stretch",
                help=_details(finding) if below is None else None,
            )
            if finding.page in PAGES and finding.page != here:
                link(finding.page, None, selection.link(commit=finding.commit))


def tile(
    label: str,
    value: str,
    chip: str | None = None,
    *,
    note: str | None = None,
    help: str | None = None,
    trend: Sequence[float | None] | None = None,
    bars: bool = False,
    attention: bool = False,
) -> None:
    """One figure: label, value, a chip with what changed, and a sparkline. Orange only if it asks for attention.

    All but `help` are shown as they are.
    """
    st.metric(
        escape(label),
        escape(value),
        None if chip is None else escape(chip),
        delta_color="orange" if attention else "gray",
        delta_arrow="off",
        delta_description=None if note is None else escape(note),
        help=help,
        border=True,
        chart_data=list(trend) if trend else None,
        chart_type="bar" if bars else "area",
        height="stretch",
    )


def facts(*groups: Mapping[str, str | None]) -> None:
    """Names and values in two columns, group after group; None is unknown. What is very long is cut."""
    texts = [(name, "unknown" if value is None else value) for group in groups for name, value in group.items()]
    pairs = [(escape(shorten(name, _LONGEST_FACT)), escape(shorten(value, _LONGEST_FACT))) for name, value in texts]
    rows = {"name": [name for name, _ in pairs], "value": [value for _, value in pairs]}
    st.table(rows, border="horizontal", hide_header=True, hide_index=True)


def more_rows(height: int, of: str = "", *, first: str = "first", note: str = "; the download has all") -> None:
    """One line beside a table that shows the first MAX_ROWS of more rows, `of` whose kind."""
    if height > MAX_ROWS:
        st.markdown(f":small[:gray[the {first} {MAX_ROWS:,} of {height:,}{of and f' {of}'}{note}]]")


def prose(cells: Mapping[str, Iterable[str | int]]) -> None:
    """A short table whose sentences break into as many lines as they need: a heading and cells, in markdown, a column.

    `frame` has one height for all rows, and cuts what is longer.
    """
    rows = pl.DataFrame({heading: list(column) for heading, column in cells.items()})
    is_short = rows.height <= _UNSCROLLED
    height = _UNSCROLLED * ROW_HEIGHT
    st.table(pandas_rows(rows), border="horizontal", hide_index=True, height="content" if is_short else height)


def fold(label: str, key: str, *, icon: str | None = None, is_open: bool = False) -> Any:
    """What can be unfolded, at first only if `is_open`; whether it is open is in the link, under the key."""
    return st.expander(label, icon=icon, key=link_widget(key, is_open, (True, False)), on_change="rerun")


def nothing(what: str, why: str, page: str | None = None, label: str | None = None) -> None:
    """An empty state: what is not there, why, and where to go instead."""
    st.markdown(f":gray[:material/do_not_disturb_on:] **{escape(what)}** :gray[{escape(why)}]")
    if page is not None:
        link(page, label)


def unknown_name(key: str, names: Sequence[str], what: str, instead: str) -> None:
    """One line where the link has a name under a key that is none of these, `period=99 is no partition of v7`: what is
    shown `instead`, and which name may be meant."""
    name = st.query_params.get(key)
    if name and name not in names:
        hint = choices(name, names[:MAX_ROWS])  # of 100,000 it takes seconds, in each run of the page
        nothing(f"{shorten(name, MOST_SHOWN)} is no {what}.", f"{instead}; {hint}." if names else f"{instead}.")


def stack(charts: Sequence[Any], *, key: str, on_pick: Callable[[str], None] | None = None) -> None:
    """Charts one under the other without a gap: panels of one picture, sharing their x axis.

    `on_pick` is called with the key of the chart in which something was clicked, for charts that can be clicked.
    """
    with st.container(gap=None, key=f"{key}-charts"):
        for position, chart in enumerate(charts):
            name = f"{key}-{position}"
            clickable = on_pick is not None and isinstance(chart.params, list) and bool(chart.params)
            spec = plain_spec(chart)
            note_unseen(name, spec.unseen)
            st.altair_chart(
                cast("Any", spec),
                theme=None,
                width="stretch",
                key=name,
                on_select=partial(on_pick, name) if clickable and on_pick is not None else "ignore",
            )


def grid(minimum: int, most: int | None = None) -> Any:
    """A grid that wraps: as many equal columns as fit, `most` of them, none narrower than `minimum` pixels."""
    return st.grid("auto" if most is None else most, min_column_width=minimum)


def side_by_side(minimum: int = 440) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Two places side by side; one under the other, as wide as the page, where they would have less than `minimum`."""
    tracks = grid(minimum, 2)
    return tracks.cell(), tracks.cell()


def first_line(answer: str, severity: Severity | None = None) -> None:
    """The answer to the question in the page's title, after the icon of its severity; nothing where it is not known."""
    if answer:
        st.markdown(("" if severity is None else f"{SEVERITY_ICONS[severity]} ") + f"**{escape(answer)}**")


def frame(
    rows: pl.DataFrame,
    columns: Mapping[str, Any] | None = None,
    *,
    key: str,
    height: int = 14 * ROW_HEIGHT,
    row_height: int = ROW_HEIGHT,
    unknown: str = "\N{EN DASH}",
    place: int = widths.PLACE,
    **options: Any,
) -> Any:
    """A table of at most 1,000 rows (pages page what is longer); only the columns named, in that order, if any: either
    all as Column, or as Streamlit's configuration, None for none.

    As high as its rows, at most `height` pixels; null is shown as `unknown`. Rows as high as `BROKEN_LINES` break
    what is longer than its column is wide. Of a Column texts are cut where not all fit into `place` pixels, the fewest
    that the table gets on any screen.
    """
    kinds = dict(columns or {})
    configuration = {name: kind for name, kind in kinds.items() if kind is not None and not isinstance(kind, Column)}
    cells = rows.head(MAX_ROWS)
    if column_kinds := {name: kind for name, kind in kinds.items() if isinstance(kind, Column)}:
        room = place - widths.TICK_BOXES if "selection_mode" in options else place
        cells, configuration = cells_and_columns(cells, column_kinds, place=room, unknown=unknown)
    return st.dataframe(
        pandas_rows(cells),
        key=key,
        hide_index=True,
        row_height=row_height,
        column_config={name: _with_heading(name, kind) for name, kind in configuration.items()},
        column_order=[name for name in kinds if name in cells.columns] or None,
        height=height if rows.height * row_height > height else "content",
        placeholder=unknown,
        **options,
    )


def _with_heading(name: str, kind: Any) -> Any:
    """A column's configuration; one without a heading gets the name of its column, for those who hear the table. None
    is narrower than its heading."""
    label = str(kind.get("label") or name)
    width = kind.get("width")
    return {
        **kind,
        "label": label,
        "width": max(width, widths.heading_width(label)) if isinstance(width, int) else width,
    }


def _details(finding: Finding) -> str | None:
    place = uploads.public_text(finding.place or "")
    parts = {"limit": finding.threshold, "where": place, "rule": finding.rule, "remedy": finding.remedy}
    return "  \n".join(f"{name}: {escape(text)}" for name, text in parts.items() if text) or None
