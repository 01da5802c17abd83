"""Writing to Iceberg tables through `format("lakeview")`: files by the executors, one snapshot by the driver."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyiceberg.table import StaticTable
from pyspark.sql import DataFrame, SparkSession

import lakeview as lv
from lakeview.iceberg.metadata.transforms import parse_transform
from lakeview.model.data_types import PrimitiveType
from lakeview.model.errors import (
    AccessDeniedError,
    CommitConflictError,
    ConstraintViolationError,
    InvalidRequestError,
    LakeviewError,
    UnsupportedTableError,
)
from lakeview.spark import lakeview_errors
from lakeview.spark.aborted_writes import remove_files
from lakeview.spark.datasource import LakeviewDataSource
from lakeview.spark.iceberg_writer import IcebergWriter
from lakeview.spark.stream_writer import LakeviewStreamWriter
from lakeview.storage import open_storage
from lakeview.storage.local import LocalStorage
from tests.builders.catalogs import RestState, rest_catalog
from tests.builders.iceberg import IcebergHistory
from tests.builders.opening import open_iceberg_table

pytestmark = pytest.mark.spark

FIELDS: list[dict[str, Any]] = [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "text", "required": False, "type": "string"},
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A table in buckets, without rows."""
    IcebergHistory(tmp_path / "t", FIELDS, [(1, "bucket[2]", "id_b")], location=str(tmp_path / "t"))
    return tmp_path / "t"


def numbers(spark: SparkSession, first: int, last: int, tasks: int = 2) -> DataFrame:
    return spark.range(first, last + 1, 1, tasks).selectExpr("id", "concat('n', id) AS text")


def writer_of(frame: DataFrame, place: Path | str, *, overwrite: bool = False, **options: str) -> IcebergWriter:
    """The writer that Spark asks for, without Spark between."""
    writer = LakeviewDataSource({"path": str(place), **options}).writer(frame.schema, overwrite)
    assert isinstance(writer, IcebergWriter)
    return writer


def ids(place: Path) -> list[int]:
    ids_read: list[int] = sorted(lv.open_table(str(place)).scan().collect()["id"])
    return ids_read


def files_below(place: Path) -> set[Path]:
    return {path for path in place.rglob("*") if path.is_file()}


