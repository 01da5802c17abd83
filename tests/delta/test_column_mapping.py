"""Column mapping: columns found in files by physical name or field id, at every level."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import CorruptTableError, InvalidRequestError
from lakeview.model.schema import Schema
from tests.builders.actions import Action, add, metadata, protocol
from tests.builders.history import DeltaHistory
from tests.builders.mapped import Json, array, field, map_of, mapped, physical, stored_field, struct

MODES = pytest.mark.parametrize("mode", ["name", "id"])

NESTED = (
    field("id", "long", 1),
    field("s", struct(field("a", "long", 3), field("b", "string", 4)), 2),
    field("l", array(struct(field("a", "long", 6))), 5),
    field("m", map_of(struct(field("k", "string", 8)), struct(field("v", "long", 9))), 7),
    field("ll", array(array(map_of("string", struct(field("a", "long", 11))))), 10),
)


def table(*columns: tuple[pa.Field, list[Any]]) -> pa.Table:
    """A data file's content."""
    arrays = [pa.array(values, f.type) for f, values in columns]
    return pa.Table.from_arrays(arrays, schema=pa.schema([f for f, _ in columns]))


def nested_file(name: Any) -> pa.Table:
    """A row of every nesting and a row of nulls; `name(number)` is what a field is called in the file."""
    a, k = stored_field(pa.int64(), 3, name(3)), stored_field(pa.string(), 8, name(8))
    s = stored_field(pa.struct([stored_field(pa.string(), 4, name(4)), a]), 2, name(2))
    l = stored_field(pa.list_(pa.struct([stored_field(pa.int32(), 6, name(6))])), 5, name(5))  # noqa: E741  # as the column is called
    m = stored_field(pa.map_(pa.struct([k]), pa.struct([stored_field(pa.int64(), 9, name(9))])), 7, name(7))
    inner = pa.map_(pa.string(), pa.struct([stored_field(pa.int64(), 11, name(11))]))
    ll = stored_field(pa.list_(pa.list_(inner)), 10, name(10))
    return table(
        (ll, [[[[("x", {name(11): 6})], None], []], None]),
        (m, [[({name(8): "k"}, {name(9): 5}), ({name(8): "n"}, None)], None]),
        (l, [[{name(6): 4}, None], None]),
        (s, [{name(3): 2, name(4): "b"}, None]),
        (stored_field(pa.int64(), 1, name(1)), [1, 9]),
    )


NESTED_ROWS = [
    {
        "id": 1,
        "s": {"a": 2, "b": "b"},
        "l": [{"a": 4}, None],
        "m": [{"key": {"k": "k"}, "value": {"v": 5}}, {"key": {"k": "n"}, "value": None}],
        "ll": [[[{"key": "x", "value": {"a": 6}}], None], []],
    },
    {"id": 9, "s": None, "l": None, "m": None, "ll": None},
]


def rows(address: str, **scan: Any) -> list[dict[str, Any]]:
    frame = lv.open_table(address).scan(**scan).collect()
    return [{k: _pairs(v) for k, v in row.items()} for row in frame.to_arrow().to_pylist(maps_as_pydicts=None)]


def _pairs(value: Any) -> Any:
    """Maps, which Arrow gives as pairs, as keys and values."""
    if isinstance(value, tuple):
        return {"key": value[0], "value": _pairs(value[1])}
    if isinstance(value, list):
        return [_pairs(v) for v in value]
    return {k: _pairs(v) for k, v in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        pytest.param("name", physical, id="by physical name"),
        pytest.param("id", physical, id="by id, physical names in the file too"),
        pytest.param("id", lambda number: f"other {number}", id="by id, other names in the file"),
        pytest.param("id", lambda number: physical(12 - number), id="by id, each called as another one"),
    ],
)
def test_columns_are_found_at_every_level(history: DeltaHistory, mode: str, name: Any) -> None:
    history.commit(*mapped(mode, *NESTED)).commit(history.data("f", nested_file(name)))
    assert rows(history.address) == NESTED_ROWS


@MODES
def test_a_new_column_of_an_old_name_does_not_show_the_old_values(history: DeltaHistory, mode: str) -> None:
    old = stored_field(pa.struct([stored_field(pa.int64(), 3, "x" if mode == "id" else None)]), 2)
    columns = field("id", "long", 1), field("s", struct(field("x", "long", 4)), 2)
    history.commit(*mapped(mode, *columns))
    history.commit(history.data("f", table((stored_field(pa.int64(), 1), [1]), (old, [{old.type.field(0).name: 7}]))))
    assert rows(history.address) == [{"id": 1, "s": {"x": None}}]


