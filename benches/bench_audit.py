"""The audit of a table with a million files against the listing of its files: at most three listings.

Usage: python benches/bench_audit.py [files]; a million without an argument. Two logs: a checkpoint with ten commits
after it, and nothing but JSON commits, of which every tenth rearranges files. Cold tables each time, interleaved.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import lakeview as lv
from benches.make_tables import files_table

GOAL = 3.0
ROUNDS = 3
COMMITS = 1_000
ROWS, SIZE = 1_000, 4_000_000


def json_table(count: int) -> str:
    """A log of COMMITS commits with `count` adds; every tenth replaces ten files of the commit before it."""
    root = Path("build/benches") / f"audit-json-{count}"
    log = root / "_delta_log"
    if not (log / f"{COMMITS:020d}.json").exists():
        log.mkdir(parents=True, exist_ok=True)
        for version in range(COMMITS + 1):
            lines = "".join(json.dumps(action) + "\n" for action in _actions(version, count // COMMITS))
            (log / f"{version:020d}.json").write_text(lines)
    return str(root)


def _actions(version: int, files: int) -> Iterator[dict[str, Any]]:
    moves = version % 10 == 0 and version > 0
    name = "CREATE TABLE" if version == 0 else "OPTIMIZE" if moves else "WRITE"
    engine = "Apache-Spark/4.0.1 Delta-Lake/4.0.0"
    yield {"commitInfo": {"operation": name, "readVersion": version - 1, "engineInfo": engine, "timestamp": version}}
    if version == 0:
        fields: list[dict[str, Any]] = [
            {"name": n, "type": "long", "nullable": True, "metadata": {}} for n in ("id", "amount")
        ]
        schema = json.dumps({"type": "struct", "fields": fields})
        yield {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
        yield {"metaData": {"id": "a", "format": {"provider": "parquet"}, "schemaString": schema,
                            "partitionColumns": [], "configuration": {}}}  # fmt: skip
        return
    for number in range(10 if moves else files):
        if moves:
            yield {"remove": {"path": _path(version - 1, number), "dataChange": False, "deletionTimestamp": version}}
        bounds = {"minValues": {"id": number, "amount": 0}, "maxValues": {"id": number + ROWS, "amount": 9}}
        stats = json.dumps({"numRecords": ROWS, **bounds, "nullCount": {"id": 0, "amount": 3}})
        yield {"add": {"path": _path(version, number), "partitionValues": {}, "size": SIZE, "stats": stats,
                       "modificationTime": version, "dataChange": not moves}}  # fmt: skip


def _path(version: int, number: int) -> str:
    return f"part-{version:05d}-{number:05d}-1d2c4e5f-8a9b-4c1d-9e3f-4a5b6c7d8e9f.c000.snappy.parquet"


def _timed(task: Callable[[], object]) -> float:
    begun = time.perf_counter()
    task()
    return time.perf_counter() - begun


def measure(title: str, address: str) -> bool:
    """Print the medians and their ratio; true if the goal is reached."""
    listings, audits = [], []
    for _ in range(ROUNDS):
        listings.append(_timed(lambda: lv.open_table(address).files()))
        audits.append(_timed(lambda: lv.open_table(address).audit()))
    verdicts = lv.open_table(address).audit()
    counts = dict(verdicts.group_by("verdict").len().iter_rows())
    ratio = median(audits) / median(listings)
    print(f"{title}: listing {median(listings):.2f} s, audit {median(audits):.2f} s, {ratio:.2f} listings "
          f"(goal {GOAL:g}); {counts}")  # fmt: skip
    return ratio <= GOAL


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    reached = [
        measure(f"{count:,} files, a checkpoint and ten commits", str(files_table(count).path)),
        measure(f"{count:,} files, {COMMITS:,} JSON commits", json_table(count)),
    ]
    sys.exit(0 if all(reached) else 1)


if __name__ == "__main__":
    main()
