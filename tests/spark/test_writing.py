"""Writing through `format("lakeview")`: files by the executors, one commit by the driver, other readers agree."""

import errno
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameWriter, Row, SparkSession
from pyspark.sql.types import StructType

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.create import create_log
from lakeview.model.errors import (
    CommitConflictError,
    ConstraintViolationError,
    InvalidRequestError,
    LakeviewError,
    StoreUnavailableError,
)
from lakeview.spark import lakeview_errors, table
from lakeview.spark.options import WriteOptions
from lakeview.spark.types import to_spark
from lakeview.spark.writer import LakeviewWriter
from lakeview.storage import open_storage
from lakeview.storage.local import LocalStorage
from tests.spark.test_reading import ROWS

pytestmark = pytest.mark.spark


def numbers(spark: SparkSession, first: int, last: int, tasks: int = 2) -> DataFrame:
    """Numbers with the remainder by three, written by so many tasks."""
    return spark.range(first, last + 1, 1, tasks).selectExpr("id", "CAST(id % 3 AS INT) AS part")


def writing(frame: DataFrame, mode: str = "append", **options: str | bool) -> DataFrameWriter:
    return frame.write.format("lakeview").mode(mode).options(**options)


def writer_of(schema: StructType, options: Mapping[str, str], *, overwrite: bool = False) -> LakeviewWriter:
    """The writer that a task of Spark calls, for rows of a schema."""
    return LakeviewWriter(WriteOptions.parse(options, overwrite=overwrite), schema, overwrite=overwrite)


def ids(address: Path) -> list[int]:
    """The ids a reader by other people finds."""
    ids_read: list[int] = pl.DataFrame(deltalake.DeltaTable(str(address)).to_pyarrow_table())["id"].sort().to_list()
    return ids_read


def data_files(address: Path) -> list[Path]:
    return sorted(address.rglob("*.parquet"))


def test_the_first_write_creates_the_table(spark: SparkSession, tmp_path: Path) -> None:
    address = tmp_path / "numbers"
    moment = "2026-03-04T05:06:07+00:00"
    options = {"partitionBy": "part", "delta.enableInCommitTimestamps": "true", "commitTimestamp": moment}
    writing(numbers(spark, 0, 9), userMetadata="the first ten", **options).save(str(address))
    opened_table = lv.open_table(str(address))
    now = opened_table.snapshot()
    assert (now.version, now.num_records, list(now.partition_columns)) == (1, 10, ["part"])
    assert now.properties == {"delta.enableInCommitTimestamps": "true"}
    assert all(field.nullable for field in now.schema)
    commit = opened_table.history(1).row(0, named=True)
    assert commit["operation"] == "WRITE"
    assert commit["timestamp"].replace(microsecond=0) == datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    assert commit["engine"].startswith("lakeview/")
    assert "Apache-Spark/4" in commit["engine"]
    assert json.loads(commit["parameters"])["mode"] == "Append"
    assert json.loads(commit["metrics"])["numOutputRows"] == "10"
    assert ids(address) == list(range(10))


def test_every_type_is_written_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path / "theirs"), ROWS)
    rows = table(spark, str(tmp_path / "theirs"))
    writing(rows, partitionBy="place").save(str(tmp_path / "ours"))
    ours = pl.DataFrame(deltalake.DeltaTable(str(tmp_path / "ours")).to_pyarrow_table()).sort("id")
    assert ours.to_dicts() == pl.DataFrame(ROWS).select(ours.columns).sort("id").to_dicts()
    ours_read = lv.open_table(str(tmp_path / "ours")).scan().collect().sort("id")
    assert ours_read.drop("counts").to_dicts() == ours.drop("counts").to_dicts()


def test_append_overwrite_and_replace_where(spark: SparkSession, tmp_path: Path) -> None:
    address = str(tmp_path / "numbers")
    writing(numbers(spark, 0, 5), partitionBy="part").save(address)
    writing(numbers(spark, 6, 8)).save(address)
    assert ids(tmp_path / "numbers") == list(range(9))
    writing(numbers(spark, 30, 38).where("part = 0"), "overwrite", replaceWhere="part = 0").save(address)
    assert ids(tmp_path / "numbers") == [1, 2, 4, 5, 7, 8, 30, 33, 36]
    commit = lv.open_table(address).history(1).row(0, named=True)
    assert json.loads(commit["parameters"]) == {"mode": "Overwrite", "partitionBy": '["part"]', "predicate": "part = 0"}
    writing(numbers(spark, 100, 101), "overwrite").save(address)
    assert ids(tmp_path / "numbers") == [100, 101]