@MODES
def test_names_may_have_been_exchanged(history: DeltaHistory, mode: str) -> None:
    def called(name: str, as_was: str, number: int) -> Json:
        return field(name, "long", number, **{"delta.columnMapping.physicalName": as_was})

    pair = called("a", "b", 2), called("b", "a", 1)
    whole = field("s", struct(called("a", "b", 5), called("b", "a", 4)), 3)
    history.commit(*mapped(mode, *pair, whole))
    inner = pa.struct([stored_field(pa.int64(), 4, "a"), stored_field(pa.int64(), 5, "b")])
    file = table(
        (stored_field(pa.int64(), 1, "a"), [1]),
        (stored_field(pa.int64(), 2, "b"), [2]),
        (stored_field(inner, 3), [{"a": 1, "b": 2}]),
    )
    history.commit(history.data("f", file))
    assert rows(history.address) == [{"a": 2, "b": 1, "s": {"a": 2, "b": 1}}]


@MODES
def test_what_a_file_lacks_is_null_at_every_level(history: DeltaHistory, mode: str) -> None:
    history.commit(*mapped(mode, *NESTED))
    inner = stored_field(pa.struct([stored_field(pa.int64(), 3)]), 2)
    history.commit(history.data("f", table((inner, [{physical(3): 5}]))))
    assert rows(history.address) == [{"id": None, "s": {"a": 5, "b": None}, "l": None, "m": None, "ll": None}]


def test_a_physical_name_counts_in_its_own_case_only(history: DeltaHistory) -> None:
    column = field("Day", "long", 2, **{"delta.columnMapping.physicalName": "Day"})
    history.commit(*mapped("name", field("id", "long", 1), column))
    history.commit(history.data("f", {"COL-1": [1], "day": [2]}))
    assert rows(history.address) == [{"id": None, "Day": 2}], "a name from before the mapping is matched in any case"


def test_a_file_without_ids_is_refused_where_ids_count(history: DeltaHistory) -> None:
    history.commit(*mapped("id", field("id", "long", 1)))
    history.commit(history.data("f", {physical(1): [1]}))
    with pytest.raises(CorruptTableError, match="data file f cannot be read: it has no field ids, by which") as caught:
        rows(history.address)
    assert caught.value.kind == "corrupt-data-file"
    assert lv.open_table(history.address).scan().select().collect().height == 0


def test_a_file_with_an_id_twice_is_refused(history: DeltaHistory) -> None:
    history.commit(*mapped("id", field("id", "long", 1)))
    history.commit(
        history.data("f", table((stored_field(pa.int64(), 1, "a"), [1]), (stored_field(pa.int64(), 1, "b"), [2])))
    )
    with pytest.raises(CorruptTableError, match="it holds two columns with the field id 1"):
        rows(history.address)


@MODES
def test_partition_values_and_statistics_go_by_physical_names(history: DeltaHistory, mode: str) -> None:
    fields = field("id", "long", 1), field("day", "integer", 2), field("s", struct(field("a", "long", 4)), 3)
    history.commit(*mapped(mode, *fields, partition_by=("day",)))
    whole = stored_field(pa.struct([stored_field(pa.int64(), 4)]), 3)
    for n in (1, 2):
        low = {physical(1): n, physical(3): {physical(4): 10 * n}, "id": 99}
        stats = {"numRecords": 1, "minValues": low, "maxValues": low, "nullCount": {physical(3): {physical(4): 0}}}
        file = table((stored_field(pa.int64(), 1), [n]), (whole, [{physical(4): 10 * n}]))
        history.commit(history.data(f"f{n}", file, partition={physical(2): str(n), "day": "9"}, stats=stats))
    table_again = lv.open_table(history.address)
    assert table_again.snapshot().files.sort("path")["partition_text"].to_list() == ["day=1", "day=2"]
    assert table_again.statistics(columns=["s"]).sort("_path")["s.a"].struct.field("min").to_list() == [10, 20]
    assert table_again.statistics()["id"].struct.field("max").sort().to_list() == [1, 2]
    for where, reason in (("day = 1", "partition"), ("id = 1", "statistics"), ("s.a = 10", "statistics")):
        plan = table_again.plan(where).filter(~table_again.plan(where)["kept"])
        assert plan.select("path", "reason").rows() == [("f2", reason)], where
    assert table_again.scan().filter(day=1).collect().rows() == [(1, 1, {"a": 10})]


DELTA_7 = {"readerFeatures": ["columnMapping"], "writerFeatures": ["columnMapping"]}


