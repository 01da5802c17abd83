"""A shared table on every page: what the protocol does not tell is said, and nothing breaks on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.breadth import with_breadth
from tests.builders.shares import SharingServer
from tests.pages.app import TABLE_PAGES, open_page, text

pytestmark = pytest.mark.app

STATISTICS = {"minValues": {"id": 1}, "maxValues": {"id": 2}, "nullCount": {"id": 0, "note": 1}}


@pytest.fixture(scope="module")
def server() -> Iterator[SharingServer]:
    sharing_server = SharingServer()
    yield sharing_server
    sharing_server.close()


@pytest.fixture(params=["history", "no history", "delta format"])
def table(request: pytest.FixtureRequest, server: SharingServer, tmp_path: Path) -> str:
    """Two partitions in two versions; with and without history, in both formats."""
    story = server.share(
        "sales.eu.orders",
        {"id": "long", "note": "string", "day": "date"},
        partition_by=("day",),
        history=request.param == "history",
        delta=request.param == "delta format",
        features=("deletionVectors",),
    )
    first = story.file({"id": [1, 2], "note": ["a", None]}, {"day": "2024-01-01"}, stats=STATISTICS)
    deleted = (0,) if story.delta else ()
    second = story.file({"id": [1, 2], "note": ["b", None]}, {"day": "2024-01-02"}, stats=STATISTICS, deleted=deleted)
    story.holds(first).holds(first, second)
    profile = tmp_path / "team.share"
    profile.write_text(json.dumps(server.profile()))
    return f"{profile}#sales.eu.orders"


@pytest.mark.parametrize("table", with_breadth(["no history"], ["history", "delta format"]), indirect=True)
@pytest.mark.parametrize("page", TABLE_PAGES)
def test_every_page_draws_it(page: str, table: str) -> None:
    """With history and in the delta format: `test_sharing_page.py`, on our own server."""
    app = open_page(page, table)
    assert not app.exception
    assert "Sharing" in text(app) or any("Sharing" in str(e) for e in app.main)
    assert "sig=" not in text(app)


def test_nothing_is_said_of_commits(table: str) -> None:
    assert "No commits." in text(open_page("timeline", table))
    assert "from this version alone: there is no history to compare it with" in text(open_page("overview", table))


def test_nothing_is_said_of_a_log_or_its_retention(table: str) -> None:
    health = open_page("health", table)
    assert health.button(key="examine").label == "Examine what is known without a log"
    assert "are retained for" not in text(health)


def test_partitions_are_told_without_their_past(table: str) -> None:
    app = open_page("partitions", table)
    assert "Unknown when" in text(app)
    assert sorted(app.dataframe[0].value["partition"]) == ["day=2024-01-01", "day=2024-01-02"]


def test_rows_are_read_when_they_are_asked_for(table: str) -> None:
    app = open_page("data", table)
    next(b for b in app.button if b.label.startswith("Read")).click().run()
    assert not app.exception
    assert any("note" in f.value.columns for f in app.dataframe)


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_every_page_draws_a_share_without_files(page: str, server: SharingServer, tmp_path: Path) -> None:
    server.share("sales.eu.nothing", {"id": "long"}).holds()
    profile = tmp_path / "team.share"
    profile.write_text(json.dumps(server.profile()))
    assert not open_page(page, f"{profile}#sales.eu.nothing").exception


def test_a_profile_that_has_expired_is_a_designed_error(server: SharingServer, tmp_path: Path) -> None:
    server.share("sales.eu.orders", {"id": "long"}).holds()
    profile = tmp_path / "old.share"
    profile.write_text(json.dumps(server.profile(expirationTime="2020-01-01T00:00:00Z")))
    app = open_page("overview", f"{profile}#sales.eu.orders")
    assert not app.exception
    assert "expired on 2020-01-01" in text(app)
    assert server.token not in text(app)
