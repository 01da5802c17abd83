"""SQL text of a condition to a checked syntax tree, and the tree to a polars expression or another dialect's text.

What `lakeview.predicates.forms` has no form for is refused by name, so that subqueries, table functions, aggregates,
windows, stars and parameters never reach polars' SQL reader. Of a condition whose outcome depends on a time zone the
part that does is found: lakeview takes UTC, and other engines that of a session.
"""

from collections.abc import Container
from functools import lru_cache

import polars as pl
from sqlglot import exp

from lakeview.model.data_types import PrimitiveType
from lakeview.model.printable import shorten
from lakeview.model.schema import Schema
from lakeview.predicates import limits
from lakeview.predicates.forms import (
    COPIES,
    FORMS,
    check_arguments,
    check_spark,
    has_offset,
    null_for_null,
    null_for_zero,
)
from lakeview.predicates.names import column_types, resolve
from lakeview.predicates.syntax import (
    DIALECTS,
    EXAMPLE,
    KIND,
    REFUSAL,
    Refusal,
    chain_terms,
    check_operands,
    node_name,
    parse_statement,
)

_LONGEST_QUOTE = 300


def to_expression(text: str) -> pl.Expr:
    """Returns the condition in a text, in polars' SQL, as a polars expression.

    InvalidRequestError for what is no condition or holds what is not allowed in one.
    """
    return _expression(text, "polars")


def constraint_expression(text: str) -> pl.Expr:
    """Returns a constraint of a Delta table, which is in Spark's SQL, as a polars expression. Raises as above."""
    return _expression(text, "spark")


def row_expression(text: str, schema: Schema, dialect: str = "polars", *, casts_texts: bool = False) -> pl.Expr:
    """Returns an expression over the columns of a schema, a condition or a value, as a polars expression.

    Columns are found without regard to case, and a text that is compared with a date is that date, as in Spark.
    `dialect`: spark for what a Delta table declares, polars for what users write. `casts_texts` as in `resolve`.
    InvalidRequestError as in `to_expression`, and (kind unknown-column) for a column that the schema does not have.
    """
    tree = resolve(_parse(text, dialect), schema, _quote(text), as_spark=dialect == "spark", casts_texts=casts_texts)
    return _print(tree, text, dialect)


def parse_condition(text: str) -> exp.Expr:
    """Returns the tree of a condition in polars' SQL, whose nodes are not checked yet: `print_expression` does."""
    return _parse(text, "polars")


def print_expression(tree: exp.Expr, text: str) -> pl.Expr:
    """Returns a tree as a polars expression, every node checked; `text`: what it was read from, for errors."""
    return _print(tree, text, "polars")


def translate(text: str, dialect: str) -> str:
    """Returns a condition in polars' SQL as text of another dialect, a name in DIALECTS, printed from its checked tree.

    InvalidRequestError as in `to_expression`.
    """
    tree = _parse(text, "polars")
    _Printer().print(tree)
    null_for_zero(tree)
    for cast in tree.find_all(exp.Cast):
        if has_offset(cast) or cast.to.this == exp.DataType.Type.TIMESTAMPTZ:
            # what TIMESTAMP is to Spark, a setting says
            cast.set("to", exp.DataType(this=exp.DataType.Type.TIMESTAMPLTZ))
    sql = str(tree.sql(dialect=DIALECTS[dialect], comments=False))
    # Spark would put the value of a setting, or of the environment, in place of `${env:HOME}` in a literal
    return sql.replace("${", r"$\u007b") if dialect == "spark" else sql


def null_comparison_hint(text: str) -> str | None:
    """Returns what to write in place of a comparison with NULL in a condition in polars' SQL; None if it has none.

    SQL allows `x = NULL`, which is null for every row. InvalidRequestError as in `to_expression`.
    """
    for node in _parse(text, "polars").find_all(exp.EQ, exp.NEQ):
        operands = [node.left.unnest(), node.right.unnest()]
        values = [each for each in operands if not isinstance(each, exp.Null)]
        if len(values) == 1:
            test = "IS NULL" if isinstance(node, exp.EQ) else "IS NOT NULL"
            comparison, value = (shorten(each.sql(dialect="duckdb"), _LONGEST_QUOTE) for each in (node, values[0]))
            return f"{comparison} is true for no row: write {value} {test}"
    return None