def test_a_partition_of_a_mapped_column_is_replaced(tmp_path: Path) -> None:
    """The writer's own life, without Spark."""
    address = str(tmp_path / "numbers")
    rows = pa.table({"id": [1, 2], "part": [0, 1]})
    properties = {"delta.columnMapping.mode": "name"}
    table: Any = lv.create_table(address, rows.schema, partition_by=["part"], properties=properties)
    table.append(rows)
    options = {"path": address, "replaceWhere": "part = 1"}
    writer = writer_of(to_spark(lv.Schema.from_arrow(rows.schema)), options, overwrite=True)
    writer.commit([writer.write(iter(pa.table({"id": [3], "part": [1]}).to_batches()))])
    assert sorted(lv.open_table(address).scan().collect().rows()) == [(1, 0), (3, 1)]
    with pytest.raises(ConstraintViolationError, match=r"partition {'part': 0} are not in part = 1"):
        writer.commit([writer.write(iter(rows.to_batches()))])


@pytest.mark.parametrize(("option", "overwrite"), [("mergeSchema", False), ("overwriteSchema", True)])
def test_new_mapped_columns_have_the_names_that_the_files_have(tmp_path: Path, option: str, overwrite: bool) -> None:
    address = str(tmp_path / "numbers")
    properties = {"delta.columnMapping.mode": "name"}
    lv.create_table(address, pa.schema([("id", pa.int64())]), properties=properties)
    rows = pa.table({"id": [3], "at": [{"x": 1}]})
    options = {"path": address, option: "true"}
    writer = writer_of(to_spark(lv.Schema.from_arrow(rows.schema)), options, overwrite=overwrite)
    writer.commit([writer.write(iter(rows.to_batches()))])
    written = lv.open_table(address)
    assert written.scan().collect().rows() == [(3, {"x": 1})]
    largest = int(written.snapshot().properties["delta.columnMapping.maxColumnId"])
    assert largest == max(field.id or 0 for field in written.snapshot().schema) + 1  # of the field x


def test_rows_that_spell_columns_and_fields_otherwise_are_checked_against_the_condition(tmp_path: Path) -> None:
    address = str(tmp_path / "places")
    rows = pa.table({"id": [1, 2], "at": [{"x": 1}, {"x": 2}]})
    table: Any = lv.create_table(address, rows.schema)
    table.append(rows)
    rows_given = pa.table({"ID": [3], "At": [{"X": 2}]})
    options = {"path": address, "replaceWhere": "at.x = 2"}
    writer = writer_of(to_spark(lv.Schema.from_arrow(rows_given.schema)), options, overwrite=True)
    writer.commit([writer.write(iter(rows_given.to_batches()))])
    assert sorted(lv.open_table(address).scan().collect()["id"]) == [1, 3]


def test_a_condition_on_rows_takes_an_empty_text_in_a_partition_column_for_null(tmp_path: Path) -> None:
    """An overwrite of p = '' took rows that are null once they are written, so that a second one added them again."""
    rows = pa.table({"n": [1], "p": [""]})
    lv.create_table(tmp_path, rows.schema, partition_by="p")

    def write(where: str) -> None:
        options = {"path": str(tmp_path), "replaceWhere": where}
        writer = writer_of(to_spark(lv.Schema.from_arrow(rows.schema)), options, overwrite=True)
        writer.commit([writer.write(iter(rows.to_batches()))])

    for _ in range(2):
        write("p IS NULL AND n > 0")
    assert lv.open_table(tmp_path).scan().collect().rows() == [(1, None)]
    with pytest.raises(ConstraintViolationError, match="1 rows are not in"):
        write("p = '' AND n > 0")


def test_rows_outside_what_they_replace_are_refused_and_leave_nothing(spark: SparkSession, tmp_path: Path) -> None:
    address = tmp_path / "numbers"
    writing(numbers(spark, 0, 5), partitionBy="part").save(str(address))
    before = data_files(address)
    with pytest.raises(Exception, match=ConstraintViolationError.__name__ + r".*are not in part = 0"):
        writing(numbers(spark, 6, 8), "overwrite", replaceWhere="part = 0").save(str(address))
    assert data_files(address) == before
    assert lv.open_table(str(address)).latest_version == 1


