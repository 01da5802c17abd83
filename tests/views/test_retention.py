"""What a cleanup would take: by removed files, and by versions that expire."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from lakeview import views
from lakeview.model.errors import InvalidRequestError
from lakeview.views.retention.policy import NEVER
from lakeview.views.retention.simulation import Retention
from tests.views.story import MIB, Story, flights

DASH = "\N{EN DASH}"
DAYS = [timedelta(days=n) for n in (0, 1, 7, 30, 365)]


def story() -> Story:
    """Five versions, ten days apart: v1 removes v0's files, v3 v2's; the last is today."""
    past = Story().append(100, size=10 * MIB)
    past.after(days=10).overwrite(0, records=100, size=20 * MIB)
    past.after(days=10).append(50, size=5 * MIB)
    past.after(days=10).overwrite(2, records=50, size=6 * MIB)
    return past.after(days=10).append(1, size=MIB)


def found_in(past: Story, unreadable: dict[int, str] | None = None, **more: Any) -> Retention:
    policy = views.retention.policy.retention_policy({})
    return views.retention.simulation.retention(
        past.versions(unreadable), past.lifetimes(), policy, now=past.now, **more
    )


def test_versions_that_nobody_looked_at_tell_nothing_of_a_clean_up() -> None:
    past = story()
    versions = past.versions().with_columns(readable=pl.lit(None, pl.Boolean))
    with pytest.raises(InvalidRequestError, match="the readability of these versions was not checked"):
        views.retention.simulation.retention(
            versions, past.lifetimes(), views.retention.policy.retention_policy({}), now=past.now
        )


@pytest.mark.parametrize(
    ("days", "files", "size", "versions_lost"),
    [
        pytest.param(0, 2, 15 * MIB, "v0, v2", id="nothing is kept"),
        pytest.param(7, 2, 15 * MIB, "v0, v2", id="a week"),
        pytest.param(20, 1, 10 * MIB, "v0", id="between the two removals"),
        pytest.param(60, 0, 0, None, id="longer than the past"),
    ],
)
def test_removed_files_go_when_they_are_older_than_the_retention(
    days: int, files: int, size: int, versions_lost: str | None
) -> None:
    done = views.retention.simulation.simulate(found_in(story()), timedelta(days=days))
    assert (done.files, done.bytes, done.lost_versions) == (files, size, versions_lost)


def test_a_version_dies_with_the_first_of_its_files() -> None:
    past = Story().append(1, size=1, month=1).append(1, size=2, month=2)
    past.after(days=5).delete(0).after(days=5).delete(1)
    retention = found_in(past.after(days=1))
    needs = dict(retention.versions.select("version", pl.col("needs_ms") / 3_600_000).iter_rows())
    # v0 and v1 need v0's file, which went eleven days ago; v2 only the one that went a day ago
    assert {v: round(h / 24) for v, h in needs.items()} == {0: 6, 1: 6, 2: 1, 3: 0}


def test_what_no_readable_version_needs_is_not_counted() -> None:
    done = views.retention.simulation.simulate(found_in(story(), {0: "a file is missing"}), timedelta())
    assert (done.files, done.bytes, done.lost_versions) == (1, 5 * MIB, "v2")
    assert done.ribbon["state"].to_list() == ["gone", "kept", "at risk", "kept", "kept"]


@pytest.mark.parametrize(
    ("lost", "days", "sentence"),
    [
        ({}, 7, "Current data is safe; 2 old versions go, v0, v2"),
        ({}, 60, "Current data is safe; every version stays readable"),
        ({3: "a file is missing"}, 60, "Current data is safe; every readable version stays readable"),
        ({4: "a file is missing"}, 7, "Current data cannot be read; 2 old versions go, v0, v2"),
        (
            dict.fromkeys(range(5), "a file is missing"),
            7,
            "Current data cannot be read; every readable version stays readable",
        ),
    ],
)
def test_current_data_that_cannot_be_read_is_not_called_safe(lost: dict[int, str], days: int, sentence: str) -> None:
    done = views.retention.simulation.simulate(found_in(story(), lost), timedelta(days=days))
    assert views.retention.simulation.cleanup_sentence(done, latest=4) == sentence


def test_a_file_that_came_back_is_live() -> None:
    past = Story().append(1, size=100).delete(0)
    back = {**past.stays[0], "added": 2, "removed": None}
    past.alter("RESTORE", schema_changed=False)
    past.stays.append(back)
    retention = found_in(past.after(days=90))
    assert retention.retained_bytes == 0
    assert views.retention.simulation.simulate(retention, timedelta()).versions == 0


def test_a_deletion_vector_that_was_replaced_ends_its_version_and_not_its_file() -> None:
    past = Story().append(10, size=100)
    past.alter("DELETE", schema_changed=False)
    past.stays[0]["removed"] = 1
    past.stays.append({**past.stays[0], "added": 1, "removed": 2, "deletion_vector": "first"})
    past.after(days=20).alter("DELETE", schema_changed=False)
    past.stays.append({**past.stays[0], "added": 2, "removed": None, "deletion_vector": "second"})
    retention = found_in(past.after(days=10))
    assert retention.retained_bytes == 0
    assert views.retention.simulation.simulate(retention, timedelta(days=7)).lost_versions == "v1"
    assert views.retention.simulation.simulate(retention, timedelta(days=11)).lost_versions is None


def test_tombstones_say_better_when_a_file_was_removed() -> None:
    past = story()
    removed = past.stays[0]
    moment = past.now - timedelta(days=2)
    tombstones = pl.DataFrame(
        {"path": [removed["path"]], "deletion_vector": [None], "deleted": [moment]},
        schema={"path": pl.String(), "deletion_vector": pl.String(), "deleted": pl.Datetime("ms", "UTC")},
    )
    retention = found_in(past, tombstones=tombstones)
    assert views.retention.simulation.simulate(retention, timedelta(days=7)).lost_versions == "v2"
    assert views.retention.simulation.simulate(retention, timedelta(days=1)).lost_versions == "v0, v2"


@pytest.mark.parametrize("keep", DAYS, ids=str)
def test_the_curve_says_what_the_simulation_says(keep: timedelta) -> None:
    for past in (story(), flights()):
        retention = found_in(past, {0: "cleaned"})
        done = views.retention.simulation.simulate(retention, keep)
        step = (
            views.retention.simulation.retention_curve(retention)
            .filter(pl.col("days") <= keep / timedelta(days=1))
            .tail(1)
        )
        assert step.select("bytes", "files", "versions").row(0) == (done.bytes, done.files, done.versions)


def test_a_long_past_gives_a_short_curve() -> None:
    past = Story()
    for _ in range(1000):
        past.append(1).delete(past.version)
    curve = views.retention.simulation.retention_curve(found_in(past))
    assert curve.height <= 402
    assert curve.row(-1, named=True)["bytes"] == 0


def refs(*rows: tuple[str, str, int, bool, int | None, int | None, int | None]) -> pl.DataFrame:
    names = ("name", "kind", "version", "default", "min_versions_kept", "max_version_age_ms", "max_ref_age_ms")
    return pl.DataFrame(rows, schema=names, orient="row").cast(dict.fromkeys(names[4:], pl.Int64()))


DAY = 86_400_000


def line(days: int = 6) -> Story:
    """One version a day, each replacing all there was."""
    past = Story().append(1, size=MIB)
    for _ in range(days - 1):
        past.after(hours=23).overwrite(past.version, records=1, size=MIB)
    return past


@pytest.mark.parametrize(
    ("rows", "properties", "versions_lost"),
    [
        pytest.param([("main", "branch", 5, True, None, None, None)], {}, f"v0{DASH}v2", id="by age"),
        pytest.param(
            [("main", "branch", 5, True, None, None, None)],
            {"history.expire.min-snapshots-to-keep": "5"},
            "v0",
            id="a number of versions is kept whatever their age",
        ),
        pytest.param([("main", "branch", 5, True, 4, None, None)], {}, f"v0{DASH}v1", id="the branch's own number"),
        pytest.param([("main", "branch", 5, True, None, 9 * DAY, None)], {}, None, id="the branch's own age"),
        pytest.param([("main", "branch", 5, True, 1, 0, None)], {}, f"v0{DASH}v4", id="a branch that keeps no past"),
        pytest.param(
            [("main", "branch", 5, True, None, None, None), ("eoy", "tag", 1, False, None, None, None)],
            {},
            "v0, v2",
            id="a tag keeps its version",
        ),
        pytest.param(
            [("main", "branch", 5, True, None, None, None), ("eoy", "tag", 1, False, None, None, DAY)],
            {},
            f"v0{DASH}v2",
            id="a tag that is too old goes first",
        ),
        pytest.param(
            [("main", "branch", 5, True, None, None, None), ("audit", "branch", 2, False, 2, None, None)],
            {},
            "v0",
            id="another branch keeps its versions",
        ),
    ],
)
def test_versions_expire_as_refs_say(rows: list[Any], properties: dict[str, str], versions_lost: str | None) -> None:
    past = line()
    branches = refs(*rows)
    policy = views.retention.policy.retention_policy(properties, branches)
    retention = views.retention.simulation.retention(
        past.versions(), past.lifetimes(), policy, commits=past.frame(), refs=branches, now=past.now
    )
    done = views.retention.simulation.simulate(retention, timedelta(days=3))
    assert done.lost_versions == versions_lost
    assert done.files == done.versions
    assert done.bytes == done.versions * MIB


def test_a_file_stays_while_any_version_that_has_it_stays() -> None:
    past = Story().append(1, size=7)  # in v0 to v3
    for _ in range(3):
        past.after(days=10).append(1, size=1)
    past.after(days=10).delete(0)
    branches = refs(("main", "branch", 4, True, None, None, None), ("q", "tag", 2, False, None, None, None))
    policy = views.retention.policy.retention_policy({}, branches)
    retention = views.retention.simulation.retention(
        past.versions(), past.lifetimes(), policy, commits=past.frame(), refs=branches, now=past.now
    )
    done = views.retention.simulation.simulate(retention, timedelta(days=1))
    assert done.lost_versions == f"v0{DASH}v1, v3"
    assert (done.files, done.bytes, done.is_unknown) == (0, 0, False)  # the tagged v2 has the file, too


def test_versions_of_a_table_that_only_adds_take_no_file_with_them() -> None:
    past = Story().append(1).after(days=10).append(1).after(days=10)
    branches = refs(("main", "branch", 1, True, None, None, None))
    policy = views.retention.policy.retention_policy({}, branches)
    retention = views.retention.simulation.retention(
        past.versions(), past.lifetimes(), policy, commits=past.frame(), refs=branches, now=past.now
    )
    done = views.retention.simulation.simulate(retention, timedelta(days=1))
    assert (done.lost_versions, done.files, done.bytes, done.is_unknown) == ("v0", 0, 0, False)


def test_a_branch_without_a_past_takes_it_under_any_retention() -> None:
    past = line(3)
    branches = refs(("main", "branch", 2, True, 1, 0, None))
    policy = views.retention.policy.retention_policy({}, branches)
    retention = views.retention.simulation.retention(
        past.versions(), past.lifetimes(), policy, commits=past.frame(), refs=branches, now=past.now
    )
    assert retention.versions["needs_ms"].to_list() == [NEVER, NEVER, 0]


@pytest.mark.parametrize(
    ("properties", "keep", "declared"),
    [
        ({}, timedelta(days=7), None),
        (
            {"delta.deletedFileRetentionDuration": "interval 1 week"},
            timedelta(days=7),
            views.retention.policy.FILES_KEPT,
        ),
        (
            {"delta.deletedFileRetentionDuration": "INTERVAL 2 days 12 hours"},
            timedelta(days=2.5),
            views.retention.policy.FILES_KEPT,
        ),
        ({"delta.deletedFileRetentionDuration": "soon"}, timedelta(days=7), None),
        ({"delta.deletedFileRetentionDuration": "0 hours"}, timedelta(), views.retention.policy.FILES_KEPT),
    ],
)
def test_the_policy_is_read_from_properties(properties: dict[str, str], keep: timedelta, declared: str | None) -> None:
    policy = views.retention.policy.retention_policy(properties)
    assert (policy.rule, policy.keep, policy.declared_text) == ("removed files", keep, declared)


def test_an_endless_retention_is_a_long_one() -> None:
    branches = refs(("main", "branch", 0, True, None, None, None))
    policy = views.retention.policy.retention_policy({"history.expire.max-snapshot-age-ms": str(2**63 - 1)}, branches)
    assert policy.keep == timedelta(days=365_000)


def test_the_cost_of_history_names_the_commits_that_removed_files() -> None:
    past = story()
    cost = views.retention.cost.history_cost(
        found_in(past), views.timeline.commits.timeline(past.frame(), past.lifetimes())
    )
    assert cost.select("version", "files", "bytes").rows() == [(1, 1, 10 * MIB), (3, 1, 5 * MIB)]
    assert cost["share"].sum() == pytest.approx(1)


def test_bytes_written_more_than_once_are_told() -> None:
    past = Story().append(1, size=10).append(1, size=10).optimize(1)
    amplification = views.retention.cost.write_amplification(
        views.timeline.commits.timeline(past.frame(), past.lifetimes())
    )
    assert (
        amplification.written_bytes,
        amplification.loaded_bytes,
        amplification.maintenance_bytes,
        amplification.ratio,
    ) == (40, 20, 20, 2.0)


def test_commits_of_other_branches_write_no_byte_of_this_one() -> None:
    past = Story().append(1, size=10).append(1, size=10).optimize(1)
    line = views.timeline.commits.timeline(past.frame(), past.lifetimes())
    aside = line.with_columns(lane=pl.when(pl.col("version") == 1).then(pl.lit("off-branch")).otherwise("lane"))
    amplification = views.retention.cost.write_amplification(aside)
    assert (amplification.written_bytes, amplification.loaded_bytes, amplification.ratio) == (30, 10, 3.0)


def test_a_table_without_files_costs_nothing() -> None:
    past = Story().alter("CREATE TABLE")
    retention = found_in(past)
    assert views.retention.simulation.retention_curve(retention).rows() == [(0.0, 0, 0, 0)]
    assert views.retention.simulation.simulate(retention, timedelta()).share is None
    assert views.retention.cost.history_cost(retention, views.timeline.commits.timeline(past.frame())).is_empty()
    assert views.retention.cost.write_amplification(views.timeline.commits.timeline(past.frame().clear())).ratio is None


def test_what_the_store_keeps_grows_with_what_is_left_behind() -> None:
    past = story()
    course = views.retention.cost.retained_course(
        found_in(past), views.timeline.commits.timeline(past.frame(), past.lifetimes())
    )
    assert course["bytes"].to_list() == [10 * MIB, 30 * MIB, 35 * MIB, 41 * MIB, 42 * MIB]


def test_the_course_of_a_log_is_told_from_the_moments_of_its_files() -> None:
    at = Story().now
    log = pl.DataFrame(
        {"name": ["b", "a", "c"], "size": [5, 7, 1], "modified": [at, at - timedelta(days=1), None]},
        schema={"name": pl.String(), "size": pl.Int64(), "modified": pl.Datetime("ms", "UTC")},
    )
    assert views.retention.cost.log_course(log)["bytes"].to_list() == [8, 13]
