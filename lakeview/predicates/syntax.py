"""SQL text to a syntax tree of sqlglot, within limits: the edge where text of users, links and logs comes in.

What a condition or a query may not contain is refused by name, as SQL names it.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from sqlglot import Dialect, TokenType, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token

from lakeview.model.errors import InvalidRequestError
from lakeview.predicates import limits

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it logs the text of statements that it does not know


class PolarsSQL(DuckDB):
    """SQL as polars reads it: names in double quotes or back-quotes, bytes as X'00ff', no escapes in texts."""

    class Tokenizer(DuckDB.Tokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("x'", "'"), ("X'", "'")]
        COMMANDS: ClassVar[set[TokenType]] = set()  # a text may begin with a column called load


class _SparkSQL(Spark):
    class Tokenizer(Spark.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()


DIALECTS: dict[str, type[Dialect]] = {"polars": PolarsSQL, "spark": _SparkSQL, "duckdb": DuckDB}
"""Dialects by name: filters of users are in polars' SQL, constraints of Delta tables in Spark's."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Makes the error for a text: its kind, its place (`where`, `sql`), what the text is called, and what to write
    where an error has no fix of its own."""

    kind: str
    place: str
    subject: str
    example: str | None = None

    def __call__(self, message: str, fix: str | None = None) -> InvalidRequestError:
        return InvalidRequestError(message, fix=fix or self.example, place=self.place, kind=self.kind)

    def of_subject(self, finding: str, fix: str) -> InvalidRequestError:
        """The error whose message begins with what the text is called."""
        return self(f"{self.subject} {finding}", fix)


def parse_statement(
    text: str,
    dialect: type[Dialect],
    refusal: Refusal,
    max_characters: int = limits.CHARACTERS,
    *,
    is_query: bool = False,
) -> exp.Expr:
    """Returns the tree of the one expression in a text, or, with `is_query`, of the one statement.

    InvalidRequestError, made by `refusal`, for text that is empty, no SQL, more than one statement, too long, or nested
    too deep.
    """
    if len(text) > max_characters:
        raise refusal.of_subject(f"has {len(text):,} characters", f"write at most {max_characters:,}")
    tokens = tokenize(text, dialect, refusal)
    check_size(tokens, refusal)
    return parse_tokens(tokens, text, dialect, refusal, is_query=is_query)


def tokenize(text: str, dialect: type[Dialect], refusal: Refusal) -> list[Token]:
    """Returns the tokens of a text, to be checked before they are parsed. InvalidRequestError for no SQL."""
    try:
        tokens: list[Token] = dialect().tokenize(text)
    except SqlglotError as error:
        raise refusal.of_subject(f"cannot be read: {_stop(error)}", _CORRECT) from error
    if issubclass(dialect, Spark) and _has_adjacent_texts(tokens):
        raise refusal("two texts follow each other, which versions of Spark read differently", "join them")
    return tokens


def parse_tokens(
    tokens: list[Token], text: str, dialect: type[Dialect], refusal: Refusal, *, is_query: bool = False
) -> exp.Expr:
    """Returns the tree of the one statement or expression in the tokens of a text. Raises as `parse_statement`."""
    parser = dialect().parser()
    try:
        # as an expression, a text may begin with a column called comment
        trees = parser.parse(tokens, text) if is_query else parser.parse_into(exp.Expr, tokens, text)
    except SqlglotError as error:
        raise refusal.of_subject(f"cannot be read: {_stop(error)}", _CORRECT) from error
    except RecursionError as error:
        raise refusal.of_subject("is nested too deep", "write it flatter") from error
    if not trees or trees[0] is None:
        raise refusal.of_subject("is empty", "write one")
    if len(trees) > 1:
        raise refusal("there is more than one statement", "write one")
    return trees[0]


def chain_terms(chain: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the terms of a chain of one connector, in order, without recursion."""
    waiting = [chain]
    while waiting:
        node = waiting.pop()
        while isinstance(node, exp.Paren) and isinstance(node.this, type(chain)):
            node = node.this
        if isinstance(node, type(chain)):
            waiting += [node.expression, node.this]
        else:
            yield node


def check_size(tokens: Sequence[Token], refusal: Refusal, max_tokens: int = limits.TOKENS) -> None:
    """InvalidRequestError for tokens that would take the parser long, or more stack than there is."""
    if len(tokens) > max_tokens:
        raise refusal.of_subject(f"has {len(tokens):,} words and signs", f"write at most {max_tokens:,}")
    open_types: list[bool] = []  # for each open bracket, whether it stands behind a type's name
    attempts = 0
    postfix = 0
    before = None
    for token in tokens:
        kind = token.token_type
        postfix += kind in _POSTFIX
        if kind in _OPENING:
            open_types.append(before in Parser.TYPE_TOKENS)
            attempts += 2 ** sum(open_types) if open_types[-1] else 0
        elif kind in _CLOSING and open_types:
            open_types.pop()
        before = kind
        if len(open_types) > limits.NESTING or attempts > limits.TYPE_ATTEMPTS or postfix > limits.POSTFIX:
            raise refusal.of_subject(f"is nested too deep: more than {limits.NESTING} levels", "write it flatter")


_POSTFIX = {TokenType.L_BRACKET, TokenType.DCOLON}
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}


def _has_adjacent_texts(tokens: Sequence[Token]) -> bool:
    """True if two texts follow each other: 'it''s' is it's to Spark 4 and its to those before."""
    return any(one.token_type == other.token_type == TokenType.STRING for one, other in pairwise(tokens))


_CORRECT = 'correct it; a name that is a word of SQL stands in double quotes, as in "when" = 3'


def _stop(error: SqlglotError) -> str:
    """Where reading stopped. The parser's own message names its classes and underlines with control characters."""
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        return f"stopped at {first['highlight']!r}, line {first['line']}, character {first['col']}"
    return "a quote or a comment is not closed"


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
