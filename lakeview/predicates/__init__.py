"""Conditions and queries in SQL: text to a checked syntax tree, and the tree to polars or another dialect.

The only home of sqlglot for conditions. polars' own SQL reader resolves table functions while it parses
(`read_csv('/etc/passwd')`), so it never sees a text that was not printed from a checked tree.
"""

import polars as pl

from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import shorten
from lakeview.model.schema import Schema


def predicate(where: str | pl.Expr, schema: Schema | None = None, *, casts_texts: bool = False) -> pl.Expr:
    """Returns a filter as a polars expression; an expression is returned as it is.

    InvalidRequestError if the text is no SQL condition, or holds what `lakeview.predicates.condition` does not allow;
    with a schema also for a column that is not in it (kind unknown-column): its columns are found without regard to
    case, a text that is compared with a date is that date, and one that is compared with a timestamp is refused, unless
    an engine that `casts_texts` to timestamps filters the rows.
    """
    if isinstance(where, str):
        # reading a table loads no SQL parser until a condition is given as text
        from lakeview.predicates.condition import row_expression, to_expression

        if schema is not None:
            return row_expression(where, schema, casts_texts=casts_texts)
        where = to_expression(where)
    if not isinstance(where, pl.Expr):
        raise InvalidRequestError(
            f"where is {shorten(repr(where), 80)}, which is neither SQL text nor an expression of polars",
            fix="write SQL, such as month = 3",
            place="where",
            kind="bad-predicate",
        )
    if schema is not None:
        schema.require(where.meta.root_names(), place="where")
    return where
