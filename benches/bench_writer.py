"""Operations that write: lakeview beside deltalake on copies of one table, CPU seconds (user and system of all
threads), wall seconds by their ratio, and the most memory of each; medians.

    PYTHONPATH=. python benches/bench_writer.py [--rows 10000000] [--files 10] [--rounds 3] [--only merge,optimize]

Each job runs in a fresh process on a copy of its own, engines by turns; memory is the peak above what the process held
before. What both leave behind has to agree, by number of rows and a sum over all of them, before a time counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl

import lakeview as lv
from benches.memory import peak, settled
from lakeview.delta.table import DeltaTable

SOURCE_ROWS = 10_000
SMALL_FILES = 64
WARM_ROWS = 20_000
Sizes = dict[str, int]


def frame(first: int, rows: int) -> pl.DataFrame:
    """Rows with ids from `first` on; the other columns follow from the id."""
    ids = np.arange(first, first + rows)
    return pl.DataFrame(
        {
            "id": ids,
            "part": (ids % 97).astype(np.int32),
            "price": (ids * 7919 % 100_003) / 100,
            "name": pl.Series(ids * 31 % 1_000_003).cast(pl.String),
            "x": np.random.default_rng(first).random(rows),
        }
    )


def make(address: Path, rows: int, files: int, partition_by: Sequence[str] = ()) -> None:
    """A table of so many rows in so many files, or as many of each partition."""
    table = lv.create_table(str(address), frame(0, 1).to_arrow().schema, partition_by=partition_by)
    assert isinstance(table, DeltaTable)
    with table.transaction() as txn:
        for i in range(files):
            txn.append(frame(i * (rows // files), rows // files))


def source(rows: int) -> pl.DataFrame:
    """Rows to merge: half of them are there, spread over the whole table, half are new."""
    half = SOURCE_ROWS // 2
    ids = pl.Series(np.linspace(0, rows - 1, half).astype(np.int64))
    spread = frame(0, half).with_columns(id=ids, part=(ids % 97).cast(pl.Int32))
    return pl.concat([spread, frame(rows, SOURCE_ROWS - half)]).with_columns(price=pl.lit(1.0))


def new_rows(name: str, rows: int) -> pl.DataFrame:
    """Rows to append, or to write over others; none for other jobs: what was allocated for them would be in the memory
    that a job begins with, and be returned in its course."""
    return frame(rows, rows // 10 if name in ("append", "overwrite") else 0)


def ours(name: str, address: str, rows: int) -> Callable[[], Any]:
    table = lv.open_table(address)
    assert isinstance(table, DeltaTable)
    batch = new_rows(name, rows)
    merging = source(rows)
    jobs: dict[str, Callable[[], Any]] = {
        "append": lambda: table.append(batch),
        "overwrite": lambda: table.overwrite(batch),
        "merge": lambda: table.merge(merging, ["id"]).when_matched_update().when_not_matched_insert().execute(),
        "delete in every file": lambda: table.delete("part = 13"),
        "delete in one file": lambda: table.delete("id BETWEEN 5 AND 1000"),
        "update in every file": lambda: table.update({"price": "price * 2"}, "part = 13"),
        "optimize": table.optimize,
        "z-order": lambda: table.optimize(z_order_by=["price", "x"]),
        "vacuum": lambda: table.vacuum(timedelta(0), dry_run=False, allow_short_retention=True),
        "checkpoint": table.checkpoint,
    }
    return jobs[name]


def theirs(name: str, address: str, rows: int) -> Callable[[], Any]:
    import deltalake

    table = deltalake.DeltaTable(address)
    batch = new_rows(name, rows).to_arrow()
    merging = source(rows).to_arrow()
    # the codec and level that lakeview writes with
    same: Any = deltalake.WriterProperties(compression="ZSTD", compression_level=1)

    def merge() -> None:
        builder = table.merge(
            merging, "target.id = source.id", source_alias="source", target_alias="target", writer_properties=same
        )
        builder.when_matched_update_all().when_not_matched_insert_all().execute()

    jobs: dict[str, Callable[[], Any]] = {
        "append": lambda: deltalake.write_deltalake(table, batch, mode="append", writer_properties=same),
        "overwrite": lambda: deltalake.write_deltalake(table, batch, mode="overwrite", writer_properties=same),
        "merge": merge,
        "delete in every file": lambda: table.delete("part = 13", writer_properties=same),
        "delete in one file": lambda: table.delete("id BETWEEN 5 AND 1000", writer_properties=same),
        "update in every file": lambda: table.update(
            predicate="part = 13", updates={"price": "price * 2"}, writer_properties=same
        ),
        "optimize": lambda: table.optimize.compact(writer_properties=same),
        "z-order": lambda: table.optimize.z_order(["price", "x"], writer_properties=same),
        "vacuum": lambda: table.vacuum(0, dry_run=False, enforce_retention_duration=False),
        "checkpoint": table.create_checkpoint,
    }
    return jobs[name]


JOBS = (
    "append", "overwrite", "merge", "delete in every file", "delete in one file", "update in every file", "optimize",
    "z-order", "vacuum", "checkpoint", "append by part", "merge by part", "optimize by part",
)  # fmt: skip
BY_PART = " by part"
"""What a job is called on a table of 97 partitions."""

TABLES = {"optimize": "many", "z-order": "many", "vacuum": "old"}
ENGINES = {"lakeview": ours, "deltalake": theirs}


def work(engine: str, name: str, address: str, rows: str) -> None:
    """One job in this process: its cost as a line of JSON."""
    ENGINES[engine](name, f"{address}-small", WARM_ROWS)()  # neither imports nor thread pools are measured
    job = ENGINES[engine](name, address, int(rows))
    before = settled()
    wall, cpu = time.perf_counter(), time.process_time()
    job()
    print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "memory": peak() - before}))


def run(
    engine: str, name: str, table: Path, rows: int, environment: Mapping[str, str] | None = None
) -> tuple[dict[str, float], tuple[Any, ...]]:
    """The cost of a job on a copy of a table, and what the copy holds then. `environment`: variables of its process."""
    copy = table.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(table, copy, copy_function=os.link)
    small = table.with_name("copy-small")
    shutil.rmtree(small, ignore_errors=True)
    make(small, WARM_ROWS, 2)
    command = [sys.executable, __file__, "--work", engine, name, str(copy), str(rows)]
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": ".", **(environment or {})},
    )
    if ended.returncode:
        raise SystemExit(f"{engine}, {name}:\n{ended.stderr}")
    contents = lv.open_table(str(copy)).scan().select(pl.len(), pl.col("id").sum(), pl.col("price").sum().round(0))
    return json.loads(ended.stdout.splitlines()[-1]), contents.collect().row(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(JOBS))
    parser.add_argument("--folder", type=Path, default=Path("build/bench-tables/writer"))
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    tables = {name: options.folder / name for name in ("few", "many", "old", "partitions")}
    make(tables["few"], options.rows, options.files)
    make(tables["many"], options.rows, SMALL_FILES)
    make(tables["old"], options.rows, SMALL_FILES)
    make(tables["partitions"], options.rows, options.files, ["part"])
    old = lv.open_table(str(tables["old"]))
    assert isinstance(old, DeltaTable)
    old.optimize()
    print(
        "| operation | lakeview, CPU s | deltalake, CPU s | deltalake / lakeview, CPU | wall | lakeview, MB "
        "| deltalake, MB | memory |\n|---|---|---|---|---|---|---|---|"
    )
    for name in [n for n in JOBS if n in options.only.split(",")]:
        job = name.removesuffix(BY_PART)
        table = tables[TABLES.get(name, "few") if job == name else "partitions"]
        costs: dict[str, list[dict[str, float]]] = {engine: [] for engine in ENGINES}
        for number in range(options.rounds):
            contents = {}
            for engine in list(ENGINES) if number % 2 else reversed(list(ENGINES)):
                cost, contents[engine] = run(engine, job, table, options.rows)
                costs[engine].append(cost)
            if contents["lakeview"] != contents["deltalake"]:
                raise SystemExit(f"{name}: lakeview and deltalake differ: {contents}")
        cpu, wall, memory = (
            {e: median(c[what] for c in costs[e]) for e in ENGINES} for what in ("cpu", "wall", "memory")
        )
        print(
            f"| {name} | {cpu['lakeview']:.3f} | {cpu['deltalake']:.3f} | {cpu['deltalake'] / cpu['lakeview']:.2f} "
            f"| {wall['deltalake'] / wall['lakeview']:.2f} | {memory['lakeview'] / 2**20:.0f} "
            f"| {memory['deltalake'] / 2**20:.0f} | {memory['deltalake'] / max(memory['lakeview'], 2**20):.1f} |",
            flush=True,
        )
    shutil.rmtree(options.folder, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:])
    else:
        main()