@pytest.mark.parametrize(
    ("action", "mode", "reader_version"),
    [
        pytest.param(protocol(1, 2), "name", 1, id="reader version 1 knows no mapping"),
        pytest.param(protocol(1, 7, writerFeatures=["columnMapping"]), "id", 1, id="a feature of writers only"),
        pytest.param(protocol(3, 7, readerFeatures=[], writerFeatures=[]), "name", 1, id="a feature that is not there"),
        pytest.param(protocol(2, 5), "none", 1, id="mode none"),
        pytest.param(protocol(2, 5), None, 1, id="no mode"),
        pytest.param(protocol(3, 7, **DELTA_7), "none", 1, id="mode none with the feature"),
        pytest.param(protocol(3, 7, **DELTA_7), "name", 2, id="mode name with the feature"),
        pytest.param(protocol(2, 5), "NAME", 2, id="mode name in capitals"),
    ],
)
def test_the_mode_counts_only_where_the_protocol_knows_it(
    history: DeltaHistory, action: Action, mode: str | None, reader_version: int
) -> None:
    _, described = mapped("name", field("id", "long", 1))
    described["metaData"]["configuration"] = {"delta.columnMapping.mode": mode}
    history.commit(action, described).commit(history.data("f", {"id": [1], physical(1): [2]}))
    assert rows(history.address) == [{"id": reader_version}]


def without(document: Json, key: str) -> Json:
    """A field without one of the two things mapping needs."""
    return document | {"metadata": {k: v for k, v in document["metadata"].items() if not k.endswith(key)}}


INNER = field("x", "long", 2)


@pytest.mark.parametrize(
    ("mode", "fields", "words"),
    [
        pytest.param(
            "name", [without(field("id", "long", 1), "physicalName")], "column id has no physical name", id="no name"
        ),
        pytest.param(
            "id", [without(field("id", "long", 1), "physicalName")], "column id has no physical name", id="nor by id"
        ),
        pytest.param("id", [without(field("id", "long", 1), "id")], "column id has no id", id="no id"),
        pytest.param(
            "name",
            [field("s", struct(without(INNER, "physicalName")), 1)],
            r"column s\.x has no physical name",
            id="no name in a struct",
        ),
        pytest.param(
            "id",
            [field("l", array(struct(without(INNER, "id"))), 1)],
            r"column l\.element\.x has no id",
            id="no id in a list",
        ),
        pytest.param(
            "name",
            [field("a", "long", 1), field("b", "long", 1)],
            "columns a and b have the same physical name col-1",
            id="a name twice",
        ),
        pytest.param(
            "id",
            [field("s", struct(INNER), 1), field("b", "long", 2)],
            r"columns s\.x and b have the same id 2",
            id="an id twice",
        ),
    ],
)
def test_a_schema_that_lacks_what_the_mode_needs_is_corrupt(
    history: DeltaHistory, mode: str, fields: list[Json], words: str
) -> None:
    history.commit(*mapped(mode, *fields)).commit(add("f"))
    with pytest.raises(CorruptTableError, match=words) as caught:
        lv.open_table(history.address).snapshot()
    assert (caught.value.kind, caught.value.place) == ("corrupt-schema", "metaData.schemaString")


def test_an_id_is_not_needed_by_name(history: DeltaHistory) -> None:
    history.commit(*mapped("name", without(field("id", "long", 1), "columnMapping.id")))
    history.commit(history.data("f", {physical(1): [1]}))
    assert rows(history.address) == [{"id": 1}]


def test_each_version_is_read_by_its_own_mapping(history: DeltaHistory) -> None:
    history.commit(protocol(2, 5), metadata({"id": "long"})).commit(history.data("f", {"id": [1]}))
    column = field("renamed", "long", 1, **{"delta.columnMapping.physicalName": "id"})
    history.commit(mapped("name", column)[1]).commit(history.data("g", {"id": [2]}))
    assert rows(history.address, version=1) == [{"id": 1}]
    assert sorted(r["renamed"] for r in rows(history.address)) == [1, 2]


@pytest.mark.parametrize(
    ("metadata", "twice"),
    [
        ({"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "a"}, "id 1"),
        ({"delta.columnMapping.physicalName": "a"}, "name a"),
    ],
    ids=["id", "physical name"],
)
def test_a_new_table_is_refused_where_columns_have_one_id_or_physical_name(
    tmp_path: Path, metadata: dict[str, Any], twice: str
) -> None:
    schema = Schema(tuple(Field(name, PrimitiveType("long"), metadata=metadata) for name in ("a", "b")))
    with pytest.raises(InvalidRequestError, match=f"columns a and b are both mapped to the {twice} by"):
        lv.create_table(tmp_path, schema, properties={"delta.columnMapping.mode": "id"})
    assert not list(tmp_path.iterdir())
