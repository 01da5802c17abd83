"""No modules of lakeview import each other in a circle, by imports inside functions and for types alone either."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def modules() -> dict[str, Path]:
    """Name of each module of the package -> its file."""
    names = {path: list(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / "lakeview").rglob("*.py")}
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): path for path, parts in names.items()}


def imported_modules(source: str, own: Mapping[str, object]) -> Iterator[str]:
    """The modules of `own` that a source imports, wherever it does: `from a import b` is a.b where that is a module,
    and a text given to import_module is one as well."""
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "an import names its module in full"
            module = node.module or ""
            members = [f"{module}.{alias.name}" for alias in node.names]
            names = [member if member in own else module for member in members]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        yield from (name for name in names if name in own)


def circle(imports: Mapping[str, set[str]]) -> list[str]:
    """Modules that import each other, from one of them back to it; empty without a circle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_no_modules_import_each_other_in_a_circle() -> None:
    own = modules()
    imports = {name: set(imported_modules(path.read_text(encoding="utf-8"), own)) for name, path in own.items()}
    assert " -> ".join(circle(imports)) == ""


@pytest.mark.parametrize(
    "source",
    [
        "import a.low",
        "from a import low",
        "from a.low import Name",
        "def f():\n    from a.low import Name",
        "if TYPE_CHECKING:\n    from a.low import Name",
        "importlib.import_module('a.low')",
    ],
)
def test_a_circle_is_reported_however_its_modules_are_imported(source: str) -> None:
    own = {"a": "", "a.low": "from a.high import Other", "a.high": source}
    imports = {name: set(imported_modules(text, own)) for name, text in own.items()}
    assert set(circle(imports)) == {"a.low", "a.high"}
