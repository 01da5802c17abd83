"""A tree of Spark's SQL, whose columns have types, to a refusal where casts and decimals mean something else in polars.

Spark counts a timestamp in seconds where polars has microseconds, rounds decimals half up where polars rounds half to
even, and writes floating-point numbers and timestamps as texts of its own. What a constraint or a generated column says
must not be evaluated in another way than by the engine that made it.
"""

from collections.abc import Mapping, Sequence

from sqlglot import exp
from sqlglot.expressions import DType

from lakeview.model.data_types import DataType, DecimalType, PrimitiveType
from lakeview.predicates.syntax import REFUSAL

_KINDS = {
    **dict.fromkeys(("byte", "short", "integer", "long"), "integer"),
    **dict.fromkeys(("float", "double"), "floating"),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), "timestamp"),
    "string": "text",
    "boolean": "boolean",
    "date": "date",
}
_TARGETS = {
    **dict.fromkeys((DType.TINYINT, DType.SMALLINT, DType.INT, DType.BIGINT), "integer"),
    **dict.fromkeys((DType.FLOAT, DType.DOUBLE), "floating"),
    **dict.fromkeys((DType.TIMESTAMP, DType.TIMESTAMPNTZ, DType.TIMESTAMPTZ, DType.TIMESTAMPLTZ), "timestamp"),
    **dict.fromkeys((DType.VARCHAR, DType.TEXT, DType.CHAR), "text"),
    DType.DECIMAL: "decimal",
    DType.BOOLEAN: "boolean",
    DType.DATE: "date",
}
_ALIKE = {
    "integer": {"integer", "floating", "decimal", "text", "boolean"},
    "boolean": {"integer", "floating", "text", "boolean"},
    "floating": {"floating", "integer"},
    "decimal": {"floating", "integer"},
    "text": {"text"},
    "date": {"date", "timestamp", "text"},
    "timestamp": {"date", "timestamp"},
    "null": set(_TARGETS.values()),
}
"""Kinds of values to the kinds that both engines cast them to alike; to an integer where it fits, else neither does."""

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)
_OF_KIND: dict[str, tuple[type[exp.Expr], ...]] = {
    "boolean": (exp.Boolean, exp.Predicate, exp.Connector, exp.Not, exp.Is, exp.In, exp.Between),
    "text": (exp.Upper, exp.Lower, exp.Trim, exp.Substring, exp.DPipe, exp.Replace, exp.Reverse),
    "floating": (exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Sign),
    "date": (exp.Date, exp.TsOrDsToDate),
    "null": (exp.Null,),
    "integer": (
        exp.Length, exp.StrPosition, exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.Hour, exp.Minute,
        exp.Second,
    ),
}  # fmt: skip
_LIKE_THEIR_PARTS = (
    exp.Paren, exp.Neg, exp.Abs, exp.Floor, exp.Ceil, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least,
)  # fmt: skip


def check_types(tree: exp.Expr, columns: Mapping[int, DataType]) -> exp.Expr:
    """Returns the tree, casts of numbers to integers strict in it. InvalidRequestError for a cast, a division of
    decimals and a text put together that Spark evaluates in another way. `columns`: types by the nodes' ids."""
    for node in list(tree.walk()):
        if isinstance(node, exp.Cast):  # and TryCast
            target = _check_cast(node, columns)
            if target == "integer" and type(node) is exp.TryCast and not node.args.get("safe"):
                strict = exp.Cast(this=node.this, to=node.to)  # null here, the nearest integer or an error in Spark
                tree = strict if node is tree else tree
                node.replace(strict)
        elif isinstance(node, exp.Div | exp.Mod | exp.DPipe):
            _check_operands(node, [_kind(part, columns) for part in (node.left, node.right)])
        elif isinstance(node, exp.Greatest) and "floating" in {_kind(part, columns) for part in _parts(node)}:
            # to polars it is the greatest number beside NaN
            raise REFUSAL("GREATEST of floating-point numbers is NaN in Spark where one of them is")
    return tree


