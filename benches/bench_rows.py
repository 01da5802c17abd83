"""Rows of plain Delta tables: lakeview beside polars' scan_delta, deltalake (pyarrow dataset) and DuckDB's extension.

    PYTHONPATH=. python benches/bench_rows.py [--rounds 5] [--rows 2000000] [--folder build/bench-tables]

Each engine opens the table and gives the rows as Arrow or polars columns, by turns in one process. Number of rows, and
a sum, have to agree before anything is timed.
"""

from __future__ import annotations

import lakeview as lv  # before pyarrow: Arrow's allocator is chosen there

# isort: split

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import deltalake
import duckdb
import duckdb_extension_delta
import numpy as np
import polars as pl
import pyarrow as pa

WIDTH = 120
SMALL_FILES = 1_000
FILES = 8


@dataclass(frozen=True)
class Task:
    """A query in the words of each engine; `check`: a column of numbers, whose sums are compared."""

    name: str
    table: str
    polars: Callable[[pl.LazyFrame], pl.LazyFrame]
    sql: str
    arrow: Callable[[Any], pa.Table]
    check: str


def _plain(dataset: Any, columns: list[str] | None = None, where: Any = None) -> pa.Table:
    return dataset.to_table(columns=columns, filter=where)


def tasks(rows: int) -> list[Task]:
    """What is measured; a filter keeps a fiftieth of the rows, which lie together."""
    import pyarrow.dataset as ds

    low, high = rows // 2, rows // 2 + rows // 50
    where = pl.col("id").is_between(low, high)
    arrow_where = (ds.field("id") >= low) & (ds.field("id") <= high)
    inside = {"a": ds.field("point", "a")}
    return [
        Task("full scan", "narrow", lambda f: f, "SELECT * FROM t", _plain, "id"),
        Task("filtered scan", "narrow", lambda f: f.filter(where), f"SELECT * FROM t WHERE id BETWEEN {low} AND {high}",
             lambda d: _plain(d, where=arrow_where), "id"),
        Task("one column of 120", "wide", lambda f: f.select("c7"), "SELECT c7 FROM t",
             lambda d: _plain(d, ["c7"]), "c7"),
        Task("a field inside a struct", "narrow", lambda f: f.select(pl.col("point").struct.field("a")),
             "SELECT point.a AS a FROM t", lambda d: d.to_table(columns=inside), "a"),
        Task("one partition of 20", "partitioned", lambda f: f.filter(pl.col("part") == 7),
             "SELECT * FROM t WHERE part = 7", lambda d: _plain(d, where=ds.field("part") == 7), "id"),
        Task("all partitions", "partitioned", lambda f: f, "SELECT * FROM t", _plain, "id"),
        Task("1,000 small files", "small", lambda f: f, "SELECT * FROM t", _plain, "id"),
        Task("1,000 small files, one column", "small", lambda f: f.select("id"), "SELECT id FROM t",
             lambda d: _plain(d, ["id"]), "id"),
    ]  # fmt: skip


def make_tables(folder: Path, rows: int) -> None:
    """Writes the tables that are not there, with deltalake, the same ones each time."""
    for name, width, files, partitions in (
        ("narrow", 8, FILES, 0),
        ("wide", WIDTH, FILES, 0),
        ("partitioned", 8, 1, 20),
        ("small", 8, SMALL_FILES, 0),
    ):
        address = folder / f"rows-{name}-{rows}"
        if (address / "_delta_log").exists():
            continue
        rng = np.random.default_rng(7)
        size = rows // 10 if name == "wide" else rows
        for start in range(0, size, size // files):
            deltalake.write_deltalake(
                address,
                _rows(rng, start, size // files, width, partitions),
                mode="append",
                partition_by=["part"] if partitions else None,
            )
        deltalake.DeltaTable(address).create_checkpoint()


def _rows(rng: np.random.Generator, start: int, height: int, width: int, partitions: int) -> pa.Table:
    columns: dict[str, Any] = {"id": np.arange(start, start + height)}
    columns |= {f"c{i}": rng.random(height) for i in range(width)}
    columns["name"] = pa.array([f"name {n}" for n in rng.integers(0, 10_000, height)])
    columns["point"] = pa.StructArray.from_arrays(
        [pa.array(rng.random(height)), pa.array([f"label {n}" for n in rng.integers(0, 1_000, height)])], ["a", "label"]
    )
    if partitions:
        columns["part"] = np.arange(height) % partitions
    return pa.table(columns)


def engines(task: Task, address: str) -> Mapping[str, Callable[[], Any]]:
    """Each engine's way of giving the rows, opening included."""

    (extension,) = Path(duckdb_extension_delta.__path__[0]).glob("extensions/*/delta.duckdb_extension")

    def by_duckdb() -> pa.Table:
        with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
            connection.execute(f"LOAD '{extension}'")
            return connection.execute(task.sql.replace("FROM t", f"FROM delta_scan('{address}')")).to_arrow_table()

    return {
        "lakeview": lambda: task.polars(lv.open_table(address).scan()).collect(),
        "polars scan_delta": lambda: task.polars(pl.scan_delta(address)).collect(),
        "deltalake (pyarrow)": lambda: task.arrow(deltalake.DeltaTable(address).to_pyarrow_dataset()),
        "DuckDB": by_duckdb,
    }


def agree(task: Task, ways: Mapping[str, Callable[[], Any]]) -> int:
    """The number of rows that all engines give; an error if they differ, in number or in the sum of a column."""
    sums = {}
    for name, way in ways.items():
        frame = pl.DataFrame(way())
        sums[name] = (frame.height, round(float(frame[task.check].sum()), 3))
    if len(set(sums.values())) != 1:
        raise SystemExit(f"{task.name}: the engines do not agree: {sums}")
    return next(iter(sums.values()))[0]


def measure(ways: Mapping[str, Callable[[], Any]], rounds: int) -> Mapping[str, tuple[float, float]]:
    """Medians of wall and CPU seconds of each engine, by turns."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for i in range(rounds):
        for name in list(ways) if i % 2 else reversed(list(ways)):
            cpu, wall = time.process_time(), time.perf_counter()
            ways[name]()
            times[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    return {name: (median(t[0] for t in samples), median(t[1] for t in samples)) for name, samples in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--folder", type=Path, default=Path("build/bench-tables"))
    options = parser.parse_args()
    make_tables(options.folder, options.rows)
    print("| task | rows | lakeview: ms of CPU, wall | scan_delta | deltalake | DuckDB | peer / lakeview: CPU | wall |")
    print("|---|---|---|---|---|---|---|---|")
    for task in tasks(options.rows):
        ways = engines(task, str((options.folder / f"rows-{task.table}-{options.rows}").resolve()))
        rows = agree(task, ways)
        times = list(measure(ways, options.rounds).values())
        cells = [f"{1e3 * cpu:.1f}, {1e3 * wall:.1f}" for wall, cpu in times]
        cells += [f"{min(t[place] for t in times[1:]) / times[0][place]:.2f}" for place in (1, 0)]
        print(f"| {task.name} | {rows:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
