"""What a condition may hold: each node of the syntax tree with its form in polars' SQL.

`FORMS` lists what is allowed and prints it at once. A form gives texts and the nodes that stand between them, whose own
forms follow. A node with an argument that no form prints is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from sqlglot import exp
from sqlglot.expressions import DType

from lakeview.model.errors import InvalidRequestError
from lakeview.predicates.syntax import Refusal

KIND = "bad-predicate"
EXAMPLE = "write a SQL condition such as month = 3 AND carrier IN ('AA', 'UA')"
REFUSAL = Refusal(KIND, "where", "the condition")

Parts = Iterable[str | exp.Expr]
Form = Callable[[exp.Expr], Parts]

_ARGUMENTS = frozenset(
    {
        "this", "expression", "expressions", "low", "high", "ifs", "default", "true", "false", "to", "unit", "table",
        "db", "catalog", "start", "length", "decimals", "substr", "delimiter", "part_index", "fill_pattern",
        "replacement", "position", "negate", "flag", "is_left", "is_string", "quoted",
    }
)  # fmt: skip
"""Arguments of nodes that some form prints."""

_FLAGS = frozenset({"safe", "coalesce", "ignore_nulls", "typed"})
"""What the parser notes of its dialect; polars' own behaviour holds."""


def check_arguments(node: exp.Expr) -> None:
    """InvalidRequestError for a node with an argument that is not printed, which would change its meaning silently."""
    for key, value in node.args.items():
        if value not in (None, False, []) and key not in _ARGUMENTS and key not in _FLAGS:
            raise refuse(f"{node_name(node)} takes no {key} here")


def check_operands(node: exp.Expr, refusal: Refusal) -> None:
    """InvalidRequestError for a comparison that is an operand of another one without brackets: parsers and engines
    disagree on which comes first in `a = b > c`."""
    if isinstance(node, _COMPARISONS) and any(isinstance(o, _UNBRACKETED) for o in node.iter_expressions()):
        raise refusal(
            "a comparison of a comparison has more than one meaning", "put brackets around the one that comes first"
        )


_COMPARISONS = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between,
    exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike,
)  # fmt: skip
_UNBRACKETED = (*_COMPARISONS, exp.Not)


def node_name(node: exp.Expr) -> str:
    """What a node is called in SQL, for the message that refuses it."""
    if isinstance(node, exp.Anonymous):
        return str(node.name)[:40]
    if isinstance(node, exp.Func):
        return str(node.sql_name())
    return "a subquery" if isinstance(node, exp.Query | exp.Exists) else _NAMES.get(type(node)) or node.key.upper()


_NAMES: dict[type[exp.Expr], str] = {
    exp.Star: "a star",
    exp.Placeholder: "a parameter",
    exp.Window: "a window function",
}


def refuse(what: str, fix: str = EXAMPLE) -> InvalidRequestError:
    """Returns the error for what is not allowed."""
    return REFUSAL(what, fix)


def _column(node: exp.Expr) -> Parts:
    names = [part.name for part in node.parts if isinstance(part, exp.Identifier)]  # type: ignore[attr-defined]
    if len(names) != len(node.parts):  # type: ignore[attr-defined]
        raise refuse("a star or a pattern stands for more than one column", "name one column")
    for name in names:
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise refuse(f"{name} may stand for more than one column", "name one column")
    yield ".".join(f'"{name.replace(chr(34), chr(34) * 2)}"' for name in names)


def _literal(node: exp.Expr) -> Parts:
    if node.is_string:
        yield _text(node.name)
    elif _NUMBER.fullmatch(node.name):
        yield node.name
    else:
        raise refuse(f"{node.name[:40]} is no number")


_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def _text(value: str) -> str:
    return f"'{value.replace(chr(39), chr(39) * 2)}'"


def bytes_form(node: exp.Expr) -> Parts:
    """X'00ff'."""
    if re.fullmatch(r"(?:[0-9a-fA-F]{2})*", node.name) is None:
        raise refuse(f"X'{node.name[:40]}' is no sequence of bytes")
    yield f"X'{node.name}'"


def _binary(sign: str) -> Form:
    def parts(node: exp.Expr) -> Parts:
        return "(", node.this, f" {sign} ", node.expression, ")"

    return parts


