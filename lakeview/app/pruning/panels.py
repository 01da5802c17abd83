"""The pruning page's filter: the files it would read at one version or two, and why the others are skipped."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import columns, downloads, errors, selection
from lakeview.app.components import dark, escape, frame, grid, heading_row, nothing, stack, tile
from lakeview.app.row_links import row_link
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import link_widget, page_number
from lakeview.inspection.inspection import Inspection
from lakeview.model.errors import InvalidRequestError, LakeviewError
from lakeview.predicates import predicate
from lakeview.predicates.expressions import conjuncts

FILTER_NOTE = "data skipping from the log alone: partition values, then min and max and null counts; no data is read"
WHERE = "where"
_VERDICTS = ("read", "skipped", "all")
_MOST_PARTS = 8
_PAGE = 100


@dataclass(frozen=True, slots=True)
class FilterPlan:
    """A filter at one version: FILE_VERDICTS, or the error where it is invalid there."""

    version: int
    verdicts: pl.DataFrame | None
    error: LakeviewError | None = None

    @property
    def label(self) -> str:
        """The version, for people."""
        return views.units.format_version(self.version)


def typed_filter(now: OpenTable) -> str:
    """The filter as SQL text, kept in the URL; a few examples fill it in."""
    examples = now.look.clustering().examples
    where = st.text_input(
        "Where, in SQL",
        key=link_widget(WHERE),
        placeholder=examples[0] if examples else "as after WHERE",
        help="A condition on the columns, as after WHERE.",
    )
    if examples:
        st.pills(
            "Try",
            examples,
            key="example",
            format_func=escape,
            on_change=_take_example,
            label_visibility="collapsed",
            help="Fills in a filter for a value from the middle of a column.",
        )
    return (where or "").strip()


def _take_example() -> None:
    example = st.session_state.get("example")
    if example:
        st.session_state[WHERE] = example
        st.session_state["example"] = None


def plans(now: OpenTable, where: str) -> list[FilterPlan]:
    """The filter at the version compared with, if there is one, and at the version shown.

    Raises InvalidRequestError where it is invalid at the version shown; at the other one the error is in its plan.
    """
    current = FilterPlan(now.version, now.look.file_verdicts(where))
    if now.base is None or now.base == now.version:
        return [current]
    try:
        return [FilterPlan(now.base, Inspection(now.frames, now.base).file_verdicts(where)), current]
    except LakeviewError as error:  # the column may be younger than that version
        return [FilterPlan(now.base, None, error), current]


def bad_filter(now: OpenTable, error: InvalidRequestError) -> None:
    """Why a filter is invalid, and the columns there are."""
    errors.show(error, here="pruning")
    st.markdown(f"**Columns of {views.units.format_version(now.version)}**")
    frame(
        views.schema.tree.filter_columns(now.snapshot),
        {
            "column": columns.text("column"),
            "type": columns.text("type"),
            "part": columns.text(""),
        },
        key="columns-there-are",
        height=10 * 28,
    )


def answer(plans: list[FilterPlan]) -> None:
    """Tiles and bars: what is read, of how much, and why the rest is skipped; beside it the version compared with."""
    current = plans[-1]
    if current.verdicts is None or current.verdicts.is_empty():
        nothing(f"{current.label} holds no files.", "There is nothing to read.", "timeline")
        return
    base = plans[0] if len(plans) > 1 else None
    _tiles(current.verdicts, base)
    bars = [
        (plan.label, views.pruning.plan.explain_verdicts(plan.verdicts)) for plan in plans if plan.verdicts is not None
    ]
    stack(charts.pruning.read_bars(bars, dark=dark()), key="read-bars")
    if base is not None and base.error is not None:
        st.markdown(
            f":gray[:material/info:] **Invalid at {base.label}:** {escape(errors.public_text(base.error.message))}"
        )


def _tiles(verdicts: pl.DataFrame, base: FilterPlan | None) -> None:
    cost = views.pruning.plan.read_cost(verdicts)
    file_counts = views.pruning.plan.files_by_reason(verdicts)
    with grid(165, 5):
        tile(
            "Files read",
            f"{cost.files:,}",
            f"{views.units.format_percent(cost.files_share)} of {cost.all_files:,}",
            note=_then(base, "files"),
            help="Files that may hold a row for which the filter is true: at most these are opened.",
        )
        tile(
            "Bytes read, at most",
            views.units.format_bytes(cost.bytes),
            f"{views.units.format_percent(cost.bytes_share)} of {views.units.format_bytes(cost.all_bytes)}",
            note=_then(base, "bytes"),
            help="Whole files; readers skip columns and row groups inside them.",
        )
        for reason, label in (
            ("partition", "Skipped by partition"),
            ("range", "By min and max"),
            ("nulls", "By nulls"),
        ):
            tile(label, f"{file_counts[reason]:,}", "files")


def _then(base: FilterPlan | None, what: str) -> str | None:
    if base is None or base.verdicts is None:
        return None
    cost = views.pruning.plan.read_cost(base.verdicts)
    text = f"{cost.files:,}" if what == "files" else views.units.format_bytes(cost.bytes)
    return f"{base.label}: {text}"


def parts(now: OpenTable, where: str) -> pl.DataFrame:
    """PARTS of the filter: the files that each condition would skip alone; empty for one condition, or very many."""
    conditions = conjuncts(predicate(where))
    if not 1 < len(conditions) <= _MOST_PARTS:
        conditions = []
    return views.pruning.plan.filter_parts(
        [(part, now.look.file_verdicts(where, place)) for place, part in enumerate(conditions)]
    )


def parts_table(rows: pl.DataFrame) -> None:
    """One row a condition of those that AND joins: the files that it alone would read and skip."""
    frame(
        rows,
        {
            "judged": columns.mark(
                {False: "\N{BLACK UP-POINTING TRIANGLE}"}, help="▲: not supported by data skipping; it skips no file"
            ),
            "part": columns.text("condition"),
            "files": columns.number("files read"),
            "bytes": columns.size("bytes"),
            "partition": columns.number("skipped by partition"),
            "range": columns.number("by min and max"),
            "nulls": columns.number("by nulls"),
        },
        key="parts",
        unknown="unknown",
    )


def warn_unsupported(parts: pl.DataFrame, where: str) -> None:
    """Says which condition is true for no row, and which one data skipping does not support."""
    errors.warn_null_comparison(where)
    condition = views.pruning.plan.unsupported_condition(parts, predicate(where), where)
    if condition is not None:
        st.markdown(
            f":orange[:material/warning:] **Data skipping does not support {escape(condition)}** "
            ":gray[only comparisons of a column with a value, IN, LIKE 'x%' and null tests; this skips no file]"
        )


def file_list(plans: list[FilterPlan]) -> None:
    """The files of the version shown, read or skipped, by page."""
    verdicts = plans[-1].verdicts
    if verdicts is None or verdicts.is_empty():
        return
    downloads.offer("files by verdict", verdicts)
    with heading_row("Files", "by path"):
        verdict = st.segmented_control(
            "Which files",
            _VERDICTS,
            required=True,
            key=link_widget("verdict", "read", _VERDICTS),
            label_visibility="collapsed",
        )
    rows = views.pruning.plan.files_with_verdict(verdicts, verdict or "read")
    page = rows.slice((page_number(rows.height, _PAGE, "files_page") - 1) * _PAGE, _PAGE)
    frame(
        page,
        {
            "path": columns.path("file", views.files.sizes.common_folder(verdicts["path"])),
            "reason": columns.text("read or skipped", words=_WORDS),
            "size": columns.size("size"),
        },
        key="verdict-files",
        **row_link("verdict-files", page, "files", lambda row: selection.link(file=row["path"])),
        height=320,
    )


_WORDS: Mapping[str, str] = {
    "kept": "read",
    "partition": "skipped by partition",
    "range": "skipped by min and max",
    "nulls": "skipped by nulls",
}
