"""What a condition may hold: each node of the syntax tree with its form in polars' SQL.

`FORMS` lists what is allowed and prints it at once. A form gives texts and the nodes that stand between them, whose own
forms follow. A node with an argument that no form prints is refused.
"""

import re

from sqlglot import exp
from sqlglot.expressions import DType

from lakeview.predicates.functions import FUNCTIONS, Form, Parts
from lakeview.predicates.syntax import REFUSAL, node_name

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
            raise REFUSAL(f"{node_name(node)} takes no {key} here")


def _column(node: exp.Expr) -> Parts:
    names = [part.name for part in node.parts if isinstance(part, exp.Identifier)]  # type: ignore[attr-defined]
    if len(names) != len(node.parts):  # type: ignore[attr-defined]
        raise REFUSAL("a star or a pattern stands for more than one column", "name one column")
    for name in names:
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise REFUSAL(f"{name} may stand for more than one column", "name one column")
    yield ".".join(f'"{name.replace(chr(34), chr(34) * 2)}"' for name in names)


def _literal(node: exp.Expr) -> Parts:
    if node.is_string:
        yield _text(node.name)
    elif _NUMBER.fullmatch(node.name):
        yield node.name
    else:
        raise REFUSAL(f"{node.name[:40]} is no number")


_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def _text(value: str) -> str:
    return f"'{value.replace(chr(39), chr(39) * 2)}'"


def bytes_form(node: exp.Expr) -> Parts:
    """X'00ff'."""
    if re.fullmatch(r"(?:[0-9a-fA-F]{2})*", node.name) is None:
        raise REFUSAL(f"X'{node.name[:40]}' is no sequence of bytes")
    yield f"X'{node.name}'"


def _binary(sign: str) -> Form:
    def parts(node: exp.Expr) -> Parts:
        return "(", node.this, f" {sign} ", node.expression, ")"

    return parts


def _like(operator: str) -> Form:
    def parts(node: exp.Expr) -> Parts:
        if isinstance(node.expression, exp.All | exp.Any):
            raise REFUSAL(f"{operator} takes one pattern")
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
        raise REFUSAL("IS takes NULL, TRUE or FALSE")
    if isinstance(node.expression, exp.Boolean):  # to polars that of null is null: to SQL it is false, or true with NOT
        operator = "IS NOT DISTINCT FROM" if operator == "IS" else "IS DISTINCT FROM"
    return "(", node.this, f" {operator} ", node.expression, ")"


def _in(node: exp.Expr, operator: str = "IN") -> Parts:
    values = node.expressions
    if not values:
        raise REFUSAL("IN takes values written out", "write column IN (1, 2, 3)")
    if any(value.find(exp.Column, exp.Query) for value in values):
        raise REFUSAL("IN takes values, no columns or queries", "compare columns with = and OR")
    yield "("
    yield node.this
    yield f" {operator} ("
    for i, value in enumerate(values):
        yield ", " if i else ""
        yield value
    yield "))"


def _between(node: exp.Expr, operator: str = "BETWEEN") -> Parts:
    if node.args.get("symmetric"):
        raise REFUSAL("BETWEEN SYMMETRIC is no part of a condition here", "write the lower value first")
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
_WITH_OFFSET = re.compile(r".*:.*(?:[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)\s*")
"""A moment with its offset from UTC. As a TIMESTAMP polars and Spark would read another moment, without the offset."""


def _cast(function: str) -> Form:
    def parts(node: exp.Expr) -> Parts:
        name = _type(node.args["to"])
        if name in _WRITTEN_OUT and isinstance(node.this, exp.Literal) and node.this.is_string:
            if has_offset(node):
                name = "TIMESTAMP WITH TIME ZONE"
            return (f"{name} {_text(node.this.name)}",)
        return f"{function}(", node.this, f" AS {name})"

    return parts


def has_offset(node: exp.Expr) -> bool:
    """True for a cast to a timestamp of a constant that has an offset from UTC: it is one WITH TIME ZONE."""
    if not isinstance(node, exp.Cast):
        return False
    constant = isinstance(node.this, exp.Literal) and node.this.is_string and _WITH_OFFSET.fullmatch(node.this.name)
    return bool(constant) and (_TYPES.get(node.args["to"].this) or "").startswith("TIMESTAMP")


def _type(node: exp.Expr) -> str:
    name = _TYPES.get(node.this)
    if name is None:
        raise REFUSAL(f"{str(node.this).rpartition('.')[2]} is no type to cast to here", "cast to a scalar type")
    sizes = [size.name for size in node.expressions] if name == "DECIMAL" else []
    if not all(size.isdecimal() and len(size) < 3 for size in sizes):
        raise REFUSAL("DECIMAL takes two numbers, as in DECIMAL(10, 2)")
    return f"{name}({', '.join(sizes)})" if sizes else name


