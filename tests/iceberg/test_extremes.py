"""Values that no calendar has and numbers at their ends: shown as what they are, never the end of a process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from tests.builders.iceberg import IcebergHistory

FIELDS: list[dict[str, Any]] = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "day", "required": False, "type": "date"},
    {"id": 3, "name": "at", "required": False, "type": "timestamp"},
]


class Placed(IcebergHistory):
    """A table whose files are recorded in whatever partition the test names."""

    partition: Mapping[str, Any]

    def _data(
        self, name: str, rows: Sequence[Mapping[str, Any]], leave_out: Sequence[str], ids: bool
    ) -> dict[str, Any]:
        return super()._data(name, rows, leave_out, ids) | {"partition": self.partition}


def placed(root: Path, source: int, transform: str, value: Any, leave_out: Sequence[str] = ()) -> Any:
    history = Placed(root / "t", FIELDS, [(source, transform, "part")])
    history.partition = {"part": value}
    history.append("a", [{"id": 1, "day": date(2024, 1, 1)}], leave_out=leave_out)
    return lv.open_table(history.address)


@pytest.mark.parametrize(
    ("source", "transform", "value", "text"),
    [
        pytest.param(2, "identity", 2**31 - 1, "part=day 2147483647", id="a day"),
        pytest.param(2, "identity", -(2**31), "part=day -2147483648", id="a day long before"),
        pytest.param(3, "identity", 2**63 - 1, "part=microsecond 9223372036854775807", id="a time"),
        pytest.param(3, "day", 3_000_000, "part=day 3000000", id="the day of a time"),
        pytest.param(3, "hour", 2**31 - 1, "part=hour 2147483647", id="an hour"),
        pytest.param(3, "month", 2**31 - 1, "part=178958940-08", id="a month"),
        pytest.param(3, "year", 2**31 - 1, "part=2147485617", id="a year"),
    ],
)
def test_partitions_beyond_the_calendar_are_shown_by_number(
    tmp_path: Path, source: int, transform: str, value: int, text: str
) -> None:
    table = placed(tmp_path, source, transform, value)
    files = table.snapshot().files
    assert files["partition_text"].to_list() == [text]
    files.rows()
    table.manifests().rows()
    assert table.scan().select("id").collect().rows() == [(1,)]
    assert table.plan("day = date '2024-01-01'").height == 1


@pytest.mark.parametrize(("source", "value"), [(2, 2**31 - 1), (3, -(2**63) + 1)], ids=["a day", "a time"])
def test_a_column_that_is_only_a_partition_keeps_its_exact_value(tmp_path: Path, source: int, value: int) -> None:
    name = FIELDS[source - 1]["name"]
    table = placed(tmp_path, source, "identity", value, leave_out=[name])
    assert table.scan().select(pl.col(name).to_physical()).collect().rows() == [(value,)]


@pytest.mark.parametrize(
    "summary",
    [b"5", b"null", b"[1]", b'{"operation":5,"added-records":[1]}', b'{"a":"\xff"}'],
    ids=["a number", "null", "a list", "no texts", "no text"],
)
def test_summaries_that_are_none_tell_nothing_and_the_snapshots_stay(tmp_path: Path, summary: bytes) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    history.append("a", [{"id": 1}])
    history.append("b", [{"id": 2}])
    newest = history.root / "metadata" / "v3.metadata.json"
    document = history.document
    document["snapshots"][0]["summary"] = "HERE"
    newest.write_bytes(json.dumps(document).encode().replace(b'"HERE"', summary))
    table: Any = lv.open_table(history.address)
    commits = table.history()
    assert commits["operation"].to_list() == ["append", None]
    assert commits["records_added"].to_list() == [1, None]
    assert commits["metrics"].to_list()[1] == commits["parameters"].to_list()[1] == "{}"
    assert table.commit(1001).height == 2
    assert sorted(table.scan().collect()["id"]) == [1, 2]
    table.check()


@pytest.mark.parametrize("millis", [2**63 - 1, -(2**63), 2**60], ids=["the last", "the first", "far ahead"])
def test_snapshots_beyond_the_calendar_have_no_time_and_all_else(tmp_path: Path, millis: int) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    history.append("a", [{"id": 1}])
    history.document["snapshots"][-1]["timestamp-ms"] = millis
    history.append("b", [{"id": 2}])
    table = lv.open_table(history.address)
    assert table.history()["timestamp"].null_count() == 1
    rows = table.changes(1001).sort("id").select("id", "_commit_timestamp").collect()
    assert rows["id"].to_list() == [1, 2]
    assert rows["_commit_timestamp"].null_count() == 1
