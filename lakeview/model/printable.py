"""Text of unknown origin to text that is safe to show: in a terminal, a log, a page."""

from __future__ import annotations


def printable(text: str) -> str:
    """Text with every character that is not printable written as its escape: `\\x1b`, `\\u202e`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)
