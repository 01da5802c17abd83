"""Every kind of finding has an id of its own, which programs and links may rely on."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONSTRUCTORS = {"Finding", "finding", "_finding", "of_actions", "of_commits", "of_files", "of_names"}
ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def test_ids_are_words_joined_by_hyphens_and_no_two_kinds_share_one() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "lakeview").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "inding" in source else ():
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CONSTRUCTORS):
                continue
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                places[first.value].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert len(places) > 100
    assert [at for name, at in places.items() if ID.fullmatch(name) is None] == []
    assert {name: at for name, at in places.items() if len(at) > 1} == {}
