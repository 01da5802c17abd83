"""When folders may stand for the log: only where Spark reads from their names exactly what the log says."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from lakeview.model.data_types import DecimalType, Field, PrimitiveType
from lakeview.model.schema import Schema
from lakeview.spark.native_layout import are_distinct, folder_values, partition_fields

SCHEMA = Schema(
    (
        *(Field(name, PrimitiveType(name)) for name in ("string", "integer", "long", "date", "double", "boolean")),
        Field("exact", DecimalType(4, 1)),
    )
)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("x.parquet", {}),
        ("p=1/q=a%20b%3D/x.parquet", {"p": "1", "q": "a b="}),
        ("p=a=b/x", {"p": "a=b"}),
        ("p=%C3%A9/x", None),
        ("p=100%/x", None),
        ("p=/x", None),
        ("p=1/P=2/x", None),
        ("data/p=1/x", None),
        ("%70=1/x", None),
    ],
)
def test_the_text_that_spark_finds_in_folders(path: str, values: dict[str, str] | None) -> None:
    assert folder_values(path) == values


@pytest.mark.parametrize(
    ("name", "text", "value", "agrees"),
    [
        ("string", "01", "01", True),
        ("string", "__HIVE_DEFAULT_PARTITION__", None, True),
        ("string", "__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__", False),
        ("string", "a", "b", False),
        ("integer", "7", 7, True),
        ("long", "007", 7, False),
        ("long", "__HIVE_DEFAULT_PARTITION__", None, True),
        ("date", "0001-01-01", date(1, 1, 1), True),
        ("date", "1-1-1", date(1, 1, 1), False),
        ("double", "1.0", 1.0, False),
        ("boolean", "true", True, False),
        ("exact", "1.0", Decimal("1.0"), False),
        ("elsewhere", "anything", 3, True),
    ],
)
def test_a_folder_counts_where_it_says_what_the_log_says(name: str, text: str, value: Any, agrees: bool) -> None:
    fields = partition_fields({name: text}, {name: value}, SCHEMA)
    assert (fields is not None) == agrees


def test_folders_of_other_columns_do_not_count() -> None:
    assert partition_fields({"string": "a"}, {"string": "a", "long": 1}, SCHEMA) is None
    assert partition_fields({"string": "a", "old": "b"}, {"string": "a"}, SCHEMA) is None


def test_names_that_differ_in_case_alone_are_not_told_apart() -> None:
    assert are_distinct(["p", "q"])
    assert not are_distinct(["p", "P"])
