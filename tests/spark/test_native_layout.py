"""Which footers Spark's own reader is trusted with: types that it reads alike, names that it can tell apart."""

import pyarrow as pa
import pytest

from lakeview.model.data_types import ArrayType, DataType, DecimalType, Field, MapType, PrimitiveType, StructType
from lakeview.spark.native_layout import native_layout

LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")


def with_id(name: str, number: int, type_: pa.DataType) -> pa.Field:
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(number)})


@pytest.mark.parametrize(
    ("stored", "declared", "type_read"),
    [
        (pa.int32(), LONG, "bigint"),
        (pa.int64(), PrimitiveType("integer"), None),
        (pa.uint32(), LONG, None),
        (pa.int64(), PrimitiveType("double"), None),
        (pa.float32(), PrimitiveType("double"), "double"),
        (pa.large_string(), TEXT, "string"),
        (pa.dictionary(pa.int8(), pa.string()), TEXT, "string"),
        (pa.binary(), TEXT, None),
        (pa.timestamp("us", "UTC"), PrimitiveType("timestamp"), "timestamp"),
        (pa.timestamp("s"), PrimitiveType("timestamp"), "timestamp"),
        (pa.timestamp("us"), PrimitiveType("timestamp"), None),
        (pa.timestamp("ns", "UTC"), PrimitiveType("timestamp"), None),
        (pa.timestamp("us"), PrimitiveType("timestamp_ntz"), "timestamp_ntz"),
        (pa.timestamp("s"), PrimitiveType("timestamp_ntz"), None),
        (pa.date32(), PrimitiveType("timestamp_ntz"), None),
        (pa.decimal128(5, 2), DecimalType(7, 3), "decimal(7,3)"),
        (pa.decimal128(5, 2), DecimalType(6, 4), None),
        (pa.int32(), DecimalType(10, 0), None),
        (pa.list_(pa.int32()), ArrayType(LONG), "array<bigint>"),
        (pa.map_(pa.string(), pa.int64()), MapType(TEXT, LONG), "map<string,bigint>"),
        (pa.string(), ArrayType(TEXT), None),
    ],
    ids=str,
)
def test_types_that_spark_reads_as_lakeview_does(
    stored: pa.DataType, declared: DataType, type_read: str | None
) -> None:
    layout = native_layout([pa.field("a", stored)], [Field("a", declared)], "name")
    assert (None if layout is None else layout.schema[0].dataType.simpleString()) == type_read


def test_a_column_is_read_by_the_name_that_the_file_has() -> None:
    fields = [Field("a", LONG, id=1, physical_name="col-1"), Field("b", LONG, id=2, physical_name="col-2")]
    by_name = native_layout([pa.field("col-2", pa.int64()), pa.field("a", pa.int64())], fields, "name")
    by_id = native_layout([with_id("b", 1, pa.int64()), with_id("a", 2, pa.int64())], fields, "id")
    assert by_name is not None
    assert by_id is not None
    assert by_name.columns == (None, "col-2")
    assert by_id.columns == ("b", "a")


def test_missing_fields_of_a_struct_get_names_that_the_file_does_not_have() -> None:
    """A dropped field of the same name, under another id, must not come back."""
    struct = StructType((Field("x", LONG, id=2), Field("y", LONG, id=9)))
    stored = pa.struct([with_id("x", 2, pa.int64()), with_id("y", 3, pa.int64())])
    layout = native_layout([with_id("s", 1, stored)], [Field("s", struct, id=1)], "id")
    assert layout is not None
    assert layout.schema[0].dataType.simpleString() == "struct<x:bigint,__1:bigint>"


@pytest.mark.parametrize(
    ("stored", "declared"),
    [
        ([pa.field("a", pa.int64()), pa.field("A", pa.int64())], [Field("a", LONG)]),
        (
            [pa.field("s", pa.struct([pa.field("old", pa.int64())]))],
            [Field("s", StructType((Field("new", LONG),)))],
        ),
        (
            [pa.field("s", pa.struct([pa.field("a", pa.int64()), pa.field("A", pa.int64())]))],
            [Field("s", StructType((Field("a", LONG),)))],
        ),
        (
            [pa.field("s", pa.struct([pa.field("a", pa.int64())]))],
            [Field("s", StructType((Field("a", LONG), Field("b", LONG, metadata={"initial-default": 5}))))],
        ),
    ],
    ids=["names that differ in case", "no field of a struct", "fields that differ in case", "a default for old rows"],
)
def test_what_is_left_to_python(stored: list[pa.Field], declared: list[Field]) -> None:
    assert native_layout(stored, declared, "name") is None
