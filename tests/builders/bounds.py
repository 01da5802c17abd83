"""Files with the statistics of one column, and what a table says of them."""

from __future__ import annotations

from typing import Any

import lakeview as lv
from tests.builders.actions import add
from tests.builders.history import DeltaHistory

Bound = dict[str, Any]


def statistics(history: DeltaHistory, columns: dict[str, Any], stats: Any, **more: Any) -> dict[str, Bound]:
    """The one row of STATISTICS for a file with these statistics."""
    history.create(columns).commit(add("f", stats=stats))
    return row(lv.open_table(history.address), **more)


def row(table: lv.Table, **more: Any) -> dict[str, Any]:
    """The one row of STATISTICS."""
    return table.statistics(**more).row(0, named=True)


def bounds(low: Any, high: Any, nulls: int | None = 0) -> dict[str, Any]:
    """The statistics of nine rows with one column, x."""
    return {
        "numRecords": 9,
        "minValues": {"x": low},
        "maxValues": {"x": high},
        **({} if nulls is None else {"nullCount": {"x": nulls}}),
    }
