"""Names and first lines say what things are in the words of the field, as VOCABULARY of the project asks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py")), *sorted((ROOT / "lakeview").rglob("*.py"))]

PARTICIPLES = frozenset({
    "aside", "asked", "beside", "built", "chosen", "counted", "drawn", "found", "given", "gone", "got", "heard", "held",
    "kept", "known", "listed", "looked", "lost", "made", "meant", "mended", "missed", "named", "opened", "picked",
    "placed", "said", "seen", "sent", "shown", "spared", "taken", "thinned", "told", "travelling", "upkeep", "upkept",
    "used", "viewed", "wanted", "whatever", "whoever", "written",
})  # fmt: skip
"""A participle or adverb alone does not say of what: `asked_columns` does, `asked` does not."""

_PARTICIPLE = re.compile(r"[a-z]{2,}(ed|wn|ght|ept|eld|oken|iven|aken|itten)")

_NO_PARTICIPLES = frozenset({
    "down", "feed", "field", "height", "markdown", "midnight", "need", "right", "seed", "shutdown", "tight", "token",
    "weight",
})  # fmt: skip

_PARTICIPLES_WITH_REASON = {
    "created": "a property of snapshots, as DESIGN of the project names it",
    "violated": "a verdict of the audit",
    "unknown": "what a tree of conditions has no node for",
}
"""Of classes and functions, whose names are verbs with an object or nouns."""

ROOMS_OF_VARIABLES = frozenset({
    "lakeview/app", "lakeview/charts", "lakeview/cli", "lakeview/demo", "lakeview/discovery", "lakeview/iceberg",
    "lakeview/inspection", "lakeview/jobs", "lakeview/model", "lakeview/predicates", "lakeview/sharing",
    "lakeview/storage", "lakeview/views",
})  # fmt: skip
"""Rooms whose parameters and variables are no participles either."""

RIDDLES = re.compile(
    r"\b(whoever|whatever|nobody|somebody|anew|upkeep|upkept|spares?|spared|clean-ups?)\b", re.IGNORECASE
)
"""Words that first lines and texts replace by the thing or the mechanism."""

Name = tuple[int, str]


def definitions(tree: ast.Module) -> Iterator[Name]:
    """The classes, functions, parameters, variables and attributes that a source defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            yield from (
                (each.lineno, each.arg) for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            )
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            yield node.lineno, node.name


def variables(tree: ast.Module) -> Iterator[Name]:
    """The parameters and local variables of functions and comprehensions, and a module's own variables."""
    fields = {
        id(each.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for each in node.body
        if isinstance(each, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields:
            yield node.lineno, node.id
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            yield node.lineno, node.name


def bare(name: str) -> bool:
    return name.strip("_").lower() in PARTICIPLES


def is_participle(name: str) -> bool:
    """Whether a name is a past participle alone."""
    word = name.strip("_").lower()
    is_one_word = name.strip("_")[1:].islower() and "_" not in name.strip("_")
    return (
        is_one_word
        and bool(_PARTICIPLE.fullmatch(word))
        and word not in _NO_PARTICIPLES | _PARTICIPLES_WITH_REASON.keys()
    )


def faults(source: str, *, of_variables: bool = True) -> list[str]:
    tree = ast.parse(source)
    names = [f"line {line}: {name}" for line, name in definitions(tree) if bare(name)]
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]
    others = [(n.lineno, n.name) for n in blocks] + (list(variables(tree)) if of_variables else [])
    names += [f"line {line}: {name}" for line, name in others if is_participle(name) and not bare(name)]
    owners = (n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef))
    lines = [(getattr(owner, "lineno", 1), (ast.get_docstring(owner) or "").partition("\n")[0]) for owner in owners]
    return [*names, *(f"line {at}: {match[0]}" for at, line in lines if (match := RIDDLES.search(line)))]


def room(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:2]) if parts[0] == "lakeview" and len(parts) > 2 else parts[0]


@pytest.mark.parametrize("name", sorted({room(path) for path in FILES}))
def test_names_and_first_lines_use_the_words_of_the_field(name: str) -> None:
    files = [path for path in FILES if room(path) == name]
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    messages = [
        f"{path.relative_to(ROOT)} {fault}"
        for path, text in texts.items()
        for fault in faults(text, of_variables=name in ROOMS_OF_VARIABLES)
    ]
    messages += [f"{path.relative_to(ROOT)}: the module's name" for path in files if bare(path.stem)]
    assert messages == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("def told() -> None: ...", "line 1: told"),
        ("def count(asked: int) -> None: ...", "line 1: asked"),
        ("class Facts:\n    kept: int", "line 2: kept"),
        ("_held = {}", "line 1: _held"),
        ("def read() -> None:\n    told = 1", "line 2: told"),
        ("def read() -> None:\n    state.found = 1", "line 2: found"),
        ("match state:\n    case [shown]: ...", "line 2: shown"),
        ("def _checked(rows: int) -> int: ...", "line 1: _checked"),
        ("def join(left: int, *, sorted_: int) -> None: ...", "line 1: sorted_"),
        ("def read() -> int:\n    return sum(added for added in FILES)", "line 2: added"),
        ("sizes = map(lambda joined: 1, FILES)", "line 1: joined"),
        ("class Located: ...", "line 1: Located"),
        ('"""Whoever writes the table."""', "line 1: Whoever"),
    ],
)
def test_a_riddle_is_reported(source: str, fault: str) -> None:
    assert faults(source) == [fault]


def test_names_with_an_object_are_fine() -> None:
    assert faults("def read_files(asked_columns: int) -> None: ...\nkept_files = 1") == []
