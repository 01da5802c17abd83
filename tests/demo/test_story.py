"""The story before it is told: every day of the year arrives, in order, and the troubles are in it."""

from collections import Counter
from datetime import date, timedelta

from lakeview.demo.story import (
    END,
    Compact,
    CorrectDay,
    CreateTable,
    Fault,
    Load,
    ReplaceMonth,
    Step,
    Summarise,
    Vacuum,
    full_story,
)
from lakeview.spark.options import Statistics

STEPS = full_story().steps
# Commits to `flights` that each step makes: a vacuum says when it starts and when it has ended.
COMMITS = {Vacuum: 2, Summarise: 0}


def version_of(wanted: Step) -> int:
    """The version of `flights` that a step ends with."""
    commits = [COMMITS.get(type(step.action), 1) for step in STEPS[: STEPS.index(wanted) + 1]]
    return sum(commits) - 1


def test_moments_rise_and_end_before_the_end() -> None:
    moments = [step.at for step in STEPS]
    assert moments == sorted(moments)
    assert len(set(moments)) == len(moments)
    assert moments[-1] < END
    assert END - moments[0] <= timedelta(days=366)


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
    (again,) = [step for step in STEPS if isinstance(step.action, ReplaceMonth)]
    (swept,) = [step for step in STEPS if isinstance(step.action, Vacuum)]
    assert version_of(again) == version_of(bad) + 1
    assert isinstance(swept.action, Vacuum)
    assert swept.action.version == version_of(bad)


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
    compacted = {step.action.month for step in STEPS if isinstance(step.action, Compact)}
    small = [load for load in loads if load.by_airport and load.first.month not in compacted]
    assert len(small) == 10
    bare = {load.first: load.statistics for load in loads if load.statistics is not Statistics.FULL}
    assert bare == {
        **dict.fromkeys([date(2013, 10, 8), date(2013, 10, 9), date(2013, 10, 10)], Statistics.NONE),
        **dict.fromkeys([date(2013, 12, 25), date(2013, 12, 26)], Statistics.COUNTS),
    }
