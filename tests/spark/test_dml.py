"""Changes of rows by Spark: what each does to a table is what the same call of the library does to a copy of it."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias, cast

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql.functions import col, expr, lit

import lakeview as lv
from lakeview import delta
from lakeview.delta.write.merge import Merge
from lakeview.delta.write.transaction import Transaction
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import (
    ConstraintViolationError,
    DataFileMissingError,
    InvalidRequestError,
    LakeviewError,
    StoreUnavailableError,
)
from lakeview.model.schema import Schema
from lakeview.model.type_tree import nodes
from lakeview.spark import DeltaTable
from lakeview.spark.dml import changes, merge
from lakeview.spark.dml.columns import sql_text
from lakeview.spark.dml.jobs import collect
from lakeview.spark.dml.merge_builder import DeltaMergeBuilder
from lakeview.spark.dml.merge_source import SourceRows, assigned_columns
from lakeview.storage import open_storage

pytestmark = pytest.mark.spark

SCHEMA = Schema(
    (Field("id", PrimitiveType("long")), Field("part", PrimitiveType("string")), Field("n", PrimitiveType("integer")))
)
ROWS = pl.DataFrame(
    {
        "id": [1, 2, 3, 4, 5, 6, 7, None],
        "part": ["a", "b", None, "a", "b", "a", "c", "c"],
        "n": [1, 2, 3, 4, 5, 6, 7, 8],
    },
    schema=SCHEMA.to_polars(),
)
SOURCE = pl.DataFrame(
    {"id": [2, 4, 9, 10, None], "part": ["b", "z", "a", None, "c"], "n": [20, None, 90, 100, 0]},
    schema=SCHEMA.to_polars(),
)
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "vectors": {"properties": {"delta.enableDeletionVectors": "true"}},
    "partitions": {"partition_by": ["part"]},
    "feed": {"properties": {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}},
    "tracked": {"properties": {"delta.enableRowTracking": "true"}},
}


def new_version(optimize_result: DataFrame) -> int | None:
    """The version that an optimize made, None if it moved no file."""
    row = optimize_result.first()
    assert row is not None
    return lv.open_table(row.path).latest_version if row.metrics.numFilesAdded else None


Library: TypeAlias = Callable[[Any], int | None]
Builder: TypeAlias = Callable[[DeltaTable, DataFrame], object]
CALLS: dict[str, tuple[Library, Builder]] = {
    "delete": (lambda t: t.delete("n > 6 OR id = 1"), lambda t, _: t.delete("n > 6 OR id = 1")),
    "delete of none": (lambda t: t.delete("n > 60"), lambda t, _: t.delete("n > 60")),
    "update": (
        lambda t: t.update({"n": "n * 10"}, "part = 'a'"),
        lambda t, _: t.update("part = 'a'", {"n": "n * 10"}),
    ),
    "upsert": (
        lambda t: t.merge(SOURCE, ["id"]).when_matched_update().when_not_matched_insert().execute(),
        lambda t, s: t.alias("t").merge(s, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(),
    ),
    "clauses": (
        lambda t: (
            t.merge(SOURCE, "target.id = source.id AND target.n < 100")
            .when_matched_delete(where="source.n IS NULL")
            .when_matched_update({"n": "target.n + source.n"})
            .when_not_matched_insert({"id": "source.id", "n": "1"}, where="source.id > 9")
            .when_not_matched_by_source_update({"n": "0 - n"}, where="target.part = 'b'")
            .when_not_matched_by_source_delete(where="target.id = 7")
            .execute()
        ),
        lambda t, s: (
            t.merge(s, "target.id = source.id AND target.n < 100")
            .whenMatchedDelete("source.n IS NULL")
            .whenMatchedUpdate(set={"Target.n": "target.n + source.n"})
            .whenNotMatchedInsert("source.id > 9", {"id": "source.id", "n": "1"})
            .whenNotMatchedBySourceUpdate("target.part = 'b'", {"n": "0 - n"})
            .whenNotMatchedBySourceDelete("target.id = 7")
            .execute()
        ),
    ),
    "compaction": (lambda t: t.optimize(), lambda t, _: new_version(t.optimize().executeCompaction())),
    "curve": (lambda t: t.optimize(z_order_by=["n"]), lambda t, _: new_version(t.optimize().executeZOrderBy("N"))),
}
PAIRS = [
    *((call, "vectors") for call in CALLS),
    ("upsert", "plain"), ("clauses", "partitions"), ("clauses", "feed"), ("update", "tracked"),
]  # fmt: skip


def make_table(address: Path, **kind: Any) -> Any:
    table = lv.create_table(str(address), SCHEMA, **kind)
    for rows in (ROWS[:3], ROWS[3:6], ROWS[6:]):
        table.append(rows)
    return table


@pytest.fixture(scope="module")
def source(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(SOURCE.rows(), "id long, part string, n int")


def content(address: Path) -> list[Any]:
    return sorted(delta_rows(str(address)).rows(), key=str)


def delta_rows(address: str) -> pl.DataFrame:
    return lv.open_table(address).scan().collect()


@pytest.mark.parametrize(("call", "kind"), PAIRS, ids=lambda p: p)
def test_an_operation_is_that_of_the_library(
    spark: SparkSession, source: DataFrame, tmp_path: Path, call: str, kind: str
) -> None:
    ours, theirs = tmp_path / "library", tmp_path / "spark"
    make_table(ours, **KINDS[kind])
    shutil.copytree(ours, theirs)
    library, builder = CALLS[call]
    version = library(lv.open_table(str(ours)))
    assert builder(DeltaTable.forPath(spark, str(theirs)), source) == version
    assert content(theirs) == content(ours)
    if version is None:
        return  # nothing to compare
    commits = [lv.open_table(str(a)).history(1).row(0, named=True) for a in (ours, theirs)]
    assert commits[0]["operation"] == commits[1]["operation"]
    metrics = [
        pl.Series([c["metrics"]]).str.json_decode(pl.Struct(dict.fromkeys(COUNTS, pl.String)))[0] for c in commits
    ]
    assert metrics[0] == metrics[1]
    audit = lv.open_table(str(theirs)).audit()
    assert audit.filter(pl.col("verdict") == "violated").is_empty()
    if kind == "feed":
        changes = [lv.open_table(str(a)).changes(version).drop("_commit_timestamp").collect() for a in (ours, theirs)]
        assert sorted(changes[0].rows(), key=str) == sorted(changes[1].rows(), key=str)


D = Decimal
MOMENT = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEYS: dict[str, tuple[pl.DataType, list[Any], str, list[Any]]] = {
    "wider numbers": (pl.Int32(), [1, 2, 3], "long", [2, 3, 1 << 40]),
    "fractions of whole numbers": (pl.Int64(), [1, 2, 3], "double", [1.0, 2.5, float("nan"), 1e300]),
    "decimals of another scale": (
        pl.Decimal(10, 2), [D("1.00"), D("1.10"), D("2.00")],
        "decimal(38,18)", [D(1), D("1.1"), D("2.000000001"), D(10**15)],
    ),
    "floats": (
        pl.Float32(), [0.1, 0.5, -0.0, float("nan")], "double", [0.1, 0.5, 0.0, float("nan"), 1e300]
    ),
    "a double that Spark and polars write otherwise": (
        pl.Decimal(38, 0), [D(12345678901234567168), D(7)], "double", [12345678901234567168.0, 7.0]
    ),
    "decimals as doubles": (
        pl.Float64(), [0.1, 0.30000000000000004, -0.0], "decimal(20,10)", [D("0.1"), D("0.3"), D(0)]
    ),
    "doubles that a long does not hold": (
        pl.Int64(), [1 << 53, (1 << 53) + 1], "double", [float(1 << 53), 1e19, float("inf")]
    ),
    "longs that a double does not hold": (pl.Float64(), [float(1 << 53)], "long", [1 << 53, (1 << 53) + 1]),
    "small numbers": (pl.Int8(), [1, -1, 127], "int", [1, 257, 127]),
    "moments": (pl.Datetime("us", "UTC"), [MOMENT, MOMENT.replace(microsecond=1)], "timestamp", [MOMENT]),
}  # fmt: skip


INSERTED = {"n": "source.n"}
ONES: dict[str, Any] = {"long": 1, "int": 1, "double": 1.0, "timestamp": MOMENT}


def test_keys_of_other_types_match_what_they_match_in_the_library(spark: SparkSession, tmp_path: Path) -> None:
    """One merge by all kinds of keys: a row has values of one kind in its column, and in the others such as match."""
    rows: list[dict[str, Any]] = []
    source_rows: list[dict[str, Any]] = []
    types = {kind: type_ for kind, (type_, *_) in KEYS.items()}
    ones = {kind: MOMENT if type_.is_temporal() else pl.Series([1]).cast(type_)[0] for kind, type_ in types.items()}
    source_ones = {kind: ONES.get(source_type, D(1)) for kind, (_, _, source_type, _) in KEYS.items()}
    for kind, (_, values, _, source_values) in KEYS.items():
        rows += [ones | {kind: value, "kind": kind, "n": i} for i, value in enumerate(values)]
        source_rows += [
            source_ones | {kind: value, "kind": kind, "n": 100 + i} for i, value in enumerate(source_values)
        ]
    columns = [
        pl.Series(f"k{i}", [row[kind] for row in rows], dtype=type_) for i, (kind, type_) in enumerate(types.items())
    ]
    target = pl.DataFrame([*columns, *pl.DataFrame(rows).select("kind", "n")])
    schema = ", ".join(f"k{i} {source_type}" for i, (_, _, source_type, _) in enumerate(KEYS.values()))
    frame = spark.createDataFrame(
        [tuple(row[name] for name in (*KEYS, "kind", "n")) for row in source_rows], f"{schema}, kind string, n long"
    )
    for name in ("library", "spark"):
        table = lv.create_table(str(tmp_path / name), target.to_arrow().schema)
        table.append(target[::2])
        table.append(target[1::2])
    keys = [name for name in target.columns if name != "n"]
    merge = delta.table.DeltaTable(open_storage(str(tmp_path / "library"))).merge(frame.toArrow(), keys)
    merge.when_matched_update({"n": "source.n"}).when_not_matched_insert(INSERTED).execute()
    builder = DeltaTable.forPath(spark, str(tmp_path / "spark")).merge(
        frame, " AND ".join(f"target.{name} = source.{name}" for name in keys)
    )
    builder.whenMatchedUpdate(set={"n": "source.n"}).whenNotMatchedInsert(values=INSERTED).execute()
    rows_found = content(tmp_path / "spark")
    assert str(rows_found) == str(content(tmp_path / "library"))  # NaN is not itself
    updated = [kind for *_, kind, n in rows_found if kind is not None and n >= 100]
    assert set(updated) == set(KEYS), "of each kind some keys match"
    inserts = [kind for *_, kind, n in rows_found if kind is None]
    assert len(inserts) == len(source_rows) - len(updated) > 0


INCOMPARABLE = [
    (pl.Int64(), "string"), (pl.String(), "long"), (pl.Date(), "timestamp"), (pl.Datetime("us", "UTC"), "date"),
    (pl.Datetime("us"), "timestamp"), (pl.Boolean(), "int"),
]  # fmt: skip


def test_a_merge_may_bring_new_columns_and_fields(spark: SparkSession, tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path / "t"), pa.schema([("id", pa.int64()), ("s", pa.struct([("a", pa.int64())]))]))
    table.append(pa.table({"id": [1, 2], "s": [{"a": 1}, {"a": 2}]}))
    rows = spark.sql("SELECT id, named_struct('a', id, 'b', 'x') AS s, 0.5D AS new FROM VALUES (2L), (3L) AS v(id)")
    target = DeltaTable.forPath(spark, table.address)
    deleting = target.merge(rows, "target.id = source.id").withSchemaEvolution().whenMatchedDelete("source.new > 1")
    assert deleting.execute() is None  # no clause writes the new columns
    merging = target.merge(rows, "target.id = source.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    with pytest.raises(InvalidRequestError, match="new"):
        merging.execute()
    merging.withSchemaEvolution().execute()
    assert content(tmp_path / "t") == [
        (1, {"a": 1, "b": None}, None), (2, {"a": 2, "b": "x"}, 0.5), (3, {"a": 3, "b": "x"}, 0.5),
    ]  # fmt: skip
    assert lv.open_table(table.address).latest_version == 2


def test_a_merge_keeps_or_nulls_fields_that_its_source_lacks(spark: SparkSession, tmp_path: Path) -> None:
    """As delta-spark: they stay in rows of which all columns are updated, and are null elsewhere."""
    inner = pa.struct([("x", pa.int64()), ("y", pa.int64())])
    struct = pa.struct([("a", pa.int64()), ("b", pa.int64()), ("in", inner)])
    items = pa.list_(pa.struct([("p", pa.int64()), ("q", pa.int64())]))
    table = lv.create_table(str(tmp_path / "t"), pa.schema([("id", pa.int64()), ("s", struct), ("items", items)]))
    row = {"s": {"a": 1, "b": 2, "in": {"x": 3, "y": 4}}, "items": [{"p": 5, "q": 6}]}
    table.append(
        pa.Table.from_pylist(
            [{"id": 1, **row}, {"id": 2, **row}, {"id": 3, "s": None}], table.snapshot().schema.to_arrow()
        )
    )
    rows = spark.sql(
        "SELECT id, IF(id = 4, NULL, named_struct('c', 0, 'In', named_struct('y', 40L), 'a', id)) AS s, "
        "array(named_struct('p', 50L)) AS items FROM VALUES (1L), (2L), (3L), (4L), (5L) AS v(id)"
    )

    def merging() -> DeltaMergeBuilder:
        return DeltaTable.forPath(spark, table.address).merge(rows, "target.id = source.id")

    with pytest.raises(InvalidRequestError, match=r"(?s)no field s\.b.* withSchemaEvolution\(\) of a merge"):
        merging().whenMatchedUpdateAll().execute()
    clauses = merging().whenMatchedUpdate("target.id = 2", {"s": "source.s"}).whenMatchedUpdateAll()
    clauses.whenNotMatchedInsertAll().withSchemaEvolution().execute()
    items_after = [{"p": 50, "q": None}]

    def struct_of(a: int, b: int | None, x: int | None) -> dict[str, object]:
        return {"a": a, "b": b, "in": {"x": x, "y": 40}, "c": 0}

    assert content(tmp_path / "t") == [
        (1, struct_of(1, 2, 3), items_after),
        (2, struct_of(2, None, None), row["items"]),
        (3, struct_of(3, None, None), items_after),
        (4, None, items_after),
        (5, struct_of(5, None, None), items_after),
    ]


def test_columns_of_spark_are_taken_where_text_can_be_made_of_them(spark: SparkSession, tmp_path: Path) -> None:
    case = f.when(col("n") > 1, "it's").otherwise(lit(None))
    columns = [
        (expr("n % 2 == 0"), "(n % 2 == 0)"),
        (~(col("t.n").isNull() | (col("a b") <= 1.5)), "(NOT ((`t`.`n` IS NULL) OR (`a b` <= 1.5)))"),
        (col("part").isin("a", "b") & lit(True), "((`part` IN ('a', 'b')) AND TRUE)"),
        (f.upper(col("part")).alias("u"), "upper(`part`)"),
        (case, "CASE WHEN (`n` > 1) THEN 'it''s' ELSE NULL END"),
        (-col("n").cast("long"), "(- CAST(`n` AS bigint))"),
    ]
    assert [sql_text(column) for column, _ in columns] == [text for _, text in columns]
    frame = spark.range(1)
    for column in (frame["id"] > 0, lit(float("nan")), f.sum("n").over(Window.partitionBy("part")), lit(b"x")):
        with pytest.raises(InvalidRequestError, match=r"takes SQL text, .*\n  fix: write the expression as text"):
            sql_text(column)

    table = lv.create_table(str(tmp_path / "t"), SCHEMA)
    table.append(ROWS)
    target = DeltaTable.forPath(spark, table.address)
    target.update(condition=expr("id % 2 == 0"), set={"n": expr("n + 100"), "part": lit("it's")})
    target.delete(col("part") == "b")
    updates = spark.createDataFrame([(1, 7), (9, 9)], "id long, n int")
    merging = target.alias("old").merge(updates.alias("updates"), col("old.id") == col("updates.id"))
    merging.whenMatchedUpdate(set={"n": col("updates.n")}).whenNotMatchedInsert(
        condition=col("updates.n") > lit(8), values={"id": "updates.id", "n": -col("updates.n")}
    ).execute()
    assert content(tmp_path / "t") == [
        (1, "a", 7), (2, "it's", 102), (3, None, 3), (4, "it's", 104), (6, "it's", 106), (7, "c", 7), (9, None, -9),
        (None, "c", 8),
    ]  # fmt: skip


def test_a_name_before_a_point_is_a_side_of_the_merge_before_it_is_a_struct(
    spark: SparkSession, tmp_path: Path
) -> None:
    struct = pa.struct([("id", pa.int64()), ("low", pa.int32())])
    table = lv.create_table(str(tmp_path / "t"), pa.schema([("id", pa.int64()), ("s", struct), ("n", pa.int32())]))
    table.append(pa.table({"id": [1, 2], "s": [{"id": 8, "low": 1}, {"id": 9, "low": 2}], "n": [0, 0]}))
    source = spark.createDataFrame([(1, 5, (7, 3)), (3, 6, (8, 4))], "id long, n int, s struct<id: long, low: int>")
    target = DeltaTable.forPath(spark, table.address)
    merging = target.alias("t").merge(source.alias("s"), "t.id = s.id")
    merging.whenMatchedUpdate(set={"n": "S.n + s.low", "T.s.low": "s.s.low"}).whenNotMatchedInsertAll().execute()
    assert lv.scan(table.address).collect().sort("id").rows() == [
        (1, {"id": 8, "low": 3}, 6),
        (2, {"id": 9, "low": 2}, 0),
        (3, {"id": 8, "low": 4}, 6),
    ]
    target.alias("s").merge(source, "s.id = source.id").whenMatchedUpdate(set={"s.low": "0", "s.n": "s.low"}).execute()
    assert lv.scan(table.address).collect().sort("id")["n"].to_list() == [3, 0, 4]


ALL = "id s s.old s.new `a.b` op"


@pytest.mark.parametrize(
    ("assigned", "expected"),
    [
        ([None], ALL),
        ([{"id": "source.id"}, None], ALL),
        ([{"ID": "source.id"}], "id"),
        ([{"`a.b`": "1"}, {"other": "1"}], "`a.b`"),
        ([{"a.b": "1", "S": "source.s"}], "s s.old s.new `a.b`"),
        ([{"s.new": "1"}], "s s.new"),
        ([{"s.other": "1"}], ""),
        ([], ""),
    ],
)
def test_a_merge_brings_the_columns_that_its_clauses_assign_to(
    assigned: list[dict[str, str] | None], expected: str
) -> None:
    struct = pa.struct([("old", pa.int64()), ("new", pa.int64())])
    source = pa.schema([("id", pa.int64()), ("s", struct), ("a.b", pa.int64()), ("op", pa.string())])
    plan = Merge(pl.DataFrame(), "target.id = source.id", lambda _: None).when_matched_delete(where="source.op = 'd'")
    for number, each in enumerate(assigned):
        plan.when_matched_update(each, where=f"source.id = {number}")
    columns = assigned_columns(plan, Schema.from_arrow(source))
    assert [node.name for node in nodes(columns)] == expected.split()


def test_a_source_with_a_name_of_the_merges_own_columns_is_refused_before_it_is_read() -> None:
    for name in ("\1file", "\1group", "\1row", "\1KEY0"):
        rows: Any = SimpleNamespace(columns=["id", name])
        with pytest.raises(InvalidRequestError, match=r"called \\x01\w+: .*\n  fix: rename or drop"):
            SourceRows(rows)


def test_keys_that_do_not_compare_are_refused_before_any_row_is_read(spark: SparkSession, tmp_path: Path) -> None:
    for number, (type_, source_type) in enumerate(INCOMPARABLE):
        address = str(tmp_path / str(number))
        lv.create_table(address, pl.DataFrame(schema={"k": type_}).to_arrow().schema)
        frame = spark.createDataFrame([], f"k {source_type}").selectExpr("raise_error('a row was read') AS x", "k")
        builder = DeltaTable.forPath(spark, address).merge(frame, "target.k = source.k")
        with pytest.raises(InvalidRequestError, match="they do not compare"):
            builder.whenMatchedDelete().execute()


def test_a_merge_that_is_tried_again_reads_its_source_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer takes a row away that the first attempt changed. The source has other values each time, in a
    column whose name Spark would take for the field of a struct."""
    address = str(tmp_path / "table")
    lv.create_table(address, pa.schema({"id": pa.int64(), "n.`": pa.string()})).append(
        pa.table({"id": [1, 2], "n.`": ["a", "b"]})
    )
    runs = spark.sparkContext.accumulator(0)

    def count_runs(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        runs.add(1)
        yield from batches

    source = spark.range(1, 4, 1, 1).selectExpr("id", "uuid() AS n").mapInArrow(count_runs, "id long, `n.``` string")
    take = Transaction.take
    interference: list[int | None] = []
    another = delta.table.DeltaTable(open_storage(address))

    def take_after_another(txn: Transaction, *outcomes: Any, **more: Any) -> None:
        if not interference:
            interference.append(another.delete("id = 2"))
        take(txn, *outcomes, **more)

    monkeypatch.setattr(Transaction, "take", take_after_another)
    version = upsert(DeltaTable.forPath(spark, address), source)
    assert (interference, version, runs.value) == ([2], 3, 1)
    rows = delta_rows(address)
    assert sorted(rows["id"].to_list()) == [1, 2, 3]
    assert rows["n.`"].str.len_chars().to_list() == [36, 36, 36]


@pytest.mark.parametrize(
    ("size", "joined", "packed", "files"), [(0, "SortMergeJoin", 1, 2), (1 << 20, "BuildRight", 16 << 20, 1)]
)
def test_a_merge_sends_no_keys_of_the_table_to_all_executors(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
    joined: str,
    packed: int,
    files: int,
) -> None:
    """Spark takes them for small. A source of few bytes is sent. Small files share a task, and the file that it writes;
    others with few source rows share no task."""
    address = str(tmp_path / "table")
    target = lv.create_table(address, pa.schema({"id": pa.int64(), "s": pa.string()}))  # called as the source is
    for number in (1, 2):
        target.append(pa.table({"id": [number], "s": ["a"]}))
    plans: list[str] = []

    def recorded(outcomes: DataFrame) -> DataFrame:
        plans.append(str(cast(Any, outcomes)._jdf.queryExecution().executedPlan()))
        return outcomes

    met_files = merge._Merging._met_files
    monkeypatch.setattr(merge._Merging, "_met_files", lambda *a: recorded(met_files(*a)))
    monkeypatch.setattr(merge, "collect", lambda outcomes: collect(recorded(outcomes)))
    monkeypatch.setattr(merge, "BROADCAST_BYTES", size)
    monkeypatch.setattr(merge, "PACKED_BYTES", packed)
    upsert(DeltaTable.forPath(spark, address), spark.range(1, 4).selectExpr("id", "'b' AS s"))
    assert joined in plans[0]
    assert ("Broadcast" in plans[0]) == (joined == "BuildRight")
    assert plans[1].count("2), REPARTITION_BY_NUM" if files == 2 else "SinglePartition, REPARTITION_BY_NUM") == 1
    assert lv.open_table(address).files().height == files + 1  # and that of the row inserted
    assert sorted(delta_rows(address).rows()) == [(1, "b"), (2, "b"), (3, "b")]


COUNTS = (
    "numDeletedRows", "numUpdatedRows", "numCopiedRows", "numSourceRows", "numTargetRowsInserted",
    "numTargetRowsUpdated", "numTargetRowsDeleted", "numTargetRowsNotMatchedBySourceDeleted", "numTargetRowsCopied",
    "numDeletionVectorsRemoved",
)  # fmt: skip


def test_what_fails_leaves_the_table_and_no_files(spark: SparkSession, source: DataFrame, tmp_path: Path) -> None:
    address = tmp_path / "table"
    table = make_table(address)
    table.add_constraint("small", "n < 1000")
    before = sorted(path for path in address.rglob("*") if path.is_file())
    ours = DeltaTable.forPath(spark, str(address))
    twice = source.union(source)
    refusals: list[tuple[type[LakeviewError], str, Callable[[], object]]] = [
        (ConstraintViolationError, "small", lambda: ours.update("n = 5 OR n = 1", {"n": "n * 500"})),
        (InvalidRequestError, "rows of the source match one row", lambda: upsert(ours, twice)),
        (
            InvalidRequestError,
            "which columns of target and source are equal: a whole column",
            lambda: upsert(ours, source, "t.n < s.n"),
        ),
        (InvalidRequestError, "lakeview takes SQL text", lambda: ours.delete(cast(str, source["n"] > 1))),
        (InvalidRequestError, "nope", lambda: ours.update("n = 1", {"nope": "1"})),
        (InvalidRequestError, "they do not compare", lambda: upsert(ours, source, "t.id = s.part")),
        (
            InvalidRequestError,
            "u is neither the table nor the source",
            lambda: upsert(ours, source, "t.id = s.id + u.n"),
        ),
        (InvalidRequestError, "n is no partition column", lambda: ours.optimize().where("n = 1").executeCompaction()),
    ]
    for kind, message, call in refusals:
        with pytest.raises(kind, match=message):
            call()
        assert sorted(path for path in address.rglob("*") if path.is_file()) == before, message
    missing_file = address / table.files()["path"][0]
    missing_file.rename(tmp_path / "elsewhere")
    with pytest.raises(DataFileMissingError, match="is in the log"):
        ours.update(None, {"n": "n + 1"})


@pytest.mark.parametrize("kind", [{}, {"partition_by": ["part"], "properties": {"delta.enableChangeDataFeed": "true"}}])
def test_files_of_tasks_whose_outcome_does_not_come_are_removed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: dict[str, Any]
) -> None:
    """In place of Spark: an executor ends and its tasks run again, or the whole job fails."""

    def run_twice(_: SparkSession, parts: Iterable[Any], do: Callable[[Any], object]) -> list[object]:
        return [do(part) for _ in range(2) for part in parts][1:]

    def fail(_: SparkSession, parts: Iterable[Any], do: Callable[[Any], object]) -> list[object]:
        raise StoreUnavailableError(f"Spark lost a process after {[do(part) for part in parts]}")

    address = tmp_path / "table"
    table = make_table(address, **kind)
    before = set(address.rglob("*.parquet"))
    monkeypatch.setattr("lakeview.spark.dml.changes.parts", lambda files: [files])
    monkeypatch.setattr("lakeview.spark.dml.changes.run_parts", fail)
    with pytest.raises(StoreUnavailableError):
        changes.delete(spark, table, "n IN (2, 5, 7)")
    assert set(address.rglob("*.parquet")) == before
    monkeypatch.setattr("lakeview.spark.dml.changes.run_parts", run_twice)
    assert changes.delete(spark, table, "n IN (2, 5, 7)") == 4
    new = {str(path.relative_to(address)) for path in set(address.rglob("*.parquet")) - before}
    named = set(table.files()["path"]) | set(table.commit(4).filter(kind="cdc")["path"])
    assert new == {path for path in named if address / path not in before}


