"""Frames that differ from their table at any depth: written and read back as they were, by every reader, or refused."""

from __future__ import annotations

import string
from datetime import UTC, date, datetime
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.evolution import merge_schemas
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError, UnsupportedTableError
from lakeview.model.schema import Schema
from tests.differential.oracles import ORACLES, compare_version


def deltalake_rows(address: str, version: int) -> pa.Table:
    """Through delta-rs and pyarrow: DataFusion (deltalake 1.6) casts no struct that grew below a map."""
    return pa.table(deltalake.DeltaTable(address, version=version).to_pyarrow_table())


OTHERS = {"deltalake": deltalake_rows, "DuckDB": ORACLES["DuckDB"]}
FIRST, LAST = datetime.fromisoformat("1900-01-01"), datetime.fromisoformat("2200-01-01")
WORDS = st.text(string.ascii_letters + "\u00e9\u4e2d ", max_size=3)

VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    **{type_: st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) | st.integers(-3, 3)
       for type_, bits in ((pa.int8(), 8), (pa.int16(), 16), (pa.int32(), 32), (pa.int64(), 64))},
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.float32(): st.floats(width=32) | st.sampled_from([0.5, 3.0]),
    pa.float64(): st.floats() | st.sampled_from([0.1, 0.5, 3.0]),
    pa.bool_(): st.booleans(),
    pa.string(): WORDS,
    pa.large_string(): WORDS,
    pa.string_view(): WORDS,
    pa.binary(): st.binary(max_size=3),
    pa.large_binary(): st.binary(max_size=3),
    pa.date32(): st.dates(date(1900, 1, 1), date(2200, 1, 1)),
    pa.timestamp("us", "UTC"): st.datetimes(FIRST, LAST, timezones=st.just(UTC)),
    pa.timestamp("ns", "Europe/Oslo"): st.datetimes(FIRST, LAST, timezones=st.just(UTC)),
    pa.timestamp("us"): st.datetimes(FIRST, LAST),
    pa.timestamp("ns"): st.datetimes(FIRST, LAST),
    pa.decimal128(5, 2): st.decimals("-999.99", "999.99", places=2),
    pa.decimal128(20, 3): st.decimals("-9999999.999", "9999999.999", places=3),
}  # fmt: skip
TABLE_LEAVES = [t for t in VALUES if t not in (
    pa.uint32(), pa.large_string(), pa.string_view(), pa.large_binary(), pa.timestamp("ns"),
    pa.timestamp("ns", "Europe/Oslo"),
)]  # fmt: skip
NEAR = [
    [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint32(), pa.float32(), pa.float64(), pa.decimal128(20, 3)],
    [pa.string(), pa.large_string(), pa.string_view()],
    [pa.binary(), pa.large_binary()],
    [pa.timestamp("us", "UTC"), pa.timestamp("ns", "Europe/Oslo")],
    [pa.timestamp("us"), pa.timestamp("ns")],
    [pa.decimal128(5, 2), pa.decimal128(20, 3)],
]
NAMES = ("a", "b", "c")


@st.composite
def types(draw: st.DrawFn, depth: int = 3) -> pa.DataType:
    """A type that a table can have."""
    match draw(st.sampled_from(["leaf", "leaf", "struct", "struct", "struct", "list", "map"] if depth else ["leaf"])):
        case "struct":
            names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
            return pa.struct([(name, draw(types(depth - 1))) for name in names])
        case "list":
            return pa.list_(draw(types(depth - 1)))
        case "map":
            return pa.map_(pa.string(), draw(types(depth - 1)))
    return draw(st.sampled_from(TABLE_LEAVES))


@st.composite
def varied(draw: st.DrawFn, type_: pa.DataType) -> pa.DataType:
    """The type as rows may bring it: the same at most levels, otherwise another."""
    if pa.types.is_struct(type_):
        fields = [(field.name, draw(varied(field.type))) for field in type_]
        match draw(st.sampled_from(["same"] * 2 + ["more", "more", "less", "renamed", "case", "turned"])):
            case "more":
                fields.append(("z", draw(types(1))))
            case "less" if len(fields) > 1:
                fields.pop()
            case "renamed":
                fields[0] = ("z", fields[0][1])
            case "case":
                fields[0] = (fields[0][0].upper(), fields[0][1])
            case "turned":
                fields.reverse()
        return pa.struct(fields)
    if pa.types.is_map(type_):
        return pa.map_(pa.string(), draw(varied(type_.item_type)))
    if pa.types.is_list(type_):
        inner = draw(varied(type_.value_type))
        return draw(st.sampled_from([pa.list_(inner), pa.list_(inner), pa.large_list(inner)]))
    near = [other for group in NEAR if type_ in group for other in group]
    match draw(st.sampled_from(["same"] * 4 + ["near"] * 4 + ["far"])):
        case "near" if near:
            return draw(st.sampled_from(near))
        case "far":
            return draw(types(1))
    return type_


