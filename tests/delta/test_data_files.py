"""Data files to rows: columns found and converted, and files that are gone or broken named."""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeview as lv
from lakeview.model.config import Config
from lakeview.model.errors import CorruptTableError, DataFileMissingError, UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.rows.parquet import read_task
from lakeview.rows.tasks import FileTask
from lakeview.storage.local import LocalStorage
from tests.builders.actions import add
from tests.builders.history import DeltaHistory
from tests.builders.months import months


def test_a_column_the_file_lacks_is_null_and_one_the_schema_lacks_is_left_out(history: DeltaHistory) -> None:
    history.create({"new": "string", "x": "long"}).commit(history.data("f", {"x": [1, 2], "_extra": ["a", "b"]}))
    assert lv.open_table(history.address).scan().collect().rows() == [(None, 1), (None, 2)]


def test_columns_are_found_whatever_their_case_unless_one_fits_exactly(history: DeltaHistory) -> None:
    history.create({"X": "long", "Name": "string"}).commit(history.data("f", {"x": [1], "X": [2], "NAME": ["n"]}))
    assert lv.open_table(history.address).scan().collect().rows() == [(2, "n")]


def test_the_partition_value_of_the_log_wins_over_the_files(history: DeltaHistory) -> None:
    history.create({"p": "long", "x": "long"}, partition_by=("p",))
    history.commit(history.data("f", {"p": [7, 8], "x": [1, 2]}, partition={"p": "3"}))
    rows = lv.open_table(history.address).scan()
    assert rows.collect().rows() == [(3, 1), (3, 2)]
    assert rows.filter(pl.col("p") == 7).collect().height == 0


EARLY, LATE = (datetime.fromisoformat(text) for text in ("1500-01-01T00:00:00", "9999-12-31T23:59:59"))


@pytest.mark.parametrize("type_", ["timestamp", "timestamp_ntz"])
@pytest.mark.parametrize(
    ("unit", "int96"), [("ms", False), ("us", False), ("us", True)], ids=["milliseconds", "microseconds", "INT96"]
)
@pytest.mark.parametrize("zone", [None, "UTC"], ids=["without zone", "in UTC"])
def test_timestamps_of_every_encoding_are_microseconds(
    history: DeltaHistory, type_: str, unit: str, int96: bool, zone: str | None
) -> None:
    moments = [EARLY.replace(microsecond=5000), LATE.replace(microsecond=999000), None]
    values = pa.array(moments, pa.timestamp(unit, None)).cast(pa.timestamp(unit, zone), safe=False)
    history.create({"t": type_}).commit(history.data("f", {"t": values}, int96=int96))
    column = lv.open_table(history.address).scan().collect()["t"]
    expected = [m if m is None or type_ == "timestamp_ntz" else m.replace(tzinfo=UTC) for m in moments]
    assert column.to_list() == expected


def test_timestamps_in_nanoseconds_are_cut_to_microseconds(history: DeltaHistory) -> None:
    values = pa.array([1_700_000_000_123_456_789], pa.timestamp("ns"))
    history.create({"t": "timestamp"}).commit(history.data("f", {"t": values}))
    assert lv.open_table(history.address).scan().collect()["t"].dt.epoch("us").to_list() == [1_700_000_000_123_456]


def test_narrower_numbers_are_widened(history: DeltaHistory) -> None:
    history.create({"a": "long", "b": "integer", "c": "double", "d": "double", "e": "decimal(20,4)"})
    history.commit(
        history.data(
            "f",
            {
                "a": pa.array([1], pa.int32()), "b": pa.array([2], pa.int8()), "c": pa.array([0.5], pa.float32()),
                "d": pa.array([7], pa.int32()), "e": pa.array([1], pa.decimal128(5, 2)),
            },
        )
    )  # fmt: skip
    row = lv.open_table(history.address).scan().collect().row(0)
    assert row[:4] == (1, 2, 0.5, 7.0)
    assert str(row[4]) == "1.0000"