def _like(operator: str) -> Form:
    def parts(node: exp.Expr) -> Parts:
        if isinstance(node.expression, exp.All | exp.Any):
            raise refuse(f"{operator} takes one pattern")
        return "(", node.this, f" {'NOT ' if node.args.get('negate') else ''}{operator} ", node.expression, ")"

    return parts


def _negative(node: exp.Expr) -> Parts:
    # polars takes -1 in brackets for an expression, and a list that holds one for a chain of comparisons
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return "-", node.this
    return "(- ", node.this, ")"  # a space: two signs together begin a comment


def _not(node: exp.Expr) -> Parts:
    inner = node.this
    if isinstance(inner, exp.Is):
        return _is(inner, "IS NOT")
    if isinstance(inner, exp.In):
        return _in(inner, "NOT IN")
    if isinstance(inner, exp.Between):
        return _between(inner, "NOT BETWEEN")
    return "(NOT ", inner, ")"


def _is(node: exp.Expr, operator: str = "IS") -> Parts:
    if not isinstance(node.expression, exp.Null | exp.Boolean):
        raise refuse("IS takes NULL, TRUE or FALSE")
    return "(", node.this, f" {operator} ", node.expression, ")"


def _in(node: exp.Expr, operator: str = "IN") -> Parts:
    values = node.expressions
    if not values:
        raise refuse("IN takes values written out", "write column IN (1, 2, 3)")
    if any(value.find(exp.Column, exp.Query) for value in values):
        raise refuse("IN takes values, no columns or queries", "compare columns with = and OR")
    yield "("
    yield node.this
    yield f" {operator} ("
    for i, value in enumerate(values):
        yield ", " if i else ""
        yield value
    yield "))"


def _between(node: exp.Expr, operator: str = "BETWEEN") -> Parts:
    if node.args.get("symmetric"):
        raise refuse("BETWEEN SYMMETRIC is no part of a condition here", "write the lower value first")
    return "(", node.this, f" {operator} ", node.args["low"], " AND ", node.args["high"], ")"


_TYPES = {
    DType.BOOLEAN: "BOOLEAN", DType.TINYINT: "TINYINT", DType.SMALLINT: "SMALLINT", DType.INT: "INT",
    DType.BIGINT: "BIGINT", DType.INT128: "HUGEINT", DType.UTINYINT: "UTINYINT", DType.USMALLINT: "USMALLINT",
    DType.UINT: "UINTEGER", DType.UBIGINT: "UBIGINT", DType.FLOAT: "REAL", DType.DOUBLE: "DOUBLE",
    DType.DECIMAL: "DECIMAL", DType.VARCHAR: "VARCHAR", DType.TEXT: "VARCHAR", DType.CHAR: "VARCHAR",
    DType.VARBINARY: "BLOB", DType.BINARY: "BLOB", DType.DATE: "DATE", DType.TIME: "TIME",
    DType.TIMESTAMP: "TIMESTAMP", DType.TIMESTAMPNTZ: "TIMESTAMP", DType.DATETIME: "TIMESTAMP",
    DType.TIMESTAMPTZ: "TIMESTAMP WITH TIME ZONE", DType.TIMESTAMPLTZ: "TIMESTAMP WITH TIME ZONE",
}  # fmt: skip
_WRITTEN_OUT = frozenset({"DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"})
"""Types whose constants are a word and a text: DATE '2024-01-01'."""


def _cast(function: str) -> Form:
    def parts(node: exp.Expr) -> Parts:
        name = _type(node.args["to"])
        if name in _WRITTEN_OUT and isinstance(node.this, exp.Literal) and node.this.is_string:
            return (f"{name} {_text(node.this.name)}",)
        return f"{function}(", node.this, f" AS {name})"

    return parts


def _type(node: exp.Expr) -> str:
    name = _TYPES.get(node.this)
    if name is None:
        raise refuse(f"{str(node.this).rpartition('.')[2]} is no type to cast to here", "cast to a scalar type")
    sizes = [size.name for size in node.expressions] if name == "DECIMAL" else []
    if not all(size.isdecimal() and len(size) < 3 for size in sizes):
        raise refuse("DECIMAL takes two numbers, as in DECIMAL(10, 2)")
    return f"{name}({', '.join(sizes)})" if sizes else name


