"""Types: one tree, to and from Arrow and polars, and the JSON a Delta log keeps."""

from __future__ import annotations

import json
from collections.abc import Callable

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeview.delta.data.schemas import parse_schema, schema_text
from lakeview.model.data_types import (
    VARIANT,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
)
from lakeview.model.errors import CorruptTableError, InvalidRequestError, UnsupportedTableError
from lakeview.model.printable import choices
from lakeview.model.schema import POLARS_TYPES, Schema, leaf_name, polars_type
from lakeview.predicates.condition import row_expression

LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")
DEEP = Schema(
    (
        Field("a", LONG, nullable=False, metadata={"comment": "the key"}),
        Field("s", StructType((Field("b", TEXT), Field("t", StructType((Field("c.d", LONG),)))))),
        Field("l", ArrayType(LONG, contains_null=False)),
        Field("m", MapType(TEXT, ArrayType(DecimalType(38, 10)), value_contains_null=False)),
    )
)

ARROW: list[tuple[pa.DataType, str]] = [
    (pa.string(), "string"), (pa.large_string(), "string"), (pa.string_view(), "string"),
    (pa.int64(), "long"), (pa.int32(), "integer"), (pa.int16(), "short"), (pa.int8(), "byte"),
    (pa.uint32(), "long"), (pa.uint16(), "integer"), (pa.uint8(), "short"),
    (pa.float32(), "float"), (pa.float64(), "double"), (pa.bool_(), "boolean"),
    (pa.binary(), "binary"), (pa.large_binary(), "binary"), (pa.binary(16), "binary"),
    (pa.date32(), "date"), (pa.date64(), "date"), (pa.null(), "void"),
    (pa.timestamp("ns", "Europe/Rome"), "timestamp"), (pa.timestamp("s"), "timestamp_ntz"),
    (pa.decimal128(12, 3), "decimal(12,3)"), (pa.dictionary(pa.int8(), pa.string()), "string"),
    (pa.list_(pa.int64()), "array<long>"), (pa.large_list(pa.string()), "array<string>"),
    (pa.list_(pa.int8(), 3), "array<byte>"), (pa.map_(pa.string(), pa.int64()), "map<string, long>"),
    (pa.struct([("x", pa.int64())]), "struct<x: long>"),
]  # fmt: skip


@pytest.mark.parametrize(("arrow", "name"), ARROW, ids=[str(a) for a, _ in ARROW])
def test_arrow_types_have_a_name_in_the_log(arrow: pa.DataType, name: str) -> None:
    assert str(Schema.from_arrow(pa.schema([("x", arrow)]))["x"].type) == name


@pytest.mark.parametrize("arrow", [pa.uint64(), pa.duration("s"), pa.float16(), pa.time64("us")], ids=str)
def test_an_arrow_type_no_table_holds_is_refused_by_name(arrow: pa.DataType) -> None:
    with pytest.raises(UnsupportedTableError) as caught:
        Schema.from_arrow(pa.schema([("x", pa.list_(arrow))]))
    assert caught.value.message == f"column x has the Arrow type {arrow}, which a table cannot hold"
    assert (caught.value.kind, caught.value.fix, caught.value.place) == (
        "unsupported-type", "cast the column before writing", "x",
    )  # fmt: skip


@pytest.mark.parametrize("name", [n for n in POLARS_TYPES if n != "void"])
def test_arrow_and_polars_agree_on_every_type(name: str) -> None:
    schema = Schema((Field("x", PrimitiveType(name)),))
    frame = pl.from_arrow(pa.Table.from_pylist([], schema.to_arrow()))
    assert isinstance(frame, pl.DataFrame)
    assert frame.cast(schema.to_polars()).schema == schema.to_polars()


def test_a_type_no_one_knows_has_no_values() -> None:
    for ask in (
        lambda: polars_type(PrimitiveType("interval")),
        Schema((Field("x", PrimitiveType("interval")),)).to_arrow,
    ):
        with pytest.raises(UnsupportedTableError, match="values of type interval cannot be read") as caught:
            ask()
        assert caught.value.kind == "unsupported-type"


@pytest.mark.parametrize("to", [Schema.to_arrow, Schema.to_polars], ids=["in Arrow", "in polars"])
def test_the_column_of_such_a_type_is_named(to: Callable[[Schema], object]) -> None:
    inner = StructType((Field("y", PrimitiveType("interval")),))
    with pytest.raises(UnsupportedTableError) as caught:
        to(Schema((Field("id", PrimitiveType("long")), Field("x", inner))))
    assert caught.value.message == "in column x values of type interval cannot be read"
    assert caught.value.place == "x"