def test_a_value_too_large_for_its_column_is_a_designed_error(history: DeltaHistory) -> None:
    history.create({"a": "integer"}).commit(history.data("f", {"a": [2**40]}))
    with pytest.raises(UnsupportedTableError, match="column a is int64 in a file and integer in the schema") as caught:
        lv.open_table(history.address).scan().collect()
    assert (caught.value.kind, caught.value.place) == ("unsupported-cast", "f")
    assert caught.value.fix == "read the other columns, or a version from before the type changed"


def test_a_missing_data_file_is_named_only_when_rows_are_read(history: DeltaHistory) -> None:
    months(history).remove("m2")
    table = lv.open_table(history.address)
    assert table.snapshot().num_records == 30
    assert table.scan().filter(pl.col("month") != 2).collect().height == 20
    with pytest.raises(DataFileMissingError) as caught:
        table.scan().collect()
    assert caught.value.message == f"data file m2 is in the log of {history.address} but not in the store"
    assert caught.value.fix == "restore it, or read another version: the table's versions tell which are whole"
    assert (caught.value.kind, caught.value.place) == ("data-file-missing", "m2")
    reasons = dict(table.versions().select("version", "reason").iter_rows())
    assert reasons[3] == reasons[2] == "1 of its data files is missing from the store"
    assert reasons[1] is None


SPOILED = {"empty": lambda _: b"", "no Parquet": lambda _: b"x" * 99, "cut in half": lambda d: d[: len(d) // 2]}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=[f"a data file {words}" for words in SPOILED])
def test_a_broken_data_file_is_named(history: DeltaHistory, spoil: Any) -> None:
    months(history).write("m2", spoil((Path(history.address) / "m2").read_bytes()))
    with pytest.raises(CorruptTableError, match="data file m2 cannot be read: ") as caught:
        lv.open_table(history.address).scan().collect()
    assert (caught.value.kind, caught.value.place) == ("corrupt-data-file", "m2")
    assert caught.value.fix == "restore the file from a backup, or read a version without it"


def test_text_that_is_no_utf8_is_a_designed_error(history: DeltaHistory) -> None:
    bad = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))
    history.create({"x": "string"}).commit(history.data("f", {"x": bad}))
    with pytest.raises(CorruptTableError, match="data file f cannot be read"):
        lv.open_table(history.address).scan().collect()


def test_a_file_of_many_batches_is_read_whole(history: DeltaHistory) -> None:
    buffer = BytesIO()
    pq.write_table(pa.table({"x": range(200_000)}), buffer, row_group_size=30_000)
    history.create({"x": "long"}).write("f", buffer.getvalue()).commit(add("f"))
    rows = lv.open_table(history.address).scan()
    assert rows.select(pl.col("x").sum()).collect().item() == sum(range(200_000))
    assert rows.filter(pl.col("x") >= 199_990).head(3).collect()["x"].to_list() == [199_990, 199_991, 199_992]


def test_of_a_local_file_only_the_part_of_a_column_that_is_needed_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = pa.table({"x": pa.arange(0, 500_000)})
    pq.write_table(numbers, tmp_path / "f", compression="none", use_dictionary=False, row_group_size=500_000)
    sizes: list[int] = []

    class CountingFile(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size)
            sizes.append(len(data))
            return data

    monkeypatch.setattr(
        LocalStorage, "open", lambda self, path, _size: CountingFile(Path(self.local_path(path)).read_bytes())
    )
    storage = LocalStorage(str(tmp_path), Config())
    size = (tmp_path / "f").stat().st_size
    batches = read_task(FileTask(str(tmp_path), "f", Schema.from_arrow(numbers.schema), {}, size), storage)
    assert next(batches).column(0)[-1].as_py() == 65_535
    assert sum(sizes) < size / 2, "the row group is in memory whole"
    assert sum(b.num_rows for b in batches) == 500_000 - 65_536
