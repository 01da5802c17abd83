"""The overview's figures: sparklines, changes since another version, bounds in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from lakeview import views
from lakeview.views.timeline.commits import TIMELINE

START = datetime(2026, 1, 1, tzinfo=UTC)


def timeline(*states: tuple[int, int | None, int], lane: str = "append") -> pl.DataFrame:
    """TIMELINE of (version, rows, hours since the start)."""
    rows = [
        {"version": version, "records": records, "timestamp": START + timedelta(hours=hours), "lane": lane}
        for version, records, hours in states
    ]
    return pl.concat([pl.DataFrame(schema=TIMELINE), pl.DataFrame(rows)], how="diagonal_relaxed").cast(TIMELINE)


def test_samples_hold_a_state_until_the_next_commit() -> None:
    samples_found = views.overview.samples(timeline((0, 10, 0), (1, 20, 1), (2, 40, 47)), "records")
    assert samples_found == [10.0, *[20.0] * 46, 40.0]


@pytest.mark.parametrize(
    "states",
    [(), ((0, 10, 0),), ((0, 10, 0), (1, None, 5)), ((0, 10, 0), (1, 20, 0))],
    ids=["no commit", "one commit", "one known state", "one timestamp"],
)
def test_without_two_known_states_there_is_no_sparkline(states: tuple[tuple[int, int | None, int], ...]) -> None:
    assert views.overview.samples(timeline(*states), "records") is None


def test_gaps_are_in_seconds_and_need_three_commits() -> None:
    assert views.overview.commit_gaps(timeline((0, 1, 0), (1, 1, 1), (2, 1, 4))) == [3600.0, 10800.0]
    assert views.overview.commit_gaps(timeline((0, 1, 0), (1, 1, 1))) is None


@pytest.mark.parametrize(
    ("version", "base", "change", "since"),
    [
        pytest.param(2, None, "+20", "since v1", id="the version before"),
        pytest.param(1, 0, "+10", "since v0", id="a base"),
        pytest.param(1, 2, f"{views.units.MINUS}20", "since v2", id="a later base"),
        pytest.param(0, None, None, None, id="the first version has none before it"),
        pytest.param(1, 9, None, None, id="a base that is not on the branch"),
    ],
)
def test_a_figure_is_compared_with_its_base_or_the_version_before(
    version: int, base: int | None, change: str | None, since: str | None
) -> None:
    rows = {0: 10, 1: 20, 2: 40}
    line = pl.concat([timeline((0, 10, 0), (1, 20, 1), (2, 40, 2)), timeline((9, 7, 3), lane="off-branch")])
    progress = views.overview.progress(line, version, base)
    assert progress.past["version"].to_list() == list(range(version + 1))
    assert (progress.change(rows[version], "records"), progress.since) == (change, since)


def test_a_change_of_unknown_values_is_unknown() -> None:
    progress = views.overview.progress(timeline((0, None, 0), (1, 20, 1)), 1, None)
    assert progress.change(20, "records") is None
    assert progress.change(None, "records") is None


def test_random_ids_are_not_named_on_tiles() -> None:
    line = timeline((2749912345678927766, 10, 0), (1749912345678927766, 20, 1))
    assert views.overview.progress(line, 1749912345678927766, None).since == "this commit"
    assert views.overview.progress(line, 1749912345678927766, 2749912345678927766).since == "since the base"


@pytest.mark.parametrize(
    ("hours", "title"),
    [
        (0, "The first minutes"),
        (5, "The first hours"),
        (3 * 24, "Three days"),
        (49 * 24, "49 days"),
        (61 * 24, "Two months"),
        (9000, "Twelve months"),
    ],
)
def test_the_span_of_the_commits_is_named(hours: int, title: str) -> None:
    assert views.overview.span_title(timeline((0, 1, 0), (1, 1, hours))) == title


def test_commits_without_timestamps_have_no_span() -> None:
    assert views.overview.span_title(pl.DataFrame(schema=TIMELINE)) == "History"
    assert views.overview.span_note(timeline((0, 1, 0))) == "1 commit"


def test_unknown_figures_show_their_bound() -> None:
    assert views.units.format_count(None, least=12_040) == "\N{GREATER-THAN OR EQUAL TO} 12,040"
    assert views.units.format_bytes(None, least=2048) == "\N{GREATER-THAN OR EQUAL TO} 2.00 KiB"
    assert views.units.format_count(None, least=0) == views.units.format_bytes(None, least=None) == "unknown"
    assert views.units.format_count(7, least=1) == "7"
    assert views.overview.rows_help(None, 1204).startswith("At least 1,204")
    assert views.overview.rows_help(7, 7) == "7 live rows, exact, from the log."
    assert views.overview.retained_text(0, no_times=False) == "nothing more"
    assert views.overview.retained_text(2048, no_times=False) == "+2.00 KiB"
    assert views.overview.retained_text(2048, no_times=True) is None
    assert views.overview.retained_text(2048, no_times=False, is_bound=True) == "\N{GREATER-THAN OR EQUAL TO} +2.00 KiB"
    assert views.overview.retained_text(0, no_times=False, is_bound=True) is None


def test_the_version_before_is_the_one_on_the_branch() -> None:
    line = pl.concat([timeline((0, 10, 0)), timeline((9, 7, 1), lane="off-branch"), timeline((1, 20, 2))])
    before = {version: views.timeline.commits.version_before(line, version) for version in (0, 9, 1)}
    assert before == {0: None, 9: 0, 1: 0}


def test_files_are_listed_by_verdict_and_path() -> None:
    verdicts = pl.DataFrame({"path": ["b", "a", "c"], "kept": [True, True, False]})
    paths_by_verdict = {
        v: views.pruning.plan.files_with_verdict(verdicts, v)["path"].to_list() for v in ("read", "skipped", "all")
    }
    assert paths_by_verdict == {"read": ["a", "b"], "skipped": ["c"], "all": ["a", "b", "c"]}


def test_the_message_of_a_commit_is_its_user_metadata() -> None:
    actions = pl.DataFrame({"action": ['{"add": {}}', '{"userMetadata": "backfill", "operation": "WRITE"}']})
    assert views.timeline.commits.commit_message(actions) == "backfill"
    assert views.timeline.commits.commit_message(actions.head(1)) is None
    assert views.timeline.commits.commit_message(pl.DataFrame({"action": ['{"userMetadata": 7}']})) is None


def test_the_files_a_table_ever_had_are_estimated_from_its_commits() -> None:
    files_ever = views.quality.column_loads.files_ever
    assert files_ever(pl.DataFrame({"files_added": [3, 4]}), live=5) == 7
    assert files_ever(pl.DataFrame({"files_added": [1, 1]}), live=5) == 7  # the log begins later than the table
    assert files_ever(pl.DataFrame({"files_added": [1, None]}), live=5) is None


def test_changes_are_read_from_the_commit_after_the_base() -> None:
    line = pl.concat([timeline((0, 1, 0), (1, 1, 1), (2, 1, 2)), timeline((9, 7, 3), lane="off-branch")])
    assert views.data.changes.first_after(line, 0, 2) == 1
    assert views.data.changes.first_after(line, 2, 2) is None
    assert views.data.changes.first_after(line, 9, 2) is None
    assert [views.data.changes.first_of_last(line, 2, n) for n in (1, 2, 9)] == [2, 1, 0]
    assert views.data.changes.first_of_last(line, 9, 1) is None


def test_commits_off_the_branch_are_counted_by_name() -> None:
    line = pl.concat([timeline((0, 1, 0), (1, 1, 1)), timeline((9, 7, 3), lane="off-branch")])
    assert views.timeline.commits.commit_count_text(line) == "3 commits, 1 off-branch"
    assert views.timeline.commits.commit_count_text(line.head(2)) == "2 commits"
    assert views.overview.span_note(line).startswith("3 commits, 1 off-branch")
