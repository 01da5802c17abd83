"""Changes of tables that deltalake wrote, beside what deltalake and the Rust kernel make of them."""

from __future__ import annotations

import os
from pathlib import Path

import deltalake
import polars as pl
import polars_deltalake
import pyarrow as pa
import pytest

from tests.builders.opening import open_delta_table


@pytest.fixture(params=[pytest.param([], id="unpartitioned"), pytest.param(["day"], id="partitioned")])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A table that was appended to, updated, deleted from, merged into, compacted and overwritten."""
    place = str(tmp_path / "changed")
    rows = pa.table({"id": pa.array(range(8), pa.int64()), "day": ["x", "y"] * 4, "n": [i / 2 for i in range(8)]})
    deltalake.write_deltalake(
        place, rows, partition_by=request.param or None, configuration={"delta.enableChangeDataFeed": "true"}
    )
    table = deltalake.DeltaTable(place)
    table.update({"n": "n + 100"}, predicate="id < 3")
    table.delete("id = 4")
    deltalake.write_deltalake(place, rows.slice(0, 2), mode="append")
    table = deltalake.DeltaTable(place)
    fresh = pa.table({"id": pa.array([5, 50], pa.int64()), "day": ["y", "x"], "n": [-1.0, -2.0]})
    merge = table.merge(fresh, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    table.optimize.compact()
    deltalake.write_deltalake(place, rows.slice(6, 1), mode="overwrite")
    # Commits of one millisecond are a millisecond apart to us, as to Spark, and at one time to the kernel.
    for commit in Path(place, "_delta_log").glob("*.json"):
        os.utime(commit, (1_700_000_000 + int(commit.stem),) * 2)
    return place


def rows_of(frame: pl.DataFrame) -> list[str]:
    """Rows of changes without their time: engines take it from different places."""
    columns = ["id", "day", "n", "_change_type", "_commit_version"]
    return sorted(map(repr, frame.select(columns).cast({"_commit_version": pl.Int64}).rows()))


def ours(address: str, start: int, end: int | None = None) -> pl.DataFrame:
    table = open_delta_table(address)
    return table.changes(start, end).collect()


@pytest.mark.parametrize(("start", "end"), [(0, None), (0, 2), (1, 4), (2, 2), (5, 6)])
def test_the_rows_are_those_of_deltalake(address: str, start: int, end: int | None) -> None:
    theirs = deltalake.DeltaTable(address).load_cdf(starting_version=start, ending_version=end).read_all()
    assert rows_of(ours(address, start, end)) == rows_of(pl.DataFrame(pa.table(theirs)))


@pytest.mark.parametrize(("start", "end"), [(0, None), (0, 2), (1, 4), (2, 2), (5, 6)])
def test_the_rows_are_those_of_the_kernel(address: str, start: int, end: int | None) -> None:
    theirs = polars_deltalake.scan_cdf(address, start_version=start, end_version=end).collect()
    rows = ours(address, start, end)
    assert rows_of(rows) == rows_of(theirs)
    times = dict(theirs.select("_commit_version", pl.col("_commit_timestamp").dt.epoch("ms")).iter_rows())
    assert dict(rows.select("_commit_version", pl.col("_commit_timestamp").dt.epoch("ms")).iter_rows()) == times
