"""Spark's own reader under `lakeview.spark.table`: the rows and the schema that the Python source gives."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import lakeview as lv
from lakeview.model.errors import DataFileMissingError
from lakeview.spark import lakeview_errors, native, table
from tests.golden.conformance import conformance_root

pytestmark = pytest.mark.spark

CONFORMANCE = [
    "delta/data-reader-primitives-column-mapping-name",
    "delta/data-reader-timestamp_ntz-id-mode",
    "delta/delta-0.8.0-special-partition",
    "delta/kernel-timestamp-int96",
    "delta/partitioned-table-with-dv-large",
    "delta/parquet-all-types",
    "delta/type-widening",
    "iceberg/gen_schema_nested",
    "iceberg/gen_schema_promote",
    "iceberg/gen_schema_swap_names",
    "iceberg/synth_eq_partition",
    "iceberg/synth_identity_from_partition",
]


def same_rows(fast: DataFrame, slow: DataFrame) -> int:
    """The number of rows, which both have; NaN and -0.0 are distinct from other numbers."""
    assert fast.schema == slow.schema
    actual, expected = ([repr(row) for row in frame.toArrow().to_pylist()] for frame in (fast, slow))
    assert Counter(actual) == Counter(expected)
    return len(actual)


def scans(frame: DataFrame) -> str:
    plan: str = frame._jdf.queryExecution().toString()
    return plan


@pytest.mark.golden
@pytest.mark.skipif(
    not conformance_root().is_dir(), reason="no conformance tables: set LAKEVIEW_CONFORMANCE to their folder"
)
@pytest.mark.parametrize("name", CONFORMANCE)
def test_conformance_tables_have_the_same_rows_both_ways(spark: SparkSession, name: str) -> None:
    address = str(conformance_root() / name / "table")
    assert same_rows(table(spark, address), table(spark, address, native=False))


VALUES: dict[str, list[Any]] = {
    "text": ["a", "y=1 %:/", None, "", "__HIVE_DEFAULT_PARTITION__"],
    "number": [1, None, -5, 0, 7],
    "fraction": [0.0, -0.0, float("nan"), None, 1e300],
    "exact": [Decimal("1.50"), None, Decimal("-99999999.99"), Decimal("0.00"), Decimal("0.01")],
    "day": [date(2013, 1, 1), date(1, 1, 1), None, date(9999, 12, 31), date(1582, 10, 10)],
    "at": [datetime(2013, 1, 1, 10, 0, 0, 123456, tzinfo=UTC), None, datetime(1, 1, 1, tzinfo=UTC)] * 2,
    "local": [datetime(2013, 1, 1, 10, 0, 0, 123456), None, datetime(1582, 10, 10)] * 2,  # noqa: DTZ001 (without zone)
    "flag": [True, None, False, True, False],
}


@pytest.mark.parametrize("literal_scans", [native.LITERAL_SCANS, 1], ids=["as literals", "joined"])
def test_partition_values_of_every_type(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, literal_scans: int
) -> None:
    monkeypatch.setattr(native, "LITERAL_SCANS", literal_scans)
    rows = pa.table(
        {
            "id": pa.array(range(5)),
            **{name: values[:5] for name, values in VALUES.items()},
        }
    )
    rows = rows.set_column(4, "exact", rows["exact"].cast(pa.decimal128(10, 2)))
    address = str(tmp_path / "parts")
    lv.create_table(address, rows.schema, partition_by=list(VALUES)).append(rows)
    frame = table(spark, address)
    assert same_rows(frame, table(spark, address, native=False)) == 5
    assert ("lakeview planned no file" in scans(frame)) == (literal_scans == 1)
    assert frame.where("text = 'a'").select("number").collect() == [(1,)]
    assert table(spark, address, columns=["day"], where="number = -5").collect() == [(None,)]


TEXTS = ["a", "01", "1", " 1", "1.0", "true", "2020-01-01", "y=1 %41:/", "é", "%41", "A", "a", "null", None]


@pytest.mark.parametrize(
    ("texts", "by_folders"),
    [([text for text in TEXTS if text != "é"], True), (TEXTS, False), (["__HIVE_DEFAULT_PARTITION__", None], False)],
    ids=["folders say what the log says", "an escape beyond ASCII", "one folder for null and for a text"],
)
def test_partition_values_of_folders(
    spark: SparkSession, tmp_path: Path, texts: list[str | None], by_folders: bool
) -> None:
    count = len(texts)
    days = [date(1, 1, 1), date(9999, 12, 31), None, date(1582, 10, 10)] * count
    numbers = [None, -5, 1 << 62] * count
    rows = pa.table({"id": range(count), "text": texts, "day": days[:count], "number": numbers[:count]})
    address = str(tmp_path / "parts")
    deltalake.write_deltalake(address, rows, partition_by=["text", "day", "number"])
    frame = table(spark, address)
    assert same_rows(frame, table(spark, address, native=False)) == count
    assert ("Union" not in scans(frame)) == by_folders


def test_deleted_rows_stay_deleted_and_columns_of_all_names_pass(spark: SparkSession, tmp_path: Path) -> None:
    """Columns called as ours are; a file with deletions, one without, and one that lacks a column."""
    names = ["_metadata", "path", "position", "key", "words", "c0", "v0", "a.b", "tick`"]
    rows = pa.table({name: list(range(200)) for name in names}).append_column("part", pa.array([1, 2] * 100))
    address = str(tmp_path / "vectors")
    new_table = lv.create_table(
        address, rows.schema, partition_by=["part"], properties={"delta.enableDeletionVectors": "true"}
    )
    new_table.append(rows)
    new_table.delete("part = 1 AND path IN (0, 62, 64, 66, 128, 198)")
    new_table.append(pa.table({"path": [1000], "part": [3]}))
    assert lv.open_table(address).files(columns=["deletion_vector"])["deletion_vector"].null_count() == 2
    frame = table(spark, address)
    assert same_rows(frame, table(spark, address, native=False)) == 195
    assert frame.where("path < 3").select("path", "`a.b`").collect() == [(1, 1), (2, 2)]
    assert frame.count() == 195
    assert table(spark, address, columns=["part"]).groupBy("part").count().orderBy("part").collect() == [
        (1, 94), (2, 100), (3, 1),
    ]  # fmt: skip


def test_a_file_that_spark_names_otherwise_fails_the_job(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A join by path that finds nothing would give null for partition values, and deleted rows."""
    address = str(tmp_path / "parts")
    deltalake.write_deltalake(address, pa.table({"id": [1, 2], "p": [0.5, 1.5]}), partition_by=["p"])
    monkeypatch.setattr(native, "LITERAL_SCANS", 1)
    monkeypatch.setattr(native, "METADATA_PREFIX", "file:///")
    for query in (table(spark, address), table(spark, address).where("p = 0.5").select("id")):
        with pytest.raises(Exception, match="lakeview planned no file"):
            query.collect()
    assert table(spark, address).count() == 2
    vectors = lv.create_table(
        str(tmp_path / "vectors"), pa.schema({"id": pa.int64()}), properties={"delta.enableDeletionVectors": "true"}
    )
    vectors.append(pa.table({"id": [1, 2]}))
    vectors.delete("id = 1")
    with pytest.raises(Exception, match="lakeview planned no file"):
        table(spark, vectors.address).count()


