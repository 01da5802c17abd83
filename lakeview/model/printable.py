"""Text of unknown origin to text that is safe and short enough to show: in a terminal, a log, a page."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from itertools import takewhile
from unicodedata import category

import polars as pl

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def shorten(text: str, length: int) -> str:
    """A text in at most `length` characters, the last one an ellipsis where the text is longer."""
    return text if len(text) <= length else text[: length - 1] + ELLIPSIS


def shorten_column(text: pl.Expr, length: int) -> pl.Expr:
    """A column of texts, each as `shorten` gives it."""
    return pl.when(text.str.len_chars() > length).then(text.str.head(length - 1) + ELLIPSIS).otherwise(text)


def shorten_apart(texts: Sequence[str], length: int, cut: Callable[[str, int], str] = shorten) -> list[str]:
    """Texts cut to `length`; of those that would then look alike, the middle of their common start is left out:
    `customer_l…_00_after_ad…`. `cut` is `shorten`, or as it."""
    short = {text: cut(text, length) for text in texts}
    alike: dict[str, list[str]] = {}
    for text, cut_text in short.items():
        alike.setdefault(cut_text, []).append(text)
    head = length // 3
    for group in alike.values():
        ends = zip(min(group), max(group), strict=False)  # what the first and the last have in common, all have
        start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends)) - length // 4
        if len(group) > 1 and start > head:
            short |= {text: cut(text[:head] + ELLIPSIS + text[start:], length) for text in group}
    return [short[text] for text in texts]


def choices(name: str, names: Sequence[str]) -> str:
    """What to write in place of a name that is none of these: the names most like it, case aside, else the first ones.

    `perhaps dep_delay or dep_time is meant`, `choose from a, b and 7 more`.
    """
    spellings: dict[str, list[str]] = {}
    for each in names:
        spellings.setdefault(each.casefold(), []).append(each)
    close = get_close_matches(name.casefold(), spellings, n=3, cutoff=0.7)
    near = [each for key in close for each in spellings[key]][:3]
    if near:
        return f"perhaps {' or '.join(near)} is meant"
    if not names:
        return "there are none to choose from"
    return f"choose from {first_few(names, 20)}"


def count_text(number: int, one: str, many: str | None = None) -> str:
    """`1 file`, `3,412 files`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def first_few(texts: Iterable[str], most: int = 3, total: int | None = None) -> str:
    """The first of some texts, and how many are left out: `a, b, c and 12 more`. `total`: where these are not all."""
    texts = list(texts)
    rest = (len(texts) if total is None else total) - min(most, len(texts))
    return ", ".join(texts[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def printable(text: str) -> str:
    """Text with every character that is not printable written as its escape: `\\x1b`, `\\u202e`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def with_json_keys(value: object, text: Callable[[object], str | None]) -> object:
    """Nested lists and dicts with keys that JSON has: those of maps may be of any type. `text`: what a key becomes that
    is no text, number or boolean."""
    match value:
        case dict():
            keys = [key if isinstance(key, str | int | float) else text(key) for key in value]
            return dict(zip(keys, (with_json_keys(item, text) for item in value.values()), strict=True))
        case list():
            return [with_json_keys(item, text) for item in value]
    return value


_SPACES, _LINES = "Zs", "\n\r\t"
_UNSEEN = r"[\p{C}\p{Zl}\p{Zp}]"
"""Matches every character that `visible` escapes, and lines and tabs."""


def visible(text: str) -> str:
    """A text with what cannot be seen in it written as `printable` has it, so that no two names look alike and none is
    turned around; lines, tabs and spaces of every width stay."""
    if text.isprintable():
        return text
    return "".join(c if c in _LINES or c.isprintable() or category(c) == _SPACES else printable(c) for c in text)


def visible_texts(texts: pl.Series) -> pl.Series:
    """A column of texts, each as `visible` gives it."""
    odd = texts.alias("texts").str.contains(_UNSEEN)  # polars takes a name such as `^x$` as a pattern
    if not odd.any():
        return texts
    return pl.Series(texts.name, [None if text is None else visible(text) for text in texts], dtype=pl.String)


def example_text(value: object) -> str:
    """A value of a row as messages show it, near to SQL: null, 'text', 1.50, 2024-01-31, X'00FF', {a: 1}; cut at 80
    characters."""
    return shorten(_example(value), _EXAMPLE_LENGTH)


_EXAMPLE_LENGTH = 80


def _example(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case bytes():
            return f"X'{value[:_EXAMPLE_LENGTH].hex().upper()}'"
        case date() | Decimal():  # a datetime is a date
            return str(value)
        case dict():
            return f"{{{', '.join(f'{name}: {_example(inner)}' for name, inner in value.items())}}}"
        case list():
            return f"[{', '.join(map(_example, value))}]"
        case _:
            return repr(value)
