"""Text of unknown origin to text that is safe and short enough to show: in a terminal, a log, a page."""

from __future__ import annotations

import polars as pl

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def shorten(text: str, length: int) -> str:
    """A text in at most `length` characters, the last one an ellipsis where the text is longer."""
    return text if len(text) <= length else text[: length - 1] + ELLIPSIS


def shorten_column(text: pl.Expr, length: int) -> pl.Expr:
    """A column of texts, each as `shorten` gives it."""
    return pl.when(text.str.len_chars() > length).then(text.str.head(length - 1) + ELLIPSIS).otherwise(text)


def printable(text: str) -> str:
    """Text with every character that is not printable written as its escape: `\\x1b`, `\\u202e`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)
