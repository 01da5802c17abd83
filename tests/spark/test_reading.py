"""Reading through `format("lakeview")`: rows, versions and columns as asked, on tables another writer made."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import deltalake
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import lakeview as lv
from lakeview.model.errors import InvalidRequestError, NotATableError, VersionNotFoundError
from lakeview.model.schema import Schema
from lakeview.rows.tasks import FileTask
from lakeview.spark import table
from lakeview.spark.reader import pack

pytestmark = pytest.mark.spark

MOMENT = datetime(2013, 1, 1, 10, 0, 0, 123456, tzinfo=UTC)
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "place": pa.array(["x", "y=1 %", None, "x"]),
        "at": pa.array([MOMENT, None, MOMENT, MOMENT], pa.timestamp("us", "UTC")),
        "local": pa.array([MOMENT.replace(tzinfo=None)] * 4, pa.timestamp("us")),
        "price": pa.array([Decimal("1.50"), None, Decimal("-0.01"), Decimal("9.99")], pa.decimal128(10, 2)),
        "day": pa.array([date(2013, 1, 1)] * 4),
        "tags": pa.array([["a", None], [], None, ["b"]], pa.list_(pa.string())),
        "inside": pa.array([{"a.b": 1, "c": [1.5]}, None, {"a.b": None, "c": None}, {"a.b": 4, "c": []}]),
        "counts": pa.array([[("k", 1)], None, [], [("z", None)]], pa.map_(pa.string(), pa.int32())),
        "raw": pa.array([b"\x00", None, b"", b"ab"], pa.binary()),
        "flag": pa.array([True, None, False, True]),
    }
)


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two versions by another writer, partitioned by `place`; version 1 holds every row twice."""
    address = str(tmp_path_factory.mktemp("spark") / "orders")
    for _ in range(2):
        deltalake.write_deltalake(address, ROWS, partition_by=["place"], mode="append")
    return address


def test_every_type_arrives_as_it_was_written(spark: SparkSession, orders: str) -> None:
    rows = spark.read.format("lakeview").option("version", 0).load(orders).orderBy("id").toArrow()
    expected = Schema.from_arrow(ROWS.schema).to_arrow()
    assert rows.select(ROWS.schema.names).cast(expected).to_pylist() == ROWS.to_pylist()


def test_versions_and_moments_are_read_as_asked(spark: SparkSession, orders: str) -> None:
    source = spark.read.format("lakeview")
    assert source.load(orders).count() == 8
    assert source.option("version", 0).load(orders).count() == 4
    assert spark.read.format("lakeview").option("timestamp", "2100-01-01T00:00:00Z").load(orders).count() == 8
    assert table(spark, orders, at=datetime(2100, 1, 1, tzinfo=UTC)).count() == 8


def test_a_moment_without_an_offset_is_in_the_time_zone_of_the_session(spark: SparkSession, orders: str) -> None:
    first = lv.open_table(orders).history()["timestamp"].min()
    assert isinstance(first, datetime)
    text = f"{first.astimezone(ZoneInfo('America/New_York')):%Y-%m-%d %H:%M:%S.%f}"
    with pytest.raises(VersionNotFoundError):
        table(spark, orders, at=text)
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        assert table(spark, orders, at=text).count() == 4
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_frame_keeps_the_version_it_was_loaded_at(spark: SparkSession, tmp_path: Path) -> None:
    address = str(tmp_path / "moving")
    deltalake.write_deltalake(address, ROWS.select(["id"]))
    frames = [spark.read.format("lakeview").load(address), table(spark, address)]
    deltalake.write_deltalake(address, ROWS.select(["id"]), mode="append")
    assert [frame.count() for frame in frames] == [4, 4]
    assert [frame.where("id > 2").count() for frame in frames] == [2, 2]
    assert table(spark, address).count() == 8


def test_only_the_columns_and_rows_asked_for(spark: SparkSession, orders: str) -> None:
    frame = table(spark, orders, version=0, columns=["price", "id"], where="place = 'x'")
    assert frame.columns == ["price", "id"]
    assert sorted(frame.collect()) == [(Decimal("1.50"), 1), (Decimal("9.99"), 4)]
    assert table(spark, orders, columns=["ID"], where="PLACE IS NULL").collect() == [(3,), (3,)]
    assert table(spark, orders, where="place = 'nowhere'").collect() == []
    assert table(spark, orders, columns=[]).count() == 8


