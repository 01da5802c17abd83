"""SQL text of a query to a text that may run: one SELECT over one table, which opens no file and names no other table.

polars' SQL opens any file and any address with its table functions. So the text that runs is printed from a tree of
which every node, function and table is on a list of those that are allowed.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generators.duckdb import DuckDBGenerator
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import TokenType

from lakeview.predicates import limits
from lakeview.predicates.forms import bytes_form, interval_form
from lakeview.predicates.printing import polars_name
from lakeview.predicates.syntax import PolarsSQL, Refusal, check_operands, node_name, parse_statement, tokenize

QUERY_TABLE = "t"
"""The name that the table always has in a query."""

_REFUSAL = Refusal("bad-query", "sql", "the query")

_FIRST_COLUMNS, _NAME_CHARACTERS = 8, 200
_FIRST_ROWS = f"\nFROM {QUERY_TABLE}\nLIMIT 100"

_PLAIN_SOURCES = ("DF", "PYTHON")
_SOURCE = re.compile(r"^\s*(?:[\u2500-\u257f\s]*)([A-Za-z_]+)\s+SCAN\b", re.MULTILINE)

_SYNTAX_FUNCTIONS = ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "TRIM", "POSITION")


def _printed_by(form: Callable[[exp.Expr], Any]) -> Callable[[Any, exp.Expr], str]:
    return lambda _, node: "".join(form(node))


class _QuerySQL(PolarsSQL):
    """polars' SQL in which a function is a name with arguments: it is printed as it was written."""

    class Tokenizer(PolarsSQL.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = DuckDB.Tokenizer.COMMANDS

    class Parser(DuckDBParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser for name, parser in DuckDBParser.FUNCTION_PARSERS.items() if name in _SYNTAX_FUNCTIONS
        }

    class Generator(DuckDBGenerator):
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **DuckDBGenerator.TRANSFORMS,
            exp.HexString: _printed_by(bytes_form),
            exp.Interval: _printed_by(interval_form),
            exp.RegexpLike: lambda self, node: self.func("REGEXP_LIKE", node.this, node.expression),
        }


@dataclass(frozen=True, slots=True)
class Query:
    """A query that may run: its text, and the condition on the table's own columns that files can be skipped by, None
    where there is none or where it cannot be told apart."""

    text: str
    where: str | None
    is_rowwise: bool
    """True if each row of the answer is made of one row of the table: then any of them are a part of the answer."""


def query(text: str, names: Sequence[str] = ()) -> Query:
    """Returns the query in a text, printed from its checked tree; `names` are names of the table beside `t`.

    InvalidRequestError for anything but one SELECT (with its CTEs, unions and subqueries) over that table.
    """
    tree = parse_statement(text, _QuerySQL, _REFUSAL, limits.QUERY_CHARACTERS, is_query=True)
    if not isinstance(tree, exp.Select | exp.SetOperation):
        word = text.split(maxsplit=1)[0].upper()
        raise _REFUSAL(f"{word[:40]} is no SELECT, and tables are only read here", "write one SELECT")
    _check_size(tree)
    _check_nodes(tree)
    _check_relations(tree, {QUERY_TABLE, *names})
    return Query(_print(tree), _condition(tree), _is_rowwise(tree))


def first_query(columns: Sequence[str]) -> str:
    """Returns the query that shows the first rows of a table: its first columns that a query can name, all without
    any."""
    first = [column for column in columns if is_nameable(column)][:_FIRST_COLUMNS]
    return f"SELECT {', '.join(map(column_name, first)) or '*'}{_FIRST_ROWS}"


def with_column(text: str, column: str) -> str:
    """Returns the text of a query with the name of one more column: among those selected if the text ends as
    `first_query` does, else at its end."""
    name, head = column_name(column), text.removesuffix(_FIRST_ROWS)
    if head == text:
        return f"{text}{'' if not text or text[-1].isspace() else ' '}{name}"
    if f" {name}," in f"{head},":
        return text
    return f"SELECT {name}{_FIRST_ROWS}" if head == "SELECT *" else f"{head}, {name}{_FIRST_ROWS}"


def column_name(column: str) -> str:
    """Returns a column as a query names it: in back-quotes unless it is one plain word."""
    is_word = (
        column.isascii() and column.isidentifier() and column.upper() not in DuckDBParser.NO_PAREN_FUNCTION_PARSERS
    )
    if is_word and [token.token_type for token in tokenize(column, _QuerySQL, _REFUSAL)] == [TokenType.VAR]:
        return column
    return polars_name([column])


