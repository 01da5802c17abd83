"""polars reads SQL in two places, and only what was printed from a checked syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

READERS = {
    ("lakeview/predicates/condition.py", "sql_expr"),
    ("lakeview/app/query/worker.py", "SQLContext"),
}
NAMES = {"sql", "sql_expr", "SQLContext"}
"""What reads SQL in polars: functions, the context, and a method of frames."""


def uses(text: str) -> Iterator[str]:
    """Names of polars' SQL readers that a module calls, imports or passes on; those of its own syntax trees aside."""
    for node in ast.walk(ast.parse(text)) if "sql" in text.lower() else ():
        if isinstance(node, ast.Attribute) and node.attr in NAMES - {"sql"}:
            yield node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sql":
            # the method of a syntax tree prints, and takes the dialect by name; that of a session is Spark's
            of_session = isinstance(node.func.value, ast.Name) and node.func.value.id == "spark"
            if not of_session and not any(keyword.arg == "dialect" for keyword in node.keywords):
                yield "sql"
        elif isinstance(node, ast.ImportFrom) and node.module == "polars":
            yield from (alias.name for alias in node.names if alias.name in NAMES)


def uses_of_polars_sql() -> set[tuple[str, str]]:
    files = [ROOT / "app.py", *(ROOT / "pages").rglob("*.py"), *(ROOT / "lakeview").rglob("*.py")]
    return {(str(file.relative_to(ROOT)), name) for file in files for name in uses(file.read_text(encoding="utf-8"))}


def test_sql_is_read_by_polars_in_two_places() -> None:
    assert uses_of_polars_sql() == READERS


def test_a_new_reader_of_sql_is_seen() -> None:
    assert list(uses("import polars as pl\npl.sql_expr(where)")) == ["sql_expr"]
    assert list(uses("rows.lazy().sql('SELECT 1')")) == ["sql"]
    assert list(uses("from polars import SQLContext")) == ["SQLContext"]
    assert list(uses("spark.sql('SELECT 1')")) == []