def _check_cast(node: exp.Cast, columns: Mapping[int, DataType]) -> str:
    """Returns the kind of values that the cast makes."""
    source, target = _kind(node.this, columns), _TARGETS.get(node.to.this, "other")
    is_constant = isinstance(node.this, exp.Literal) and target in ("date", "timestamp")
    if target not in _ALIKE.get(source, ()) and not is_constant and not _gains_digits(node, columns):
        raise REFUSAL(f"CAST of {source} AS {node.to.sql(dialect='spark')} means something else in Spark than here")
    return target


def _check_operands(node: exp.Div | exp.Mod | exp.DPipe, kinds: Sequence[str]) -> None:
    if isinstance(node, exp.Div) and "decimal" in kinds and "floating" not in kinds:
        raise REFUSAL("a division of decimals is rounded in another way by Spark")
    if isinstance(node, exp.Mod) and not set(kinds) <= {"integer", "null"}:
        raise REFUSAL("a remainder of other numbers than integers is not always that of Spark")
    if isinstance(node, exp.DPipe) and (other := [kind for kind in kinds if "text" not in _ALIKE.get(kind, ())]):
        raise REFUSAL(f"|| with {other[0]} means something else in Spark than here")


def _kind(node: exp.Expr, columns: Mapping[int, DataType]) -> str:
    if (type_ := columns.get(id(node))) is not None:
        return "decimal" if isinstance(type_, DecimalType) else _KINDS.get(_name(type_), "other")
    if isinstance(node, exp.Literal):
        if node.is_string:
            return "text"
        return "integer" if node.name.isdecimal() else "floating" if "e" in node.name.lower() else "decimal"
    if isinstance(node, exp.Cast):
        return _TARGETS.get(node.to.this, "other")
    if isinstance(node, _ARITHMETIC):
        return _of_operands({_kind(n, columns) for n in (node.left, node.right)}, node)
    parts = _parts(node)
    if parts:
        kinds = {_kind(part, columns) for part in parts} - {"null"}
        return kinds.pop() if len(kinds) == 1 else "other"
    return next((kind for kind, types in _OF_KIND.items() if isinstance(node, types)), "other")


def _of_operands(kinds: set[str], node: exp.Expr) -> str:
    if not kinds <= {"integer", "floating", "decimal", "null"}:
        return "other"
    if "floating" in kinds or (isinstance(node, exp.Div) and "decimal" not in kinds):
        return "floating"
    return "decimal" if "decimal" in kinds else "integer"


def _parts(node: exp.Expr) -> list[exp.Expr]:
    """The parts whose kind a node has."""
    if isinstance(node, exp.Case):
        parts = [*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")]
    elif isinstance(node, exp.If):
        parts = [node.args["true"], node.args.get("false")]
    elif isinstance(node, _LIKE_THEIR_PARTS):
        parts = [node.this, *node.expressions]
    else:
        parts = []
    return [part for part in parts if part is not None]


def _gains_digits(node: exp.Expr, columns: Mapping[int, DataType]) -> bool:
    """Whether a decimal is cast to one with as many digits on both sides of the point at least: nothing is rounded."""
    sizes = [int(size.name) for size in node.args["to"].expressions if size.name.isdecimal()]
    value = node.this.this if isinstance(node.this, exp.Neg) else node.this
    type_ = columns.get(id(value))
    if isinstance(type_, DecimalType):
        before, after = type_.precision - type_.scale, type_.scale
    elif isinstance(value, exp.Literal) and not value.is_string and value.name.replace(".", "", 1).isdecimal():
        before, after = (len(part) for part in value.name.partition(".")[::2])
    else:
        return False
    return (
        node.args["to"].this == DType.DECIMAL
        and len(sizes) == 2
        and sizes[1] >= after
        and sizes[0] - sizes[1] >= before
    )


def _name(type_: DataType) -> str:
    return type_.name if isinstance(type_, PrimitiveType) else ""
