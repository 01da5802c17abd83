"""Spark's columns, such as `expr("price * 2")` and `col("k") == "a"`, to the SQL text of lakeview's conditions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from math import isfinite
from typing import Any, TypeAlias

from pyspark.sql import Column

from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import quote_name

Condition: TypeAlias = str | Column
"""SQL text, or what Spark's functions make of columns, literals and operators (`expr`, `col`, `lit`)."""

Values: TypeAlias = Mapping[str, Condition]
"""Column of the table -> its value."""

_SIGNS = frozenset({"=", "<", ">", "<=", ">=", "<=>", "+", "-", "*", "/", "%", "like", "rlike", "and", "or"})
_BEHIND = {"isNull": "IS NULL", "isNotNull": "IS NOT NULL"}
_BEFORE = {"!": "NOT", "negative": "-"}


def sql_text(value: object) -> str:
    """SQL text as it is, and a column of Spark as text: of columns, literals, operators, functions, CASE and CAST.

    InvalidRequestError for anything else, such as a window, and for a column of a Spark Connect session.
    """
    if isinstance(value, str):
        return value
    node = getattr(value, "_jc", None) if isinstance(value, Column) else None
    if node is not None:
        with suppress(ValueError):
            return _text(node.node())
    raise InvalidRequestError(
        f"{value!r} is {type(value).__name__}, and lakeview takes SQL text, or what expr, col and lit of a "
        "classic session make",
        fix="write the expression as text, such as 'price * 2'",
        kind="bad-predicate",
    )


def flat_names(cols: Iterable[str | Sequence[str]]) -> list[str]:
    """The names of columns that are given one by one or as lists."""
    return [name for col in cols for name in ([col] if isinstance(col, str) else col)]


def _text(node: Any) -> str:
    """The text of a node of Spark's (`org.apache.spark.sql.internal.ColumnNode`). ValueError for one that has none."""
    match node.getClass().getSimpleName():
        case "SqlExpression":
            return f"({node.expression()})"
        case "UnresolvedAttribute" if node.planId().isEmpty():  # of a DataFrame, it would be one of the table
            return ".".join(map(quote_name, _items(node.nameParts())))
        case "Literal":
            return _literal(node.value())
        case "Alias":
            return _text(node.child())
        case "Cast":
            return f"CAST({_text(node.child())} AS {node.dataType().simpleString()})"
        case "CaseWhenOtherwise":
            branches = [f"WHEN {_text(branch._1())} THEN {_text(branch._2())}" for branch in _items(node.branches())]
            otherwise = _text(node.otherwise().get()) if node.otherwise().isDefined() else "NULL"
            return f"CASE {' '.join(branches)} ELSE {otherwise} END"
        case "UnresolvedFunction":
            return _call(node.functionName(), [_text(argument) for argument in _items(node.arguments())])
    raise ValueError(node.getClass().getSimpleName())


def _call(name: str, arguments: list[str]) -> str:
    if name in _SIGNS and len(arguments) == 2:
        return f"({arguments[0]} {name.upper()} {arguments[1]})"
    if name in _BEHIND:
        return f"({arguments[0]} {_BEHIND[name]})"
    if name in _BEFORE:
        return f"({_BEFORE[name]} {arguments[0]})"
    if name == "in":
        return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    return f"{name}({', '.join(arguments)})"


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int() | float() | Decimal() if isfinite(value):
            return str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
    raise ValueError(value)


def _items(sequence: Any) -> Iterator[Any]:
    """What a sequence of Scala holds."""
    return (sequence.apply(number) for number in range(sequence.size()))