def test_a_batch_that_is_written_twice_is_there_once(spark: SparkSession, tmp_path: Path) -> None:
    address = tmp_path / "numbers"
    for first, batch in ((0, 1), (0, 1), (10, 2), (10, 2), (0, 1)):
        writing(numbers(spark, first, first + 4), txnAppId="loads", txnVersion=str(batch)).save(str(address))
    assert ids(address) == [*range(5), *range(10, 15)]
    paths = lv.open_table(str(address)).files(columns=["path"])["path"]
    assert len(data_files(address)) == len(paths), "files of the batches that changed nothing are still there"
    writing(numbers(spark, 20, 21), txnAppId="other", txnVersion="1").save(str(address))
    assert ids(address)[-1] == 21


def test_only_the_partitions_that_rows_fall_into_are_replaced(spark: SparkSession, tmp_path: Path) -> None:
    address = tmp_path / "numbers"
    writing(numbers(spark, 0, 5), partitionBy="part").save(str(address))
    few = numbers(spark, 30, 38).where("part = 1")
    writing(few, "overwrite", partitionOverwriteMode="dynamic").save(str(address))
    assert ids(address) == [0, 2, 3, 5, 31, 34, 37]
    parameters = json.loads(lv.open_table(str(address)).history(1)["parameters"][0])
    assert parameters["partitionOverwriteMode"] == "dynamic"
    writing(numbers(spark, 0, 1), "append").save(str(tmp_path / "whole"))
    with pytest.raises(Exception, match=r"InvalidRequestError.*has no partitions that rows could fall into"):
        writing(few, "overwrite", partitionOverwriteMode="dynamic").save(str(tmp_path / "whole"))


def test_rows_that_a_condition_selects_are_replaced(spark: SparkSession, tmp_path: Path) -> None:
    address = tmp_path / "numbers"
    writing(numbers(spark, 0, 9)).save(str(address))
    writing(numbers(spark, 3, 4), "overwrite", replaceWhere="id BETWEEN 3 AND 7").save(str(address))
    assert ids(address) == [0, 1, 2, 3, 4, 8, 9]
    with pytest.raises(Exception, match=r"ConstraintViolationError.*1 rows are not in id < 3"):
        writing(numbers(spark, 2, 3, 1), "overwrite", replaceWhere="id < 3").save(str(address))
    assert ids(address) == [0, 1, 2, 3, 4, 8, 9]


def test_an_overwrite_may_bring_other_columns_and_partitions(spark: SparkSession, tmp_path: Path) -> None:
    address = tmp_path / "numbers"
    writing(numbers(spark, 0, 9), partitionBy="PART").save(str(address))
    other = spark.sql("SELECT 'a' AS id, 2 AS n")
    writing(other, "overwrite", overwriteSchema=True, partitionBy="N").save(str(address))
    assert lv.open_table(str(address)).scan().collect().rows() == [("a", 2)]
    assert lv.open_table(str(address)).files()["partition"].to_list() == [{"n": 2}]


def test_files_hold_as_many_rows_as_asked(spark: SparkSession, tmp_path: Path) -> None:
    writing(numbers(spark, 0, 9, 1), maxRecordsPerFile="4").save(str(tmp_path / "numbers"))
    assert sorted(lv.open_table(str(tmp_path / "numbers")).files()["records"].to_list()) == [2, 4, 4]


def test_new_columns_come_in_only_when_asked(spark: SparkSession, tmp_path: Path) -> None:
    address = str(tmp_path / "numbers")
    writing(numbers(spark, 0, 2)).save(address)
    wider = numbers(spark, 3, 4).selectExpr("id", "id * 2 AS twice")
    with pytest.raises(Exception, match="the rows have a column twice that the table has not"):
        writing(wider).save(address)
    writing(wider, mergeSchema=True).save(address)
    rows = lv.open_table(address).scan().collect().sort("id")
    assert rows.rows() == [(0, 0, None), (1, 1, None), (2, 2, None), (3, None, 6), (4, None, 8)]


