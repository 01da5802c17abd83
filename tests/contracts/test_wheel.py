"""The wheel carries the app, so that an installed lakeview can serve it from any folder."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """The names of the files in a wheel built from this folder."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        return frozenset(wheel.namelist())


def test_every_page_and_the_settings_are_in_it(names: frozenset[str]) -> None:
    scripts = [ROOT / "app.py", ROOT / ".streamlit" / "config.toml", *(ROOT / "pages").rglob("*.py")]
    assert {f"lakeview/_app/{path.relative_to(ROOT).as_posix()}" for path in scripts} <= names


def test_every_module_is_in_it(names: frozenset[str]) -> None:
    modules = [path for path in (ROOT / "lakeview").rglob("*") if path.suffix in {".py", ".typed", ".properties"}]
    assert {path.relative_to(ROOT).as_posix() for path in modules} <= names
    assert "lakeview/py.typed" in names


def test_nothing_else_is_in_it(names: frozenset[str]) -> None:
    assert {name.split("/")[0] for name in names} == {"lakeview", "lakeview-0.1.0.dist-info", "pyspark_lakeview"}
    assert not [name for name in names if "secrets" in name or "__pycache__" in name]
