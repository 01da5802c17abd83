"""The condition of a join, in SQL, to the columns that have to be equal, and the rest; the names that columns of two
sides go by, and the same text with other names for them."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import polars as pl
from sqlglot import exp

from lakeview.model.schema import Schema
from lakeview.predicates.condition import parse_condition, print_expression
from lakeview.predicates.names import resolve
from lakeview.predicates.syntax import DIALECTS, chain_terms


@dataclass(frozen=True, slots=True)
class JoinCondition:
    """`keys`: pairs of columns, of the left and of the right side, that are equal; `rest`: what else has to be true,
    None if nothing; `left_only`: what of the rest names columns of the left side alone, by their own names."""

    keys: tuple[tuple[str, str], ...]
    rest: pl.Expr | None
    left_only: pl.Expr | None


def join_condition(text: str, sides: Schema) -> JoinCondition:
    """Returns the condition over a schema of two structs, the left side and the right one.

    InvalidRequestError as in `row_expression`: a column goes by its side, as in `target.id = source.id`.
    """
    left, right = sides.names
    tree = resolve(parse_condition(text), sides, repr(text))
    keys: list[tuple[str, str]] = []
    rest: list[exp.Expr] = []
    for term in list(chain_terms(tree)) if isinstance(tree, exp.And) else [tree]:
        pair = _key(term, left, right)
        if pair is None:
            rest.append(term)
        else:
            keys.append(pair)
    return JoinCondition(
        tuple(keys),
        print_expression(_conjunction(rest), text) if rest else None,
        _of_left(rest, left, text),
    )


def _key(term: exp.Expr, left: str, right: str) -> tuple[str, str] | None:
    """The columns of `left.a = right.b`, in either order."""
    while isinstance(term, exp.Paren):
        term = term.this
    if not isinstance(term, exp.EQ):
        return None
    sides = {}
    for operand in (term.left, term.right):
        if not isinstance(operand, exp.Column) or len(operand.parts) != 2:
            return None
        sides[operand.parts[0].name] = operand.parts[1].name
    return (sides[left], sides[right]) if sides.keys() == {left, right} else None


def _of_left(terms: Iterable[exp.Expr], left: str, text: str) -> pl.Expr | None:
    conditions = []
    for term in terms:
        columns = list(term.find_all(exp.Column))
        if columns and all(c.parts[0].name == left and len(c.parts) == 2 for c in columns):
            own = term.copy()
            for column in list(own.find_all(exp.Column)):
                column.replace(exp.column(exp.to_identifier(column.parts[-1].name, quoted=True)))
            conditions.append(own)
    return print_expression(_conjunction(conditions), text) if conditions else None


def _conjunction(terms: list[exp.Expr]) -> exp.Expr:
    return exp.and_(*terms) if len(terms) > 1 else terms[0]


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