def interval_form(node: exp.Expr) -> Parts:
    """INTERVAL '1 day', the unit inside the text."""
    unit = node.args.get("unit")
    text = f"{node.name} {'' if unit is None else unit.name}".strip()
    if not isinstance(node.this, exp.Literal) or re.fullmatch(r"[0-9A-Za-z .:+-]*", text) is None:
        raise REFUSAL("INTERVAL takes a text", "write INTERVAL '1 day'")
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


_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM", exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%",
    exp.DPipe: "||", exp.BitwiseAnd: "&", exp.BitwiseOr: "|",
}  # fmt: skip

FORMS: dict[type[exp.Expr], Form] = {
    **FUNCTIONS,
    **{kind: _binary(sign) for kind, sign in _OPERATORS.items()},
    exp.Column: _column,
    exp.Dot: _column,
    exp.Literal: _literal,
    exp.HexString: bytes_form,
    exp.Boolean: lambda node: ("TRUE" if node.this else "FALSE",),
    exp.Null: lambda _: ("NULL",),
    exp.Paren: lambda node: (node.this,),
    exp.Not: _not,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like("LIKE"),
    exp.ILike: _like("ILIKE"),
    exp.Neg: _negative,
    exp.Cast: _cast("CAST"),
    exp.TryCast: _cast("TRY_CAST"),
    exp.Interval: interval_form,
    exp.Case: _case,
}
"""What a condition may hold besides AND and OR: a node's type to its form in polars' SQL."""

COPIES: dict[type[exp.Expr], int] = {
    exp.Between: 2, exp.Nullif: 2, exp.SplitPart: 3, exp.Right: 2, exp.Extract: 2, exp.Case: 3, exp.Not: 2,
}  # fmt: skip
"""How many times polars writes out an argument at most, where it is more than once."""

OTHER_IN_SPARK: tuple[type[exp.Expr], ...] = (
    exp.Round, exp.Substring, exp.Left, exp.Right, exp.Extract, exp.RegexpLike, exp.RegexpILike, exp.Trim,
    exp.IntDiv, exp.Pad, exp.SplitPart, exp.StrPosition, exp.Reverse,
)  # fmt: skip
"""What Spark and polars evaluate differently for some arguments (rounding, positions, days of a week):
constants of a constraint must not be evaluated in another way than by the engine that wrote the rows."""


_NOT_ZERO = re.compile(r"[0.]*[1-9]")


def null_for_zero(tree: exp.Expr) -> exp.Expr:
    """Returns the tree with null for a divisor that is zero, as in Spark without ANSI. polars and DuckDB divide to
    infinity, and a delete with `n / 0 > 1` would take rows that Spark does not. The tree is changed in place."""
    for node in list(tree.find_all(exp.Div, exp.IntDiv, exp.Mod)):
        divisor = node.expression
        if not isinstance(divisor, exp.Literal) or divisor.is_string or not _NOT_ZERO.match(divisor.name):
            wrapper = exp.Nullif(expression=exp.Literal.number(0))
            divisor.replace(wrapper)
            wrapper.set("this", divisor)
    return tree


def null_for_null(tree: exp.Expr) -> exp.Expr:
    """Returns the tree with `a || b` for CONCAT(a, b): null where one of them is, as in Spark. polars and DuckDB leave
    nulls out there, and a delete with `CONCAT(s, '!') = '!'` would take rows that Spark does not. The tree is changed
    in place."""
    for node in list(tree.find_all(exp.Concat)):
        if node.expressions:
            concatenation = _concatenation(node.expressions)
            tree = concatenation if node is tree else tree
            node.replace(concatenation)
    return tree


def _concatenation(texts: list[exp.Expr]) -> exp.Expr:
    """A balanced tree: polars takes stack for each level."""
    if len(texts) == 1:
        return texts[0] if texts[0].is_string else exp.Cast(this=texts[0], to=exp.DataType(this=DType.VARCHAR))
    middle = len(texts) // 2
    return exp.Paren(this=exp.DPipe(this=_concatenation(texts[:middle]), expression=_concatenation(texts[middle:])))


def check_spark(node: exp.Expr) -> None:
    """InvalidRequestError for a node of a constraint whose meaning in Spark is not that of its form."""
    if isinstance(node, OTHER_IN_SPARK):
        raise REFUSAL(f"{node_name(node)} means something else in Spark than here")
    if isinstance(node, exp.DataType) and node.this == DType.DECIMAL and not node.expressions:
        raise REFUSAL("DECIMAL without digits is DECIMAL(10, 0) in Spark", "write the digits")
    if isinstance(node, exp.Like | exp.ILike) and "\\" in node.expression.name:
        raise REFUSAL("a backslash in a pattern of LIKE escapes in Spark alone")
