"""The timeline: its filters, the choice of one commit, and that commit's drawer."""

from __future__ import annotations

from pathlib import Path

from tests.pages.app import open_page, text


def test_the_newest_commit_is_open_at_first(good: Path) -> None:
    app = open_page("timeline", good)
    assert "v6 · DELETE" in text(app)


def test_a_link_opens_the_drawer_of_a_commit(good: Path) -> None:
    app = open_page("timeline", good, commit="4")
    assert app.selectbox(key="pick_commit").value == "4"
    assert "v4 · ADD COLUMNS" in text(app)


def test_choosing_a_commit_opens_its_drawer_and_writes_the_url(good: Path) -> None:
    app = open_page("timeline", good)
    app.selectbox(key="pick_commit").set_value("2").run()
    assert "v2 · WRITE" in text(app)
    assert app.query_params["commit"] == "2"


def test_the_drawer_says_who_wrote_what(good: Path) -> None:
    app = open_page("timeline", good, commit="5")
    facts = dict(app.table[0].value.itertuples(index=False, name=None))
    assert facts["writer"] == "ingest"
    assert facts["engine"] == "a test"
    assert facts["committed"] == "2026-03-06 06\\:00\\:00 UTC"
    assert facts["added"].startswith("1 file, ")
    assert facts["added"].endswith(", 60 rows")


def test_commits_can_be_narrowed_to_a_lane(good: Path) -> None:
    app = open_page("timeline", good)
    app.pills(key="lanes").set_value(["schema"]).run()
    assert not app.exception
    assert app.dataframe[0].value["version"].to_list() == ["v4"]
    assert "v4 · ADD COLUMNS" in text(app)


def test_commits_can_be_narrowed_to_a_writer(good: Path) -> None:
    app = open_page("timeline", good)
    app.selectbox(key="writer").set_value("li").run()
    assert app.dataframe[0].value["version"].to_list() == ["v6", "v4"]


def test_a_filter_that_nothing_passes_says_so(good: Path) -> None:
    app = open_page("timeline", good)
    app.pills(key="lanes").set_value(["schema"]).run()
    app.selectbox(key="writer").set_value("ingest").run()
    assert not app.exception
    assert "No commit passes these filters" in text(app)


def test_a_commit_that_the_filters_hide_gives_way_to_the_newest_shown(good: Path) -> None:
    app = open_page("timeline", good, commit="2")
    app.selectbox(key="writer").set_value("li").run()
    assert not app.exception
    assert "v6 · DELETE" in text(app)
