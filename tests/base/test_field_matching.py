"""Fields found by name or by id at every level, over generated types and values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakeview.model.data_types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType
from lakeview.model.schema import Schema
from lakeview.rows.casts import conform_array
from lakeview.rows.field_places import Match

LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")


def structs(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    """Structs of one to four fields; numbered later."""
    return st.lists(inner, min_size=1, max_size=4).map(
        lambda types: StructType(tuple(Field(f"f{i}", type_) for i, type_ in enumerate(types)))
    )


TYPES = st.recursive(
    st.sampled_from([LONG, TEXT]),
    lambda inner: structs(inner) | inner.map(ArrayType) | inner.map(lambda value: MapType(TEXT, value)),
    max_leaves=8,
)


class Numbers:
    """The next id."""

    def __init__(self) -> None:
        self.last = 0

    def field(self, f: Field) -> Field:
        self.last += 1
        number = self.last
        return Field(f.name, self.type(f.type), id=number, physical_name=f"col-{number}")

    def type(self, type_: DataType) -> DataType:
        """The type with an id and a physical name for each field in it."""
        match type_:
            case StructType(fields):
                return StructType(tuple(self.field(f) for f in fields))
            case ArrayType(element):
                return ArrayType(self.type(element))
            case MapType(key, value):
                return MapType(key, self.type(value))
        return type_


def in_file(type_: DataType, match: Match, order: Any) -> pa.DataType:
    """The type as a file may hold it: fields in another order, one more than the schema knows, other names by id."""
    match type_:
        case StructType(fields):
            stored_fields = [
                pa.field(
                    str(f.physical_name) if match == "name" else f.name * 2,
                    in_file(f.type, match, order),
                    metadata={"PARQUET:field_id": str(f.id)},
                )
                for f in fields
            ]
            # called as one that is wanted, but another: neither name nor id is of the schema's own
            stored_fields.append(pa.field(fields[0].name, pa.int64(), metadata={"PARQUET:field_id": "999"}))
            order.shuffle(stored_fields)
            return pa.struct(stored_fields)
        case ArrayType(element):
            return pa.list_(in_file(element, match, order))
        case MapType(_, value):
            return pa.map_(pa.string(), in_file(value, match, order))
    return pa.int64() if type_ == LONG else pa.string()


def value_of(type_: DataType, data: Any) -> Any:
    """A value, as the schema names its fields."""
    if data.draw(st.integers(0, 4)) == 0:
        return None
    match type_:
        case StructType(fields):
            return {f.name: value_of(f.type, data) for f in fields}
        case ArrayType(element):
            return [value_of(element, data) for _ in range(data.draw(st.integers(0, 3)))]
        case MapType(_, value):
            return [(f"k{i}", value_of(value, data)) for i in range(data.draw(st.integers(0, 3)))]
    return data.draw(st.integers(-9, 9) if type_ == LONG else st.text(max_size=3, alphabet="aé"))


def as_held(value: Any, type_: DataType, stored_value: pa.DataType) -> Any:
    """The value, as the file names its fields."""
    if value is None:
        return None
    match type_:
        case StructType(fields):
            ids = {f.metadata[b"PARQUET:field_id"].decode(): f for f in stored_value}
            values = {ids[str(f.id)].name: as_held(value[f.name], f.type, ids[str(f.id)].type) for f in fields}
            return values | {ids["999"].name: 7}
        case ArrayType(element):
            return [as_held(v, element, stored_value.value_type) for v in value]
        case MapType(_, of):
            return [(k, as_held(v, of, stored_value.item_type)) for k, v in value]
    return value


@given(TYPES, st.sampled_from(["name", "id"]), st.randoms(use_true_random=False), st.data())
def test_values_are_found_whatever_order_and_names_the_file_has(
    type_: DataType, match: Match, order: Any, data: Any
) -> None:
    field = Numbers().field(Field("c", type_))
    file_type = in_file(field.type, match, order)
    values = [value_of(field.type, data) for _ in range(data.draw(st.integers(0, 5)))]
    array = pa.array([as_held(v, field.type, file_type) for v in values], file_type)
    target = Schema((field,)).as_nullable().to_arrow().field(0).type
    result = conform_array(array, field, target, match)
    result.validate(full=True)
    assert result.type == target
    assert result.to_pylist() == values
    start = data.draw(st.integers(0, len(values)))
    assert conform_array(array.slice(start), field, target, match).to_pylist() == values[start:], "a part of an array"
    shuffle = array.take(pa.array(list(reversed(range(len(values)))), pa.int64()))
    assert conform_array(shuffle, field, target, match).to_pylist() == values[::-1], "rows in another order"
