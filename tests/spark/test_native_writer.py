"""Writing by Spark's own Parquet writer: the rows, statistics and commits that Python workers give."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.context import write_context
from lakeview.delta.write.vacuum.run import vacuum
from lakeview.model.errors import LakeviewError
from lakeview.spark import native_writer, write
from lakeview.spark.native_conditions import is_native
from lakeview.spark.types import from_spark
from lakeview.spark.writer import LakeviewWriter

pytestmark = pytest.mark.spark

TYPES = """SELECT id, CAST(id AS INT) AS i, CAST(id AS BYTE) AS b, CAST(id AS SHORT) AS s, CAST(id / 3 AS FLOAT) AS f,
    id / 3 AS d, if(id = 3, double('NaN'), CAST(id AS DOUBLE)) AS nan, if(id = 3, double('Infinity'), 1D) AS inf,
    CAST(id AS DECIMAL(5, 2)) AS d5, CAST(id AS DECIMAL(15, 2)) AS d15, CAST(id - 2 AS DECIMAL(38, 2)) AS d38,
    concat('ä', id) AS t, repeat(char(97 + id), 40) AS long, if(id = 1, repeat('x', 5000), 'y') AS longest,
    CAST('ab' AS BINARY) AS bytes, id > 3 AS flag, date_add(DATE'2020-01-01', CAST(id AS INT)) AS day,
    timestamp_micros(1700000000123456 + id) AS at, timestamp_ntz'2020-01-01 00:00:00.123456' AS at_ntz,
    named_struct('a', id, 'b', named_struct('c', if(id = 4, NULL, id))) AS st, if(id = 2, NULL, array(id)) AS ar,
    map('k', id) AS mp, CAST(NULL AS INT) AS nul, `a.b c` FROM (SELECT id, id AS `a.b c` FROM range(5))"""


def contents(address: Path) -> tuple[list[dict[str, Any]], list[tuple[Any, ...]]]:
    """The rows as another reader has them, and what the log says of each file."""
    rows = pl.DataFrame(deltalake.DeltaTable(str(address)).to_pyarrow_table()).sort("id").to_dicts()
    lines = max((address / "_delta_log").glob("*.json")).read_text(encoding="utf-8").splitlines()
    adds = [action["add"] for action in map(json.loads, lines) if "add" in action]
    return rows, sorted(
        ((add["partitionValues"], json.loads(add["stats"]), add["dataChange"]) for add in adds), key=str
    )


def writers(address: Path) -> set[str]:
    """The libraries that wrote the live files."""
    files = deltalake.DeltaTable(str(address)).file_uris()
    return {pq.read_metadata(path).created_by.partition(" version")[0] for path in files}


def leftovers(address: Path) -> set[str]:
    """What lies in the folder besides the log and the live files."""
    live = {Path(path).relative_to(address).as_posix() for path in deltalake.DeltaTable(str(address)).file_uris()}
    files = {path.relative_to(address).as_posix() for path in address.rglob("*") if path.is_file()}
    return {path for path in files if not path.startswith("_delta_log/")} - live


HOSTILE = """SELECT id, CASE id WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN '__HIVE_DEFAULT_PARTITION__'
    WHEN 3 THEN '../x' WHEN 4 THEN 'A' WHEN 5 THEN 'a' ELSE 'ä/=%25\\0' END AS p,
    timestamp_micros(-1 - id) AS at, DATE'0001-01-01' AS day, if(id = 2, NULL, id > 3) AS `yes no`,
    if(id > 4, ' ', 'A') COLLATE UTF8_LCASE_RTRIM AS folded FROM range(7)"""


@pytest.mark.parametrize(
    ("sql", "options"),
    [(TYPES, {}), (HOSTILE, {"partitionBy": ["p", "at", "day", "yes no", "folded"]})],
    ids=["types", "values"],
)
def test_rows_and_statistics_are_those_of_python_workers(
    spark: SparkSession, tmp_path: Path, sql: str, options: dict[str, Any]
) -> None:
    frame = spark.sql(sql).coalesce(1)
    for way, native in (("spark", True), ("python", False)):
        write(frame, str(tmp_path / way), native=native, **options)
    ours, pythons = contents(tmp_path / "spark"), contents(tmp_path / "python")
    assert str(ours) == str(pythons)  # NaN does not equal itself
    assert writers(tmp_path / "spark") == {"parquet-mr"}
    assert writers(tmp_path / "python") == {"parquet-cpp-arrow"}
    keys = ["operation", "parameters", "engine"]
    commits = [lv.open_table(str(tmp_path / way)).history(1).select(keys).row(0) for way in ("spark", "python")]
    assert commits[0] == commits[1]
    assert leftovers(tmp_path / "spark") == set()


def test_what_a_write_replaces(spark: SparkSession, tmp_path: Path) -> None:
    """A table of mapped columns, one of which must not be null."""
    address = tmp_path / "t"
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("part", pa.int32()), ("more", pa.string())])
    properties = {"delta.columnMapping.mode": "name"}
    lv.create_table(str(address), schema, partition_by="part", properties=properties)

    def rows(first: int, last: int) -> DataFrame:
        return spark.range(first, last + 1, 1, 1).selectExpr("CAST(id % 3 AS INT) AS PART", "id")

    def ids() -> list[int]:
        return lv.open_table(str(address)).scan().collect()["id"].sort().to_list()

    for _ in range(2):
        write(rows(0, 5), str(address), "append", txnAppId="loads", txnVersion=1)
    assert ids() == [0, 1, 2, 3, 4, 5]
    write(rows(30, 38).where("part = 1"), str(address), "overwrite", partitionOverwriteMode="dynamic")
    write(rows(40, 48).where("part = 2"), str(address), "overwrite", replaceWhere="part = 2")
    assert ids() == [0, 3, 31, 34, 37, 41, 44, 47]
    write(rows(0, -1), str(address), "append")
    assert ids() == [0, 3, 31, 34, 37, 41, 44, 47]
    assert writers(address) == {"parquet-mr"}
    assert leftovers(address) == {f for f in leftovers(address) if f.endswith(".parquet")}  # that were replaced
    before = leftovers(address)
    refused: list[tuple[DataFrame, Any, dict[str, Any], str]] = [
        (
            rows(50, 51).selectExpr("nullif(id, 50) AS id", "part"),
            "append",
            {},
            "id must not be null, and 1 of the row",
        ),
        (rows(50, 53), "overwrite", {"replaceWhere": "part = 2"}, "are not in part = 2"),
        (rows(50, 53).selectExpr("raise_error('broken row') AS id", "part"), "append", {}, "broken row"),
        (rows(50, 53), "errorifexists", {}, "there is a table at"),
        (rows(50, 53), "update", {}, "'update' is no mode"),
        (rows(50, 53), None, {}, "None is no mode"),
    ]
    for frame, mode, options, message in refused:
        with pytest.raises(Exception, match=message):
            write(frame, str(address), mode, **options)
    write(rows(50, 53), str(address), "ignore")
    assert leftovers(address) == before
    assert ids() == [0, 3, 31, 34, 37, 41, 44, 47]
    write(rows(50, 51), str(address), "overwrite")
    assert ids() == [50, 51]


def test_what_spark_would_write_otherwise_passes_through_python(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(2).selectExpr("id", "CAST(id AS STRING) AS text", "CURRENT_TIMESTAMP() AS at")
    address = tmp_path / "long"
    write(rows.selectExpr("id", "repeat('x', 300) AS p"), str(address), partitionBy="p")
    assert writers(address) == {"parquet-cpp-arrow"}
    assert lv.open_table(str(address)).snapshot().num_records == 2
    context = write_context("/t", from_spark(rows.schema), [], {})
    assert is_native(rows, context)
    thirteen = rows.selectExpr("id", *(f"text AS p{number}" for number in range(13)))
    legacy = {"spark.sql.parquet.outputTimestampType": "INT96"}
    for frame, schema, partitions, properties in (
        (rows, from_spark(rows.schema), [], {"delta.constraints.c": "id > 0"}),
        (rows, from_spark(rows.schema), [], {"delta.parquet.compression.codec": "brotli"}),
        (rows, from_spark(rows.schema), [], {"delta.targetFileSize": "1mb"}),
        (rows.selectExpr("CAST(id AS INT) AS id"), from_spark(rows.schema), [], {}),
        (rows.selectExpr("id", "double(id) AS x"), from_spark(spark.sql("SELECT 1L AS id, 0D AS x").schema), ["x"], {}),
        (thirteen, from_spark(thirteen.schema), thirteen.columns[1:], {}),
    ):
        assert not is_native(frame, write_context("/t", schema, partitions, properties)), properties
    for name, value in legacy.items():
        before = spark.conf.get(name)
        spark.conf.set(name, value)
        try:
            assert not is_native(rows, context)
            assert is_native(rows.drop("at"), write_context("/t", from_spark(rows.drop("at").schema), [], {}))
        finally:
            spark.conf.set(name, str(before))


def test_footers_of_few_files_take_no_job(spark: SparkSession, tmp_path: Path) -> None:
    spark.sparkContext.setJobGroup("footers", "")
    try:
        write(spark.range(2), str(tmp_path / "t"))
        assert len(spark.sparkContext.statusTracker().getJobIdsForGroup("footers")) == 1
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # which takes it away


def test_a_write_that_fails_before_there_is_a_table_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="broken row"):
        write(spark.range(1).selectExpr("raise_error('broken row') AS id"), str(tmp_path / "t"))
    assert list(tmp_path.iterdir()) == []


class _Kill(BaseException):
    """Ends the driver: nothing cleans up after it, as the test sees to."""


def test_a_driver_that_is_killed_leaves_the_table_before_or_after_the_write(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = str(tmp_path / "t")
    write(spark.range(1), address)
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)
    monkeypatch.setattr(LakeviewWriter, "abort", lambda *_: None)
    for owner, step, rows in (
        (native_writer, "_write_files", [0]),
        (native_writer, "_read_all", [0]),
        (native_writer, "move_files", [0]),
        (LakeviewWriter, "commit", [0, 1]),
    ):
        call = getattr(owner, step)

        def kill_after(*arguments: Any, call: Callable[..., object] = call) -> None:
            call(*arguments)
            raise _Kill

        with monkeypatch.context() as patch:
            patch.setattr(owner, step, kill_after)
            with pytest.raises(_Kill):
                write(spark.range(1, 2, 1, 1), address, "append")
        assert sorted(lv.open_table(address).scan().collect()["id"]) == rows, step
    monkeypatch.undo()
    (orphans,) = [finding for finding in lv.open_table(address).check() if finding.id == "orphan-files"]
    files = leftovers(tmp_path / "t")
    assert len([path for path in files if path.endswith(".parquet")]) == 3
    assert f"{len(files)} files" in orphans.claim
    opened = lv.open_table(address)
    assert isinstance(opened, DeltaTable)
    vacuum(opened, dry_run=False, clock=lambda: datetime(2100, 1, 1, tzinfo=UTC))
    assert leftovers(tmp_path / "t") == set()
    assert sorted(opened.scan().collect()["id"]) == [0, 1]


def test_files_that_spark_wrote_on_another_machine_are_missed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit without them would lose the rows: one of two files is here."""
    staged_files = native_writer._staged_files
    monkeypatch.setattr(native_writer, "_staged_files", lambda *which: staged_files(*which)[:1])
    with pytest.raises(LakeviewError, match=r"of 4 rows that Spark wrote .* 2 are there for this process"):
        write(spark.range(0, 4, 1, 2), str(tmp_path / "t"))
    assert list(tmp_path.iterdir()) == []
