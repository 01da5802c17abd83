"""Overwrites that leave far fewer rows than there were: which are named, and which are routine."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakeview import views
from lakeview.model.findings import Severity
from lakeview.views.quality.anomalies import NO_CHANGES, anomalies, anomaly_findings
from lakeview.views.quality.loads import row_losses
from lakeview.views.timeline.commits import TIMELINE
from tests.views.story import Story


def daily(*rows: int) -> Story:
    """A table that is overwritten each day with so many rows."""
    story = Story()
    for records in rows:
        story.after(days=1).refresh(records)
    return story


def losses_of(story: Story) -> list[tuple[int, ...]]:
    return row_losses(views.timeline.commits.timeline(story.frame(), story.lifetimes())).rows()


@pytest.mark.parametrize(
    ("tell", "expected"),
    [
        (lambda: daily(1000, 1010, 990, 1020), []),
        (lambda: daily(1000, 1010, 300), [(2, 300, 1010, None)]),
        (lambda: daily(1000, 600), []),
        (lambda: daily(1000, 300, 1000, 300, 1000), [(1, 300, 1000, 2)]),
        (lambda: daily(1000, 1000).after(days=1).append(200).delete(1), []),
        (lambda: daily(90, 3), []),
        (lambda: daily(1000, 100).append(800), []),
        (lambda: daily(1000, 100).after(days=1).append(800), [(1, 100, 1000, 2)]),
        (lambda: daily(1000, 100).after(days=1).append(300).after(days=1).append(300), [(1, 100, 1000, None)]),
        (lambda: daily(1000, 100).after(days=1).append(300).append(300).append(300).refresh(90), []),
        (lambda: daily(9000, 1000, 90), [(1, 1000, 9000, None), (2, 90, 1000, None)]),
        (lambda: daily(1000).delete(0).after(hours=-1, seconds=1).append(100), [(1, 100, 1000, None)]),
        (lambda: daily(1000).delete(0).after(days=1).append(100), []),
        (lambda: daily(1000).append(100).overwrite(0, records=10), []),
        (lambda: daily(1000, 1000).optimize(1).after(days=1).refresh(2), [(3, 2, 1000, None)]),
    ],
    ids=[
        "about the same rows each day",
        "under half of the rows",
        "more than half of them",
        "as few rows every other day",
        "a delete that was asked for",
        "a small table",
        "written in parts within the hour",
        "brought back at once, later",
        "grown again slowly",
        "grown again slowly, and begun anew",
        "fewer and fewer rows",
        "emptied and filled again by one job",
        "emptied, and begun anew the next day",
        "a part of the table",
        "after maintenance",
    ],
)  # fmt: skip
def test_an_overwrite_that_loses_rows_is_named(tell: Callable[[], Story], expected: list[tuple[int, ...]]) -> None:
    assert losses_of(tell()) == expected


def test_a_loss_without_a_timestamp_is_one() -> None:
    line = views.timeline.commits.timeline(daily(1000, 100).frame()).with_columns(timestamp=None)
    assert row_losses(line.cast(TIMELINE)).rows() == [(1, 100, 1000, None)]


def test_rows_that_were_lost_and_came_back_are_a_note() -> None:
    def finding(story: Story, version: int | None = None) -> tuple[Severity, str]:
        line = views.timeline.commits.timeline(story.frame(), story.lifetimes())
        (repair,) = anomaly_findings(anomalies(line, NO_CHANGES, version), story.now)
        return repair.severity, repair.claim

    claim = "v1: replaces 1,000 rows by 100"
    assert finding(daily(1000, 100)) == (Severity.ATTENTION, claim)
    assert finding(daily(1000, 100, 1000)) == (Severity.NOTE, claim)
    assert finding(daily(1000, 100, 1000), version=1) == (Severity.ATTENTION, claim)
