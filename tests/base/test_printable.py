"""Texts made short enough to show."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pytest

from lakeview.model.printable import ELLIPSIS, choices, example_text, shorten, shorten_column


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
