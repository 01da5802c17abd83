"""A folder of lakeview/app that bears a page's name holds parts of that page: only the page and the folder import
it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APP = ROOT / "lakeview" / "app"
PAGES = {path.stem: path for path in (ROOT / "pages").rglob("*.py")}
FOLDERS = {path.parent.name for path in APP.glob("*/__init__.py")} & set(PAGES)
READERS = [*PAGES.values(), ROOT / "app.py", *(ROOT / "lakeview").rglob("*.py")]


def imported_modules(source: str) -> Iterator[str]:
    """The modules that a source may import: of `from a import b` both a and a.b, also as a text given to
    import_module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
            yield from (one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str))


def foreign_folders(source: str, own: str | None) -> set[str]:
    """The page folders that a source imports from, but for its own."""
    parts = (module.split(".") for module in imported_modules(source))
    return {p[2] for p in parts if p[:2] == ["lakeview", "app"] and len(p) > 2 and p[2] in FOLDERS - {own}}


def page_of(path: Path) -> str | None:
    """The page to which a file belongs, None for what pages share."""
    if path in PAGES.values():
        return path.stem
    if APP in path.parents and path.relative_to(APP).parts[0] in FOLDERS:
        return path.relative_to(APP).parts[0]
    return None


def test_a_pages_parts_are_imported_by_that_page_only() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in READERS}
    folders = {
        str(path.relative_to(ROOT)): foreign_folders(source, page_of(path))
        for path, source in sources.items()
        if "lakeview.app" in source
    }
    assert {path: foreign for path, foreign in folders.items() if foreign} == {}


def test_pages_have_folders() -> None:
    assert {"overview", "timeline", "schema", "files", "pruning", "data", "quality"} <= FOLDERS


@pytest.mark.parametrize(
    ("source", "own", "foreign"),
    [
        ("from lakeview.app.files import panels", "overview", {"files"}),
        ("from lakeview.app.files.panels import layout", None, {"files"}),
        ("from lakeview.app import files", "data", {"files"}),
        ("import lakeview.app.quality.panels", "data", {"quality"}),
        ("import_module('lakeview.app.quality.panels')", None, {"quality"}),
        ("from lakeview.app.files import panels", "files", set()),
        ("from lakeview.app import cache, commits", "files", set()),
    ],
)
def test_a_foreign_part_is_found(source: str, own: str | None, foreign: set[str]) -> None:
    assert foreign_folders(source, own) == foreign
