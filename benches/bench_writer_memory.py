"""Merge and delete on tables of growing size: the peak memory, which has to follow the source and not the table.

    PYTHONPATH=. python benches/bench_writer_memory.py [--rows 20000000 200000000] [--rounds 1]

A source of 10,000 rows, half of which are there, spread over the whole table; files of a million rows. Each job runs
in a fresh process on a copy of its own; memory is the peak above what the process had before. It is measured twice: as
the allocators are, which keep some of what was freed, and where they return freed pages to the system at once, which
is nearly what is live (and slower: seconds are of the first). Four files are at work at once, two whose rows are found
and two that are written: a table of fewer files needs less. Goal: the largest table takes at most a tenth more than the
smallest.
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
RETURNS_PAGES = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_MMAP_THRESHOLD_": "131072",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0",
}
"""Arrow allocates by glibc, which unmaps large blocks when they are freed, and so does the jemalloc of polars."""
MEASURES: dict[str, dict[str, str]] = {"as allocators are": {}, "freed pages returned": RETURNS_PAGES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000_000, 200_000_000])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("build/bench-tables/writer-memory"))
    options = parser.parse_args()
    costs: dict[tuple[str, str], list[float]] = {(name, measure): [] for name in JOBS for measure in MEASURES}
    for rows in sorted(options.rows):
        shutil.rmtree(options.folder, ignore_errors=True)
        make(options.folder / "table", rows, max(1, rows // FILE_ROWS))
        for name, measure in costs:
            runs = [
                run("lakeview", name, options.folder / "table", rows, MEASURES[measure])[0]
                for _ in range(options.rounds)
            ]
            memory, wall = (median(c[what] for c in runs) for what in ("memory", "wall"))
            costs[name, measure].append(memory / 2**20)
            print(f"{rows:,} rows, {name}, {measure}: {memory / 2**20:.0f} MB, {wall:.1f} s", flush=True)
    sizes = " | ".join(f"{rows:,} rows, MB" for rows in sorted(options.rows))
    print(f"\n| operation | measure | {sizes} | largest / smallest |")
    print("|---|---|" + "---|" * (len(options.rows) + 1))
    for (name, measure), each in costs.items():
        ratio = each[-1] / each[0]
        numbers = " | ".join(f"{memory:.0f}" for memory in each)
        print(f"| {name} | {measure} | {numbers} | {ratio:.2f}{'' if ratio <= MOST else ', MISSED'} |")
    shutil.rmtree(options.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
