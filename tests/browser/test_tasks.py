"""Fifteen tasks of somebody with a table, each in at most three clicks, on the Delta and the Iceberg table of the demo.

The answer is text on the screen; what it must be is computed from the rows or the log by other readers.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from lakeview.views.units import format_bytes
from tests.browser.hand import Hand
from tests.browser.independent import DeltaLog, IcebergMetadata, Independent
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.browser

FORMATS = pytest.mark.parametrize("table", ["flights", "departures"], ids=["Delta", "Iceberg"], indirect=True)
BAD_LOAD = {"flights": ("v75", "visibility"), "departures": ("s12", "arrival_delay")}
"""The load that brought nulls, and their column: Delta's is told on the first line of the overview."""


@pytest.fixture(scope="module")
def flights(demo_lake: Path) -> DeltaLog:
    return DeltaLog(demo_lake, "flights")


@pytest.fixture(scope="module")
def departures(demo_lake: Path) -> IcebergMetadata:
    return IcebergMetadata(demo_lake, "departures")


@pytest.fixture
def table(request: pytest.FixtureRequest) -> Independent:
    found: Independent = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def hand(visitor: Visitor, table: Independent) -> Hand:
    """Somebody who just opened the table's overview."""
    return Hand(visitor, f"/overview?table=demo/{table.name}")


def number(table: Independent, label: str) -> int:
    """The number of the commit with this name."""
    return [commit.label for commit in table.commits].index(label)


@FORMATS
def test_1_what_changed_last_night_and_who(hand: Hand, table: Independent) -> None:
    hand.go("Compare")
    before, last = table.commits[-2:]
    files = table.added(len(table.commits) - 1)
    written = f"{files.height} files written ({format_bytes(sum(files['size']))})"
    hand.reads(f"from {before.label} (", f"to {last.label} (", written, f"in 1 commit by {last.writer}")


@FORMATS
def test_2_the_commit_that_made_nulls_jump_and_the_values_before(hand: Hand, table: Independent) -> None:
    label, column = BAD_LOAD[table.name]
    hand.go("Quality")
    if table.name == "departures":
        hand.choose("column", column)
    loads = [row for row in hand.rows("tab") if row["null, %"]]
    at = [row["load"] for row in loads].index(label)
    for load in loads[at : at + 3]:
        values = table.rows_of_files(number(table, load["load"]))[column]
        assert float(load["null, %"]) == pytest.approx(values.null_count() / len(values) * 100)
        assert [float(load[end]) if load[end] else None for end in ("min", "max")] == [values.min(), values.max()]
    jump, before = (float(load["null, %"]) for load in loads[at : at + 2])
    assert jump > before + 10


@FORMATS
def test_3_the_data_before_a_bad_load(hand: Hand, table: Independent) -> None:
    bad = number(table, BAD_LOAD[table.name][0])
    before = table.commits[bad - 1]
    hand.go("Data")
    hand.choose("pick_version", before.label)
    hand.reads(f"Rows of {before.label}", f"{before.label}, from the statistics of its {before.live.height} files")
    shown = pl.DataFrame(hand.rows("own-columns-rows"))
    real = table.rows(bad - 1).select(pl.col(shown.columns).cast(pl.String).fill_null(""))
    assert shown.join(real, on=shown.columns, how="anti").is_empty()
    assert shown.height > 10


@FORMATS
def test_6_the_rows_that_differ_between_two_versions(hand: Hand, table: Independent) -> None:
    hand.go("Compare")
    if table.name == "flights":
        after, base = number(table, "v32"), number(table, "v31")
        hand.choose("pick_version", "v32")
    else:
        after, base = number(table, "s14"), number(table, "s12")
        hand.follow("a day before")
    hand.follow("Compare rows")
    before, now = table.rows(base), table.rows(after)
    gained, lost = (
        left.join(right, on=left.columns, how="anti", nulls_equal=True)
        for left, right in ((now, before), (before, now))
    )
    hand.reads(f"+{gained.height:,} rows, \N{MINUS SIGN}{lost.height:,}")
