"""Quality: loads that are not normal are found and named, clean ones are not; all from statistics alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from lakeview import views
from lakeview.model.findings import Finding, Severity
from lakeview.model.frames import COMMITS, LIFETIMES
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot
from lakeview.model.table_metadata import TableMetadata

START = datetime(2026, 1, 1, 4, tzinfo=UTC)
STATISTIC: dict[str, pl.DataType] = {
    "min": pl.Int64(), "max": pl.Int64(), "null_count": pl.Int64(), "exact": pl.Boolean(),
    "null_count_exact": pl.Boolean(),
}  # fmt: skip


def history_of(loads: Sequence[dict[str, Any]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """LIFETIMES with the statistics of x, and the TIMELINE: one load a day, one file each; `removed` by a later one."""
    commits, lives = [], []
    for version, load in enumerate(loads):
        rows = load.get("rows", 1000)
        repair = next((i for i, other in enumerate(loads) if other.get("takes_back") == version), None)
        back, target = load.get("takes_back"), load.get("restores")
        commits.append(
            {
                "version": version, "position": version, "timestamp": START + timedelta(days=version),
                "operation": "WRITE" if target is None else "RESTORE",
                "parameters": None if target is None else json.dumps(target), "user": "feed",
                "files_added": 1, "files_removed": 0 if back is None else 1,
                "bytes_added": 10, "bytes_removed": 0 if back is None else 10, "records_added": rows,
                "records_removed": 0, "schema_changed": False, "protocol_changed": False, "data_change": True,
            }
        )  # fmt: skip
        if target is not None:  # which files it removes and adds again matters not
            continue
        x = {"min": load.get("min", 0), "max": load.get("max", 100), "null_count": load.get("nulls", 10), "exact": True}
        lives.append(
            {
                "path": f"f{version}", "added": version, "removed": repair, "size": 10, "records": rows,
                "statistics": None if load.get("silent") else {"x": {**x, "null_count_exact": True}},
            }
        )  # fmt: skip
    types = {**LIFETIMES, "statistics": pl.Struct({"x": pl.Struct(STATISTIC)})}
    lifetimes = pl.DataFrame(lives, schema=types, orient="row")
    return lifetimes, views.timeline.commits.timeline(pl.DataFrame(commits, schema=COMMITS, orient="row"), lifetimes)


def claims(loads: Sequence[dict[str, Any]]) -> list[tuple[Severity, str]]:
    lifetimes, timeline = history_of(loads)
    changes = views.quality.sudden_changes.sudden_changes(views.quality.column_loads.column_loads(lifetimes, timeline))
    anomaly_rows = views.quality.anomalies.anomalies(timeline, changes)
    assert anomaly_rows.schema == views.quality.anomalies.ANOMALIES
    bad = views.quality.anomalies.anomaly_findings(anomaly_rows, START)
    return [(f.severity, f.claim) for f in bad or views.quality.anomalies.normal_finding(changes)]


USUAL: list[dict[str, Any]] = [{"nulls": 10 + i % 5, "max": 100 + i % 7} for i in range(12)]
ATTENTION, NOTE, PASS = Severity.ATTENTION, Severity.NOTE, Severity.PASS


@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        pytest.param(USUAL, [(PASS, "No anomalous loads")], id="a table whose loads are alike"),
        pytest.param(
            [*USUAL, {"nulls": 900}],
            [(ATTENTION, "v12: x is null in 90.0 % of 1,000 rows, expected 1.1 %")],
            id="nearly all is null",
        ),
        pytest.param(
            [{"nulls": 900}, *USUAL],
            [(ATTENTION, "v0: x is null in 90.0 % of 1,000 rows, expected 1.1 %")],
            id="the first load is odd",
        ),
        pytest.param(
            [*USUAL[:3], {"nulls": 900}, *USUAL[4:7]],
            [(ATTENTION, "v3: x is null in 90.0 % of 1,000 rows, expected 1.1 %")],
            id="in the midst of few loads",
        ),
        pytest.param(
            [*USUAL, {"max": 6000}],
            [(ATTENTION, "v12: x reaches 6,000, expected at most 106")],
            id="another unit: sixty times the values",
        ),
        pytest.param(
            [*USUAL, {"rows": 50, "nulls": 1}],
            [(ATTENTION, "v12: 50 rows, expected 1,000")],
            id="hardly any rows",
        ),
        pytest.param(
            [*[{"rows": 5, "nulls": 0}] * 12, {"rows": 5, "nulls": 2}], [(PASS, "No anomalous loads")], id="two nulls"
        ),
        pytest.param(
            [*USUAL, {"nulls": 900}, USUAL[0], {"restores": {"version": 11}}],
            [(NOTE, "v12: x is null in 90.0 % of 1,000 rows, expected 1.1 %")],
            id="a table restored to the version before it",
        ),
        pytest.param(
            [*USUAL, {"nulls": 900}, {"restores": {"version": 11}}, {"restores": {"version": 12}}],
            [(ATTENTION, "v12: x is null in 90.0 % of 1,000 rows, expected 1.1 %")],
            id="and restored back",
        ),
        pytest.param(
            [
                *USUAL,
                {"nulls": 900},
                USUAL[0],
                {"restores": {"version": None, "timestamp": "2026-01-12T06:00:00+02:00"}},
            ],
            [(NOTE, "v12: x is null in 90.0 % of 1,000 rows, expected 1.1 %")],
            id="a table restored to a point in time",
        ),
        pytest.param(
            [*USUAL, {"nulls": 900}, USUAL[0], {"restores": {"version": None, "timestamp": "2026-01-12 06:00:00"}}],
            [(ATTENTION, "v12: x is null in 90.0 % of 1,000 rows, expected 1.1 %")],
            id="restored to a point in time without a zone",
        ),
        pytest.param([*USUAL, {"rows": 1, "nulls": 0}], [(ATTENTION, "v12: 1 row, expected 1,000")], id="one row"),
        pytest.param(
            [*USUAL, {"nulls": 500}, {"nulls": 500}, {"nulls": 505}],
            [(ATTENTION, "v12: x is null in 50.0 % of 1,000 rows, expected 1.1 %")],
            id="a change that stays is told once, where it began",
        ),
        pytest.param(
            [*USUAL, {"nulls": 900}, {"takes_back": 12}, *USUAL],
            [(NOTE, "v12: x is null in 90.0 % of 1,000 rows, expected 1.1 %")],
            id="a bad load that was repaired",
        ),
        pytest.param(
            [{"nulls": 0, "max": 100 * i} for i in range(1, 20)],
            [(PASS, "No anomalous loads")],
            id="a value that grows",
        ),
        pytest.param([{"silent": True}] * 8, [], id="without statistics nothing is judged"),
        pytest.param(USUAL[:3], [], id="three loads are too few to judge"),
    ],
)
def test_what_is_not_normal_is_named(loads: list[dict[str, Any]], expected: list[tuple[Severity, str]]) -> None:
    assert claims(loads) == expected


@pytest.mark.parametrize(
    ("infinite", "expected"),
    [
        pytest.param([12], [(12, ["x reaches inf, expected at most 106"])], id="one load"),
        pytest.param(range(0, 13, 2), [], id="every other load"),
    ],
)
def test_infinite_values_are_outside_a_finite_range(infinite: Sequence[int], expected: list[tuple[int, Any]]) -> None:
    lifetimes, timeline = history_of([*USUAL, {}])
    high = pl.when(pl.col("added").is_in(list(infinite))).then(float("inf")).otherwise(pl.col("x").struct["max"])
    x = lifetimes.unnest("statistics").select(x=pl.col("x").struct.with_fields(max=high, min=100.0 - high))
    lifetimes = lifetimes.with_columns(statistics=x.to_struct("statistics"))
    changes = views.quality.sudden_changes.sudden_changes(views.quality.column_loads.column_loads(lifetimes, timeline))
    assert views.quality.anomalies.anomalies(timeline, changes).select("version", "reasons").rows() == expected


@pytest.mark.parametrize(
    ("earlier", "rewritten", "expected"),
    [
        pytest.param({"nulls": 900, "max": 9_000}, {"nulls": 900, "max": 9_000}, False, id="as bad as before"),
        pytest.param({"nulls": 10}, {"nulls": 900}, True, id="made null"),
        pytest.param({"max": 100}, {"max": 9_000}, True, id="made large"),
        pytest.param({"silent": True}, {"nulls": 900, "max": 9_000}, False, id="files that do not tell"),
        pytest.param({"nulls": 300}, {"rows": 300, "nulls": 300}, False, id="a delete of all but the nulls"),
    ],
)
def test_a_load_that_rewrites_files_is_judged_by_what_it_adds(
    earlier: dict[str, Any], rewritten: dict[str, Any], *, expected: bool
) -> None:
    lifetimes, timeline = history_of([*USUAL, earlier, rewritten])
    lifetimes = lifetimes.with_columns(removed=pl.when(pl.col("added") == 12).then(13))
    timeline = timeline.with_columns(lane=pl.when(pl.col("version") == 13).then(pl.lit("change")).otherwise("lane"))
    changes = views.quality.sudden_changes.sudden_changes(views.quality.column_loads.column_loads(lifetimes, timeline))
    last = changes.filter(pl.col("version") == 13).row(0, named=True)
    assert (last["sudden"] or last["sudden_range"]) is expected


def test_columns_that_cannot_be_judged_are_not_counted_as_normal() -> None:
    changes = pl.DataFrame({"version": [0, 1, 1], "column": ["x", "x", "y"], "usual": [None, 0.1, None]})
    (normal,) = views.quality.anomalies.normal_finding(changes)
    assert normal.evidence == "2 loads, 1 column; 1 of 2 without enough statistics"


def test_a_finding_names_the_writer_and_what_repaired_it() -> None:
    lifetimes, timeline = history_of([*USUAL, {"nulls": 900}, {"takes_back": 12}, *USUAL])
    changes = views.quality.sudden_changes.sudden_changes(views.quality.column_loads.column_loads(lifetimes, timeline))
    now = START + timedelta(days=14)
    anomaly_rows = views.quality.anomalies.anomalies(timeline, changes)
    (repaired,) = views.quality.anomalies.anomaly_findings(anomaly_rows, now)
    assert repaired.evidence == "feed, 2 days ago, 2026-01-13 04:00 UTC; repaired by v13, feed, 1 day later"
    assert (repaired.place, repaired.column) == ("v12", "x")
    then = views.quality.anomalies.anomalies(timeline, changes, version=12)  # nobody had repaired it yet
    (still_open,) = views.quality.anomalies.anomaly_findings(then, now)
    assert (still_open.severity, still_open.commit, still_open.column) == (ATTENTION, 12, "x")
    assert still_open.evidence == "feed, 2 days ago, 2026-01-13 04:00 UTC; repaired since, by v13"
    assert views.quality.anomalies.anomalies(timeline, changes, version=11).is_empty()
    marked = views.quality.anomalies.with_anomalies(timeline, anomaly_rows)
    assert marked.schema == timeline.schema
    assert marked.filter("suspicious").select("version", "label", "note").rows() == [
        (12, "bad load", "x is null in 90.0 % of 1,000 rows, expected 1.1 %; repaired by v13 after 24 h")
    ]


@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        pytest.param(
            [{"nulls": 900}, {"nulls": 850}, {"nulls": 880}],
            {12: "still so in the next 2 loads, to v14, the newest"},
            id="nulls ever since",
        ),
        pytest.param(
            [{"nulls": 900}, {"nulls": 850}, *USUAL[:2]], {12: "still so in the next load, v13"}, id="nulls for a time"
        ),
        pytest.param([{"nulls": 900}, USUAL[0], {"nulls": 900}], {12: None}, id="nulls again, but not in the next"),
        pytest.param([{"nulls": 300}, {"nulls": 900}], {12: None, 13: None}, id="one that has a finding of its own"),
        pytest.param([{"nulls": 900}, {"takes_back": 12}, {"nulls": 900}], {12: None}, id="of a reverted load"),
        pytest.param(
            [{"max": 9_000}, {"max": 8_000}],
            {12: "still so in the next load, v13, the newest"},
            id="values above the range",
        ),
        pytest.param(
            [{"min": -9_000}, {"min": -8_000}, USUAL[0]],
            {12: "still so in the next load, v13"},
            id="values below the range",
        ),
    ],
)
def test_an_anomaly_says_how_many_loads_after_it_are_like_it(
    loads: list[dict[str, Any]], expected: dict[int, str | None]
) -> None:
    lifetimes, timeline = history_of([*USUAL, *loads])
    changes = views.quality.sudden_changes.sudden_changes(views.quality.column_loads.column_loads(lifetimes, timeline))
    anomaly_rows = views.quality.anomalies.anomalies(timeline, changes)
    alike = {
        load: next((text for text in why if "still" in text), None)
        for load, why in anomaly_rows.select("version", "reasons").iter_rows()
    }
    assert {load: alike[load] for load in expected} == expected
    then = views.quality.anomalies.anomalies(timeline, changes, version=12)
    assert [len(why) for why in then.filter(pl.col("version") == 12)["reasons"]] == [1]


def test_the_newest_load_of_a_column_is_no_delete_that_rewrote_the_table() -> None:
    lifetimes, timeline = history_of([*USUAL, {"nulls": 900}, {"rows": 12_000, "nulls": 1_000}])
    lifetimes = lifetimes.with_columns(removed=pl.when(pl.col("added") < 13).then(13))
    timeline = timeline.with_columns(lane=pl.when(pl.col("version") == 13).then(pl.lit("change")).otherwise("lane"))
    changes = views.quality.sudden_changes.sudden_changes(views.quality.column_loads.column_loads(lifetimes, timeline))
    tree = pl.DataFrame([{"path": "x", "leaf": True}], schema=views.schema.columns.SCHEMA_TREE)
    columns = views.quality.column_states.column_quality(tree, changes, timeline)
    assert columns.select("load", "load_null_share", "anomalies").row(0) == (12, 0.9, 1)
    rewrite = changes.filter(pl.col("version") == 13)
    assert views.quality.column_states.column_quality(tree, rewrite, timeline)["load"].to_list() == [13]


def test_a_finding_about_the_rows_of_a_load_is_about_no_column() -> None:
    lifetimes, timeline = history_of([*USUAL, {"rows": 50, "nulls": 1}])
    changes = views.quality.sudden_changes.sudden_changes(views.quality.column_loads.column_loads(lifetimes, timeline))
    findings = views.quality.anomalies.anomaly_findings(views.quality.anomalies.anomalies(timeline, changes), START)
    assert [(each.commit, each.column) for each in findings] == [(12, None)]


def test_the_loads_that_a_table_ends_with_are_restored_to_the_version_before_them() -> None:
    def command(loads: Sequence[dict[str, Any]]) -> str | None:
        lifetimes, timeline = history_of(loads)
        changes = views.quality.sudden_changes.sudden_changes(
            views.quality.column_loads.column_loads(lifetimes, timeline)
        )
        anomaly_rows = views.quality.anomalies.anomalies(timeline, changes)
        snapshot = Snapshot(TableMetadata("/t", "delta", len(loads) - 1, None, Schema(())))
        return views.retention.remedies.restore_command(snapshot, timeline, anomaly_rows)

    restore = "RESTORE TABLE delta.`/t` TO VERSION AS OF {}"
    assert command([*USUAL, {"nulls": 900}]) == restore.format(11)
    assert command([*USUAL, {"nulls": 400}, {"nulls": 900}]) == restore.format(11)
    assert command([*USUAL, {"nulls": 900}, *USUAL[:1]]) is None  # it would take a good load back as well
    assert command(USUAL) is None


def test_a_load_without_statistics_is_unknown_and_never_zero() -> None:
    lifetimes, timeline = history_of([{}, {"silent": True}])
    loads = views.quality.column_loads.column_loads(lifetimes, timeline)
    assert loads.select("version", "null_share", "mark", "low", "high").rows() == [
        (0, 0.01, "", 0.0, 100.0),
        (1, None, None, None, None),
    ]
    assert loads["records"].to_list() == [1000, 1000]  # rows are counted all the same


def test_a_file_whose_rows_were_deleted_is_not_loaded_again() -> None:
    lifetimes, timeline = history_of([{}, {}])
    again = lifetimes[:1].with_columns(added=pl.lit(1, pl.Int64), deletion_vector=pl.lit("v"))
    assert views.quality.column_loads.column_loads(pl.concat([lifetimes, again]), timeline)["records"].to_list() == [
        1000,
        1000,
    ]


def test_a_file_from_before_the_first_commit_told_is_nobody_s_load() -> None:
    lifetimes, timeline = history_of([{}, {}])
    before = lifetimes[:1].with_columns(added=pl.lit(None, pl.Int64), removed=pl.lit(0, pl.Int64))
    assert views.quality.column_loads.column_loads(pl.concat([lifetimes, before]), timeline)["version"].to_list() == [1]


def test_every_version_is_told_for_the_whole_table() -> None:
    lifetimes, timeline = history_of([{}, {"nulls": 90, "max": 700}, {"takes_back": 1}])
    states = views.quality.column_states.column_states(lifetimes, timeline)
    assert states.select("version", "records", "null_share", "mark", "high", "range_is").rows() == [
        (0, 1000, 0.01, "", 100.0, "exact"),
        (1, 2000, 0.05, "", 700.0, "exact"),
        (2, 2000, 0.01, "", 100.0, "exact"),
    ]


def test_rows_that_are_a_bound_bound_the_null_share() -> None:
    lifetimes, timeline = history_of([{}, {"rows": None}, {"rows": None, "nulls": 1_000, "takes_back": 1}])
    states = views.quality.column_states.column_states(lifetimes, timeline)
    assert states.select("records_mark", "records", "null_share", "mark").rows() == [
        ("", 1000, 0.01, ""),
        ("\N{GREATER-THAN OR EQUAL TO}", 1000, 0.02, "\N{LESS-THAN OR EQUAL TO}"),
        ("\N{GREATER-THAN OR EQUAL TO}", 1000, None, None),
    ]
    bounded = timeline.with_columns(least_records=pl.lit(2500))
    assert views.quality.column_states.column_states(lifetimes, bounded)["null_share"].to_list() == [0.01, 0.008, 0.404]


def test_a_range_of_some_files_is_partial_as_in_the_schema() -> None:
    lifetimes, timeline = history_of([{}, {"silent": True}, {"silent": True, "takes_back": 0}])
    states = views.quality.column_states.column_states(lifetimes, timeline)
    assert states.select("low", "high", "max_text", "range_is").rows() == [
        (0.0, 100.0, "100", "exact"),
        (0.0, 100.0, "100", "partial"),
        (None, None, None, None),
    ]
    trend = views.quality.trends.state_trend(states, "x", "high")
    assert trend.select("value", "mark").rows()[:2] == [(100.0, ""), (100.0, "\N{ALMOST EQUAL TO}")]


def test_versions_whose_numbers_have_no_order_are_told_in_theirs() -> None:
    lifetimes, timeline = history_of([{}, {"nulls": 90}, {}])
    ids = {0: 900, 1: 7, 2: 50}
    ids_by_column = [pl.col(c).replace_strict(ids, default=None, return_dtype=pl.Int64) for c in ("added", "removed")]
    renamed = timeline.with_columns(pl.col("version").replace_strict(ids, return_dtype=pl.Int64))
    states = views.quality.column_states.column_states(lifetimes.with_columns(ids_by_column), renamed)
    assert states.select("version", "records").rows() == [(900, 1000), (7, 2000), (50, 3000)]


def test_a_reverted_load_that_is_unusual_is_an_anomaly_everywhere() -> None:
    unusual = {"nulls": 145}
    loads: list[dict[str, Any]] = [USUAL[0], {"nulls": 120}, *USUAL[2:], unusual, {**USUAL[0], "takes_back": 12}]
    lifetimes, timeline = history_of(loads)
    q = views.quality
    changes = q.sudden_changes.sudden_changes(q.column_loads.column_loads(lifetimes, timeline))
    anomaly_rows = q.anomalies.anomalies(timeline, changes)
    assert anomaly_rows.filter(version=12)["reasons"].to_list() == [
        ["x is null in 14.5 % of 1,000 rows, expected 1.2 %"]
    ]
    shares = q.sudden_changes.null_shares_by_load(changes, 100, {}, timeline["version"])
    for marked in (
        q.sudden_changes.newest_first(changes, "x").filter("anomaly"),
        shares.filter("unusual"),
        q.trends.null_trend(changes, "x").filter("outside"),
    ):
        assert set(marked["version"]) == set(anomaly_rows["version"])
    reasons = views.timeline.events.reason_columns
    assert [
        reasons(timeline, anomaly_rows, 12),
        reasons(timeline, anomaly_rows, 12, 11),
        reasons(timeline, anomaly_rows, 11, 2),
    ] == [
        ["x"],
        ["x"],
        [],
    ]
    marks = q.trends.null_trend(changes, "x").filter("outside").select("version", "repaired")
    assert marks.rows() == [(1, False), (12, True)]


def test_loads_before_a_column_are_left_out_and_unknown_ones_are_not() -> None:
    lifetimes, timeline = history_of([{"nulls": None}, *USUAL])
    changes = views.quality.sudden_changes.sudden_changes(views.quality.column_loads.column_loads(lifetimes, timeline))
    every = timeline["version"]

    def versions(first: dict[str, int | None]) -> list[int]:
        shares = views.quality.sudden_changes.null_shares_by_load(changes, 100, first, every)
        return shares.filter(column="x")["version"].to_list()

    assert versions({}) == every.to_list()
    assert versions({"x": every[2]}) == every.to_list()[2:]
    assert versions({"x": None}) == []


def test_loads_by_the_day_after_loads_by_the_month_have_a_band_of_their_own() -> None:
    days = [*range(0, 241, 30), *range(241, 261)]
    rows = [30_000 + place % 3 * 300 if day <= 240 else 1000 + place % 3 * 10 for place, day in enumerate(days)]
    _, timeline = history_of([{"rows": n} for n in rows])
    start = datetime(2026, 1, 1, tzinfo=UTC)
    timeline = timeline.with_columns(
        timestamp=pl.Series([start + timedelta(days=day) for day in days]).dt.cast_time_unit("ms")
    )
    band = views.quality.trends.rows_trend(timeline).tail(18)
    assert band["band_days"].to_list() == [1.0] * 18, (
        "not of rows a load: those of the months are among the loads around"
    )
    assert band.filter((pl.col("band_low") < 800) | (pl.col("band_high") > 1200)).is_empty()


def test_a_load_that_adds_a_column_is_one_of_the_loads() -> None:
    _, timeline = history_of([{"rows": 30_000 + place % 3 * 300} for place in range(10)])
    month = pl.col("timestamp") + pl.duration(days=30) * pl.int_range(pl.len())
    lane = pl.when(pl.int_range(pl.len()) == 5).then(pl.lit("schema")).otherwise("lane")
    trend = views.quality.trends.rows_trend(timeline.with_columns(timestamp=month, lane=lane))
    assert trend["version"].to_list() == timeline["version"].to_list()
    assert trend.filter((pl.col("band_low") < 29_000) | (pl.col("band_high") > 32_000)).is_empty()


def test_trends_mark_only_what_falls_out() -> None:
    lifetimes, timeline = history_of([*USUAL, {"nulls": 900, "max": 6000, "rows": 1000}])
    changes = views.quality.sudden_changes.sudden_changes(views.quality.column_loads.column_loads(lifetimes, timeline))
    trends = views.quality.trends
    for trend in (trends.null_trend(changes, "x"), trends.range_trend(changes, "x", "high")):
        assert trend.schema == views.quality.trends.LOAD_TREND
        assert trend.filter("outside")["version"].to_list() == [12]
    assert views.quality.trends.rows_trend(timeline)["outside"].sum() == 0
    assert views.quality.trends.gap_trend(timeline)["outside"].sum() == 0
    assert views.quality.trends.event_column(changes) is None


def test_a_value_far_below_is_in_the_trend_of_the_min_alone() -> None:
    lifetimes, timeline = history_of([*USUAL, {"min": -6000}])
    changes = views.quality.sudden_changes.sudden_changes(views.quality.column_loads.column_loads(lifetimes, timeline))
    assert views.quality.trends.range_trend(changes, "x", "low").filter("outside")["version"].to_list() == [12]
    assert views.quality.trends.range_trend(changes, "x", "high")["outside"].sum() == 0
    assert list(views.quality.trends.range_trends(changes, "x")) == ["minimum"]
    calm = changes.filter(pl.col("version") < 12)
    assert list(views.quality.trends.range_trends(calm, "x")) == ["maximum"]


def test_a_very_long_name_does_not_fill_the_claim() -> None:
    lifetimes, timeline = history_of([*USUAL, {"nulls": 900, "min": -6000}])
    changes = views.quality.sudden_changes.sudden_changes(views.quality.column_loads.column_loads(lifetimes, timeline))
    long = changes.with_columns(column=pl.lit("x" * 10_000))
    (reasons,) = views.quality.anomalies.anomalies(timeline, long)["reasons"]
    assert [len(reason) < 120 for reason in reasons] == [True, True]


DAY = timedelta(days=1)
NEWS, HISTORY = [0.2, 0.3, 0.2, 3.7], [4708.2, 4708.3, 4708.2, 4711.7]


@pytest.mark.parametrize(
    ("days", "between", "usual"),
    [
        pytest.param(NEWS, DAY, None, id="what happened the day before is news"),
        pytest.param(HISTORY, DAY, 4708.25, id="what happened in another decade is history"),
        pytest.param([400.0] * 4, DAY, 400.0, id="a year is far back for a daily load"),
        pytest.param([400.0] * 4, 30 * DAY, None, id="and not for a monthly one"),
        pytest.param([4708.0] * 4, 365 * DAY, 4708.0, id="ten years are far back for any"),
        pytest.param([500.0], DAY, 500.0, id="of a single load the year decides"),
        pytest.param([None], DAY, None, id="where nothing is known nothing is usual"),
    ],
)
def test_old_events_are_measured_against_what_is_usual(
    days: list[float | None], between: timedelta, usual: float | None
) -> None:
    moments = [datetime(2026, 1, 1, tzinfo=UTC) + i * between for i in range(len(days))]
    rows = {"version": list(range(len(days))), "timestamp": moments, "value": days, "band_low": days, "band_high": days}
    lags = pl.DataFrame(rows, schema_overrides={n: t for n, t in views.quality.trends.LOAD_TREND.items() if n in rows})
    assert views.quality.trends.usual_of_history(lags) == (None if usual is None else pytest.approx(usual))
    values = views.quality.trends.beyond(lags, usual or 0.0)["value"].to_list()
    assert values == [None if day is None else pytest.approx(day - (usual or 0.0)) for day in days]


@pytest.mark.parametrize(
    ("loads", "text"),
    [
        pytest.param([(0, -3), (1, -0.1)], "1 day behind", id="to the load that brought it"),
        pytest.param([(0, -1), (1, 0), (2, None)], "1 day behind", id="where nothing is known of the latest"),
        pytest.param([(0, -0.2)], "", id="on the same day"),
        pytest.param([(0.9, 0)], "", id="late on the same day"),
        pytest.param([(14.9, 1)], "13 days behind", id="late on a day"),
        pytest.param([(0, 2)], "", id="an event to come"),
        pytest.param([(0, None)], "", id="where nothing is known"),
        pytest.param([(0, -1), (1, 0), (2, 1), (3, 1, 4), (4, 1)], "1 day behind", id="a repair comes late"),
        pytest.param([(0, -1), (1, 0), (2, 2, 3), (3, None)], "1 day behind", id="a load that was taken back"),
        pytest.param([(0, -1), (1, 0), (2, 1.5, 3), (3, 1.5)], "", id="and brought again"),
        pytest.param([(0, -1), (30, 29), (60, 59), (64, 59)], "1 day behind", id="the same again in the usual time"),
        pytest.param([(0, -1), (1, 0), *((day, 0) for day in range(2, 31))], "30 days behind", id="the same nightly"),
        pytest.param([(0, -4000), (1, -3999), (2, -3998)], "", id="history"),
    ],
)  # fmt: skip
def test_how_late_the_data_is(loads: list[tuple[Any, ...]], text: str) -> None:
    """Loads as their day, the day of their newest event, and the load that takes it back."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rows = {
        "version": range(len(loads)),
        "timestamp": [start + timedelta(days=load[0]) for load in loads],
        "column": "day",
        "newest": [None if load[1] is None else start + timedelta(days=load[1]) for load in loads],
        "taken_back_by": [load[2] if len(load) > 2 else None for load in loads],
    }
    schema = {name: views.quality.sudden_changes.SUDDEN[name] for name in rows}
    changes = pl.DataFrame({**rows, "column": ["day"] * len(loads)}, schema=schema)
    assert views.quality.lateness.data_lateness(changes) == text


