"""What assignments become, before any row is there."""

from __future__ import annotations

import polars as pl
import pytest

from lakeview.delta.write.assignments import check_assignments
from lakeview.model.data_types import Field, PrimitiveType, StructType
from lakeview.model.errors import InvalidRequestError
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


def test_columns_and_fields_are_found_without_regard_to_case_where_one_is_meant() -> None:
    long = PrimitiveType("long")
    table = Schema((Field("Place", StructType((Field("X", long),))), Field("id", long), Field("ID", long)))
    assert list(check_assignments({"place.x": "1", "ID": "2"}, table, table)) == [("Place", "X"), ("ID",)]
    with pytest.raises(InvalidRequestError, match="there is no column Id"):
        check_assignments({"Id": "1"}, table, table)
    with pytest.raises(InvalidRequestError, match=r"Place and PLACE\.x are assigned to at once"):
        check_assignments({"place": "NULL", "PLACE.x": "1"}, table, table)
