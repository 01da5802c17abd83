"""Errors for what a condition or a query may not contain, named as SQL names it."""

from sqlglot import exp

from lakeview.predicates.syntax import Refusal

KIND = "bad-predicate"
EXAMPLE = "write a SQL condition such as month = 3 AND carrier IN ('AA', 'UA')"
REFUSAL = Refusal(KIND, "where", "the condition", EXAMPLE)


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
