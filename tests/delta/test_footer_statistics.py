"""Statistics of files that another engine wrote are those that counting their rows gives."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeview.delta.write.context import write_context
from lakeview.delta.write.footer_statistics import footer_facts, read_facts
from lakeview.model.schema import Schema
from tests.builders.statistics import file_statistics

AT = datetime(2026, 3, 4, 5, 6, 7, 890_123, UTC)
COLUMNS: dict[str, pa.Array] = {
    "numbers": pa.array([3, None, 1, 2, None], pa.int8()),
    "nulls alone": pa.array([None] * 5, pa.int64()),
    "floats": pa.array([0.1, -2.5, None, 3.0, 0.0], pa.float32()),
    "zeros, which writers give another sign": pa.array([0.0] * 5, pa.float64()),
    "NaN, which some have for a bound": pa.array([1.0, float("nan"), 2.0, 0.5, None]),
    "NaN alone": pa.array([float("nan")] * 5),
    "infinity, which no bound can tell": pa.array([1.0, float("inf"), 2.0, 0.5, None]),
    "decimals": pa.array(
        [Decimal("1.50"), Decimal("-99999999999999999999.99"), None, None, None], pa.decimal128(38, 2)
    ),
    "texts": pa.array(["b" * 40, "é" * 33, None, "a", "c"]),
    "long texts": pa.array(["b" * 5_000, "a", None, "a", "c"]),
    "days": pa.array([date(2026, 1, 1), date(1, 1, 1), None, date(9999, 12, 31), None]),
    "a day before the year 1": pa.array([-800_000, 0, 1, 2, None], pa.int32()).cast(pa.date32()),
    "timestamps": pa.array([AT, None, AT.replace(year=2025), None, None], pa.timestamp("us", "UTC")),
    "flags": pa.array([True, None, False, None, None]),
    "bytes": pa.array([b"a", b"\xff", None, None, None]),
    "structs": pa.array([{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": None}, {"a": 2, "b": {"c": "y"}}, None]),
    "structs with lists": pa.array([{"a": [1], "b": 1}, None, {"a": None, "b": None}, {"a": [], "b": 3}, None]),
    "lists": pa.array([[1], None, [], [None], [2, 3]]),
    "maps": pa.array([[("k", 1)], None, [], [("k", None)], None], pa.map_(pa.string(), pa.int64())),
}


NOT_IN_FOOTERS = ("NaN alone", "long texts", "structs with lists", "lists", "maps")


@pytest.mark.parametrize(("name", "values"), COLUMNS.items(), ids=COLUMNS)
def test_a_footer_gives_what_the_rows_give(name: str, values: pa.Array) -> None:
    rows = pa.table({"st": pa.array([{"x": 1, "l": ["y"]}] * 5), "v.v": values, "z": pa.array(range(5))})
    file = BytesIO()
    pq.write_table(rows, file, row_group_size=2)
    context = write_context("/t", Schema.from_arrow(rows.schema), [], {})
    facts = read_facts(file, context, ["v.v"])
    assert facts.stats == file_statistics(rows)
    assert facts.rows == 5
    context = write_context("/t", context.schema.select(["v.v"]), [], {})
    by_footer = footer_facts(file, context, ["v.v"])
    assert (by_footer is None) == (name in NOT_IN_FOOTERS)
    if not pa.types.is_struct(values.type):
        assert facts.nulls == {"v.v": values.null_count}


def test_a_bound_that_is_nan_is_none_of_the_file() -> None:
    """Spark's own writer has it, which pyarrow never writes: a file of it is made by hand."""

    class Footer:
        """As pyarrow's statistics."""

        has_min_max, num_values, min, max = True, 3, 1.0, float("nan")

    from lakeview.delta.write import footer_statistics

    statistics: Any = Footer()
    assert footer_statistics._bounds(statistics, pa.float64()) is None


def test_columns_without_statistics_are_counted_where_they_must_not_be_null() -> None:
    rows = pa.table({"a": pa.array([1, None]), "b": pa.array([[1], None])})
    file = BytesIO()
    pq.write_table(rows, file)
    context = write_context("/t", Schema.from_arrow(rows.schema), [], {"delta.dataSkippingNumIndexedCols": "0"})
    facts = read_facts(file, context, ["b"])
    assert (facts.stats, facts.nulls) == ('{"numRecords":2,"minValues":{},"maxValues":{},"nullCount":{}}', {"b": 1})
