"""Values inside a partition's text, `month=3/path=a%2Fb`: a slash stands between keys and in no value.

Folders of Hive escape a slash likewise. `%` itself stays as it is, but in front of `2F` and `25`.
"""

from __future__ import annotations

import polars as pl

SLASH, PERCENT = "%2F", "%25(2F|25)"
"""Regular expressions, of polars and of a browser, of an escaped slash, and of an escaped percent sign, whose group is
what follows it."""


def escape(values: pl.Expr) -> pl.Expr:
    """Values as they stand in a partition's text: no two share one."""
    return values.str.replace_all("%(2F|25)", "%25$1").str.replace_all("/", SLASH, literal=True)


def unescape(texts: pl.Expr) -> pl.Expr:
    """The values that `escape` made these of."""
    return texts.str.replace_all(SLASH, "/", literal=True).str.replace_all(PERCENT, "%$1")
