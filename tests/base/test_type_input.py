"""Types as users give them."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from lakeview.model.data_types import ArrayType, DataType, DecimalType, Field, PrimitiveType, StructType
from lakeview.model.errors import InvalidRequestError, UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.model.type_input import schema_of, type_of

LONG = PrimitiveType("long")
TYPES_OF_INPUTS: dict[str, tuple[Any, DataType]] = {
    "lakeview's": (LONG, LONG),
    "a class of polars": (pl.Int64, LONG),
    "an instance of polars": (pl.Int64(), LONG),
    "Arrow's": (pa.int64(), LONG),
    "Python's": (int, LONG),
    "Delta's name": ("long", LONG),
    "SQL's name": ("BIGINT", LONG),
    "a decimal by name": ("decimal(10, 2)", DecimalType(10, 2)),
    "a decimal of polars": (pl.Decimal(10, 2), DecimalType(10, 2)),
    "a moment": (pl.Datetime, PrimitiveType("timestamp_ntz")),
    "a list": (pl.List(pl.Int64), ArrayType(LONG)),
    "a struct": (pl.Struct({"a": pl.Int64}), StructType((Field("a", LONG),))),
}


@pytest.mark.parametrize(("value", "type_"), TYPES_OF_INPUTS.values(), ids=TYPES_OF_INPUTS)
def test_a_type_is_that_of_a_table(value: Any, type_: DataType) -> None:
    assert type_of(value, "x") == type_
    assert schema_of({"x": value}) == schema_of(Schema((Field("x", value),))) == Schema((Field("x", type_),))


@pytest.mark.parametrize("value", ["Int64x", "decimal(39,2)", "decimal(2,3)", "decimal(0,0)", 5, None, object()])
def test_what_is_no_type_is_refused_by_column(value: Any) -> None:
    with pytest.raises(
        InvalidRequestError, match=r"column x is given .*, which is no type that rows can have"
    ) as caught:
        type_of(value, "x")
    assert caught.value.place == "x"


@pytest.mark.parametrize("value", [pl.DataFrame({"a": [1]}), pa.table({"a": [1]}), [("a", LONG)], {5: LONG}, "a", None])
def test_what_is_no_schema_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequestError, match="is given as schema") as caught:
        schema_of(value)
    assert caught.value.place == "schema"


@pytest.mark.parametrize("value", [object, pl.Object, pl.List(pl.Object), pl.Struct({"a": pl.Object})], ids=str)
def test_objects_of_python_are_refused(value: Any) -> None:
    """They went for binary, and polars ended the process for a list of them."""
    with pytest.raises(InvalidRequestError, match="which is no type that rows can have"):
        type_of(value, "x")


@pytest.mark.parametrize(
    "value",
    [pl.List, pl.Array, pl.Struct, pl.Struct([]), pl.List(pl.List), pa.list_(pa.null()), pa.struct([])],
    ids=str,
)
def test_a_type_of_nothing_is_refused(value: Any) -> None:
    for ask in (lambda: type_of(value, "x"), lambda: schema_of({"x": value})):
        with pytest.raises(InvalidRequestError, match="the type of what it holds is not known"):
            ask()
    with pytest.raises(InvalidRequestError, match="the type of what it holds is not known"):
        schema_of(pa.schema({"x": pa.list_(pa.null())}))


def test_a_type_that_no_table_holds_is_refused() -> None:
    with pytest.raises(UnsupportedTableError, match="column x has the Arrow type"):
        type_of(pa.duration("us"), "x")
