"""SQL text to a query that may run: one SELECT over one table, which opens no file and names no other relation.

The text is typed by whoever has the page open, and polars' SQL can open any file and any address with its table
functions, so what is not known to be harmless is refused. Two readers of one text may disagree about it: whoever runs
the query checks its plan too (`sources_refused`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError

from lakeview.errors import InvalidRequestError

QUERY_TABLE = "t"
"""What the table can always be called in a query."""

MAX_CHARACTERS = 20_000
MAX_NESTING = 40
MAX_OPERATORS = 500
KIND = "bad-query"

_OPENING = re.compile(r"\b(?:read|scan)_(?:csv|parquet|ipc|json|ndjson|delta|iceberg|avro|text|blob)\w*", re.IGNORECASE)
"""Functions that open files, in polars and its kin. Wherever the word stands: no text needs it."""

_PLAIN_SOURCES = ("DF", "PYTHON")
_SOURCE = re.compile(r"^\s*(?:[\u2500-\u257f\s]*)([A-Za-z_]+)\s+SCAN\b", re.MULTILINE)


class _PolarsSQL(DuckDB):
    """SQL as polars reads it: names in double quotes or back-quotes."""

    class Tokenizer(DuckDB.Tokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]


@dataclass(frozen=True, slots=True)
class Query:
    """A query that may run: its text, and the condition on the table's own columns that files can be spared by, None
    where there is none or where it cannot be told apart."""

    text: str
    where: str | None


def query(text: str, names: Sequence[str] = ()) -> Query:
    """The query in a text; `names` are what the table is called beside `t`.

    InvalidRequestError for anything but one SELECT (with its CTEs, unions and subqueries) over that table.
    """
    text = text.strip().rstrip(";").strip()
    if not text:
        raise _refused("the query is empty", f"write SELECT * FROM {QUERY_TABLE}")
    if len(text) > MAX_CHARACTERS:
        raise _refused(f"the query has {len(text):,} characters", f"write at most {MAX_CHARACTERS:,}")
    if found := _OPENING.search(text):
        raise _refused(f"{found[0]} would open files of its own", "ask only the table that is open")
    bounded(text)
    try:
        trees = sqlglot.parse(text, read=_PolarsSQL)
    except (SqlglotError, RecursionError) as error:
        raise _refused(
            f"the query cannot be read: {_first_line(error)}", f"write SELECT * FROM {QUERY_TABLE}"
        ) from error
    if len(trees) != 1 or trees[0] is None:
        raise _refused("there is more than one statement", "write one SELECT")
    tree = trees[0]
    if not isinstance(tree, exp.Select | exp.SetOperation):
        word = text.split(maxsplit=1)[0].upper()
        raise _refused(f"{word[:40]} is no SELECT, and tables are only read here", "write one SELECT")
    try:
        _check_relations(tree, {QUERY_TABLE, *names})
        return Query(text, _condition(tree))
    except RecursionError as error:  # IN of IN of IN: no operators that are counted, and as deep
        raise _refused("the query is nested too deep", "write it flatter") from error


def sources_refused(plan: str) -> list[str]:
    """What an explained plan reads beside the table: names of scans that are not polars frames or Python sources.

    A text in the query that looks like a scan is taken for one: that refuses too much, never too little.
    """
    return sorted({kind for kind in _SOURCE.findall(plan) if kind.upper() not in _PLAIN_SOURCES})


def bounded(text: str) -> None:
    """Refuses what is nested or chained so deep that reading it would end the process."""
    try:
        tokens = _PolarsSQL().tokenize(text)
    except (SqlglotError, RecursionError) as error:
        raise _refused(
            f"the query cannot be read: {_first_line(error)}", f"write SELECT * FROM {QUERY_TABLE}"
        ) from error
    depth = operators = 0
    for token in tokens:
        if token.token_type in _DEEPER:
            depth += 1
        elif token.token_type in _SHALLOWER:
            depth -= 1
        elif token.token_type in _OPERATORS:
            operators += 1
        if depth > MAX_NESTING:
            raise _refused(f"the query is nested more than {MAX_NESTING} deep", "write it flatter")
    if operators > MAX_OPERATORS:
        raise _refused(f"the query has {operators:,} operators", f"write at most {MAX_OPERATORS}, or use IN (...)")


_DEEPER = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_SHALLOWER = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_OPERATORS = {
    TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH,
    TokenType.MOD, TokenType.DPIPE, TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.GT, TokenType.LTE,
    TokenType.GTE, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.JOIN, TokenType.DCOLON,
    TokenType.AMP, TokenType.PIPE, TokenType.CARET, TokenType.TILDE, TokenType.XOR, TokenType.IS, TokenType.LIKE,
}  # fmt: skip


def _check_relations(tree: exp.Expr, allowed: set[str]) -> None:
    known = allowed | {cte.alias for cte in tree.find_all(exp.CTE)}
    for forbidden in tree.find_all(exp.Into, exp.Command, exp.DML, exp.DDL, exp.Lock):
        if not isinstance(forbidden, exp.Query):
            raise _refused(f"{type(forbidden).__name__.upper()} is no part of a SELECT here", "write one SELECT")
    for relation in _relations(tree):
        if isinstance(relation, exp.Table) and isinstance(relation.this, exp.Identifier):
            if relation.name in known and not relation.db and not relation.catalog:
                continue
            raise _refused(
                f"there is no table {relation.sql(dialect=_PolarsSQL)[:100]} here",
                f"ask {' or '.join(sorted(allowed))}, which is the table that is open",
            )
        if not isinstance(relation, exp.Subquery | exp.Query):
            raise _refused(
                f"{relation.sql(dialect=_PolarsSQL)[:100]} is no table", "functions that make tables are not run here"
            )


def _relations(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Everything that rows come from: tables, and whatever else stands in FROM or JOIN."""
    yield from tree.find_all(exp.Table)
    for clause in tree.find_all(exp.From, exp.Join):
        yield clause.this
    for kind in (exp.Lateral, exp.Unnest, exp.TableFromRows, exp.Values):
        yield from tree.find_all(kind)


def _condition(tree: exp.Expr) -> str | None:
    """The WHERE of a query over the table alone: its rows are the only ones that the query can see."""
    where = tree.args.get("where")
    clause = tree.args.get("from_") or tree.args.get("from")
    if not isinstance(tree, exp.Select) or where is None or clause is None or not isinstance(clause.this, exp.Table):
        return None
    if tree.args.get("with_") or tree.args.get("with") or tree.args.get("joins") or where.find(exp.Query):
        return None
    condition = where.this.copy()
    for column in condition.find_all(exp.Column):
        if column.table == clause.this.alias_or_name:
            column.set("table", None)
    return str(condition.sql(dialect=_PolarsSQL, comments=False))


def _first_line(error: Exception) -> str:
    # the parser underlines what it stumbled over with control characters of terminals
    lines = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def _refused(message: str, fix: str) -> InvalidRequestError:
    return InvalidRequestError(message, fix=fix, place="sql", kind=KIND)
