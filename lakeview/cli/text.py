"""Frames and values to plain text that fits a terminal, and to JSON.

What a table says of itself is not to be trusted: a name may hold escape sequences that move the cursor, colour the
screen or turn the text around. Everything that is not printable is shown as what it is, never sent.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from lakeview.model.printable import printable, shorten_apart, with_json_keys

if TYPE_CHECKING:
    import polars as pl

GAP = "  "
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_LEAST = 8
"""A column is never made narrower than this: on a narrower terminal lines are wrapped."""


def width() -> int | None:
    """The columns of the terminal; None where there is none, so that nothing is cut."""
    if os.environ.get("COLUMNS", "").isdecimal() or sys.stdout.isatty():
        return max(shutil.get_terminal_size((100, 24)).columns, 20)
    return None


def duration(text: str, units: str, examples: str) -> timedelta:
    """A duration as it is typed, `7d`, in one of these units; click.BadParameter with the examples for other text."""
    match = re.fullmatch(rf"(\d{{1,6}})([{units}])", text)
    if match is None:
        raise click.BadParameter(f"give it as {examples}")
    return timedelta(seconds=int(match[1]) * _SECONDS[match[2]])


def cell(value: object) -> str:
    """One value in a few words: numbers grouped, moments in UTC, nothing for null."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S}"
        case list() | dict():
            return printable(json.dumps(with_json_keys(value, plain), default=plain, ensure_ascii=False))
    return printable(str(value))


@dataclass(frozen=True, slots=True)
class _Column:
    """A column as it is printed: its cells, the head among them; numbers are on the `right`; `may_be_cut`: texts, for
    numbers and moments say something else when cut; `is_time`: the cells are moments."""

    cells: list[str]
    right: bool
    may_be_cut: bool
    is_time: bool

    @property
    def width(self) -> int:
        """The columns of a terminal that its widest cell takes."""
        return max(map(_wide, self.cells))

    def without_seconds(self) -> _Column:
        """The same without seconds, where all its moments are whole minutes."""
        head, *cells = self.cells
        if not self.is_time or not all(c.endswith(":00") for c in cells if c):
            return self
        return replace(self, cells=[head, *(c.removesuffix(":00") for c in cells)])


def table(frame: pl.DataFrame, *, limit: int | None = None, is_data: bool = False) -> Iterable[str]:
    """The lines of a frame: a head, then a row each; numbers to the right. Where they do not fit `limit`, columns
    without a value and seconds of whole minutes are left out first, then the widest texts cut.

    `is_data`: of rows of a table, whose columns and whole numbers are shown as they are written. Where they do not fit
    with texts cut, each row is a block of lines, one a column, with the whole of its value.
    """
    columns = [_column(values, is_data) for values in frame.get_columns()]
    if limit is not None and not is_data and _total([c.width for c in columns]) > limit:
        columns = _shorten_columns(columns)
    least = _least_widths(columns)
    if is_data and limit is not None and _total(least) > limit:
        yield from _blocks(columns, limit)
        return
    widths = _fitting([c.width for c in columns], least, limit)
    cells = [c.cells if c.width <= w else shorten_apart(c.cells, w, _cut) for c, w in zip(columns, widths, strict=True)]
    for line in zip(*cells, strict=True):
        texts = zip(line, columns, widths, strict=True)
        yield GAP.join(_pad(text, w, right=c.right) for text, c, w in texts).rstrip()


def _least_widths(columns: Sequence[_Column]) -> list[int]:
    """How narrow each column may be made: texts down to their heads, and to _LEAST."""
    return [min(c.width, max(_LEAST, _wide(c.cells[0]))) if c.may_be_cut else c.width for c in columns]


def _blocks(columns: Sequence[_Column], limit: int) -> Iterable[str]:
    """`row 1`, then a line a column: its name, and its value wrapped beside it; one row below the other."""
    heads = [column.cells[0] for column in columns]
    longest = max(map(_wide, heads))
    for number, row in enumerate(zip(*(column.cells[1:] for column in columns), strict=True), 1):
        yield f"row {number}"
        for head, text in zip(heads, row, strict=True):
            yield from (line.rstrip() for line in hanging(_pad(head, longest, right=False) + GAP, text, limit))