def is_nameable(column: str) -> bool:
    """True if a query can name this column: polars takes `*` and `^...$` for patterns, also in quotes."""
    is_pattern = column == "*" or (column.startswith("^") and column.endswith("$"))
    return not is_pattern and "\0" not in column and len(column) <= _NAME_CHARACTERS


def sources_refused(plan: str) -> list[str]:
    """Returns what an explained plan reads beside the table: names of scans that are neither polars frames nor
    Python sources.

    A text in the query that looks like a scan is taken for one: that refuses too much, never too little.
    """
    return sorted({kind for kind in _SOURCE.findall(plan) if kind.upper() not in _PLAIN_SOURCES})


def _print(tree: exp.Expr) -> str:
    return str(tree.sql(dialect=_QuerySQL, comments=False, identify=True))


def _check_size(tree: exp.Expr) -> None:
    """polars takes stack for each level."""
    waiting = [(tree, 0)]
    nodes = connectors = 0
    while waiting:
        node, depth = waiting.pop()
        nodes += 1
        connectors += isinstance(node, exp.Connector)
        if depth > limits.DEPTH:
            raise _REFUSAL("the query is nested too deep", "write it flatter, or use IN (...)")
        if nodes > limits.QUERY_NODES or connectors > limits.QUERY_CONNECTORS:
            raise _REFUSAL(
                f"the query has more than {limits.QUERY_NODES:,} names, values and operators, "
                f"or {limits.QUERY_CONNECTORS} AND and OR",
                "use IN (...)",
            )
        is_chain = isinstance(node, exp.Connector)
        waiting += [
            (child, depth + (not is_chain or type(child) is not type(node))) for child in node.iter_expressions()
        ]


def _check_nodes(tree: exp.Expr) -> None:
    for node in tree.walk():
        check_operands(node, _REFUSAL)
        if isinstance(node, exp.Anonymous):
            if node.name.upper() not in _FUNCTIONS:
                raise _REFUSAL(f"{node.name[:100]} is no function of a query here", "read only the table that is open")
        elif type(node) not in _NODES:
            raise _REFUSAL(f"{node_name(node)} is no part of a SELECT here", "read only the table that is open")


def _check_relations(tree: exp.Expr, table_names: set[str]) -> None:
    names = table_names | {cte.alias for cte in tree.find_all(exp.CTE)}
    for relation in _relations(tree):
        if isinstance(relation, exp.Table) and isinstance(relation.this, exp.Identifier):
            if relation.name in names and not relation.db and not relation.catalog:
                continue
            raise _REFUSAL(
                f"there is no table {relation.sql(dialect=PolarsSQL)[:100]} here",
                f"ask {' or '.join(sorted(table_names))}, which is the table that is open",
            )
        if not isinstance(relation, exp.Subquery | exp.Query):
            raise _REFUSAL(
                f"{relation.sql(dialect=PolarsSQL)[:100]} is no table", "functions that make tables are not run here"
            )