def test_numbers_are_widened_where_the_table_says_so(spark: SparkSession, tmp_path: Path) -> None:
    address = str(tmp_path / "numbers")
    small = spark.sql("SELECT CAST(1 AS INT) AS n, CAST(1 AS INT) AS part, CAST(0.5 AS FLOAT) AS x")
    large = spark.sql("SELECT 5000000000L AS n, CAST(2 AS INT) AS part, 0.1D AS x")
    writing(small, partitionBy="part", **{"delta.enableTypeWidening": "true"}).save(address)
    writing(large, mergeSchema=True).save(address)
    assert sorted(lv.open_table(address).scan().collect().rows()) == [(1, 1, 0.5), (5_000_000_000, 2, 0.1)]
    with pytest.raises(Exception, match="column n is double and does not fit int64"):
        writing(spark.sql("SELECT 1.5D AS n, 1 AS part, 0D AS x"), mergeSchema=True).save(address)


def test_numbers_inside_structs_lists_and_maps_are_widened_too(spark: SparkSession, tmp_path: Path) -> None:
    address = str(tmp_path / "nested")
    small = "named_struct('a.b', 1, 'l', array(named_struct('y', 1S))) AS s, map(1S, array(0.5F)) AS m"
    writing(spark.sql(f"SELECT {small}"), **{"delta.enableTypeWidening": "true"}).save(address)
    large = "named_struct('A.B', 5000000000L, 'l', array(named_struct('y', 70000, 'z', 1))) AS S, "
    large += "map(70000, array(0.1D)) AS m"
    writing(spark.sql(f"SELECT {large}"), mergeSchema=True).save(address)
    for rows in (table(spark, address), table(spark, address, native=False)):
        assert sorted(rows.collect()) == [
            (Row(**{"a.b": 1, "l": [Row(y=1, z=None)]}), {1: [0.5]}),
            (Row(**{"a.b": 5_000_000_000, "l": [Row(y=70000, z=1)]}), {70000: [0.1]}),
        ]


def test_a_write_that_needs_no_table_to_be_there(spark: SparkSession, tmp_path: Path) -> None:
    """The modes that Spark passes to no Python source: it refuses them before we are asked."""
    address = tmp_path / "numbers"
    with pytest.raises(AnalysisException, match='cannot be written in the "ErrorIfExists" mode'):
        numbers(spark, 0, 1).write.format("lakeview").save(str(address))
    writing(numbers(spark, 0, 1), ifExists="error").save(str(address))
    writing(numbers(spark, 2, 3), ifExists="ignore").save(str(address))
    assert ids(address) == [0, 1]
    assert lv.open_table(str(address)).latest_version == 1
    frame = numbers(spark, 4, 5, tasks=1)
    for if_exists in ("error", "ignore"):  # another writer creates the table while the rows are written
        options = {"path": str(tmp_path / if_exists), "ifExists": if_exists}
        writer = writer_of(frame.schema, options)
        messages = [writer.write(iter(frame.toArrow().to_batches()))]
        create_log(open_storage(options["path"]), lv.Schema.from_arrow(frame.toArrow().schema))
        with nullcontext() if if_exists == "ignore" else pytest.raises(InvalidRequestError, match="there is a table"):
            writer.commit(messages)
        assert data_files(tmp_path / if_exists) == []


NESTED = """SELECT {id} AS id, named_struct('a', 1{b}) AS s, array(named_struct('a', 1{b})) AS l,
    map('k', named_struct('a', 1{b})) AS m, array(map('k', array(named_struct('a', 1{b})))) AS deep"""


def test_fields_inside_structs_come_in_only_when_asked_and_at_every_depth(spark: SparkSession, tmp_path: Path) -> None:
    address = str(tmp_path / "nested")
    narrow, wide = spark.sql(NESTED.format(id=1, b="")), spark.sql(NESTED.format(id=2, b=", 'b', 2"))
    writing(narrow).save(address)
    with pytest.raises(Exception, match=r"InvalidRequestError: the rows have a field s\.b that the table has not"):
        writing(wide).save(address)
    writing(wide, mergeSchema=True).save(address)
    with pytest.raises(Exception, match=r"InvalidRequestError: the rows have no field s\.b, and the table has one"):
        writing(narrow).save(address)
    writing(spark.sql(NESTED.format(id=3, b="")), mergeSchema=True).save(address)
    assert len(data_files(tmp_path / "nested")) == 3
    expected = []
    for number, b in ((1, None), (2, 2), (3, None)):
        one = {"a": 1, "b": b}
        deep = [[("k", [one])]]
        expected.append({"id": number, "s": one, "l": [one], "m": [("k", one)], "deep": deep})
    ours = lv.open_table(address).scan().collect().sort("id").to_arrow().to_pylist()
    theirs = pa.table(deltalake.DeltaTable(address).to_pyarrow_table()).sort_by("id").to_pylist()
    assert ours == theirs == expected
    again = table(spark, address).orderBy("id").toArrow().to_pylist()
    assert again == expected


