"""Texts made short enough to show."""

from __future__ import annotations

import polars as pl
import pytest

from lakeview.model.printable import ELLIPSIS, shorten, shorten_column


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