def interval_form(node: exp.Expr) -> Parts:
    """INTERVAL '1 day', the unit inside the text."""
    unit = node.args.get("unit")
    text = f"{node.name} {'' if unit is None else unit.name}".strip()
    if not isinstance(node.this, exp.Literal) or re.fullmatch(r"[0-9A-Za-z .:+-]*", text) is None:
        raise refuse("INTERVAL takes a text", "write INTERVAL '1 day'")
    yield f"INTERVAL '{text}'"


def _case(node: exp.Expr) -> Parts:
    yield "(CASE"
    if node.this is not None:
        yield " "
        yield node.this
    for branch in node.args["ifs"]:
        yield " WHEN "
        yield branch.this
        yield " THEN "
        yield branch.args["true"]
    if (default := node.args.get("default")) is not None:
        yield " ELSE "
        yield default
    yield " END)"


def _function(name: str, *keys: str) -> Form:
    """A call with the arguments under these keys, in this order. Others must be absent, but for flags of the parser."""

    def parts(node: exp.Expr) -> Parts:
        for key, value in node.args.items():
            if key not in keys and isinstance(value, exp.Expr | str | list) and value:
                raise refuse(f"{name} takes no {key} here")
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


def _of_columns(form: Form) -> Form:
    """A function whose result may be far longer than its arguments. Constants are evaluated before any row is read, in
    the process that serves everybody: LPAD('x', 10000000000) would take its memory."""

    def parts(node: exp.Expr) -> Parts:
        if node.find(exp.Column) is None:
            raise refuse(f"{node_name(node)} of constants is not evaluated in a condition", "write the value itself")
        return form(node)

    return parts


def _pad(node: exp.Expr) -> Parts:
    name = "LPAD" if node.args.get("is_left") else "RPAD"
    return _function(name, "this", "expression", "fill_pattern")(node)


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
        raise refuse(f"EXTRACT knows no {field[:40]}", f"use one of {', '.join(sorted(_FIELDS))}")
    return f"EXTRACT({field} FROM ", node.expression, ")"


def _log(node: exp.Expr) -> Parts:
    if not isinstance(node.this, exp.Literal) or node.name != "10" or node.expression is None:
        raise refuse("LOG with a base of its own is no part of a condition here", "use LN or LOG10")
    return "LOG10(", node.expression, ")"


def _named_function(node: exp.Expr) -> Parts:
    """Functions that the parser has no class for."""
    arguments = node.expressions
    match node.name.upper(), len(arguments):
        case "OCTET_LENGTH", 1:
            return "OCTET_LENGTH(", arguments[0], ")"
        case "DATE_PART", 2 if isinstance(arguments[0], exp.Literal):
            return _extract(exp.Extract(this=exp.var(arguments[0].name), expression=arguments[1]))
    raise refuse(f"{node.name[:40]} is no function of a condition here")


