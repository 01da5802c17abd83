"""Tables with variant columns: rows as JSON text whatever each file's layout, null counts without bounds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.variant_utils import VariantUtils

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.data_types import Field, PrimitiveType, StructType
from lakeview.model.errors import CorruptTableError, InvalidRequestError, LakeviewError
from lakeview.model.schema import Schema
from lakeview.rows.variant import variant_binaries, variant_text
from tests.builders.actions import metadata, protocol, struct
from tests.builders.history import DeltaHistory
from tests.builders.opening import open_delta_table
from tests.builders.variants import BINARIES, EMPTY, encoded, integer, primitive, spark_variant
from tests.golden.conformance import GoldenTable, delta_tables

SHREDDED = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())])
FEATURES = ["variantType", "variantShredding-preview"]


def variant(value: Any) -> dict[str, bytes]:
    binary, names = spark_variant(value)
    return {"metadata": names, "value": binary}


def shredded(value: int) -> dict[str, Any]:
    return {"metadata": EMPTY, "value": None, "typed_value": value}


def write_variants(history: DeltaHistory) -> DeltaHistory:
    columns = {"id": "long", "v": "variant", "s": struct(v="variant"), "l": {"type": "array", "elementType": "variant"}}
    history.commit(protocol(3, 7, readerFeatures=FEATURES, writerFeatures=FEATURES), metadata(columns))
    plain = pa.table(
        {
            "id": [1, 2],
            "v": pa.array([variant({"b": [1, 2.5, None], "a": "x"}), None], BINARIES),
            "s": pa.array([{"v": variant(True)}, None], pa.struct([("v", BINARIES)])),
            "l": pa.array([[variant("one"), None], []], pa.list_(BINARIES)),
        }
    )
    apart = pa.table(
        {"id": [3, 4], "v": pa.array([shredded(7), {"metadata": EMPTY, "value": encoded("n/a")}], SHREDDED)}
    )
    stats = {"numRecords": 2, "minValues": {"id": 1, "v": "z85"}, "nullCount": {"id": 0, "v": 1}}
    return history.commit(history.data("plain", plain, stats=stats)).commit(history.data("apart", apart))


def test_rows_are_json_text_however_a_file_lays_them_out(history: DeltaHistory) -> None:
    rows = lv.open_table(write_variants(history).address).scan().sort("id").collect()
    assert rows["v"].to_list() == ['{"a":"x","b":[1,2.5,null]}', None, "7", '"n/a"']
    assert rows["s"].to_list() == [{"v": "true"}, None, None, None]
    assert rows["l"].to_list() == [['"one"', None], [], None, None]


def test_variants_have_null_counts_and_no_bounds(history: DeltaHistory) -> None:
    frame = lv.open_table(write_variants(history).address).statistics(columns=["v"])
    statistics_by_path = dict(zip(frame["_path"], frame["v"].to_list(), strict=True))
    assert (
        statistics_by_path["plain"]["min"],
        statistics_by_path["plain"]["null_count"],
        statistics_by_path["apart"]["null_count"],
    ) == (None, 1, None)


def test_a_broken_variant_stops_its_column_only(history: DeltaHistory) -> None:
    write_variants(history)
    broken = pa.table({"id": [9], "v": pa.array([{"metadata": EMPTY, "value": b"\xff"}], BINARIES)})
    history.commit(history.data("broken", broken))
    table = lv.open_table(history.address)
    with pytest.raises(CorruptTableError, match="variant column v cannot be read") as caught:
        table.scan().collect()
    assert (caught.value.kind, caught.value.place) == ("corrupt-variant", "broken")
    assert caught.value.message.endswith(", in data file broken")
    assert table.scan().select("id").collect().height == 5


# -- writing

TEXTS = [
    "null", "true", "false", "-128", "128", "-32769", "2147483648", "-9223372036854775809", "1.50", "-0.001", "1e3",
    "12345678901.5", "1234567890123456789012345678901234567.8", '""', '"é"', json.dumps("x" * 64), "[]", "{}",
    '{"b":1,"a":{"c":[1,"x",null],"b":2}}', json.dumps(list(range(300))),
    json.dumps({f"k{i:03}": i for i in range(300)}), "[" * 200 + "1" + "]" * 200,
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=[text[:20] for text in TEXTS])
def test_json_text_becomes_the_variant_that_spark_reads(text: str) -> None:
    binaries = variant_binaries(pa.array([text, None]), "v")
    (ours, none) = binaries.to_pylist()
    value, names = VariantUtils.parse_json(text)
    assert VariantUtils.to_json(ours["value"], ours["metadata"]) == VariantUtils.to_json(bytes(value), bytes(names))
    theirs = pa.array([{"metadata": bytes(names), "value": bytes(value)}, None], BINARIES)
    assert variant_text(binaries) == variant_text(theirs)
    assert none is None


def make_table(address: Path, **more: Any) -> DeltaTable:
    schema = Schema((Field("id", PrimitiveType("long")), Field("v", PrimitiveType("variant"))))
    table = lv.create_table(str(address), schema, **more)
    assert isinstance(table, DeltaTable)
    return table


def test_rows_with_variants_are_appended_and_deleted(tmp_path: Path) -> None:
    table = make_table(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    table.append(pl.DataFrame({"id": [1, 2, 3], "v": ['{"b": [1, 2.50], "a": "x"}', None, "null"]}))
    table.append(pl.DataFrame({"id": [4]}))
    table.delete("id = 3")
    assert "variantType" in (table.snapshot().protocol.reader_features or ())
    assert table.scan().sort("id").collect()["v"].to_list() == ['{"a":"x","b":[1,2.50]}', None, None]
    stored = pq.read_schema(next(tmp_path.glob("*.parquet"))).field("v").type
    assert [(field.name, field.nullable) for field in stored] == [("metadata", False), ("value", False)]


UNWRITTEN: list[tuple[str, Any, type[LakeviewError], str]] = [
    ("text that is no JSON", lambda t: t.append(pl.DataFrame({"id": [1], "v": ["no"]})), InvalidRequestError,
     "column v is a variant, and 'no' is no JSON"),
    ("a name twice", lambda t: t.append(pl.DataFrame({"id": [1], "v": ['{"a":1,"a":2}']})), InvalidRequestError,
     "two fields called a"),
    ("no number", lambda t: t.append(pl.DataFrame({"id": [1], "v": ["[NaN]"]})), InvalidRequestError,
     "no number of JSON"),
    ("too large a number", lambda t: t.append(pl.DataFrame({"id": [1], "v": ["1e999"]})), InvalidRequestError,
     "any double"),
    ("too deep", lambda t: t.append(pl.DataFrame({"id": [1], "v": ["[" * 201 + "]" * 201]})), InvalidRequestError,
     "nested deeper"),
    ("no text", lambda t: t.update({"v": "id"}), InvalidRequestError, "column v is int64 and does not fit string"),
    ("text that an update sets", lambda t: t.update({"v": "'no'"}), InvalidRequestError, "'no' is no JSON"),
    ("text or another variant", lambda t: t.update({"v": pl.coalesce("v", pl.lit("1"))}), InvalidRequestError,
     "is no JSON"),
    ("a struct of any bytes", lambda t: t.update({"v": pl.struct(metadata=pl.lit(b"1"), value=pl.lit(b"2"))}),
     CorruptTableError, "is no variant"),
    ("no order", lambda t: t.optimize(z_order_by=["v"]), InvalidRequestError, "v is variant, which has no order"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "error", "words"), [u[1:] for u in UNWRITTEN], ids=[u[0] for u in UNWRITTEN])
def test_variants_are_written_whole_or_refused(
    tmp_path: Path, change: Any, error: type[LakeviewError], words: str
) -> None:
    table = make_table(tmp_path)
    table.append(pl.DataFrame({"id": [0], "v": ["{}"]}))
    with pytest.raises(error, match=words):
        change(table)
    assert table.latest_version == 1
    assert len(list(tmp_path.glob("*.parquet"))) == 1


def test_no_table_is_partitioned_by_a_variant(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="cannot be a partition column"):
        make_table(tmp_path, partition_by=["v"])


def test_a_table_that_is_partitioned_by_a_variant_is_neither_read_nor_written(history: DeltaHistory) -> None:
    features = {"readerFeatures": ["variantType"], "writerFeatures": ["variantType"]}
    history.commit(protocol(3, 7, **features), metadata({"id": "long", "v": "variant"}, partition_by=("v",)))
    table = open_delta_table(history)
    for operation in (table.scan, lambda: table.append(pl.DataFrame({"id": [1], "v": ["1"]}))):
        with pytest.raises(CorruptTableError, match="partition column v is variant, which no text can stand for"):
            operation()


# -- rows that are written again

DATE = {"metadata": EMPTY, "value": primitive(11, integer(19_000, 4))}
"""A variant whose type JSON text does not keep."""
BYTES = {"metadata": EMPTY, "value": primitive(15, integer(2, 4) + b"\x00\xff")}
UNSORTED = {"metadata": b"\x01\x02\x00\x01\x02ba", "value": b"\x02\x01\x01\x00\x02\x0c\x07"}
"""An object whose names are in no order, and one of them is not used: another encoder writes other bytes."""
STORED = {1: DATE, 2: BYTES, 3: None, 4: UNSORTED, 5: variant({"b": [1, 2.5], "a": "x"}), 6: variant(None)}
TRACKED = {
    "delta.columnMapping.mode": "name",
    "delta.enableRowTracking": "true",
    "delta.enableChangeDataFeed": "true",
}


def written_elsewhere(address: Path, **more: Any) -> DeltaTable:
    """A table with variants of STORED in two files, and beside each the same one within a struct and a list."""
    nested = struct(v="variant", l={"type": "array", "elementType": "variant", "containsNull": True})
    history = DeltaHistory(address)
    history.commit(
        protocol(3, 7, readerFeatures=FEATURES, writerFeatures=FEATURES),
        metadata({"id": "long", "v": "variant", "w": "variant", "s": nested}),
    )
    reversed_ = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    for name, ids in (("one", [1, 2, 3]), ("two", [4, 5, 6])):
        values = [STORED[i] for i in ids]
        lists = pa.array(
            [{"v": v, "l": [v, None]} for v in values], pa.struct([("v", BINARIES), ("l", pa.list_(BINARIES))])
        )
        rows = pa.table({"id": ids, "v": pa.array(values, reversed_), "w": pa.nulls(3, BINARIES), "s": lists})
        history.commit(history.data(name, rows, stats={"numRecords": 3}))
    table = open_delta_table(history.address)
    if more:
        table.set_properties(more)
    return table


def stored(table: DeltaTable, address: Path) -> dict[int, Any]:
    """The bytes of the variant v of each live row, by id; those within s and its list have to be the same."""
    by_id: dict[int, Any] = {}
    for path in table.snapshot().files["path"]:
        names = {f.name: f.physical_name or f.name for f in table.snapshot().schema}
        nested = table.snapshot().schema["s"].type
        assert isinstance(nested, StructType)
        inner = {f.name: f.physical_name or f.name for f in nested.fields}
        for row in pq.read_table(address / path, partitioning=None).to_pylist():
            value = by_id[row[names["id"]]] = row[names["v"]]
            assert row[names["s"]] == {inner["v"]: value, inner["l"]: [value, None]}
    return by_id


def merged(table: DeltaTable) -> Any:
    source = pl.DataFrame({"key": [1, 2, 9], "w": ["[1]", "2", "3"]})
    merge = table.merge(source, "target.id = source.key").when_matched_update(
        {"w": "source.w"}, where="target.w IS NULL"
    )
    return merge.when_not_matched_by_source_update({"w": "'{}'"}, where="v LIKE '%x%'").execute()


REWRITES: list[tuple[str, Any, set[int]]] = [
    ("an update of another column", lambda t: t.update({"w": "'1'"}), set(STORED)),
    ("an update by a condition on text", lambda t: t.update({"w": "'1'"}, "v LIKE '%x%'"), set(STORED)),
    ("a delete", lambda t: t.delete("id IN (2, 5)"), {1, 3, 4, 6}),
    ("a merge", merged, set(STORED)),
    ("an optimize", lambda t: t.optimize(), set(STORED)),
    ("a z-order", lambda t: t.optimize(z_order_by=["id"]), set(STORED)),
    (
        "an overwrite of some rows",
        lambda t: t.overwrite(pl.DataFrame(schema={"id": pl.Int64()}), "id > 4"),
        {1, 2, 3, 4},
    ),
]


@pytest.mark.parametrize("properties", [{}, TRACKED], ids=["plain", "mapped and tracked"])
@pytest.mark.parametrize(("change", "ids"), [r[1:] for r in REWRITES], ids=[r[0] for r in REWRITES])
def test_variants_of_rows_that_are_written_again_keep_their_bytes(
    tmp_path: Path, properties: dict[str, str], change: Any, ids: set[int]
) -> None:
    table = written_elsewhere(tmp_path / "table", **properties)
    before = table.scan().sort("id").select("id", "v", "s").collect()
    assert change(table) is not None
    assert stored(table, tmp_path / "table") == {i: STORED[i] for i in ids}
    assert table.scan().sort("id").select("id", "v", "s").collect().equals(before.filter(pl.col("id").is_in(ids)))


def test_changed_rows_have_their_variants_in_change_data(tmp_path: Path) -> None:
    table = written_elsewhere(tmp_path, **{"delta.enableChangeDataFeed": "true"})
    with table.transaction() as txn:
        txn.update({"w": "'1'"}, "id = 1")
        txn.remove(paths=["two"])
    rows = [row for path in (tmp_path / "_change_data").glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    changes = [(1, "update_preimage"), (1, "update_postimage"), *((id_, "delete") for id_ in (4, 5, 6))]
    assert {(row["id"], row["_change_type"]): row["v"] for row in rows} == {c: STORED[c[0]] for c in changes}


SETS: list[tuple[str, dict[str, Any], dict[int, Any]]] = [
    ("JSON text", {"v": """'{"b": [1, 2.50], "a": null}'"""}, {}),
    ("null", {"v": pl.lit(None)}, dict.fromkeys(STORED)),
    ("the bytes of another variant", {"w": "v", "v": "v"}, STORED),
    ("one of two variants", {"w": pl.coalesce("w", "v")}, STORED),
]


@pytest.mark.parametrize(("assignments", "expected"), [s[1:] for s in SETS], ids=[s[0] for s in SETS])
def test_an_update_sets_variants_as_an_append_takes_them(
    tmp_path: Path, assignments: dict[str, Any], expected: dict[int, Any]
) -> None:
    table = written_elsewhere(tmp_path)
    table.update(assignments)
    column = next(iter(assignments))
    rows = [row for path in table.snapshot().files["path"] for row in pq.read_table(tmp_path / path).to_pylist()]
    values = {row["id"]: row[column] for row in rows}
    if expected:
        assert values == expected
    else:
        assert {VariantUtils.to_json(v["value"], v["metadata"]) for v in values.values()} == {'{"a":null,"b":[1,2.50]}'}


@pytest.mark.parametrize(
    ("change", "ids"),
    [
        (lambda t: t.optimize(), {1: 1, 2: 2, 3: 3, 4: 4}),
        (lambda t: t.update({"id": "id + 10"}, "v = '7'"), {1: 1, 2: 2, 13: 3, 4: 4}),
        (lambda t: t.delete("id = 4"), {1: 1, 2: 2, 3: 3}),
    ],
    ids=["an optimize", "an update", "a delete"],
)
def test_shredded_variants_are_put_together_when_rows_are_written_again(
    history: DeltaHistory, change: Any, ids: dict[int, int]
) -> None:
    table = open_delta_table(write_variants(history).address)
    before = dict(table.scan().select("id", "v").collect().iter_rows())
    change(table)
    assert dict(table.scan().select("id", "v").collect().iter_rows()) == {i: before[j] for i, j in ids.items()}
    paths = [str(Path(history.address) / path) for path in table.snapshot().files["path"] if path != "plain"]
    rows = duckdb.sql(f"SELECT id, v.metadata, v.value FROM read_parquet({paths}) WHERE v IS NOT NULL").fetchall()
    assert rows
    for id_, names, value in rows:  # as DuckDB reads the file, and Spark the variant
        assert json.loads(VariantUtils.to_json(value, names)) == json.loads(before[ids[id_]])


SPARKS = [table for table in delta_tables() if table.name.startswith("variant-stats-")]


@pytest.mark.golden
@pytest.mark.skipif(not SPARKS, reason="no conformance tables: set LAKEVIEW_CONFORMANCE to their folder")
@pytest.mark.parametrize("golden", SPARKS, ids=[table.name for table in SPARKS])
def test_variants_that_spark_shredded_are_the_same_when_they_are_written_again(
    tmp_path: Path, golden: GoldenTable
) -> None:
    folder = shutil.copytree(golden.path, tmp_path / "table")
    table = open_delta_table(str(folder))
    before = table.scan().collect()
    first = before.columns[0]
    table.update({first: first})
    assert table.scan().collect().sort(first).equals(before.sort(first))
    assert "typed_value" not in str([pq.read_schema(folder / path) for path in table.snapshot().files["path"]])


@pytest.mark.parametrize("metadata_", [EMPTY, None], ids=["without a value", "without metadata"])
def test_a_variant_without_its_parts_is_null_or_refused(history: DeltaHistory, metadata_: bytes | None) -> None:
    history.commit(
        protocol(3, 7, readerFeatures=FEATURES, writerFeatures=FEATURES), metadata({"id": "long", "v": "variant"})
    )
    rows = pa.table({"id": [1, 2], "v": pa.array([{"metadata": metadata_, "value": None}, None], BINARIES)})
    table = open_delta_table(history.commit(history.data("odd", rows)).address)
    if metadata_ is None:
        with pytest.raises(CorruptTableError, match="has no metadata"):
            table.update({"id": "id + 1"})
        return
    table.update({"id": "id + 1"})
    assert table.scan().sort("id").collect()["v"].to_list() == ["null", None]