def _relations(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Everything that rows come from: tables, and everything else in FROM or JOIN."""
    yield from tree.find_all(exp.Table)
    for clause in tree.find_all(exp.From, exp.Join):
        yield clause.this


def _condition(tree: exp.Expr) -> str | None:
    """The WHERE of a query over the table alone: its rows are the only ones that the query can see."""
    where = tree.args.get("where")
    clause = tree.args.get("from_")
    if not isinstance(tree, exp.Select) or where is None or clause is None or not isinstance(clause.this, exp.Table):
        return None
    if tree.args.get("with_") or tree.args.get("joins") or where.find(exp.Query):
        return None
    condition = where.this.copy()
    for column in condition.find_all(exp.Column):
        if column.table == clause.this.alias_or_name:
            column.set("table", None)
    return _print(condition)


def _is_rowwise(tree: exp.Expr) -> bool:
    clause = tree.args.get("from_")
    if not isinstance(tree, exp.Select) or clause is None or not isinstance(clause.this, exp.Table):
        return False
    if any(value for name, value in tree.args.items() if name not in ("expressions", "from_", "where", "limit")):
        return False
    return not any(
        isinstance(node, exp.Window | exp.Filter | exp.WithinGroup)
        or (isinstance(node, exp.Query) and node is not tree)
        or (isinstance(node, exp.Anonymous) and node.name.upper() in _AGGREGATES)
        for node in tree.walk()
    )


_VALUE_FUNCTIONS = frozenset(
    {
        "ABS", "ACOS", "ASIN", "ATAN", "ATAN2", "CBRT", "CEIL", "CEILING", "COS", "COT", "DEGREES", "DIV", "EXP",
        "FLOOR", "LN", "LOG", "LOG10", "LOG1P", "LOG2", "MOD", "PI", "POW", "POWER", "RADIANS", "ROUND", "SIGN",
        "SIN", "SQRT", "TAN", "TRUNC", "TRUNCATE", "BIT_AND", "BIT_COUNT", "BIT_NOT", "BIT_OR", "BIT_XOR",
        "BIT_LENGTH", "CHARACTER_LENGTH", "CHAR_LENGTH", "CONCAT", "CONCAT_WS", "DATE", "ENDS_WITH", "INITCAP",
        "LEFT", "LENGTH", "LOWER", "LPAD", "LTRIM", "NORMALIZE", "OCTET_LENGTH", "REGEXP_LIKE", "REPLACE",
        "REVERSE", "RIGHT", "RPAD", "RTRIM", "SPLIT_PART", "STARTS_WITH", "STRFTIME", "STRING_TO_ARRAY", "STRPOS",
        "STRPTIME", "SUBSTR", "SUBSTRING", "TIMESTAMP", "TRIM", "UPPER", "COALESCE", "GREATEST", "IF", "IFNULL",
        "LEAST", "NULLIF", "DATE_PART", "DATE_TRUNC", "YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND",
        "QUARTER", "WEEK", "DAYOFWEEK", "DAYOFYEAR", "NOW", "ARRAY_CONTAINS", "ARRAY_GET", "ARRAY_LENGTH",
        "ARRAY_LOWER", "ARRAY_MEAN", "ARRAY_REVERSE", "ARRAY_SUM", "ARRAY_TO_STRING", "ARRAY_UNIQUE", "ARRAY_UPPER",
    }
)  # fmt: skip

_AGGREGATES = frozenset(
    {
        "AVG", "CORR", "COUNT", "COVAR", "COVAR_POP", "COVAR_SAMP", "FIRST", "LAST", "MAX", "MEDIAN", "MIN",
        "QUANTILE_CONT", "QUANTILE_DISC", "STDDEV", "STDEV", "STDDEV_SAMP", "SUM", "VAR", "VARIANCE", "VAR_SAMP",
        "ARRAY_AGG", "STRING_AGG", "LISTAGG", "GROUP_CONCAT", "ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK",
        "CUME_DIST", "NTILE", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE",
    }
)  # fmt: skip
"""Functions of more than one row, those of windows included."""

_FUNCTIONS = _VALUE_FUNCTIONS | _AGGREGATES
"""Functions of polars' SQL that make no tables."""

_NODES: frozenset[type[exp.Expr]] = frozenset(
    {
        exp.Select, exp.Union, exp.Except, exp.Intersect, exp.Subquery, exp.With, exp.CTE, exp.From, exp.Join,
        exp.Table, exp.TableAlias, exp.Where, exp.Group, exp.Having, exp.Qualify, exp.Order, exp.Ordered,
        exp.Limit, exp.Offset, exp.Fetch, exp.Distinct, exp.Alias, exp.Column, exp.Identifier, exp.Star,
        exp.Literal, exp.HexString, exp.Boolean, exp.Null, exp.Paren, exp.Tuple, exp.And, exp.Or, exp.Not, exp.EQ,
        exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between,
        exp.Like, exp.ILike, exp.RegexpLike, exp.Exists, exp.Any, exp.All, exp.Add, exp.Sub, exp.Mul, exp.Div,
        exp.IntDiv, exp.Mod, exp.Pow, exp.Neg, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.DPipe, exp.Cast,
        exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Interval, exp.Var, exp.Case, exp.If, exp.Extract,
        exp.Substring, exp.Trim, exp.StrPosition, exp.Dot, exp.Window, exp.WindowSpec, exp.Filter, exp.WithinGroup,
        exp.Array, exp.Bracket, exp.CurrentDate, exp.CurrentTimestamp, exp.IgnoreNulls,
    }
)  # fmt: skip
"""Nodes of the syntax tree that a query may hold."""
