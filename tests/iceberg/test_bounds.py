"""Bounds as manifests record them to ranges that hold every value of a column."""

from __future__ import annotations

import polars as pl
import pytest

from lakeview.iceberg.manifests.partition_bounds import source_bounds
from lakeview.iceberg.manifests.partitions import PartitionColumn
from lakeview.iceberg.metadata.partition_fields import PartitionField
from lakeview.iceberg.metadata.single_values import decoded_bounds, sound_bounds
from lakeview.iceberg.metadata.transforms import parse_transform
from lakeview.model.data_types import Field, PrimitiveType

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


INT, LONG = (pl.Int32(), 31), (pl.Int64(), 63)


@pytest.mark.parametrize(
    ("type_", "recorded", "expected"),
    [
        (INT, -10, (-10, -1)),
        (INT, 2**31 - 18, (2**31 - 18, 2**31 - 9)),
        (INT, 2**31 - 2, (None, None)),  # of -2**31 too: less its remainder of 8 it is 2**31 - 2 in 32 bits
        (LONG, 2**63 - 2, (None, None)),
        (LONG, 2**40, (2**40, 2**40 + 9)),
    ],
)
def test_a_number_that_least_numbers_are_cut_to_bounds_nothing(
    type_: tuple[pl.DataType, int], recorded: int, expected: tuple[int | None, int | None]
) -> None:
    dtype, bits = type_
    transform = parse_transform("truncate[10]")
    assert -(2**bits) - -(2**bits) % 10 + 2 ** (bits + 1) == 2**bits - 2
    field = Field("n", PrimitiveType("integer" if bits == 31 else "long"), id=1)
    column = PartitionColumn(PartitionField(1000, "n", transform, (1,)), "n", dtype, field, (0,))
    values = pl.Series([recorded], dtype=dtype)
    bounds = source_bounds(column, values, values)
    assert bounds is not None
    assert (bounds[0][0], bounds[1][0]) == expected
