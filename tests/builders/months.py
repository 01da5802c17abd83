"""A table of three months, one file each: partition values and statistics to tell them apart by."""

from __future__ import annotations

import pyarrow as pa

from tests.builders.history import DeltaHistory


def months(history: DeltaHistory) -> DeltaHistory:
    """Three months of ten days each; month is a partition column, day and city have statistics."""
    history.create({"day": "integer", "city": "string", "month": "integer"}, partition_by=("month",))
    for month in (1, 2, 3):
        rows = {"day": pa.array(range(1, 11), pa.int32()), "city": [f"{'abc'[month - 1]}{i}" for i in range(10)]}
        stats = {
            "numRecords": 10,
            "minValues": {"day": 1, "city": rows["city"][0]},
            "maxValues": {"day": 10, "city": rows["city"][-1]},
            "nullCount": {"day": 0, "city": 0},
        }
        history.commit(history.data(f"m{month}", rows, stats=stats, partition={"month": str(month)}))
    return history