def latest(place: Path) -> Path:
    return max((place / "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:].partition(".")[0]))


def test_the_rows_of_all_tasks_are_one_snapshot(spark: SparkSession, place: Path) -> None:
    for first in (0, 100):
        frame = numbers(spark, first, first + 99, tasks=3)
        frame.write.format("lakeview").mode("append").option("maxRecordsPerFile", 40).save(str(place))
    document = json.loads(latest(place).read_text())
    assert len(document["snapshots"]) == 2
    summary = document["snapshots"][1]["summary"]
    assert (summary["added-records"], summary["total-records"]) == ("100", "200")
    assert (summary["engine-name"], summary["spark-version"]) == ("lakeview", spark.version)
    rows_read = StaticTable.from_metadata(str(latest(place))).scan().to_arrow()
    assert sorted(rows_read["id"].to_pylist()) == list(range(200))
    table = open_iceberg_table(str(place))
    assert table.files().filter(pl.col("records") > 40).is_empty()
    assert set(table.audit()["verdict"]) == {"proven"}


def test_rows_take_the_place_of_others(spark: SparkSession, place: Path) -> None:
    """Of those that a condition selects, of their partitions, of all."""
    numbers(spark, 0, 9).write.format("lakeview").mode("append").save(str(place))
    writer = numbers(spark, 2, 3).write.format("lakeview").mode("overwrite")
    writer.option("replaceWhere", "id BETWEEN 2 AND 6").save(str(place))
    assert ids(place) == [0, 1, 2, 3, 7, 8, 9]
    summary = json.loads(latest(place).read_text())["snapshots"][-1]["summary"]
    assert (summary["operation"], summary["spark-version"]) == ("overwrite", spark.version)
    writer = numbers(spark, 6, 6).write.format("lakeview").mode("overwrite")
    same = [i for i in ids(place) if bucket(i) == bucket(6)]
    writer.option("partitionOverwriteMode", "dynamic").save(str(place))
    assert same
    assert ids(place) == sorted({6, *(i for i in (0, 1, 2, 3, 7, 8, 9) if i not in same)})
    numbers(spark, 20, 29).write.format("lakeview").mode("overwrite").save(str(place))
    rows_read = StaticTable.from_metadata(str(latest(place))).scan().to_arrow()
    assert sorted(rows_read["id"].to_pylist()) == list(range(20, 30))
    numbers(spark, 1, 0).write.format("lakeview").mode("overwrite").save(str(place))
    assert ids(place) == []
    table = open_iceberg_table(str(place))
    assert set(table.audit()["verdict"]) == {"proven"}


def bucket(number: int) -> int | None:
    number_of_bucket: int | None = parse_transform("bucket[2]").apply(number, PrimitiveType("long"))
    return number_of_bucket


def test_an_overwrite_is_refused_where_rows_came_since_or_lie_outside_its_condition(
    spark: SparkSession, place: Path
) -> None:
    """The writer's own life, without Spark between."""
    frame = numbers(spark, 0, 9, tasks=1)
    stale_writer = writer_of(frame, place, overwrite=True)
    table = open_iceberg_table(str(place))
    table.append(pl.DataFrame({"id": [77], "text": ["theirs"]}))
    message = stale_writer.write(iter(frame.toArrow().to_batches()))
    with pytest.raises(CommitConflictError, match="changed by another writer since it was read"):
        stale_writer.commit([message])
    assert ids(place) == [77]
    selective = writer_of(frame, place, overwrite=True, replaceWhere="id < 5")
    before = files_below(place)
    with pytest.raises(ConstraintViolationError, match="5 rows lie outside 'id < 5'"):
        selective.write(iter(frame.toArrow().to_batches()))
    assert files_below(place) == before


def test_no_rows_and_a_table_that_is_to_be_left_alone_are_no_snapshot(spark: SparkSession, place: Path) -> None:
    before = files_below(place)
    numbers(spark, 1, 0).write.format("lakeview").mode("append").save(str(place))
    numbers(spark, 0, 9).write.format("lakeview").mode("append").option("ifExists", "ignore").save(str(place))
    assert files_below(place) == before


REFUSED: dict[str, tuple[str, dict[str, str], type[LakeviewError], str]] = {
    "a condition on no column": ("overwrite", {"replaceWhere": "more = 1"}, InvalidRequestError, "more"),
    "files by their names": ("overwrite", {"replaceFiles": "[]"}, InvalidRequestError, "option for Delta"),
    "other columns": ("overwrite", {"overwriteSchema": "true"}, InvalidRequestError, "option for Delta"),
    "a column that the table lacks": ("append", {"rows": "id, text, 1 AS more"}, InvalidRequestError, "more"),
    "a type that does not fit": ("append", {"rows": "text AS id, text"}, InvalidRequestError, "id"),
    "options of Delta": ("append", {"mergeSchema": "true"}, InvalidRequestError, "mergeSchema is an option for Delta"),
    "properties of Delta": ("append", {"delta.appendOnly": "true"}, InvalidRequestError, "option for Delta"),
    "a table that has to be new": ("append", {"ifExists": "error"}, InvalidRequestError, "there is a table at"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_written_is_refused_before_any_row(spark: SparkSession, place: Path, case: str) -> None:
    mode, options_given, kind, text = REFUSED[case]
    options = {name: value for name, value in options_given.items() if name != "rows"}
    frame = numbers(spark, 0, 9).selectExpr(*options_given.get("rows", "id, text").split(", "))
    before = files_below(place)
    with pytest.raises(kind, match=text), lakeview_errors():
        frame.write.format("lakeview").mode(mode).options(**options).save(str(place))
    assert files_below(place) == before


def test_a_table_that_a_catalog_may_own_takes_an_option(spark: SparkSession, place: Path) -> None:
    latest(place).rename(place / "metadata/00001-0b2f.metadata.json")
    frame = numbers(spark, 0, 9)
    with pytest.raises(UnsupportedTableError, match="named as catalogs name theirs"):
        writer_of(frame, place)
    frame.write.format("lakeview").mode("append").option("withoutCatalog", "true").save(str(place))
    assert ids(place) == list(range(10))


def test_a_table_of_a_rest_catalog_is_committed_by_it(
    spark: SparkSession, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer's own life, without Spark between."""
    catalog_state = RestState([("sales",)], {("sales", "t"): str(latest(place))})
    with rest_catalog(catalog_state) as address:
        monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", address)
        frame = numbers(spark, 0, 9, tasks=1)
        writer = writer_of(frame, "catalog://prod/sales.t")
        writer.commit([writer.write(iter(frame.toArrow().to_batches()))])
    assert sorted(
        StaticTable.from_metadata(str(catalog_state.tables["sales", "t"])).scan().to_arrow()["id"].to_pylist()
    ) == list(range(10))


def test_a_task_that_fails_leaves_no_file(spark: SparkSession, place: Path) -> None:
    """One task: of several, one may write a file after the driver has removed all."""
    before = files_below(place)
    broken = numbers(spark, 0, 99, tasks=1).selectExpr("if(id = 99, raise_error('this row is broken'), id) AS id")
    with pytest.raises(Exception, match="this row is broken"):
        broken.write.format("lakeview").mode("append").save(str(place))
    assert files_below(place) == before


def test_rows_of_a_definition_that_is_gone_are_not_committed(spark: SparkSession, place: Path) -> None:
    """The writer's own life, without Spark between."""
    frame = numbers(spark, 0, 9, tasks=1)
    writer = writer_of(frame, place)
    message = writer.write(iter(frame.toArrow().to_batches()))
    document = json.loads(latest(place).read_text())
    document["partition-specs"].append({"spec-id": 1, "fields": []})
    (place / "metadata/v2.metadata.json").write_text(json.dumps({**document, "default-spec-id": 1}))
    with pytest.raises(CommitConflictError, match="changed while the rows were written"):
        writer.commit([message])
    writer.abort([message])
    assert list(place.rglob("*.parquet")) == []


def test_files_of_an_aborted_write_are_found_by_its_id(tmp_path: Path) -> None:
    """Behind a hash as well, where a table spreads its files over folders of no partition; no file of another write."""
    own, other = "a" * 32, "b" * 32
    names = [f"0101/1010/0000/11110000-{own}-1.parquet", f"p=1/{own}-2.parquet", f"p=1/.{own}-3.parquet.c.tmp"]
    for name in [*names, f"{own}/{other}-4.parquet"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    remove_files(open_storage(str(tmp_path)), own, one_folder=False)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [f"{other}-4.parquet"]


def test_files_that_an_aborted_write_cannot_delete_are_named_and_the_others_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def delete(storage: LocalStorage, path: str) -> None:
        if "-2" in path:
            raise AccessDeniedError(f"the store refuses access to {path}", place=path)
        Path(storage.resolve(path)).unlink()

    monkeypatch.setattr(LocalStorage, "delete", delete)
    names = [f"part-{number}.parquet" for number in (1, 2, 3)]
    for name in names:
        (tmp_path / name).touch()
    remove_files(open_storage(str(tmp_path)), "part-", one_folder=True)
    assert [path.name for path in tmp_path.iterdir()] == [names[1]]
    assert f"are left in {tmp_path}: {names[1]}; vacuum removes them" in caplog.text


@pytest.mark.parametrize("hashed", ["false", "true"])
def test_an_aborted_write_removes_the_files_of_all_its_tasks(spark: SparkSession, place: Path, hashed: str) -> None:
    """The writer's own life, without Spark between: the word of one of two tasks comes."""
    document = json.loads(latest(place).read_text())
    document["properties"] = {"write.object-storage.enabled": hashed}
    (place / "metadata/v2.metadata.json").write_text(json.dumps(document))
    frame = numbers(spark, 0, 5)
    writer = writer_of(frame, place)
    messages = [writer.write(iter(frame.toArrow().to_batches())) for _ in range(2)]
    assert len(list(place.rglob("*.parquet"))) == 4  # of two buckets
    writer.abort([messages[0], None])
    assert list(place.rglob("*.parquet")) == []


def test_a_batch_of_a_stream_is_written_once(spark: SparkSession, place: Path) -> None:
    """The writer's own life, without Spark between: batches that run again, in another order, and of another query."""

    def write(batch: int, *ids: int, query: str = "q", overwrite: bool = False) -> None:
        source = LakeviewDataSource({"path": str(place), "txnAppId": query})
        sink = source.streamWriter(numbers(spark, 0, 0).schema, overwrite)
        assert isinstance(sink, LakeviewStreamWriter)
        rows = pl.DataFrame({"id": ids, "text": ["x"] * len(ids)}, schema={"id": pl.Int64, "text": pl.String})
        sink.commit([sink.write(iter(rows.to_arrow().to_batches()))], batch)

    for batch, expected in ((0, [1, 2]), (0, [1, 2]), (1, [3]), (2, []), (1, [3]), (0, [1, 2])):
        write(batch, *expected)
    write(0, 5, query="another")
    write(1, 3)
    assert ids(place) == [1, 2, 3, 5]
    snapshots = json.loads(latest(place).read_text())["snapshots"]
    summaries = [each["summary"] for each in snapshots]
    names = ("spark.sql.streaming.queryId", "spark.sql.streaming.epochId")
    assert [[each[name] for name in names] for each in summaries] == [["q", "0"], ["q", "1"], ["another", "0"]]
    before = files_below(place)
    write(1, 3, overwrite=True)
    assert files_below(place) == before, "files of a batch that was there stay behind"
    write(3, 9, overwrite=True)
    assert ids(place) == [9]
    numbers(spark, 20, 20).write.format("lakeview").mode("append").options(txnAppId="q", txnVersion="3").save(
        str(place)
    )
    assert ids(place) == [9]
