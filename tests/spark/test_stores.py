"""Tables in object stores through Spark: storage options reach the tasks, and Spark shows none of them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

import lakeview as lv
from lakeview.model.errors import InvalidRequestError, LakeviewError
from lakeview.spark import DeltaTable, lakeview_errors, table
from lakeview.spark.dml.table_builder import Creation, DeltaTableBuilder
from lakeview.spark.option_values import as_spark_options
from lakeview.spark.options import WriteOptions
from lakeview.spark.pipelines.config import parse_config
from lakeview.spark.pipelines.graph import Graph
from lakeview.spark.pipelines.publish import Publisher
from lakeview.spark.pipelines.records import Records
from lakeview.spark.pipelines.sources import Places
from lakeview.spark.profile import profile
from lakeview.spark.replay import roll_up
from lakeview.spark.types import arrow_schema
from lakeview.spark.writer import LakeviewWriter
from lakeview.storage import open_storage
from lakeview.storage.access import StoreAccess
from tests.builders.s3 import REGION, Bucket, new_bucket, s3_server

SECRET = "s3cr3t"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """An empty bucket, on a server that the environment does not lead to."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    with s3_server() as endpoint:
        yield new_bucket(endpoint)


def test_tables_are_created_converted_and_cloned_in_a_store(bucket: Bucket, tmp_path: Path) -> None:
    session: Any = None  # what is done by the log alone asks none
    pl.DataFrame({"id": [1, 2]}).write_parquet(tmp_path / "rows.parquet")
    folder = bucket.copy(tmp_path, "folder")
    options = bucket.options
    DeltaTable.convertToDelta(session, f"parquet.`{folder}`", storage_options=options)
    converted = DeltaTable.convertToDelta(session, f"parquet.`{folder}`", storage_options=options)
    assert DeltaTable.isDeltaTable(session, folder, options)
    converted.clone(f"s3://{bucket.name}/clone", isShallow=True)
    assert lv.open_table(f"s3://{bucket.name}/clone", storage_options=options).snapshot().num_records == 2
    address = f"s3://{bucket.name}/new"
    builder = DeltaTableBuilder(session, Creation.CREATE, lambda table: table, options)
    made = builder.location(address).addColumn("id", LongType()).execute()
    made.append(pl.DataFrame({"id": [5]}))
    made_again = DeltaTableBuilder(session, Creation.CREATE_IF_NOT_EXISTS, lambda table: table, options)
    assert made_again.tableName(f"delta.`{address}`").execute().snapshot().num_records == 1
    DeltaTable.forPath(session, address, options).generate("symlink_format_manifest")
    (line,) = open_storage(f"{address}/_symlink_format_manifest", options=options).read("manifest").split()
    assert line.decode() == f"{address}/{made.files()['path'][0]}"
    with pytest.raises(InvalidRequestError, match="lakeview opens stores without Hadoop"):
        DeltaTable.forPath(session, address, hadoopConf={"fs.s3a.access.key": "an-id"})


