"""Lives of files, writers, and what changes of a schema break."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from lakeview import charts, views
from lakeview.model.column_values import format_expression
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.frames import COMMITS, LIFETIMES
from lakeview.model.schema import Schema
from lakeview.views.timeline.downsampling import MOST_MARKS
from lakeview.views.timeline.lifetimes import MOST_COHORTS
from tests.charts.drawing import silent_fields
from tests.views.story import MIB, START, Story, flights


def lives_of(story: Story) -> tuple[pl.DataFrame, pl.DataFrame]:
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    return views.timeline.lifetimes.file_lives(story.lifetimes(), line), line


def with_a_vector() -> tuple[Story, pl.DataFrame]:
    """v0 and v1 load a file each; v2 deletes rows of the first; v3 rewrites it."""
    story = Story().append(100, size=10).append(50, size=5).append(1, size=1).append(1, size=1)
    first, *others = story.lifetimes().to_dicts()
    stays = [
        first | {"removed": 2},
        first | {"added": 2, "removed": 3, "deletion_vector": "u1", "records": 90},
        *others,
    ]
    return story, pl.DataFrame(stays, schema=LIFETIMES)


def test_a_file_has_one_life_however_often_rows_of_it_are_deleted() -> None:
    story, lifetimes = with_a_vector()
    lives = views.timeline.lifetimes.file_lives(lifetimes, views.timeline.commits.timeline(story.frame(), lifetimes))
    assert lives.schema == views.timeline.lifetimes.FILE_LIVES
    assert lives.sort("from").select("added", "removed", "size").rows() == [
        (0, 3, 10), (1, None, 5), (2, None, 1), (3, None, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("added", [(None, 0), (0, None)])
def test_a_cohort_is_of_before_the_timeline_if_one_of_its_files_is(added: tuple[int | None, int | None]) -> None:
    story, lifetimes = with_a_vector()
    both = lifetimes.head(2).with_columns(
        added=pl.Series(added), removed=pl.lit(None, pl.Int64), path=pl.Series(["a", "b"])
    )
    lives = views.timeline.lifetimes.file_lives(both, views.timeline.commits.timeline(story.frame(), both))
    assert views.timeline.lifetimes.life_cohorts(lives).select("first", "last", "files").rows() == [(None, 0, 2)]


def test_a_load_is_not_taken_back_by_deletes_that_leave_its_files() -> None:
    story = Story()
    for _ in range(6):
        story.after(days=1).append(1000, size=10)
    story.after(days=1).append(1000, size=10)
    commits = story.frame().with_columns(
        files_removed=pl.when(pl.col("version") == 6).then(1).otherwise("files_removed")
    )
    stays = story.lifetimes().filter(pl.col("added") < 6).to_dicts()
    marked = stays[3] | {"added": 6, "deletion_vector": "u1", "records": 10}
    stays[3] |= {"removed": 6}
    line = views.timeline.commits.timeline(commits, pl.DataFrame([*stays, marked], schema=LIFETIMES))
    assert line["lane"].to_list()[-1] == "change"
    assert not line["suspicious"].any()
    without_vector = pl.DataFrame(stays, schema=LIFETIMES)  # the same without the vector: now the load is taken back
    assert views.timeline.commits.timeline(commits, without_vector).filter("suspicious")["version"].to_list() == [3]


def test_cohorts_stack_what_was_written_and_end_where_it_was_removed() -> None:
    story = Story().append(10, files=2, size=10).after(days=1).append(5, size=4).after(days=1).delete(0)
    lives, _ = lives_of(story)
    cohorts = views.timeline.lifetimes.life_cohorts(lives)
    assert cohorts.schema == views.timeline.lifetimes.COHORTS
    assert cohorts.select("first", "ended_in", "ended_by", "files", "bytes", "low", "high").rows() == [
        (0, 2, "change", 2, 20, 0, 20),
        (1, None, None, 1, 4, 20, 24),
    ]
    facts = views.timeline.lifetimes.life_facts(lives)
    assert (facts.files, facts.live_files, facts.bytes, facts.live_bytes) == (3, 1, 24, 4)
    assert facts.churn == pytest.approx(20 / 24)
    assert facts.median_life == timedelta(days=2, hours=2)


def test_each_commit_says_what_lives_of_what_it_wrote() -> None:
    story = Story().append(10, files=3, size=10).after(days=1).append(5, size=4)
    story.stays[0]["removed"] = 1
    lives, line = lives_of(story)
    lives_rows = views.timeline.lifetimes.lives_by_commit(lives, line)
    assert lives_rows.schema == views.timeline.lifetimes.LIVES_BY_COMMIT
    assert lives_rows.select("version", "files", "live_files", "live_bytes", "median_life_ms", "ended_in").rows() == [
        (1, 1, 1, 4, None, None),
        (0, 3, 2, 20, 25 * 3_600_000, 1),
    ]


def test_files_from_before_the_log_live_from_its_first_version_on() -> None:
    story = Story().append(10, size=MIB).append(5)
    lifetimes = story.lifetimes().with_columns(added=pl.when(pl.col("added") > 0).then("added"))
    lives = views.timeline.lifetimes.file_lives(lifetimes, views.timeline.commits.timeline(story.frame(), lifetimes))
    assert lives.sort("from")["begins"].to_list()[0] == START
    assert views.timeline.lifetimes.life_cohorts(lives)["first"].to_list() == [None, 1]
    (bands,) = charts.lifetimes.life_bands(views.timeline.lifetimes.life_cohorts(lives), story.now)
    assert silent_fields(bands) == set(), "of live files too: how long they have lived"


def test_lives_of_nothing() -> None:
    line = views.timeline.commits.timeline(pl.DataFrame(schema=COMMITS))
    lives = views.timeline.lifetimes.file_lives(pl.DataFrame(schema=LIFETIMES), line)
    assert views.timeline.lifetimes.life_cohorts(lives).is_empty()
    assert views.timeline.lifetimes.life_facts(lives) == views.timeline.lifetimes.LifeFacts(0, 0, 0, 0, None, None)
    assert views.timeline.lifetimes.lives_by_commit(lives, line).is_empty()
    assert charts.lifetimes.life_bands(views.timeline.lifetimes.life_cohorts(lives), START) == []


def long_story(versions: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """So many loads of ten files by thirty writers; each file goes some versions later, but every tenth."""
    frame = pl.DataFrame({"version": pl.int_range(versions, eager=True)}).select(
        version="version", position="version", parent=pl.col("version") - 1,
        timestamp=(pl.lit(START) + pl.duration(minutes=pl.col("version"))).cast(COMMITS["timestamp"]),
        operation=pl.lit("WRITE"), user=format_expression("writer {}", pl.col("version") % 30), files_added=pl.lit(10),
        files_removed=pl.lit(9), data_change=pl.lit(value=True), schema_changed=pl.lit(value=False),
    )  # fmt: skip
    files = pl.DataFrame({"n": pl.int_range(versions * 10, eager=True)}).select(
        path=format_expression("f{}", "n"), added=pl.col("n") // 10, size=pl.lit(1000), records=pl.lit(20),
        removed=pl.when(pl.col("n") % 10 > 0).then(pl.col("n") // 10 + 1 + pl.col("n") % 97),
    )  # fmt: skip
    files = files.with_columns(removed=pl.when(pl.col("removed") < versions).then("removed"))
    return tuple(
        pl.concat([pl.DataFrame(schema=s), f], how="diagonal_relaxed").cast(s)
        for s, f in ((COMMITS, frame), (LIFETIMES, files))
    )  # type: ignore[return-value]  # a pair, made one by one


def test_a_long_history_makes_no_more_marks_than_a_browser_likes() -> None:
    commits, lifetimes = long_story(20_000)
    line = views.timeline.commits.timeline(commits, lifetimes)
    lives = views.timeline.lifetimes.file_lives(lifetimes, line)
    cohorts = views.timeline.lifetimes.life_cohorts(lives)
    assert cohorts.height <= MOST_COHORTS
    assert cohorts["high"].to_list()[-1] == lives["size"].sum() == 20_000 * 10 * 1000
    assert cohorts["files"].sum() == lives.height
    marks = views.timeline.writers.writer_marks(line)
    assert marks.height <= MOST_MARKS
    assert marks["writer"].n_unique() == 13
    assert marks["commits"].sum() == 20_000
    (lanes,) = charts.lanes.writer_lanes(marks)
    assert "others" in str(lanes.to_dict())
    (bands,) = charts.lifetimes.life_bands(cohorts, START)
    assert sum(len(rows) for rows in bands.to_dict()["datasets"].values()) <= MOST_COHORTS


def test_writers_say_what_they_write_how_often_and_with_what() -> None:
    story = flights()
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    writers_rows = views.timeline.writers.writers(line, story.frame())
    assert writers_rows.schema == views.timeline.writers.WRITERS
    rows = {row["writer"]: row for row in writers_rows.to_dicts()}
    assert next(iter(rows)) == "spark-batch"
    assert rows["flink-ingest"]["commits"] == rows["flink-ingest"]["append"] == 6
    assert rows["flink-ingest"]["median_gap_ms"] == 7 * 3_600_000
    assert rows["li@ops"]["change"] == 1
    assert rows["li@ops"]["median_gap_ms"] is None
    assert rows["spark-batch"]["suspicious"] == 1
    assert rows["spark-batch"]["engines"] == "Apache-Spark/4.3.0"
    assert sum(row["share"] for row in rows.values()) == pytest.approx(1)


def test_commits_that_name_nobody_are_a_writer_of_their_own() -> None:
    story = Story().append(1, engine=None).append(None, engine=None)
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    row = views.timeline.writers.writers(line, story.frame()).row(0, named=True)
    assert (row["writer"], row["engines"], row["records_added"], row["records_exact"]) == (None, None, 1, False)
    assert views.timeline.writers.writer_marks(line)["writer"].unique().to_list() == ["not recorded"]


def column(name: str, type_: str = "integer", number: int = 1, *, nullable: bool = True) -> Field:
    return Field(name, PrimitiveType(type_), nullable, id=number)


@pytest.mark.parametrize(
    ("before", "after", "class_", "verdict"),
    [
        pytest.param(column("a"), column("b"), "breaks some readers", "1 breaks some readers", id="renamed"),
        pytest.param(
            column("a"), column("a", number=2), "breaks readers", "1 breaks readers, 1 is safe",
            id="dropped and added again",
        ),
        pytest.param(column("a"), column("a", "long"), "breaks some readers", None, id="wider"),
        pytest.param(column("a", "long"), column("a", "integer"), "breaks readers", None, id="narrower"),
        pytest.param(column("a"), column("a", nullable=False), "breaks writers", None, id="not null"),
        pytest.param(column("a", nullable=False), column("a"), "breaks some readers", None, id="nullable"),
        pytest.param(column("a"), column("a"), None, "nothing changed", id="the same"),
    ],
)  # fmt: skip
def test_each_change_has_a_class_and_the_rule_it_follows_from(
    before: Field, after: Field, class_: str | None, verdict: str | None
) -> None:
    diff = views.schema.diff.diff_schemas(Schema((before,)), Schema((after,)))
    classes = views.schema.breaking.breaking(diff)
    assert classes.schema == views.schema.breaking.BREAKING
    assert class_ is None or class_ in classes["class"]
    assert classes["rule"].null_count() == 0
    assert verdict is None or views.schema.breaking.breaking_verdict(diff) == verdict


def test_column_changes_are_blamed_on_their_commits() -> None:
    story = Story().append(1, user="ann").alter("ADD COLUMNS")
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    one = Schema((column("a"),))
    two = Schema((*one.fields, column("it's *b*", number=2)))
    past = [(0, START, one), (1, START + timedelta(hours=1), two)]
    blamed = views.schema.column_history.blame(views.schema.column_history.column_history(past), line)
    assert blamed.select("column", "operation", "writer").rows() == [
        ("a", "WRITE", "ann"),
        ("it's *b*", "ADD COLUMNS", "Apache-Spark/4.3.0"),
    ]
    assert views.schema.column_history.newest_first(blamed)["column"].to_list() == ["it's *b*", "a"]
    (lanes,) = charts.lanes.column_lanes(views.schema.column_history.column_lives(past), blamed, story.now)
    assert silent_fields(lanes) == set()
    spec = lanes.to_dict()
    marks = [row for rows in spec["datasets"].values() for row in rows if "change" in row]
    assert [(mark["lane"], mark["column"]) for mark in marks] == [("0", "a"), ("1", "it's *b*")]
    assert "\\u002a\\u0062\\u002a" in str(spec).replace("\\\\", "\\")
    assert (
        charts.lanes.column_lanes(
            views.schema.column_history.column_lives([]), views.schema.column_history.column_history([]), story.now
        )
        == []
    )
