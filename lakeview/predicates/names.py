"""A checked syntax tree and a schema to the same tree with the schema's own names, and dates for texts of dates."""

import re
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from lakeview.model.data_types import DataType, Field, PrimitiveType, StructType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import choices
from lakeview.model.schema import Schema, find_field
from lakeview.predicates.floats import with_doubles
from lakeview.predicates.integers import without_overflow
from lakeview.predicates.spark_types import check_types

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def resolve(tree: exp.Expr, schema: Schema, subject: str, *, as_spark: bool = False) -> exp.Expr:
    """Returns the tree with columns spelt as the schema spells them: Spark looks names up without regard to case.

    A text that is compared with a column of dates is that date, and arithmetic over integers does not wrap around.
    `as_spark`: 32-bit floats meet fractions as doubles, and what Spark evaluates in another way is refused.
    InvalidRequestError (kind unknown-column) for a column that the schema does not have; `subject` names the expression
    in it.
    """
    types: dict[int, DataType] = {}
    for node in [n for n in tree.walk() if _is_column(n)]:
        names = [part.name for part in node.parts]  # type: ignore[attr-defined]  # columns and dots have them
        spelt, type_ = _find(schema.fields, names, subject)
        types[id(node)] = type_
        for part, name in zip(node.parts, spelt, strict=True):  # type: ignore[attr-defined]  # as above
            if part.name != name:
                part.replace(exp.to_identifier(name, quoted=True))
    for node in list(tree.walk()):
        if isinstance(node, _COMPARISONS):
            _date(node.left, node.right, types)
            _date(node.right, node.left, types)
        elif isinstance(node, exp.Between):
            _date(node.this, node.args["low"], types)
            _date(node.this, node.args["high"], types)
        elif isinstance(node, exp.In):
            for value in node.expressions:
                _date(node.this, value, types)
    return without_overflow(with_doubles(check_types(tree, types), types) if as_spark else tree, types)


def column_types(tree: exp.Expr, schema: Schema, subject: str) -> dict[int, DataType]:
    """Returns the types of the nodes of columns and of their fields, by `id` of the node. Raises as `resolve`."""
    columns: list[Any] = [node for node in tree.walk() if _is_column(node)]
    return {id(node): _find(schema.fields, [part.name for part in node.parts], subject)[1] for node in columns}


def _is_column(node: exp.Expr) -> bool:
    """A column, or a field of one; the parts of a longer path belong to it and are none of their own."""
    return isinstance(node, exp.Column | exp.Dot) and not isinstance(node.parent, exp.Dot)


def _find(fields: Sequence[Field], names: Sequence[str], subject: str) -> tuple[list[str], DataType]:
    spelt: list[str] = []
    type_: DataType = PrimitiveType("void")
    for name in names:
        field = find_field(fields, name)
        if field is None:
            others = [f.name for f in fields]
            raise InvalidRequestError(
                f"there is no column {'.'.join(names)}, which {subject} names",
                fix=choices(name, others) if others or not spelt else "it is no struct: leave the field out",
                place="where",
                kind="unknown-column",
            )
        spelt.append(field.name)
        type_ = field.type
        fields = type_.fields if isinstance(type_, StructType) else ()
    return spelt, type_


def _date(column: exp.Expr, value: exp.Expr, types: dict[int, DataType]) -> None:
    while isinstance(column, exp.Paren):
        column = column.this
    is_date = types.get(id(column)) == PrimitiveType("date")
    if is_date and isinstance(value, exp.Literal) and value.is_string and _DATE.fullmatch(value.name):
        value.replace(exp.cast(value.copy(), "date"))
