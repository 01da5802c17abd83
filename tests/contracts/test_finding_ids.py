"""Every kind of finding has an id of its own, which programs and links may rely on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONSTRUCTORS = {"Finding", "finding", "_finding"}
ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def built() -> Iterator[tuple[str, str]]:
    """(id, where) of every finding that is built with an id as a literal."""
    for path in sorted((ROOT / "lakeview").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CONSTRUCTORS):
                continue
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value, f"{path.relative_to(ROOT)}:{node.lineno}"


def test_ids_are_words_joined_by_hyphens() -> None:
    assert len(list(built())) > 100
    assert [place for name, place in built() if ID.fullmatch(name) is None] == []


def test_no_two_kinds_share_an_id() -> None:
    places: dict[str, list[str]] = {}
    for name, place in built():
        places.setdefault(name, []).append(place)
    assert {name: at for name, at in places.items() if len(at) > 1} == {}
