"""What a table declares over 32-bit floats, as Spark 4 computes it: SELECT ... FROM (SELECT CAST(0.1 AS FLOAT) v)."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from lakeview.model.data_types import Field, PrimitiveType, StructType
from lakeview.model.schema import Schema
from lakeview.predicates.condition import row_expression

FLOAT = Field("v", PrimitiveType("float"))
SCHEMA = Schema(
    (FLOAT, Field("s", StructType((FLOAT,))), Field("d", PrimitiveType("double")), Field("i", PrimitiveType("integer")))
)
ROW = pl.DataFrame(
    {"v": [0.1], "s": [{"v": 0.1}], "d": [2.5], "i": [5]},
    schema={"v": pl.Float32, "s": pl.Struct({"v": pl.Float32}), "d": pl.Float64, "i": pl.Int32},
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("v = 0.1", False), ("(v) <= 0.1", False), ("0.1 <=> v", False), ("s.v = 0.1", False), ("v <= 1", True),
        ("-v >= -0.1", False), ("ABS(v) <= 0.1", False), ("v IN (0.1, 5)", False), ("v BETWEEN 0.1 AND 0.2", True),
        ("COALESCE(v, 0) <= 0.1", False), ("LEAST(v, 1) <= 0.1", False), ("v = CAST(0.1 AS FLOAT)", True),
        ("v * 0.1", 0.010000000149011612), ("v / 3", 0.033333333830038704),
    ],
)  # fmt: skip
def test_fractions_meet_32_bit_floats_as_doubles(text: str, value: Any) -> None:
    assert ROW.select(row_expression(text, SCHEMA, "spark")).item() == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("d / 3", 2.5 / 3), ("i / 3", 5 / 3), ("-d / -3", 2.5 / 3), ("s.v / 3 / 7", 0.10000000149011612 / 3 / 7),
        ("d / 0", None), ("1 / d", 0.4),
    ],
)  # fmt: skip
def test_a_quotient_is_rounded_once(text: str, value: float | None) -> None:
    """Of several rows: of one row polars takes no reciprocal."""
    rows = pl.DataFrame(ROW.rows() * 2, schema=ROW.schema, orient="row")
    assert rows.select(row_expression(text, SCHEMA, "spark")).to_series().to_list() == [value, value]
