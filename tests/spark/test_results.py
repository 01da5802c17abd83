"""What operations report: the rows of the frames that `DeltaTable` of Spark gives, of tables without a session."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec
import polars as pl
import pytest
from pyspark.sql import SparkSession

import lakeview as lv
from lakeview.model.errors import InvalidRequestError
from lakeview.spark import DeltaTable
from lakeview.spark.dml.results import DETAIL, HISTORY, detail_row, history_row, optimize_row, restore_row

MOMENT = datetime(2026, 3, 1, tzinfo=UTC)


def names(columns: str) -> list[str]:
    """The names of the columns of a schema in Spark's words."""
    depth, text = 0, ""
    for sign in columns:
        depth += (sign == "<") - (sign == ">")
        text += sign if not depth and sign != ">" else ""
    return [column.split()[0] for column in text.split(", ")]


def history_fields(info: Any) -> dict[str, Any]:
    """The fields that a commit with this commitInfo has in HISTORY, without those that are null."""
    data = msgspec.json.encode({"add": {"path": "commitInfo"}}) + b"\n" + msgspec.json.encode({"commitInfo": info})
    row = history_row(3, MOMENT, data)
    return {name: value for name, value in zip(names(HISTORY), row, strict=True) if value is not None}


def test_history_has_the_fields_of_commit_info_as_delta_has_them() -> None:
    info = {
        "timestamp": 5, "userId": "u1", "userName": "mara", "operation": "MERGE",
        "operationParameters": {"predicate": "[]", "matched": [1], "on": True, "none": None},
        "job": {"jobId": "7", "runId": 8}, "notebook": {"notebookId": "n"}, "clusterId": "c", "readVersion": 2,
        "isolationLevel": "Serializable", "isBlindAppend": False, "operationMetrics": {"numFiles": "1"},
        "userMetadata": "nightly", "engineInfo": "Apache-Spark/4.0", "txnId": "t",
    }  # fmt: skip
    assert history_fields(info) == {
        "version": 3, "timestamp": MOMENT, "userId": "u1", "userName": "mara", "operation": "MERGE",
        "operationParameters": {"predicate": "[]", "matched": "[1]", "on": "true", "none": None},
        "job": ("7", None, None, "8", None, None), "notebook": ("n",), "clusterId": "c", "readVersion": 2,
        "isolationLevel": "Serializable", "isBlindAppend": False, "operationMetrics": {"numFiles": "1"},
        "userMetadata": "nightly", "engineInfo": "Apache-Spark/4.0",
    }  # fmt: skip


@pytest.mark.parametrize("info", [None, "text", [], {"readVersion": 2**63, "isBlindAppend": "no", "job": 1}], ids=repr)
def test_what_is_no_provenance_is_null(info: Any) -> None:
    assert history_fields(info) == {"version": 3, "timestamp": MOMENT}


def test_a_commit_that_cannot_be_read_has_its_version_and_time() -> None:
    row = history_row(3, MOMENT, b'{"commitInfo": {')
    assert row[:2] == (3, MOMENT)
    assert set(row[2:]) == {None}


def test_a_table_is_described_in_one_row(tmp_path: Path) -> None:
    schema = {"id": pl.Int64, "day": pl.Date}
    table = lv.create_table(
        str(tmp_path), schema, partition_by=["day"], name="orders", description="all of them",
        properties={"delta.enableDeletionVectors": "true"}, clock=lambda: MOMENT,
    )  # fmt: skip
    table.append(pl.DataFrame({"id": [1, 2], "day": [MOMENT.date()] * 2}, schema=schema))
    row = dict(zip(names(DETAIL), detail_row(table), strict=True))
    now = table.snapshot()
    assert row == {
        "format": "delta", "id": now.id, "name": "orders", "description": "all of them", "location": table.address,
        "createdAt": MOMENT, "lastModified": now.timestamp, "partitionColumns": ["day"], "clusteringColumns": [],
        "numFiles": 1, "sizeInBytes": now.size_bytes, "properties": {"delta.enableDeletionVectors": "true"},
        "minReaderVersion": 3, "minWriterVersion": 7, "tableFeatures": ["deletionVectors"],
    }  # fmt: skip


def test_operations_that_change_nothing_report_no_file(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), {"id": pl.Int64})
    assert optimize_row(table, table.optimize()) == (
        table.address, (0, 0, (None, None, 0.0, 0, 0), (None, None, 0.0, 0, 0)),
    )  # fmt: skip
    assert restore_row(table, table.restore(0)) == (0,) * 6


def test_files_that_an_optimize_moves_are_counted(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), {"id": pl.Int64})
    for number in range(3):
        table.append(pl.DataFrame({"id": [number]}))
    before = int(table.files()["size"].sum())
    _, (new, old, sizes, old_sizes) = optimize_row(table, table.optimize())
    (size,) = table.files()["size"]
    assert (new, old, sizes) == (1, 3, (size, size, size, 1, size))
    assert old_sizes == (None, None, before / 3, 3, before)


@pytest.mark.parametrize("number", [-1, True, "7", float("nan"), 1e300])
def test_numbers_of_commits_and_hours_are_from_0_on(tmp_path: Path, number: Any) -> None:
    lv.create_table(str(tmp_path), {"id": pl.Int64})
    table = DeltaTable.forPath(cast("SparkSession", None), str(tmp_path))
    with pytest.raises(InvalidRequestError, match="limit is"):
        table.history(number)
    if number is not True:
        with pytest.raises(InvalidRequestError, match="retentionHours is"):
            table.vacuum(number)
