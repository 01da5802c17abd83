"""Bounds as manifests record them to ranges that hold every value of a column."""

from __future__ import annotations

import polars as pl
import pytest

from lakeview.iceberg.metadata.single_values import decoded_bounds, sound_bounds
from lakeview.model.schema import PrimitiveType

SMALL, SAME, LARGE = (bytes([first]) + bytes(15) for first in (0x10, 0x7F, 0x80))


@pytest.mark.parametrize(
    ("low", "high", "value"),
    [
        pytest.param(LARGE, SAME, SMALL, id="signed: negative numbers first"),
        pytest.param(SMALL, LARGE, SAME, id="by bytes"),
        pytest.param(SMALL[:8] + LARGE[:8], SAME, SMALL, id="signed in the second number alone"),
        pytest.param(SMALL, SAME, SMALL[:8] + b"\xff" * 8, id="of one sign"),
        pytest.param(SAME, SAME, SAME, id="one value"),
        pytest.param(None, SAME, LARGE, id="without a lower bound"),
    ],
)
def test_bounds_of_uuids_hold_in_both_orders_that_writers_have(
    low: bytes | None, high: bytes | None, value: bytes
) -> None:
    lows, highs = (pl.Series([end], dtype=pl.Binary) for end in (low, high))
    lowest, highest = (ends[0] for ends in sound_bounds(lows, highs, PrimitiveType("uuid")))
    assert lowest is None or lowest <= value
    assert highest is None or highest >= value
    assert (lowest is None) == (low is None or high is None or low[0] >> 7 != high[0] >> 7)


@pytest.mark.parametrize(
    ("day", "inside"), [(106_751, True), (106_752, False), (-106_751, True), (-106_752, False), (2_932_896, False)]
)
def test_a_bound_from_when_a_time_was_a_date_is_unknown_beyond_nanoseconds(day: int, inside: bool) -> None:
    values = pl.Series([day.to_bytes(4, "little", signed=True)])
    decoded = decoded_bounds(values, PrimitiveType("timestamp_ns"))
    assert decoded is not None
    assert decoded.to_physical().to_list() == [day * 86_400_000_000_000 if inside else None]
