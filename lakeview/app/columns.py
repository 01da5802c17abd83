"""How a table on a page shows the columns of a view's frame: heading, width, unit and format of each kind of value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.charts.palette import palette

PALE_HELP = "pale: rows of files that were written before the column existed; all of them are null there"
_CELL_PADDING = 16
BOUND_HELP = "≥ or ≤: a bound; ≈: some files do not count; empty: exact"

Format = Callable[[pl.Series], pl.Series]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: Streamlit's `kind` of column, its heading, options and width in pixels.

    `of`: the frame's column that it shows, or a struct of those; the one of its own name without. `format` makes the
    cells of the values.
    `in_bytes`: the values are sizes, shown in the unit that suits their median; the heading names it.
    """

    kind: Callable[..., Any]
    label: str
    width: int | None
    options: Mapping[str, Any]
    of: str | tuple[str, ...] | None = None
    format: Format | None = None
    in_bytes: bool = False

    def cells(self, values: pl.Series) -> tuple[pl.Series, dict[str, Any]]:
        """The cells, and Streamlit's configuration of the column."""
        label = self.label
        if self.in_bytes:
            unit, size = byte_unit(values)
            values, label = values / size, f"{label}, {unit}"
        elif self.format is not None:
            values = self.format(values)
        return values, self.kind(label, width=self.width, **self.options)


def cells_and_columns(
    rows: pl.DataFrame, columns: Mapping[str, Column]
) -> tuple[pl.DataFrame, dict[str, dict[str, Any]]]:
    """The cells of these columns in this order, and the configuration of each."""
    drawn = {name: column.cells(_values(rows, column.of or name)) for name, column in columns.items()}
    return pl.DataFrame({name: cells for name, (cells, _) in drawn.items()}), {n: c for n, (_, c) in drawn.items()}


def _values(rows: pl.DataFrame, of: str | tuple[str, ...]) -> pl.Series:
    return rows[of] if isinstance(of, str) else rows.select(of).to_struct()


def text(
    label: str,
    width: int | None = None,
    *,
    of: str | None = None,
    null: str | None = None,
    words: Mapping[str, str] | None = None,
    right: bool = False,
    help: str | None = None,  # noqa: A002 (streamlit's own name for it)
) -> Column:
    """Text, of other types as polars writes it; `null` stands for null; `words` replace values of a closed set."""

    def cells(values: pl.Series) -> pl.Series:
        texts = values.cast(pl.String)
        texts = texts if words is None else texts.replace(words)
        return texts if null is None else texts.fill_null(null)

    options = {"help": help} | ({"alignment": "right"} if right else {})
    return Column(st.column_config.TextColumn, label, width, options, of, cells)


def link(label: str, width: int, word: str, *, of: str | None = None) -> Column:
    """A link that shows a word in place of its address."""
    return Column(st.column_config.LinkColumn, label, width, {"display_text": word}, of)


def path(label: str, width: int, folder: str, *, of: str | None = None, help: str | None = None) -> Column:  # noqa: A002
    """A path, without the folder that all of them begin with."""
    return Column(
        st.column_config.TextColumn, label, width, {"help": help}, of, lambda paths: paths.str.strip_prefix(folder)
    )


def number(
    label: str,
    width: int | None = None,
    *,
    of: str | None = None,
    decimals: int | None = None,
    help: str | None = None,  # noqa: A002
) -> Column:
    """A number: with comma groups, or with a fixed number of decimals."""
    format_ = "localized" if decimals is None else f"%.{decimals}f"
    return Column(st.column_config.NumberColumn, label, width, {"format": format_, "help": help}, of)


def percent(
    label: str,
    width: int | None = None,
    *,
    of: str | None = None,
    decimals: int = 1,
    bar: bool = False,
    help: str | None = None,  # noqa: A002
) -> Column:
    """A share of one in percent; as a bar with `bar`. The heading names the unit."""
    options: dict[str, Any] = {"format": f"%.{decimals}f", "help": help}
    kind = st.column_config.ProgressColumn if bar else st.column_config.NumberColumn
    options |= {"min_value": 0, "max_value": 100} if bar else {}
    return Column(kind, label, width, options, of, lambda shares: shares * 100)


