"""A checked syntax tree and a schema to the same tree with the schema's own names, dates for texts of dates, and 64
bits where Spark computes with them.

polars takes a fraction for the nearest 32-bit float where it meets a column of them, and 0.1 is that of such a column;
to Spark, whose fractions are decimals, it is none."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlglot import exp
from sqlglot.expressions import DType

from lakeview.model.data_types import DataType, Field, PrimitiveType, StructType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import choices
from lakeview.model.schema import Schema, find_field
from lakeview.predicates.integers import cast_in_place, without_overflow
from lakeview.predicates.spark_types import check_types

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_UNQUOTED_DATE = re.compile(r"(\d{4}) - (\d\d?) - (\d\d?)")
_POINTS_IN_TIME = {
    "date": "DATE '{}'",
    "timestamp": "TIMESTAMP '{} {}+00:00'",
    "timestamp_ntz": "TIMESTAMP '{} {}'",
}
"""Types to a constant of each, with the places of its day and time."""
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?))?")


def resolve(
    tree: exp.Expr, schema: Schema, subject: str, *, as_spark: bool = False, casts_texts: bool = False
) -> exp.Expr:
    """Returns the tree with columns spelt as the schema spells them: Spark looks names up without regard to case.

    A text that is compared with a column of dates is that date, and arithmetic over integers does not wrap around.
    `as_spark`: 32-bit floats meet fractions as doubles, and what Spark evaluates in another way is refused.
    `casts_texts`: rows are filtered by an engine that makes a timestamp of a text that is compared with one.
    InvalidRequestError (kind unknown-column) for a column that the schema does not have, and (kind bad-predicate) for a
    date that is compared with a number, or a timestamp with a number or a text; `subject` names the expression in both.
    """
    types: dict[int, DataType] = {}
    for node in [n for n in tree.walk() if _is_column(n)]:
        parts: list[exp.Identifier] = node.parts  # type: ignore[attr-defined]  # columns and dots have them
        names = [part.name for part in parts]
        is_quoted = not as_spark and parts[0].args.get("quoted", False)
        spelt, type_ = _find(schema.fields, names, subject, may_be_text=is_quoted and len(names) == 1)
        types[id(node)] = type_
        for part, name in zip(parts, spelt, strict=True):
            if part.name != name:
                part.replace(exp.to_identifier(name, quoted=True))
    for column, value in _comparisons(tree):
        _date(column, value, types)
        if not as_spark:
            _refuse_other_types(column, value, types, subject, casts_texts=casts_texts)
    return without_overflow(with_doubles(check_types(tree, types), types) if as_spark else tree, types)


def _comparisons(tree: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """What is compared with what, from either side."""
    for node in list(tree.walk()):
        if isinstance(node, _COMPARISONS):
            yield node.left, node.right
            yield node.right, node.left
        elif isinstance(node, exp.Between):
            yield node.this, node.args["low"]
            yield node.this, node.args["high"]
        elif isinstance(node, exp.In):
            yield from ((node.this, value) for value in node.expressions)


def column_types(tree: exp.Expr, schema: Schema, subject: str) -> dict[int, DataType]:
    """Returns the types of the nodes of columns and of their fields, by `id` of the node. Raises as `resolve`."""
    columns: list[Any] = [node for node in tree.walk() if _is_column(node)]
    return {id(node): _find(schema.fields, [part.name for part in node.parts], subject)[1] for node in columns}


def _is_column(node: exp.Expr) -> bool:
    """A column, or a field of one; the parts of a longer path belong to it and are none of their own."""
    return isinstance(node, exp.Column | exp.Dot) and not isinstance(node.parent, exp.Dot)


def _find(
    fields: Sequence[Field], names: Sequence[str], subject: str, *, may_be_text: bool = False
) -> tuple[list[str], DataType]:
    spelt: list[str] = []
    type_: DataType = PrimitiveType("void")
    for name in names:
        field = find_field(fields, name)
        if field is None:
            others = [f.name for f in fields]
            fix = choices(name, others) if others or not spelt else "it is no struct: leave the field out"
            raise InvalidRequestError(
                f"there is no column {'.'.join(names)}, which {subject} names",
                fix=f"write text in single quotes, {_text(name)}, or {fix}" if may_be_text else fix,
                place="where",
                kind="unknown-column",
            )
        spelt.append(field.name)
        type_ = field.type
        fields = type_.fields if isinstance(type_, StructType) else ()
    return spelt, type_


def _text(name: str) -> str:
    return str(exp.Literal.string(name).sql(dialect="duckdb"))


def _date(column: exp.Expr, value: exp.Expr, types: Mapping[int, DataType]) -> None:
    is_date = types.get(id(column.unnest())) == PrimitiveType("date")
    if is_date and isinstance(value, exp.Literal) and value.is_string and _DATE.fullmatch(value.name):
        value.replace(exp.cast(value.copy(), "date"))


def _refuse_other_types(
    column: exp.Expr, value: exp.Expr, types: Mapping[int, DataType], subject: str, *, casts_texts: bool
) -> None:
    """Raises InvalidRequestError for a date or timestamp that is compared with a number, and for a timestamp compared
    with a text, with what to write. polars takes a number for days or microseconds since 1970, and 2026-11-20 without
    quotes is 1995; of a text nothing says which time zone it is in."""
    type_ = types.get(id(column.unnest()))
    example = _POINTS_IN_TIME.get(type_.name) if isinstance(type_, PrimitiveType) else None
    is_text = not casts_texts and isinstance(value, exp.Literal) and value.is_string and type_ != PrimitiveType("date")
    if example is None or not (is_text or _is_number(value)):
        return
    name, other = column.unnest().sql(dialect="duckdb"), "text" if is_text else "number"
    raise InvalidRequestError(
        f"{name} is a {type_}, and is compared with a {other} in {subject}",
        fix=f"write {example.format(*_day_and_time(value))}",
        place="where",
        kind="bad-predicate",
    )


def _day_and_time(value: exp.Expr) -> tuple[str, str]:
    """The day and time that are meant by a text, or by a date without quotes; examples for anything else."""
    if isinstance(value, exp.Literal) and (text := _MOMENT.fullmatch(value.name)):
        return text[1], text[2] or "00:00:00"
    digits = _UNQUOTED_DATE.fullmatch(value.sql(dialect="duckdb"))
    return "-".join(part.zfill(2) for part in digits.groups()) if digits else "2026-07-15", "00:00:00"


def _is_number(value: exp.Expr) -> bool:
    if isinstance(value, exp.Paren | exp.Neg):
        return _is_number(value.this)
    if isinstance(value, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.IntDiv):
        return _is_number(value.left) and _is_number(value.right)
    return isinstance(value, exp.Literal) and not value.is_string


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
