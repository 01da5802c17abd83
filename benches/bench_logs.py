"""Logs of many files and of many commits, lakeview beside delta-rs and the Delta kernel: a table of ratios and goals.

Usage: python benches/bench_logs.py [--quick] [--files 10000 ...] [--commits 1000 ...] [--layouts v1 ...] [--output X]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from benches.goals import COMMIT_TASKS, FILE_TASKS, LARGE
from benches.harness import Case, report, rounds_of
from benches.make_tables import LAYOUTS, commits_table, files_table

FILE_ROUNDS = ((LARGE, 2), (100_000, 3), (0, 5))
COMMIT_ROUNDS = ((5_000, 3), (0, 5))
"""Rounds by the number of files or commits from which they hold."""

FILE_PLAN: tuple[tuple[int, str], ...] = (
    *((10_000, "v1"), (100_000, "v1"), (100_000, "parsed")),
    *((LARGE, "v1"), (LARGE, "parsed"), (LARGE, "parts"), (LARGE, "v2")),
)
COMMIT_PLAN: tuple[tuple[int, bool], ...] = ((1_000, False), (5_000, False), (20_000, True))
"""What the whole run measures: numbers of files with layouts, numbers of commits with and without checkpoints."""

QUICK_FILES, QUICK_COMMITS = FILE_PLAN[:1], COMMIT_PLAN[:1]


def cases(files: Iterable[tuple[int, str]], commits: Iterable[tuple[int, bool]]) -> Iterator[Case]:
    """Every table that is asked for, made if it is not there."""
    for count, layout in files:
        tasks = [task for task in FILE_TASKS if task.applies(layout, count)]
        rounds = rounds_of(FILE_ROUNDS, count)
        table, warm = files_table(count, layout), files_table(1_000, layout)
        title = f"{count:,} files, {_LAYOUT_TITLES[layout]}"
        yield Case(title, layout, count, table.path, warm.path, table.num_files, tasks, rounds)
    for count, checkpoints in commits:
        title = f"{count:,} commits, {'a checkpoint each 1,000' if checkpoints else 'no checkpoint'}"
        rounds = rounds_of(COMMIT_ROUNDS, count)
        table, warm = commits_table(count, checkpoints=checkpoints), commits_table(100, checkpoints=False)
        yield Case(title, "commits", count, table.path, warm.path, table.num_files, COMMIT_TASKS, rounds)


_LAYOUT_TITLES = {"v1": "V1", "parsed": "V1 with stats_parsed", "parts": "multi-part", "v2": "V2 with sidecars"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10,000 files and 1,000 commits only")
    parser.add_argument("--files", type=int, nargs="*")
    parser.add_argument("--commits", type=int, nargs="*")
    parser.add_argument("--layouts", nargs="*", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--output", type=Path, help="a file that gets the table as well")
    options = parser.parse_args()
    files, commits = (QUICK_FILES, QUICK_COMMITS) if options.quick else (FILE_PLAN, COMMIT_PLAN)
    if options.files is not None or options.commits is not None:
        files = tuple((count, layout) for count in options.files or () for layout in options.layouts)
        commits = tuple((count, checkpoints) for count in options.commits or () for checkpoints in (False, True))
    report(cases(files, commits), options.output)


if __name__ == "__main__":
    main()
