"""Tables with variant columns: rows as JSON text whatever each file's layout, null counts without bounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.variant_utils import VariantUtils

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import CorruptTableError, InvalidRequestError, LakeviewError, UnsupportedTableError
from lakeview.model.schema import Field, PrimitiveType, Schema
from lakeview.rows.variant import variant_binaries, variant_text
from tests.builders.actions import metadata, protocol, struct
from tests.builders.history import DeltaHistory
from tests.builders.variants import BINARIES, EMPTY, encoded, spark_variant

SHREDDED = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())])
FEATURES = ["variantType", "variantShredding-preview"]


def variant(value: Any) -> dict[str, bytes]:
    binary, names = spark_variant(value)
    return {"metadata": names, "value": binary}


def shredded(value: int) -> dict[str, Any]:
    return {"metadata": EMPTY, "value": None, "typed_value": value}


def told(history: DeltaHistory) -> DeltaHistory:
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
    rows = lv.open_table(told(history).address).scan().sort("id").collect()
    assert rows["v"].to_list() == ['{"a":"x","b":[1,2.5,null]}', None, "7", '"n/a"']
    assert rows["s"].to_list() == [{"v": "true"}, None, None, None]
    assert rows["l"].to_list() == [['"one"', None], [], None, None]


def test_variants_have_null_counts_and_no_bounds(history: DeltaHistory) -> None:
    frame = lv.open_table(told(history).address).statistics(columns=["v"])
    found = dict(zip(frame["_path"], frame["v"].to_list(), strict=True))
    assert (found["plain"]["min"], found["plain"]["null_count"], found["apart"]["null_count"]) == (None, 1, None)


def test_a_broken_variant_stops_its_column_only(history: DeltaHistory) -> None:
    told(history)
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
    found = variant_binaries(pa.array([text, None]), "v")
    (ours, none) = found.to_pylist()
    value, names = VariantUtils.parse_json(text)
    assert VariantUtils.to_json(ours["value"], ours["metadata"]) == VariantUtils.to_json(bytes(value), bytes(names))
    theirs = pa.array([{"metadata": bytes(names), "value": bytes(value)}, None], BINARIES)
    assert variant_text(found) == variant_text(theirs)
    assert none is None


def made(address: Path, **more: Any) -> DeltaTable:
    schema = Schema((Field("id", PrimitiveType("long")), Field("v", PrimitiveType("variant"))))
    table = lv.create_table(str(address), schema, **more)
    assert isinstance(table, DeltaTable)
    return table


def test_rows_with_variants_are_appended_and_deleted(tmp_path: Path) -> None:
    table = made(tmp_path, properties={"delta.enableDeletionVectors": "true"})
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
    ("values that were read", lambda t: t.update({"id": "id + 1"}), UnsupportedTableError, "not written again"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "error", "words"), [u[1:] for u in UNWRITTEN], ids=[u[0] for u in UNWRITTEN])
def test_variants_are_written_whole_or_refused(
    tmp_path: Path, change: Any, error: type[LakeviewError], words: str
) -> None:
    table = made(tmp_path)
    table.append(pl.DataFrame({"id": [0], "v": ["{}"]}))
    with pytest.raises(error, match=words):
        change(table)
    assert table.latest_version == 1
    assert len(list(tmp_path.glob("*.parquet"))) == 1


def test_no_table_is_partitioned_by_a_variant(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="cannot be a partition column"):
        made(tmp_path, partition_by=["v"])