@lru_cache(maxsize=128)
def _expression(text: str, dialect: str) -> pl.Expr:
    """A page evaluates one text several times: expressions are cached, exceptions are not."""
    return _print(_parse(text, dialect), text, dialect)


def _print(tree: exp.Expr, text: str, dialect: str) -> pl.Expr:
    if dialect == "spark":
        for node in tree.walk():
            check_spark(node)
    sql = _Printer().print(null_for_zero(tree))
    try:
        return pl.sql_expr(sql)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        lines = str(error).splitlines()
        reason = lines[0] if lines else type(error).__name__
        raise REFUSAL(f"{_quote(text)} is no condition: {reason}", EXAMPLE) from error


def _parse(text: str, dialect: str) -> exp.Expr:
    refusal = Refusal(KIND, "where", f"the condition {_quote(text)}")
    return null_for_null(parse_statement(text, DIALECTS[dialect], refusal))


def _quote(text: str) -> str:
    return repr(shorten(text, _LONGEST_QUOTE))


class _Printer:
    """Prints a tree as polars' SQL. InvalidRequestError for nodes that are not allowed, and beyond the limits."""

    def __init__(self) -> None:
        self._terms = 0

    def print(self, tree: exp.Expr) -> str:
        """Returns the text."""
        return self._node(tree, 0)[0]

    def _node(self, node: exp.Expr, depth: int) -> tuple[str, int]:
        """Returns the text of a node and the number of nodes that polars makes of it."""
        if depth > limits.DEPTH:
            raise REFUSAL(f"the condition is more than {limits.DEPTH} levels deep", "write it flatter")
        if isinstance(node, exp.And | exp.Or):
            return self._chain(node, depth)
        form = FORMS.get(type(node))
        if form is None:
            raise REFUSAL(f"{node_name(node)} is no part of a condition here", EXAMPLE)
        check_arguments(node)
        check_operands(node, REFUSAL)
        texts, size, parts = [], 1, list(form(node))
        # one that a form has twice is printed once: levels of them would take time that doubles
        text_of = {
            id(part): self._node(part, depth + 1)
            for part in {id(part): part for part in parts}.values()
            if isinstance(part, exp.Expr)
        }
        for part in parts:
            if isinstance(part, str):
                texts.append(part)
                continue
            text, inner = text_of[id(part)]
            texts.append(text)
            size = _check_size(size + inner * COPIES.get(type(node), 1))
        return "".join(texts), size

    def _chain(self, node: exp.Expr, depth: int) -> tuple[str, int]:
        """A chain of one connector as a balanced tree: polars takes stack for each level."""
        terms = list(chain_terms(node))
        self._terms += len(terms)
        if self._terms > limits.TERMS:
            raise REFUSAL(
                f"the condition has more than {limits.TERMS:,} operators", "write column IN (...) for many values"
            )
        texts, size = [], 0
        for term in terms:
            # polars does not evaluate NULL AND NULL of no type
            is_null = isinstance(term, exp.Null)
            text, inner = ("CAST(NULL AS BOOLEAN)", 1) if is_null else self._node(term, depth + 1)
            texts.append(text)
            size = _check_size(size + inner + 1)
        return _chain_balanced(texts, " AND " if isinstance(node, exp.And) else " OR "), size


def _check_size(size: int) -> int:
    """Asked while it grows: each level of a form that prints a part twice doubles the text."""
    if size > limits.EXPRESSION_NODES:
        raise REFUSAL("the condition repeats itself inside itself", "compare each column once")
    return size


def _chain_balanced(texts: list[str], sign: str) -> str:
    if len(texts) == 1:
        return texts[0]
    middle = len(texts) // 2
    return f"({_chain_balanced(texts[:middle], sign)}{sign}{_chain_balanced(texts[middle:], sign)})"


_ZONE_COMPARISONS = (
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
    compares = isinstance(node, _ZONE_COMPARISONS) and all(isinstance(each, exp.Null) for each in others)
    return len(others) < len(operands) and not compares
