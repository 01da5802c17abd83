"""SAMPLED commits to the rows of marks: lane, colour and shape of each, and the texts of its tooltip."""

import polars as pl

from lakeview.charts.marks import exact_count, texts
from lakeview.charts.palette import Palette
from lakeview.views.conform import first_label
from lakeview.views.units import MINUS, format_bytes, format_count, format_moment, format_version

SHAPES = {
    "append": "circle",
    "change": "diamond",
    "schema": "triangle-up",
    "maint.": "square",
    "other": "circle",
    "off-branch": "triangle-down",
    "bad load": "cross",
}
_SIZES = {"circle": 34, "diamond": 44, "triangle-up": 44, "triangle-down": 44, "square": 40, "cross": 60}

_DIMMED = 0.18

TOOLTIP = (
    ("version_text", "version"),
    ("committed", "committed, UTC"),
    ("operation", "operation"),
    ("writer", "writer"),
    ("rows", "rows"),
    ("live", "live"),
    ("files", "files"),
    ("change", "rows added, removed"),
)


def style_marks(marks: pl.DataFrame, texts: pl.DataFrame, p: Palette) -> pl.DataFrame:
    """`tooltip_rows` of SAMPLED with how each commit is drawn: `lane`, `color`, `shape`, `size`."""
    lane = first_label({"bad load": "suspicious"}, pl.col("lane").replace({"maintenance": "maint."})).alias("lane")
    rows = texts.with_columns(marks.select(lane).to_series(), taken_back=marks["taken_back_by"].is_not_null())
    colours = {"append": p.green, "change": p.orange, "schema": p.violet, "maint.": p.gray, "other": p.gray}
    return rows.with_columns(
        color=pl.when(pl.col("lane") != "bad load")
        .then(pl.col("lane").replace_strict(colours, default=p.gray, return_dtype=pl.String))
        .when("taken_back")
        .then(pl.lit(p.orange))
        .otherwise(pl.lit(p.red)),  # its rows are in the latest version
        shape=pl.col("lane").replace_strict(SHAPES, default="circle", return_dtype=pl.String),
    ).with_columns(size=pl.col("shape").replace_strict(_SIZES, default=34, return_dtype=pl.Int64))


def opacities(rows: pl.DataFrame) -> pl.Series:
    """`opacity` of each commit's mark: whole for those that match the filters, all without a column `matches`."""
    whole = pl.Series([1.0], dtype=pl.Float64).new_from_index(0, rows.height).alias("opacity")
    return whole.set(~rows["matches"], _DIMMED) if "matches" in rows.columns else whole


def _version_text(version: int) -> str:
    """`v63`; where the name is another than the id, both."""
    name = format_version(version)
    return name if name == f"v{version}" else f"{name} · {version}"


def _change(rows_added: int | None, rows_removed: int | None, partly: bool) -> str:
    """`+27.3 k`, with what was removed behind it; a side without rows is left out."""
    if None in (rows_added, rows_removed) and not (rows_added or rows_removed):
        return "unknown"
    sides = ((sign, count) for sign, count in (("+", rows_added), (MINUS, rows_removed)) if count != 0)
    return f"{'at least ' if partly else ''}{', '.join(sign + format_count(count) for sign, count in sides) or '0'}"


def tooltip_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """The texts of the tooltip for SAMPLED: unknown is a word, never 0; versions are text."""
    changes = [_change(*row) for row in rows.select("records_added", "records_removed", "partly").iter_rows()]
    many = [f" (the last of {n:,} commits)" if n > 1 else "" for n in rows["commits"]]
    return pl.DataFrame(
        {
            "timestamp": rows["timestamp"],
            "version": rows["version"].cast(pl.String),
            "version_text": [_version_text(version) for version in rows["version"]],
            "committed": [f"{format_moment(m)}{n}" for m, n in zip(rows["timestamp"], many, strict=True)],
            # a field of its own would be empty for most commits
            "operation": rows.select(
                pl.concat_str(pl.col("operation").fill_null("unknown"), "note", separator="; ", ignore_nulls=True)
            ).to_series(),
            "writer": rows["writer"].fill_null("unknown"),
            "rows": [
                format_count(records, exact=True, least=least)
                for records, least in rows.select("records", "least_records").iter_rows()
            ],
            "live": texts(rows["bytes"], format_bytes),
            "files": texts(rows["files"], exact_count),
            "change": changes,
        }
    )
