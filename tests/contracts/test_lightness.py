"""`import lakeview` is light, and readers load no engine, server, chart or store before it is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

ENDS = ("altair", "pandas", "pyspark", "starlette", "streamlit", "uvicorn")
STORES = ("botocore", "httpx", "obstore")
READING = ("fsspec", "numpy", "pyarrow", "sqlglot")

IMPORT = "import lakeview as lv, sys"
TOUCH = "lv.open_table, lv.find_tables, lv.errors, lv.Snapshot"
SHOW = "print(*sys.modules, sep='\\n')"


@cache
def loaded(*statements: str) -> frozenset[str]:
    """The modules in a fresh process after these statements."""
    done = subprocess.run(
        [sys.executable, "-c", "; ".join(statements)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return frozenset(done.stdout.split())


@pytest.mark.parametrize("library", [*ENDS, *STORES, *READING])
def test_importing_lakeview_does_not_load(library: str) -> None:
    assert "polars" in loaded(IMPORT, SHOW), "the list of loaded modules is not what it seems"
    assert library not in loaded(IMPORT, SHOW)


@pytest.mark.parametrize("library", [*ENDS, *STORES])
def test_the_readers_do_not_load(library: str) -> None:
    assert "lakeview.discovery" in loaded(IMPORT, TOUCH, SHOW), "the list of loaded modules is not what it seems"
    assert library not in loaded(IMPORT, TOUCH, SHOW)


@pytest.mark.parametrize("statement", ["lv.open_table", "import lakeview.spark.datasource"])
def test_opening_a_delta_table_loads_no_writer_and_no_other_format(statement: str) -> None:
    modules = loaded(IMPORT, statement, SHOW)
    assert "lakeview.delta.table" in modules, "the list of loaded modules is not what it seems"
    others = {"lakeview.delta.write.writer", "lakeview.iceberg.table", "lakeview.sharing.client.table", "sqlglot"}
    assert not others & modules


def test_changing_rows_does_not_load_pandas(tmp_path: Path) -> None:
    changes = """
import sys
import polars as pl
rows = pl.DataFrame({"id": [1, 2, 3, 4], "part": ["a", "b", "a", ""], "value": [1.0, 2.0, 3.0, None]})
for name, parts in (("plain", []), ("parts", ["part"])):
    table = lv.create_table(f"FOLDER/{name}", rows.to_arrow().schema, partition_by=parts)
    table.append(rows)
    table.delete("id = 1")
    table.update({"value": "5.0"}, "id = 2")
    merge = table.merge(rows.with_columns(id=pl.col("id") + 2), on="id")
    merge.when_matched_update({"value": "source.value"}).when_not_matched_insert().execute()
    assert table.scan().collect().height == 5, table.scan().collect()
print("done", "pandas" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT + changes.replace("FOLDER", tmp_path.as_posix())],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "done False"


def test_the_app_settles_how_memory_is_given_back_before_any_allocator_is_loaded() -> None:
    early = """
import builtins, os, runpy, sys
own = builtins.__import__
def watched(name, *more):
    if name.partition(".")[0] in ("polars", "pyarrow", "lakeview") and "MIMALLOC_PURGE_DELAY" not in os.environ:
        raise SystemExit(f"{name} is loaded before the app says how")
    return own(name, *more)
builtins.__import__ = watched
runpy.run_path("app.py", run_name="app")
import polars
print("settled", os.environ["_RJEM_MALLOC_CONF"])
"""
    fresh = {name: value for name, value in os.environ.items() if name != "MIMALLOC_PURGE_DELAY"}
    done = subprocess.run(
        [sys.executable, "-c", early], cwd=ROOT, capture_output=True, text=True, check=True, env=fresh
    )
    assert done.stdout.strip().endswith("dirty_decay_ms:300,muzzy_decay_ms:0")
