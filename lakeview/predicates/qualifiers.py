"""The names that columns of two sides go by in SQL text, and the same text with other names for them."""

from collections.abc import Callable, Collection, Mapping

from sqlglot import exp

from lakeview.predicates.condition import parse_condition
from lakeview.predicates.syntax import DIALECTS


def qualifiers(text: str, columns: Collection[str]) -> list[str]:
    """What stands before a point and is no column, in lower case, each once, in order of appearance.

    `columns`: names of columns, of which a field may be asked. InvalidRequestError for text that cannot be read.
    """
    own = {name.casefold() for name in columns}
    firsts = [column.parts[0].name.casefold() for column in _columns_of_parts(parse_condition(text))]
    return [name for name in dict.fromkeys(firsts) if name not in own]


def with_qualifiers(text: str, names: Mapping[str, str], is_field: Callable[[str, str], bool]) -> str:
    """SQL text in which the qualifiers of columns are replaced: `names` says by what, in lower case.

    `is_field`: whether the first two parts of a name, in lower case, are a column and a field of it, which stay.
    InvalidRequestError for text that cannot be read.
    """
    tree = parse_condition(text)
    for column in _columns_of_parts(tree):
        first, second = (part.name.casefold() for part in column.parts[:2])
        if first in names and not is_field(first, second):
            column.parts[0].set("this", names[first])
            column.parts[0].set("quoted", True)
    return tree.sql(dialect=DIALECTS["polars"])


def qualify(text: str, qualifier: str) -> str:
    """SQL text in which each column, or field of one, is of the side that a qualifier names.

    InvalidRequestError for text that cannot be read.
    """
    dialect = DIALECTS["polars"]

    def of_side(node: exp.Expr) -> exp.Expr:
        return parse_condition(f'"{qualifier}".{node.sql(dialect=dialect)}') if isinstance(node, exp.Column) else node

    return parse_condition(text).transform(of_side).sql(dialect=dialect)


def _columns_of_parts(tree: exp.Expr) -> list[exp.Column]:
    """The columns that are written with a point."""
    return [column for column in tree.find_all(exp.Column) if len(column.parts) > 1]
