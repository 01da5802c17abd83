"""The pruning page's filter: what it would read at one version or two, what spares the rest, condition by condition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import cache, downloads, errors
from lakeview.app.components import byte_unit, dark, escape, frame, grid, nothing, stack, tile
from lakeview.app.memo import kept
from lakeview.app.pruning import clustering
from lakeview.app.session import Opened
from lakeview.app.widget_state import held
from lakeview.model.errors import InvalidRequestError, LakeviewError
from lakeview.model.table import as_declared
from lakeview.predicates import predicate
from lakeview.predicates.expressions import check_columns, conjuncts

FILTER_NOTE = (
    "the log alone decides: partition values, then least and greatest values and counts of nulls; no data is read"
)
WHERE = "where"
_VERDICTS = {"read": "kept", "spared": "spared", "all": "all"}
_MOST_PARTS = 8
_PAGE = 100


@dataclass(frozen=True, slots=True)
class Looked:
    """What a filter does to one version: FILE_VERDICTS, or why it cannot be asked of it."""

    version: int
    verdicts: pl.DataFrame | None
    error: LakeviewError | None = None

    @property
    def label(self) -> str:
        """The version, for people."""
        return views.units.format_version(self.version)


def typed_filter(now: Opened) -> str:
    """The filter as SQL text, kept in the URL; a few examples fill it in."""
    examples = clustering.examples(now)
    where = st.text_input(
        "Where, in SQL",
        key=held(WHERE),
        placeholder=examples[0] if examples else "as after WHERE",
        help="A condition on the columns, as after WHERE.",
    )
    if examples:
        st.pills(
            "Try",
            examples,
            key="example",
            on_change=_take_example,
            label_visibility="collapsed",
            help="Fills in a filter for a value from the middle of a column.",
        )
    return (where or "").strip()


def _take_example() -> None:
    chosen = st.session_state.get("example")
    if chosen:
        st.session_state[WHERE] = chosen
        st.session_state["example"] = None


def looked(now: Opened, where: str) -> list[Looked]:
    """The filter at the version compared with, if there is one, and at the version shown.

    Raises InvalidRequestError where it is no condition at the version shown; at the other that is told in its place.
    """
    shown = Looked(now.version, _verdicts(now.address, now.version, where))
    if now.base is None or now.base == now.version:
        return [shown]
    try:
        return [Looked(now.base, _verdicts(now.address, now.base, where)), shown]
    except LakeviewError as error:  # the column may be younger than that version
        return [Looked(now.base, None, error), shown]


@kept(64)
def _verdicts(address: str, version: int, where: str, part: int | None = None) -> pl.DataFrame:
    """FILE_VERDICTS of a filter, or of one of the conditions that it joins by AND."""
    snapshot = cache.snapshot(address, version)
    asked = predicate(where)
    check_columns(asked, snapshot.schema)
    views.pruning.plan.check_condition(asked, snapshot.schema)
    if part is not None:
        asked = conjuncts(asked)[part]
    table = cache.table(address)
    plan = cache.plan(address, version, where) if part is None else table.plan(asked, as_declared(table, version))
    statistics = cache.statistics(address, version, tuple(views.pruning.plan.filter_columns(asked, snapshot.schema)))
    return views.pruning.plan.file_verdicts(plan, asked, statistics, snapshot.files)


def bad_filter(now: Opened, error: InvalidRequestError) -> None:
    """Why a filter cannot be asked, and the columns there are."""
    errors.show(error, here="pruning")
    snapshot = now.snapshot
    kinds = st.column_config
    rows = pl.DataFrame(
        [(f.name, str(f.type), "partition" if f.name in snapshot.partition_columns else "") for f in snapshot.schema],
        schema={"column": pl.String(), "type": pl.String(), "part": pl.String()},
        orient="row",
    )
    st.markdown(f"**Columns of {views.units.format_version(now.version)}**")
    frame(
        rows,
        {
            "column": kinds.TextColumn("column", width=220),
            "type": kinds.TextColumn("type", width=200),
            "part": kinds.TextColumn("", width=90),
        },
        key="columns-there-are",
        height=10 * 28,
    )


def answer(found: list[Looked]) -> None:
    """Tiles and bars: what is read, of how much, and what spares the rest; the version compared with beside it."""
    shown = found[-1]
    if shown.verdicts is None or shown.verdicts.is_empty():
        nothing(f"{shown.label} holds no files.", "There is nothing to read.", "timeline")
        return
    base = found[0] if len(found) > 1 else None
    _tiles(shown.verdicts, base)
    told = [(look.label, views.pruning.plan.explained(look.verdicts)) for look in found if look.verdicts is not None]
    stack(charts.pruning.read_bars(told, dark=dark()), key="read-bars")
    if base is not None and base.error is not None:
        st.markdown(
            f":gray[:material/info:] **{base.label} cannot be asked this:** {escape(errors.told(base.error.message))}"
        )


def _tiles(verdicts: pl.DataFrame, base: Looked | None) -> None:
    cost = views.pruning.plan.read_cost(verdicts)
    spared = dict(views.pruning.plan.explained(verdicts).select("reason", "files").iter_rows())
    with grid(165, 5):
        tile(
            "Files read",
            f"{cost.files:,}",
            f"{views.units.format_percent(cost.files_share)} of {cost.all_files:,}",
            beside=_then(base, "files"),
            help="Files that may hold a row for which the filter is true: at most these are opened.",
        )
        tile(
            "Bytes read, at most",
            views.units.format_bytes(cost.bytes),
            f"{views.units.format_percent(cost.bytes_share)} of {views.units.format_bytes(cost.all_bytes)}",
            beside=_then(base, "bytes"),
            help="Whole files; readers skip columns and row groups inside them.",
        )
        for reason, label in (("partition", "Spared by partition"), ("range", "By min and max"), ("nulls", "By nulls")):
            tile(label, f"{spared[reason]:,}", "files")


def _then(base: Looked | None, what: str) -> str | None:
    if base is None or base.verdicts is None:
        return None
    cost = views.pruning.plan.read_cost(base.verdicts)
    text = f"{cost.files:,}" if what == "files" else views.units.format_bytes(cost.bytes)
    return f"{base.label}: {text}"


def parts(now: Opened, where: str) -> pl.DataFrame:
    """PARTS of the filter: what each condition would spare alone; empty where it is only one, or very many."""
    asked = conjuncts(predicate(where))
    if not 1 < len(asked) <= _MOST_PARTS:
        return views.pruning.plan.filter_parts([])
    found = [(part, _verdicts(now.address, now.version, where, place)) for place, part in enumerate(asked)]
    return views.pruning.plan.filter_parts(found)


def parts_table(rows: pl.DataFrame) -> None:
    """One row a condition of those that AND joins: what it alone would read and spare."""
    kinds = st.column_config
    unit, scale = byte_unit(rows["bytes"])
    frame(
        rows.with_columns(
            pl.col("bytes") / scale,
            judged=pl.when("judged").then(pl.lit("")).otherwise(pl.lit("\N{BLACK UP-POINTING TRIANGLE}")),
        ),
        {
            "judged": kinds.TextColumn("", width=24, help="▲: the log cannot judge it, and it spares nothing"),
            "part": kinds.TextColumn("condition alone", width=380),
            "files": kinds.NumberColumn("files read", format="localized", width=80),
            "bytes": kinds.NumberColumn(f"bytes read, {unit}", format="%.1f", width=110),
            "partition": kinds.NumberColumn("by partition", format="localized", width=90),
            "range": kinds.NumberColumn("by min/max", format="localized", width=90),
            "nulls": kinds.NumberColumn("by nulls", format="localized", width=80),
        },
        key="filter-parts",
    )


def say_unjudged(rows: pl.DataFrame, where: str) -> None:
    """A sentence where a condition is of a kind that no log can judge."""
    blind = rows.filter(~pl.col("judged"))["part"].to_list()
    if rows.is_empty() and not views.pruning.plan.can_be_judged(predicate(where)):
        blind = [where]
    if blind:
        st.markdown(
            f":orange[:material/warning:] **The log cannot judge {escape(blind[0])}** "
            ":gray[it holds comparisons of a column with a value, IN, LIKE 'x%' and null tests against statistics; "
            "this spares no file]"
        )


def file_list(found: list[Looked]) -> None:
    """The files of the version shown by what becomes of them, by page."""
    verdicts = found[-1].verdicts
    if verdicts is None or verdicts.is_empty():
        return
    downloads.offer("files by verdict", verdicts)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("**Files** &ensp; :small[:gray[by path]]", width="content")
        st.space("stretch")
        wanted = st.segmented_control(
            "Which files",
            list(_VERDICTS),
            required=True,
            key=held("verdict", "read", _VERDICTS),
            label_visibility="collapsed",
        )
    rows = verdicts
    if wanted != "all":
        rows = verdicts.filter(pl.col("kept") if wanted == "read" else ~pl.col("kept"))
    pages = max(1, -(-rows.height // _PAGE))
    number = st.pagination(pages, key=held("files_page", 1, range(1, pages + 1))) if pages > 1 else 1
    kinds = st.column_config
    shown = rows.sort("path").slice((number - 1) * _PAGE, _PAGE)
    unit, scale = byte_unit(shown["size"])
    frame(
        shown.with_columns(
            pl.col("path").str.strip_prefix(views.files.sizes.common_folder(verdicts["path"])),
            pl.col("size") / scale,
            reason=pl.col("reason").replace_strict(_WORDS, default=None),
        ),
        {
            "path": kinds.TextColumn("file", width=520),
            "reason": kinds.TextColumn("what becomes of it", width=170),
            "size": kinds.NumberColumn(f"size, {unit}", format="%.1f", width=90),
        },
        key="verdict-files",
        height=320,
    )


_WORDS: Mapping[str, str] = {
    "kept": "read",
    "partition": "spared by partition",
    "range": "spared by min and max",
    "nulls": "spared by nulls",
}
