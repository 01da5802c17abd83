"""What the quality page is made of, for a whole history: rows, nulls and bounds of 18 columns in every version.

Usage: python benches/bench_quality.py [--quick] [--commits 5000 ...] [--snapshots 5000 ...] [--manifests 1000 ...]
                                       [--output X]

As bench_logs.py, beside one listing of the same table by lakeview itself: the goal is at most three of them for a
history that is written in one line of commits, and two seconds for 5,000 versions of any.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from benches.goals import MANY_COMMITS, Peer, Task
from benches.harness import Case, report
from benches.make_iceberg import SMALL, iceberg_files, iceberg_snapshots
from benches.make_tables import commits_table

COMMITS, SNAPSHOTS, MANIFESTS = (1_000, MANY_COMMITS), (100, MANY_COMMITS), (1_000,)
ROUNDS = 5

_LISTING = Peer("lakeview", "list", "one listing of ours", {"commits": 1 / 3}, small_goal=None)
_PLAIN_LISTING = Peer("lakeview", "list", "one listing of ours")
_ICEBERG_LISTING = Peer("lakeview", "iceberg list", "one listing of ours")
COMMIT_TASKS = (
    Task("every version, all columns", "trend", (_LISTING,)),
    Task("the quality page's frames", "quality", (_PLAIN_LISTING,)),
)
ICEBERG_TASKS = (Task("the quality page's frames", "quality", (_ICEBERG_LISTING,)),)


def cases(commits: Iterable[int], snapshots: Iterable[int], manifests: Iterable[int]) -> Iterator[Case]:
    """Every table that is asked for, made if it is not there."""
    for count in commits:
        table, warm = commits_table(count, checkpoints=False), commits_table(100, checkpoints=False)
        yield Case(f"{count:,} commits", "commits", count, table.path, warm.path, None, COMMIT_TASKS, ROUNDS)
    tables = [(f"{count:,} snapshots", count, iceberg_snapshots(count)) for count in snapshots]
    tables += [(f"{count:,} manifests of {SMALL}", count, iceberg_files(count * SMALL, SMALL)) for count in manifests]
    for title, count, iceberg in tables:
        few = iceberg_files(10 * SMALL, SMALL)
        yield Case(title, "iceberg", count, iceberg.metadata, few.metadata, None, ICEBERG_TASKS, ROUNDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the smallest tables only")
    for name in ("commits", "snapshots", "manifests"):
        parser.add_argument(f"--{name}", type=int, nargs="*")
    parser.add_argument("--output", type=Path, help="a file that gets the table as well")
    options = parser.parse_args()
    plan: tuple[Iterable[int], ...] = (COMMITS, SNAPSHOTS, MANIFESTS)
    if options.quick:
        plan = (COMMITS[:1], SNAPSHOTS[:1], ())
    sizes = (options.commits, options.snapshots, options.manifests)
    if any(counts is not None for counts in sizes):
        plan = tuple(counts or () for counts in sizes)
    report(cases(*plan), options.output)


if __name__ == "__main__":
    main()
