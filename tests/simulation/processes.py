"""A process that changes one table at random: `python -m tests.simulation.processes ADDRESS SEED SECONDS [OPTIONS]`.

It prints, as JSON, how many rows it appended and which ids it deleted: what the counts have to add up to. `OPTIONS`:
storage options as JSON.
"""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any

import polars as pl

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import CommitConflictError

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
                gone = chance.choice(own)
                table.delete(f"id = {gone}")
                deleted_ids.add(gone)
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


def main() -> None:
    address, seed, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    options = json.loads(sys.argv[4]) if len(sys.argv) > 4 else {}
    table = lv.open_table(address, storage_options=options)
    assert isinstance(table, DeltaTable)
    json.dump(work(table, seed, seconds), sys.stdout)


if __name__ == "__main__":
    main()
