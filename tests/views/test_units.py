"""Numbers as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from lakeview import views


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(None, "unknown", id="what is not known is never 0"),
        pytest.param(0, "0", id="none at all"),
        pytest.param(9_999, "9,999", id="below ten thousand whole"),
        pytest.param(10_000, "10.0 k", id="three figures from there"),
        pytest.param(61_480_112, "61.5 M", id="millions"),
        pytest.param(999_600, "1.00 M", id="no four figures: the next unit"),
        pytest.param(-220_000, "\N{MINUS SIGN}220 k", id="a true minus"),
    ],
)
def test_counts_have_three_figures(value: int | None, text: str) -> None:
    assert views.units.format_count(value) == text


def test_means_of_counts_have_one_decimal_and_round_a_half_up() -> None:
    assert [views.units.format_mean(value) for value in (1.0, 2.96, 3.25, 1.15, 99.96, 1234.5)] == [
        "1", "3", "3.3", "1.1", "100", "1,235",
    ]  # fmt: skip


def test_means_below_each_other_have_a_decimal_if_one_has() -> None:
    assert views.units.format_means([24.0, 3.25, 100.0, 1.0]) == ["24.0", "3.3", "100", "1.0"]
    assert views.units.format_means([24.0, 1.0]) == ["24", "1"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (99.96123, "99.96"),
        (1e6, "1,000,000"),
        (-1234567.5, "\N{MINUS SIGN}1,234,568"),
        (0.000123456, "0.0001235"),
        (0.0, "0"),
        (1e300, "1e+300"),
    ],
)
def test_values_have_all_their_digits_before_the_point(value: float, text: str) -> None:
    assert views.units.format_figure(value) == text


def test_exact_counts_have_comma_groups() -> None:
    assert views.units.format_count(43_768_405, exact=True) == "43,768,405"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(None, "unknown", id="unknown"),
        pytest.param(0, "0 B", id="nothing"),
        pytest.param(999, "999 B", id="bytes"),
        pytest.param(1023, "1.00 KiB", id="no four figures"),
        pytest.param(1 << 20, "1.00 MiB", id="one of a unit"),
        pytest.param(9_416_691_835, "8.77 GiB", id="binary units by name"),
        pytest.param(131 << 20, "131 MiB", id="whole from a hundred on"),
    ],
)
def test_bytes_are_binary_and_named(value: int | None, text: str) -> None:
    assert views.units.format_bytes(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        pytest.param(None, "unknown", id="unknown"),
        pytest.param(0.0, "0 %", id="none"),
        pytest.param(0.0002, "0.02 %", id="not quite none"),
        pytest.param(1e-9, "<0.0001 %", id="nearly none"),
        pytest.param(0.024, "2.4 %", id="one decimal"),
        pytest.param(0.9998, "99.98 %", id="not quite all"),
        pytest.param(1 - 1e-9, ">99.9999 %", id="nearly all"),
        pytest.param(1.0, "100 %", id="all"),
    ],
)
def test_percent_does_not_round_to_none_or_all(share: float | None, text: str) -> None:
    assert views.units.format_percent(share) == text


@pytest.mark.parametrize(
    ("age", "text"),
    [
        pytest.param(None, "unknown", id="unknown"),
        pytest.param(timedelta(seconds=12), "12 s", id="seconds"),
        pytest.param(timedelta(minutes=3, seconds=4), "3 min 4 s", id="minutes"),
        pytest.param(timedelta(hours=2, minutes=32), "2 h 32 min", id="hours"),
        pytest.param(timedelta(hours=2), "2 h", id="nothing of the second unit"),
        pytest.param(timedelta(days=1, hours=5), "1 day 5 h", id="a day"),
        pytest.param(timedelta(days=48, hours=5), "48 days", id="many days"),
        pytest.param(timedelta(seconds=-5), "0 s", id="a clock that is behind"),
    ],
)
def test_ages_have_two_units(age: timedelta | None, text: str) -> None:
    assert views.units.format_age(age) == text


def test_durations_below_a_second_are_milliseconds() -> None:
    assert [views.units.format_duration(ms) for ms in (0, 350, 999, 1_000, 125_000)] == [
        "0 ms", "350 ms", "999 ms", "1 s", "2 min 5 s",
    ]  # fmt: skip


def test_moments_are_told_in_utc() -> None:
    moment = datetime(2026, 7, 15, 5, 25, 21, tzinfo=timezone(timedelta(hours=2)))
    assert views.units.format_moment(moment) == "2026-07-15 03:25"
    assert views.units.format_moment(moment, seconds=True) == "2026-07-15 03:25:21"
    assert views.units.format_date(moment.astimezone(UTC)) == "2026-07-15"
    assert views.units.format_moment(None) == "unknown"


def test_versions_and_ranges() -> None:
    assert views.units.format_version(63) == "v63"
    assert views.units.format_version(None) == "unknown"
    assert views.units.format_range(42, 53) == "v42\N{EN DASH}v53"
    assert views.units.format_range(50, 50) == "v50"


def test_changes_carry_their_sign() -> None:
    assert views.units.format_change(220_000) == "+220 k"
    assert views.units.format_change(-3) == "\N{MINUS SIGN}3"
    assert views.units.format_change(34 << 20, bytes_=True) == "+34.0 MiB"
    assert views.units.format_change(None) == "unknown"
    changes = [views.units.format_row_change(rows) for rows in (1, -1, 22_300)]
    assert changes == ["+1 row", "\N{MINUS SIGN}1 row", "+22.3 k rows"]


def test_counted_things() -> None:
    assert [views.units.count_text(n, "file") for n in (0, 1, 1204)] == ["0 files", "1 file", "1,204 files"]
    assert views.units.count_text(2, "entry", "entries") == "2 entries"


@pytest.mark.parametrize(
    ("gain", "loss", "text"),
    [(3, 0, "+3"), (0, 1_200, "\N{MINUS SIGN}1,200"), (3, 2, "+3 \N{MINUS SIGN}2"), (0, 0, "0"), (None, 2, None)],
)
def test_gain_and_loss_have_their_signs(gain: int | None, loss: int | None, text: str | None) -> None:
    assert views.units.gain_and_loss(gain, loss) == text