@pytest.mark.spark
def test_an_aborted_write_removes_its_files_from_all_folders_of_a_bucket(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The writer's own life, without Spark: the word of one of two tasks comes, and files of another write stay."""
    address = f"s3://{bucket.name}/numbers"
    storage = {name: str(value) for name, value in as_spark_options(StoreAccess(bucket.options), writing=True).items()}
    options = WriteOptions.parse({"path": address, "partitionBy": "part", **storage}, overwrite=False)
    schema = StructType([StructField("id", LongType()), StructField("part", StringType())])
    rows = pa.RecordBatch.from_pydict({"id": [1, 2], "part": ["a", "b"]}, arrow_schema(schema))
    writer, other = (LakeviewWriter(options, schema, overwrite=False) for _ in range(2))
    messages = [writer.write(iter([rows])) for _ in range(2)]
    of_other = {add.path for add in other.write(iter([rows])).files}
    store = open_storage(address, options=bucket.options)
    with monkeypatch.context() as patched:
        patched.setattr("lakeview.spark.aborted_writes._PAGES", 0)
        writer.abort([messages[0], None])
    assert set(store.names()) == of_other | {add.path for add in messages[1].files}
    assert f"with part-{writer.context.write_id} in their names; vacuum removes them" in caplog.text
    writer.abort([messages[0], None])
    assert set(store.names()) == of_other


def test_options_and_the_drivers_configuration_reach_the_tasks_and_no_plan(
    spark: SparkSession, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"s3://{bucket.name}/orders"
    options = {
        "storage.AWS_ENDPOINT_URL": bucket.endpoint, "storage.aws_access_key_id": "an-id",
        "storage.aws_secret_access_key": SECRET, "storage.region": REGION,
    }  # fmt: skip
    spark.range(4).write.format("lakeview").mode("append").options(**options).save(address)
    rows_frame = spark.read.format("lakeview").options(**options).load(address)
    assert sorted(row.id for row in rows_frame.collect()) == [0, 1, 2, 3]

    # what this process alone has configured: neither the JVM nor its Python workers know of it
    config = tmp_path / "lakeview.toml"
    config.write_text(
        f'[storage."s3://{bucket.name}"]\nendpoint = "{bucket.endpoint}"\nregion = "{REGION}"\n'
        'access_key_id = "an-id"\nsecret_access_key = { env = "LAKE_SECRET" }\n'
    )
    monkeypatch.setenv("LAKEVIEW_CONFIG", str(config))
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    DeltaTable.forPath(spark, address).update("id = 3", {"id": "30"})
    planned = table(spark, address, where="id > 0")
    assert sorted(row.id for row in planned.collect()) == [1, 2, 30]
    monkeypatch.delenv("LAKEVIEW_CONFIG")
    assert profile(spark, address, storage_options=bucket.options)[1] == 4
    (rolled,) = roll_up(spark, address, storage_options=bucket.options).collect()
    assert rolled.records - rolled.deleted_records == 4
    assert lv.open_table(address, storage_options=bucket.options).snapshot().num_records == 4

    in_sql = ", ".join(f"`{name}` '{value}'" for name, value in {"path": address, **options}.items())
    view = spark.sql(f"EXPLAIN CREATE TEMPORARY VIEW v USING lakeview OPTIONS ({in_sql})").collect()[0][0]
    assert address in view
    texts = view + "".join(frame._jdf.queryExecution().toString() + repr(frame) for frame in (rows_frame, planned))
    for value in (SECRET, bucket.endpoint):  # under any name: Spark's own rule goes by words such as `secret`
        assert value not in texts
    with pytest.raises(LakeviewError, match="acces_key is no storage option of S3") as refused, lakeview_errors():
        spark.read.format("lakeview").options(**options).option("storage.acces_key", SECRET).load(address)
    assert SECRET not in f"{refused.value!r} {refused.value.fix} {refused.value.__cause__}"


@pytest.mark.spark
def test_a_pipeline_publishes_with_the_options_of_its_sink_and_of_its_output(
    spark: SparkSession, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merge, quarantine, optimize, vacuum and records, at addresses that nothing else leads to."""
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    root = f"s3://{bucket.name}"
    config = parse_config(
        f"""
output: {root}/lake
storage_options: {{endpoint: '{bucket.endpoint}', region: {REGION}, access_key_id: an-id,
                  secret_access_key: {{env: LAKE_SECRET}}}}
tables:
  orders: {{sink: out, publish: merge, keys: [id], optimize: true, vacuum: 0h,
           properties: {{delta.deletedFileRetentionDuration: interval 0 hours}},
           expectations: [{{name: known, condition: id < 9, action: quarantine}}]}}
"""
    )
    graph = Graph({"out": f"{root}/sink"}, sink_options={"out": as_spark_options(config.access)})
    sink = lv.create_table(
        f"{root}/sink", pl.DataFrame(schema={"id": pl.Int64}).to_arrow().schema, storage_options=bucket.options
    )
    clock = lambda: datetime.now(UTC)  # noqa: E731, TID251 (what a vacuum deletes was removed before)
    records = Records(config.output, "shop", clock, access=config.access)
    places = Places("shop", config.output, "orders", config.access)
    publisher = Publisher(spark, "r", places, config.tables["orders"], graph, records, clock, lambda _: None)
    for rows in ([1, 9], [1, 2]):
        sink.append(pl.DataFrame({"id": rows}))
        assert publisher.publish() == "succeeded"
        publisher.maintain("succeeded")
    tables = {
        name: lv.open_table(f"{root}/lake/{name}", storage_options=bucket.options)
        for name in ("orders", "_lakeview/quarantine/orders", "_lakeview/runs")
    }
    assert tables["orders"].scan().collect()["id"].sort().to_list() == [1, 2]
    assert tables["_lakeview/quarantine/orders"].scan().collect()["id"].to_list() == [9]
    assert tables["_lakeview/runs"].scan().collect()["step"].to_list().count("publish") == 2
    assert {"MERGE", "OPTIMIZE", "VACUUM END"} <= set(tables["orders"].history()["operation"])
