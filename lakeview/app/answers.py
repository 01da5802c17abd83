"""Answers about the selected version, from its Inspection."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import polars as pl

from lakeview import views
from lakeview.app.cache import cache_values
from lakeview.app.components import MAX_ROWS
from lakeview.app.session import OpenTable
from lakeview.model.errors import LakeviewError
from lakeview.model.findings import Finding

SPANS = {"all": None, "last year": 365, "last 90 days": 90, "last 30 days": 30, "last 7 days": 7}
"""What the timeline can be narrowed to, in days before the last commit."""


def place_off_the_line(now: OpenTable) -> str | None:
    """Where the version shown lies, if it is not on the line of versions that is shown."""
    rows = now.look.off_branch_commits().filter(pl.col("version") == now.version)
    return next(iter(rows["note"]), None)


def schemas_up_to(now: OpenTable) -> pl.DataFrame:
    """SCHEMAS up to the version shown, oldest first: by the order of versions, whose numbers may be random."""
    newest_first = now.frames.of_log("versions")["version"]
    place = newest_first.index_of(now.version)
    schemas = now.frames.schemas
    return schemas if place is None else schemas.filter(pl.col("version").is_in(newest_first[place:].implode()))


def checkpoints(now: OpenTable) -> pl.DataFrame:
    """`version` of each checkpoint in the log; empty where it has none, or is not in sight."""
    try:
        files = now.look.frames.of_log("log files")
    except LakeviewError:  # the commits are shown all the same
        return pl.DataFrame(schema={"version": pl.Int64()})
    return files.filter(pl.col("kind") == "checkpoint").select("version").drop_nulls().unique().sort("version")


def narrow_timeline(frame: pl.DataFrame, lanes: Sequence[str], writer: str | None, span: str | None) -> pl.DataFrame:
    """TIMELINE rows of these lanes (all if none is named), this writer and this span before the last commit."""
    if lanes:
        bad = pl.col("suspicious") if "bad load" in lanes else pl.lit(value=False)
        frame = frame.filter(pl.col("lane").is_in(list(lanes)) | bad)
    if writer is not None:
        frame = frame.filter(pl.col("writer") == writer)
    days = SPANS.get(span or "all")
    last = frame["timestamp"].max()
    if days is not None and isinstance(last, datetime):
        frame = frame.filter(pl.col("timestamp") >= last - timedelta(days=days))
    return frame


def layout_findings(now: OpenTable, page: str) -> list[Finding]:
    """The findings about the layout of files that this page shows best."""
    return [finding for finding in now.look.present_findings() if finding.page == page]


def reason_columns(now: OpenTable, version: int, start: int | None = None) -> list[str]:
    """The columns for which the load of a version, or those from `start` on, are bad."""
    return views.timeline.events.reason_columns(now.look.timeline(), now.look.anomalies(), version, start)


@cache_values(32, of=("version", "branch"))
def file_layout(now: OpenTable) -> views.files.sizes.FileLayout:
    """Sizes, figures and partitions of the files of the version shown."""
    return views.files.sizes.file_layout(now.snapshot, MAX_ROWS)
