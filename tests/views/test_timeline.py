"""Timelines from told stories."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

import lakeview as lv
from lakeview import views
from lakeview.model.column_values import format_expression
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.findings import Severity
from lakeview.model.frames import COMMITS, LIFETIMES, VERSIONS
from lakeview.model.schema import Schema
from lakeview.views.health.findings import Evidence
from tests.views.story import START, Story, flights

STATE = ("files", "bytes", "records")


def usual_loads(story: Story, count: int = 8) -> Story:
    for _ in range(count):
        story.after(days=1).append(1000)
    return story


def test_a_timeline_has_its_declared_shape_even_when_empty() -> None:
    line = views.timeline.commits.timeline(pl.DataFrame(schema=COMMITS), pl.DataFrame(schema=LIFETIMES))
    assert line.schema == views.timeline.commits.TIMELINE
    assert line.is_empty()
    assert views.timeline.commits.timeline(pl.DataFrame(schema=COMMITS)).schema == views.timeline.commits.TIMELINE


def test_states_follow_what_each_commit_adds_and_removes() -> None:
    story = Story().append(100, files=2, size=10).append(50, size=5).delete(0).append(7, size=1)
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    assert line.select(STATE).rows() == [(2, 20, 100), (3, 25, 150), (1, 5, 50), (2, 6, 57)]
    assert line["version"].to_list() == [0, 1, 2, 3]


def test_rows_of_the_table_of_commits_have_their_mark_and_the_change_of_rows() -> None:
    story = usual_loads(Story()).append(60_000).append(None)
    rows = views.timeline.commits.commit_rows(views.timeline.commits.timeline(story.frame(), story.lifetimes()))
    assert rows["mark"].to_list() == [*["append"] * 8, "anomaly", "append"]
    assert rows["records_change"].to_list() == [*[1000] * 8, 60_000, None]


def test_summing_commits_gives_the_same_states_as_lifetimes() -> None:
    story = flights()
    by_lifetimes = views.timeline.commits.timeline(story.frame(), story.lifetimes()).select("version", *STATE)
    assert by_lifetimes.equals(views.timeline.commits.timeline(story.frame()).select("version", *STATE))


def test_states_after_a_commit_that_is_missing_are_unknown() -> None:
    story = Story().append(10).append(20).append(30).append(40)
    rest = story.frame().filter(pl.col("version") != 2)
    assert views.timeline.commits.timeline(rest)["records"].to_list() == [10, 30, None]


def test_unknown_rows_make_the_state_unknown_only_while_the_file_lives() -> None:
    story = Story().append(100).append(None).append(5).delete(1)
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    assert line["records"].to_list() == [100, None, None, 105]
    assert line["files"].to_list() == [1, 2, 3, 2]


def test_a_history_that_does_not_reach_the_first_commit_knows_no_state_without_lifetimes() -> None:
    story = Story().append(100).append(10).append(1)
    recent = story.frame().head(2)
    assert views.timeline.commits.timeline(recent)["files"].to_list() == [None, None]
    assert views.timeline.commits.timeline(recent, story.lifetimes())["records"].to_list() == [110, 111]


def test_files_from_before_the_log_count_from_the_first_version_on() -> None:
    story = Story().append(100).append(10).delete(0)
    unknown_birth = story.lifetimes().with_columns(
        added=pl.when(pl.col("added") == 0).then(None).otherwise(pl.col("added"))
    )
    line = views.timeline.commits.timeline(story.frame().head(2), unknown_birth)
    assert line["records"].to_list() == [110, 10]


@pytest.mark.parametrize(
    ("story", "lane"),
    [
        pytest.param(Story().append(1).append(1), "append", id="only adds"),
        pytest.param(Story().append(1).delete(0), "change", id="removes"),
        pytest.param(Story().append(1).overwrite(0, records=2), "change", id="a write that replaces"),
        pytest.param(Story().append(1).append(1, operation="RESTORE"), "change", id="a restore is no load"),
        pytest.param(Story().append(1).optimize(1), "maintenance", id="no logical change"),
        pytest.param(Story().append(1).alter("ADD COLUMNS"), "schema", id="a schema change"),
        pytest.param(Story().append(1).append(1, schema_changed=True), "schema", id="a load that brings a column"),
        pytest.param(Story().append(1, schema_changed=True), "append", id="the first commit brings its schema"),
        pytest.param(Story().append(1).alter("VACUUM END", schema_changed=False), "maintenance", id="by its name"),
        pytest.param(Story().append(1).alter("vacuum end", schema_changed=False), "maintenance", id="in any case"),
        pytest.param(Story().append(1).alter("SET TBLPROPERTIES", schema_changed=False), "other", id="a property"),
        pytest.param(Story().append(1).alter("WRITE", schema_changed=False), "other", id="a write without a file"),
    ],
)
def test_the_lane_is_what_the_commit_did(story: Story, lane: str) -> None:
    assert views.timeline.commits.timeline(story.frame())["lane"].to_list()[-1] == lane


def test_a_delete_by_delete_files_is_a_change_though_it_has_no_data_file() -> None:
    frame = Story().append(1).alter("delete", schema_changed=False).frame()
    by_delete_files = pl.when(pl.col("operation") != "delete").then("records_removed")  # how many is unknown
    assert views.timeline.commits.timeline(frame.with_columns(records_removed=by_delete_files))["lane"][-1] == "change"


def test_a_commit_without_any_information_goes_to_other() -> None:
    frame = Story().append(1).append(1).frame().with_columns(operation=pl.lit(None, pl.String()), files_added=None)
    frame = frame.with_columns(pl.col("files_added").cast(pl.Int64), files_removed=pl.lit(None, pl.Int64))
    assert views.timeline.commits.timeline(frame.cast(COMMITS))["lane"].to_list() == ["other", "other"]


def test_the_writer_is_the_user_or_else_the_engine_or_unknown() -> None:
    story = Story().append(1, user="li@ops").append(1).append(1, engine=None)
    assert views.timeline.commits.timeline(story.frame())["writer"].to_list() == ["li@ops", "Apache-Spark/4.3.0", None]


def test_a_load_far_above_the_usual_stands_out() -> None:
    story = usual_loads(Story()).append(3500)
    last = views.timeline.commits.timeline(story.frame(), story.lifetimes()).row(-1, named=True)
    assert last["suspicious"]
    assert last["note"] == "3.5 times the expected 1000 rows"
    assert last["label"] == "bad load"


def test_a_week_of_rows_after_a_week_is_no_surprise() -> None:
    story = usual_loads(Story()).after(days=6.5).append(7000)
    assert not views.timeline.commits.timeline(story.frame())["suspicious"].any()
    story.after(days=6.5).append(70_000)
    last = views.timeline.commits.timeline(story.frame()).row(-1, named=True)
    assert last["note"] == "11.1 times the expected 6280 rows"


@pytest.mark.parametrize("loads", [0, 4])
def test_too_few_loads_say_nothing_about_the_usual(loads: int) -> None:
    story = usual_loads(Story(), loads).append(1_000_000)
    assert not views.timeline.commits.timeline(story.frame())["suspicious"].any()


def test_a_load_taken_back_is_a_bad_load() -> None:
    story = usual_loads(Story()).append(3500).after(days=3).delete(8)
    bad = views.timeline.commits.timeline(story.frame(), story.lifetimes()).row(8, named=True)
    assert (bad["suspicious"], bad["taken_back_by"], bad["label"]) == (True, 9, "bad load")
    assert bad["note"] == "3.5 times the expected 1000 rows; repaired by v9 after 3 days"


def test_a_load_of_usual_size_taken_back_alone_stands_out_too() -> None:
    story = usual_loads(Story()).append(1000).after(hours=3).overwrite(8, records=990)
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    assert line.filter("suspicious")["version"].to_list() == [8]
    assert line["note"][8] == "repaired by v9 after 4 h"


@pytest.mark.parametrize("operation", ["UPDATE", "MERGE", "DELETE", "overwrite"])
def test_a_load_whose_files_were_rewritten_for_some_of_its_rows_is_no_bad_load(operation: str) -> None:
    story = usual_loads(Story()).append(1000).after(hours=3).overwrite(8, records=1000)
    history = story.frame()
    last = pl.col("version") == 9
    history = history.with_columns(operation=pl.when(last).then(pl.lit(operation)).otherwise("operation"))
    assert not views.timeline.commits.timeline(history, story.lifetimes())["suspicious"].any()


def test_a_table_that_is_refreshed_as_a_whole_takes_nothing_back() -> None:
    story = Story().append(1000)
    for _ in range(8):
        story.after(days=1).refresh(1000)
    assert not views.timeline.commits.timeline(story.frame(), story.lifetimes())["suspicious"].any()


def test_where_loads_are_replaced_all_the_time_that_is_no_news() -> None:
    story = Story().append(1)
    for day in range(10):
        story.after(days=1).append(1000).overwrite(2 * day + 1, records=1000)
    assert not views.timeline.commits.timeline(story.frame(), story.lifetimes())["suspicious"].any()


def test_a_late_partition_explains_its_large_load() -> None:
    story = flights()
    plain = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    assert plain.filter("suspicious")["version"].to_list() == [35, 55]
    sizes = views.partitions.sizes.partition_sizes(story.snapshot())
    arrivals = views.partitions.writes.partition_arrivals(sizes, story.files(), story.lifetimes(), story.frame())
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes(), arrivals=arrivals)
    assert line.filter("suspicious")["version"].to_list() == [35]
    assert line["label"][55] == "late month=9"
    assert line["note"][55] == "4.8 times the expected 1.2 M rows; month=9 arrived 66 days late"


def test_events_name_schema_changes_by_what_changed() -> None:
    story = flights()
    narrow = Schema((Field("carrier", PrimitiveType("string"), id=1),))
    wide = Schema((*narrow.fields, Field("cancel_code", PrimitiveType("string"), id=2)))
    renamed = Schema((Field("airline", PrimitiveType("string"), id=1), wide.fields[1]))
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    events = views.timeline.events.events(line, [(0, START, narrow), (14, START, wide), (44, START, renamed)])
    assert dict(events.select("version", "label").iter_rows()) == {
        14: "+ cancel_code",
        26: "OPTIMIZE",
        35: "bad load",
        44: "carrier \N{RIGHTWARDS ARROW} airline",
        50: "OPTIMIZE",
        55: "bad load",
    }
    assert events.schema == views.timeline.events.EVENTS


def test_events_are_few_and_the_telling_ones_come_first() -> None:
    story = flights()
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    assert views.timeline.events.events(line, limit=3)["version"].to_list() == [14, 35, 55]


@pytest.mark.parametrize(
    ("unreadable", "states"),
    [
        pytest.param([], "kept kept kept kept", id="all kept"),
        pytest.param([0, 1], "gone gone kept kept", id="the oldest are gone"),
        pytest.param([0, 2], "gone kept broken kept", id="a hole is broken"),
        pytest.param([3], "kept kept kept broken", id="the newest is broken"),
        pytest.param([0, 1, 2, 3], "gone gone gone broken", id="nothing can be read"),
    ],
)
def test_readability_tells_gone_from_broken(unreadable: list[int], states: str) -> None:
    story = Story().append(1).append(1).append(1).append(1)
    ribbon = views.timeline.readability.readability(story.versions(dict.fromkeys(unreadable, "no file")))
    assert " ".join(ribbon["state"]) == states
    assert ribbon.schema == views.timeline.readability.RIBBON


def test_versions_that_nobody_looked_at_are_neither_kept_nor_gone() -> None:
    story = Story().append(1).append(1)
    unseen = story.versions().with_columns(readable=pl.lit(None, dtype=pl.Boolean))
    assert views.timeline.readability.readability(unseen)["state"].to_list() == [None, None]
    assert views.health.findings.past_findings(Evidence(story.snapshot(), versions=unseen), story.now) == []


def test_runs_are_ranges_of_one_state() -> None:
    story = flights()
    ribbon = views.timeline.readability.readability(
        story.versions({**dict.fromkeys(range(12), "cleaned"), 50: "a file is missing"})
    )
    runs = views.timeline.readability.readability_runs(ribbon)
    assert runs.schema == views.timeline.readability.RUNS
    assert runs.select("state", "label", "versions").rows() == [
        ("gone", "v0\N{EN DASH}v11", 12),
        ("kept", "v12\N{EN DASH}v49", 38),
        ("broken", "v50", 1),
        ("kept", "v51\N{EN DASH}v67", 17),
    ]
    assert views.timeline.readability.runs_text(runs, "kept") == "v12\N{EN DASH}v49, v51\N{EN DASH}v67"
    assert views.timeline.readability.runs_text(runs, "kept", limit=1) == "v12\N{EN DASH}v49, v51\N{EN DASH}v67"
    more = runs.with_columns(state=pl.lit("kept"))
    assert views.timeline.readability.runs_text(more, "kept", limit=2) == "v50, v51\N{EN DASH}v67 and 2 older ranges"
    assert views.timeline.readability.runs_text(runs, "at risk") is None


def test_runs_of_nothing_are_none() -> None:
    assert (
        views.timeline.readability.readability_runs(
            views.timeline.readability.readability(pl.DataFrame(schema=VERSIONS))
        ).schema
        == views.timeline.readability.RUNS
    )


def test_cadence_is_late_only_against_its_own_rhythm() -> None:
    story = usual_loads(Story(), 10)
    last = story.now - timedelta(hours=1)
    on_time = views.timeline.readability.cadence(story.frame(), last + timedelta(hours=30))
    assert (on_time.usual, on_time.late) == (timedelta(hours=25), False)
    late = views.timeline.readability.cadence(story.frame(), last + timedelta(hours=51))
    assert (late.age, late.late) == (timedelta(hours=51), True)


def test_cadence_without_enough_loads_judges_nothing() -> None:
    assert views.timeline.readability.cadence(
        pl.DataFrame(schema=COMMITS), START
    ) == views.timeline.readability.Cadence(None, None, None, late=False)
    story = Story().append(1).append(1)
    assert views.timeline.readability.cadence(story.frame(), START + timedelta(days=400)).late is False


def test_spans_of_commits_add_up_what_is_told_and_say_where_some_do_not_tell() -> None:
    story = Story()
    for number in range(8):
        story.after(hours=1).append(None if number in (5, 6, 7) else 100, size=10)
        if number in (1, 2, 3):
            story.after(minutes=1).optimize(1)
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    assert views.timeline.downsampling.flow_sums(line)["commits"].to_list() == [1] * line.height
    sums = views.timeline.downsampling.flow_sums(line, limit=2)
    assert sums["lane"].to_list() == ["append", "append"]
    assert sums["commits"].sum() == line.height
    assert sums.select("records_added", "partly").rows() == [(400, False), (100, True)]
    assert sums["files_added"].sum() == line["files_added"].sum()
    alone = views.timeline.downsampling.flow_sums(line.filter(pl.col("lane") == "maintenance"), limit=1)
    assert alone.select("lane", "records_added").rows() == [("maintenance", 200 + 300 + 400)]


@pytest.mark.parametrize(
    ("gaps", "usual", "late"),
    [
        pytest.param([timedelta(milliseconds=7)] * 30, None, False, id="a script's first commits are no rhythm"),
        pytest.param([timedelta(minutes=1)] * 30, None, False, id="nor is half an hour"),
        pytest.param([timedelta(seconds=10)] * 400, timedelta(seconds=10), True, id="a stream of an hour is one"),
        pytest.param(
            ([timedelta(days=1)] + [timedelta(seconds=2)] * 29) * 7, timedelta(days=1, seconds=58), False,
            id="of a daily job of thirty commits, from job to job",
        ),
    ],
)  # fmt: skip
def test_a_usual_gap_is_one_between_loads_over_some_time(
    gaps: list[timedelta], usual: timedelta | None, late: bool
) -> None:
    moments = [START, *(START + sum(gaps[: n + 1], timedelta()) for n in range(len(gaps)))]
    frame = pl.DataFrame({"timestamp": moments, "data_change": [True] * len(moments)})
    rhythm = views.timeline.readability.cadence(frame, moments[-1] + timedelta(hours=20))
    assert (rhythm.usual, rhythm.late) == (usual, late)


def test_a_long_history_takes_no_long_time() -> None:
    versions = 20_000
    frame = pl.DataFrame({"version": pl.int_range(versions, eager=True)}).select(
        version="version",
        position="version",
        parent=pl.col("version") - 1,
        timestamp=pl.lit(START) + pl.duration(minutes=pl.col("version")),
        operation=pl.lit("WRITE"),
        files_added=pl.lit(50),
        files_removed=pl.lit(0),
        data_change=pl.lit(True),
        schema_changed=pl.lit(False),
        records_added=pl.lit(1000),
    )
    frame = frame.cast({"timestamp": COMMITS["timestamp"]})
    frame = pl.concat([pl.DataFrame(schema=COMMITS), frame], how="diagonal_relaxed")
    files = pl.DataFrame({"n": pl.int_range(versions * 50, eager=True)}).select(
        path=format_expression("f{}", "n"),
        added=pl.col("n") // 50,
        size=pl.lit(1000),
        records=pl.lit(20),
    )
    lifetimes = pl.concat([pl.DataFrame(schema=LIFETIMES), files], how="diagonal_relaxed")
    line = views.timeline.commits.timeline(frame, lifetimes)
    assert line["files"][-1] == lifetimes.height
    assert line["records"][-1] == lifetimes.height * 20


def test_the_reason_of_a_commit_names_the_repair_and_leaves_out_what_stands_beside_it() -> None:
    story = Story().append(10).append(20, user="feed").append(30, user="desk")
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes()).with_columns(
        taken_back_by=pl.when(pl.col("version") == 1).then(2).cast(pl.Int64)
    )
    moments = line["timestamp"]
    load = {
        "version": 1, "timestamp": moments[1], "writer": "feed", "repaired_by": 2, "repaired_at": moments[2],
        "repairer": "desk", "reasons": ["delay reaches 9,000", "dest is null in 9.7 %, expected 0.1 %"],
    }  # fmt: skip
    bad = pl.DataFrame([load], schema=views.quality.anomalies.ANOMALIES, orient="row")
    sentences = [views.timeline.events.reason(line, bad, version) for version in (0, 1, 2)]
    gap = views.units.format_age(moments[2] - moments[1])
    reason = f"Bad load: delay reaches 9,000; dest is null in 9.7 %, expected 0.1 %; repaired by v2, desk, {gap} later"
    repair = "Repairs v1: delay reaches 9,000; dest is null in 9.7 %, expected 0.1 %"
    assert sentences == [None, (reason, Severity.NOTE), (repair, Severity.NOTE)]
    still_open = bad.with_columns(pl.lit(None).alias(name) for name in ("repaired_by", "repaired_at", "repairer"))
    opened = views.timeline.events.reason(line, still_open.cast(views.quality.anomalies.ANOMALIES), 1)
    assert opened == (reason.partition("; repaired")[0], Severity.ATTENTION)
    late = line.with_columns(note=pl.lit("month=5 arrived 3 days late"))
    assert views.timeline.events.reason(late, bad.clear(), 0) == ("month=5 arrived 3 days late", Severity.NOTE)


def test_a_file_with_another_deletion_vector_is_not_written_again(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path / "t"), {"a": pl.Int64}, properties={"delta.enableDeletionVectors": "true"})
    table.append(pl.DataFrame({"a": range(100)}))
    table.append(pl.DataFrame({"a": range(100, 150)}))
    table.delete("a % 10 = 0 and a < 120")  # of both files some rows
    table.delete("a >= 100 or a = 1")  # the second file goes
    table.restore(2)
    look = lv.inspect(table)
    flows = [f"{kind}_{way}" for kind in ("files", "records") for way in ("added", "removed")]
    assert look.timeline().select("files_redeleted", *flows).rows() == [
        (0, 0, 0, 0, 0),
        (0, 1, 0, 100, 0),
        (0, 1, 0, 50, 0),
        (2, 0, 0, 0, 12),
        (1, 0, 1, 0, 49),
        (1, 1, 0, 61, 0),
    ]
    sizes = dict(table.snapshot().files.select("records", "size").rows())
    written = views.retention.cost.write_amplification(look.timeline())
    assert written.written_bytes == sizes[100] + 2 * sizes[50]
