"""`import lakeview` is light: it loads what a table's log needs, and no engine, server, chart or store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

HEAVY = (
    "altair",
    "streamlit",
    "pyspark",
    "starlette",
    "uvicorn",
    "pandas",
    "numpy",
    "sqlglot",
    "s3fs",
    "gcsfs",
    "adlfs",
)


@pytest.fixture(scope="module")
def loaded() -> frozenset[str]:
    """The modules in a fresh process after `import lakeview`, with what it promises touched."""
    script = "import lakeview as lv, sys; lv.open_table, lv.find_tables, lv.errors; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return frozenset(done.stdout.split())


@pytest.mark.parametrize("library", HEAVY)
def test_importing_lakeview_does_not_load(library: str, loaded: frozenset[str]) -> None:
    assert "polars" in loaded, "the list of loaded modules is not what it seems"
    assert library not in loaded
