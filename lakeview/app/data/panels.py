"""The data page's parts: what to read, its estimated cost, and the rows on demand."""

from contextlib import suppress
from dataclasses import dataclass, replace

import polars as pl
import streamlit as st
from msgspec import structs

from lakeview import views
from lakeview.app import columns, display_rows, errors, selection
from lakeview.app.components import escape, first_line, frame, link, nothing
from lakeview.app.data.filters import Request
from lakeview.app.null_shares import null_columns, pale_key
from lakeview.app.pages import QUALITY_WHOLE_TABLE
from lakeview.app.query import budget, runner
from lakeview.app.query.answers import Answer
from lakeview.app.query.budget import Cost
from lakeview.app.query.request import Request as Query
from lakeview.app.row_links import row_link
from lakeview.app.session import OpenTable
from lakeview.inspection.answers import MAX_FILES_AT_A_GLANCE
from lakeview.model.errors import LakeviewError
from lakeview.model.findings import Severity

NOTE = "read at once up to 64 MiB and 500 files, more by the button; the cost comes from the log"
SEED = 1
"""Of samples: the same files and rows each time that they are drawn."""
TABS = ("Rows", "Profile", "SQL", "Changes")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a request reads at most. `paths`: a sample of the files that may hold such rows, drawn by the seed, where
    they are too many: the cost is that of the sample, and its `all_files` those it was drawn from; `most`: the bytes of
    which it took no larger file, where there are any; `whole`: the cost without a sample. `on_spark`: Spark reads.
    `first`: the files that hold the first rows, where not all do."""

    cost: Cost
    paths: tuple[str, ...] | None = None
    most: int | None = None
    whole: Cost | None = None
    on_spark: bool = False
    first: tuple[str, ...] | None = None

    @property
    def files_text(self) -> str:
        """`32 of 1,200 files drawn by a seed`."""
        larger = "" if self.most is None else f", none of more than {views.units.format_bytes(self.most)}"
        return f"{self.cost.files:,} of {views.units.count_text(self.cost.all_files, 'file')} drawn by a seed{larger}"


def draw_first_line(now: OpenTable, request: Request | None = None, reading: Reading | None = None) -> None:
    """The first line: how many rows and columns there are, and which rows are shown at what cost; why not all can be
    read, where that is so. None of a version without files, and of one that cannot be opened, which the page says
    below."""
    with suppress(LakeviewError):
        reason = gap(now, now.version if request is None else request.version)
        first_line(_answer_line(now, request, reading, reason), None if reason is None else Severity.BROKEN)


def _answer_line(now: OpenTable, request: Request | None, reading: Reading | None, reason: str | None) -> str:
    snapshot = now.snapshot if request is None else now.frames.snapshot(request.version)
    if snapshot.num_files == 0:
        return ""
    if request is None or reading is None:
        return views.first_lines.contents_line(snapshot, reason)
    cost = reading.cost
    is_all = snapshot.num_records is not None and snapshot.num_records <= request.limit
    return views.first_lines.data_line(
        snapshot.version,
        views.sums.rows_text(snapshot, exact=True),
        len(snapshot.schema),
        cost.files,
        cost.all_files,
        cost.size,
        condition=request.where,
        sample=request.limit if request.is_sample else None,
        first=None if is_all else request.limit,
        gap=reason,
    )


def gap(now: OpenTable, version: int) -> str | None:
    """Why not all rows of a version can be read: `v4 is not whole: 1 of its data files is missing from the store`; None
    where all can, or where the table is so large that it takes seconds to know."""
    if not now.look.is_small:
        return None
    versions = now.look.frames.of_log("readable versions")
    reasons = versions.filter((pl.col("version") == version) & ~pl.col("readable"))["reason"].to_list()
    name = views.units.format_version(version)
    return f"{name} is not whole: {reasons[0] or 'the log does not record why'}" if reasons else None


def reading(now: OpenTable, request: Request, *most: int) -> Reading:
    """All files that the request needs, from the log, or a sample of them where they take more than `most` bytes: the
    first of these of which a file is no larger. Without `most` all files."""
    snapshot = now.frames.snapshot(request.version)
    plan = None
    cost = Cost(snapshot.num_files, snapshot.size_bytes, snapshot.num_files)
    if request.where is not None:
        plan = now.frames.plan(request.where, request.version)
        st.markdown(f":small[:gray[{views.data.preview.plan_text(plan)}]]")
        errors.warn_null_comparison(request.where)
        plan_cost = views.pruning.plan.read_cost(plan)
        cost = Cost(plan_cost.files, plan_cost.bytes, plan_cost.all_files)
    if not most or cost.size is None or cost.size <= most[0]:
        return Reading(cost)
    files = snapshot.files if plan is None else plan.filter("kept")
    for size in most:
        subset = views.data.preview.sample_files(files.select("path", "size"), size, SEED)
        if not subset.is_empty():
            sample = Cost(subset.height, views.sums.total_of(subset["size"]), cost.files)
            largest = size if (files["size"] > size).any() else None
            return Reading(sample, tuple(subset["path"]), largest, cost)
    return Reading(cost)


def first_reading(now: OpenTable, request: Request, *, is_whole: bool = True) -> Reading:
    """As `reading`; of the first rows of a version without a filter only the files that hold them, where all are there
    (the version `is_whole`)."""
    every = reading(now, request)
    if request.where is not None or not is_whole or every.cost.files > MAX_FILES_AT_A_GLANCE:
        return every
    files = now.frames.snapshot(request.version).files
    first = views.data.preview.first_files(files, request.limit)
    if first.height == files.height:
        return every
    cost = Cost(first.height, views.sums.total_of(first["size"]), every.cost.all_files)
    return Reading(cost, first=tuple(first["path"]))


def read_button(request: Request, reading: Reading, limits: budget.Budget) -> bool:
    """The button with the estimated cost; True if these rows were requested, now or earlier in this session."""
    if not any_file(request, reading.cost):
        return False
    first = request.where is None and not request.is_sample
    if first and reading.cost.size is not None:  # the first files hold rows enough
        limits = replace(limits, size=reading.cost.size)
    return budget.button("Read rows", request, reading.cost, limits, key="read", at_most=first, on_arrival=True)


def any_file(request: Request, cost: Cost) -> bool:
    """False, with a line that says why, where there is no file to read."""
    if cost.all_files == 0:
        nothing(
            views.first_lines.empty_line(request.version, "rows"),
            "Nothing was written yet, or everything was removed.",
            "timeline",
        )
    elif cost.files == 0:
        nothing("No file can hold such rows.", "Data skipping leaves no file to read.")
    return cost.files > 0


def read_rows(
    now: OpenTable, request: Request, reading: Reading, limits: budget.Budget, *, is_whole: bool = True
) -> Answer:
    """The rows of the request: those of the first files, of a version that is not whole without the missing ones; those
    that match a filter, which may read all files; or a sample."""
    query = Query(now.address, request.version, request.limit, runner.MEMORY, where=request.where)
    if request.where is None and not request.is_sample:
        query = structs.replace(query, paths=reading.first, skips_missing=not is_whole)
        with st.spinner("Reading rows", show_time=True):
            try:
                answer = runner.first_rows(query, limits.seconds)
            except LakeviewError as error:
                budget.forget(error)  # else every later run would begin it again
                raise
        budget.say_if_stopped(answer, limits.seconds)
        return answer
    if request.is_sample:
        query = structs.replace(query, paths=reading.paths, seed=SEED)
    return budget.answer(query, limits)


def show_rows(now: OpenTable, answer: Answer, request: Request, reading: Reading, *, is_whole: bool = True) -> None:
    """The rows, and which they are; of how many can be read where the version `is_whole`, else of how many recorded."""
    rows = answer.rows
    if rows.is_empty() and answer.counts.get("stopped"):
        return  # a line above says so
    if rows.is_empty():
        none = (
            "No row matches this filter"
            if request.where
            else f"{views.units.format_version(request.version)} holds no rows"
        )
        part = "" if reading.paths is None else f" of {reading.files_text}"
        st.markdown(f":gray[:material/do_not_disturb_on:] **{none}{part}.**")
        return
    more = _amount(now, answer, request, reading, is_whole=is_whole)
    where = f" where {escape(request.where)}" if request.where else ""
    without = escape(unreadable_text(now, request))
    st.markdown(
        f"**Rows of {views.units.format_version(request.version)}** &ensp; :small[:gray[{more}{where}{without}]]"
    )
    display_rows.table(rows, key="rows")


def _amount(now: OpenTable, answer: Answer, request: Request, reading: Reading, *, is_whole: bool) -> str:
    more, height = budget.amount(answer, request.limit), answer.rows.height
    if request.is_sample and (height == request.limit or reading.paths is not None):
        return f"{height:,} drawn from {'all' if reading.paths is None else reading.files_text}"
    if request.where is not None:
        return more
    in_version = views.sums.rows_text(now.frames.snapshot(request.version), exact=True)
    if height == request.limit and in_version != views.units.UNKNOWN:
        more += f" of {in_version}" if is_whole else f"; the log records {in_version} rows"
    return more if is_whole else more.replace("all", "all that can be read,")


def unreadable_text(now: OpenTable, request: Request) -> str:
    """`, without x, of a type that cannot be read`; "" where all columns can."""
    left_out = now.frames.snapshot(request.version).schema.unreadable
    return f", without {', '.join(left_out)}, of a type that cannot be read" if left_out else ""


def nulls_note(now: OpenTable) -> str:
    """Where the shares come from."""
    files = views.units.count_text(now.snapshot.num_files, "file")
    return f"{views.units.format_version(now.version)}, from the statistics of its {files}; no data is read"


def null_table(shares: pl.DataFrame, tree: pl.DataFrame) -> None:
    """One row a column: nulls, rows counted, share, and whether it is exact."""
    rows = views.schema.tree.with_absent_shares(views.schema.tree.most_nulls_first(shares), tree)
    frame(
        rows,
        {
            "column": columns.text("column"),
            "mark": columns.bound(),
            **null_columns(rows, 60),
            "null_count": columns.number("nulls"),
            "records": columns.number("rows counted"),
            "counted": columns.text("in files", of="files_text"),
        },
        key="null-shares",
        **row_link("null-shares", rows, "quality", lambda row: selection.link(column=row["column"])),
    )
    pale_key(rows)
    link("quality", "History by version", selection.link(tab=QUALITY_WHOLE_TABLE))
