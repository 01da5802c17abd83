"""Iceberg tables of many files, of many small manifests and of many snapshots, lakeview beside pyiceberg and DuckDB.

Usage: python benches/bench_iceberg.py [--quick] [--files 100000 ...] [--manifests 1000 ...] [--deletes 20000 ...]
                                       [--snapshots 5000 ...] [--output X]

As bench_logs.py: a fresh process for each measurement, engines by turns, answers compared before a figure counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from benches.goals import LARGE, Peer, Task
from benches.harness import Case, report, rounds_of
from benches.make_iceberg import SMALL, IcebergDescribed, iceberg_files, iceberg_snapshots

ROUNDS = ((LARGE, 1), (100_000, 3), (0, 3))
FILES, MANIFESTS, DELETES, SNAPSHOTS = (20_000, 100_000, LARGE), (1_000,), (20_000,), (100, 5_000)
"""What a whole run measures: files in large manifests, small manifests, files some of which have deletes, snapshots."""

_FROM = 20_000
"""Files from which the goals hold; below, lakeview must not be slower."""
_INFLATE = Peer("zlib", "iceberg inflate", "limit: inflating every block", {"": 1 / 1.5}, small_goal=None, least=_FROM)


def _pyiceberg(job: str, goal: float | None, least: int = _FROM) -> Peer:
    return Peer("pyiceberg", f"iceberg {job}", "pyiceberg", None if goal is None else {"": goal}, least=least)


_DUCKDB_LIST = Peer("DuckDB", "iceberg list", "DuckDB, path and records only")
_OPEN = Task("open: schema and properties", "iceberg open", (_pyiceberg("open", 1, 0),))
_OPEN_MANY = Task("open: schema and properties", "iceberg open", (_pyiceberg("open", 25, 5_000),))
TASKS = (
    _OPEN,
    Task("plan without a filter", "iceberg plan", (_pyiceberg("plan", 5), _INFLATE)),
    Task("plan, filtered", "iceberg plan, filtered", (_pyiceberg("plan, filtered", 5),), earlier=True),
    Task("list: every column of FILES", "iceberg list", (_pyiceberg("files", 10), _DUCKDB_LIST, _INFLATE)),
    Task("list, one column's statistics", "iceberg one column", (_pyiceberg("files", 10),)),
    Task("list, all 18 columns' statistics", "iceberg all columns", (_pyiceberg("files", 10),)),
)
SNAPSHOT_TASKS = (
    _OPEN_MANY,
    Task(
        "all snapshots",
        "iceberg snapshots",
        (_pyiceberg("snapshots", 25, 5_000), Peer("DuckDB", "iceberg snapshots", "DuckDB, five columns")),
    ),
)


def cases(
    files: Iterable[int], manifests: Iterable[int], deletes: Iterable[int], snapshots: Iterable[int]
) -> Iterator[Case]:
    """Every table that is asked for, made if it is not there."""
    for count in files:
        yield _case(f"{count:,} files", iceberg_files(count), iceberg_files(1_000))
    for count in manifests:
        title = f"{count:,} manifests of {SMALL}"
        yield _case(title, iceberg_files(count * SMALL, SMALL), iceberg_files(10 * SMALL, SMALL))
    for count in deletes:
        title = f"{count:,} files, {count // 10:,} position deletes"
        yield _case(title, iceberg_files(count, deletes=True), iceberg_files(1_000, deletes=True))
    for count in snapshots:
        table, warm = iceberg_snapshots(count), iceberg_snapshots(10)
        rounds = rounds_of(ROUNDS, count)
        title = f"{count:,} snapshots"
        yield Case(title, "iceberg", count, table.metadata, warm.metadata, None, SNAPSHOT_TASKS, rounds)


def _case(title: str, table: IcebergDescribed, warm: IcebergDescribed) -> Case:
    rounds = rounds_of(ROUNDS, table.num_files)
    return Case(title, "iceberg", table.num_files, table.metadata, warm.metadata, table.num_files, TASKS, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the smallest tables only")
    for name in ("files", "manifests", "deletes", "snapshots"):
        parser.add_argument(f"--{name}", type=int, nargs="*")
    parser.add_argument("--output", type=Path, help="a file that gets the table as well")
    options = parser.parse_args()
    sizes = (options.files, options.manifests, options.deletes, options.snapshots)
    plan: tuple[Iterable[int], ...] = (FILES, MANIFESTS, DELETES, SNAPSHOTS)
    if options.quick:
        plan = tuple(list(counts)[:1] for counts in plan)
    if any(counts is not None for counts in sizes):
        plan = tuple(counts or () for counts in sizes)
    report(cases(*plan), options.output)


if __name__ == "__main__":
    main()