def null_shares(rows: pl.DataFrame, bar: int) -> dict[str, Column]:
    """The null shares of columns, `null_share`, in percent and as bars of so many pixels.

    Pale is the part of files that were written before the column existed, `absent_share`; `absent_text` names it.
    """
    if rows["absent_share"].null_count() == rows.height:
        return {"null": percent("null, %", bar + 24, of="null_share", bar=True)}
    width = bar - _CELL_PADDING
    pale = Column(
        st.column_config.ImageColumn,
        "share",
        bar,
        {"help": PALE_HELP, "alignment": "left"},
        ("null_share", "absent_share"),
        lambda shares: pl.Series([_null_bar(width, **share) for share in shares], dtype=pl.String),
    )
    found = {"null": percent("null, %", 56, of="null_share"), "bar": pale}
    if "absent_text" in rows.columns:
        found["absent"] = text("before the column", 122, of="absent_text", null="", help=PALE_HELP)
    return found


def _null_bar(width: int, null_share: float | None, absent_share: float | None) -> str | None:
    """A bar as the address of a picture, of the height of a cell."""
    if null_share is None:
        return None
    p = palette(st.context.theme.type == "dark")
    whole = round(width * null_share, 1)
    pale = min(round(width * (absent_share or 0.0), 1), whole)
    bars = (
        f"<rect y='8' height='6' rx='2' width='{length}' fill='{colour}'/>"
        for length, colour in ((width, p.zero), (whole, p.blue), (pale, p.quiet))
    )
    picture = f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='22'>{''.join(bars)}</svg>"
    return f"data:image/svg+xml;utf8,{picture.replace('#', '%23')}"


def size(
    label: str,
    width: int | None = None,
    *,
    of: str | None = None,
    help: str | None = None,  # noqa: A002
) -> Column:
    """A number of bytes with one decimal, in the unit that suits the column."""
    return Column(st.column_config.NumberColumn, label, width, {"format": "%.1f", "help": help}, of, in_bytes=True)


def timestamp(
    label: str = "committed, UTC",
    width: int | None = 120,
    *,
    of: str | None = "timestamp",
    seconds: bool = False,
    help: str | None = None,  # noqa: A002
) -> Column:
    """A timestamp as `2026-07-15 03:25`, in UTC."""
    pattern = "%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M"
    return Column(
        st.column_config.TextColumn, label, width, {"help": help}, of, lambda times: times.dt.strftime(pattern)
    )


def age(
    label: str,
    width: int | None = None,
    *,
    of: str | None = None,
    help: str | None = None,  # noqa: A002
) -> Column:
    """A duration in milliseconds, in two units."""
    return Column(st.column_config.TextColumn, label, width, {"help": help}, of, _ages)


def duration(label: str, width: int | None = None) -> Column:
    """A duration in milliseconds, in two units; below a second in milliseconds."""
    return Column(st.column_config.TextColumn, label, width, {}, None, _durations)


def version(
    label: str = "version", width: int | None = 90, *, of: str | None = None, null: str | None = None
) -> Column:
    """A version as `v63`."""

    def cells(values: pl.Series) -> pl.Series:
        labels = values.to_frame("version").select(views.units.version_label("version")).to_series()
        return labels if null is None else labels.fill_null(null)

    return Column(st.column_config.TextColumn, label, width, {}, of, cells)


def mark(
    glyphs: Mapping[Any, str] | None = None,
    *,
    of: str | None = None,
    width: int = 26,
    help: str | None = None,  # noqa: A002
) -> Column:
    """A narrow column without a heading: the sign of each value, none for others; without `glyphs` the text itself."""

    def cells(values: pl.Series) -> pl.Series:
        return pl.Series(
            [None if v is None else v if glyphs is None else glyphs.get(v, "") for v in values], dtype=pl.String
        ).fill_null("")

    return Column(st.column_config.TextColumn, "", width, {"help": help}, of, cells)


def change(label: str = "change", width: int = 104) -> Column:
    """A kind of change with its sign: `+ added`."""
    signs = {"added": "+", "dropped": "\N{MINUS SIGN}", "same": "="}
    return Column(
        st.column_config.TextColumn,
        label,
        width,
        {},
        format=lambda values: pl.Series([f"{signs.get(v, '~')} {v}" for v in values], dtype=pl.String),
    )


def byte_unit(sizes: pl.Series) -> tuple[str, int]:
    """The unit in which a column of sizes reads well, KiB at least, and its bytes: `MiB`, 1048576."""
    middle = sizes.median()
    return views.units.byte_unit(max(middle, 1 << 10) if isinstance(middle, int | float) else 1 << 10)


def _durations(milliseconds: pl.Series) -> pl.Series:
    texts = [None if ms is None else views.units.format_duration(ms) for ms in milliseconds]
    return pl.Series(texts, dtype=pl.String)


def _ages(milliseconds: pl.Series) -> pl.Series:
    texts = [None if ms is None else views.units.format_age(timedelta(milliseconds=ms)) for ms in milliseconds]
    return pl.Series(texts, dtype=pl.String)