def test_files_ruled_out_by_where_are_not_opened(spark: SparkSession, tmp_path: Path) -> None:
    address = tmp_path / "parts"
    deltalake.write_deltalake(address, ROWS.select(["id", "place"]), partition_by=["place"])
    for file in address.glob("place=x/*.parquet"):
        file.unlink()
    assert table(spark, str(address), columns=["id"], where="place = 'y=1 %'").collect() == [(2,)]


def test_no_variable_is_put_into_a_condition(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "s": ["${spark.app.name}", spark.conf.get("spark.app.name")]})
    deltalake.write_deltalake(tmp_path / "t", rows)
    conditions = ("s = '${spark.app.name}'", "s LIKE '${%}'")
    assert [table(spark, str(tmp_path / "t"), columns=["id"], where=w).collect() for w in conditions] == [[(1,)]] * 2


def test_a_filter_of_one_query_does_not_leak_into_the_next(spark: SparkSession, orders: str) -> None:
    frame = spark.read.format("lakeview").load(orders)
    assert (frame.where("id > 3").count(), frame.count()) == (2, 8)
    assert frame.union(frame.where("id > 3")).count() == 10


def test_a_missing_file_says_which_and_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    address = tmp_path / "gone"
    deltalake.write_deltalake(address, ROWS.select(["id"]))
    (file,) = address.glob("*.parquet")
    file.unlink()
    with pytest.raises(Exception, match=f"DataFileMissingError: data file {re.escape(file.name)} is in the log of"):
        table(spark, str(address)).collect()


def test_what_cannot_be_read_is_said_on_the_driver(spark: SparkSession, tmp_path: Path, orders: str) -> None:
    with pytest.raises(NotATableError):
        table(spark, str(tmp_path))
    with pytest.raises(InvalidRequestError, match="there is no column nothing"):
        table(spark, orders, columns=["id", "nothing"])
    with pytest.raises(AnalysisException, match=r"NotATableError: .* is no table"):
        spark.read.format("lakeview").load(str(tmp_path))
    with pytest.raises(AnalysisException, match="versoin: no such option for reading"):
        spark.read.format("lakeview").option("versoin", 1).load(orders)


@pytest.mark.parametrize(
    ("megabytes", "expected"),
    [([], []), ([1], [1]), ([1, 1, 1, 1], [2, 2]), ([300, 1], [1, 1]), ([60] * 4, [1, 1, 1, 1])],
    ids=["nothing", "one file", "small files share", "a large file stands alone", "none above the limit"],
)
def test_files_are_packed_for_the_cores(
    megabytes: list[int], expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    tasks = [FileTask("root", str(n), Schema(), size=size << 20) for n, size in enumerate(megabytes)]
    packed = pack(tasks)
    assert [len(run) for run in packed] == expected
    assert [task for run in packed for task in run] == tasks


def test_a_condition_skips_no_file_that_spark_finds_rows_in(spark: SparkSession, orders: str) -> None:
    """It is read twice, by polars for files and by Spark for rows: where they might differ no file may be lost."""
    conditions = (
        "id = '2'", "place = 'x' OR id = 2", "day = '2013-01-01'", "price >= 1.5", "id < 5 / 2", "NOT (place = 'x')"
    )  # fmt: skip
    rows = spark.read.format("lakeview").load(orders)
    counts = rows.selectExpr(*(f"count_if({where})" for where in conditions)).first()
    assert counts is not None
    for where, everything in zip(conditions, counts, strict=True):
        assert table(spark, orders, where=where).count() == everything > 0, where


def test_a_timestamp_is_compared_with_a_text_as_spark_does(spark: SparkSession, tmp_path: Path) -> None:
    moments = [datetime(2026, 3, day, 9, tzinfo=UTC) for day in (1, 2)]
    rows = pa.table({"id": [1, 2], "ts": pa.array(moments, pa.timestamp("us", "UTC"))})
    deltalake.write_deltalake(tmp_path / "t", rows)
    for native in (True, False):
        frame = table(spark, str(tmp_path / "t"), columns=["id"], where="ts >= '2026-03-02'", native=native)
        assert frame.collect() == [(2,)]
