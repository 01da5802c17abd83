"""What a table is, changed without its rows: columns, properties, constraints, and the protocol that they need."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.schema_changes import dropped_from, renamed_in
from lakeview.model.data_types import ArrayType, DecimalType, Field, MapType, PrimitiveType, StructType
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError, LakeviewError, UnsupportedTableError
from lakeview.model.schema import Schema
from tests.builders.actions import metadata, protocol
from tests.builders.findings import GRAVE
from tests.builders.history import DeltaHistory
from tests.builders.opening import open_delta_table

LONG, INTEGER, TEXT = PrimitiveType("long"), PrimitiveType("integer"), PrimitiveType("string")
SCHEMA = Schema(
    (
        Field("id", INTEGER),
        Field("city", TEXT),
        Field("at", StructType((Field("x", PrimitiveType("short")), Field("y", TEXT)))),
        Field("tags", ArrayType(INTEGER)),
    )
)
MAPPED = {"delta.columnMapping.mode": "name"}


def rows(first: int, count: int = 3) -> pl.DataFrame:
    return pl.DataFrame(
        [{"id": n, "city": "Oslo" if n % 2 else "Rome", "at": {"x": n, "y": "y"}, "tags": [n]} for n in
         range(first, first + count)],
        SCHEMA.to_polars(),
    )  # fmt: skip


def make_table(address: Path, properties: dict[str, str] | None = None, **more: Any) -> DeltaTable:
    table = lv.create_table(str(address), SCHEMA, properties=properties, **more)
    assert isinstance(table, DeltaTable)
    table.append(rows(0))
    return table


def all_rows(table: lv.Table) -> list[dict[str, Any]]:
    frame = open_delta_table(table).scan().collect()
    return frame.sort(frame.columns[0]).to_dicts()


def sound(table: lv.Table) -> bool:
    return not [f for f in open_delta_table(table).check() if f.severity in GRAVE]


# -- columns


@pytest.mark.parametrize("partition_by", [(), ("city",)], ids=["whole", "partitioned"])
def test_mapped_columns_are_renamed_and_dropped_without_their_files(
    tmp_path: Path, partition_by: tuple[str, ...]
) -> None:
    table = make_table(tmp_path, partition_by=partition_by)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*.parquet")}
    table.set_properties(MAPPED)
    table.rename_column("city", "town")
    table.rename_column("at.y", "z")
    parameters = json.loads(table.history(1)["parameters"][0])
    assert parameters == {"oldColumnPath": "at.y", "newColumnPath": "at.z"}
    table.drop_column("tags")
    assert all_rows(table)[0] == {"id": 0, "town": "Rome", "at": {"x": 0, "z": "y"}}
    assert {p: p.read_bytes() for p in tmp_path.rglob("*.parquet")} == before
    new = pl.DataFrame({"id": [9], "town": ["Bern"], "at": [{"x": 1, "z": None}]})
    open_delta_table(table).append(new.with_columns(pl.col("id").cast(pl.Int32)))
    table.add_column("tags", TEXT, comment="another one")
    assert [r["id"] for r in all_rows(table)] == [0, 1, 2, 9]
    assert {r["tags"] for r in all_rows(table)} == {None}, "a name that comes back is another column"
    assert open_delta_table(table).scan(1).collect().columns == ["id", "city", "at", "tags"]
    assert sound(table)


def test_columns_have_types_of_polars_arrow_or_by_name(tmp_path: Path) -> None:
    table = make_table(tmp_path, {"delta.enableTypeWidening": "true"})
    assert table.add_column("weight", pl.Float64) == 2
    assert table.add_column("kind", "string") == 3
    assert table.widen_column("id", "bigint") == 4
    whole = pa.schema([*table.snapshot().schema.to_arrow(), pa.field("seen", pa.date32())])
    assert table.evolve(whole) == 5
    types = {f.name: str(f.type) for f in open_delta_table(table).snapshot().schema}
    assert types == {
        "id": "long",
        "city": "string",
        "at": "struct<x: short, y: string>",
        "tags": "array<integer>",
        "weight": "double",
        "kind": "string",
        "seen": "date",
    }
    assert table.history(1)["operation"].to_list() == ["REPLACE COLUMNS"]


def test_a_schema_of_rows_leaves_columns_of_the_table_as_they_are(tmp_path: Path) -> None:
    """Of mapped columns it has no physical names: under new ones all rows were null."""
    table = make_table(tmp_path, MAPPED)
    table.set_comment("city", "where")
    before, rows_read = table.snapshot().schema, table.scan().collect()
    more = pl.Schema({**rows_read.schema, "seen": pl.Date()})
    assert [table.evolve(rows_read.schema), table.evolve(before), table.evolve(more)] == [None, None, 3]
    assert open_delta_table(table).snapshot().schema.fields[:-1] == before.fields
    assert open_delta_table(table).scan().collect().drop("seen").equals(rows_read)
    assert table.evolve(Schema.from_arrow(open_delta_table(table).snapshot().schema.to_arrow())) == 4
    assert open_delta_table(table).scan().collect().drop("seen").equals(rows_read)
    assert "comment" not in open_delta_table(table).snapshot().schema["city"].metadata


def test_mapping_of_a_table_with_the_schema_of_a_mapped_one(tmp_path: Path) -> None:
    """Its physical names were taken for those of the files, and all rows were null."""
    table = lv.create_table(tmp_path / "copy", make_table(tmp_path / "mapped", MAPPED).snapshot().schema)
    table.append(rows(0))
    table.set_properties(MAPPED)
    assert open_delta_table(table).scan().collect().equals(rows(0))


def test_a_new_column_gets_no_id_that_elements_have(tmp_path: Path) -> None:
    keys = {
        "delta.columnMapping.id": 1,
        "delta.columnMapping.physicalName": "l",
        "delta.columnMapping.nested.ids": {"l.element": 2},
    }
    field = {"name": "l", "type": {"type": "array", "elementType": "long"}, "nullable": True, "metadata": keys}
    properties: dict[str, str | None] = {**MAPPED, "delta.columnMapping.maxColumnId": "1"}
    text = json.dumps({"type": "struct", "fields": [field]})
    history = DeltaHistory(tmp_path).commit(protocol(2, 5), metadata(schema=text, properties=properties))
    table = open_delta_table(history)
    table.add_column("more", "long")
    assert [f.id for f in table.snapshot().schema] == [1, 3]


def test_a_column_of_another_mapped_table_gets_an_id_of_this_one(tmp_path: Path) -> None:
    table = make_table(tmp_path / "here", MAPPED)
    other = lv.create_table(tmp_path / "there", {"more": "long"}, properties=MAPPED).snapshot().schema["more"]
    assert table.evolve(Schema((*table.snapshot().schema, other))) == 2
    fields = open_delta_table(table).snapshot().schema.fields
    assert len({field.id for field in fields}) == len(fields)
    assert fields[-1].physical_name != other.physical_name


@pytest.mark.parametrize("wrong", ["String", ArrayType("Int64"), StructType((Field("a", pl.Int64),))])  # type: ignore[arg-type]  # on purpose
def test_what_is_no_type_changes_nothing(tmp_path: Path, wrong: Any) -> None:
    table = make_table(tmp_path)
    whole = Schema((*table.snapshot().schema, Field("more", PrimitiveType("Strin") if wrong == "String" else wrong)))
    with pytest.raises(UnsupportedTableError, match="is not written to Delta tables"):
        table.evolve(whole)
    assert open_delta_table(table).latest_version == 1


def test_types_widen_and_older_files_are_read_as_the_new_type(tmp_path: Path) -> None:
    table = make_table(tmp_path, {"delta.enableTypeWidening": "true"})
    table.widen_column("id", LONG)
    table.widen_column("at.x", INTEGER)
    table.widen_column("tags.element", DecimalType(20, 2))
    open_delta_table(table).append(
        pl.DataFrame({"id": [2**40], "city": ["Bern"], "at": [{"x": 2**20, "y": ""}], "tags": [[7]]}).cast(
            {"tags": pl.List(pl.Decimal(20, 2))}
        )
    )
    assert [(r["id"], r["at"]["x"]) for r in all_rows(table)] == [(0, 0), (1, 1), (2, 2), (2**40, 2**20)]
    assert open_delta_table(table).plan("id > 5")["kept"].sum() == 1
    assert sound(table)


def test_columns_move_and_are_described(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    with table.transaction("CHANGE COLUMN") as txn:
        txn.reorder_columns(["city", "tags"])
        txn.set_comment("at.x", "how far")
        txn.set_nullable("id", nullable=False)
    assert table.snapshot().schema.names == ["city", "tags", "id", "at"]
    inner = table.snapshot().schema["at"].type
    assert isinstance(inner, StructType)
    assert inner.fields[0].comment == "how far"
    with pytest.raises(ConstraintViolationError, match="id must not be null"):
        table.append(rows(5).with_columns(id=pl.lit(None, pl.Int32)))
    assert [r["id"] for r in open_delta_table(table).scan().collect().to_dicts()] == [0, 1, 2]


# -- properties and the protocol

UPGRADES: list[tuple[str, dict[str, str], list[str], bool]] = [
    ("mapped columns", MAPPED, ["columnMapping"], True),
    ("deletion vectors", {"delta.enableDeletionVectors": "true"}, ["deletionVectors"], True),
    ("in-commit times", {"delta.enableInCommitTimestamps": "true"}, ["inCommitTimestamp"], False),
    ("a change feed", {"delta.enableChangeDataFeed": "true"}, ["changeDataFeed"], False),
    ("row tracking", {"delta.enableRowTracking": "true"}, ["domainMetadata", "rowTracking"], False),
    ("type widening", {"delta.enableTypeWidening": "true"}, ["typeWidening"], True),
    ("V2 checkpoints", {"delta.checkpointPolicy": "v2"}, ["v2Checkpoint"], True),
]


@pytest.mark.parametrize(("properties", "features", "readers"), [u[1:] for u in UPGRADES], ids=[u[0] for u in UPGRADES])
def test_a_property_brings_the_protocol_that_it_needs_and_the_table_goes_on(
    tmp_path: Path, properties: dict[str, str], features: list[str], readers: bool
) -> None:
    table = make_table(tmp_path)
    table.set_properties(properties)
    table_protocol = table.snapshot().protocol
    assert table_protocol.writer_features is not None
    assert set(table_protocol.writer_features) == {"appendOnly", "invariants", *features}
    assert (table_protocol.min_reader_version, table_protocol.min_writer_version) == (3 if readers else 1, 7)
    other = open_delta_table(table)
    other.append(rows(10))
    other.delete("id = 1")
    other.update({"city": "'Bern'"}, "id = 10")
    assert [r["id"] for r in all_rows(table)] == [0, 2, 10, 11, 12]
    if "rowTracking" in features:
        ids = open_delta_table(table).scan(row_tracking=True).collect()["_row_id"]
        assert ids.null_count() == 0
        assert ids.n_unique() == 5
    if "inCommitTimestamp" in features:
        table_properties = table.snapshot().properties
        assert table_properties["delta.inCommitTimestampEnablementVersion"] == "2"
        sources = open_delta_table(table).history().sort("version")["timestamp_source"].to_list()
        assert sources[:3] == ["file", "file", "in-commit"]
        assert open_delta_table(table).history().sort("version")["timestamp"].is_sorted()
    assert sound(table)


def test_features_are_named_on_request_and_properties_go(tmp_path: Path) -> None:
    table = make_table(tmp_path, {"a": "1", "b": "2"})
    with table.transaction("UPGRADE PROTOCOL") as txn:
        txn.upgrade_protocol(["deletionVectors"])
    assert "deletionVectors" in (table.snapshot().protocol.reader_features or ())
    table.unset_properties(["a"])
    assert open_delta_table(table).snapshot().properties == {"b": "2"}


# -- constraints


def test_a_constraint_is_added_once_its_rows_satisfy_it_and_goes_again(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    with pytest.raises(
        ConstraintViolationError, match=r"2 rows of the table break the constraint c \(id > 1\); one of them: id = 0"
    ):
        table.add_constraint("c", "id > 1")
    assert table.latest_version == 1
    opened = open_delta_table(table)
    opened.add_constraint("c", "id >= 0")
    assert opened.storage.requests["open"] == 0, "statistics prove it"
    with pytest.raises(ConstraintViolationError, match="constraint c"):
        opened.append(rows(-3))
    opened.drop_constraint("C")
    open_delta_table(table).append(rows(-3))
    assert len(all_rows(table)) == 6


def test_a_constraint_that_is_a_value_is_refused_without_rows_too(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), {"id": pl.Int64()})
    with pytest.raises(InvalidRequestError, match="not true or false"):
        table.add_constraint("c", "id")
    table.append(pl.DataFrame({"id": [1]}))


def after_rows(change: Any) -> Any:
    """A change of the definition after rows of the same transaction."""

    def both(table: DeltaTable) -> None:
        with table.transaction() as txn:
            txn.append(rows(-5))
            change(txn)

    return both


REFUSED: list[tuple[str, Any, type[LakeviewError], str]] = [
    ("a constraint after rows", after_rows(lambda t: t.add_constraint("c", "id > 0")), InvalidRequestError,
     "has written rows already"),
    ("NOT NULL after rows", after_rows(lambda t: t.set_nullable("id", nullable=False)), InvalidRequestError,
     "has written rows already"),
    ("a rename without mapping", lambda t: t.rename_column("id", "key"), InvalidRequestError, "map them first"),
    ("a drop without mapping", lambda t: t.drop_column("id"), InvalidRequestError, "map them first"),
    ("widening without the property", lambda t: t.widen_column("id", LONG), InvalidRequestError, "enableTypeWidening"),
    ("an unknown column", lambda t: t.transaction().set_comment("planet", "x"), InvalidRequestError, "column planet"),
    ("a path that leads nowhere", lambda t: t.transaction().set_comment("id.x", "x"), InvalidRequestError,
     "no column id.x"),
    ("a null that is there", lambda t: (t.append(rows(9).with_columns(city=pl.lit(None, pl.String))),
     t.transaction().set_nullable("city", nullable=False)), ConstraintViolationError,
     "3 rows of the table break column city"),
    ("a constraint as property", lambda t: t.set_properties({"delta.constraints.c": "id > 0"}), InvalidRequestError,
     "add_constraint"),
    ("a constraint that is none", lambda t: t.add_constraint("c", "id + 1"), InvalidRequestError, "not true or false"),
    ("a constraint we do not evaluate", lambda t: t.add_constraint("c", "soundex(city) = 'x'"), UnsupportedTableError,
     "cannot be evaluated"),
    ("a constraint that is not there", lambda t: t.drop_constraint("c"), InvalidRequestError, "no constraint c"),
    ("a property that is not set", lambda t: t.unset_properties(["x"]), InvalidRequestError, "no property x"),
    ("a feature we do not write", lambda t: t.transaction().upgrade_protocol(["timeMachine"]), UnsupportedTableError,
     "timeMachine"),
    ("mapping by id later", lambda t: t.set_properties({"delta.columnMapping.mode": "id"}), InvalidRequestError,
     "cannot become id"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "error", "words"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_the_table_does_not_bear_is_refused(
    tmp_path: Path, change: Any, error: type[LakeviewError], words: str
) -> None:
    table = make_table(tmp_path)
    with pytest.raises(error, match=words):
        change(table)
    kinds = open_delta_table(table).history()["operation"].to_list()
    assert set(kinds) <= {"CREATE TABLE", "WRITE"}


USES: list[tuple[str, Any, str]] = [
    ("by a constraint", lambda t: t.drop_column("id"), "the rule c"),
    ("by a constraint, renamed", lambda t: t.rename_column("ID".lower(), "key"), "the rule c"),
    ("by the partitions", lambda t: t.drop_column("city"), "partitioned by it"),
    ("as the only field", lambda t: (t.drop_column("at.x"), t.drop_column("at.y")), "is the only field"),
    (
        "as the last that is no partition",
        lambda t: (t.drop_constraint("c"), t.drop_column("id"), t.drop_column("at"), t.drop_column("tags")),
        "files would hold nothing",
    ),
    ("by writers", lambda t: t.unset_properties(["delta.columnMapping.maxColumnId"]), "writers keep for themselves"),
    ("under that name", lambda t: t.rename_column("tags", "CITY"), "case aside"),
    ("with a null character", lambda t: t.add_column("a\0", TEXT), r"'a\\x00' holds a null character"),
    ("without a name", lambda t: t.rename_column("tags", " "), "' ' names no column"),
]


@pytest.mark.parametrize(("change", "words"), [u[1:] for u in USES], ids=[u[0] for u in USES])
def test_columns_in_use_stay(tmp_path: Path, change: Any, words: str) -> None:
    table = make_table(tmp_path, MAPPED | {"delta.constraints.c": "id >= 0"}, partition_by=["city"])
    with pytest.raises(InvalidRequestError, match=words):
        change(table)


def test_the_rule_of_a_column_goes_with_it(tmp_path: Path) -> None:
    doubled = Field("g", LONG, metadata={"delta.generationExpression": "id * 2"})
    limited = Field("i", LONG, metadata={"delta.invariants": "i < 9"})
    table = lv.create_table(str(tmp_path), Schema((Field("id", LONG), doubled, limited)), properties=MAPPED)
    table.rename_column("g", "twice")
    with pytest.raises(InvalidRequestError, match="id cannot be dropped: the rule twice"):
        table.drop_column("id")
    with pytest.raises(InvalidRequestError, match="i cannot be renamed: the rule i"):
        table.rename_column("i", "j")
    for name in ("twice", "i"):
        table.drop_column(name)
    assert table.snapshot().schema.names == ["id"]


def test_row_tracking_begins_for_rows_of_the_same_commit_too(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    with table.transaction() as txn:
        txn.append(rows(10))
        txn.set_properties({"delta.enableRowTracking": "true"})
    ids = open_delta_table(table).scan(row_tracking=True).collect()["_row_id"]
    assert (ids.null_count(), ids.n_unique()) == (0, 6)


def test_fields_called_as_steps_of_lists_widen(tmp_path: Path) -> None:
    inner = StructType((Field("value", INTEGER), Field("element", ArrayType(StructType((Field("key", INTEGER),))))))
    table = lv.create_table(
        str(tmp_path), Schema((Field("s", inner),)), properties={"delta.enableTypeWidening": "true"}
    )
    table.append(pl.DataFrame({"s": [{"value": 1, "element": [{"key": 2}]}]}, Schema((Field("s", inner),)).to_polars()))
    for path in ("s.value", "s.element.element.key"):
        table.widen_column(path, LONG)
    assert all_rows(table) == [{"s": {"value": 1, "element": [{"key": 2}]}}]
    assert str(table.snapshot().schema["s"].type) == "struct<value: long, element: array<struct<key: long>>>"


PAIR = StructType((Field("x", INTEGER), Field("y", TEXT)))
NESTED = Schema(
    (
        Field("s", PAIR),
        Field("l", ArrayType(ArrayType(PAIR))),
        Field("m", MapType(PAIR, PAIR)),
        Field("a.b", PAIR),
    )
)


def test_fields_of_structs_change_wherever_the_struct_is(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), NESTED, properties=MAPPED | {"delta.enableTypeWidening": "true"})
    pair = {"x": 1, "y": "one"}
    old = {"s": pair, "l": [[pair]], "m": [(pair, pair)], "a.b": pair}
    table.append(pa.Table.from_pylist([old], schema=NESTED.to_arrow()))
    with table.transaction() as txn:
        for struct in (("s",), ("l", "element", "element"), ("m", "value"), ("a.b",)):
            txn.rename_column((*struct, "x"), "wide")
            txn.widen_column((*struct, "wide"), LONG)
            txn.set_comment((*struct, "wide"), "how wide")
            txn.drop_column((*struct, "y"))
            txn.add_column((*struct, "y"), LONG)
        txn.rename_column("m.key.y", "z")
        refusals: list[tuple[Callable[[], object], str]] = [
            (lambda: txn.drop_column("m.key.z"), "part of the keys of m"),
            (lambda: txn.add_column("m.key.more", TEXT), "the key of column m would change"),
            (lambda: txn.add_column("l.element.element.WIDE", TEXT), "case aside"),
            (lambda: txn.add_column("l.element.more", TEXT), "no column l.element.more"),
            (lambda: txn.add_column((), TEXT), r"\(\) names no column"),
            (lambda: txn.set_nullable("m.value.wide", nullable=False), "lies in a list or map"),
        ]
        for refused, words in refusals:
            with pytest.raises(InvalidRequestError, match=words):
                refused()
    new, key = {"wide": 1, "y": None}, {"x": 1, "z": "one"}
    assert open_delta_table(table).scan().collect().to_arrow().to_pylist() == [
        {"s": new, "l": [[new]], "m": [(key, new)], "a.b": new}
    ]
    table.append(pa.Table.from_pylist(
        [{"s": {"wide": 2**40, "y": 5}}], schema=open_delta_table(table).snapshot().schema.select(["s"]).to_arrow()
    ))  # fmt: skip
    assert table.scan().filter(pl.col("s").struct.field("wide") > 1).collect()["s"].to_list() == [
        {"wide": 2**40, "y": 5}
    ]


# -- tables of others

DECLARED = [
    "allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints", "checkpointProtection", "clustering",
    "columnMapping", "deletionVectors", "domainMetadata", "generatedColumns", "icebergCompatV1", "icebergCompatV2",
    "identityColumns", "inCommitTimestamp", "invariants", "materializePartitionColumns", "rowTracking", "timestampNtz",
    "typeWidening", "typeWidening-preview", "v2Checkpoint", "vacuumProtocolCheck", "variantType", "variantType-preview",
]  # fmt: skip
READERS = frozenset(
    {"columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint",
     "vacuumProtocolCheck", "variantType", "variantType-preview"}
)  # fmt: skip


@pytest.mark.parametrize("feature", DECLARED)
def test_a_table_that_declares_a_feature_is_written(history: DeltaHistory, feature: str) -> None:
    needs = {"rowTracking": ["domainMetadata"], "clustering": ["domainMetadata"]}.get(feature, [])
    readers = [feature] if feature in READERS else None
    history.commit(
        protocol(
            3 if readers else 1, 7, writerFeatures=[feature, *needs], **({"readerFeatures": readers} if readers else {})
        ),
        metadata({"id": "long", "v": "variant"} if feature.startswith("variant") else {"id": "long"}),
    ).commit(history.data("f", {"id": [1]}))
    table = open_delta_table(history.address)
    table.append(pl.DataFrame({"id": [2]}))
    table.delete("id = 1")
    assert open_delta_table(table).scan().select("id").collect()["id"].to_list() == [2]


def test_columns_with_names_of_the_change_feed_and_the_feed_exclude_each_other(tmp_path: Path) -> None:
    feed, name = {"delta.enableChangeDataFeed": "true"}, "_Change_Type"
    with pytest.raises(InvalidRequestError, match="the change data feed uses"):
        lv.create_table(str(tmp_path / "new"), Schema((Field("id", LONG), Field(name, TEXT))), properties=feed)
    fed, plain = make_table(tmp_path / "fed", feed), make_table(tmp_path / "plain")
    plain.add_column(name, TEXT)
    calls: list[Callable[[], object]] = [lambda: fed.add_column(name, TEXT), lambda: plain.set_properties(feed)]
    for call in calls:
        with pytest.raises(InvalidRequestError) as caught:
            call()
        assert caught.value.kind == "reserved-column"


@pytest.mark.parametrize(
    ("columns", "after"),
    [
        ("city,id", "town,id"),
        ("CITY", "town"),
        ("`city`,`a.b`", "town,`a.b`"),
        ("city.x", "town.x"),
        ("at.city", "at.city"),
    ],
)
def test_a_renamed_column_keeps_its_statistics(columns: str, after: str) -> None:
    assert renamed_in(columns, ("city",), "town") == after


def test_a_rename_changes_the_list_of_columns_with_statistics(tmp_path: Path) -> None:
    table = make_table(tmp_path, MAPPED | {"delta.dataSkippingStatsColumns": "at.x,city"})
    table.rename_column("at.x", "very odd")
    assert table.snapshot().properties["delta.dataSkippingStatsColumns"] == "at.`very odd`,city"


@pytest.mark.parametrize(
    ("columns", "after"), [("CITY,id", "id"), ("id,city.x", "id"), ("city", ""), ("at.city", "at.city")]
)
def test_a_dropped_column_leaves_the_list_of_columns_with_statistics(columns: str, after: str) -> None:
    assert dropped_from(columns, ("city",)) == after


def test_a_drop_changes_the_list_of_columns_with_statistics(tmp_path: Path) -> None:
    table = make_table(tmp_path, MAPPED | {"delta.dataSkippingStatsColumns": "at.x,city"})
    table.drop_column("city")
    assert table.snapshot().properties["delta.dataSkippingStatsColumns"] == "at.x"


WRONG: dict[str, Callable[[Any], object]] = {
    "a comment": lambda table: table.set_comment("city", 5),
    "a comment of a new column": lambda table: table.add_column("more", LONG, comment=5),
    "nullable": lambda table: table.set_nullable("city", nullable="no"),
    "a name": lambda table: table.rename_column("city", 5),
    "a column": lambda table: table.drop_column(None),
    "a path": lambda table: table.add_column(("at", 5), LONG),
    "a version": lambda table: table.restore("0"),
    "a moment": lambda table: table.restore(at="2026-01-01"),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_a_value_of_another_type_changes_nothing(tmp_path: Path, call: Callable[[Any], object]) -> None:
    table = make_table(tmp_path, MAPPED)
    with pytest.raises(InvalidRequestError):
        call(table)
    assert open_delta_table(table).latest_version == 1


def test_what_is_so_already_commits_nothing(tmp_path: Path) -> None:
    """An equal metaData action collided with every write of others."""
    properties = {"delta.columnMapping.mode": "name", "owner": "ada"}
    table = lv.create_table(str(tmp_path), {"id": "long", "v": "string"}, properties=properties)
    assert isinstance(table, DeltaTable)
    table.set_comment("v", "a value")
    assert table.set_properties({"owner": "ada"}) is None
    assert table.upgrade_protocol(["columnMapping"]) is None
    assert table.set_comment("v", "a value") is None
    assert table.set_nullable("id", nullable=True) is None
    assert table.reorder_columns(["id", "v"]) is None
    assert table.rename_column("v", "v") is None
    assert table.latest_version == 1


def test_one_name_is_as_good_as_a_list_of_names(tmp_path: Path) -> None:
    table = lv.create_table(tmp_path, {"id": "long", "city": "string"}, partition_by="city")
    assert isinstance(table, DeltaTable)
    table.append(pl.DataFrame({"id": [1, 2], "city": ["Oslo", "Rome"]}))
    changes = pl.DataFrame({"id": [2, 3], "city": ["Bern", "Bern"]})
    table.merge(changes, "id").when_matched_update().when_not_matched_insert().execute()
    assert table.optimize(z_order_by="id") is not None
    assert [row["city"] for row in all_rows(table)] == ["Oslo", "Bern", "Bern"]
