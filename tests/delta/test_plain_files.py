"""Plain Parquet files to rows by polars' own scan: the rows are those of the reader that goes file by file."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.config import Config
from lakeview.model.errors import CorruptTableError, DataFileMissingError, LakeviewError
from lakeview.model.table import Table
from lakeview.rows import parquet, plain_files
from lakeview.rows.tasks import FileTask
from lakeview.storage import Storage
from tests.builders.actions import add, struct
from tests.builders.history import DeltaHistory
from tests.builders.mapped import field as mapped_field
from tests.builders.mapped import mapped, stored_field
from tests.builders.stores import FarStorage

POINT = pa.struct({"a": pa.int64(), "label": pa.string()})
MOMENTS = [datetime(1500, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)]


@dataclass
class Readers:
    """Which files went to polars together, and which were read one by one."""

    together: list[list[str]] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)


@pytest.fixture
def readers(monkeypatch: pytest.MonkeyPatch) -> Readers:
    """Watches both ways of reading a file."""
    reader_log = Readers()
    scan, read = pl.scan_parquet, parquet.read_task

    def scan_parquet(source: list[str], **options: Any) -> pl.LazyFrame:
        reader_log.together.append([Path(path).name for path in source])
        return scan(source, **options)

    def read_task(task: FileTask, storage: Storage) -> Iterator[pa.RecordBatch]:
        reader_log.alone.append(task.path)
        return read(task, storage)

    monkeypatch.setattr(pl, "scan_parquet", scan_parquet)
    monkeypatch.setattr(plain_files, "read_task", read_task)
    return reader_log


def by_pyarrow(history: DeltaHistory) -> Table:
    """The table, whose files are all read one by one."""
    return lv.open_table(history.address, config=Config(polars_parquet=False))


Ask = Callable[[pl.LazyFrame], pl.LazyFrame]
QUESTIONS: list[Any] = [
    pytest.param(lambda rows: rows, id="every column"),
    pytest.param(lambda rows: rows.select("id"), id="one column"),
    pytest.param(lambda rows: rows.select(pl.len()), id="the number of rows"),
    pytest.param(lambda rows: rows.filter(pl.col("id") > 2).select(pl.len()), id="the number of rows of a filter"),
    pytest.param(lambda rows: rows.filter(pl.col("id").is_null()), id="a filter that selects nulls"),
    pytest.param(lambda rows: rows.filter(pl.col("id") > 2).head(2), id="the first rows of a filter"),
    pytest.param(lambda rows: rows.group_by("id").len(), id="an aggregate"),
]
ENGINES = ["in-memory", "streaming"]


def same(history: DeltaHistory, ask: Ask, engine: Any = "auto") -> None:
    """Both ways of reading answer a question alike, also when it is asked twice."""
    lazy = ask(lv.open_table(history.address).scan())
    expected = ask(by_pyarrow(history).scan()).collect()
    for _ in range(2):
        rows = lazy.collect(engine=engine)
        assert rows.schema == expected.schema
        assert sorted(map(repr, rows.rows())) == sorted(map(repr, expected.rows()))


@pytest.fixture
def plain(history: DeltaHistory) -> DeltaHistory:
    """Three files, one of them with a null."""
    history.create({"id": "long", "name": "string"})
    for number in range(3):
        ids = [number, None, number + 1] if number == 1 else [number, number + 2, number + 4]
        history.commit(history.data(f"{number}.parquet", {"id": ids, "name": [f"n{number}"] * 3}))
    return history


@pytest.mark.parametrize("count", [0, 1, 4, 9, 70_000])
def test_a_filter_of_the_first_rows_selects_among_them_alone(plain: DeltaHistory, count: int) -> None:
    rows = lv.open_table(plain.address).scan().collect()
    expected = rows.head(count).filter(pl.col("id") > 2).select("name")
    for table in (lv.open_table(plain.address), by_pyarrow(plain)):
        assert table.scan().head(count).filter(pl.col("id") > 2).select("name").collect().equals(expected)


def test_files_of_a_remote_store_are_read_at_once_and_given_in_their_order(plain: DeltaHistory) -> None:
    together = threading.Barrier(3, timeout=30)

    class Waits(FarStorage):
        def open(self, path: str, size: int = 0) -> IO[bytes]:
            together.wait()  # until all three are asked for
            return super().open(path, size)

    table = DeltaTable(Waits(plain.address, Config(polars_parquet=False)))
    assert table.scan().collect().rows() == by_pyarrow(plain).scan().collect().rows()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ask", QUESTIONS)
def test_plain_files_are_read_together_and_right(plain: DeltaHistory, readers: Readers, ask: Ask, engine: Any) -> None:
    same(plain, ask, engine)
    assert not [names for names in readers.together if len(names) < 2]
    assert {name for names in readers.together for name in names} <= {"0.parquet", "1.parquet", "2.parquet"}


@pytest.mark.parametrize(
    ("least_bytes", "scans"), [(1 << 20, [2, 1]), (0, [1, 1, 1])], ids=["joined by path", "a literal in each scan"]
)
def test_partition_values_come_from_the_log(
    history: DeltaHistory, readers: Readers, monkeypatch: pytest.MonkeyPatch, least_bytes: int, scans: list[int]
) -> None:
    monkeypatch.setattr(plain_files, "_SCAN_BYTES", least_bytes)
    columns = {"id": "long", "day": "date", "amount": "decimal(9,2)", "at": "timestamp"}
    history.create(columns, partition_by=("day", "amount", "at"))
    values: list[dict[str, str | None]] = [
        {"day": "2026-03-01", "amount": "1.50", "at": "2026-03-01 08:00:00"},
        {"day": None, "amount": None, "at": None},
    ]
    for number, partition in enumerate(values):
        file = {"id": [number, number + 10], "day": [date(1999, 1, 1)] * 2}  # the log's value wins over the file's
        action = history.data(f"d={number} %/f*[1].parquet", file, partition=partition)
        action["add"]["path"] = f"d={number}%20%25/f*[1].parquet"
        history.commit(action)
    rows = lv.open_table(history.address).scan()
    rows_by_id = rows.sort("id").collect()
    assert rows_by_id["day"].to_list() == [date(2026, 3, 1), None] * 2
    assert rows_by_id["amount"].to_list() == [Decimal("1.50"), None] * 2
    assert rows_by_id["at"].to_list() == [datetime(2026, 3, 1, 8, tzinfo=UTC), None] * 2
    assert rows.filter(day=date(2026, 3, 1)).select("id", "day").sort("id").collect().rows() == [
        (0, date(2026, 3, 1)),
        (10, date(2026, 3, 1)),
    ]
    assert [len(names) for names in readers.together] == scans
    assert not readers.alone


ODD: list[Any] = [
    pytest.param({"id": pa.array([3, None], pa.int32())}, id="a narrower type"),
    pytest.param({"ID": pa.array([3, None])}, id="a name in another case"),
    pytest.param({"other": pa.array([3, None])}, id="no such column"),
    pytest.param({"id": pa.array([3, 4]), "point": pa.array([{"a": 1}, None])}, id="a struct that lacks a field"),
    pytest.param(
        {"point": pa.array([{"label": "x", "a": 1}, None], pa.struct({"label": pa.string(), "a": pa.int64()}))},
        id="a struct in another order",
    ),
    pytest.param({"point": pa.array([{"A": 1, "label": "x"}, None])}, id="a field in another case"),
    pytest.param({"at": pa.array(MOMENTS, pa.timestamp("ms", "UTC"))}, id="times in milliseconds"),
    pytest.param({"at": pa.array(MOMENTS, pa.timestamp("us"))}, id="times without a zone"),
    pytest.param({"at": pa.array(MOMENTS, pa.timestamp("us", "Europe/Paris"))}, id="times of another zone"),
    pytest.param({"items": pa.array([[1, None], None], pa.list_(pa.int32()))}, id="a list of a narrower type"),
    pytest.param(
        {"counts": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32()))}, id="a map of another type"
    ),
    pytest.param({"name": pa.array(["x", None]).dictionary_encode()}, id="a dictionary"),
    pytest.param({"name": pa.array(["x", None], pa.large_string())}, id="large texts"),
    pytest.param({"name": pa.array([b"x", None])}, id="bytes for text"),
]


@pytest.fixture
def evolved(history: DeltaHistory) -> DeltaHistory:
    """A table of many types with one plain file."""
    types: dict[str, Any] = {
        "id": "long",
        "name": "string",
        "at": "timestamp",
        "point": struct(a="long", label="string"),
        "items": {"type": "array", "elementType": "long", "containsNull": True},
        "counts": {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
    }
    rows = pa.table(
        {
            "id": [1, 2],
            "name": ["a", None],
            "at": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
            "point": pa.array([{"a": 1, "label": "x"}, None], POINT),
            "items": [[1, None], None],
            "counts": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        }
    )
    history.create(types)
    return history.commit(history.data("plain.parquet", rows))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("columns", ODD)
def test_a_file_that_differs_is_read_as_ever(evolved: DeltaHistory, columns: dict[str, Any], engine: Any) -> None:
    evolved.commit(evolved.data("odd.parquet", pa.table(columns)))
    same(evolved, lambda rows: rows, engine)
    same(evolved, lambda rows: rows.filter(pl.col("id").is_not_null() | pl.col("name").is_null()), engine)
    same(evolved, lambda rows: rows.select(pl.col("point").struct.field("label")), engine)


def test_files_of_old_columns_stay_plain(evolved: DeltaHistory, readers: Readers) -> None:
    for number in range(3):
        evolved.commit(evolved.data(f"old{number}.parquet", {"id": [number]}))
    rows = lv.open_table(evolved.address).scan().sort("id", "name").collect()
    assert rows.filter(pl.col("name").is_null())["id"].to_list() == [0, 1, 2, 2]
    assert sorted(map(len, readers.together[1:])) == [1, 3]
    assert not readers.alone


def test_far_moments_of_int96_survive(evolved: DeltaHistory) -> None:
    path = Path(evolved.address) / "int96.parquet"
    pq.write_table(
        pq.read_table(path.with_name("plain.parquet")), path, use_deprecated_int96_timestamps=True, store_schema=False
    )
    evolved.commit(add("int96.parquet", size=path.stat().st_size))
    assert lv.open_table(evolved.address).scan().collect()["at"].to_list() == MOMENTS * 2


def test_renamed_columns_are_read_together(history: DeltaHistory, readers: Readers) -> None:
    for mode in ("name", "id"):
        declaration = mapped(mode, mapped_field("^id$", "long", 1), mapped_field("p", "string", 2), partition_by=("p",))
        history.commit(*declaration)
        for number in range(2):
            rows = pa.table([pa.array([number])], pa.schema([stored_field(pa.int64(), 1)]))
            history.commit(history.data(f"{mode}{number}.parquet", rows, partition={"col-2": "x"}))
    rows_read = lv.open_table(history.address).scan().filter(pl.col("p") == "x").collect()
    assert sorted(rows_read.rows()) == [(0, "x"), (0, "x"), (1, "x"), (1, "x")]
    assert [len(names) for names in readers.together] == [4]


def test_a_file_that_is_gone_is_named(plain: DeltaHistory) -> None:
    (Path(plain.address) / "1.parquet").unlink()
    with pytest.raises(DataFileMissingError, match=r"1\.parquet"):
        lv.open_table(plain.address).scan().collect()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[:100] + data[120:], id="cut"),
        pytest.param(lambda data: data[:4] + bytes(len(data) - 200) + data[-196:], id="pages of zeroes"),
        pytest.param(lambda _: b"", id="empty"),
    ],
)
@pytest.mark.parametrize("ask", [QUESTIONS[0], QUESTIONS[3]])
def test_a_broken_file_is_named(history: DeltaHistory, damage: Callable[[bytes], bytes], ask: Ask) -> None:
    history.create({"id": "long"})
    for name in ("a", "b", "c"):
        history.commit(history.data(f"{name}.parquet", {"id": list(range(50))}))
    path = Path(history.address) / "b.parquet"
    path.write_bytes(damage(path.read_bytes()))  # where its size is another than the log's, polars never sees it
    with pytest.raises(CorruptTableError, match=r"b\.parquet"):
        ask(lv.open_table(history.address).scan()).collect()


def test_a_panic_of_polars_is_an_error_of_the_file(history: DeltaHistory, readers: Readers) -> None:
    history.create({"id": "long"}).commit(history.data("f.parquet", {"id": list(range(50))}))
    path = Path(history.address) / "f.parquet"
    data = path.read_bytes()
    at = data.rindex(b"\x16\x64\x16") + 1  # the number of values of the column, 50 as Thrift writes it
    path.write_bytes(data[:at] + b"\x51" + data[at + 1 :])  # -41: Arrow leaves the rows out
    with pytest.raises(CorruptTableError, match="its footer counts 50 rows, and 0 are in it"):
        lv.open_table(history.address).scan().collect()
    assert readers.together == [["f.parquet"]] * 2
    assert readers.alone == ["f.parquet"]


def test_a_link_out_of_the_table_is_refused(plain: DeltaHistory, tmp_path: Path) -> None:
    path = Path(plain.address) / "1.parquet"
    path.rename(tmp_path / "outside.parquet")
    path.symlink_to(tmp_path / "outside.parquet")
    with pytest.raises(LakeviewError, match="link that leaves the table"):
        lv.open_table(plain.address).scan().collect()


def test_previews_and_the_switch_leave_polars_out(plain: DeltaHistory, readers: Readers) -> None:
    assert lv.open_table(plain.address).scan().head(2).collect().height == 2
    assert by_pyarrow(plain).scan().collect().height == 9
    assert not readers.together


def test_row_groups_with_nan_are_not_skipped(history: DeltaHistory) -> None:
    history.create({"id": "double"})
    history.commit(history.data("f.parquet", {"id": [1.0, float("nan"), -0.0, 2.0]}))
    for ask in (pl.col("id") > 5, pl.col("id") == 0.0, pl.col("id").is_nan()):
        same(history, lambda rows, ask=ask: rows.filter(ask))  # type: ignore[misc]
