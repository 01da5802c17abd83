"""Processes that change one table at random: `python -m tests.simulation.processes ADDRESS NUMBER SECONDS [OPTIONS]`.

Each prints a line of JSON, the ids that are live by its word and those that it merged: what the counts have to add up
to. `OPTIONS`: storage options as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import random
import sys
import time
from typing import Any

import polars as pl

import lakeview.delta
import lakeview.rows
import lakeview.storage
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import CommitConflictError
from tests.builders.opening import open_delta_table

MERGED = 1_000_000
"""Ids from here on are merged: each is there once, whoever merges it."""


def work(table: DeltaTable, seed: int, seconds: float) -> dict[str, Any]:
    """Operations at random for so many seconds; what they did, by their own word."""
    chance = random.Random(seed)
    added: list[int] = []
    deleted_ids: set[int] = set()
    merged_ids: set[int] = set()
    next_id = seed * 10_000
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        operation = chance.choices(("append", "delete", "merge", "optimize"), (5, 3, 3, 1))[0]
        try:
            if operation == "append":
                ids = list(range(next_id, next_id + 5))
                next_id += 5
                table.append(pl.DataFrame({"id": ids, "v": [seed] * 5}))
                added += ids
            elif operation == "delete" and (own := [i for i in added if i not in deleted_ids]):
                row_id = chance.choice(own)
                table.delete(f"id = {row_id}")
                deleted_ids.add(row_id)
            elif operation == "merge":
                ids = [MERGED + chance.randrange(20) for _ in range(1)]
                source = pl.DataFrame({"id": ids, "v": [seed]})
                table.merge(source, ["id"]).when_matched_update().when_not_matched_insert().execute()
                merged_ids.update(ids)
            elif operation == "optimize":
                table.optimize()
        except CommitConflictError:
            continue  # nothing was done
    return {"live": sorted(set(added) - deleted_ids), "merged": sorted(merged_ids)}


LATER = ("pyarrow.parquet", "pyarrow.dataset", "pandas", "fastavro", "lakeview.discovery")
"""What lakeview imports at its first call, a second of work: once here is less than once in each process."""


def import_all() -> None:
    """Import what reads and writes tables, before there are threads: then processes are forked that need not."""
    for package in (lakeview.delta, lakeview.rows, lakeview.storage):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for name in LATER:
        importlib.import_module(name)


def main() -> None:
    address, processes, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    options = json.loads(sys.argv[4]) if len(sys.argv) > 4 else {}
    import_all()
    children = []
    for seed in range(processes):
        child = os.fork()
        if not child:
            table = open_delta_table(address, storage_options=options)
            line = json.dumps(work(table, seed, seconds))
            os.write(sys.stdout.fileno(), f"{line}\n".encode())
            os._exit(0)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    sys.exit(any(codes))


if __name__ == "__main__":
    main()
