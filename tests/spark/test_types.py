"""Types between a table and Spark: there and back, and the exact Arrow schema of batches."""

import pyarrow as pa
import pytest
from pyspark.sql import types as st

from lakeview.model.data_types import ArrayType, DecimalType, Field, MapType, PrimitiveType, StructType
from lakeview.model.errors import InvalidRequestError, UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.spark.types import PRIMITIVES, arrow_schema, check_schema, from_spark, to_spark

NESTED = Schema(
    (
        *(Field(name, PrimitiveType(name)) for name in PRIMITIVES),
        Field("exact", DecimalType(38, 9)),
        Field("with.dot", ArrayType(StructType((Field("a`b", MapType(PrimitiveType("string"), DecimalType(3, 1))),)))),
    )
)


def test_every_type_comes_back_as_it_went() -> None:
    assert from_spark(to_spark(NESTED)) == NESTED


def test_our_arrow_schema_is_the_one_spark_compares_with() -> None:
    assert arrow_schema(to_spark(NESTED)).equals(NESTED.to_arrow())


def test_all_is_nullable_on_both_sides() -> None:
    strict = Schema((Field("a", StructType((Field("b", PrimitiveType("long"), nullable=False),)), nullable=False),))
    assert arrow_schema(to_spark(strict)) == pa.schema([("a", pa.struct([("b", pa.int64())]))])
    literal = st.StructType([st.StructField("one", st.IntegerType(), nullable=False)])
    assert from_spark(literal)["one"].nullable


def test_rows_without_a_column_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="no column"):
        from_spark(st.StructType())


def test_text_of_bounded_length_is_text() -> None:
    bounded = st.StructType([st.StructField("c", st.CharType(3)), st.StructField("v", st.VarcharType(9))])
    assert [str(f.type) for f in from_spark(bounded)] == ["string", "string"]


@pytest.mark.parametrize("name", ["time", "uuid", "timestamp_ns", "variant"])
def test_types_that_do_not_pass_are_refused_by_column(name: str) -> None:
    with pytest.raises(UnsupportedTableError) as caught:
        to_spark(Schema((Field("odd", PrimitiveType(name)),)))
    assert caught.value.message == f"column odd has the type {name}, which does not pass between lakeview and Spark"
    assert caught.value.place == "odd"


def test_spark_types_no_table_holds_are_refused_by_column() -> None:
    span = st.StructType([st.StructField("span", st.DayTimeIntervalType())])
    with pytest.raises(UnsupportedTableError, match="column span has the type interval day to second"):
        from_spark(span)


def test_a_schema_that_a_reader_is_given_has_columns_of_the_table_in_their_types() -> None:
    own = Schema.from_arrow(pa.schema({"id": pa.int64(), "s": pa.struct({"a": pa.int32()})}))
    inner = st.StructType([st.StructField("a", st.IntegerType(), nullable=False)])
    check_schema(st.StructType().add("s", inner), own)
    for reader_schema, message in (
        (st.StructType().add("id", "integer"), "where id is int, and in the table it is bigint"),
        (st.StructType().add("s", st.StructType().add("A", "integer")), "where s is struct<A:int>, and in the table"),
        (st.StructType().add("ID", "long"), "there is no column ID"),
    ):
        with pytest.raises(InvalidRequestError, match=message):
            check_schema(reader_schema, own)