REFUSED: dict[str, tuple[str, dict[str, str], str]] = {
    "another type": ("'x' AS id", {}, "InvalidRequestError: column id is string and does not fit int64"),
    "a value out of range": ("CAST(1e300 AS DOUBLE) AS part", {}, "column part is double and does not fit int32"),
    "a column in an append": ("id; 1 AS x", {}, "the rows have a column x that the table has not"),
    "a type of Spark's": ("INTERVAL 1 DAY AS id", {}, "UnsupportedTableError: column id has the type interval day"),
    "a time": ("TIME'10:00:00' AS id", {}, "UnsupportedTableError: column id has the type time"),
    "a variant": ("parse_json('1') AS id", {}, "UnsupportedTableError: column id has the type variant"),
    "a table that is there": ("id", {"ifExists": "error"}, "InvalidRequestError: there is a table at"),
    "replaceWhere on no column": ("id", {"replaceWhere": "ix = 1"}, "InvalidRequestError: "),
    "replaceWhere on what the rows lack": ("1 AS part", {"replaceWhere": "id = 1"}, "id, which the rows do not have"),
    "replaceWhere of another type": ("id", {"replaceWhere": "part = 'x'"}, "part = 'x' cannot be evaluated"),
    "replaceWhere that is no condition": ("id", {"replaceWhere": "part"}, "part is Int32, not true"),
    "two ways to replace": (
        "id", {"partitionOverwriteMode": "dynamic", "replaceWhere": "part = 1"}, "both say what to replace"
    ),
    "a misspelt option": ("id", {"mergeSchma": "true"}, "fix: did you mean mergeSchema"),
    "a property of its own": ("id", {"delta.appendOnly": "true"}, "InvalidRequestError: delta.appendOnly is true, and"),
    "a property that is none": ("id", {"delta.checkpointInterval": "-3"}, "delta.checkpointInterval is '-3', which it"),
}  # fmt: skip


BY_SPARK = ("a value out of range", "replaceWhere of another type", "a misspelt option")
"""What is refused once through Spark as well: a type, a condition, an option."""


def refusal(frame: DataFrame, mode: str, options: dict[str, str]) -> str:
    """What the writer has against rows: its error as Spark's users see it."""
    overwrite = mode == "overwrite"
    try:
        writer = writer_of(frame.schema, options, overwrite=overwrite)
        writer.write(iter(frame.toArrow().to_batches()))
    except LakeviewError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def test_what_spark_users_meet_first_is_refused_by_design_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    address = tmp_path / "numbers"
    writing(numbers(spark, 0, 2), partitionBy="part").save(str(address))
    before = sorted(address.rglob("*"))
    for what, (columns, options, message) in REFUSED.items():
        mode = "overwrite" if "replaceWhere" in options else "append"
        frame = spark.range(1).selectExpr(*columns.split("; "))
        texts = [refusal(frame, mode, {"path": str(address), **options})]
        if what in BY_SPARK:
            with pytest.raises(Exception, match=re.escape(message)) as caught:
                writing(frame, mode, **options).save(str(address))
            texts.append(str(caught.value))
        assert sorted(address.rglob("*")) == before, what
        for text in texts:
            assert message in text, what
            assert "  fix: " in text, what
    writing(spark.range(1).selectExpr("CAST(0 AS INT) AS PART", "7L AS ID")).save(str(address))
    assert ids(address) == [0, 1, 2, 7]


