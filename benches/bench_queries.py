"""What a short query of the Data page takes: a process started for it, and one that was started ahead.

Usage: python benches/bench_queries.py [TABLE] [--where CONDITION] [--rounds 7]

Medians in seconds of the first 100 rows that pass a filter; no peer, ratios within a run are what counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from time import perf_counter, sleep

import lakeview as lv
from lakeview.app.query import runner
from lakeview.app.query.idle import IDLE
from lakeview.app.query.request import Request

_PAUSE = 3.0
"""Seconds between two queries, in which the next process starts."""


def seconds_of(request: Request, rounds: int, before: Callable[[], object]) -> float:
    """Median of the wall time of a request."""
    times = []
    for _ in range(rounds):
        before()
        began = perf_counter()
        runner.run(request, seconds=60, on_wait=lambda _: None)
        times.append(perf_counter() - began)
    return median(times)


def main() -> None:
    """Prints the medians as a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", nargs="?", default="demo-lake/flights")
    parser.add_argument("--where", default="dep_delay > 100")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    version = lv.open_table(options.table).latest_version
    request = Request(options.table, version, 100, runner.MEMORY, where=options.where)
    cold = seconds_of(request, options.rounds, lambda: None)
    IDLE.enable()
    runner.start_ahead(options.table)
    ahead = seconds_of(request, options.rounds, lambda: sleep(_PAUSE))
    print(f"| rows of {options.table} where {options.where} | seconds |\n|---|---|")
    print(f"| process started for the query | {cold:.2f} |\n| process started ahead | {ahead:.2f} |")


if __name__ == "__main__":
    main()
