"""Tables of a lake: what needs somebody comes first, and nothing unknown is 0."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

import lakeview as lv
from lakeview import charts, views
from lakeview.errors import CorruptTableError
from lakeview.views import LakeEntry, LakeState
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
    views.lake_failure(LakeEntry("gone", "/lake/gone", "delta"), CorruptTableError("no log", fix="restore it")),
]


def test_what_needs_attention_comes_first() -> None:
    ranked = views.lake(ENTRIES)
    assert ranked.schema == views.LAKE
    assert ranked["name"].to_list() == ["gone", "broken", "three things", "one thing", "large", "fine", "later"]


def test_a_table_that_cannot_be_read_says_why_and_nothing_else() -> None:
    row = views.lake(ENTRIES).row(0, named=True)
    assert (row["verdict"], row["finding"], row["page"]) == ("no log", "restore it", "timeline")
    assert [row[name] for name in ("version", "records", "bytes", "files", "age", "late", "broken")] == [None] * 7


def test_a_lake_in_one_sentence() -> None:
    assert views.lake_sentence(views.lake(ENTRIES)) == (
        "7 tables: 1 unreadable, 1 broken, 2 need attention, 2 are fine, 1 not read"
    )
    assert views.lake_sentence(views.lake(ENTRIES[2:3])) == "1 table: 1 needs attention"
    assert views.lake_sentence(views.lake([])) == "No tables"


@pytest.mark.parametrize("build", [tables.good, tables.empty, tables.silent])
def test_a_table_is_told_by_its_newest_version_and_commits(build: object, tmp_path: Path) -> None:
    assert callable(build)
    table = lv.open_table(build(tmp_path / "t"))
    found = views.lake_entry(
        LakeEntry("t", "t", "delta"), table.snapshot(), versions=table.versions(), commits=table.history(), now=NOW
    )
    snapshot = table.snapshot()
    assert (found.version, found.bytes, found.files) == (snapshot.version, snapshot.size_bytes, snapshot.num_files)
    assert found.records == snapshot.num_records
    assert found.verdict is not None
    assert found.verdict.startswith("Readable")
    assert (found.state is LakeState.FINE) is (found.finding is None)


@pytest.mark.parametrize("dark", [False, True])
def test_the_largest_tables_have_a_bar_each(dark: bool) -> None:
    (chart,) = charts.lake_bars(views.lake(ENTRIES), dark=dark)
    shown = [row["table"] for rows in chart.to_dict()["datasets"].values() for row in rows]
    assert shown == ["large", "fine", "broken", "three things", "one thing"]
    many = [entry(f"<b>t{i}", LakeState.FINE, size=i) for i in range(100)]
    (chart,) = charts.lake_bars(views.lake(many), dark=dark)
    assert "the largest 24 of 100" in chart.to_dict()["title"]["text"]


def test_tables_that_were_not_read_have_no_picture() -> None:
    assert charts.lake_bars(views.lake(ENTRIES[5:])) == []
    assert views.lake([]).equals(pl.DataFrame(schema=views.LAKE))
