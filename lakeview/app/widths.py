"""Pixels of a table's columns: those that their headings and cells take, and how columns share a narrow page."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

PLACE = 618
"""Pixels of a table in a card on a page 900 pixels wide, beside the sidebar."""
HALF = 410
"""Pixels of a table in one of two cards that stand side by side."""
NARROW_PAGE, WIDER = 1400, 450
"""Pixels up to which a page is narrow, and those by which a table in a card is wider on a page of more."""
TICK_BOXES = 33
"""Pixels of the tick boxes with which a table that has a selection begins."""
BAR = 76
"""Pixels of a bar with its number."""

_AROUND, _USUAL_LETTER = 17, 6.6
_LETTERS = {
    **dict.fromkeys("fijlrt.,:;/|'()- ", 3.9),
    **dict.fromkeys("0123456789", 6.2),
    **dict.fromkeys("mwMW%+\N{MINUS SIGN}", 9.6),
    "\N{HORIZONTAL ELLIPSIS}": 13.0,
}
ALL_DIGITS = "%.15g"
"""Numbers with the digits that each has, and no zeros after them; Streamlit's own format for it, `plain`, shows 99 as
99.00000000000001."""
NAME = 116
"""Pixels of a name of some 16 letters, which is not cut however many columns there are."""
MINUTE = 107
"""Pixels of a timestamp to the minute."""
DAY = 76
"""Pixels of a date."""
SENTENCE = 200
"""Pixels of a few words in a row, `readers; old files may not convert`."""
_SHORTEST = 56
"""Pixels that a column of texts has at least, where they are cut."""
_LONGEST = 200
"""Letters that are measured."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Pixels of one column: with every cell whole, and the least that it can have."""

    whole: int
    least: int


def heading_width(label: str) -> int:
    """The pixels of a heading, or a cell, and the space around it, measured by kinds of letters of the theme's font."""
    return _AROUND + round(sum(_LETTERS.get(letter, _USUAL_LETTER) for letter in label[:_LONGEST]))


def needs(label: str, texts: Iterable[str], *, least: int = 0, may_be_cut: bool = False, uncut: int = 0) -> Needs:
    """What a column with this heading and these cells needs, `least` pixels in any case. Headings are never cut, nor
    are cells that fit into `uncut` pixels."""
    heading = max(heading_width(label), least)
    whole = max(heading, *map(heading_width, texts), 0)
    return Needs(whole, max(heading, min(whole, max(_SHORTEST, uncut))) if may_be_cut else whole)


def fit_widths(columns: Sequence[Needs], place: int) -> list[int]:
    """The width of each column: what it needs while there is room for all; else the widest that can be cut give way,
    each to the same width. More than the place, if none can give way any more."""

    def widths(widest: int) -> list[int]:
        return [min(column.whole, max(column.least, widest)) for column in columns]

    most = max((column.whole for column in columns), default=0)
    return widths(max(0, bisect_right(range(most + 1), place, key=lambda widest: sum(widths(widest))) - 1))


def longest(cells: pl.Series, number_format: str | None) -> list[str]:
    """The longest cells as they are shown: of numbers the lowest and highest, in C's `printf` format or `localized`;
    all of them where each has digits of its own."""
    if cells.dtype == pl.String:
        position = cells.alias("cells").str.len_chars().arg_max()  # polars takes a name such as `^x$` as a pattern
        return [] if position is None else [cells[position]]
    if number_format == ALL_DIGITS:
        return [f"{cell:.15g}" for cell in cells.drop_nulls()]
    ends = [end for end in (cells.min(), cells.max()) if isinstance(end, int | float)]
    if number_format is None:
        return [str(end) for end in ends]
    return [f"{end:,}" if number_format == "localized" else number_format % end for end in ends]
