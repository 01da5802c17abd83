"""No function has a complexity above 15 (boolean operators and comprehensions count), and no file is too long."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py")), *sorted((ROOT / "lakeview").rglob("*.py"))]
LIMIT = 15
MOST_LINES = 300
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def branches(node: ast.AST) -> int:
    """The decisions of a statement or an expression, those of functions in it left out: they count for themselves."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return 0
        case ast.If() | ast.IfExp() | ast.Assert():
            own = 1
        case ast.For() | ast.AsyncFor() | ast.While():
            own = 1 + bool(node.orelse)
        case ast.Try() | ast.TryStar():
            own = len(node.handlers) + bool(node.orelse)
        case ast.BoolOp():
            own = len(node.values) - 1
        case ast.comprehension():
            own = 1 + len(node.ifs)
        case ast.Match():
            own = sum(not (isinstance(c.pattern, ast.MatchAs) and c.pattern.pattern is None) for c in node.cases)
        case _:
            own = 0
    return own + sum(map(branches, ast.iter_child_nodes(node)))


def complexities(source: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, FUNCTIONS):
            yield node.name, 1 + sum(map(branches, node.body))


def test_no_file_is_too_long() -> None:
    lines = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n") for path in FILES}
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}


def test_no_function_is_too_complex() -> None:
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in FILES}
    too_complex = [
        f"{path} {name}: {count}" for path, text in texts.items() for name, count in complexities(text) if count > LIMIT
    ]
    assert too_complex == []


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("pass", 1),
        ("return a and b or c", 3),
        ("return [x for x in y if x if z]", 4),
        ("for x in y: pass\n    else: pass", 3),
        ("try: pass\n    except A: pass\n    except B: pass\n    else: pass", 4),
        ("match x:\n        case 1: pass\n        case _: pass", 2),
        ("def inner(): return 1 if x else 2", 1),
        ("assert x if y else z", 3),
    ],
)
def test_decisions_are_counted(body: str, count: int) -> None:
    assert next(iter(complexities(f"def f():\n    {body}")))[1] == count
