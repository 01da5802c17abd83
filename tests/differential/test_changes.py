"""Changes of histories that deltalake writes: the feed as others read it, and what was derived, added up."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings

from lakeview.delta.table import DeltaTable
from tests.builders.opening import open_delta_table
from tests.differential.delta_stories import Step, Story, stories, tell
from tests.differential.oracles import deltalake_changes, kernel_changes, readable
from tests.golden.rows import differences, rows

FEED = (
    *("append", "delete", "delete a part", "update", "merge"),
    *("overwrite", "overwrite a part", "compact", "set a property", "checkpoint", "restore"),
)
"""Steps after which the whole feed has one schema."""

WIDER = (*(step for step in FEED if step != "restore"), "append widened", "add a column")
"""Steps that may add columns; restoring would drop them again, and such a feed has no schema."""
FEW = settings(max_examples=2, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
MANY = settings(FEW, max_examples=5)
CLEANED_UP = Story(False, True, tuple(Step(what, 0) for what in ("append", "checkpoint", "set a property", "append")))
"""A retention of 0 days is set after a checkpoint: the commits before it are gone."""


def multiset(frame: pl.DataFrame, columns: list[str]) -> Counter[tuple[Hashable, ...]]:
    """The rows, columns of other versions left out or null."""
    nulls = [pl.lit(None).alias(name) for name in columns if name not in frame.columns]
    return Counter(rows(frame.with_columns(nulls).select(columns).to_arrow()))


def the_feed_is_theirs(story: Story, address: str) -> None:
    """Each commit's changes and those of all commits, as the kernel and deltalake give them."""
    tell(story, address)
    a_second_apart(address)
    table = open_delta_table(address)
    first, last = readable(table)[0], table.snapshot().version
    for start, end in [(first, last), *((version, version) for version in range(first, last + 1))]:
        rows_read = table.changes(start, end).collect()
        assert differences(kernel_changes(address, start, end), rows_read) == [], f"{start} to {end}, polars-deltalake"
        if not story.partitioned:
            undated = rows_read.drop("_commit_timestamp")
            assert differences(deltalake_changes(address, start, end), undated) == [], f"{start} to {end}, deltalake"


def a_second_apart(address: str) -> None:
    """Gives each commit a time of its own: of two in one millisecond the later one is dated on, by us as by Spark
    (times of commits rise), and not by the kernel."""
    for number, commit in enumerate(sorted(Path(address, "_delta_log").glob("*.json"))):
        os.utime(commit, (1_700_000_000 + number, 1_700_000_000 + number))


def the_changes_add_up(story: Story, address: str) -> None:
    """The rows before a commit, less what it deleted, with what it inserted, are the rows after it.

    A retention of 0 days lets deltalake delete the commits before a checkpoint: the table then begins with rows.
    """
    tell(story, address)
    table = open_delta_table(address)
    columns = table.snapshot().schema.names
    first, *later = readable(table)
    rows_of_first = multiset(table.scan(first).collect(), columns)
    before: Counter[tuple[Hashable, ...]] = rows_of_first if first else Counter()
    for version in later if first else [first, *later]:
        after = multiset(table.scan(version).collect(), columns)
        assert before + signed(table, version, columns, are_deletes=False) == after + signed(
            table, version, columns, are_deletes=True
        )
        before = after


def signed(table: DeltaTable, version: int, columns: list[str], *, are_deletes: bool) -> Counter[tuple[Hashable, ...]]:
    """What a commit took away, or what it brought."""
    kinds = ("delete", "update_preimage") if are_deletes else ("insert", "update_postimage")
    changed = table.changes(version, version).filter(pl.col("_change_type").is_in(kinds)).collect()
    return multiset(changed, columns)


@FEW
@example(story=CLEANED_UP)
@given(story=stories(5, FEED))
def test_a_short_feed_is_read_as_others_read_it(tmp_path_factory: pytest.TempPathFactory, story: Story) -> None:
    the_feed_is_theirs(Story(story.partitioned, True, story.steps), str(tmp_path_factory.mktemp("feed")))


@pytest.mark.slow
@MANY
@given(story=stories(12, FEED))
def test_long_feeds_are_read_as_others_read_them(tmp_path_factory: pytest.TempPathFactory, story: Story) -> None:
    the_feed_is_theirs(Story(story.partitioned, True, story.steps), str(tmp_path_factory.mktemp("feed")))


@FEW
@example(story=CLEANED_UP)
@given(story=stories(5, WIDER))
def test_changes_of_a_short_story_add_up(tmp_path_factory: pytest.TempPathFactory, story: Story) -> None:
    the_changes_add_up(story, str(tmp_path_factory.mktemp("changes")))


@pytest.mark.slow
@MANY
@given(story=stories(12, WIDER))
def test_changes_of_long_stories_add_up(tmp_path_factory: pytest.TempPathFactory, story: Story) -> None:
    the_changes_add_up(story, str(tmp_path_factory.mktemp("changes")))


@pytest.mark.parametrize("change_feed", [True, False], ids=["from the feed", "derived"])
def test_changes_of_everything_add_up(tmp_path: Path, change_feed: bool) -> None:
    steps = tuple(Step(what, 3 + 5 * number) for number, what in enumerate(WIDER))
    the_changes_add_up(Story(True, change_feed, steps), str(tmp_path))
