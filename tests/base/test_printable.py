"""Texts made short enough to show."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pytest

from lakeview.model.printable import ELLIPSIS, choices, example_text, shorten, shorten_apart, shorten_column


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("abcd", "abcd"),
        ("abcde", f"abc{ELLIPSIS}"),
        ("\N{MUSICAL SYMBOL G CLEF}" * 5, f"{'𝄞' * 3}{ELLIPSIS}"),
        ("", ""),
    ],
    ids=["as long as allowed", "longer", "characters, not bytes", "empty"],
)
def test_a_text_is_cut_to_a_length_that_counts_the_ellipsis(text: str, short: str) -> None:
    assert shorten(text, 4) == short
    assert pl.DataFrame({"a": [text]}).select(shorten_column(pl.col("a"), 4)).item() == short


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("a'b", '"a\'b"'),
        (datetime(2024, 1, 1, tzinfo=UTC), "2024-01-01 00:00:00+00:00"),
        ({"a": [Decimal("1.50"), True], "b": b"\xff"}, "{a: [1.50, true], b: X'FF'}"),
        ("x" * 99, f"'{'x' * 78}{ELLIPSIS}"),
    ],
)
def test_a_value_in_a_message_is_not_written_as_in_python(value: object, text: str) -> None:
    assert example_text(value) == text


def test_the_names_most_like_one_are_found_case_aside() -> None:
    assert choices("DELAY", ["delay", "id", "carrier"]) == "perhaps delay is meant"
    assert choices("delay", ["Delay", "DELAY", "id"]) == "perhaps Delay or DELAY is meant"
    assert choices("zz", ["delay"]) == "choose from delay"


def test_texts_that_would_look_alike_leave_out_the_middle_of_what_they_begin_with() -> None:
    names = [f"customer_lifetime_value_for_region_{place:02}_after_adjustment" for place in range(3)]
    short = shorten_apart([*names, "id", "another_of_so_many_letters_in_a_row"], 24)
    assert short[:3] == [
        f"customer\N{HORIZONTAL ELLIPSIS}gion_{place:02}_after_\N{HORIZONTAL ELLIPSIS}" for place in range(3)
    ]
    assert short[3:] == ["id", "another_of_so_many_lett\N{HORIZONTAL ELLIPSIS}"]
    assert shorten_apart(["the same long text"] * 2, 8) == ["the sam\N{HORIZONTAL ELLIPSIS}"] * 2
