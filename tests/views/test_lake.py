"""Tables of a lake: what needs somebody comes first, and nothing unknown is 0."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

import lakeview as lv
from lakeview import charts, views
from lakeview.model.errors import CorruptTableError
from lakeview.views.health.findings import Evidence
from lakeview.views.lake import LakeEntry, LakeState
from tests.pages import tables

NOW = datetime(2026, 3, 8, 6, tzinfo=UTC)


def entry(name: str, state: LakeState, *, broken: int = 0, attention: int = 0, size: int | None = 1) -> LakeEntry:
    return LakeEntry(
        name, f"/lake/{name}", "delta", state, "a verdict", bytes=size, broken=broken, attention=attention,
        late=False, records=None, files=3, age=timedelta(days=1),
    )  # fmt: skip


ENTRIES = [
    entry("fine", LakeState.FINE, size=10),
    entry("large", LakeState.FINE, size=1 << 30),
    entry("one thing", LakeState.ATTENTION, attention=1),
    entry("three things", LakeState.ATTENTION, attention=3),
    entry("broken", LakeState.BROKEN, broken=1),
    LakeEntry("later", "/lake/later", "iceberg"),
    views.lake.lake_failure(LakeEntry("gone", "/lake/gone", "delta"), CorruptTableError("no log", fix="restore it")),
]


def test_shares_of_the_lake_have_one_decimal() -> None:
    marks = ["", "", "≥", "≤", "", "≤", "", "≤", None]
    shares = [0.0, 0.0001, 0.0001, 0.0001, 0.9999, 0.9999, 1.0, 0.838, None]
    columns = pl.DataFrame({"null_share": shares, "null_share_mark": marks})
    rows = views.lake.with_one_decimal(columns)
    assert rows["null_share"].to_list() == [0.0, 0.001, 0.0, 0.001, 0.999, 1.0, 1.0, 0.838, None]
    assert rows["null_share_mark"].to_list() == ["", "<", "≥", "<", ">", "≤", "", "≤", None]


def test_the_columns_of_a_lake_in_one_sentence() -> None:
    columns = pl.DataFrame(
        {
            "table": ["a", "a", "b"], "column": ["x", "y", "x"],
            "null_share": [0.25, 0.838, None], "null_share_mark": ["", "≥", "≤"],
        }
    )  # fmt: skip
    line = views.lake.columns_line
    assert line(columns) == "3 columns of 2 tables, most nulls in y of a: ≥ 83.8 %"
    assert line(columns.tail(1)) == line(columns.head(1).with_columns(null_share=0.0)) == "1 column of 1 table"
    bound = "; of 1 only an upper bound is known"
    assert line(columns, 0.125) == f"3 columns of 2 tables have nulls above 12.5 %{bound}"
    assert line(columns.head(1), 0.1) == "1 column of 1 table has nulls above 10 %"
    assert line(columns.clear(), 0.1) == "0 columns of 0 tables"


def test_what_needs_attention_comes_first() -> None:
    ranked = views.lake.lake(ENTRIES)
    assert ranked.schema == views.lake.LAKE
    assert ranked["name"].to_list() == ["gone", "broken", "three things", "one thing", "large", "fine", "later"]


def test_a_table_that_cannot_be_read_says_why_and_nothing_else() -> None:
    row = views.lake.lake(ENTRIES).row(0, named=True)
    assert (row["verdict"], row["finding"], row["page"]) == ("no log", "restore it", "timeline")
    assert [row[name] for name in ("version", "records", "bytes", "files", "age", "late", "broken")] == [None] * 7


def test_a_lake_in_one_sentence() -> None:
    assert views.lake.lake_sentence(views.lake.lake(ENTRIES)) == (
        "7 tables: 1 unreadable, 1 broken, 2 need attention, 2 are fine, 1 not read"
    )
    assert views.lake.lake_sentence(views.lake.lake(ENTRIES[2:3])) == "1 table: 1 needs attention"
    assert views.lake.lake_sentence(views.lake.lake([])) == "No tables"


@pytest.mark.parametrize("build", [tables.good, tables.empty, tables.silent])
def test_a_table_is_told_by_its_newest_version_and_commits(build: object, tmp_path: Path) -> None:
    assert callable(build)
    table = lv.open_table(build(tmp_path / "t"))
    evidence = Evidence(table.snapshot(), versions=table.versions(), commits=table.history())
    entry = views.lake.lake_entry(LakeEntry("t", "t", "delta"), evidence, NOW)
    snapshot = table.snapshot()
    assert (entry.version, entry.bytes, entry.files) == (snapshot.version, snapshot.size_bytes, snapshot.num_files)
    assert entry.records == snapshot.num_records
    assert entry.verdict is not None
    assert entry.verdict.startswith("Readable")
    assert (entry.state is LakeState.FINE) is (entry.finding is None)


def piled_up(root: Path) -> lv.Table:
    """Three loads that each replaced the one before: nothing of the newest version is odd, its history is."""
    log = tables.LogWriter(root).create()
    loads = [log.add(f"load-{i}", tables.flights(1, rows=50), 1) for i in range(3)]
    log.commit("WRITE", loads[0])
    for before, after in pairwise(loads):
        log.commit("WRITE", tables.remove(before), after)
    return lv.open_table(root)


def test_the_whole_log_makes_the_verdict_of_the_overview(tmp_path: Path) -> None:
    look = lv.inspect(piled_up(tmp_path / "t"), clock=lambda: NOW)
    evidence = look.lake_evidence()
    entry = views.lake.lake_entry(LakeEntry("t", "t", "delta"), evidence, NOW)
    assert entry.verdict == views.health.findings.verdict(look.findings())
    assert entry.judged == "the whole log"
    assert (entry.small_share, entry.versions) == (1.0, 4)
    assert entry.retained == look.retention_simulation().retained_bytes > 0
    costs = look.retention_simulation()
    nothing_old = replace(evidence, retention=replace(costs, files=costs.files.clear()))
    empty = views.lake.lake_entry(LakeEntry("t", "t", "delta"), nothing_old, NOW)
    assert (empty.retained, empty.retained_gap) == (None, costs.bound), "at least 0 is no news"
    without = views.lake.lake_entry(LakeEntry("t", "t", "delta"), replace(evidence, statistics=None), NOW)
    assert without.judged == "log but statistics"


def test_a_commit_that_violates_a_law_breaks_a_table_as_on_the_overview(tmp_path: Path) -> None:
    log = tables.LogWriter(tmp_path).create()
    before, after = (log.add(f"{rows}-rows", tables.flights(1, rows=rows), 1)["add"] for rows in (50, 40))
    log.commit("WRITE", {"add": before})
    removed = tables.remove({"add": before})["remove"] | {"dataChange": False}
    log.commit("OPTIMIZE", {"remove": removed}, {"add": after | {"dataChange": False}})
    look = lv.inspect(lv.open_table(tmp_path), clock=lambda: NOW)
    entry = views.lake.lake_entry(LakeEntry("t", "t", "delta"), look.lake_evidence(), NOW)
    assert (entry.state, entry.verdict) == (LakeState.BROKEN, views.health.findings.verdict(look.findings()))


def test_what_only_the_whole_log_tells_is_unknown_without_it(tmp_path: Path) -> None:
    table = piled_up(tmp_path / "t")
    evidence = Evidence(table.snapshot(), versions=table.versions(), commits=table.history())
    entry = views.lake.lake_entry(LakeEntry("t", "t", "delta"), evidence, NOW)
    assert (entry.judged, entry.retained, entry.retained_bound) == (views.lake.NEWEST, None, None)
    assert entry.retained_gap == "the whole log was not read"


def test_why_old_bytes_are_unknown_is_noted_once_a_reason() -> None:
    gaps = pl.DataFrame({"name": ["a", "b", "c", "d"], "retained_gap": ["no time", "no log", None, "no log"]})
    assert views.lake.gap_notes(gaps) == ["a: no time", "2 tables: no log"]


def test_a_table_of_very_many_commits_or_values_is_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = piled_up(tmp_path / "t")
    snapshot, commits = table.snapshot(), table.history()
    assert views.lake.is_shallow(snapshot, commits)
    assert views.lake.has_few_statistics(snapshot)
    monkeypatch.setattr(sys.modules["lakeview.views.lake"], "MOST_STATISTICS", 2)  # one file of three columns
    assert not views.lake.has_few_statistics(snapshot)
    monkeypatch.setattr(sys.modules["lakeview.views.lake"], "MOST_COMMITS", 3)
    assert not views.lake.is_shallow(snapshot, commits)


def test_a_table_of_very_many_commits_has_a_stale_checkpoint_as_on_the_overview(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tables.LogWriter(tmp_path).create()
    metadata = log.metadata(tables.FIELDS)["metaData"] | {"configuration": {"delta.checkpointInterval": "1"}}
    for _ in range(9):
        log.commit("SET TBLPROPERTIES", {"metaData": metadata})
    monkeypatch.setattr(sys.modules["lakeview.views.lake"], "MOST_COMMITS", 3)
    evidence = lv.inspect(lv.open_table(tmp_path), clock=lambda: NOW).lake_evidence()
    assert evidence.lifetimes is None
    assert "There is no checkpoint" in {each.claim for each in views.health.findings.findings(evidence, NOW)}


@pytest.mark.parametrize("dark", [False, True])
def test_the_largest_tables_have_a_bar_each(dark: bool) -> None:
    (chart,) = charts.lake.lake_bars(views.lake.lake(ENTRIES), dark=dark)
    tables = [row["table"] for rows in chart.to_dict()["datasets"].values() for row in rows]
    assert tables == ["large", "fine", "broken", "three things", "one thing"]
    many = [entry(f"<b>t{i}", LakeState.FINE, size=i) for i in range(100)]
    (chart,) = charts.lake.lake_bars(views.lake.lake(many), dark=dark)
    assert "the largest 24 of 100" in chart.to_dict()["title"]["text"]


def test_tables_that_were_not_read_have_no_picture() -> None:
    assert charts.lake.lake_bars(views.lake.lake(ENTRIES[5:])) == []
    assert views.lake.lake([]).equals(pl.DataFrame(schema=views.lake.LAKE))
