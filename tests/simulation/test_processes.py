"""Many processes on one table, and processes that are killed: the counts add up, and the table opens.

`LAKEVIEW_PROCESSES_SECONDS=60` has the processes work for longer.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.config import Config
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import NotATableError
from lakeview.model.schema import Schema
from tests.builders.findings import GRAVE
from tests.builders.object_server import object_server
from tests.builders.opening import open_delta_table

ROOT = Path(__file__).parents[2]
SCHEMA = Schema((Field("id", PrimitiveType("long")), Field("v", PrimitiveType("long"))))
SCHEMA_OF_ROWS = {"id": pl.Int64(), "v": pl.Int64()}
SECONDS = float(os.environ.get("LAKEVIEW_PROCESSES_SECONDS", "2"))
FOREIGN = 5_000_000


def run(code: list[str], **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS + 600,
        check=False,
        **settings,
    )


def together(address: str, processes: int, options: dict[str, Any]) -> tuple[set[int], set[int]]:
    """Processes that work on a table at once; the ids that are live and merged by their word."""
    done = run(["-m", "tests.simulation.processes", address, str(processes), str(SECONDS), json.dumps(options)])
    assert done.returncode == 0, done.stderr[-2000:]
    words = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(words) == processes
    return {i for word in words for i in word["live"]}, {i for word in words for i in word["merged"]}


@pytest.mark.slow
def test_what_eight_processes_did_adds_up(tmp_path: Path) -> None:
    address = str(tmp_path / "table")
    lv.create_table(address, SCHEMA)
    with ThreadPoolExecutor(1) as threads:
        foreign = threads.submit(_deltalake_appends, address, 10)
        live, merged = together(address, 8, {})
        appended = foreign.result()
    expected = sorted(live | merged | appended)
    table = lv.open_table(address)
    assert sorted(table.scan().collect()["id"]) == expected, "each row once"
    assert sorted(deltalake.DeltaTable(address).to_pyarrow_table()["id"].to_pylist()) == expected
    names = [f"{address}/{path}" for path in table.snapshot().files["path"]]
    assert duckdb.sql(f"SELECT count(*) FROM read_parquet({names})").fetchall() == [(len(expected),)]
    assert [f for f in table.check() if f.severity in GRAVE] == []


@pytest.mark.slow
def test_what_processes_did_on_s3_adds_up(tmp_path: Path) -> None:
    with object_server() as server:
        server.buckets["lake"] = {}
        address, options = "s3://lake/table", server.options("s3")
        lv.create_table(address, SCHEMA, storage_options=options)
        with ThreadPoolExecutor(1) as threads:
            foreign = threads.submit(_deltalake_appends, address, 3, options)
            live, merged = together(address, 4, options)
            appended = foreign.result()
        expected = sorted(live | merged | appended)
        table = lv.open_table(address, storage_options=options)
        assert sorted(table.scan().collect()["id"]) == expected, "each row once"
        other = deltalake.DeltaTable(address, storage_options=options)
        assert sorted(other.to_pyarrow_table()["id"].to_pylist()) == expected
        assert [f for f in table.check() if f.severity in GRAVE] == []
        for path in table.snapshot().files["path"]:
            (tmp_path / path).write_bytes(server.buckets["lake"][f"table/{path}"].data)
    assert duckdb.sql(f"SELECT count(*) FROM read_parquet('{tmp_path}/*.parquet')").fetchall() == [(len(expected),)]


def _deltalake_appends(address: str, times: int, options: dict[str, str] | None = None) -> set[int]:
    """Appends by another engine, meanwhile."""
    outcomes = set()
    for number in range(times):
        rows = pl.DataFrame({"id": [FOREIGN + number], "v": [0]}).to_arrow()
        deltalake.write_deltalake(address, rows, mode="append", storage_options=options)
        outcomes.add(FOREIGN + number)
    return outcomes


KILLS = """
import os, signal, sys
from datetime import timedelta
import polars as pl
import lakeview as lv
from tests.simulation.processes import import_all

SCHEMA = {"id": pl.Int64, "v": pl.Int64}
last = int(sys.argv[1])

def work(operation, address, step):
    calls = 0
    def dying(real):
        def call(*arguments, **options):
            nonlocal calls
            calls += 1
            if calls == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)
        return call
    place = f"{address}-{step}"
    table = None if operation in ("create", "convert") else lv.open_table(place)
    for name in ("link", "replace", "unlink"):  # what puts a file in its place, and what takes it away
        setattr(os, name, dying(getattr(os, name)))
    if operation == "append":
        table.append(pl.DataFrame({"id": [9], "v": [9]}))
    elif operation == "delete":
        table.delete("id = 2")
    elif operation == "merge":
        source = pl.DataFrame({"id": [2, 8], "v": [22, 80]})
        table.merge(source, ["id"]).when_matched_update().when_not_matched_insert().execute()
    elif operation == "optimize":
        table.optimize()
    elif operation == "checkpoint":
        table.checkpoint()
    elif operation == "vacuum":
        table.vacuum(timedelta(0), dry_run=False, allow_short_retention=True)
    elif operation == "replace":
        table.replace_table(SCHEMA, properties={"delta.checkpointInterval": "5"})
    elif operation == "create":
        lv.create_table(place, SCHEMA)
    elif operation == "convert":
        lv.convert_to_delta(place)
    elif operation in ("clone", "deep"):
        table.clone(f"{place}/../{operation}-{step}", deep=operation == "deep")
    os._exit(0)

import_all()
for operation, address in zip(sys.argv[2::2], sys.argv[3::2]):
    for step in range(1, last + 1):
        child = os.fork()  # nothing has been read yet: there are no threads
        if not child:
            work(operation, address, step)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(operation, code, flush=True)
        if code != -signal.SIGKILL:
            break
