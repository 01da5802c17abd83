"""A tree over 32-bit floats to one that computes as Spark does: with 64 bits where a fraction or a division is.

polars takes a fraction for the nearest 32-bit float where it meets a column of them, and 0.1 is that of such a column;
to Spark, whose fractions are decimals, it is none.
"""

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.expressions import DType

from lakeview.model.data_types import DataType, PrimitiveType
from lakeview.predicates.integers import cast_in_place

_FLOAT = PrimitiveType("float")
_SAME = (exp.Paren, exp.Neg, exp.Abs)
"""Nodes whose type is that of their only part."""
_COMPUTED = (exp.Add, exp.Sub, exp.Mul, exp.Coalesce, exp.Greatest, exp.Least)
_COMPARED = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In,
)  # fmt: skip


def with_doubles(tree: exp.Expr, columns: Mapping[int, DataType]) -> exp.Expr:
    """Returns the tree with 32-bit floats cast to doubles where they meet fractions, and where they are divided; with
    quotients that are rounded once. The tree is changed in place.

    `columns`: types of the nodes that are columns, by the nodes' ids.
    """
    floats: set[int] = set()
    for node in reversed(list(tree.walk())):  # operands before what is made of them
        parts = [part for part in node.iter_expressions() if id(part) in floats]
        meets_fraction = isinstance(node, _COMPUTED + _COMPARED) and any(map(_is_fraction, node.iter_expressions()))
        if parts and (meets_fraction or isinstance(node, exp.Div)):
            for part in parts:
                cast_in_place(part, DType.DOUBLE)
        elif _is_float(node, columns) or (parts and isinstance(node, _SAME + _COMPUTED)):
            floats.add(id(node))
        if isinstance(node, exp.Div):
            _spread_divisor(node, columns)
    return tree


def _spread_divisor(division: exp.Div, columns: Mapping[int, DataType]) -> None:
    """A divisor that is one number becomes a column of it: polars multiplies by the reciprocal of one number, which
    rounds twice, and 2.5 / 3 is not the double next to it. Nor is a CASE whose branches are that number a column."""
    divisor = division.expression
    column = next((node for node in division.this.walk() if id(node) in columns), None)
    if column is not None and divisor.find(exp.Column) is None:
        is_null = exp.Is(this=column.copy(), expression=exp.Null())
        ones = exp.Cast(this=is_null, to=exp.DataType(this=DType.DOUBLE))
        zeros = exp.Mul(this=ones, expression=exp.Literal.number(0))
        division.set("expression", exp.Add(this=zeros, expression=divisor))


def _is_float(node: exp.Expr, columns: Mapping[int, DataType]) -> bool:
    return columns.get(id(node)) == _FLOAT or (isinstance(node, exp.Cast) and node.to.this == DType.FLOAT)


def _is_fraction(node: exp.Expr) -> bool:
    while isinstance(node, _SAME):
        node = node.this
    return isinstance(node, exp.Literal) and not node.is_string and not node.name.isdecimal()
