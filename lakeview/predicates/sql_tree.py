"""A condition in Spark's SQL to our tree, over columns whose types are known: what recipients of a share send.

What has no form in the tree is Unknown. Constants are read as values of the column's own type.
"""

from collections.abc import Sequence

import polars as pl
from sqlglot import TokenType, exp
from sqlglot.tokenizer_core import Token

from lakeview.model.data_types import DataType, PrimitiveType
from lakeview.predicates import limits
from lakeview.predicates.columns import Columns
from lakeview.predicates.syntax import DIALECTS, Refusal, chain_terms, check_size, parse_tokens, tokenize
from lakeview.predicates.tree import MIRRORED, And, Comparison, Constant, IsNull, Node, Or, Path, Unknown, join, negate

_REFUSAL = Refusal("bad-hint", "predicateHints", "the hint")
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_CASTS = {
    exp.DataType.Type.DATE: "date",
    exp.DataType.Type.TIMESTAMP: "timestamp",
    exp.DataType.Type.TIMESTAMPTZ: "timestamp",
    exp.DataType.Type.TIMESTAMPLTZ: "timestamp",
    exp.DataType.Type.TIMESTAMPNTZ: "timestamp_ntz",
}


def read_hint(text: str, columns: Columns, max_tokens: int) -> tuple[Node, int]:
    """Returns the tree of a condition and the number of tokens in its text.

    InvalidRequestError for text that is no SQL, or beyond `max_tokens` or the limits of `lakeview.predicates.syntax`.
    """
    tokens = _without_spare_brackets(tokenize(text, DIALECTS["spark"], _REFUSAL))
    check_size(tokens, _REFUSAL, max_tokens)
    return _Reader(columns).node(parse_tokens(tokens, text, DIALECTS["spark"], _REFUSAL)), len(tokens)


def _without_spare_brackets(tokens: Sequence[Token]) -> list[Token]:
    """Tokens without the brackets that only wrap others, which some clients write by the hundred."""
    opening: list[int] = []
    pairs: dict[int, int] = {}
    for i, token in enumerate(tokens):
        if token.token_type == TokenType.L_PAREN:
            opening.append(i)
        elif token.token_type == TokenType.R_PAREN and opening:
            pairs[opening.pop()] = i
    spare = {i: j for i, j in pairs.items() if pairs.get(i + 1) == j - 1}
    positions = spare.keys() | set(spare.values())
    return [token for i, token in enumerate(tokens) if i not in positions]


class _Reader:
    """One parsed expression to a tree."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def node(self, tree: exp.Expr) -> Node:
        if self._columns.is_spent():
            return Unknown()
        is_negation = False
        while isinstance(tree, exp.Paren | exp.Not):
            is_negation ^= isinstance(tree, exp.Not)
            tree = tree.this
        return negate(self._positive(tree)) if is_negation else self._positive(tree)

    def _positive(self, tree: exp.Expr) -> Node:
        match tree:
            case exp.And() | exp.Or():
                parts = [self.node(term) for term in chain_terms(tree)]
                return join(And if isinstance(tree, exp.And) else Or, parts)
            case exp.Is():
                return self._is(tree)
            case exp.In():
                return self._in(tree)
            case exp.Between():
                low = self._comparison(tree.this, ">=", tree.args["low"])
                high = self._comparison(tree.this, "<=", tree.args["high"])
                return And(low, high)
            case exp.Boolean():
                return Constant(bool(tree.this))
            case exp.Column():
                column = self._column(tree)
                if column is not None and column[1] == PrimitiveType("boolean"):
                    return Comparison(column[0], "=", pl.Series([True]))
        op = _COMPARISONS.get(type(tree))
        return Unknown() if op is None else self._comparison(tree.this, op, tree.expression)

    def _column(self, tree: exp.Expr) -> tuple[Path, DataType] | None:
        tree = tree.unnest() if isinstance(tree, exp.Paren) else tree
        if not isinstance(tree, exp.Column | exp.Dot):
            return None
        parts = tree.parts
        if not all(isinstance(part, exp.Identifier) for part in parts):
            return None
        return self._columns.find(tuple(str(part.name) for part in parts))

    def _comparison(self, left: exp.Expr, op: str, right: exp.Expr) -> Node:
        column, constant = self._column(left), right
        if column is None:
            column, constant, op = self._column(right), left, MIRRORED[op]
        if column is None:
            return Unknown()
        value = _constant(constant, column[1])
        return Unknown() if value is None else self._columns.comparison(*column, op, value[0])

    def _is(self, tree: exp.Is) -> Node:
        column = self._column(tree.this)
        if column is None or not isinstance(tree.expression, exp.Null):
            return Unknown()
        return IsNull(column[0])

    def _in(self, tree: exp.In) -> Node:
        column, elements = self._column(tree.this), tree.expressions
        if column is None or not 0 < len(elements) <= limits.COMPARED_VALUES or tree.args.get("query") is not None:
            return Unknown()
        values = [_constant(value, column[1]) for value in elements]
        texts = [value[0] for value in values if value is not None]
        return self._columns.membership(*column, texts) if len(texts) == len(values) else Unknown()


def _constant(tree: exp.Expr, type_: DataType) -> tuple[str | None] | None:
    """The text of a constant (None in it for null) compared as the column's own type; None for anything else."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    text = type_ == PrimitiveType("string")
    match tree:
        case exp.Null():
            return (None,)
        case exp.Boolean():
            return (str(bool(tree.this)).lower(),) if type_ == PrimitiveType("boolean") else None
        case exp.Literal():
            # a text column compared with a number is cast to one: '05' is 5 then
            return (str(tree.this),) if tree.is_string or not text else None
        case exp.Neg() if isinstance(tree.this, exp.Literal) and not tree.this.is_string and not text:
            return (f"-{tree.this.this}",)
        case exp.Cast() if isinstance(tree.this, exp.Literal) and tree.this.is_string:
            return (str(tree.this.this),) if _CASTS.get(tree.to.this) == str(type_) else None
    return None
