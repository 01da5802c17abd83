"""Sums: unknown where a part is, or where 64 bits do not hold them; every figure of bytes goes by that."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

import lakeview as lv
from lakeview import views
from lakeview.model.frames import FILES
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot, TableMetadata
from lakeview.views.health.findings import Evidence
from tests.builders.actions import add, info, remove
from tests.builders.history import DeltaHistory

NOW = datetime(2026, 7, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        pytest.param([1, 2], 3, id="known parts"),
        pytest.param([1, None], None, id="a part that is unknown"),
        pytest.param([], 0, id="no parts"),
        pytest.param([2**62, 2**62 - 1], 2**63 - 1, id="as much as 64 bits hold"),
        pytest.param([2**62, 2**62], None, id="more than 64 bits hold"),
    ],
)
def test_a_total_is_exact_or_unknown(values: list[int | None], found: int | None) -> None:
    assert views.sums.total_of(pl.Series(values, dtype=pl.Int64)) == found


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> lv.Table:
    """Two days; of the first a file of no possible size lives, another of 100 bytes was removed."""
    history = DeltaHistory(tmp_path_factory.mktemp("sums") / "t").create(partition_by=("city",))
    day, other = {"city": "a"}, {"city": "b"}
    history.commit(info(operation="WRITE"), add("b0", size=40, records=1, partition=other), at=NOW.replace(month=1))
    history.commit(info(operation="WRITE"), add("a0", size=100, records=1, partition=day), at=NOW.replace(month=2))
    history.commit(info(operation="WRITE"), add("a1", size=-7, records=1, partition=day), at=NOW.replace(month=3))
    history.commit(info(operation="DELETE"), remove("a0"), at=NOW.replace(month=4))
    return lv.open_table(history.address)


def readable(table: lv.Table) -> pl.DataFrame:
    """VERSIONS as if the data files were there."""
    return table.versions().with_columns(readable=pl.lit(value=True))


def test_figures_of_files_say_that_bytes_are_unknown(table: lv.Table) -> None:
    now = table.snapshot()
    facts = views.files.sizes.file_facts(now.files)
    assert (facts.files, facts.files_without_size, facts.bytes, facts.small_bytes) == (2, 1, None, None)
    assert (facts.median_size, facts.small_files, facts.ideal_files) == (40, 1, None)
    assert views.files.sizes.file_sizes(now.files)["files"].sum() == 1
    found = next(f for f in views.health.findings.findings(Evidence(now), NOW) if "an impossible size" in f.claim)
    assert (found.claim, found.evidence) == (
        "1 of 2 files are recorded with an impossible size", "the table's size in bytes is unknown",
    )  # fmt: skip
    cost = views.pruning.plan.read_cost(table.plan("city = 'a'"))
    assert (cost.files, cost.bytes, cost.all_bytes, cost.bytes_share) == (1, None, None, None)
    assert views.pruning.plan.read_cost(table.plan("city = 'b'")).bytes == 40


def test_figures_of_partitions_say_that_bytes_are_unknown(table: lv.Table) -> None:
    now = table.snapshot()
    sizes = views.partitions.sizes.partition_sizes(now)
    assert sizes.select("partition_text", "bytes", "share").rows() == [("city=a", None, None), ("city=b", 40, None)]
    skew = views.partitions.sizes.partition_skew(sizes)
    assert (skew.largest, skew.largest_bytes, skew.median_bytes, skew.bytes_ratio) == (None, None, None, None)
    assert views.partitions.layout.half_of_the_bytes(sizes) == 0
    history = views.partitions.history.partition_history(now.files, table.lifetimes(), table.history(), "city=a")
    assert history["bytes"].to_list()[-1] is None


def test_figures_of_history_say_from_when_on_bytes_are_unknown(table: lv.Table) -> None:
    commits, lifetimes = table.history(), table.lifetimes()
    for line in (views.timeline.commits.timeline(commits, lifetimes), views.timeline.commits.timeline(commits)):
        assert line["bytes"].to_list() == [0, 40, 140, None, None]
    assert views.retention.cost.write_amplification(line).written_bytes is None
    lives = views.timeline.lifetimes.life_facts(views.timeline.lifetimes.file_lives(lifetimes, line))
    assert (lives.files, lives.bytes, lives.live_bytes, lives.churn) == (3, None, None, None)
    found = views.retention.simulation.retention(
        readable(table), lifetimes, views.retention.policy.retention_policy({}), now=NOW
    )
    assert (found.retained_bytes, found.live_bytes) == (100, None)
    before, after = table.snapshot(2), table.snapshot()
    difference = views.compare.versions.file_difference(before, after)
    assert (difference.added, difference.bytes_added, difference.bytes_removed) == (1, None, 100)
    assert ("Live bytes", "unknown", "from 140 B") in views.compare.versions.difference_tiles(before, after)
    assert "1 file written (unknown)" in views.compare.versions.sentence(before, after)


def test_more_bytes_than_64_bits_hold_are_never_below_zero() -> None:
    sizes = [2**62, 2**62, 2**62]
    files = pl.DataFrame({"path": ["a", "b", "c"], "size": sizes, "records": [1, 1, 1], "deleted_records": [0, 0, 0]})
    files = files.with_columns(pl.lit(None, dtype).alias(n) for n, dtype in FILES.items() if n not in files.columns)
    snapshot = Snapshot(TableMetadata("t", "delta", 0, NOW, Schema(())), frames={"files": files})
    assert snapshot.size_bytes == 3 * 2**62
    assert views.files.sizes.file_facts(files).bytes is None
    assert set(views.files.sizes.file_sizes(files)["bytes"]) == {0, None}


def test_files_of_unknown_size_make_what_a_clean_up_frees_a_bound(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create().commit(add("f", size=-1), add("g", size=9))
    table = lv.open_table(history.commit(remove("f"), remove("g")).address)
    found = views.retention.simulation.retention(
        readable(table), table.lifetimes(), views.retention.policy.retention_policy({}), now=NOW
    )
    assert (found.retained_bytes, found.live_bytes) == (9, 0)
    assert found.bound == "files that the log no longer names are not counted, nor are those of unknown size"
