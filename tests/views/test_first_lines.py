"""The first line of a page answers its question in words that can be counted after."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from lakeview import views
from lakeview.inspection.schemas import SCHEMA_CHANGES
from lakeview.model.findings import Finding, Severity
from lakeview.views.first_lines import (
    data_line,
    empty_line,
    engines_line,
    files_line,
    partitions_line,
    pruning_line,
    quality_line,
    reading_engines,
    schema_line,
    timeline_line,
    unpartitioned_line,
    versions_line,
)
from tests.views.story import Story


@pytest.mark.parametrize(
    ("rows", "files", "size", "line"),
    [
        pytest.param("336,776", 1, 355 << 10, "v7 has 336,776 rows in 21 columns; all are in 1 of 44 files, 355 KiB"),
        pytest.param("1", 44, 10, "v7 has 1 row in 21 columns and 44 files, 10 B"),
        pytest.param(
            "unknown",
            0,
            None,
            "v7 has an unknown number of rows in 21 columns; all are in 0 of 44 files, of unknown size",
        ),
    ],
    ids=["a part of the files", "all files", "no count"],
)
def test_the_data_says_how_many_rows_there_are_and_where(rows: str, files: int, size: int | None, line: str) -> None:
    assert data_line(7, rows, 21, files, 44, size) == line


@pytest.mark.parametrize(
    ("files", "shown", "end"),
    [
        pytest.param(1, {"first": 100}, "the first 100 are in 1 of 3 files, 10 B", id="the first"),
        pytest.param(
            2,
            {"condition": "a > 1", "first": 100},
            "those where a > 1 are in at most 2 of 3 files, 10 B",
            id="a condition",
        ),
        pytest.param(0, {"condition": "a > 1"}, "no file can hold those where a > 1", id="a condition of no file"),
        pytest.param(3, {"sample": 100}, "at most 100 are drawn from 3 files, 10 B", id="a sample of few rows"),
        pytest.param(
            2,
            {"sample": 100, "condition": "a > 1"},
            "at most 100 of those where a > 1 are drawn from 2 of 3 files, 10 B",
            id="a sample of a condition",
        ),
    ],
)
def test_the_data_says_which_rows_are_shown(files: int, shown: dict[str, Any], end: str) -> None:
    assert data_line(7, "16", 2, files, 3, 10, **shown) == f"v7 has 16 rows in 2 columns; {end}"


@pytest.mark.parametrize(
    ("shown", "end"),
    [
        ({"first": 100}, "only those of the other files can be read"),
        ({}, "only those of the other files can be read"),
        ({"condition": "a > 1"}, "those where a > 1 are in at most 2 of 3 files, 10 B"),
        ({"sample": 100}, "at most 100 are drawn from 2 of 3 files, 10 B"),
    ],
    ids=["the first", "all", "a condition", "a sample"],
)
def test_what_cannot_be_read_comes_before_the_rows_that_the_log_records(shown: dict[str, Any], end: str) -> None:
    line = data_line(4, "16", 2, 2, 3, 10, gap="v4 is not whole: 1 file is missing", **shown)
    assert line == f"v4 is not whole: 1 file is missing; the log records 16 rows in 2 columns; {end}"


def test_the_timeline_says_what_happened_when_and_by_whom() -> None:
    story = Story()
    for _ in range(12):
        story.after(days=1).append(1000)
    story.after(days=2).append(9000).after(days=2).delete(12)
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    text = timeline_line(line, story.now + timedelta(hours=5))
    assert text.startswith(f"{line.height} commits by 1 writer since ")
    assert text.endswith("rows; 1 bad load, repaired")
    assert f"; the latest is v{line['version'][-1]}, " in text
    assert timeline_line(line.clear(), story.now) == ""
    still_there = line.with_columns(taken_back_by=pl.lit(None, pl.Int64))
    assert timeline_line(still_there, story.now).endswith("; 1 bad load, still in the table")
    rewritten = line.head(2).with_columns(records_added=1000, records_removed=1000)
    assert ": as many rows as before; " in timeline_line(rewritten, story.now)
    long_name = timeline_line(line.with_columns(writer=pl.lit("x" * 10_000)), story.now)
    assert len(long_name) < 200
    assert long_name.endswith("rows; 1 bad load, repaired")
    some = line.head(2)
    assert timeline_line(some, story.now).endswith("; no bad load")
    assert timeline_line(some, story.now, has_baseline=False).endswith("; no load can be judged")


def test_quality_says_since_when_the_data_is_normal() -> None:
    story = Story()
    for _ in range(12):
        story.after(days=1).append(1000)
    story.append(9000).after(days=2).delete(12)
    line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
    passes, alert = Finding("a", Severity.PASS, "On time"), Finding("b", Severity.ATTENTION, "v12: null")
    day = line["timestamp"][-1].strftime("%Y-%m-%d")
    assert quality_line([passes], line) == f"No anomaly since v13, {day}, which repaired the bad load v12"
    assert quality_line([alert], line) == ""
    assert quality_line([passes], line.head(13)) == "", "the repair came later"
    assert quality_line([passes], line.head(5)) == "", "nothing ever was"
    assert quality_line([], line.head(5)) == "No load can be judged yet: too few have statistics to compare"


def test_the_schema_says_what_changed_last() -> None:
    rows = [(4, None, f"c{i}", "added", None, "int", None, None) for i in range(5)]
    changes = pl.DataFrame(rows, schema=SCHEMA_CHANGES, orient="row")
    text = "7 columns; changed last by v4: added c0, added c1, added c2 and 2 more; 1 change before"
    schemas = pl.DataFrame({"version": [1, 2, 4], "timestamp": [datetime(2026, 3, 4, tzinfo=UTC)] * 3})
    assert schema_line(changes, 7, schemas) == text
    widened = changes.head(2).with_columns(change=pl.Series(["type", "renamed"]))
    assert schema_line(widened, 7, schemas.tail(2)) == "7 columns; changed last by v4: type of c0, renamed c1"
    moved = changes.head(2).with_columns(
        change=pl.Series(["moved", "renamed"]), before=pl.Series(["1", "day"]), after=pl.Series(["2", "c1"])
    )
    assert schema_line(moved, 7, schemas.tail(2)) == "7 columns; changed last by v4: renamed day to c1, moved c0"
    assert schema_line(changes.clear(), 1, schemas.head(1)) == "1 column, the same since v1, 2026-03-04"
    created = schemas.head(1).with_columns(version=pl.lit(-1, pl.Int64))
    assert schema_line(changes.clear(), 1, created) == "1 column, the same since its creation, 2026-03-04"
    assert schema_line(changes.clear(), 1, schemas.clear()) == "1 column; no change of the schema is known"


def test_the_only_schema_is_no_change() -> None:
    last_change = views.schema.column_history.last_change
    schemas = pl.DataFrame({"version": [1, 4], "timestamp": [Story().now, Story().now]})
    assert last_change(schemas)[0].startswith("last change v4, ")
    assert last_change(schemas.head(1))[0].startswith("the same since v1, ")
    assert last_change(schemas.tail(1).with_columns(timestamp=pl.lit(None))) == ["last change unknown"]
    assert last_change(schemas.clear()) == []


def test_pruning_names_the_columns_whose_filters_skip_most_and_least() -> None:
    ranks = {"column": ["a", "b", "c"], "files": [9, 9, 9], "reads": [9.0, 1.4, None]}
    clustering = pl.DataFrame(ranks)
    assert pruning_line(clustering) == "A filter for one value of b reads 1.4 of 9 files on average, of a 9 of 9 files"
    assert pruning_line(clustering.head(1)) == "A filter for one value of a reads 9 of 9 files on average"
    assert pruning_line(clustering.tail(1)).startswith("No column has min and max in its files: ")
    equal = clustering.with_columns(reads=9.0)
    assert pruning_line(equal) == "A filter for one value of any of 3 columns reads 9 of 9 files on average"


def test_what_is_not_there_is_not_counted() -> None:
    assert empty_line(3, "rows") == "v3 holds no rows."
    assert empty_line(-1, "data files") == "The table has no version yet, and no data files."
    assert unpartitioned_line(0) == unpartitioned_line(1) == "New files are in no partition."
    assert unpartitioned_line(2).endswith("which of its 2 files a filter reads.")


def test_files_without_a_problem_say_how_many_would_do() -> None:
    passes, small = Finding("a", Severity.PASS, "Every file"), Finding("b", Severity.NOTE, "Small files")
    text = "No problem found in the layout of 44 files, 2.00 MiB, where 23 would do"
    assert files_line([passes], 44, 2 << 20, 23) == text
    assert files_line([], 1, 10, 1) == "No problem found in the layout of 1 file, 10 B"
    assert files_line([], 2, None, None) == "No problem found in the layout of 2 files"
    assert files_line([passes, small], 44, 2 << 20, 23) == ""


@pytest.mark.parametrize(
    ("keys", "of_none", "text"),
    [
        (["month"], [], "2 partitions by month: no gap, no skew and no late arrival found"),
        (["month", "origin"], [], "2 partitions by month, origin: no gap and no skew found"),
        (["day"], [4], "2 partitions by day and 4 files without one: no gap, no skew and no late arrival found"),
    ],
)
def test_partitions_without_a_finding_say_what_was_looked_for(keys: list[str], of_none: list[int], text: str) -> None:
    moments = pl.Series("first_written", [Story().now, Story().now])
    sizes = pl.DataFrame({"partition_text": ["x=1", "x=2", *[None] * len(of_none)], "files": [1, 1, *of_none]})
    commits = views.timeline.commits.timeline(Story().append(100).append(90_000).append(120).frame()).with_columns(
        suspicious=False
    )
    assert partitions_line(sizes, keys, pl.DataFrame([moments]), commits) == text
    bad = commits.with_columns(suspicious=pl.Series([True, True, False]), taken_back_by=pl.Series([3, None, None]))
    assert partitions_line(sizes, keys, pl.DataFrame([moments]), bad) == f"{text}, but 2 bad loads are in the table"
    later = bad.with_columns(version=pl.Series([1, 2, 3]))  # the first of them was repaired meanwhile
    assert partitions_line(sizes, keys, pl.DataFrame([moments]), later) == f"{text}, but 1 bad load is in the table"


@pytest.mark.parametrize(
    ("readable", "line"),
    [
        ([True], "The only version can be read"),
        ([True, True], "All 2 versions can be read"),
        ([True, False, True], "2 of 3 versions can be read, not v1"),
        ([False], "None of 1 version can be read"),
        ([False] * 5 + [True], "1 of 6 versions can be read, not v0, v1, v2 and 2 more"),
    ],
)
def test_versions_that_can_be_read_are_counted(readable: list[bool], line: str) -> None:
    assert versions_line(pl.DataFrame({"version": range(len(readable)), "readable": readable})) == line


YES, NO, UNKNOWN, NEVER = ("yes", "yes"), ("no", "no"), ("unknown", "unknown"), ("yes", "never")
"""Whether an engine reads a table, and whether it writes it."""


@pytest.mark.parametrize(
    ("answers", "reading", "writing"),
    [
        ([YES, YES, NEVER], "All 3 engines read v7", "all 2 that write tables write it"),
        (
            [YES, UNKNOWN, NEVER],
            "2 of 3 engines read v7, of 1 it is unknown",
            "1 of the 2 that write tables writes it, of 1 it is unknown",
        ),
        (
            [UNKNOWN, UNKNOWN],
            "None of 2 engines reads v7, of 2 it is unknown",
            "none of the 2 that write tables writes it, of 2 it is unknown",
        ),
        ([NO, YES], "1 of 2 engines fails to read v7", "1 of the 2 that write tables fails to write it"),
        (
            [NO, NO, UNKNOWN],
            "2 of 3 engines fail to read v7, of 1 it is unknown",
            "2 of the 3 that write tables fail to write it, of 1 it is unknown",
        ),
    ],
)
def test_engines_that_read_and_write_a_version_are_counted(
    answers: list[tuple[str, str]], reading: str, writing: str
) -> None:
    frame = pl.DataFrame(answers, schema={"read": pl.String(), "write": pl.String()}, orient="row")
    assert engines_line(frame, 7) == f"{reading}; {writing}"
    assert engines_line(frame.with_columns(write=pl.lit("never")), 7) == reading
    assert engines_line(frame.clear(), 7).startswith("Which engines can read the table is unknown")


def test_engines_that_fail_to_read_a_version_are_counted_else_those_that_read_it() -> None:
    frame = pl.DataFrame([YES, NO, UNKNOWN], schema={"read": pl.String(), "write": pl.String()}, orient="row")
    assert reading_engines(frame, 7) == "1 of 3 engines cannot read v7"
    assert reading_engines(frame.filter(pl.col("read") != "no"), 7) == "1 of 2 engines reads v7, of 1 it is unknown"
    assert reading_engines(frame.filter(pl.col("read") == "yes"), -1) == "all 1 engine read the table"
    assert reading_engines(frame.clear(), 7) == ""
