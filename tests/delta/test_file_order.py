"""Live files in an order in which those of similar rows follow each other, whatever the log's order is."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.live_files import LiveFile, in_order
from lakeview.model.schema import Schema
from lakeview.rows.tasks import FileTask
from tests.builders.history import DeltaHistory

TASK = FileTask("/t", "f", Schema())


def file(key: Any, modified: int | None = 0, low: Any = None) -> LiveFile:
    return LiveFile({"key": key, "modified": modified, "stats": None if low is None else json.dumps(low)}, TASK)


def test_files_are_in_the_order_in_which_they_were_written() -> None:
    files = [file("c", 3), file("a", 1), file("0", None), file("b", 2)]
    assert [f.row["key"] for f in in_order(files)] == ["0", "a", "b", "c"]


def test_files_of_a_clustered_table_are_in_the_order_of_their_bounds() -> None:
    bounds = {2: 3.5, 4: "a", 1: -1, 0: None, 5: "b", 3: 10}
    files = [file(key, low={"minValues": {"s": {"x": low}}}) for key, low in bounds.items()]
    assert [f.row["key"] for f in in_order(files, [("s", "x")])] == [0, 1, 2, 3, 4, 5]
    odd = [file("a"), file("b", low={}), file("c", low=[]), file("d", low={"minValues": {"s": 3}})]
    odd[-1].row["stats"] = "{"
    assert [f.row["key"] for f in in_order(odd, [("s", "x")])] == ["a", "b", "c", "d"]


def test_files_of_a_table_clustered_by_two_columns_follow_a_curve() -> None:
    squares = [(x, y) for x in range(4) for y in range(4)]
    files = [file(square, low={"minValues": {"x": square[0], "y": square[1]}}) for square in squares]
    keys = [f.row["key"] for f in in_order(files, [("x",), ("y",)])]
    quarters = [{(x // 2, y // 2) for x, y in keys[start : start + 4]} for start in range(0, 16, 4)]
    assert [len(quarter) for quarter in quarters] == [1, 1, 1, 1]


@pytest.mark.parametrize("mapped", [False, True], ids=["plain", "mapped"])
def test_small_files_of_a_clustered_table_that_are_written_again_together_have_ranges_apart(
    history: DeltaHistory, monkeypatch: pytest.MonkeyPatch, *, mapped: bool
) -> None:
    properties = {"delta.feature.clustering": "supported"} | ({"delta.columnMapping.mode": "name"} if mapped else {})
    table = lv.create_table(history.address, {"id": "long", "x": "long"}, properties=properties)
    assert isinstance(table, DeltaTable)
    physical = table.snapshot().schema["id"].physical_name or "id"
    clustering = {"domain": "delta.clustering", "configuration": json.dumps({"clusteringColumns": [[physical]]})}
    history.commit({"domainMetadata": {**clustering, "removed": False}}, version=1)
    table.refresh()
    with table.transaction() as txn:
        for start in (40, 10, 70, 0, 60, 30, 50, 20):
            txn.append(pl.DataFrame({"id": range(start, start + 10), "x": [0] * 10}))
    monkeypatch.setattr("lakeview.delta.write.row_changes.PACKED_BYTES", 2 * min(table.files()["size"]))
    table.update({"x": "x + 1"})
    documents = [json.loads(f.row["stats"]) for f in table.transaction().live_files(None)]
    assert [(d["minValues"][physical], d["maxValues"][physical]) for d in documents] == [
        (0, 19),
        (20, 39),
        (40, 59),
        (60, 79),
    ]
