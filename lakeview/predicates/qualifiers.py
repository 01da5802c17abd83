"""The names that columns of two sides go by in SQL text, to other names."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from lakeview.predicates.condition import parse_condition
from lakeview.predicates.syntax import DIALECTS


def with_qualifiers(text: str, names: Mapping[str, str], other: str, columns: Collection[str]) -> str:
    """SQL text in which a column's qualifier is replaced by what `names` says, any further one by `other`.

    A first part that is among `columns` is a column, of which a field is asked. InvalidRequestError for what cannot be
    read.
    """
    tree = parse_condition(text)
    known = {name.casefold() for name in columns}
    of = {name.casefold(): value for name, value in names.items()}
    for column in list(tree.find_all(exp.Column)):
        parts = column.parts
        if len(parts) < 2 or parts[0].name.casefold() in known - of.keys():
            continue
        first = of.get(parts[0].name.casefold(), other)
        parts[0].set("this", first)
        parts[0].set("quoted", True)
    return tree.sql(dialect=DIALECTS["polars"])