@pytest.mark.parametrize(
    ("newest", "claims"),
    [
        pytest.param([*range(8), *[7] * 9], ["No newer day for 9 days, though 9 loads came since"], id="for days"),
        pytest.param([*range(8), 7, 7], [], id="within twice the usual gap"),
        pytest.param([0, 1, 2, *[2] * 9], [], id="too few to know what is usual"),
        pytest.param([*range(-4000, -3992), *[-3993] * 9], [], id="history"),
    ],
)
def test_loads_without_newer_events_need_attention(newest: list[int], claims: list[str]) -> None:
    """A load a day with the day of its newest event."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rows = {
        "version": range(len(newest)),
        "timestamp": [start + timedelta(days=day) for day in range(len(newest))],
        "column": ["day"] * len(newest),
        "newest": [start + timedelta(days=day) for day in newest],
        "taken_back_by": [None] * len(newest),
    }
    changes = pl.DataFrame(rows, schema={name: views.quality.sudden_changes.SUDDEN[name] for name in rows})
    assert [each.claim for each in views.quality.lateness.lateness_findings(changes)] == claims


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({}, [(6, 5, 1000, 3)], id="all alike"),
        pytest.param({"rows": 999}, [], id="another row"),
        pytest.param({"nulls": 11}, [], id="another null"),
        pytest.param({"max": 999}, [], id="another max"),
        pytest.param({"takes_back": 5}, [], id="in place of the first"),
        pytest.param({"ranges": 3}, [], id="where few ranges occur"),
        pytest.param({"path": "lake/day=2/f"}, [], id="in another partition"),
        pytest.param({"path": "lake/day=1/f"}, [(6, 5, 1000, 3)], id="in the same partition"),
        pytest.param({"again_after": 1000}, [], id="after a delete of as many rows"),
        pytest.param({"again_after": 999}, [(6, 5, 1000, 3)], id="after a delete of fewer rows"),
    ],
)
def test_a_load_that_brings_the_rows_of_another_again_is_named(
    change: dict[str, Any], expected: list[tuple[int, ...]]
) -> None:
    loads = [{"rows": 1000 + i, "max": 100 + i % change.get("ranges", 8), "nulls": 10 + i} for i in range(8)]
    loads[5] = {"rows": 1000, "max": 555, "nulls": 10}
    loads[6] = {**loads[5], **change}
    lifetimes, timeline = history_of(loads)
    paths = {5: "lake/day=1/e", 6: change["path"]} if "path" in change else {}
    lifetimes = lifetimes.with_columns(path=pl.col("added").replace_strict(paths, default=pl.col("path")))
    deleted = pl.when(pl.col("version") == 6).then(1000 + change.get("again_after", 0)).otherwise("records_removed")
    timeline = timeline.with_columns(records_removed=deleted)
    x = lifetimes["statistics"].struct.field("x")
    wide = lifetimes.with_columns(pl.DataFrame([x.alias(name) for name in "xyz"]).to_struct("statistics"))
    changes = views.quality.sudden_changes.sudden_changes(views.quality.column_loads.column_loads(wide, timeline))
    assert views.quality.loads.repeated_loads(changes, timeline).rows() == expected
    reasons = views.quality.anomalies.anomalies(timeline, changes).filter(pl.col("version") == 6)["reasons"].to_list()
    words = "the same 1,000 rows as v5, it seems: nulls, min and max are equal in 3 columns"
    assert reasons == ([[words]] if expected else [])


def test_events_far_beyond_the_commit_are_an_anomaly_and_hide_no_later_one() -> None:
    """A load a day, of the day before; one of them ten years ahead, the one after the next 40 days late."""
    days = [*range(-1, 11), 3_650, 12, -27, 14]
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rows = {
        "version": range(len(days)),
        "timestamp": [start + timedelta(days=day) for day in range(len(days))],
        "column": ["at"] * len(days),
        "writer": ["feed"] * len(days),
        "lane": ["append"] * len(days),
        "oldest": [None] * len(days),
        "newest": [start + timedelta(days=day) for day in days],
        "range_exact": [True] * len(days),
        "taken_back_by": [None] * len(days),
    }
    changes = pl.DataFrame(rows, schema={name: views.quality.sudden_changes.SUDDEN[name] for name in rows})
    trend = views.quality.trends.lag_trend(changes, "at")
    assert trend.filter("outside")["version"].to_list() == [12, 14]
    timeline = pl.DataFrame({"version": [], "label": []}, schema={"version": pl.Int64(), "label": pl.String()})
    assert list(views.quality.anomalies._lags(changes, timeline)) == [
        (12, "at reaches 3,638 days beyond the commit", "at"),
        (14, "at is 40 days later than expected", "at"),
    ]


def test_events_of_another_year_are_an_anomaly_where_the_newest_is_as_expected() -> None:
    """A load a day of the two days before; one has an event of 1926, and one brings the days of three years ago."""
    oldest = {7: datetime(1926, 1, 6, tzinfo=UTC), 10: START - timedelta(days=1_000)}
    rows = [
        {
            "version": day, "timestamp": START + timedelta(days=day), "column": "at", "lane": "append",
            "oldest": oldest.get(day, START + timedelta(days=day - 2)),
            "newest": START + timedelta(days=day - 1 if day != 10 else -999), "range_exact": True,
        }
        for day in range(12)
    ]  # fmt: skip
    changes = pl.DataFrame(rows, schema=views.quality.sudden_changes.SUDDEN)
    assert views.quality.trends.far_back(changes, "at").rows() == [(7, pytest.approx(36_527, abs=1))]
    timeline = pl.DataFrame({"version": [], "label": []}, schema={"version": pl.Int64(), "label": pl.String()})
    assert [load for load, *_ in views.quality.anomalies._lags(changes, timeline)] == [10, 7]


def test_a_table_without_newer_events_is_not_called_fresh() -> None:
    on_time = Finding("commits-on-time", Severity.PASS, "The last commit is on time")
    no_news = Finding("no-newer-events", Severity.ATTENTION, "No newer day for 9 days, though 9 loads came since")
    assert views.health.findings.verdict([on_time]) == "Readable and fresh, and nothing needs attention"
    older = views.health.findings.verdict([on_time], is_latest=False)
    assert older == "Readable, and nothing needs attention"
    assert views.health.findings.verdict([on_time, no_news]) == "Readable, but one thing needs attention"


def test_many_loads_of_many_columns_are_compared_each_with_its_own() -> None:
    lifetimes, timeline = history_of([{"nulls": i % 9} for i in range(500)])
    x = lifetimes["statistics"].struct.field("x")
    wide = lifetimes.with_columns(pl.DataFrame([x.alias(f"c{i}") for i in range(200)]).to_struct("statistics"))
    loads = views.quality.sudden_changes.sudden_changes(views.quality.column_loads.column_loads(wide, timeline))
    assert loads.height == 500 * 200
    assert loads["sudden"].sum() == 0


def test_columns_with_a_reason_come_first_and_no_name_is_a_pattern() -> None:
    rows = pl.DataFrame({"_change": ["+"], "a": [1], "^.*$": [2], "x": [3]})
    first = views.timeline.events.columns_first(rows, ["x", "gone", "^.*$"], after=1)
    assert first.columns == ["_change", "x", "^.*$", "a"]
