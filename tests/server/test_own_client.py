"""lakeview reading what lakeview shares: the same rows, files and figures as the table itself, over the network."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import lakeview as lv
from lakeview.model.errors import AccessDeniedError, NotATableError, SharingError, VersionNotFoundError
from lakeview.sharing.client import state
from lakeview.sharing.client.endpoints import SharingClient
from lakeview.sharing.client.opening import open_shared
from lakeview.sharing.client.profile import read_profile
from lakeview.sharing.client.table import SharedTable
from tests.server.conftest import RunningServer

TABLES = ("months", "fed", "vectors", "mapped", "empty")


def shared(running: RunningServer, name: str) -> SharedTable:
    return open_shared(f"{running.profile}#lake.default.{name}")


@pytest.mark.parametrize("name", TABLES)
def test_a_shared_table_has_the_rows_of_the_table(name: str, running: RunningServer) -> None:
    table, own = lv.open_table(f"{running.profile}#lake.default.{name}"), lv.open_table(running.lake / name)
    assert table.latest_version == own.latest_version
    assert_frame_equal(table.scan().collect(), own.scan().collect(), check_row_order=False)
    mine, theirs = table.snapshot(), own.snapshot()
    assert mine.schema.names == theirs.schema.names
    assert mine.partition_columns == theirs.partition_columns
    assert (mine.num_files, mine.num_records, mine.size_bytes) == (
        theirs.num_files, theirs.num_records, theirs.size_bytes,
    )  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_statistics_are_those_of_the_table(name: str, running: RunningServer) -> None:
    mine, theirs = shared(running, name).statistics(), lv.open_table(running.lake / name).statistics()
    columns = [c for c in theirs.columns if not c.startswith("_")]
    key = [pl.col(c).struct.field("min") for c in columns[:1]]
    assert_frame_equal(mine.sort(key).select(columns), theirs.sort(key).select(columns))


@pytest.mark.parametrize(
    "where", ["month = 3", "id > 8", "month = 2 AND city = 'c5'", "city IS NULL", "month IN (0, 4)"]
)
def test_filters_give_the_same_rows(where: str, running: RunningServer) -> None:
    condition = pl.sql_expr(where)
    mine = shared(running, "months").scan().filter(condition).collect()
    theirs = lv.open_table(running.lake / "months").scan().filter(condition).collect()
    assert_frame_equal(mine.sort("id"), theirs.sort("id"))


def test_a_preview_and_a_view(running: RunningServer) -> None:
    assert shared(running, "months").scan().head(3).collect().height == 3
    assert sorted(shared(running, "some").scan().collect().rows()) == [(0, 0), (1, 0), (2, 1)]


def test_time_travel_and_versions(running: RunningServer) -> None:
    table = shared(running, "months")
    assert table.versions()["readable"].to_list() == [True, True, True]
    assert table.scan(1).collect().height == 6
    assert table.snapshot(at=datetime(2100, 1, 1, tzinfo=UTC)).version == 2
    closed = shared(running, "mapped")
    assert closed.versions()["readable"].to_list() == [True, False]
    with pytest.raises(VersionNotFoundError, match="not given as it was at version 0"):
        closed.snapshot(0)


def test_versions_are_listed_without_asking_for_each(running: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    table = shared(running, "mapped")
    monkeypatch.delattr(state, "first_version")
    assert table.versions(look=False).rows() == [(1, None, None, None), (0, None, None, None)]


def test_changes_are_those_of_the_table(running: RunningServer) -> None:
    order = ["_commit_version", "_change_type", "id"]
    mine = shared(running, "fed").changes(1).collect().sort(order)
    theirs = lv.open_table(running.lake / "fed").changes(1).collect().sort(order)
    assert_frame_equal(mine, theirs)
    with pytest.raises(SharingError):
        shared(running, "months").changes(0)


def test_lists_and_what_is_not_granted(running: RunningServer) -> None:
    client = SharingClient(read_profile(running.profile))
    assert client.shares()["share"].to_list() == ["lake"]
    assert client.schemas("lake")["schema"].to_list() == ["default"]
    assert set(TABLES) <= set(client.all_tables("lake")["table"])
    assert client.tables("lake", "default").height == client.all_tables("lake").height
    with pytest.raises(NotATableError):
        open_shared(f"{running.profile}#other.default.Secret")


def test_a_broken_table_is_told_at_once(running: RunningServer) -> None:
    with pytest.raises(SharingError):
        shared(running, "broken")


def test_a_token_that_is_none(running: RunningServer, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.share"
    wrong.write_text(running.profile.read_text().replace(running.token, "lvs_wrong"))
    with pytest.raises(AccessDeniedError):
        open_shared(f"{wrong}#lake.default.months")