def test_a_query_without_partition_values_joins_none(spark: SparkSession, tmp_path: Path) -> None:
    address = str(tmp_path / "parts")
    deltalake.write_deltalake(address, pa.table({"id": [1, 2], "p": [0.5, 1.5]}), partition_by=["p"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "LITERAL_SCANS", 1)
        rows = table(spark, address)
    for query, joins in ((rows.groupBy().count(), False), (rows.where("id > 0").select("id"), False), (rows, True)):
        execution = query._jdf.queryExecution()
        assert ("Join" in execution.optimizedPlan().toString()) == joins


def test_planning_makes_no_more_calls_into_the_jvm_for_more_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call for each file takes longer than the rest of the plan."""
    monkeypatch.setattr(native, "LITERAL_SCANS", 1)
    jvm = spark._jvm
    assert jvm is not None
    client = type(jvm._gateway_client)
    calls: list[str] = []
    send = client.send_command

    def count(self: Any, command: str, *arguments: Any, **named: Any) -> Any:
        if not command.startswith("m\n"):  # frees an object, whenever Python has collected it
            calls.append(command)
        return send(self, command, *arguments, **named)

    counts = []
    for files in (2, 40):
        address = str(tmp_path / f"{files}")
        rows = pa.table({"id": range(files), "p": [number / 2 for number in range(files)]})
        deltalake.write_deltalake(address, rows, partition_by=["p"])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(client, "send_command", count)
            frame = table(spark, address)
        assert frame.count() == files
        counts.append(len(calls))
        calls.clear()
    assert counts[0] == counts[1] < 120


@pytest.mark.parametrize("folder", ["[a-z]", "{x,y}", "st*r", "que?tion", "_hidden", ".dot", "p=1", "co:lon", "% 20é"])
def test_tables_in_folders_of_all_names(spark: SparkSession, tmp_path: Path, folder: str) -> None:
    rows = pa.table({"id": [1, 2], "p": ["x", "y"]})
    address = (tmp_path / folder / "t").as_uri()
    lv.create_table(address, rows.schema, partition_by=["p"]).append(rows)
    assert sorted(table(spark, address).collect()) == [(1, "x"), (2, "y")]


def test_settings_that_leave_rows_out_are_overruled(
    spark: SparkSession, tmp_path: Path, setting: Callable[[str, str], None]
) -> None:
    setting("spark.sql.files.ignoreMissingFiles", "true")
    setting("spark.sql.files.ignoreCorruptFiles", "true")
    setting("spark.sql.caseSensitive", "true")
    address = tmp_path / "gone"
    deltalake.write_deltalake(address, pa.table({"id": [1]}))
    frame = table(spark, str(address))
    assert frame.collect() == [(1,)]
    (file,) = address.glob("*.parquet")
    file.unlink()
    with pytest.raises(DataFileMissingError, match=f"{file.name} was planned"), lakeview_errors():
        frame.select("id").where("id > 0").collect()


def test_names_are_no_patterns_where_the_session_takes_quoted_names_for_such(
    spark: SparkSession, tmp_path: Path, setting: Callable[[str, str], None]
) -> None:
    setting("spark.sql.parser.quotedRegexColumnNames", "true")
    deltalake.write_deltalake(tmp_path / "t", pa.table({"x": [1], "x|z": [2]}))
    assert table(spark, str(tmp_path / "t"), columns=["x|z", "x"]).collect() == [(2, 1)]


@pytest.mark.parametrize("case_sensitive", ["false", "true"])
def test_files_are_found_beside_a_column_called_as_what_spark_says_of_them(
    spark: SparkSession, tmp_path: Path, setting: Callable[[str, str], None], case_sensitive: str
) -> None:
    setting("spark.sql.caseSensitive", case_sensitive)
    vectors = {"delta.enableDeletionVectors": "true"}
    lake_table = lv.create_table(str(tmp_path / "t"), {"id": "long", "_Metadata": "long"}, properties=vectors)
    lake_table.append(pa.table({"id": [1, 2], "_Metadata": [3, 4]}))
    lake_table.delete("id = 1")
    assert table(spark, lake_table.address).collect() == [(2, 4)]


def test_names_that_spark_takes_for_variables_are_names(spark: SparkSession, tmp_path: Path) -> None:
    name = "${spark.app.name}"
    rows = pa.table({"id": [1], name: [2], "s": [{name: 0.5}]})
    lake_table = lv.create_table(str(tmp_path / "t"), rows.schema)
    lake_table.append(rows)
    assert same_rows(table(spark, lake_table.address), table(spark, lake_table.address, native=False)) == 1
    lake_table.set_properties({"delta.columnMapping.mode": "name"})
    lake_table.drop_column("s")
    lake_table.rename_column((name,), "n")  # the file has the old one
    assert table(spark, lake_table.address).collect() == [(1, 2)]


@pytest.fixture
def setting(spark: SparkSession, request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Sets one of Spark's settings for a test."""

    def set_one(name: str, value: str) -> None:
        before = spark.conf.get(name)
        assert before is not None
        spark.conf.set(name, value)
        request.addfinalizer(lambda: spark.conf.set(name, before))

    return set_one


def test_a_filter_finds_nan_beyond_the_bounds_of_a_file_and_zeros_of_either_sign(
    spark: SparkSession, tmp_path: Path
) -> None:
    address = str(tmp_path / "numbers")
    values = [0.5, float("nan"), -0.0, -0.0]  # twice, so that the file has a dictionary
    rows = pa.table({"id": [1, 2, 3, 3], "x": values, "s": [{"x": value} for value in values]})
    lv.create_table(address, rows.schema).append(rows)
    for where, ids in (("x > 1", [2]), ("s.x > 1", [2]), ("x = 0", [3, 3]), ("s.x = 0", [3, 3])):
        assert [row[0] for row in table(spark, address, columns=["id"], where=where).collect()] == ids


def test_a_query_reads_the_fields_of_a_struct_that_it_needs_where_others_may_be_nan(
    spark: SparkSession, tmp_path: Path
) -> None:
    address = str(tmp_path / "structs")
    values = [{"a.b": 0.5, "t": {"y": 1.0, "z": "q"}}, {"a.b": None, "t": None}, None]
    inner = pa.struct({"y": pa.float64(), "z": pa.string()})
    rows = pa.table({"s": pa.array(values, pa.struct({"a.b": pa.float32(), "t": inner}))})
    lv.create_table(address, rows.schema).append(rows)
    assert same_rows(table(spark, address), table(spark, address, native=False)) == 3
    assert "ReadSchema: struct<s:struct<t:struct<z:string>>>" in scans(table(spark, address).selectExpr("s.t.z"))
