"""Values of the log that folders repeat are taken from them, and only there."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.rows import plain_files
from lakeview.rows.plain_files import repeats_values
from tests.builders.history import DeltaHistory

NULL = "__HIVE_DEFAULT_PARTITION__"
DAY = date(2026, 3, 1)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        pytest.param("/t/n=-7/f.parquet", {"n": -7}, id="a number"),
        pytest.param("/t/day=2026-03-01/f.parquet", {"day": DAY}, id="a day"),
        pytest.param("/t/name=a-b.c_1/f.parquet", {"name": "a-b.c_1"}, id="a text"),
        pytest.param(f"/t/name={NULL}/f.parquet", {"name": None}, id="null"),
        pytest.param("/t/b=2/x/a=1/f.parquet", {"a": 1, "b": 2}, id="two columns in another order"),
    ],
)
def test_a_path_repeats_values(path: str, values: dict[str, Any]) -> None:
    assert repeats_values(path, values)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        pytest.param("/t/f.parquet", {"n": 1}, id="no folder"),
        pytest.param("/t/n=2/f.parquet", {"n": 1}, id="another value"),
        pytest.param("/t/n=01/f.parquet", {"n": 1}, id="another spelling"),
        pytest.param("/t/N=1/f.parquet", {"n": 1}, id="another case"),
        pytest.param("/n=1/t/n=1/f.parquet", {"n": 1, "m": 1}, id="one column twice"),
        pytest.param("/n=2/t/n=1/f.parquet", {"n": 1}, id="a folder above the table"),
        pytest.param("/x=2/t/n=1/f.parquet", {"n": 1}, id="a folder of another column"),
        pytest.param("/t/n=1/x=2.parquet", {"n": 1}, id="a name with an equals sign"),
        pytest.param("/t/name=a%20b/f.parquet", {"name": "a b"}, id="an escaped text"),
        pytest.param("/t/name=a%20b/f.parquet", {"name": "a%20b"}, id="a text with a percent sign"),
        pytest.param("/t/name=/f.parquet", {"name": ""}, id="an empty text"),
        pytest.param("/t/name=NULL/f.parquet", {"name": "NULL"}, id="a text that spells null"),
        pytest.param(f"/t/name={NULL}/f.parquet", {"name": NULL}, id="a text that stands for null"),
        pytest.param("/t/name=a=b/f.parquet", {"name": "a=b"}, id="a text with an equals sign"),
        pytest.param("/t/a=b=1/f.parquet", {"a=b": 1}, id="a column with an equals sign"),
        pytest.param("/t/flag=True/f.parquet", {"flag": True}, id="a boolean"),
        pytest.param("/t/x=1.5/f.parquet", {"x": 1.5}, id="a float"),
        pytest.param("/t/x=1.50/f.parquet", {"x": Decimal("1.50")}, id="a decimal"),
        pytest.param("/t/at=2026-03-01/f.parquet", {"at": datetime(2026, 3, 1, tzinfo=UTC)}, id="a time"),
    ],
)
def test_a_path_does_not_repeat_values(path: str, values: dict[str, Any]) -> None:
    assert not repeats_values(path, values)


def test_files_in_such_folders_are_one_scan(history: DeltaHistory, monkeypatch: pytest.MonkeyPatch) -> None:
    scans: list[int] = []
    scan = pl.scan_parquet

    def scan_parquet(files: list[str], **options: Any) -> pl.LazyFrame:
        scans.append(len(files))
        return scan(files, **options)

    monkeypatch.setattr(pl, "scan_parquet", scan_parquet)
    monkeypatch.setattr(plain_files, "read_task", None)
    history.create({"id": "long", "day": "date", "n": "short", "name": "string"}, partition_by=("day", "n", "name"))
    values: list[tuple[Any, Any, Any]] = [(DAY, 1, "a-b"), (None, -3, None), (date(1, 1, 1), None, "2026-01-01")]
    for number, row in enumerate(values):
        texts = {k: None if v is None else str(v) for k, v in zip(("day", "n", "name"), row, strict=True)}
        texts["day"] = row[0] and row[0].isoformat()
        folder = "/".join(f"{name}={NULL if text is None else text}" for name, text in texts.items())
        (Path(history.address) / folder).mkdir(parents=True)
        file = {"id": [number], "n": ["the log's value wins"]}
        history.commit(history.data(f"{folder}/{number}.parquet", file, partition=texts))
    rows = lv.open_table(history.address).scan()
    frame = rows.collect()
    assert frame.schema == rows.collect_schema()
    assert frame.sort("id").rows() == [(i, *row) for i, row in enumerate(values)]
    assert rows.filter(pl.col("n") < 0).select("id", "day").collect().rows() == [(1, None)]
    assert rows.filter((pl.col("n") == 1) | (pl.col("id") == 2)).select("name").collect().height == 2
    assert rows.filter(day=DAY).select(pl.len()).collect().item() == 1
    assert scans == [3, 1, 3, 1]


def test_other_folders_in_one_table_leave_the_values_to_the_log(history: DeltaHistory) -> None:
    history.create({"id": "long", "n": "long"}, partition_by=("n",))
    for number, folder in enumerate(("n=1", "n=7", "elsewhere")):
        (Path(history.address) / folder).mkdir()
        action = history.data(f"{folder}/{number}.parquet", {"id": [number]}, partition={"n": "1"})
        history.commit(action)
    assert lv.open_table(history.address).scan().sort("id").collect()["n"].to_list() == [1, 1, 1]
