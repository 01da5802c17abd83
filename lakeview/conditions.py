"""SQL text of a condition to a polars expression, or a refusal where reading it could take the process down.

The text comes from links and forms, and it is read, and its constants are worked out, in the process that serves
everybody. Three things end that process: parts nested thousands deep (the stack), parts that polars writes out several
times inside each other (`a BETWEEN 1 AND 2 BETWEEN 3 AND 4 ...`), and constants that grow (`LPAD('x', 10000000000)`).
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any

import polars as pl

from lakeview.errors import InvalidRequestError

KIND = "bad-predicate"

_MOST_OPERATORS, _MOST_CALLED = 2_000, 500
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_UNCLEAR = re.compile(r"--|/\*|\$|\b[eE]'|\b[uU]&'")
"""What hides a quote from who looks for quotes: comments, dollars as quotes, texts with escapes."""

_CALLED = re.compile(
    r"\b(?:in|between|i?like|rlike|regexp|similar|overlaps|at|div|xor|is|collate)\b|%|~", re.IGNORECASE
)
"""Operators that polars makes functions of, which take more of the stack."""

_OPERATOR = re.compile(
    rf"\b(?:and|or|not|case|when|isnull|notnull|any|all|some|member|operator)\b|{_CALLED.pattern}"
    r"|(?<![(,\s])\s*(?:[-+*/|&^<>=!:@?#]+|\.(?=\D)|\[)",
    re.IGNORECASE,
)
"""What makes a condition deeper. The sign of a number in a list does not."""

_GROWTH, _ALLOWANCE = 200, 1 << 20
"""Bytes of an expression as JSON for each character of its text, and beside them: 40 is the usual most."""

_CONSTANT_TEXTS = frozenset(
    {
        "Contains", "EndsWith", "LenBytes", "LenChars", "Lowercase", "Slice", "StartsWith", "StripChars",
        "StripCharsEnd", "StripCharsStart", "Strptime", "Uppercase",
    }
)  # fmt: skip
_CONSTANT_FUNCTIONS = frozenset(
    {
        "Abs", "Boolean", "Ceil", "Coalesce", "Floor", "MaxHorizontal", "MinHorizontal", "Negate", "Pow", "Round",
        "Sign", "Sql", "StructExpr", "TemporalExpr",
    }
)  # fmt: skip
"""Functions of constants alone that give no more than they are given."""

_FUNCTION = re.compile(r'"function":(?:"(\w+)"|\{"(\w+)":(?:"(\w+)"|\{"(\w+)")?)')


def predicate(where: str | pl.Expr) -> pl.Expr:
    """A filter as a polars expression; one that is an expression already is returned as it is.

    InvalidRequestError if the text is no SQL condition, or one of endless parts or of constants that may grow.
    """
    if isinstance(where, pl.Expr):
        return where
    _check_text(where)
    try:
        found = pl.sql_expr(where)
        written = _written(found, _ALLOWANCE + _GROWTH * len(where))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        said = str(error).splitlines()
        raise _refused(
            f"{where!r} is no condition: {said[0] if said else type(error).__name__}",
            "write a SQL condition such as month = 3 AND carrier IN ('AA', 'UA')",
        ) from error
    _check_constants(written)
    return found


def _check_text(where: str) -> None:
    bare = _QUOTED.sub("''", where)
    if (unclear := _UNCLEAR.search(bare)) is not None:
        raise _refused(
            f"{unclear[0]} is no part of a condition here", "write it without comments, and texts as 'text' or ''''"
        )
    # each operator of a chain nests the next one deeper: six thousand of them end the whole process, or 1,200 IN
    for kind, pattern, most in (("", _OPERATOR, _MOST_OPERATORS), (" like IN and LIKE", _CALLED, _MOST_CALLED)):
        if (parts := len(pattern.findall(bare))) > most:
            raise _refused(
                f"the condition has {parts:,} operators{kind}, more than the {most:,} that can be asked for",
                "write column IN (...) for many values",
            )


def _written(where: pl.Expr, most: int) -> str:
    """The expression as JSON; what is longer than that many bytes is not written to its end."""
    page = _Page(most)
    try:
        where.meta.serialize(page, format="json")
    except (pl.exceptions.PolarsError, OSError):
        if not page.full:
            raise
        raise _refused("the condition repeats itself inside itself", "compare each column once") from None
    return page.taken.decode()


class _Page(io.RawIOBase):
    """Takes so many bytes and no more. No BytesIO: polars would fill one of its own first, whatever it takes."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most, self.taken, self.full = most, bytearray(), False

    def write(self, data: Any) -> int:
        self.full = len(self.taken) + len(data) > self.most
        if self.full:
            raise OSError("the page is full")
        self.taken += data
        return len(data)


def _check_constants(written: str) -> None:
    """Refuses functions of constants that may grow: a condition's constants are worked out before any row is read."""
    if '"Selector":' in written:
        raise _refused("a star, a query and a name from ^ to $ stand for more than one column", "name one column")
    if all(_harmless(*found) for found in _FUNCTION.findall(written)):
        return
    try:
        for name in _growing(json.loads(written)):
            raise _refused(f"{name} of constants is not worked out in a condition", "write the value itself")
    except RecursionError:
        raise _refused("the condition is nested too deep", "write it flatter, or column IN (...)") from None


def _harmless(alone: str, outer: str, *inner: str) -> bool:
    name = alone or outer
    return name in _CONSTANT_FUNCTIONS or (name == "StringExpr" and any(word in _CONSTANT_TEXTS for word in inner))


def _growing(tree: Any) -> Iterator[str]:
    """Functions below that no column stands in and that may give more than they are given."""
    if isinstance(tree, list):
        for part in tree:
            yield from _growing(part)
    if not isinstance(tree, dict) or "Literal" in tree:
        return
    for name, part in tree.items():
        if name == "Function" and '"Column":' not in json.dumps(part):
            found = _FUNCTION.search(json.dumps({"function": part["function"]}, separators=(",", ":")))
            if found is None or not _harmless(*found.groups("")):
                yield "a function" if found is None else next(w for w in reversed(found.groups("")) if w)
        yield from _growing(part)


def _refused(message: str, fix: str) -> InvalidRequestError:
    return InvalidRequestError(message, fix=fix, place="where", kind=KIND)
