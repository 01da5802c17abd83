"""The kinds of columns that tables on pages have: heading, unit and format of each kind of value."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import widths
from lakeview.app.table_cells import GROUPED, Column
from lakeview.views.values import without_seconds

BOUND_HELP = "≥ or ≤: a bound; ≈: some files do not count; empty: exact"

_RANGE_HELP = "exact (but for NaN), a bound that the true min and max lie within, or partial: of some files alone"

_MOST_DECIMALS = 4
"""Of a column of shares in percent."""

_UUID_DIGITS = widths.heading_width("00000000\N{HORIZONTAL ELLIPSIS}")

_BOUNDS = "\N{GREATER-THAN OR EQUAL TO} \N{LESS-THAN OR EQUAL TO}"


def text(
    label: str,
    *,
    of: str | None = None,
    null: str | None = None,
    words: Mapping[str, str] | None = None,
    right: bool = False,
    least: int = 0,
    help: str | None = None,
) -> Column:
    """Text, of other types as polars writes it; `null` stands for null; `words` replace values of a closed set. Cells
    are not cut below `least` pixels."""

    def cells(values: pl.Series) -> pl.Series:
        texts = values.cast(pl.String)
        texts = texts if words is None else texts.replace(words)
        return texts if null is None else texts.fill_null(null)

    options = {"help": help} | ({"alignment": "right"} if right else {})
    return Column(st.column_config.TextColumn, label, options, of, cells, may_be_cut=not right, least=least)


def link(label: str, word: str) -> Column:
    """A link that shows a word in place of its address."""
    return Column(st.column_config.LinkColumn, label, {"display_text": word})


def path(label: str, folder: str) -> Column:
    """A path, without the folder that all of them begin with, and of a UUID in a file's name the first digits."""

    def cells(values: pl.Series) -> pl.Series:
        return views.files.names.short_names(values.str.strip_prefix(folder))

    return Column(st.column_config.TextColumn, label, {}, format=cells, may_be_cut=True)


def data_file(label: str, *, of: str | None = None, help: str | None = None) -> Column:
    """The name of a data file; of a UUID the first digits, `part-c3274618….parquet`: they tell files apart, and what
    follows them was cut. It is left out where all have the same."""
    return Column(
        st.column_config.TextColumn, label, {"help": help}, of, views.files.names.names_apart, may_be_cut=True
    )


def metadata_file(label: str, *, of: str) -> Column:
    """The name of a manifest or delete file; of a UUID at its begin the first digits, `c798a0c0… -m0.avro`: what
    follows tells files of one commit apart, and was cut. Lines are broken at the space."""

    def cells(values: pl.Series) -> pl.Series:
        return values.str.replace(f"^{views.files.names.UUID}", "$1\N{HORIZONTAL ELLIPSIS} ")

    return Column(st.column_config.TextColumn, label, {}, of, cells, may_be_cut=True, least=_UUID_DIGITS)


def partition(keys: Sequence[str], among: Sequence[str] = ()) -> Column:
    """The partition of a file, `partition_text`; of several `keys` the values alone, `2026-09/JFK`. `among` are those
    of the table where rows are filtered."""

    def cells(partitions: pl.Series) -> pl.Series:
        return views.partitions.keys.short_names(partitions, keys, among)

    return Column(st.column_config.TextColumn, "partition", {}, "partition_text", cells, may_be_cut=True)


def number(label: str, *, of: str | None = None, decimals: int | None = None, help: str | None = None) -> Column:
    """A number: with comma groups, or with a fixed number of decimals."""
    format_ = "localized" if decimals is None else f"%.{decimals}f"
    return Column(st.column_config.NumberColumn, label, {"format": format_, "help": help}, of)


def percent(
    label: str, *, of: str | None = None, decimals: int = 1, bar: bool = False, help: str | None = None
) -> Column:
    """A share of one in percent, as `views.units.percent_figure` has it, all with as many decimals as one needs that is
    not quite 0 or 100; as a bar with `bar`. The heading names the unit."""

    def cells(shares: pl.Series) -> pl.Series:
        figures = [None if share is None else views.units.percent_figure(share, decimals) for share in shares]
        digits = _decimals(pl.Series(figures, dtype=pl.Float64), decimals)
        if digits is not None and digits > decimals:  # all of them to as many as one needs: figures stand in a line
            figures = [None if share is None else views.units.percent_figure(share, digits) for share in shares]
        return pl.Series(figures, dtype=pl.Float64)

    def number_format(figures: pl.Series) -> str:
        digits = _decimals(figures, decimals)
        return widths.ALL_DIGITS if digits is None else f"%.{digits}f"

    kind = st.column_config.ProgressColumn if bar else st.column_config.NumberColumn
    options = {"help": help} | ({"min_value": 0, "max_value": 100} if bar else {})
    return Column(kind, label, options, of, cells, number_format, pixels=widths.BAR if bar else 0)


