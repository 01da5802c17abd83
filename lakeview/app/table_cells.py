"""The columns of a view's frame to the cells of a table on a page, and to Streamlit's configuration of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from lakeview import views
from lakeview.app import widths
from lakeview.model.printable import visible_texts

Format = Callable[[pl.Series], pl.Series]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: Streamlit's `kind` of column, its heading and options.

    `of`: the frame's column that it shows, or a struct of those; the one of its own name without. `format` makes the
    cells of the values.
    `number_format` takes the cells and gives the format of numbers, where it depends on them.
    `in_bytes`: the values are sizes, shown in the unit that suits their median; the heading names it.
    `may_be_cut`: long cells end in dots where there is no room for them; a double click shows the whole text. They are
    not cut below `least` pixels.
    `pixels`: the width of cells that are no texts.
    `may_be_absent`: a table has no such column where all its cells are empty.
    """

    kind: Callable[..., Any]
    label: str
    options: Mapping[str, Any]
    of: str | tuple[str, ...] | None = None
    format: Format | None = None
    number_format: Callable[[pl.Series], str] | None = None
    in_bytes: bool = False
    may_be_cut: bool = False
    least: int = 0
    may_be_absent: bool = False
    pixels: int = 0

    def cells(self, values: pl.Series) -> tuple[pl.Series, str]:
        """The cells, and the heading."""
        if self.in_bytes:
            unit, size = _byte_unit(values)
            return _round_figures(values / size), f"{self.label}, {unit}"
        return values if self.format is None else self.format(values), self.label

    def options_for(self, cells: pl.Series) -> dict[str, Any]:
        """Streamlit's options of the column with these cells."""
        return {**self.options} if self.number_format is None else {**self.options, "format": self.number_format(cells)}

    def needs(self, cells: pl.Series, label: str, unknown: str) -> widths.Needs:
        """The pixels that the column needs; null is shown as `unknown`."""
        if self.pixels:
            return widths.needs(label, [], least=self.pixels)
        word = self.options.get("display_text")
        texts = widths.longest(cells, self.options_for(cells).get("format")) if word is None else [word]
        return widths.needs(
            label, [*texts, unknown] if cells.null_count() else texts, may_be_cut=self.may_be_cut, uncut=self.least
        )


def cells_and_columns(
    rows: pl.DataFrame, columns: Mapping[str, Column], *, place: int, unknown: str
) -> tuple[pl.DataFrame, dict[str, dict[str, Any]]]:
    """The cells of these columns in this order, and Streamlit's configuration of each: they share `place` pixels, and
    grow alike where there are more. One without a heading gets its name, for those who hear the table."""
    parts = {name: column.cells(_values(rows, column.of or name)) for name, column in columns.items()}
    # escapes are wider than what they stand for
    parts = {name: (_as_drawn(cells), label) for name, (cells, label) in parts.items()}
    visible = {
        name: cells for name, (cells, _) in parts.items() if not columns[name].may_be_absent or (cells != "").any()
    }
    labels = {name: parts[name][1] or name for name in visible}
    needs = [columns[name].needs(cells, labels[name], unknown) for name, cells in visible.items()]
    return pl.DataFrame(visible), {
        name: columns[name].kind(labels[name], width=width, **columns[name].options_for(cells))
        for (name, cells), width in zip(visible.items(), widths.fit_widths(needs, place), strict=True)
    }


def pandas_rows(rows: pl.DataFrame) -> Any:
    """Rows as a pandas frame, which Streamlit's tables are drawn from; what is unseen in texts as its escape.

    By Arrow. polars' own `to_pandas`, which Streamlit would call, waits for polars' threads and holds the interpreter's
    lock meanwhile; where these wait for that lock, to call a function of Python in an expression of another user,
    the app stops for good (polars 1.x, `PyDataFrame.to_pandas`).
    """
    return pl.DataFrame([_as_drawn(column) for column in rows]).to_arrow().to_pandas(date_as_object=False)


def _as_drawn(cells: pl.Series) -> pl.Series:
    return visible_texts(cells) if cells.dtype == pl.String else cells


def _values(rows: pl.DataFrame, of: str | tuple[str, ...]) -> pl.Series:
    return rows[of] if isinstance(of, str) else rows.select(of).to_struct()


GROUPED, _ONE_DECIMAL = 1_000, 10
"""From where on the digits of a number are in groups, and up to where numbers beside such a one have a decimal."""


def _round_figures(figures: pl.Series) -> pl.Series:
    """Figures to one decimal; without it beside one of a thousand, where they are not small."""
    largest = figures.max()
    if not isinstance(largest, float) or largest < GROUPED:
        return figures.round(1)
    return figures.round(1).zip_with(figures < _ONE_DECIMAL, figures.round())


def _byte_unit(sizes: pl.Series) -> tuple[str, int]:
    """The unit in which a column of sizes reads well, KiB at least, and its bytes: `MiB`, 1048576."""
    middle = sizes.median()
    return views.units.byte_unit(max(middle, 1 << 10) if isinstance(middle, int | float) else 1 << 10)