def upsert(table: DeltaTable, source: DataFrame, on: str = "t.id = s.id") -> object:
    return table.alias("t").merge(source, on).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def test_a_table_is_opened_as_with_delta(spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(tmp_path / "table")
    assert DeltaTable.isDeltaTable(spark, table.address)
    assert not DeltaTable.isDeltaTable(spark, str(tmp_path))
    ours = DeltaTable.forPath(spark, table.address)
    table.append(ROWS[:1])
    assert ours.toDF().count() == 9
    assert [row.version for row in ours.history(1).collect()] == [table.latest_version]
    appended = table.latest_version
    (row,) = ours.restoreToVersion(1).collect()
    assert row.asDict() == {
        "table_size_after_restore": table.files(1)["size"].sum(), "num_of_files_after_restore": 1,
        "num_removed_files": 3, "num_restored_files": 0,
        "removed_files_size": table.files(appended)["size"].sum() - row.table_size_after_restore,
        "restored_files_size": 0,
    }  # fmt: skip
    with pytest.raises(InvalidRequestError, match="'soon' is no timestamp"):
        ours.restoreToTimestamp("soon")
    (moment,) = table.versions(look=False).filter(version=appended)["timestamp"]
    ours.restoreToTimestamp(f"{moment:%Y-%m-%d %H:%M:%S.%f}")
    assert ours.toDF().count() == 9, "in the zone of the session, UTC"
    (described,) = ours.detail().collect()
    assert (described.location, described.numFiles) == (table.address, 4)
    assert [row.operation for row in ours.history().collect()] == ["RESTORE"] * 2 + ["WRITE"] * 4 + ["CREATE TABLE"]
    assert ours.vacuum().collect() == []
    assert isinstance(lv.open_table(table.address), delta.table.DeltaTable)