def test_columns_are_found_by_name() -> None:
    assert DEEP.names == ["a", "s", "l", "m"]
    assert "a" in DEEP
    assert "A" not in DEEP
    assert DEEP["a"].comment == "the key"
    assert DEEP["s"].comment is None
    assert DEEP.select(["m", "a"]).names == ["m", "a"]
    assert len(DEEP) == 4
    with pytest.raises(InvalidRequestError, match="there is no column zz") as refused:
        DEEP.select(["zz"])
    assert (refused.value.kind, refused.value.place, refused.value.fix) == (
        "unknown-column",
        "zz",
        "choose from a, s, l, m",
    )


def test_a_name_that_is_no_column_is_answered_by_those_most_like_it_else_by_the_first() -> None:
    names = ["dep_time", "dep_delay", "arr_delay", *(f"c{i}" for i in range(20))]
    assert choices("dep_dely", names) == "perhaps dep_delay is meant"
    assert choices("x", names).endswith(", c16 and 3 more")
    with pytest.raises(InvalidRequestError) as refused:
        row_expression("x > 1", Schema(()))
    assert refused.value.fix == choices("x", []) == "there are none to choose from"


def test_leaves_are_reached_through_structs_only() -> None:
    assert [leaf_name(path) for path, _ in DEEP.leaves()] == ["a", "s.b", "s.t.`c.d`", "l", "m"]


@pytest.mark.parametrize(
    ("path", "name"),
    [(("a",), "a"), (("a", "b"), "a.b"), (("a.b",), "`a.b`"), (("a`b", "c"), "`a``b`.c"), (("",), ""),
     (("_path",), "`_path`"), (("s", "_path"), "s._path")],
)  # fmt: skip
def test_a_leaf_has_one_name(path: tuple[str, ...], name: str) -> None:
    assert leaf_name(path) == name


def test_a_relaxed_schema_allows_nulls_everywhere() -> None:
    relaxed = DEEP.as_nullable()
    assert all(f.nullable for f in relaxed)
    assert relaxed["l"].type == ArrayType(LONG)
    assert relaxed["m"].type == MapType(TEXT, ArrayType(DecimalType(38, 10)))
    assert relaxed.to_arrow().field("m").type.item_field.nullable


def test_a_schema_survives_its_text() -> None:
    assert parse_schema(schema_text(DEEP)) == DEEP


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
TYPES: st.SearchStrategy[DataType] = st.recursive(
    st.sampled_from([*map(PrimitiveType, POLARS_TYPES)])
    | st.builds(DecimalType, st.integers(10, 38), st.integers(0, 10)),
    lambda inner: (
        st.builds(ArrayType, inner, st.booleans())
        | st.builds(MapType, inner, inner, st.booleans())
        | st.lists(NAMES, unique=True, max_size=3).flatmap(
            lambda names: st.tuples(*(st.builds(Field, st.just(n), inner, st.booleans()) for n in names)).map(
                StructType
            )
        )
    ),
    max_leaves=6,
)


def test_a_variant_is_read_in_either_form_that_the_protocol_writes() -> None:
    variant = {"type": "variant"}  # as in the protocol's example of an array
    fields = [{"name": "a", "type": variant}, {"name": "l", "type": {"type": "array", "elementType": variant}}]
    schema = parse_schema(json.dumps({"type": "struct", "fields": fields}))
    assert schema == Schema((Field("a", VARIANT), Field("l", ArrayType(VARIANT))))
    assert parse_schema(schema_text(schema)) == schema


@given(TYPES, NAMES)
def test_every_schema_survives_its_text(type_: DataType, name: str) -> None:
    schema = Schema((Field(name, type_, metadata={"comment": name}),))
    assert parse_schema(schema_text(schema)) == schema


def test_ids_and_physical_names_are_read_only_where_columns_are_mapped() -> None:
    metadata = {"delta.columnMapping.id": 7, "delta.columnMapping.physicalName": "col-1"}
    text = json.dumps({"type": "struct", "fields": [{"name": "a", "type": "long", "metadata": metadata}]})
    assert (parse_schema(text)["a"].id, parse_schema(text)["a"].physical_name) == (None, None)
    mapped = parse_schema(text, is_mapped=True)["a"]
    assert (mapped.id, mapped.physical_name) == (7, "col-1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("decimal", DecimalType(10, 0)), ("decimal(5, 2)", DecimalType(5, 2)), ("decimal (5,2)", DecimalType(5, 2))],
)
def test_decimals_are_written_in_several_ways(text: str, expected: DataType) -> None:
    assert parse_schema(json.dumps({"type": "struct", "fields": [{"name": "a", "type": text}]}))["a"].type == expected


def test_a_schema_that_is_not_there_is_empty() -> None:
    assert parse_schema(None) == Schema()


def test_what_is_no_schema_says_what_it_is() -> None:
    with pytest.raises(CorruptTableError, match=r"schemaString\.a holds 7, which is no type") as caught:
        parse_schema('{"type":"struct","fields":[{"name":"a","type":7}]}')
    assert caught.value.fix == "the metaData action is broken; restore its commit from a backup"
