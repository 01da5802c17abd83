"""app.py and pages/ only select, call a view and draw: their syntax trees hold no arithmetic and no format's name.

They are scripts, not a package, so import-linter cannot see them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "pages"
SCRIPTS = [path for path in (ROOT / "app.py", *sorted(PAGES.rglob("*.py"))) if path.is_file()]

LIBRARIES = ("streamlit", "lakeview.app", "lakeview.views", "lakeview.charts", "lakeview.model.errors")
"""What a page may import, beside what only gives names to types."""

STANDARD = ("__future__", "typing", "collections.abc", "functools")
OF_THE_START = {"app.py": ["imports os"]}
"""What the first script to run may besides: it tells allocators what they read when lakeview is imported."""
FORMATS = ("delta", "iceberg")
MOST_LINES = 100
ARITHMETIC = (ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult, ast.LShift, ast.RShift)


def faults(source: str) -> list[str]:
    """What a page must not hold, one sentence each."""
    tree = ast.parse(source)
    messages = [f"line {line}: imports {name}" for line, name in imports(tree) if not allowed(name)]
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign) and is_arithmetic(node):
            messages.append(f"line {node.lineno}: arithmetic")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not is_docstring(tree, node):
            messages += [
                f"line {node.lineno}: names the format {name}" for name in FORMATS if name in node.value.lower()
            ]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"sum", "round", "abs"}:
            messages.append(f"line {node.lineno}: arithmetic ({node.func.id})")
    lines = len(source.splitlines())
    return [*messages, f"{lines} lines, at most {MOST_LINES}"] if lines > MOST_LINES else messages


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "lakeview":
            yield from ((node.lineno, f"lakeview.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or "."


def allowed(name: str) -> bool:
    return name in STANDARD or any(name == library or name.startswith(f"{library}.") for library in LIBRARIES)


def is_arithmetic(node: ast.BinOp | ast.AugAssign) -> bool:
    """Anything but `|` and `&` (types, sets) and joining texts with `+`."""
    if isinstance(node.op, ARITHMETIC):
        return True
    if not isinstance(node.op, ast.Add):
        return False
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    return not any(is_text(side) for side in sides)


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_docstring(tree: ast.Module, constant: ast.Constant) -> bool:
    owners = (n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.FunctionDef | ast.ClassDef))
    return any(
        owner.body and isinstance(owner.body[0], ast.Expr) and owner.body[0].value is constant for owner in owners
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=[str(path.relative_to(ROOT)) for path in SCRIPTS])
def test_a_page_only_selects_calls_and_draws(script: Path) -> None:
    messages = [fault.partition(": ")[2] for fault in faults(script.read_text(encoding="utf-8"))]
    assert messages == OF_THE_START.get(script.name, [])


def test_there_are_pages() -> None:
    assert (ROOT / "app.py").is_file()
    assert [path for path in SCRIPTS if PAGES in path.parents], "pages/ holds no page"


def test_pages_lie_in_folders() -> None:
    """A flat pages/*.py is run alone, without app.py, when a fresh server's first request is a deep link."""
    assert [path.name for path in SCRIPTS if path.parent == PAGES] == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("import polars as pl", "line 1: imports polars"),
        ("from lakeview import delta", "line 1: imports lakeview.delta"),
        ("from lakeview.model.snapshot import Snapshot", "line 1: imports lakeview.model.snapshot"),
        ("x = size / 1024", "line 1: arithmetic"),
        ("x = 1 + 2", "line 1: arithmetic"),
        ("x -= y", "line 1: arithmetic"),
        ("x = sum(sizes)", "line 1: arithmetic (sum)"),
        ("if table.format == 'delta':\n    pass", "line 1: names the format delta"),
        ("x = f'an {y} Iceberg table'", "line 1: names the format iceberg"),
        ("\n" * 101, "101 lines, at most 100"),
    ],
)
def test_a_fault_is_told(source: str, fault: str) -> None:
    assert faults(source) == [fault]


@pytest.mark.parametrize(
    "source",
    [
        '"""A page about Delta tables, says its docstring."""',
        "import streamlit as st\nfrom lakeview import charts, views\nfrom lakeview.app import selection",
        "x: int | None = None",
        "x = 'a' + name",
        "x = f'{rows} rows'",
    ],
)
def test_what_pages_need_is_allowed(source: str) -> None:
    assert faults(source) == []
