"""Arrays of files to the types of a schema: what fits, and what is refused rather than changed."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakeview.model.errors import UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.rows.casts import conform_array

US = pa.timestamp("us")


def read_as(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The array as a column `c` of that type."""
    schema = Schema.from_arrow(pa.schema([("c", target)]))
    return conform_array(array, schema["c"], schema.to_arrow().field("c").type)


MOMENT = datetime.fromisoformat("2013-05-01 12:30:00.123")


@pytest.mark.parametrize(
    ("values", "source", "target", "values_read"),
    [
        pytest.param([1, None], pa.int32(), pa.int64(), [1, None], id="a widened integer"),
        pytest.param([1], pa.int32(), pa.int8(), [1], id="a byte, which Parquet keeps in 32 bits"),
        pytest.param([1.5], pa.float32(), pa.float64(), [1.5], id="a widened float"),
        pytest.param([1.5], pa.float16(), pa.float32(), [1.5], id="half a float"),
        pytest.param([3], pa.int32(), pa.float64(), [3.0], id="an integer widened to double"),
        pytest.param([Decimal("1.5")], pa.decimal128(5, 1), pa.decimal128(9, 3), [Decimal("1.500")], id="a decimal"),
        pytest.param(
            [date(2013, 5, 1)],
            pa.date32(),
            US,
            [datetime.fromisoformat("2013-05-01")],
            id="a date widened to a timestamp",
        ),
        pytest.param([MOMENT], pa.timestamp("ms"), US, [MOMENT], id="milliseconds"),
        pytest.param([b"text"], pa.binary(), pa.string(), ["text"], id="text that its writer left untyped"),
        pytest.param([None], pa.null(), pa.string(), [None], id="a column of nothing"),
    ],
)
def test_what_fits_keeps_its_value(
    values: list[Any], source: pa.DataType, target: pa.DataType, values_read: list[Any]
) -> None:
    array = read_as(pa.array(values, source), target)
    assert array.type == target
    assert array.to_pylist() == values_read


@pytest.mark.parametrize(
    "source", [pa.list_view(pa.int64()), pa.large_list_view(pa.int64()), pa.large_list(pa.int64())]
)
def test_every_kind_of_list_keeps_its_elements(source: pa.DataType) -> None:
    """pyarrow's own cast of list views loses the elements that follow a null."""
    lists = [[1, 2], None, [9], [], [None, 3], None]
    array = pa.array(lists, source)
    assert read_as(array, pa.list_(pa.int64())).to_pylist() == lists
    assert read_as(array.slice(2, 3), pa.list_(pa.int64())).to_pylist() == lists[2:5]
    assert read_as(array.slice(6), pa.list_(pa.int64())).to_pylist() == []


@pytest.mark.parametrize(
    ("values", "source", "target"),
    [
        pytest.param([3], pa.int64(), pa.bool_(), id="a number is no truth"),
        pytest.param([3], pa.int64(), pa.string(), id="a number is no text"),
        pytest.param([300], pa.int32(), pa.int8(), id="a number too large for the type"),
        pytest.param([1.1], pa.float64(), pa.float32(), id="digits would be lost"),
        pytest.param([Decimal("1.239")], pa.decimal128(5, 3), pa.decimal128(5, 2), id="a decimal would be rounded"),
        pytest.param([1.239], pa.float64(), pa.decimal128(5, 2), id="a float is no decimal"),
        pytest.param([[1]], pa.list_(pa.int64()), pa.int64(), id="a list is no number"),
        pytest.param(
            [{"a": "x"}], pa.struct([("a", pa.string())]), pa.struct([("a", pa.int64())]), id="inside a struct"
        ),
        pytest.param([b"\xff"], pa.binary(), pa.string(), id="bytes that are no text"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(values: list[Any], source: pa.DataType, target: pa.DataType) -> None:
    with pytest.raises(UnsupportedTableError, match=r"column c.* is .* in a file and .* in the schema") as caught:
        read_as(pa.array(values, source), target)
    assert caught.value.kind == "unsupported-cast"
    assert caught.value.fix == "read the other columns, or a version from before the type changed"


def test_fields_inside_structs_lists_and_maps_match_whatever_their_case() -> None:
    inner = pa.struct([("A", pa.int32()), ("gone", pa.string())])
    source = pa.struct([("S", inner), ("L", pa.list_(inner)), ("M", pa.map_(pa.string(), inner))])
    inner_type = pa.struct([("a", pa.int64()), ("new", pa.string())])
    target = pa.struct([("s", inner_type), ("l", pa.list_(inner_type)), ("m", pa.map_(pa.string(), inner_type))])
    row = {"A": 1, "gone": "x"}
    array = pa.array([{"S": row, "L": [row, None], "M": [("k", row)]}, None], source)
    expected = {"a": 1, "new": None}
    assert read_as(array, target).to_pylist() == [
        {"s": expected, "l": [expected, None], "m": [("k", expected)]},
        None,
    ]


def test_of_two_names_that_differ_in_case_the_exact_one_counts() -> None:
    array = pa.array([{"A": 1, "a": 2}], pa.struct([("A", pa.int64()), ("a", pa.int64())]))
    assert read_as(array, pa.struct([("a", pa.int64())])).to_pylist() == [{"a": 2}]
