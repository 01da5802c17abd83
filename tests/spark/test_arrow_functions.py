"""Batches as functions over DataFrames get them."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from lakeview.spark.arrow_functions import in_utc

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (lambda at: at, NOON),
        (lambda at: pa.struct([("t", at), ("n", pa.int32())]), {"t": NOON, "n": 1}),
        (lambda at: pa.list_(pa.struct([("t", at)])), [{"t": NOON}, None]),
        (lambda at: pa.map_(pa.string(), at), [("a", NOON), ("b", None)]),
    ],
    ids=["timestamp", "struct", "list", "map"],
)
def test_timestamps_have_the_zone_utc_at_every_depth(kind: Any, value: Any) -> None:
    rows = pa.table({"c": pa.array([value, None], kind(pa.timestamp("us", "America/New_York"))), "n": ["x", "y"]})
    expected = pa.table({"c": pa.array([value, None], kind(pa.timestamp("us", "UTC"))), "n": ["x", "y"]})
    assert in_utc(rows).equals(expected)
    assert in_utc(rows).schema == expected.schema
    assert in_utc(expected) is expected
    assert in_utc(rows.to_batches()[0]).equals(expected.to_batches()[0])
