"""Functions that a condition may call: each node of the syntax tree with its call in polars' SQL."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from sqlglot import exp

from lakeview.predicates.syntax import REFUSAL, node_name

Parts: TypeAlias = Iterable[str | exp.Expr]
"""Texts, and the nodes that stand between them, whose own forms follow."""

Form: TypeAlias = Callable[[exp.Expr], Parts]


def _function(name: str, *keys: str) -> Form:
    """A call with the arguments under these keys, in this order. Others must be absent, but for flags of the parser."""

    def parts(node: exp.Expr) -> Parts:
        for key, value in node.args.items():
            if key not in keys and isinstance(value, exp.Expr | str | list) and value:
                raise REFUSAL(f"{name} takes no {key} here")
        arguments = [a for key in keys for a in _as_list(node.args.get(key))]
        yield f"{name}("
        for i, argument in enumerate(arguments):
            yield ", " if i else ""
            yield argument
        yield ")"

    return parts


def _as_list(value: exp.Expr | list[exp.Expr] | None) -> list[exp.Expr]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _null_for(form: Form, *keys: str) -> Form:
    """A function that is null where an argument under one of these keys is, as in other engines. To polars a null is no
    length, no delimiter, or a text that is not found."""

    def parts(node: exp.Expr) -> Parts:
        conditions: list[str | exp.Expr] = []
        for key in keys:
            argument = node.args.get(key)
            if isinstance(argument, exp.Expr) and not isinstance(argument, exp.Literal):
                conditions += [" AND " if conditions else "(CASE WHEN ", argument, " IS NOT NULL"]
        return (*conditions, " THEN ", *form(node), " END)") if conditions else form(node)

    return parts


def _of_columns(form: Form) -> Form:
    """A function whose result may be far longer than its arguments. Constants are evaluated before any row is read, in
    the process that serves everybody: LPAD('x', 10000000000) would take its memory."""

    def parts(node: exp.Expr) -> Parts:
        if node.find(exp.Column) is None:
            raise REFUSAL(f"{node_name(node)} of constants is not evaluated in a condition", "write the value itself")
        return form(node)

    return parts


def _pad(node: exp.Expr) -> Parts:
    name = "LPAD" if node.args.get("is_left") else "RPAD"
    return _function(name, "this", "expression", "fill_pattern")(node)


def _replace(node: exp.Expr) -> Parts:
    if isinstance(node.expression, exp.Literal) and not node.expression.name:
        return (node.this,)  # to polars an empty text is between all characters: other engines find none
    parts, new = list(_function("REPLACE", "this", "expression", "replacement")(node)), node.args.get("replacement")
    if new is None or isinstance(new, exp.Literal):
        return parts
    return (*parts[:-2], "COALESCE(", new, ", ''))")  # of one row polars refuses a null


def _trim(node: exp.Expr) -> Parts:
    position = str(node.args.get("position") or "BOTH")
    if node.expression is None:
        return f"{_TRIMS[position]}(", node.this, ")"
    if position == "BOTH":
        return "TRIM(BOTH ", node.expression, " FROM ", node.this, ")"
    return f"{_TRIMS[position]}(", node.this, ", ", node.expression, ")"


_TRIMS = {"LEADING": "LTRIM", "TRAILING": "RTRIM", "BOTH": "TRIM"}


_FIELDS = frozenset(
    {
        "YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "QUARTER", "WEEK", "DOW", "DOY", "ISODOW", "ISOYEAR",
        "MILLISECOND", "MICROSECOND", "EPOCH", "CENTURY", "DECADE",
    }
)  # fmt: skip


def _extract(node: exp.Expr) -> Parts:
    field = node.name.upper()
    if field not in _FIELDS:
        raise REFUSAL(f"EXTRACT knows no {field[:40]}", f"use one of {', '.join(sorted(_FIELDS))}")
    return f"EXTRACT({field} FROM ", node.expression, ")"


def _log(node: exp.Expr) -> Parts:
    if not isinstance(node.this, exp.Literal) or node.name != "10" or node.expression is None:
        raise REFUSAL("LOG with a base of its own is no part of a condition here", "use LN or LOG10")
    return _of_positive("LOG10", node.expression)


def _of_positive(name: str, value: exp.Expr) -> Parts:
    """A logarithm, which is null for zero and below as in Spark: to polars that of zero is minus infinity."""
    return "(CASE WHEN ", value, f" > 0 THEN {name}(", value, ") END)"


def _named_function(node: exp.Expr) -> Parts:
    """Functions that the parser has no class for."""
    arguments = node.expressions
    match node.name.upper(), len(arguments):
        case "OCTET_LENGTH", 1:
            return "OCTET_LENGTH(", arguments[0], ")"
        case "DATE_PART", 2 if isinstance(arguments[0], exp.Literal):
            return _extract(exp.Extract(this=exp.var(arguments[0].name), expression=arguments[1]))
    raise REFUSAL(f"{node.name[:40]} is no function of a condition here")


FUNCTIONS: dict[type[exp.Expr], Form] = {
    **{
        kind: _function(kind.sql_name(), "this")
        for kind in (
            exp.Abs, exp.Sign, exp.Ceil, exp.Floor, exp.Sqrt, exp.Exp, exp.Lower, exp.Upper, exp.Length,
            exp.Reverse, exp.Date, exp.Year, exp.Quarter, exp.Month, exp.Day, exp.Hour, exp.Minute, exp.Second,
        )
    },
    **{
        kind: _function(kind.sql_name(), "this", "expression")
        for kind in (exp.Nullif, exp.Right, exp.StartsWith, exp.EndsWith)
    },
    **{
        kind: _function(kind.sql_name(), "this", "expressions")
        for kind in (exp.Coalesce, exp.Greatest, exp.Least)
    },
    exp.If: _function("IF", "this", "true", "false"),
    exp.Pow: _function("POW", "this", "expression"),
    exp.DayOfMonth: _function("DAY", "this"),
    exp.Round: _function("ROUND", "this", "decimals"),
    exp.Ln: lambda node: _of_positive("LN", node.this),
    exp.Log: _log,
    exp.Left: _null_for(_function("LEFT", "this", "expression"), "expression"),
    exp.Substring: _null_for(_function("SUBSTR", "this", "start", "length"), "length"),
    exp.StrPosition: _null_for(_function("STRPOS", "this", "substr"), "this", "substr"),
    exp.SplitPart: _null_for(_function("SPLIT_PART", "this", "delimiter", "part_index"), "delimiter", "part_index"),
    exp.Trim: _null_for(_trim, "expression"),
    exp.Replace: _of_columns(_null_for(_replace, "replacement")),
    exp.Pad: _of_columns(_pad),
    exp.RegexpLike: _function("REGEXP_LIKE", "this", "expression", "flag"),
    exp.RegexpILike: lambda node: ("REGEXP_LIKE(", node.this, ", ", node.expression, ", 'i')"),
    exp.TsOrDsToDate: lambda node: ("CAST(", node.this, " AS DATE)"),
    exp.Extract: _extract,
    exp.Anonymous: _named_function,
}  # fmt: skip
"""A function's node to its call."""
