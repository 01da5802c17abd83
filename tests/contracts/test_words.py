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
    "unknown", "weight",
})  # fmt: skip

_FUNCTIONS_WITH_REASON = {
    "created": "a property of snapshots, as DESIGN of the project names it",
    "violated": "a verdict of the audit",
}

_FIELDS_WITH_REASON = {
    "added": "a column of FILE_ACTIONS",
    "blocked": "a key of the configuration of a server",
    "broken": "a column of LAKE",
    "checked": "a key of the rules of engines",
    "created": "a property of tables as DESIGN of the project names it, and a key of the file of tokens",
    "dropped": "a column of the query that counts rows",
    "expected": "a column of AUDIT",
    "judged": "a column of LAKE",
    "modified": "a column of listings",
    "muted": "a colour, as themes call it",
    "quarantined": "a column of the query that counts rows",
    "removed": "a key of domainMetadata",
    "retained": "a column of LAKE",
    "revoked": "a key of the file of tokens",
    "started": "a key of what a publication records in its commit",
}
"""Of data classes: the names of keys in files, and of columns in frames."""

RIDDLES = re.compile(
    r"\b(whoever|whatever|nobody|somebody|anew|upkeep|upkept|spares?|spared|clean-ups?)\b", re.IGNORECASE
)
"""Words that first lines and texts replace by the thing or the mechanism."""

Node = ast.stmt | ast.expr | ast.arg | ast.pattern | ast.ExceptHandler


def definitions(tree: ast.Module) -> Iterator[tuple[Node, str]]:
    """The classes, functions, parameters, variables, fields and attributes that a source defines."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.ClassDef(name=name)
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.arg(arg=name)
            ):
                yield node, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
                yield node, name


def bare(name: str) -> bool:
    return name.strip("_").lower() in PARTICIPLES


def is_participle(name: str) -> bool:
    """Whether a name is a past participle alone."""
    word = name.strip("_")
    is_one_word = word[1:].islower() and "_" not in word
    return is_one_word and bool(_PARTICIPLE.fullmatch(word.lower())) and word.lower() not in _NO_PARTICIPLES


def faults(source: str) -> list[str]:
    tree = ast.parse(source)
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    fields = {each.target for block in blocks for each in block.body if isinstance(each, ast.AnnAssign)}
    names = []
    for node, name in definitions(tree):
        reasons = _FUNCTIONS_WITH_REASON if isinstance(node, ast.FunctionDef) else {}
        if bare(name) or (is_participle(name) and name not in (_FIELDS_WITH_REASON if node in fields else reasons)):
            names.append(f"line {node.lineno}: {name}")
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
    messages = [f"{path.relative_to(ROOT)} {fault}" for path, text in texts.items() for fault in faults(text)]
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
        ("class Facts:\n    ended: int", "line 2: ended"),
        ("def read() -> None:\n    state.removed = 1", "line 2: removed"),
        ('"""Whoever writes the table."""', "line 1: Whoever"),
    ],
)
def test_a_riddle_is_reported(source: str, fault: str) -> None:
    assert faults(source) == [fault]


def test_names_with_an_object_are_fine() -> None:
    assert faults("def read_files(asked_columns: int) -> None: ...\nkept_files = 1") == []
