"""Which equality deletes reach which data files: none is left out that names a row, and those that cannot are."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest

from lakeview.iceberg.deletes.equality_index import EqualityIndex
from lakeview.iceberg.deletes.index import applying, pairs
from lakeview.iceberg.manifests.entries import ENTRIES
from lakeview.model.data_types import Field, PrimitiveType
from tests.builders.iceberg import single

LONG, TEXT, REAL = 1, 2, 3
FIELDS = {
    LONG: Field("n", PrimitiveType("long"), id=LONG),
    TEXT: Field("s", PrimitiveType("string"), id=TEXT),
    REAL: Field("x", PrimitiveType("double"), id=REAL),
}
GLOBAL, PARTED = 0, 1
Row = Mapping[int, Any]


def entry(
    rows: Sequence[Row], sequence: int, *, ids: Sequence[int] = (), part: int | None = None, with_bounds: bool = True
) -> dict[str, Any]:
    """A file of these rows: a data file, or with `ids` an equality delete; `told`: with metrics. Values by field id."""
    entries_read: dict[str, Any] = dict.fromkeys(ENTRIES)
    entries_read |= {
        "content": 2 if ids else 0, "path": f"f{random.random()}", "sequence_number": sequence, "records": len(rows),
        "equality_ids": list(ids) or None, "spec_id": GLOBAL if part is None else PARTED, "partition": {"f1000": part},
    }  # fmt: skip
    columns = {i: [row[i] for row in rows] for i in FIELDS if rows and i in rows[0]}
    if with_bounds:
        values = {i: [v for v in column if v is not None and v == v] for i, column in columns.items()}
        entries_read["null_value_counts"] = [{"key": i, "value": c.count(None)} for i, c in columns.items()]
        entries_read["nan_value_counts"] = [
            {"key": i, "value": sum(v != v for v in c)} for i, c in columns.items() if i == REAL
        ]
        entries_read["lower_bounds"] = [{"key": i, "value": single(min(v))} for i, v in values.items() if v]
        entries_read["upper_bounds"] = [{"key": i, "value": single(max(v))} for i, v in values.items() if v]
    return entries_read


def frame(entries: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    schema = {**ENTRIES, "spec_id": pl.Int32(), "partition": pl.Struct({"f1000": pl.Int32()})}
    return pl.DataFrame(list(entries), schema=schema)


def reaching(data: Sequence[Mapping[str, Any]], deletes: Sequence[Mapping[str, Any]]) -> list[tuple[int, ...]]:
    sets, of_files = EqualityIndex(frame(deletes), FIELDS, [GLOBAL]).reaching(frame(data))
    assert sets[0] == ()
    return [sets[number] for number in of_files]


NAN = math.nan
OLD: list[Row] = [{LONG: 10, TEXT: "m", REAL: 1.0}, {LONG: 20, TEXT: "p", REAL: 2.0}]
WITH_NULL: list[Row] = [*OLD, {LONG: None, TEXT: None, REAL: NAN}]
ALL_NULL: list[Row] = [{LONG: None, TEXT: None, REAL: None}]
CASES: dict[str, tuple[list[Row], list[Row], list[int], bool]] = {
    "a value inside": (OLD, [{LONG: 15}], [LONG], True),
    "a value at the end": (OLD, [{LONG: 20}], [LONG], True),
    "a value above": (OLD, [{LONG: 21}], [LONG], False),
    "a value below": (OLD, [{LONG: 9}], [LONG], False),
    "values around": (OLD, [{LONG: 0}, {LONG: 99}], [LONG], True),
    "a text above": (OLD, [{TEXT: "q"}], [TEXT], False),
    "a real above": (OLD, [{REAL: 3.0}], [REAL], False),
    "zeros of either sign": ([{REAL: 0.0}], [{REAL: -0.0}], [REAL], True),
    "two columns of which one meets": (OLD, [{LONG: 15, TEXT: "z"}], [LONG, TEXT], False),
    "two columns that meet": (OLD, [{LONG: 15, TEXT: "n"}], [LONG, TEXT], True),
    "a null, and the file has none": (OLD, [{LONG: None}], [LONG], False),
    "a null, and the file has one": (WITH_NULL, [{LONG: None}], [LONG], True),
    "a value above and a null, and the file has one": (WITH_NULL, [{LONG: 99}, {LONG: None}], [LONG], True),
    "a value, and the file has nulls alone": (ALL_NULL, [{LONG: 15}], [LONG], False),
    "a null, and the file has nulls alone": (ALL_NULL, [{LONG: None}], [LONG], True),
    "a NaN, and the file has none": (OLD, [{REAL: NAN}], [REAL], False),
    "a NaN, and the file has one": (WITH_NULL, [{REAL: NAN}], [REAL], True),
    "a real above, and the file has NaN": (WITH_NULL, [{REAL: 9.0}], [REAL], False),
    "a column that bounds say nothing of": (OLD, [{LONG: 99}], [77], True),
}


@pytest.mark.parametrize("case", CASES)
def test_a_delete_reaches_a_file_whose_bounds_it_meets(case: str) -> None:
    data_rows, delete_rows, ids, expected = CASES[case]
    assert reaching([entry(data_rows, 1)], [entry(delete_rows, 2, ids=ids)]) == [(0,) if expected else ()]


@pytest.mark.parametrize("side", ["the file", "the delete"])
def test_where_metrics_are_missing_a_delete_reaches_everything(side: str) -> None:
    data, delete = (
        entry(OLD, 1, with_bounds=side != "the file"),
        entry([{LONG: 99}], 2, ids=[LONG], with_bounds=side == "the file"),
    )
    assert reaching([data], [delete]) == [(0,)]


def test_a_delete_reaches_older_files_of_its_partition_or_of_all() -> None:
    delete_rows: list[Row] = [{LONG: 15}]
    data = [entry(OLD, s, part=part) for s, part in ((1, 1), (1, 2), (1, None), (2, 1), (3, 1), (1, 1))]
    deletes = [
        entry(delete_rows, 2, ids=[LONG], part=1),
        entry(delete_rows, 3, ids=[LONG]),
        entry(delete_rows, 2, ids=[LONG], part=2),
    ]
    matches_found = reaching(data, deletes)
    assert matches_found == [(0, 1), (1, 2), (1,), (1,), (), (0, 1)]
    assert matches_found[0] is matches_found[5]
    assert applying(frame(data), frame(deletes), [GLOBAL]) == {0, 1, 2}
    assert applying(frame(data[4:5]), frame(deletes), [GLOBAL]) == set()
    assert set(pairs(frame(data), frame(deletes), [GLOBAL])["data"]) == {0, 1, 2, 3, 5}


def matches(row: Row, delete_row: Row, ids: Sequence[int]) -> bool:
    return all(row[i] == delete_row[i] or (row[i] != row[i] and delete_row[i] != delete_row[i]) for i in ids)


@pytest.mark.parametrize("seed", range(12))
def test_no_delete_that_names_a_row_is_left_out(seed: int) -> None:
    rng = random.Random(seed)

    def row() -> Row:
        return {
            LONG: rng.choice([None, *range(0, 60, 3)]), TEXT: rng.choice([None, "", "a", "ab", "\u00e9", "\U0001f600"]),
            REAL: rng.choice([None, NAN, 0.0, -0.0, 1.5, -7.0, math.inf]),
        }  # fmt: skip

    def file(most: int) -> list[Row]:
        return [row() for _ in range(rng.randint(1, most))]

    ids = [rng.sample(list(FIELDS), rng.randint(1, 3)) for _ in range(400)]
    data = [(file(3), rng.randint(0, 9), rng.choice([None, 1, 2])) for _ in range(60)]
    deletes = [(file(2), rng.randint(0, 9), rng.choice([None, None, 1, 2]), i) for i in ids]
    pairs = reaching(
        [entry(rows, s, part=part, with_bounds=rng.random() < 0.9) for rows, s, part in data],
        [entry(rows, s, part=part, ids=i, with_bounds=rng.random() < 0.9) for rows, s, part, i in deletes],
    )
    possible = 0
    for (rows, sequence, part), numbers in zip(data, pairs, strict=True):
        assert list(numbers) == sorted(set(numbers))
        for number, (delete_rows, later, where, compared) in enumerate(deletes):
            old = sequence < later and where in (None, part)
            possible += old
            if old and any(matches(r, n, compared) for r in rows for n in delete_rows):
                assert number in numbers
            if not old:
                assert number not in numbers
    assert sum(map(len, pairs)) < possible
