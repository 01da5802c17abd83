"""Names, values and files that a table may well have and a reader does not expect."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeview as lv
from lakeview.model.errors import CorruptTableError, DataFileMissingError, UnsupportedTableError
from tests.builders.actions import add, info, metadata, protocol, remove, txn
from tests.builders.history import DeltaHistory, log_name

NAMES = ["", "a.b", "^x$", "^.*$", "path", "key", "`b`", "*", "\n", "id"]
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}


def checkpoint_of(history: DeltaHistory, table: pa.Table) -> lv.Table:
    """A table of which only a checkpoint with these columns is left."""
    history.create().commit().without(0, 1)
    pq.write_table(table, Path(history.address) / log_name(1, "checkpoint.parquet"))
    return lv.open_table(history.address)


def base(**more: Any) -> dict[str, Any]:
    """The columns of a checkpoint of three rows: protocol, metaData and whatever else the third row has."""
    described = {"id": "x", "schemaString": metadata()["metaData"]["schemaString"]}
    return {"protocol": [PROTOCOL, None, None], "metaData": [None, described, None]} | more


def test_columns_of_any_name_are_read(history: DeltaHistory) -> None:
    rows = pa.table([pa.array([i], pa.int32()) for i in range(len(NAMES))], names=NAMES)
    history.create(dict.fromkeys(NAMES, "long")).commit(history.data("f", rows))
    assert lv.open_table(history.address).scan().collect().rows() == [tuple(range(len(NAMES)))]


def test_partition_columns_of_any_name_are_read(history: DeltaHistory) -> None:
    names = [n for n in NAMES if n != "id"]
    partition = {n: str(i) for i, n in enumerate(names)}
    history.create(dict.fromkeys(NAMES, "long"), partition_by=tuple(names))
    history.commit(history.data("f", {"id": [9]}, partition=partition))
    table = lv.open_table(history.address)
    assert table.snapshot().files["partition"][0] == {n: i for i, n in enumerate(names)}
    assert table.scan().collect().rows() == [tuple(range(len(NAMES)))]


@pytest.mark.parametrize("recorded", ["a%3Ab/f:1.parquet", "a:b/f:1.parquet"])
def test_a_colon_in_the_name_of_a_file_begins_no_address(history: DeltaHistory, recorded: str) -> None:
    action = history.data("a:b/f:1.parquet", {"id": [1]})
    history.create().commit({"add": {**action["add"], "path": recorded}})
    table = lv.open_table(history.address)
    assert table.scan().collect()["id"].to_list() == [1]
    assert table.versions()["readable"].to_list() == [True, True]
    history.commit(remove("a%3Ab/f%3A1.parquet"))
    assert lv.open_table(history.address).files().is_empty()


def test_thousands_of_columns_are_read_at_once(history: DeltaHistory) -> None:
    names = [f"c{i}" for i in range(2_000)]
    history.create(dict.fromkeys(names, "long")).commit(history.data("f", {n: [1] for n in names} | {"c7": [7]}))
    assert lv.open_table(history.address).scan().select("c7", "c8").collect().rows() == [(7, 1)]


@pytest.mark.parametrize("names", [["id", "id"], ["ID", "Id"]])
def test_a_data_file_with_one_name_twice_is_refused(history: DeltaHistory, names: list[str]) -> None:
    columns = [pa.array([1]), pa.array([2]), pa.array(["Bern"])]
    history.create().commit(history.data("f", pa.Table.from_arrays(columns, names=[*names, "city"])))
    with pytest.raises(CorruptTableError, match="it holds 2 columns called id") as caught:
        lv.open_table(history.address).scan().collect()
    assert caught.value.kind == "corrupt-data-file"
    assert lv.open_table(history.address).scan().select("city").collect().rows() == [("Bern",)]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["a pipe", "a folder"])
@pytest.mark.parametrize("place", ["f", log_name(1, "checkpoint.parquet")], ids=["data", "checkpoint"])
def test_what_is_no_file_is_not_opened(history: DeltaHistory, make: Any, place: str) -> None:
    history.create().commit(add("f"))
    make(Path(history.address) / place)
    with pytest.raises(DataFileMissingError):
        lv.open_table(history.address).scan().collect()


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamp_ntz"])
def test_a_partition_value_before_the_year_1_is_named(history: DeltaHistory, kind: str) -> None:
    text = "-0044-03-15" if kind == "date" else "-0044-03-15 12:00:00"
    history.create({"id": "long", "day": kind}, partition_by=("day",)).commit(add("f", partition={"day": text}))
    with pytest.raises(CorruptTableError, match=f"'{text}' of column day is no {kind}"):
        lv.open_table(history.address).scan().collect()


def test_moments_that_no_calendar_has_are_unknown(history: DeltaHistory) -> None:
    properties: dict[str, str | None] = {"delta.enableInCommitTimestamps": "true"}
    ends = (2**63 - 1, -(2**63), 10**18)
    described = protocol(1, 7, writerFeatures=["inCommitTimestamp"]), metadata(properties=properties)
    history.commit(info(timestamp=ends[0], inCommitTimestamp=ends[0]), *described)
    for end in ends:
        history.commit(info(timestamp=end, inCommitTimestamp=end), add(f"f{end}", modificationTime=end),
                       remove(f"g{end}", at=end), txn(str(end), 1, end))  # fmt: skip
    table = lv.open_table(history.address)
    commits = table.history()
    assert commits["recorded_timestamp"].null_count() == 4
    assert commits["timestamp_source"].to_list() == ["file"] * 4
    assert table.snapshot(1).timestamp == commits.filter(version=1)["timestamp"][0]
    now = table.snapshot()
    for column in (now.files["modified"], now.tombstones["deleted"], now.transactions["last_updated"]):
        assert column.null_count() == 3


def test_a_checkpoint_without_files_has_no_add_column(history: DeltaHistory) -> None:
    table = checkpoint_of(history, pa.table(base()))
    assert table.snapshot().num_files == 0
    assert (table.history().height, table.lifetimes().height, table.versions()["readable"].to_list()) == (0, 0, [True])


@pytest.mark.parametrize("kind", ["protocol", "metaData", "txn", "domainMetadata"])
def test_an_action_that_is_no_struct_is_a_corrupt_checkpoint(history: DeltaHistory, kind: str) -> None:
    table = checkpoint_of(history, pa.table(base(**{kind: [1, 2, 3]})))
    with pytest.raises(CorruptTableError, match=f"{kind} is int64, a struct was expected"):
        (table.snapshot().transactions, table.snapshot().domain_metadata)
    assert table.history().height == 0


def test_a_checkpoint_with_a_column_twice_does_not_pass_for_an_empty_table(history: DeltaHistory) -> None:
    columns = base(add=[None, None, {"path": "f", "size": 1}])
    arrays = [pa.array(columns[n]) for n in ("protocol", "metaData", "add", "add")]
    table = checkpoint_of(history, pa.Table.from_arrays(arrays, names=["protocol", "metaData", "add", "add"]))
    with pytest.raises(CorruptTableError, match="it has two columns called add"):
        table.files()


PARSED: list[Any] = [
    "text",
    {"numRecords": [1, 2], "minValues": {"id": [1]}},
    {"minValues": {"id": {"x": 1}}, "maxValues": "z", "nullCount": {"id": 1.5}},
    {"tightBounds": "yes", "minValues": {"id": True}},
]


@pytest.mark.parametrize("parsed", PARSED)
def test_parsed_statistics_of_another_type_are_unknown(history: DeltaHistory, parsed: Any) -> None:
    table = checkpoint_of(history, pa.table(base(add=[None, None, {"path": "f", "size": 1, "stats_parsed": parsed}])))
    assert table.plan("id = 5000")["kept"].to_list() == [True]
    assert table.statistics(columns=["id"]).select(pl.col("id").struct.field("max")).item() is None


def test_a_type_that_cannot_be_read_says_what_to_do(history: DeltaHistory) -> None:
    history.create({"id": "wish"}).commit(add("f"))
    with pytest.raises(UnsupportedTableError, match="values of type wish cannot be read") as caught:
        lv.open_table(history.address).scan().collect()
    assert caught.value.fix == "its log can be shown; read the rows with an engine that knows the type"


@pytest.mark.parametrize(("kind", "end"), [("date", "-0221-01-01"), ("timestamp", "-0221-01-01T00:00:00.000Z")])
def test_statistics_before_the_year_1_are_unknown(history: DeltaHistory, kind: str, end: str) -> None:
    stats = {"numRecords": 1, "minValues": {"when": end}, "maxValues": {"when": "2020-01-01"}}
    history.create({"when": kind}).commit(add("f", stats=stats))
    table = lv.open_table(history.address)
    assert table.statistics()["when"].to_list()[0]["min"] is None
    assert table.plan("\"when\" < '1999-01-01'")["kept"].to_list() == [True]