def values(type_: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, null among them."""
    if pa.types.is_struct(type_):
        strategies: st.SearchStrategy[Any] = st.fixed_dictionaries({field.name: values(field.type) for field in type_})
    elif pa.types.is_map(type_):
        strategies = st.dictionaries(WORDS, values(type_.item_type), max_size=2).map(
            lambda entries: list(entries.items())
        )
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_):
        strategies = st.lists(values(type_.value_type), max_size=2)
    else:
        strategies = VALUES[type_]
    return st.none() | strategies


@st.composite
def frames(draw: st.DrawFn, type_: pa.DataType, first: int) -> pa.Table:
    """Up to four rows with a column `x` of the type, and their number from `first` on as `id`."""
    values_drawn = draw(st.lists(values(type_), min_size=1, max_size=4))
    return pa.table({"id": pa.array(range(first, first + len(values_drawn))), "x": pa.array(values_drawn, type_)})


@st.composite
def stories(draw: st.DrawFn) -> tuple[pa.Table, pa.Table]:
    """A frame that makes the table, and one that comes later."""
    type_ = draw(types())
    return draw(frames(type_, 0)), draw(frames(draw(varied(type_)), 10))


def expected(value: Any, given_as: pa.DataType, table: pa.DataType, *, filled: bool) -> Any:
    """What has to be read where the value was written: the same, its fields in the table's order, missing ones null.

    AssertionError where the write had to be refused, since a field has no place or is not given.
    """
    if pa.types.is_struct(table):
        assert pa.types.is_struct(given_as)
        names = {field.name.lower(): field.name for field in given_as}
        assert set(names) <= {field.name.lower() for field in table}, "a field was dropped"
        assert filled or len(names) == table.num_fields, "a field became null"
        parts = {}
        for field in table:
            own = names.get(field.name.lower())
            value_there = None if own is None or value is None else value[own]
            inner = field.type if own is None else given_as.field(own).type
            parts[field.name] = expected(value_there, inner, field.type, filled=filled)
        return None if value is None else parts
    if pa.types.is_map(table):
        assert pa.types.is_map(given_as)
        value_there = [(k, expected(v, given_as.item_type, table.item_type, filled=filled)) for k, v in value or ()]
        return None if value is None else value_there
    if pa.types.is_list(table):
        assert pa.types.is_list(given_as) or pa.types.is_large_list(given_as)
        value_there = [expected(v, given_as.value_type, table.value_type, filled=filled) for v in value or ()]
        return None if value is None else value_there
    return value


def same(one: Any, other: Any) -> bool:
    """Equal, exactly and all the way down: 3 is 3.0, no truth value is a number, NaN is NaN."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return isinstance(other, list | tuple) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other) or (one != one and other != other)


def column(table: DeltaTable) -> list[Any]:
    """The column `x` as lakeview reads it, in the order of `id`."""
    values_read: list[Any] = table.scan().collect().sort("id").to_arrow()["x"].to_pylist()
    return values_read


@pytest.mark.slow
@pytest.mark.parametrize("merged", [False, True], ids=["as the table is", "merging schemas"])
@given(story=stories())
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_what_is_written_is_read_back_or_refused(
    tmp_path_factory: pytest.TempPathFactory, merged: bool, story: tuple[pa.Table, pa.Table]
) -> None:
    first, later = story
    address = tmp_path_factory.mktemp("written")
    table = lv.create_table(str(address), first.schema, properties={"delta.feature.timestampNtz": "supported"})
    assert isinstance(table, DeltaTable)
    table.append(first)
    before = sorted(address.rglob("*"))
    try:
        with table.transaction() as txn:
            if merged:
                txn.evolve(merge_schemas(txn.schema, Schema.from_arrow(later.schema)))
            txn.append(later, fill_missing=merged)
    except (InvalidRequestError, ConstraintViolationError, UnsupportedTableError) as error:
        event(f"refused: {error.kind}")
        assert sorted(address.rglob("*")) == before
        assert table.refresh() is False
        return
    event("written")
    type_ = table.snapshot().schema.to_arrow().field("x").type
    expected_value = [expected(v, first.schema.field("x").type, type_, filled=True) for v in first["x"].to_pylist()]
    expected_value += [expected(v, later.schema.field("x").type, type_, filled=merged) for v in later["x"].to_pylist()]
    assert same(expected_value, column(table))
    compare_version(table, str(address), 2, OTHERS)