def test_a_new_table_that_cannot_be_is_refused_before_any_row(spark: SparkSession, tmp_path: Path) -> None:
    frame = numbers(spark, 0, 2)
    for options, words in (
        ({"delta.enableIcebergCompatV1": "true"}, "icebergCompatV1"),
        ({"delta.columnMapping.mode": "name"}, "columns of a table that is not there yet cannot be mapped"),
        ({"partitionBy": "id,part"}, "every column is a partition column"),
    ):
        with pytest.raises(LakeviewError, match=words):
            writer_of(frame.schema, {"path": str(tmp_path), **options})
    options = {"path": str(tmp_path / "kept"), "delta.appendOnly": "true"}
    lv.create_table(
        options["path"], lv.Schema.from_arrow(frame.toArrow().schema), properties={"delta.appendOnly": "true"}
    )
    with pytest.raises(ConstraintViolationError, match="append-only"):
        writer_of(frame.schema, options, overwrite=True)
    writing(frame, **{"delta.parquet.compression.codec": "snappy"}).save(str(tmp_path / "snappy"))
    assert all(path.name.endswith(".c000.snappy.parquet") for path in data_files(tmp_path / "snappy"))


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        ("id", {"partitionBy": "nothing"}, "partitionBy names nothing, which is no column of the rows"),
        ("CAST('x' AS STRING) AS id", {}, "column id is string and does not fit int64"),
    ],
    ids=["partition by a stranger", "another type"],
)
def test_rows_that_do_not_fit_are_refused_by_column(
    spark: SparkSession, tmp_path: Path, frame: str, options: dict[str, str], message: str
) -> None:
    address = tmp_path / "numbers"
    if not options:
        writing(numbers(spark, 0, 2)).save(str(address))
    before = data_files(address)
    with pytest.raises(Exception, match=message):
        writing(spark.range(2).selectExpr(frame), **options).save(str(address))
    assert data_files(address) == before


def test_a_table_partitioned_otherwise_is_not_repartitioned(spark: SparkSession, tmp_path: Path) -> None:
    address = str(tmp_path / "numbers")
    writing(numbers(spark, 0, 2), partitionBy="part").save(address)
    with pytest.raises(Exception, match="is partitioned by part"):
        writing(numbers(spark, 0, 2), partitionBy="id").save(address)


def test_a_task_that_fails_leaves_no_commit_and_no_files(spark: SparkSession, tmp_path: Path) -> None:
    """One task: of several, one may write a file after the driver has removed all."""
    address = tmp_path / "numbers"
    (tmp_path / "rows.csv").write_text("1\n2\nthree\n", encoding="utf-8")
    strict = spark.read.schema("id long").option("mode", "FAILFAST").csv(str(tmp_path / "rows.csv"))
    broken = numbers(spark, 0, 99, tasks=1).selectExpr("if(id = 99, raise_error('this row is broken'), id) AS id")
    for frame, words in ((broken, "this row is broken"), (strict, "a row of the source is not what its schema says")):
        with pytest.raises(Exception, match=words), lakeview_errors():
            writing(frame).save(str(address))
        assert data_files(address) == []
        assert not (address / "_delta_log").exists()


