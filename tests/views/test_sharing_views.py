"""The audit log of a sharing server to who read what, and how much on which day; and the picture of it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest

from lakeview import charts, views
from tests.charts.drawing import mark_counts

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def requests(*rows: tuple[timedelta, str | None, str, str | None, int, int, int]) -> pl.DataFrame:
    """Age, recipient, action, table of lake.default, requests, bytes, status."""
    rows_read = [
        {
            "time": NOON - age, "recipient": who, "action": action, "share": table and "lake",
            "schema": table and "default", "table": table, "version": 7 if action == "query" else None,
            "requests": count, "bytes": size, "status": status,
        }
        for age, who, action, table, count, size, status in rows
    ]  # fmt: skip
    return pl.DataFrame(rows_read, schema=views.sharing.REQUESTS)


REQUESTS = requests(
    (timedelta(days=3), "ann", "query", "trips", 1, 400, 200),
    (timedelta(days=3), "ann", "file", "trips", 4, 9000, 200),
    (timedelta(hours=1), "ann", "file", "trips", 2, 1000, 403),
    (timedelta(hours=2), "bob", "list", None, 1, 50, 200),
    (timedelta(days=1), None, "list", None, 3, 90, 401),
)


def test_reads_are_added_up_by_recipient_and_table() -> None:
    rows = views.sharing.reads(REQUESTS)
    assert rows.schema == views.sharing.READS
    assert rows.drop("last").rows() == [
        ("ann", "lake.default.trips", 7, 7, 6, 10400, 2),
        ("bob", None, None, 1, 0, 50, 0),
        (None, None, None, 3, 0, 90, 3),
    ]
    assert rows["last"][0] == NOON - timedelta(hours=1)


def test_days_without_a_request_are_told_as_such() -> None:
    rows = views.sharing.reads_by_day(REQUESTS)
    assert rows.schema == views.sharing.READS_BY_DAY
    assert rows.rows() == [
        (date(2026, 11, 19), 5, 0, 9400, 1),
        (date(2026, 11, 20), 0, 0, 0, 0),
        (date(2026, 11, 21), 3, 3, 90, 0),
        (date(2026, 11, 22), 3, 2, 1050, 2),
    ]


def test_nothing_asked_is_nothing_read() -> None:
    nothing = pl.DataFrame(schema=views.sharing.REQUESTS)
    assert views.sharing.reads(nothing).equals(pl.DataFrame(schema=views.sharing.READS))
    assert views.sharing.reads_by_day(nothing).equals(pl.DataFrame(schema=views.sharing.READS_BY_DAY))


def test_only_the_last_days_are_read_and_only_what_is_needed() -> None:
    log = REQUESTS.with_columns(hints=pl.lit("month = 3"))
    rows = views.sharing.recent_requests(log.lazy(), now=NOON, days=1)
    assert rows.schema == views.sharing.REQUESTS
    assert rows.height == 3


@pytest.mark.parametrize("dark", [False, True])
def test_two_panels_share_their_days_and_compile(dark: bool) -> None:
    panel, refused = (
        chart.to_dict() for chart in charts.sharing.reads_by_day_bars(views.sharing.reads_by_day(REQUESTS), dark=dark)
    )
    assert panel["encoding"]["x"]["scale"] == refused["encoding"]["x"]["scale"]
    assert panel["title"] == "Given out by day, KiB"
    assert refused["encoding"]["y"]["field"] == "refused"
    for spec in (panel, refused):
        assert mark_counts(spec)["rule"] == views.sharing.reads_by_day(REQUESTS).height


@pytest.mark.parametrize(
    ("display_name", "text"),
    [
        (None, "v"),
        ("", "v"),
        ("v", "v"),
        ("Vaccine Share", "Vaccine Share (v)"),
        ("a\u202eb", "a\\u202eb (v)"),
        ("x" * 300, "x" * 254 + "\N{HORIZONTAL ELLIPSIS} (v)"),
    ],
)
def test_a_share_is_shown_by_its_display_name(display_name: str | None, text: str) -> None:
    assert views.sharing.share_name({"share": "v", "display_name": display_name}) == text