def bound_text(label: str, *, of: str, least: int = 0) -> Column:
    """A min or max, of a type `type`: of timestamps the minute where that is all of it. `least` pixels are not cut."""

    def cells(values: pl.Series) -> pl.Series:
        rows = values.struct.unnest()
        return without_seconds(rows[of]).zip_with(rows["type"].str.starts_with("timestamp"), rows[of])

    return Column(st.column_config.TextColumn, label, {}, ("type", of), cells, may_be_cut=True, least=least)


def size(label: str, *, of: str | None = None, help: str | None = None) -> Column:
    """A number of bytes with one decimal, in the unit that suits the column; thousands of it in groups."""

    def number_format(figures: pl.Series) -> str:
        largest = figures.max()
        return "localized" if isinstance(largest, float) and largest >= GROUPED else "%.1f"

    return Column(st.column_config.NumberColumn, label, {"help": help}, of, number_format=number_format, in_bytes=True)


def timestamp(
    label: str = "committed, UTC", *, of: str | None = "timestamp", seconds: bool = False, help: str | None = None
) -> Column:
    """A timestamp as `2026-07-15 03:25`, in UTC."""
    pattern = "%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M"
    return Column(st.column_config.TextColumn, label, {"help": help}, of, lambda times: times.dt.strftime(pattern))


def date(label: str, *, of: str) -> Column:
    """The day of a timestamp in UTC, where a table has no room for the time."""
    return Column(st.column_config.TextColumn, label, {}, of, lambda times: times.dt.strftime("%Y-%m-%d"))


def clock(label: str, *, of: str) -> Column:
    """A timestamp as `03:25:10`, in UTC, where the page names the day."""
    return Column(st.column_config.TextColumn, label, {}, of, lambda times: times.dt.strftime("%H:%M:%S"))


def age(label: str, *, of: str | None = None, null: str | None = None, help: str | None = None) -> Column:
    """A duration in milliseconds, in two units; `null` stands for null."""

    def cells(milliseconds: pl.Series) -> pl.Series:
        texts = _texts(milliseconds, _age)
        return texts if null is None else texts.fill_null(null)

    return Column(st.column_config.TextColumn, label, {"help": help}, of, cells)


def duration(label: str) -> Column:
    """A duration in milliseconds, in two units; below a second in milliseconds."""
    return Column(st.column_config.TextColumn, label, {}, None, lambda ms: _texts(ms, views.units.format_duration))


def version(
    label: str = "version", *, of: str | None = None, null: str | None = None, help: str | None = None
) -> Column:
    """A version as `v63`."""

    def cells(values: pl.Series) -> pl.Series:
        labels = values.to_frame("version").select(views.units.version_label("version")).to_series()
        return labels if null is None else labels.fill_null(null)

    return Column(st.column_config.TextColumn, label, {"help": help}, of, cells)


def mark(
    glyphs: Mapping[Any, str] | None = None, *, of: str | None = None, label: str = "", help: str | None = None
) -> Column:
    """A narrow column of signs, one for each value of `glyphs`, none for others; without `glyphs` the cells are signs.
    No column, where there is no sign."""

    def cells(values: pl.Series) -> pl.Series:
        return pl.Series(
            [None if v is None else v if glyphs is None else glyphs.get(v, "") for v in values], dtype=pl.String
        ).fill_null("")

    return Column(st.column_config.TextColumn, label, {"help": help}, of, cells, may_be_absent=True)


def bound(*, of: str | None = None, help: str | None = BOUND_HELP) -> Column:
    """The marks of bounds, beside the numbers that they are of."""
    return mark(of=of, label=_BOUNDS, help=help)


def range_kind(label: str = "range is") -> Column:
    """What min and max are: exact, a bound or partial."""
    return text(label, of="range_is", help=_RANGE_HELP)


def change(label: str = "change") -> Column:
    """A kind of change with its sign: `+ added`."""
    signs = {"added": "+", "dropped": "\N{MINUS SIGN}", "same": "="}
    return Column(
        st.column_config.TextColumn,
        label,
        {},
        format=lambda values: pl.Series([f"{signs.get(v, '~')} {v}" for v in values], dtype=pl.String),
    )


def _decimals(figures: pl.Series, fewest: int) -> int | None:
    """How many decimals show all the figures; None where that is more than _MOST_DECIMALS."""
    every = range(fewest, _MOST_DECIMALS + 1)
    return next((digits for digits in every if (figures == figures.round(digits)).all()), None)


def _texts(milliseconds: pl.Series, text: Callable[[int], str]) -> pl.Series:
    return pl.Series([None if ms is None else text(ms) for ms in milliseconds], dtype=pl.String)


def _age(milliseconds: int) -> str:
    return views.units.format_age(timedelta(milliseconds=milliseconds))
