"""A row difference as a diff: which rows are one row that changed, and in which cells."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from lakeview.views.compare.row_pairs import changed_first, found_key, repeat_rows, row_pairs


def rows(came: list[dict[str, Any]], went: list[dict[str, Any]]) -> pl.DataFrame:
    signed = [{"_difference": 1, **row} for row in came] + [{"_difference": -1, **row} for row in went]
    return pl.DataFrame(signed, infer_schema_length=None)


CAME: list[dict[str, Any]] = [
    {"id": 1, "day": 1, "x": 0.1, "who": "a"},
    {"id": 2, "day": 1, "x": None, "who": "b"},
    {"id": 9, "day": 3, "x": 0.5, "who": "c"},
]
WENT: list[dict[str, Any]] = [
    {"id": 2, "day": 1, "x": 0.25, "who": "b"},
    {"id": 1, "day": 1, "x": 0.1, "who": "z"},
    {"id": 7, "day": 1, "x": 0.5, "who": "c"},
]


def test_rows_of_one_key_are_one_row_that_changed() -> None:
    assert found_key(rows(CAME, WENT)) == ["id"]
    assert row_pairs(rows(CAME, WENT), ["id"])[0].rows() == [
        ("~", 1, "1", "1", "0.1", "z \N{RIGHTWARDS ARROW} a"),
        ("~", 1, "2", "1", "0.25 \N{RIGHTWARDS ARROW} null", "b"),
        ("+", None, "9", "3", "0.5", "c"),
        ("\N{MINUS SIGN}", None, "7", "1", "0.5", "c"),
    ]


@pytest.mark.parametrize(
    ("times", "heights"),
    [([1, -1], [1, 1]), ([3, -2], [3, 2]), ([5_000, -2], [500, 2]), ([2, *[-1] * 999], [1, *[1] * 999])],
)
def test_a_row_stands_as_often_as_it_came_or_went(times: list[int], heights: list[int]) -> None:
    rows = repeat_rows(pl.DataFrame({"_difference": times, "id": range(len(times))}))
    assert rows["id"].value_counts().sort("id")["count"].to_list() == heights


def test_an_empty_text_and_the_word_null_are_told_from_null() -> None:
    pairs, _ = row_pairs(rows([{"id": 1, "a": "", "b": None}], [{"id": 1, "a": None, "b": "null"}]), ["id"])
    assert pairs.row(0)[3:] == ('null → ""', '"null" → null')


def test_the_key_and_what_changed_are_seen_first() -> None:
    changed_day = [{**row, "day": 5} for row in CAME]
    columns = rows(changed_day, CAME).rename({"who": "_change", "id": "^id$"})
    _, cells = row_pairs(columns, ["_change"])
    assert changed_first(cells, columns.columns[1:], ["_change"]) == ["_change_", "day"]
    assert changed_first(cells, columns.columns[1:], []) == ["day"]


def test_an_arrow_of_a_text_is_no_change() -> None:
    ways = [{"id": 1, "way": "EWR → JFK", "x": x} for x in (1, 2)]
    others = [{"id": 3, "way": "JFK → EWR", "x": 3}]
    pairs, cells = row_pairs(rows([ways[0], *others], ways[1:]), ["id"])
    assert pairs.rows() == [("~", 1, "1", "EWR → JFK", "2 → 1"), ("+", None, "3", "JFK → EWR", "3")]
    assert cells.rows() == [(False, False, True), (False, False, False)]


def test_a_column_of_the_table_may_be_called_as_one_of_the_diff() -> None:
    renamed_rows = rows(CAME, WENT).rename({"day": "_change", "x": "_changed_columns", "who": "_change_"})
    assert row_pairs(renamed_rows, ["id"])[0].columns[2:] == ["id", "_change__", "_changed_columns_", "_change_"]


def test_a_name_may_look_like_a_pattern() -> None:
    renamed_rows = rows(CAME, WENT).rename({"id": "^id$", "x": "^.*$", "who": "*"})
    assert found_key(renamed_rows) == ["^id$"]
    pairs, _ = row_pairs(renamed_rows, ["^id$"])
    assert pairs.columns[2:] == ["^id$", "day", "^.*$", "*"]
    assert pairs.rows() == row_pairs(rows(CAME, WENT), ["id"])[0].rows()


def test_without_a_key_every_row_came_or_went() -> None:
    assert row_pairs(rows(CAME, WENT), [])[0]["_change"].to_list() == ["+"] * 3 + ["\N{MINUS SIGN}"] * 3


def test_a_key_that_names_several_rows_pairs_them_in_their_order() -> None:
    pairs, _ = row_pairs(rows(CAME, WENT), ["day"])
    assert pairs["_change"].to_list() == ["~", "~", "+", "\N{MINUS SIGN}"]
    assert pairs["_changed_columns"].to_list() == [3, 3, None, None]


@pytest.mark.parametrize(
    ("came", "went", "expected"),
    [
        pytest.param(
            [{"a": 1, "b": 1}, {"a": 1, "b": 2}], [{"a": 1, "b": 1}, {"a": 2, "b": 2}], ["b"], id="one column"
        ),
        pytest.param(
            [{"a": 1, "b": 1, "c": 0}, {"a": 1, "b": 2, "c": 0}, {"a": 2, "b": 1, "c": 0}],
            [{"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 2, "c": 1}, {"a": 2, "b": 1, "c": 1}],
            ["a", "b"],
            id="two together",
        ),
        pytest.param([{"a": 1}], [{"a": 2}], [], id="none on both sides"),
        pytest.param([{"a": 1}], [], [], id="rows only came"),
        pytest.param([{"a": [1]}], [{"a": [1]}], [], id="a list is no key"),
    ],
)
def test_the_key_is_the_fewest_columns_that_name_rows_on_both_sides(
    came: list[dict[str, Any]], went: list[dict[str, Any]], expected: list[str]
) -> None:
    assert found_key(rows(came, went)) == expected


def test_times_and_nested_values_read_as_on_other_pages() -> None:
    zoned = datetime(2026, 3, 4, 5, tzinfo=UTC)
    at = zoned.replace(tzinfo=None)
    came = [{"at": at, "zoned": zoned, "s": {"x": 1, "on": at.date()}}]
    later = [{"at": at.replace(microsecond=500), "zoned": zoned, "s": {"x": None, "on": None}}]
    added, removed = row_pairs(rows(came, later), [])[0].rows()
    assert added[2:] == ("2026-03-04 05:00:00", "2026-03-04 05:00:00", '{"x": 1, "on": "2026-03-04"}')
    assert removed[2:] == ("2026-03-04 05:00:00.000500", "2026-03-04 05:00:00", '{"x": null, "on": null}')


def test_cells_keep_all_digits_and_nested_values_are_compared() -> None:
    came, went = ([{"k": 1, "x": x, "l": [1, 2]}] for x in (1.00000001, 1.00000002))
    assert row_pairs(rows(came, went), ["k"])[0].row(0) == (
        "~",
        1,
        "1",
        "1.00000002 \N{RIGHTWARDS ARROW} 1.00000001",
        "[1, 2]",
    )
