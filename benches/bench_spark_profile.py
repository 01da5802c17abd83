"""The profile of a table by polars and on Spark: seconds by turns, of the same figures.

    PYTHONPATH=. python benches/bench_spark_profile.py [--rows 1000000 5000000] [--rounds 3] [--cores 2]

The rows are those of the plain table of `bench_spark.py`, ten columns. Both engines run in this process; the session
has been started and has profiled a small table before, so that neither its start nor its first compilation counts.
Both have to give the same figures before a time counts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import polars as pl

import lakeview as lv
from benches.bench_spark import make
from lakeview.spark import session
from lakeview.spark.profile import profile as profile_on_spark
from lakeview.views.data.profile import profile

HEADER = "| rows | polars, s | Spark, s | Spark / polars |\n|---|---|---|---|"
Profile = tuple[pl.DataFrame, int]


def seconds(run: Callable[[], Profile]) -> tuple[float, Profile]:
    start = time.perf_counter()
    answer = run()
    return time.perf_counter() - start, answer


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 5_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    spark = session("bench", master=f"local[{options.cores}]", memory="2g")
    print(HEADER)
    with tempfile.TemporaryDirectory() as home:
        for rows in [1_000, *options.rows]:
            address = Path(home) / str(rows)
            make(spark, address, rows, "plain")
            place, times = str(address), []
            for _ in range(options.rounds if rows > 1_000 else 1):
                ours, expected = seconds(lambda place=place: profile(lv.scan(place)))  # type: ignore[misc]
                theirs, actual = seconds(lambda place=place: profile_on_spark(spark, place))  # type: ignore[misc]
                assert actual[1] == expected[1] == rows
                assert actual[0].to_dicts() == expected[0].to_dicts()
                times.append((ours, theirs))
            polars, on_spark = (median(column) for column in zip(*times, strict=True))
            if rows > 1_000:
                print(f"| {rows:,} | {polars:.2f} | {on_spark:.2f} | {on_spark / polars:.1f} |", flush=True)


if __name__ == "__main__":
    main()