def test_a_full_disk_fails_the_task_by_design(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer's own life, without Spark between: its files go, whole or not."""
    address = tmp_path / "numbers"
    frame = numbers(spark, 0, 5, tasks=1)
    writer = writer_of(frame.schema, {"path": str(address)})
    writer.context = replace(writer.context, rows_per_file=2)
    sync, synced = os.fsync, []

    def fill(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", fill)
        with pytest.raises(StoreUnavailableError, match="No space left on device"):
            writer.write(iter(frame.toArrow().to_batches()))
    assert [path for path in address.rglob("*") if path.is_file()] == []


def test_of_several_tasks_one_that_fails_leaves_no_commit(spark: SparkSession, tmp_path: Path) -> None:
    address = tmp_path / "numbers"
    broken = numbers(spark, 0, 99, tasks=3).selectExpr("if(id = 99, raise_error('this row is broken'), id) AS id")
    with pytest.raises(Exception, match="this row is broken"):
        writing(broken).save(str(address))
    assert not (address / "_delta_log").exists()


def test_a_task_that_fails_after_several_files_removes_them(spark: SparkSession, tmp_path: Path) -> None:
    address = tmp_path / "numbers"
    frame = numbers(spark, 0, 5, tasks=1)
    writer = writer_of(frame.schema, {"path": str(address)})
    writer.context = replace(writer.context, rows_per_file=2)
    (batch,) = frame.toArrow().to_batches()
    sizes: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for start in (0, 2, 4):
            yield batch.slice(start, 2)
            sizes.append(len(data_files(address)))
        raise RuntimeError("this row is broken")

    with pytest.raises(RuntimeError, match="this row is broken"):
        writer.write(batches())
    assert sizes == [1, 2, 3]
    assert data_files(address) == []


@pytest.mark.parametrize("partition_by", ["", "part"], ids=["in one folder", "in partitions"])
def test_an_aborted_write_removes_the_files_of_all_its_tasks(
    spark: SparkSession, tmp_path: Path, partition_by: str
) -> None:
    """The writer called without Spark: files reported to `abort`, those of a task that ended before its word came, and
    what was begun of one; those of another write stay."""
    address = tmp_path / "numbers"
    frame = numbers(spark, 0, 5, tasks=1)
    options = {"path": str(address), "partitionBy": partition_by}
    writer, other = (writer_of(frame.schema, options) for _ in range(2))
    rows = frame.toArrow().to_batches()
    messages = [writer.write(iter(rows)) for _ in range(2)]
    begun = data_files(address)[0]
    begun.with_name(f".{begun.name}.{'0' * 32}.tmp").touch()
    other.write(iter(rows))
    files = set(data_files(address))
    writer.abort([messages[0], None])
    remaining = {path for path in address.rglob("*") if path.is_file()}
    assert len(remaining) == len(files) / 3
    assert remaining < files


def test_a_write_leaves_no_files_of_a_task_that_was_run_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer called without Spark: what a task wrote before its executor was killed."""
    address = tmp_path / "numbers"
    frame = numbers(spark, 0, 5, tasks=1)
    writer = writer_of(frame.schema, {"path": str(address)})
    rows = frame.toArrow().to_batches()
    writer.write(iter(rows))
    monkeypatch.setattr("lakeview.spark.writer.is_repeated", lambda: True)
    writer.commit([writer.write(iter(rows))])
    assert [path.name for path in data_files(address)] == lv.open_table(str(address)).files()["path"].to_list()


def test_rows_that_were_checked_against_other_rules_are_not_committed(spark: SparkSession, tmp_path: Path) -> None:
    """The writer's own life, without Spark between: a rule comes, or a table, while the rows are written."""
    address = tmp_path / "numbers"
    frame = numbers(spark, 0, 5, tasks=1)
    options = {"path": str(address)}
    schema = lv.Schema.from_arrow(frame.toArrow().schema)
    changes: list[Callable[[], object]] = [
        lambda: create_log(open_storage(str(address)), schema, properties={"delta.constraints.few": "id < 9"}),
        lambda: DeltaTable(open_storage(str(address))).add_constraint("fewer", "id < 3"),
    ]
    for change in changes:
        writer = writer_of(frame.schema, options)
        message = writer.write(iter(frame.toArrow().to_batches()))
        change()
        with pytest.raises(CommitConflictError, match="changed while the rows were written"):
            writer.commit([message])
        writer.abort([message])
        assert data_files(address) == []


def test_a_table_that_another_writer_created_alike_meanwhile_gets_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    """The writer called without Spark: of two first writes that begin at once both are there."""
    address = tmp_path / "numbers"
    frame = numbers(spark, 0, 5, tasks=1)
    options = {"path": str(address)}
    writers = [writer_of(frame.schema, options) for _ in range(2)]
    messages = [writer.write(iter(frame.toArrow().to_batches())) for writer in writers]
    for writer, message in zip(writers, messages, strict=True):
        writer.commit([message])
    assert sorted(ids(address)) == sorted([*range(6), *range(6)])


def test_files_of_a_commit_that_may_be_there_stay(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer's own life, without Spark between: no reply says whether the commit was made, and it was."""
    address = tmp_path / "numbers"
    writing(numbers(spark, 0, 1, tasks=1)).save(str(address))
    frame = numbers(spark, 2, 3, tasks=1)
    writer = writer_of(frame.schema, {"path": str(address)})
    messages = [writer.write(iter(frame.toArrow().to_batches()))]
    put_if_absent = LocalStorage.put_if_absent

    def put_without_reply(store: LocalStorage, path: str, data: bytes) -> None:
        put_if_absent(store, path, data)
        raise StoreUnavailableError("no reply")

    def refuse(store: LocalStorage, path: str) -> bool:
        raise StoreUnavailableError("no reply")

    with monkeypatch.context() as broken:
        broken.setattr(LocalStorage, "put_if_absent", put_without_reply)
        broken.setattr(LocalStorage, "exists", refuse)
        broken.setattr(LocalStorage, "remote", property(lambda _: True))
        with pytest.raises(StoreUnavailableError):
            writer.commit(messages)
        writer.abort(messages)
    assert ids(address) == [0, 1, 2, 3]


def test_a_commit_that_loses_is_taken_back(spark: SparkSession, tmp_path: Path) -> None:
    """The writer's own life, without Spark between: two overwrites of one file, the second comes too late."""
    address = tmp_path / "numbers"
    writing(numbers(spark, 0, 5, tasks=1)).save(str(address))
    (only,) = lv.open_table(str(address)).files(columns=["path"])["path"]
    frame = numbers(spark, 6, 7, tasks=1)
    options = {"path": str(address), "replaceFiles": json.dumps([only])}
    writers = [writer_of(frame.schema, options, overwrite=True) for _ in range(2)]
    messages = [[writer.write(iter(frame.toArrow().to_batches()))] for writer in writers]
    writers[0].commit(messages[0])
    with pytest.raises((CommitConflictError, InvalidRequestError)):
        writers[1].commit(messages[1])
    writers[1].abort(messages[1])
    assert ids(address) == [6, 7]
    assert len(data_files(address)) == 2
    assert lv.open_table(str(address)).latest_version == 2


def test_messages_of_failed_tasks_are_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    frame = numbers(spark, 0, 1)
    address = str(tmp_path / "numbers")
    writer = writer_of(frame.schema, {"path": address})
    message = writer.write(iter(frame.toArrow().to_batches()))
    writer.commit([None, message, writer.write(iter([]))])
    assert ids(tmp_path / "numbers") == [0, 1]


def test_files_without_statistics_when_asked(spark: SparkSession, tmp_path: Path) -> None:
    address = str(tmp_path / "numbers")
    writing(numbers(spark, 0, 5), statistics="none").save(address)
    opened_table = lv.open_table(address)
    assert opened_table.snapshot().num_records is None
    assert json.loads(opened_table.history(1)["metrics"][0])["numOutputRows"] == "6"
    assert ids(tmp_path / "numbers") == list(range(6))


def test_files_that_say_only_how_many_rows_they_have(spark: SparkSession, tmp_path: Path) -> None:
    address = str(tmp_path / "numbers")
    writing(numbers(spark, 0, 5, tasks=1), statistics="counts").save(address)
    opened_table = lv.open_table(address)
    assert opened_table.snapshot().num_records == 6
    assert opened_table.statistics(columns=["id"]).unnest("id")["min"].to_list() == [None]


def test_compaction_keeps_rows_that_came_meanwhile(spark: SparkSession, tmp_path: Path) -> None:
    address = str(tmp_path / "numbers")
    writing(numbers(spark, 0, 3)).save(address)
    files = lv.open_table(address).files(columns=["path"])["path"].to_list()
    rows = table(spark, address).coalesce(1)
    writing(numbers(spark, 50, 51)).save(address)
    writing(rows, "overwrite", replaceFiles=json.dumps(files), dataChange=False, operation="OPTIMIZE").save(address)
    assert ids(tmp_path / "numbers") == [0, 1, 2, 3, 50, 51]


def test_rows_go_to_files_as_arrow_batches(spark: SparkSession, tmp_path: Path) -> None:
    """Spark hands instants over in the zone Etc/UTC and literals as not null; both are taken as the table has them."""
    frame = spark.sql("SELECT 1 AS id, timestamp'2013-01-01 10:00:00' AS at")
    writing(frame).save(str(tmp_path / "one"))
    (file,) = data_files(tmp_path / "one")
    schema = pa.parquet.read_schema(file)
    assert schema.field("at").type == pa.timestamp("us", "UTC")
    assert lv.open_table(str(tmp_path / "one")).scan().collect().rows() == [(1, datetime(2013, 1, 1, 10, tzinfo=UTC))]
