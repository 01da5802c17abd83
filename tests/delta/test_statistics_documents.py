"""Statistics documents: the fast way to decode them and the exact one say the same of every document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeview.delta.data import document_columns, documents
from lakeview.delta.data.document_values import DTYPES, Kind, Place, Places, exact
from lakeview.delta.data.documents import Documents

DAMAGE = st.tuples(st.integers(0, 10_000), st.text('{}[]",:\\0aN \n', max_size=3), st.integers(0, 3))
PLACES: dict[Place, Kind] = {
    ("numRecords",): Kind.COUNT,
    ("tightBounds",): Kind.BOOLEAN,
    ("minValues", "i"): Kind.INTEGER,
    ("minValues", "f"): Kind.FLOAT,
    ("minValues", "d"): Kind.NUMBER,
    ("minValues", "t"): Kind.TEXT,
    ("minValues", "b"): Kind.BOOLEAN,
    ("minValues", "s", "i"): Kind.INTEGER,
    ("minValues", "s", "u", "t"): Kind.TEXT,
    ("nullCount", "i"): Kind.COUNT,
    ("nullCount", "s", "i"): Kind.COUNT,
    ("nullCount", ""): Kind.COUNT,
}
NUMBERS = st.sampled_from([
    "0", "-0", "1", "-17", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "12345678901234567890123", "0.1", "-0.0", "1.0", "1.50", "1e5", "1E+2", "2.5e-3", "1e400", "-1e400", "1e-400",
    "9007199254740993", "0.30000000000000004",
    "99999999999999999.99999999999999999999", "123456789012345678", "4.35", "1e22", "1e23", "5e-324",
    "2.2250738585072011e-308",
])  # fmt: skip
WORDS = st.sampled_from([
    '""', '"a"', '"NaN"', '"Infinity"', '"-Infinity"', '"12"', '"1.5"', '"true"', '"null"', '"\\u0041\\n"', '"x\\":1"',
    '"a,\\"i\\":3"', '"},"', '"\u00e9\u20ac\U0001f600"', '"{"', '"\\\\"', '"2026-01-01T00:00:00.123Z"',
    '"a b"', '"\u007f"',
])  # fmt: skip
SCALARS = NUMBERS | WORDS | st.sampled_from(["null", "true", "false"])
KEYS = st.sampled_from(
    ["i", "f", "d", "t", "b", "s", "u", "", "x", "minValues", "numRecords", "tightBounds", "nullCount", "\u00e9"]
)
BLANKS = st.sampled_from(["", "", "", " ", "\n\t "])


@st.composite
def objects(draw: st.DrawFn, depth: int = 3) -> str:
    """A JSON object as text, spelled in any way; keys may come twice."""
    value = SCALARS if depth == 0 else SCALARS | objects(depth - 1) | st.sampled_from(["[]", "[1]", "{}", '[{"i":1}]'])
    blank = draw(BLANKS)
    pairs = draw(st.lists(st.tuples(KEYS, value), max_size=4))
    return "{" + f",{blank}".join(f'{blank}"{k}"{blank}:{blank}{v}' for k, v in pairs) + blank + "}"


RIGHT: dict[str, Any] = {
    "i": NUMBERS, "f": NUMBERS | WORDS, "d": NUMBERS, "t": WORDS, "b": st.sampled_from(["true", "false"]),
}  # fmt: skip


@st.composite
def statistics(draw: st.DrawFn) -> str:
    """A document much as writers write it."""

    def section(names: list[str], values: dict[str, Any], inner: str) -> str:
        return "{" + ",".join([*(f'"{n}":{draw(values[n])}' for n in names), *([inner] if inner else [])]) + "}"

    names = draw(st.lists(st.sampled_from(list(RIGHT)), unique=True))
    nested = draw(st.sampled_from(["", '"s":{"i":3}', '"s":{"i":3,"u":{"t":"x"}}', '"s":{"u":{}}', '"s":{}']))
    low = section(names, RIGHT, nested)
    counts = section(names, dict.fromkeys(RIGHT, NUMBERS), draw(st.sampled_from(["", '"s":{"i":1}', '"":2'])))
    tail = draw(
        st.sampled_from(["", ',"tightBounds":true', ',"tightBounds":false', ',"extra":[1]', ',"extra":{"a":"b"}'])
    )
    return f'{{"numRecords":{draw(NUMBERS)},"minValues":{low},"maxValues":{low},"nullCount":{counts}{tail}}}'


def same(actual: Mapping[Place, pl.Series], expected: Mapping[Place, pl.Series], places: Places) -> None:
    for place in places:
        assert actual[place].dtype == DTYPES[places[place]]
        assert actual[place].equals(expected[place], null_equal=True), (place, actual[place], expected[place])


TEXTS = st.lists(st.none() | statistics() | objects() | SCALARS, min_size=1, max_size=12)
ONE: dict[Place, Kind] = {("minValues", "i"): Kind.INTEGER}


@given(TEXTS, st.sampled_from([1, 3, 128]))
@settings(max_examples=25)
def test_both_ways_say_the_same(texts: list[str | None], batch: int) -> None:
    stats = pl.Series(texts, dtype=pl.String)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "_BATCH", batch)
        for places in (PLACES, ONE):
            same(Documents(places).decode(stats), exact(texts, places), places)


def valid(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


@given(st.lists(statistics(), min_size=1, max_size=3), DAMAGE)
@settings(max_examples=25)
def test_damaged_documents_are_decoded_alike_or_unknown(texts: list[str], damage: tuple[int, str, int]) -> None:
    at, inserted, cut = damage
    broken = [text[: at % len(text)] + inserted + text[at % len(text) + cut :] for text in texts]
    both = pl.Series([*texts, *broken], dtype=pl.String)
    expected = exact(both.to_list(), PLACES)
    for place, column in Documents(PLACES).decode(both).items():
        for text, value, right in zip(both, column, expected[place], strict=True):
            # of what is no JSON a value may be known all the same: the one that is written there
            assert value == right or value != value or not valid(text), (place, text)


MANY = [
    pytest.param(['{"numRecords":1}'] * 5, id="one shape"),
    pytest.param([f'{{"numRecords":{i},"minValues":{{"{"ift"[i % 3]}":{i}}}}}' for i in range(30)], id="three shapes"),
    pytest.param([f'{{"numRecords":{i},"k{i}":1}}' for i in range(30)], id="a shape for each document"),
    pytest.param(['{"minValues":{"t":"a"}}', '{"minValues":{"t":"a\\u0062"}}'] * 9, id="escapes"),
    pytest.param([' { "numRecords" : 1 , "minValues" : { "i" : 2 } } '] * 3, id="blanks"),
    pytest.param(['{"numRecords":1,"minValues":{"t":"x\\":1"}}'] * 3, id="text that looks like a key"),
    pytest.param(['{"numRecords":1}', "{", None, "[" * 5_000, '{"numRecords":1}x'], id="no JSON"),
    pytest.param(['{"numRecords":1,"numRecords":2}', '{"minValues":{"i":1},"minValues":{"t":"a"}}'], id="keys twice"),
    pytest.param(['{"a":1,"minValues":{"i":5}}', '{"a":1},"minValues":{"i":5}}'], id="a brace too many"),
    pytest.param([None, None], id="none at all"),
    pytest.param([], id="no file"),
]  # fmt: skip


@pytest.mark.parametrize("texts", MANY)
@pytest.mark.parametrize("batch", [1, 7, 8_192])
def test_batches_change_nothing(texts: list[str | None], batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_BATCH", batch)
    monkeypatch.setattr(document_columns, "_LIST", 2 * batch)
    monkeypatch.setattr(document_columns, "_MANY_ROWS", 3)
    same(Documents(PLACES).decode(pl.Series(texts, dtype=pl.String)), exact(texts, PLACES), PLACES)


@pytest.mark.parametrize(
    "number", [str(document_columns.ABSENT), "null", '"NaN"', '"-Infinity"', '"1.5"', "9223372036854775808", "true"]
)
def test_a_number_that_cannot_be_packed_or_means_none_is_what_the_document_says(number: str) -> None:
    low = f'{{"f":{number},"i":{number},"t":"NaN"}}'
    texts = ["{}", f'{{"numRecords":{number},"minValues":{low},"nullCount":{low}}}', '{"minValues":{"i":1,"f":0.5}}']
    same(Documents(PLACES).decode(pl.Series(texts)), exact(texts, PLACES), PLACES)


def test_columns_stand_side_by_side_in_the_order_asked_for() -> None:
    places: dict[Place, Kind] = {("minValues", name): Kind.INTEGER for name in "abc"}
    order = [("minValues", name) for name in "cab"]
    columns = Documents(places, order).decode(pl.Series(['{"minValues":{"a":1,"b":2,"c":3}}', "{}"]))
    assert columns.side_by_side(order[:2]).to_list() == [3, None, 1, None]
    assert columns.side_by_side([order[2], order[0]]).to_list() == [2, None, 3, None]


LONG = "12345678901234567890123.456"


def test_keys_that_json_escapes_are_found_too() -> None:
    places: dict[Place, Kind] = {("minValues", 'a"b\\c\n'): Kind.INTEGER}
    stats = pl.Series([json.dumps({"minValues": {'a"b\\c\n': 7}})] * 3)
    assert Documents(places).decode(stats)["minValues", 'a"b\\c\n'].to_list() == [7, 7, 7]


def test_numbers_keep_every_digit_and_lose_their_exponents() -> None:
    place: Place = ("minValues", "d")
    texts = [
        "0.10",
        "1E+3",
        "1e-7",
        LONG,
        "1e99",
        "1e999999999",
        '"7.5"',
        "true",
        "0." + "1" * 90,
    ]
    stats = pl.Series([f'{{"minValues":{{"d":{text}}}}}' for text in texts])
    expected = ["0.10", "1000", "0.0000001", LONG, None, None, "7.5", None, None]
    places: dict[Place, Kind] = {place: Kind.NUMBER}
    assert Documents(places).decode(stats)[place].to_list() == expected
