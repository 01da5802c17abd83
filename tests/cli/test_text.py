"""Values and frames to plain text."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeview.cli.text import as_json, cell, hanging, table
from lakeview.model.printable import printable

CELLS: dict[str, tuple[object, str]] = {
    "nothing": (None, ""),
    "no": (False, "no"),
    "a number": (1234567, "1,234,567"),
    "a moment": (datetime(2026, 3, 1, 8, 5, tzinfo=UTC), "2026-03-01 08:05:00"),
    "a list": (["a", date(2026, 3, 1)], '["a", "2026-03-01"]'),
    "a map of dates": ([{date(2026, 3, 1): b"\x01", 2: None}], '[{"2026-03-01": "01", "2": null}]'),
    "an exact number": (Decimal("1.50"), "1.50"),
    "a null character": ("a\0b", "a\\x00b"),
    "a lone surrogate": ("\ud800", "\\ud800"),
    "a text that turns round": ("\u202eabc", "\\u202eabc"),
    "letters of anywhere": ("Zürich 東京", "Zürich 東京"),
}


@pytest.mark.parametrize(("value", "text"), CELLS.values(), ids=CELLS)
def test_a_cell(value: object, text: str) -> None:
    assert cell(value) == text


@given(st.text())
def test_whatever_it_was_it_can_be_printed(text: str) -> None:
    assert printable(text).isprintable()
    assert as_json(text).isprintable()
    assert json.loads(as_json(text)) == text


def test_maps_of_any_keys_are_json() -> None:
    value = {"m": {date(2026, 3, 1): 1, b"\x01": 2, Decimal("1.50"): 3, 4: 5}}
    assert json.loads(as_json([value])) == [{"m": {"2026-03-01": 1, "01": 2, "1.50": 3, "4": 5}}]


@given(st.lists(st.tuples(st.text(max_size=60), st.integers(-(2**63), 2**63 - 1)), max_size=5), st.integers(60, 200))
def test_a_table_fits(rows: list[tuple[str, int]], limit: int) -> None:
    frame = pl.DataFrame(rows, schema={"text": pl.String, "number": pl.Int64}, orient="row")
    lines = list(table(frame, limit=limit))
    assert len(lines) == len(rows) + 1
    assert all(len(line) <= limit for line in lines)


def test_what_says_nothing_is_left_out_before_a_text_is_cut() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    frame = pl.DataFrame(
        {"name": ["first-quarter"], "at": [noon], "max_ref_age_ms": [None]},
        schema_overrides={"max_ref_age_ms": pl.Int64},
    )
    assert list(table(frame, limit=60))[1] == "first-quarter  2026-03-01 12:00:00"
    assert list(table(frame, limit=35)) == ["name           at", "first-quarter  2026-03-01 12:00"]
    some = frame.with_columns(at=noon.replace(second=1))
    assert list(table(some, limit=33))[1] == "first-quart…  2026-03-01 12:00:01"


def test_wide_letters_take_two_columns() -> None:
    frame = pl.DataFrame({"a": ["東京", "abc"], "b": ["x", "y"]})
    assert list(table(frame)) == ["a     b", "東京  x", "abc   y"]


def test_a_version_is_not_grouped() -> None:
    assert list(table(pl.DataFrame({"version": [12345], "size": [12345]}))) == ["version    size", "  12345  12,345"]


def test_a_text_hangs_below_its_head() -> None:
    assert list(hanging("fix: ", "one two three four", 14)) == ["fix: one two", "     three", "     four"]
    assert list(hanging("fix: ", "one two", None)) == ["fix: one two"]


def test_rows_that_do_not_fit_are_blocks_of_lines() -> None:
    frame = pl.DataFrame({"id": [1, 2], "order": [{"city": "Rome", "lines": ["a", "b"]}, None], "note": ["x", None]})
    assert list(table(frame, limit=60, is_data=True)) == [
        "id  order                                  note",
        ' 1  {"city": "Rome", "lines": ["a", "b"]}  x',
        " 2",
    ]
    assert list(table(frame, limit=40, is_data=True)) == [
        "row 1",
        "id     1",
        'order  {"city": "Rome", "lines": ["a",',
        '       "b"]}',
        "note   x",
        "row 2",
        "id     2",
        "order",
        "note",
    ]
    texts = pl.DataFrame({"a": ["x" * 50], "b": ["y" * 50]})
    assert list(table(texts, limit=40, is_data=True))[1].endswith("\N{HORIZONTAL ELLIPSIS}")


def test_a_program_gets_rows_in_lines_however_many_columns_they_have() -> None:
    frame = pl.DataFrame({f"column_{number}": [number] for number in range(100)})
    assert len(list(table(frame, limit=None, is_data=True))) == 2
    assert len(list(table(frame, limit=80, is_data=True))) == 101


def test_texts_that_begin_alike_are_cut_where_they_do_not_differ() -> None:
    names = [f"lifetime_value_for_region_{place:02}_after_adjustment" for place in (7, 8)]
    cut = [f"lifeti\N{HORIZONTAL ELLIPSIS}on_{place:02}_afte\N{HORIZONTAL ELLIPSIS}" for place in (7, 8)]
    assert list(table(pl.DataFrame({"column": names}), limit=18)) == ["column", *cut]
