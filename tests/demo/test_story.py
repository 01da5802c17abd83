"""The story before it is told, whatever day it ends on: every day of the year arrives, in order, and the troubles are
in it."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from lakeview.demo.calendar import Calendar
from lakeview.demo.story import (
    Action,
    Compact,
    CorrectDay,
    CreateTable,
    Fault,
    Load,
    ReplacePeriod,
    RunPipeline,
    Step,
    Vacuum,
    full_story,
)
from lakeview.spark.options import Statistics

CALENDAR = Calendar(date(2013, 12, 31))
"""The days of the source as they are."""
STEPS = full_story(CALENDAR)
# Commits to `flights` that each step makes: a vacuum says when it starts and when it has ended.
COMMITS = {Vacuum: 2, RunPipeline: 0}


def version_of(wanted_step: Step) -> int:
    """The version of `flights` that a step ends with."""
    commits = [COMMITS.get(type(step.action), 1) for step in STEPS[: STEPS.index(wanted_step) + 1]]
    return sum(commits) - 1


@pytest.mark.parametrize(
    ("now", "last"),
    [
        pytest.param(datetime(2026, 11, 24, 8, tzinfo=UTC), date(2026, 11, 23), id="in the morning, yesterday"),
        pytest.param(datetime(2026, 11, 24, 23, 59, tzinfo=UTC), date(2026, 11, 23), id="in the evening, yesterday"),
        pytest.param(datetime(2026, 11, 24, 7, 59, tzinfo=UTC), date(2026, 11, 22), id="before the last delivery"),
        pytest.param(
            datetime(2026, 11, 25, 4, tzinfo=timezone(timedelta(hours=9))), date(2026, 11, 23), id="of another zone"
        ),
        pytest.param(datetime(2028, 3, 1, 12, tzinfo=UTC), date(2028, 2, 29), id="a leap day"),
        pytest.param(datetime(2014, 1, 1, 8, tzinfo=UTC), date(2013, 12, 31), id="the days of the source"),
    ],
)
def test_the_data_ends_on_the_day_before_the_build(now: datetime, last: date) -> None:
    calendar = Calendar.at(now)
    assert calendar.last == last
    assert timedelta(0) <= now - calendar.end < timedelta(days=1)


@pytest.mark.parametrize("last", [date(2026, 11, 23), date(2028, 2, 29), date(2027, 1, 1), date(2012, 6, 30)], ids=str)
def test_every_day_of_the_build_has_the_same_story(last: date) -> None:
    """The same steps of the same periods at the same times of the day, all moved by one number of whole days."""
    calendar = Calendar(last)
    assert calendar.period(12)[1] == last
    for step, source in zip(full_story(calendar), STEPS, strict=True):
        assert step.at.date() - source.at.date() == calendar.shift
        assert step.at.hour == source.at.hour
        assert days_of(step.action) == [day + calendar.shift for day in days_of(source.action)]
        if not days_of(step.action):
            assert step.action == source.action


def days_of(action: Action) -> list[date]:
    match action:
        case Load():
            return [action.first, action.last]
        case CorrectDay():
            return [action.day]
        case _:
            return []


def test_a_period_has_the_days_of_its_month_and_none_is_between_two() -> None:
    moved = Calendar(date(2026, 11, 23))
    periods = [moved.period(number) for number in range(1, 13)]
    assert [(last - first).days + 1 for first, last in periods] == [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    assert [moved.after(number) for number in range(1, 12)] == [first for first, _ in periods[1:]]


def test_a_load_never_reaches_over_the_end_of_a_period() -> None:
    periods = [CALENDAR.period(number) for number in range(1, 13)]
    for load in (step.action for step in STEPS if isinstance(step.action, Load)):
        assert any(first <= load.first <= load.last <= last for first, last in periods)


def test_moments_rise_and_end_before_the_end() -> None:
    moments = [step.at for step in STEPS]
    assert moments == sorted(moments)
    assert len(set(moments)) == len(moments)
    assert moments[-1] < CALENDAR.end
    assert CALENDAR.end - moments[0] <= timedelta(days=366)


def test_every_day_of_the_year_is_loaded_once() -> None:
    loads = [step.action for step in STEPS if isinstance(step.action, Load)]
    days = Counter(load.first + timedelta(days=n) for load in loads for n in range((load.last - load.first).days + 1))
    assert set(days.values()) == {1}
    assert len(days) == 365


def test_no_day_is_loaded_before_it_is_over() -> None:
    for step in STEPS:
        if isinstance(step.action, Load):
            assert step.at.date() > step.action.last


def test_at_least_sixty_versions_and_several_checkpoints() -> None:
    assert isinstance(STEPS[0].action, CreateTable)
    assert version_of(STEPS[-1]) >= 60


def test_the_bad_load_is_overwritten_next_and_its_version_vacuumed() -> None:
    (bad,) = [step for step in STEPS if isinstance(step.action, Load) and step.action.fault is Fault.SECONDS]
    (again,) = [step for step in STEPS if isinstance(step.action, ReplacePeriod)]
    (swept,) = [step for step in STEPS if isinstance(step.action, Vacuum)]
    assert version_of(again) == version_of(bad) + 1
    assert isinstance(swept.action, Vacuum)
    assert swept.action.version == version_of(bad)


def test_the_pipeline_runs_on_the_bad_load_after_its_repair_and_at_the_end() -> None:
    actions = [step.action for step in STEPS]
    runs = [number for number, action in enumerate(actions) if isinstance(action, RunPipeline)]
    before = [actions[number - 1] for number in runs]
    assert [type(action) for action in before] == [Load, ReplacePeriod, Load]
    assert isinstance(before[0], Load)
    assert before[0].fault is Fault.SECONDS
    assert runs[-1] == len(actions) - 1


def test_the_faulty_day_is_corrected_while_its_files_are_still_its_own() -> None:
    actions = [step.action for step in STEPS]
    (faulty,) = [a for a in actions if isinstance(a, Load) and a.fault is Fault.NO_ARRIVALS]
    correction = actions.index(CorrectDay(faulty.first))
    assert faulty.first == faulty.last
    assert actions.index(faulty) < correction < actions.index(Compact(faulty.first.month))


def test_a_partition_arrives_late() -> None:
    loads = [step.action.first for step in STEPS if isinstance(step.action, Load)]
    assert loads.index(date(2013, 5, 1)) > loads.index(date(2013, 7, 1))


def test_some_files_lie_small_and_some_have_no_statistics() -> None:
    loads = [step.action for step in STEPS if isinstance(step.action, Load)]
    compacted = {step.action.period for step in STEPS if isinstance(step.action, Compact)}
    small = [load for load in loads if load.by_airport and load.first.month not in compacted]
    assert len(small) == 10
    bare = {load.first: load.statistics for load in loads if load.statistics is not Statistics.FULL}
    assert bare == {
        **dict.fromkeys([date(2013, 10, 8), date(2013, 10, 9), date(2013, 10, 10)], Statistics.NONE),
        **dict.fromkeys([date(2013, 12, 25), date(2013, 12, 26)], Statistics.COUNTS),
    }
