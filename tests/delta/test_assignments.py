"""What assignments become, before any row is there."""

from __future__ import annotations

import polars as pl
import pytest

from lakeview.delta.write.assignments import check_assignments
from lakeview.model.schema import Schema

ROW = pl.DataFrame({"m": [0.5], "d": [1]}, schema={"m": pl.Float64, "d": pl.Decimal(4, 2)})
SCHEMA = Schema.from_arrow(ROW.to_arrow().schema)


@pytest.mark.parametrize(
    ("column", "text", "dtype"),
    [
        ("m", "-1.5", pl.Float64()),
        ("m", "1.5 + 1", pl.Float64()),
        ("m", "'1.5'", pl.String()),
        ("m", "d", pl.Decimal(4, 2)),
        ("d", "1.5", pl.Decimal(2, 1)),
    ],
)
def test_a_number_with_a_point_is_one_of_its_column(column: str, text: str, dtype: pl.DataType) -> None:
    (assigned,) = check_assignments({column: text}, SCHEMA, SCHEMA).values()
    assert ROW.select(assigned.value).dtypes == [dtype]
