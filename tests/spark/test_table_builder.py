"""Tables that are created and replaced as with Delta's builder; without a session, unless a name is looked up."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from lakeview.delta.table import DeltaTable as LibraryTable
from lakeview.model.errors import (
    CommitConflictError,
    ConstraintViolationError,
    InvalidRequestError,
    NotATableError,
    UnsupportedTableError,
)
from lakeview.spark import DeltaTable, IdentityGenerator, table
from lakeview.spark.addresses import find_delta_table
from lakeview.spark.dml.catalog import name_parts, path_of
from lakeview.spark.dml.table_builder import Creation, DeltaTableBuilder
from lakeview.storage import open_storage
from tests.differential.oracles import ORACLES, compare_version

TAGS = spark_types.ArrayType(spark_types.StringType(), containsNull=False)
NO_SESSION: Any = None
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def builder(address: Path, creation: Creation = Creation.CREATE) -> DeltaTableBuilder[LibraryTable]:
    """A builder of a table at an address, which needs no session."""
    return DeltaTableBuilder(NO_SESSION, creation, lambda target: target).location(str(address))


def with_id(build: DeltaTableBuilder[LibraryTable]) -> DeltaTableBuilder[LibraryTable]:
    return build.addColumn("id", spark_types.LongType())


def events(moments: list[Any], tags: list[Any]) -> pl.DataFrame:
    return pl.DataFrame({"at": moments, "tags": tags}, {"at": pl.Datetime("us", "UTC"), "tags": pl.List(pl.String)})


def check_with_others(target: LibraryTable) -> None:
    compare_version(target, target.address, target.latest_version, {n: ORACLES[n] for n in ("deltalake", "DuckDB")})


def test_every_part_of_a_definition_is_that_of_the_table(tmp_path: Path) -> None:
    made = (
        builder(tmp_path)
        .addColumn("at", spark_types.TimestampType(), nullable=False, comment="when")
        .addColumn("day", spark_types.DateType(), generatedAlwaysAs="CAST(at AS DATE)")
        .addColumn("n", spark_types.LongType(), generatedAlwaysAs=IdentityGenerator(start=10, step=5))
        .addColumn("m", spark_types.LongType(), generatedByDefaultAs=IdentityGenerator())
        .addColumns([spark_types.StructField("tags", TAGS, True, {"comment": "words"})])
        .partitionedBy("DAY")
        .property("delta.enableDeletionVectors", "true")
        .property("delta.constraints.later", "day IS NOT NULL")
        .comment("events")
        .execute()
    )
    now = made.snapshot()
    assert (now.description, now.partition_columns) == ("events", ["day"])
    assert [field.comment for field in now.schema] == ["when", None, None, None, "words"]
    assert str(now.schema["tags"].type) == "array<string>"
    assert made.history()["engine"][0].startswith("lakeview")
    made.append(events([AT, AT], [["a"], None]))
    assert made.scan().select("day", "n", "m").collect().rows() == [(AT.date(), 10, 1), (AT.date(), 15, 2)]
    check_with_others(made)
    with pytest.raises(ConstraintViolationError, match="generated always as identity"):
        made.append(pl.DataFrame({"at": [AT], "n": [7]}, {"at": pl.Datetime("us", "UTC"), "n": pl.Int64}))
    for refused in (events([None], [None]), events([AT], [["a", None]])):
        with pytest.raises((ConstraintViolationError, InvalidRequestError), match="null"):
            made.append(refused)


def test_what_is_there_is_left_refused_or_replaced(tmp_path: Path) -> None:
    with pytest.raises(NotATableError, match="to be replaced"):
        with_id(builder(tmp_path, Creation.REPLACE)).execute()
    made = with_id(builder(tmp_path, Creation.CREATE_OR_REPLACE)).execute()
    made.append(pl.DataFrame({"id": [1]}))
    with pytest.raises(CommitConflictError, match="holds a table already"):
        with_id(builder(tmp_path)).execute()
    assert with_id(builder(tmp_path, Creation.CREATE_IF_NOT_EXISTS)).execute().latest_version == 1
    for version, creation in ((2, Creation.REPLACE), (3, Creation.CREATE_OR_REPLACE)):
        made = with_id(builder(tmp_path, creation)).addColumn("n", spark_types.StringType()).clusterBy("N").execute()
        assert made.latest_version == version
        assert made.history(1)["operation"].to_list() == [creation.value]
    assert made.snapshot().rules["column"].to_list() == ["n"]
    made.append(pl.DataFrame({"id": [2], "n": ["b"]}))
    assert made.scan().collect().rows() == [(2, "b")]
    check_with_others(made)


@pytest.mark.parametrize(
    ("define", "error", "words"),
    [
        (lambda b: b, InvalidRequestError, "no column"),
        (lambda b: with_id(b).partitionedBy("id"), InvalidRequestError, "every column is a partition column"),
        (lambda b: with_id(b).partitionedBy(["day"]), InvalidRequestError, "day is not in the schema"),
        (lambda b: with_id(b).property("delta.nope", "1"), InvalidRequestError, "no property that Delta tables have"),
        (
            lambda b: with_id(b).addColumn("d", spark_types.LongType(), generatedAlwaysAs="soundex(id)"),
            UnsupportedTableError, "d .soundex.id.. cannot be evaluated",
        ),
        (
            lambda b: with_id(b).addColumn("d", spark_types.LongType(), generatedAlwaysAs="missing + 1"),
            UnsupportedTableError, "cannot be evaluated",
        ),
        (
            lambda b: b.addColumn("i", spark_types.IntegerType(), generatedAlwaysAs=IdentityGenerator()),
            InvalidRequestError, "identity column i is integer",
        ),
        (lambda b: b.addColumn("v", spark_types.VarcharType(3)), UnsupportedTableError, "hold texts to a length"),
        (lambda b: b.addColumn("t", spark_types.TimeType()), UnsupportedTableError, "column t has the type time"),
        (
            lambda b: b.addColumn("i", spark_types.LongType(), True, "1", IdentityGenerator()),
            InvalidRequestError, "always and by default",
        ),
    ],
)  # fmt: skip
def test_a_definition_that_no_table_has_is_refused(
    tmp_path: Path, define: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        define(builder(tmp_path)).execute()
    assert not DeltaTable.isDeltaTable(None, str(tmp_path))  # type: ignore[arg-type]  # no session is asked
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("creation", [c for c in Creation if c is not Creation.REPLACE])
def test_files_do_not_become_those_of_a_new_table_whose_vacuum_deletes_them(tmp_path: Path, creation: Creation) -> None:
    (tmp_path / "day=1").mkdir()
    pl.DataFrame({"id": [1]}).write_parquet(tmp_path / "day=1/rows.parquet")
    with pytest.raises(InvalidRequestError, match="has files and no table") as caught:
        with_id(builder(tmp_path, creation)).execute()
    assert "convertToDelta" in str(caught.value.fix)
    assert [path.name for path in tmp_path.iterdir()] == ["day=1"]
    (tmp_path / "day=1/rows.parquet").unlink()
    with_id(builder(tmp_path, creation)).execute()


def test_a_table_that_another_writer_made_first_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*arguments: Any) -> LibraryTable | None:
        monkeypatch.undo()
        before = find_delta_table(*arguments)
        with_id(builder(tmp_path).comment("first")).execute()
        return before

    monkeypatch.setattr("lakeview.spark.dml.table_builder.find_delta_table", look)
    table = with_id(builder(tmp_path, Creation.CREATE_IF_NOT_EXISTS)).execute()
    assert table.snapshot().description == "first"


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("orders", ("orders",)),
        (" shop.orders", ("shop", "orders")),
        ("`a b`.`c``d`", ("a b", "c`d")),
        ("delta.`/lake/a.b`", ("delta", "/lake/a.b")),
    ],
)
def test_names_have_parts(identifier: str, parts: tuple[str, ...]) -> None:
    assert name_parts(identifier) == parts
    assert path_of(identifier) == (parts[1] if parts[0] == "delta" else None)


@pytest.mark.parametrize("identifier", ["", "a..b", "a.", "a b", ".a", "`a", "a`b`"])
def test_what_is_no_name_is_refused(identifier: str) -> None:
    with pytest.raises(InvalidRequestError, match="is no name of a table"):
        name_parts(identifier)


@pytest.mark.spark
def test_a_name_whose_location_has_no_table_says_how_to_make_it(tmp_path: Path) -> None:
    session: Any = None  # a name that is an address asks none
    with pytest.raises(NotATableError, match=r"stands for .*/t, where no table is\n  fix: make it with .*createIfNot"):
        DeltaTable.forName(session, f"delta.`{tmp_path / 't'}`")


def test_tables_are_found_by_the_names_that_sparks_catalog_has(spark: SparkSession, tmp_path: Path) -> None:
    odd = tmp_path / "a b%20'c"
    made = (
        DeltaTable.create(spark).tableName("default.builder_named").location(str(odd))
        .addColumn("id", "bigint").addColumn("s", "struct<`x y`: int not null, d: decimal(9,2)>").execute()
    )  # fmt: skip
    assert isinstance(made, DeltaTable)
    assert made.detail().collect()[0].location == str(odd)
    assert DeltaTable.forName(spark, "builder_NAMED").toDF().columns == ["id", "s"]
    assert DeltaTable.forName(spark, f"delta.`{odd}`").toDF().count() == 0
    rows = pl.DataFrame(
        {"id": [1], "s": [None]}, {"id": pl.Int64, "s": pl.Struct({"x y": pl.Int32, "d": pl.Decimal(9, 2)})}
    )
    LibraryTable(open_storage(str(odd))).append(rows)
    path = str(odd).replace("'", "\\'")
    spark.sql(f"CREATE VIEW builder_rows AS SELECT id FROM builder_named WITH (path '{path}')")
    assert spark.table("builder_rows").collect() == [(1,)]
    spark.sql(f"INSERT INTO builder_named WITH (path '{path}') VALUES (2, NULL)")
    assert sorted(spark.table("builder_rows").collect()) == [(1,), (2,)], "a view shows new rows"
    again = (
        DeltaTable.createIfNotExists(spark).tableName("builder_named").addColumn("x", "int").execute().toDF().collect()
    )
    assert sorted(row.id for row in again) == [1, 2], "it is there already"
    with pytest.raises(InvalidRequestError, match="builder_named is a table at"):
        DeltaTable.createOrReplace(spark).tableName("builder_named").location(str(tmp_path)).execute()
    in_warehouse = DeltaTable.createOrReplace(spark).tableName("Builder_Managed").addColumn("id", "int").execute()
    assert Path(in_warehouse.detail().collect()[0].location).name == "builder_managed"
    spark.sql("DROP TABLE Builder_Managed")
    assert in_warehouse.toDF().count() == 0, "its files are still there"
    spark.range(2).write.format("lakeview").mode("append").option("path", str(tmp_path / "s")).saveAsTable("by_writer")
    assert DeltaTable.forName(spark, "by_writer").toDF().count() == 2
    with pytest.raises(NotATableError, match="no table nosuch_table with a location"):
        DeltaTable.forName(spark, "nosuch_table")
    with pytest.raises(NotATableError, match="SCHEMA_NOT_FOUND"):
        DeltaTable.forName(spark, "nosuch.t")
    table(spark, str(odd)).createOrReplaceTempView("builder_view")
    with pytest.raises(InvalidRequestError, match="builder_view is a view") as caught:
        DeltaTable.forName(spark, "builder_view")
    assert "forPath" in str(caught.value.fix)
    with pytest.raises(InvalidRequestError, match="which is no type"):
        DeltaTable.create(spark).addColumn("id", "nope")
    with pytest.raises(InvalidRequestError, match="neither a name nor a location"):
        DeltaTable.create(spark).addColumn("id", "int").execute()
    with pytest.raises(InvalidRequestError, match="Hadoop"):
        DeltaTable.create(spark).tableName("remote").location("s3://bucket/t").addColumn("id", "int").execute()


@pytest.mark.parametrize("name", ["a/b", "..", "../../elsewhere", "a b", "ünï", "${spark.app.name}", "a\n", "a`b"])
def test_a_name_that_the_catalog_refuses_makes_no_table(tmp_path: Path, name: str) -> None:
    quoted_name = name.replace("`", "``")
    for identifier in (f"`{quoted_name}`", f"shop.`{quoted_name}`"):
        for definition in (builder(tmp_path), DeltaTableBuilder(NO_SESSION, Creation.CREATE, lambda target: target)):
            with pytest.raises(InvalidRequestError, match="Spark's catalog has no table"):
                with_id(definition).tableName(identifier).execute()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_settings_of_the_session_are_not_put_into_names_and_locations(spark: SparkSession, tmp_path: Path) -> None:
    place, other = tmp_path / "${spark.app.name}\u2028x", tmp_path / "other"
    DeltaTable.create(spark).tableName("of_variables").location(str(place)).addColumn("id", "int").execute()
    assert DeltaTable.forName(spark, "of_variables").detail().collect()[0].location == str(place)
    for name, address in (("${spark.app.name}", other), ("id", tmp_path / "a\nb")):
        with pytest.raises(InvalidRequestError, match="Spark's catalog has no table 'of_others' with a"):
            DeltaTable.create(spark).tableName("of_others").location(str(address)).addColumn(name, "int").execute()
    assert list(tmp_path.iterdir()) == [place]
