"""The condition of a join, in SQL, to the columns that have to be equal, and the rest."""

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl
from sqlglot import exp

from lakeview.model.schema import Schema
from lakeview.predicates.condition import parse_condition, print_expression
from lakeview.predicates.names import resolve
from lakeview.predicates.syntax import chain_terms


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