FORMS: dict[type[exp.Expr], Form] = {
    exp.Column: _column,
    exp.Dot: _column,
    exp.Literal: _literal,
    exp.HexString: bytes_form,
    exp.Boolean: lambda node: ("TRUE" if node.this else "FALSE",),
    exp.Null: lambda _: ("NULL",),
    exp.Paren: lambda node: (node.this,),
    exp.Not: _not,
    exp.EQ: _binary("="),
    exp.NEQ: _binary("<>"),
    exp.LT: _binary("<"),
    exp.LTE: _binary("<="),
    exp.GT: _binary(">"),
    exp.GTE: _binary(">="),
    exp.NullSafeEQ: _binary("IS NOT DISTINCT FROM"),
    exp.NullSafeNEQ: _binary("IS DISTINCT FROM"),
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like("LIKE"),
    exp.ILike: _like("ILIKE"),
    exp.Add: _binary("+"),
    exp.Sub: _binary("-"),
    exp.Mul: _binary("*"),
    exp.Div: _binary("/"),
    exp.IntDiv: _binary("//"),
    exp.Mod: _binary("%"),
    exp.Neg: _negative,
    exp.DPipe: _binary("||"),
    exp.Cast: _cast("CAST"),
    exp.TryCast: _cast("TRY_CAST"),
    exp.Interval: interval_form,
    exp.Case: _case,
    exp.If: _function("IF", "this", "true", "false"),
    exp.Coalesce: _function("COALESCE", "this", "expressions"),
    exp.Nullif: _function("NULLIF", "this", "expression"),
    exp.Greatest: _function("GREATEST", "this", "expressions"),
    exp.Least: _function("LEAST", "this", "expressions"),
    exp.Abs: _function("ABS", "this"),
    exp.Sign: _function("SIGN", "this"),
    exp.Ceil: _function("CEIL", "this"),
    exp.Floor: _function("FLOOR", "this"),
    exp.Round: _function("ROUND", "this", "decimals"),
    exp.Sqrt: _function("SQRT", "this"),
    exp.Exp: _function("EXP", "this"),
    exp.Ln: _function("LN", "this"),
    exp.Log: _log,
    exp.Pow: _function("POW", "this", "expression"),
    exp.Lower: _function("LOWER", "this"),
    exp.Upper: _function("UPPER", "this"),
    exp.Length: _function("LENGTH", "this"),
    exp.Left: _function("LEFT", "this", "expression"),
    exp.Right: _function("RIGHT", "this", "expression"),
    exp.Substring: _function("SUBSTR", "this", "start", "length"),
    exp.StartsWith: _function("STARTS_WITH", "this", "expression"),
    exp.EndsWith: _function("ENDS_WITH", "this", "expression"),
    exp.StrPosition: _function("STRPOS", "this", "substr"),
    exp.SplitPart: _function("SPLIT_PART", "this", "delimiter", "part_index"),
    exp.Trim: _trim,
    exp.Concat: _function("CONCAT", "expressions"),
    exp.Replace: _of_columns(_function("REPLACE", "this", "expression", "replacement")),
    exp.Pad: _of_columns(_pad),
    exp.RegexpLike: _function("REGEXP_LIKE", "this", "expression", "flag"),
    exp.RegexpILike: lambda node: ("REGEXP_LIKE(", node.this, ", ", node.expression, ", 'i')"),
    exp.Reverse: _function("REVERSE", "this"),
    exp.BitwiseAnd: _binary("&"),
    exp.BitwiseOr: _binary("|"),
    exp.TsOrDsToDate: lambda node: ("CAST(", node.this, " AS DATE)"),
    exp.Date: _function("DATE", "this"),
    exp.Year: _function("YEAR", "this"),
    exp.Quarter: _function("QUARTER", "this"),
    exp.Month: _function("MONTH", "this"),
    exp.Day: _function("DAY", "this"),
    exp.DayOfMonth: _function("DAY", "this"),
    exp.Hour: _function("HOUR", "this"),
    exp.Minute: _function("MINUTE", "this"),
    exp.Second: _function("SECOND", "this"),
    exp.Extract: _extract,
    exp.Anonymous: _named_function,
}
"""What a condition may hold beside AND and OR: a node's type to its form in polars' SQL."""

COPIES: dict[type[exp.Expr], int] = {
    exp.Between: 2, exp.Nullif: 2, exp.SplitPart: 3, exp.Right: 2, exp.Extract: 2, exp.Case: 3, exp.Not: 2,
}  # fmt: skip
"""How many times polars writes out an argument at most, where it is more than once."""

OTHER_IN_SPARK: tuple[type[exp.Expr], ...] = (
    exp.Round, exp.Substring, exp.Left, exp.Right, exp.Extract, exp.Concat, exp.RegexpLike, exp.RegexpILike, exp.Trim,
    exp.IntDiv, exp.Mod, exp.Pad, exp.SplitPart,
)  # fmt: skip
"""What Spark and polars evaluate differently for some arguments (rounding, negative positions, nulls, days of a week):
constants of a constraint must not be evaluated in another way than by the engine that wrote the rows."""


def check_spark(node: exp.Expr) -> None:
    """InvalidRequestError for a node of a constraint whose meaning in Spark is not that of its form."""
    if isinstance(node, OTHER_IN_SPARK):
        raise refuse(f"{node_name(node)} means something else in Spark than here")
    if isinstance(node, exp.DataType) and node.this == DType.DECIMAL and not node.expressions:
        raise refuse("DECIMAL without digits is DECIMAL(10, 0) in Spark", "write the digits")
    if isinstance(node, exp.Like | exp.ILike) and "\\" in node.expression.name:
        raise refuse("a backslash in a pattern of LIKE escapes in Spark alone")
