"""Conditions whose outcome depends on a time zone: lakeview takes UTC, and other engines that of a session."""

from collections.abc import Container

from sqlglot import exp

from lakeview.model.data_types import PrimitiveType
from lakeview.model.schema import Schema
from lakeview.predicates.condition import parse_condition
from lakeview.predicates.forms import has_offset
from lakeview.predicates.names import column_types

_COMPARISONS = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In, exp.Is,
)  # fmt: skip
_WITH_ZONE = (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ)


def zone_dependent_part(text: str, schema: Schema) -> str | None:
    """Returns a part of a condition in polars' SQL that depends on a time zone; None if there is none.

    Timestamps with a zone are compared alike everywhere, with each other and with constants that have an offset. All
    else that is made of them or makes them is taken for dependent. InvalidRequestError for a column that is not there.
    """
    tree = parse_condition(text)
    types = column_types(tree, schema, text)
    columns = {number for number, type_ in types.items() if type_ == PrimitiveType("timestamp")}
    return next((str(node.sql(dialect="duckdb")) for node in tree.walk() if _depends(node, columns)), None)


def _depends(node: exp.Expr, columns: Container[int]) -> bool:
    if isinstance(node, exp.Cast) and node.to.this in _WITH_ZONE and not has_offset(node):
        return True
    operands = [] if isinstance(node, exp.Paren) else [each.unnest() for each in node.iter_expressions()]
    others = [each for each in operands if id(each) not in columns and not has_offset(each)]
    compares = isinstance(node, _COMPARISONS) and all(isinstance(each, exp.Null) for each in others)
    return len(others) < len(operands) and not compares