def full_width(frame: pl.DataFrame) -> int:
    """The columns of a terminal that the lines of a frame take where no text is cut."""
    return _total(
        [c.width for c in _shorten_columns([_column(values, is_data=False) for values in frame.get_columns()])]
    )


def _shorten_columns(columns: list[_Column]) -> list[_Column]:
    return [c.without_seconds() for c in columns if any(c.cells[1:])] or columns


def _column(values: pl.Series, is_data: bool) -> _Column:
    import polars as pl

    cells = [cell(value) for value in values.to_list()]
    head, right = printable(values.name), values.dtype.is_numeric()
    if right and (is_data or values.name in ("version", "id")):  # they are names, not amounts
        cells = [text.replace(",", "") for text in cells]
    if not is_data:
        head = head.replace("_", " ")
    return _Column([head, *cells], right, values.dtype == pl.String(), isinstance(values.dtype, pl.Datetime))


def pairs(facts: Mapping[str, object], *, limit: int | None = None) -> Iterable[str]:
    """`name  value` lines, the values in one column and wrapped to fit."""
    longest = max(len(name) for name in facts)
    for name, value in facts.items():
        yield from hanging(name.ljust(longest) + GAP, cell(value) or "unknown", limit)


def hanging(head: str, text: str, limit: int | None = None) -> Iterable[str]:
    """A head and its text, later lines of the text below its first."""
    if limit is None or _wide(head) + _LEAST > limit:
        yield head + text
        return
    lines = textwrap.wrap(text, limit - _wide(head), break_on_hyphens=False) or [""]
    yield head + lines[0]
    yield from (" " * _wide(head) + line for line in lines[1:])


def _total(widths: Sequence[int]) -> int:
    """The columns of a terminal that columns of these widths take, with the gaps between."""
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _fitting(widths: list[int], least: Sequence[int], limit: int | None) -> list[int]:
    """Widths whose sum and gaps stay within the limit, taken from the widest columns first."""
    widths = list(widths)
    if limit is None:
        return widths
    surplus = _total(widths) - limit
    while surplus > 0:
        room = [w - narrow for w, narrow in zip(widths, least, strict=True)]
        widest = max(range(len(widths)), key=lambda i: (room[i] > 0, widths[i]))
        if room[widest] <= 0:
            break
        step = min(surplus, room[widest], max(1, widths[widest] // 8))
        widths[widest] -= step
        surplus -= step
    return widths


def _cut(text: str, wide: int) -> str:
    if _wide(text) <= wide:
        return text
    head = ""
    for c in text:
        if _wide(head + c) > wide - 1:
            break
        head += c
    return head + "…"


def _pad(text: str, wide: int, *, right: bool) -> str:
    blanks = " " * (wide - _wide(text))
    return blanks + text if right else text + blanks


def _wide(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def as_json(value: object) -> str:
    """JSON, one document: moments as ISO 8601, exact decimals as text; only ASCII, so that nothing hides in it."""
    return json.dumps(with_json_keys(value, plain), default=plain, indent=2).replace("\x7f", "\\u007f")


def plain(value: object) -> Any:
    """A value that JSON does not know as one that it does."""
    match value:
        case datetime() | date():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal():
            return str(value)
        case bytes():
            return value.hex()
    return str(value)


def echo_lines(lines: Iterable[str]) -> None:
    """Print lines."""
    for line in lines:
        click.echo(line)


def echo_sentence(sentence: str, head: str = "") -> None:
    """Print an answer in words, wrapped to the terminal, behind its head."""
    echo_lines(hanging(head, printable(sentence), width()))


def echo_frame(frame: pl.DataFrame, machine: bool, nothing: str, *, is_data: bool = False) -> None:
    """Print a frame, or `nothing` where it has no rows. `is_data`: it holds rows of a table."""
    if machine:
        click.echo(as_json(frame.to_dicts()))
    elif frame.is_empty():
        click.echo(nothing)
    else:
        echo_lines(table(frame, limit=width(), is_data=is_data))
