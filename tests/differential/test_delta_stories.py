"""Histories that deltalake writes, at every version, as three other readers see them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.builders.opening import open_delta_table
from tests.differential.delta_stories import STEPS, Step, Story, stories, tell
from tests.differential.oracles import compare_history, compare_version, readable

FEW = settings(max_examples=2, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
MANY = settings(FEW, max_examples=8)


def check_story(story: Story, address: str) -> None:
    """Tell it, and compare everything."""
    tell(story, address)
    table = open_delta_table(address)
    for version in readable(table):
        compare_version(table, address, version)
    compare_history(table, address)


@FEW
@given(story=stories(5))
def test_a_short_story_is_read_as_others_read_it(tmp_path_factory: pytest.TempPathFactory, story: Story) -> None:
    check_story(story, str(tmp_path_factory.mktemp("story")))


@pytest.mark.slow
@MANY
@given(story=stories(14))
def test_long_stories_are_read_as_others_read_them(tmp_path_factory: pytest.TempPathFactory, story: Story) -> None:
    check_story(story, str(tmp_path_factory.mktemp("story")))


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
def test_a_story_in_which_everything_happens(tmp_path: Any, partitioned: bool) -> None:
    steps = tuple(Step(what, 3 + 5 * number) for number, what in enumerate(dict.fromkeys(STEPS)))
    check_story(Story(partitioned, True, steps), str(tmp_path))
