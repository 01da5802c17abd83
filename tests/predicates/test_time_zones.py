"""Conditions that mean the same in every time zone, and those that do not."""

import pyarrow as pa
import pytest

from lakeview.model.schema import Schema
from lakeview.predicates.condition import zone_dependent_part

AT = pa.timestamp("us", "UTC")
SCHEMA = Schema.from_arrow(
    pa.schema([("t", pa.timestamp("us")), ("seen", AT), ("n", pa.struct([("seen", AT), ("x", pa.int32())]))])
)


@pytest.mark.parametrize(
    "text",
    [
        "seen < TIMESTAMP '2026-03-08 07:00:00Z'", "(seen) IN (TIMESTAMP '2026-03-08 07:00:00Z', NULL)",
        "seen BETWEEN TIMESTAMP '2026-03-08 07:00:00Z' AND TIMESTAMPTZ '2026-03-08 08:00:00+02:00' AND n.x = 1",
        "NOT seen IS NULL OR n.seen IS NOT NULL", "seen = n.seen",
        "t > TIMESTAMP '2026-03-08 07:00:00' AND EXTRACT(hour FROM t) = 3",
    ],
)  # fmt: skip
def test_timestamps_that_are_compared_with_timestamps_mean_the_same_in_every_zone(text: str) -> None:
    assert zone_dependent_part(text, SCHEMA) is None


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("seen < TIMESTAMP '2026-03-08 07:00:00'", "seen < CAST('2026-03-08 07:00:00' AS TIMESTAMP)"),
        ("n.x = 1 AND EXTRACT(hour FROM n.seen) = 3", "EXTRACT(HOUR FROM n.seen)"),
        ("CAST(seen AS DATE) = DATE '2026-03-08'", "CAST(seen AS DATE)"),
        ("seen = t", "seen = t"),
        ("CAST(t AS TIMESTAMPTZ) < TIMESTAMP '2026-03-08 07:00:00Z'", None),
        ("t < TIMESTAMP '2026-03-08 07:00:00Z'", None),
        ("COALESCE(seen, n.seen) IS NULL", "COALESCE(seen, n.seen)"),
    ],
)
def test_a_part_that_depends_on_the_zone_is_named(text: str, part: str | None) -> None:
    dependent_part = zone_dependent_part(text, SCHEMA)
    assert dependent_part is not None
    assert part in (dependent_part, None)