"""
MOST_STEPS = 16

ENDS = {
    "append": [(1, 10), (2, 20), (3, 30), (9, 9)], "delete": [(1, 10), (3, 30)],
    "merge": [(1, 10), (2, 22), (3, 30), (8, 80)], "replace": list[tuple[int, int]](),
    "optimize": None, "checkpoint": None, "vacuum": None,
}  # fmt: skip
"""The rows after each operation, None where they stay."""
BEFORE = [(1, 10), (2, 20), (3, 30)]


def killable(folder: Path, name: str) -> str:
    """Three rows in two files, one file that a vacuum deletes; the next commit makes a checkpoint."""
    address = str(folder / name)
    properties = {"delta.checkpointInterval": "5", "delta.enableDeletionVectors": "true"}
    table = lv.create_table(address, SCHEMA, properties=properties)
    assert isinstance(table, DeltaTable)
    table.append(pl.DataFrame({"id": [0], "v": [0]}))
    table.delete("id = 0")
    table.append(pl.DataFrame({"id": [1, 2], "v": [10, 20]}))
    table.append(pl.DataFrame({"id": [3], "v": [30]}))
    return address


def rows(table: Any, version: int | None = None) -> list[tuple[int, int]]:
    return sorted(table.scan(version).collect().iter_rows())


CREATED = {"create": list[tuple[int, int]](), "convert": BEFORE, "clone": BEFORE, "deep": BEFORE}
"""The rows of each new table."""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, int]]:
    """Of each operation a folder with the tables `whole-1`, `whole-2`, ..., at each of which a process was killed at
    the step of that number, and the number of the last. One program forks them all: it takes longer to import than they
    do to work."""
    parent = tmp_path_factory.mktemp("killed")
    table = killable(parent, "table")
    words = []
    for operation in (*ENDS, *CREATED):
        whole = parent / operation / "whole"
        if operation in ("create", "convert"):
            whole.mkdir(parents=True)
        else:
            shutil.copytree(table, whole)
        if operation == "convert":
            pl.DataFrame(BEFORE, SCHEMA_OF_ROWS, orient="row").write_parquet(whole / "rows.parquet")
        for step in range(1, MOST_STEPS + 1):
            shutil.copytree(whole, f"{whole}-{step}")
        words += [operation, str(whole)]
    codes: dict[str, list[str]] = {operation: [] for operation in words[::2]}
    done = run(["-c", KILLS, str(MOST_STEPS), *words])
    assert done.returncode == 0, done.stderr[-2000:]
    for line in done.stdout.splitlines():
        operation, code = line.split()
        codes[operation].append(code)
    assert {ended[-1] for ended in codes.values()} == {"0"}, "every step was its last once"
    assert min(map(len, codes.values())) > 2
    return {operation: (parent / operation, len(ended) - 1) for operation, ended in codes.items()}


@pytest.mark.slow
@pytest.mark.parametrize("operation", ENDS)
def test_a_process_killed_at_any_step_leaves_the_old_or_the_new_table(
    killed: dict[str, tuple[Path, int]], operation: str
) -> None:
    folder, last = killed[operation]
    for step in range(1, last + 1):
        address = str(folder / f"whole-{step}")
        table = open_delta_table(address)
        after = BEFORE if ENDS[operation] is None else ENDS[operation]
        assert rows(table) == (BEFORE if table.latest_version == 4 else after), step
        assert rows(table, 4) == BEFORE, step
        findings = table.check()
        assert [f for f in findings if f.severity in GRAVE] == [], step
        words = " ".join(map(str, findings))
        assert [name for name in left_behind(Path(address)) if name not in words] == [], step
        table.append(pl.DataFrame({"id": [7], "v": [7]}))
        assert (7, 7) in rows(lv.open_table(address))


@pytest.mark.slow
@pytest.mark.parametrize("operation", CREATED)
def test_a_process_killed_while_it_makes_a_table_leaves_none_or_all_of_it(
    killed: dict[str, tuple[Path, int]], operation: str
) -> None:
    folder, last = killed[operation]
    is_clone = operation in ("clone", "deep")
    for step in range(1, last + 1):
        whole = str(folder / f"whole-{step}")
        address = str(folder / f"{operation}-{step}") if is_clone else whole
        try:
            table = lv.open_table(address, config=Config(roots=(str(folder),)))
        except NotATableError:
            source = lv.open_table(whole) if is_clone else None
            again(operation, address, source)  # what the process left does not stand in the way
            table = lv.open_table(address, config=Config(roots=(str(folder),)))
        assert rows(table) == CREATED[operation], step
        findings = table.check()
        assert [f for f in findings if f.severity in GRAVE] == [], step
        leftovers = [path.name for path in Path(address).rglob(".*.tmp")]
        leftovers += [] if operation == "clone" else left_behind(Path(address))
        words = " ".join(map(str, findings))  # of many files the first ones are named
        assert (
            f"{len(leftovers)} files in the folder" in words or [name for name in leftovers if name not in words] == []
        ), step


def again(operation: str, address: str, source: Any) -> None:
    if operation == "create":
        lv.create_table(address, SCHEMA)
    elif operation == "convert":
        lv.convert_to_delta(address)
    else:
        source.clone(address, deep=operation == "deep")


def left_behind(folder: Path) -> list[str]:
    """Data files and temporary files of the folder that no version of the table names."""
    log = "".join(path.read_text() for path in (folder / "_delta_log").glob("*.json"))
    return [path.name for path in folder.glob("*parquet*") if path.name not in log]
