"""Conditions and queries in SQL: text to a checked syntax tree, and the tree to polars or another dialect.

The only home of sqlglot for conditions. polars' own SQL reader resolves table functions while it parses
(`read_csv('/etc/passwd')`), so it never sees a text that was not printed from a checked tree.
"""

from __future__ import annotations

import polars as pl


def predicate(where: str | pl.Expr) -> pl.Expr:
    """Returns a filter as a polars expression; an expression is returned as it is.

    InvalidRequestError if the text is no SQL condition, or holds what `lakeview.predicates.condition` does not allow.
    """
    if isinstance(where, pl.Expr):
        return where
    # reading a table loads no SQL parser until a condition is given as text
    from lakeview.predicates.condition import to_expression

    return to_expression(where)
