"""The names that columns of two sides go by in SQL text, and the same text with other names for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from lakeview.predicates.condition import parse_condition
from lakeview.predicates.syntax import DIALECTS


def qualifiers(text: str, columns: Collection[str]) -> list[str]:
    """What stands before a point and is no column, in lower case, each once, in order of appearance.

    `columns`: names of columns, of which a field may be asked. InvalidRequestError for text that cannot be read.
    """
    own = {name.casefold() for name in columns}
    firsts = [part.name.casefold() for part in _first_parts(parse_condition(text))]
    return [name for name in dict.fromkeys(firsts) if name not in own]


def with_qualifiers(text: str, names: Mapping[str, str]) -> str:
    """SQL text in which the qualifiers of columns are replaced: `names` says by what, in lower case.

    InvalidRequestError for text that cannot be read.
    """
    tree = parse_condition(text)
    for part in _first_parts(tree):
        if part.name.casefold() in names:
            part.set("this", names[part.name.casefold()])
            part.set("quoted", True)
    return tree.sql(dialect=DIALECTS["polars"])


def qualified(text: str, qualifier: str) -> str:
    """SQL text in which each column, or field of one, is of the side that a qualifier names.

    InvalidRequestError for text that cannot be read.
    """
    dialect = DIALECTS["polars"]

    def of_side(node: exp.Expr) -> exp.Expr:
        return parse_condition(f'"{qualifier}".{node.sql(dialect=dialect)}') if isinstance(node, exp.Column) else node

    return parse_condition(text).transform(of_side).sql(dialect=dialect)


def _first_parts(tree: exp.Expr) -> list[exp.Expr]:
    """The first of the parts of each column that has several."""
    return [column.parts[0] for column in tree.find_all(exp.Column) if len(column.parts) > 1]
