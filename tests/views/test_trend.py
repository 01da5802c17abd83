"""Trend: what every version was, from the lives of files alone, against counting version by version."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeview.model.frames import LIFETIMES
from lakeview.views.timeline.trend import TREND, trend

STATISTIC: dict[str, pl.DataType] = {
    "min": pl.Int64(), "max": pl.Int64(), "null_count": pl.Int64(), "exact": pl.Boolean(),
    "null_count_exact": pl.Boolean(),
}  # fmt: skip
UNKNOWN: dict[str, Any] = {"min": None, "max": None, "null_count": None, "exact": False, "null_count_exact": False}

Life = dict[str, Any]


def frame(lives: list[Life], kind: pl.DataType | None = None) -> pl.DataFrame:
    """LIFETIMES with the statistics of one column, x."""
    bound = pl.Int64() if kind is None else kind
    types = {**LIFETIMES, "statistics": pl.Struct({"x": pl.Struct({**STATISTIC, "min": bound, "max": bound})})}
    return pl.DataFrame(lives, schema=types, orient="row")


def life(added: int | None, removed: int | None, x: dict[str, Any] | None = None, **more: Any) -> Life:
    return {
        "path": "f", "deletion_vector": None, "added": added, "removed": removed, "size": 10, "records": 5,
        "statistics": {"x": {**UNKNOWN, **(x or {})}}, **more,
    }  # fmt: skip


def naive_trend(lives: list[Life], version: int) -> dict[str, Any]:
    """One version, file by file."""
    live = [f for f in lives if (f["added"] is None or f["added"] <= version) and (f["removed"] or 10**9) > version]

    def total(values: list[int | None]) -> int | None:
        return None if None in values else sum(v for v in values if v is not None)

    statistics = [(f, f["statistics"]["x"]) for f in live]
    # only a file without deletes, or with an exact count, is known to hold nothing but nulls
    certain = [f["deletion_vector"] is None or x["null_count_exact"] for f, x in statistics]
    values = [
        x
        for (f, x), c in zip(statistics, certain, strict=True)
        if not (x["null_count"] == f["records"] is not None and c)
    ]
    extremes = {}
    for side, best in (("min", min), ("max", max)):
        bounds = [x[side] for x in values]
        extremes[side] = best(bounds) if bounds and None not in bounds else None
        extremes[f"some_{side}"] = best((bound for bound in bounds if bound is not None), default=None)
    exact = all(x["exact"] for x in values) and extremes["min"] is not None and extremes["max"] is not None
    return {
        "version": version,
        "files": len(live),
        "bytes": total([f["size"] for f in live]),
        "records": total([f["records"] for f in live]),
        "least_records": sum(f["records"] or 0 for f in live),
        "statistics": {
            "x": {
                **extremes,
                "null_count": total([x["null_count"] for _, x in statistics]),
                "exact": exact,
                "null_count_exact": all(x["null_count_exact"] for _, x in statistics),
                "nulls": sum(x["null_count"] or 0 for _, x in statistics if x["null_count_exact"]),
            }
        },
    }


SMALL = st.none() | st.integers(0, 9)
STATISTICS = st.fixed_dictionaries(
    {"min": SMALL, "max": SMALL, "null_count": SMALL, "exact": st.booleans(), "null_count_exact": st.booleans()}
)
LIVES = st.builds(
    lambda added, length, size, records, x, vector: life(
        added, None if length is None else (added or 0) + length, x, size=size, records=records, deletion_vector=vector
    ),
    st.none() | st.integers(0, 40),
    st.none() | st.integers(1, 40),
    SMALL,
    SMALL,
    STATISTICS,
    st.sampled_from([None, None, "v"]),
)


@given(st.lists(LIVES, max_size=12), st.lists(st.integers(0, 90), max_size=8) | st.none())
def test_every_version_is_what_counting_its_files_gives(lives: list[Life], versions: list[int] | None) -> None:
    """Without versions, of all that the lives name."""
    boundaries = [v for f in lives for v in (f["added"], f["removed"]) if v is not None]
    rows = trend(frame(lives), None if versions is None else pl.Series(versions, dtype=pl.Int64))
    assert {name: rows.schema[name] for name in TREND} == dict(TREND)
    every = range(min(boundaries), max(boundaries) + 1) if boundaries else []
    expected = every if versions is None else sorted(set(versions))
    assert rows.to_dicts() == [naive_trend(lives, version) for version in expected]


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [("a", "zz", pl.String()), (False, True, pl.Boolean()), (1.5, 2.5, pl.Float64())],
)
def test_bounds_of_any_type_are_compared(low: Any, high: Any, kind: pl.DataType) -> None:
    one, other = ({"min": v, "max": v, "null_count": 0, "exact": True} for v in (low, high))
    bounds = trend(frame([life(0, 2, one), life(1, None, other)], kind))["statistics"].struct.field("x").to_list()
    assert [(x["min"], x["max"]) for x in bounds] == [(low, low), (low, high), (high, high)]


def test_lists_have_null_counts_and_no_bounds() -> None:
    rows = trend(frame([life(0, 1, {"null_count": 3}), life(1, None, {"null_count": 4})], pl.Null()))
    assert rows["statistics"].struct.field("x").struct.field("null_count").to_list() == [3, 4]
    assert rows["statistics"].struct.field("x").struct.field("min").to_list() == [None, None]


def test_lives_without_statistics_have_a_trend_as_well() -> None:
    rows = trend(frame([life(0, 2), life(1, None, size=None)]).drop("statistics"))
    assert rows.schema == TREND
    assert rows.rows() == [(0, 1, 10, 5, 5), (1, 2, None, 10, 10), (2, 1, None, 5, 5)]


def test_sums_beyond_64_bits_are_unknown() -> None:
    huge = 2**63 - 1
    rows = trend(frame([life(0, None, size=huge), life(1, 2, size=huge)]), pl.Series([0, 1, 2]))
    assert rows["bytes"].to_list() == [huge, None, huge]


def test_a_table_without_files_has_no_trend() -> None:
    assert trend(frame([])).height == 0
    nothing = {
        **UNKNOWN, "null_count": 0, "null_count_exact": True, "nulls": 0, "some_min": None, "some_max": None,
    }  # fmt: skip
    rows = [(1, 0, 0, 0, 0, {"x": nothing}), (3, 0, 0, 0, 0, {"x": nothing})]
    assert trend(frame([]), pl.Series([3, 1])).rows() == rows
