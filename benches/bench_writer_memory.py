"""Merge and delete on tables of growing size: the peak memory, which has to follow the source and not the table.

    PYTHONPATH=. python benches/bench_writer_memory.py [--rows 2000000 20000000] [--rounds 1]

A source of 10,000 rows, half of which are there, spread over the whole table; files of a million rows. Each job runs
in a fresh process on a copy of its own; memory is the peak above what the process had before. Goal: the largest table
takes at most a tenth more than the smallest.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from statistics import median

from benches.bench_writer import make, run

JOBS = ("merge", "delete in every file", "delete in one file")
FILE_ROWS = 1_000_000
MOST = 1.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000, 20_000_000])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("build/bench-tables/writer-memory"))
    options = parser.parse_args()
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in JOBS}
    for rows in sorted(options.rows):
        shutil.rmtree(options.folder, ignore_errors=True)
        make(options.folder / "table", rows, max(1, rows // FILE_ROWS))
        for name in JOBS:
            found = [run("lakeview", name, options.folder / "table", rows)[0] for _ in range(options.rounds)]
            costs[name].append((median(c["memory"] for c in found) / 2**20, median(c["wall"] for c in found)))
            print(f"{rows:,} rows, {name}: {costs[name][-1][0]:.0f} MB, {costs[name][-1][1]:.1f} s", flush=True)
    print(f"\n| operation | {' | '.join(f'{rows:,} rows, MB' for rows in sorted(options.rows))} | largest / smallest |")
    print("|---|" + "---|" * (len(options.rows) + 1))
    for name, each in costs.items():
        ratio = each[-1][0] / each[0][0]
        print(f"| {name} | {' | '.join(f'{memory:.0f}' for memory, _ in each)} "
              f"| {ratio:.2f}{'' if ratio <= MOST else ', MISSED'} |")  # fmt: skip
    shutil.rmtree(options.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
