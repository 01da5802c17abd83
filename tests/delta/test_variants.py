"""Tables with variant columns: rows as JSON text whatever each file's layout, null counts without bounds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.model.errors import CorruptTableError
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
