"""From which version on a column is there, and which files are proved to lack it."""

from __future__ import annotations

import polars as pl
import pytest

from lakeview.model.data_types import Field, PrimitiveType, StructType
from lakeview.model.schema import Schema
from lakeview.views.schema.births import (
    BEFORE_ALL,
    NEVER,
    Absence,
    absences,
    absent_shares,
    births,
    with_absent_columns,
)

LONG = PrimitiveType("long")
FIELDS = {name: Field(name, LONG) for name in "abc"}
IDS = {name: Field(name, LONG, id=number) for number, name in enumerate("abc", start=1)}
MAPPED = {name: Field(name, LONG, id=number, physical_name=f"col-{name}") for number, name in enumerate("abc", start=1)}


def schema(fields: dict[str, Field], names: str) -> Schema:
    return Schema(tuple(fields[name] for name in names))


@pytest.mark.parametrize(
    ("fields", "since"),
    [
        pytest.param(FIELDS, 5, id="a name may have been another column's before the log begins"),
        pytest.param(IDS, BEFORE_ALL, id="a field id was never another column's"),
        pytest.param(MAPPED, 5, id="a physical name is that of the column before mapping was turned on"),
    ],
)
def test_files_before_a_column_lack_it(fields: dict[str, Field], since: int) -> None:
    first = births([(5, schema(fields, "a")), (8, schema(fields, "ab"))])
    assert absences(schema(fields, "abc"), first, 5) == {"b": Absence(since, 8), "c": Absence(since, NEVER)}


def test_a_column_that_goes_and_comes_again_is_as_old_as_the_first() -> None:
    first = births([(0, schema(FIELDS, "ab")), (3, schema(FIELDS, "a")), (6, schema(FIELDS, "ab"))])
    assert absences(schema(FIELDS, "ab"), first, 0) == {}
    assert absences(Schema((Field("B", LONG),)), first, 0) == {}  # names differ in case alone


def test_a_schema_that_cannot_be_read_may_have_had_any_column() -> None:
    first = births([(0, schema(FIELDS, "a")), (4, None), (6, schema(FIELDS, "ab"))])
    assert absences(schema(FIELDS, "ab"), first, 0) == {"b": Absence(0, 4)}
    assert absences(schema(FIELDS, "ab"), births([(0, None), (6, schema(FIELDS, "ab"))]), 0) == {}


def test_a_column_with_a_default_is_null_in_no_file() -> None:
    late = Field("b", LONG, metadata={"initial-default": 7}, id=2)
    inner = Field("s", StructType((Field("x", LONG, id=4),)), id=3)
    first = births([(0, schema(IDS, "a"))])
    absences_found = absences(Schema((late, inner)), first, 0, "initial-default")
    assert absences_found == {"s.x": Absence(BEFORE_ALL, NEVER)}


def test_only_files_of_these_versions_count_and_recorded_counts_stay() -> None:
    counts = [None, None, None, None, 2]
    column = [{"null_count": n, "null_count_exact": n is not None} for n in counts]
    statistics = pl.DataFrame(
        {"b": column}, schema={"b": pl.Struct({"null_count": pl.Int64, "null_count_exact": pl.Boolean})}
    )
    arrived = pl.Series([BEFORE_ALL, 3, 8, None, 3])
    rows = pl.Series([10, 10, 10, 10, 10])
    result = with_absent_columns(statistics, {"b": Absence(0, 8)}, arrived, rows)["b"]
    assert result.struct.field("null_count").to_list() == [None, 10, None, None, 2]
    assert result.struct.field("null_count_exact").to_list() == [False, True, False, False, True]
    result = with_absent_columns(statistics, {"b": Absence(BEFORE_ALL, 8)}, arrived, rows)["b"]
    assert result.struct.field("null_count").to_list() == [10, 10, None, None, 2]


@pytest.mark.parametrize(
    ("records", "deleted", "rows", "since", "expected"),
    [
        pytest.param((60, 40), (0, 0), 100, 7, (0.6, "before v7", "60.0 % before v7"), id="exact"),
        pytest.param((60, 40), (10, 0), 90, 7, (0.5556, "before v7", "55.6 % before v7"), id="deleted rows are none"),
        pytest.param((60, 40), (None, 0), None, 7, (0.6, "before v7", "\N{LESS-THAN OR EQUAL TO} 60.0 % before v7"),
                     id="some of them may be deleted"),
        pytest.param((60, 40, None), (0, 0, 0), 160, 7, (0.375, "before v7",
                     "\N{GREATER-THAN OR EQUAL TO} 37.5 % before v7"), id="another file may lack it too"),
        pytest.param((60, 40), (0, 0), 100, None, (0.6, "in no file yet", "60.0 % in no file yet"), id="declared"),
    ],
)  # fmt: skip
def test_the_part_before_a_column_is_named_and_says_how_far_it_is_known(
    records: tuple[int | None, ...],
    deleted: tuple[int | None, ...],
    rows: int | None,
    since: int | None,
    expected: tuple[float, str, str],
) -> None:
    paths = [f"f{number}" for number in range(len(records))]
    files = pl.DataFrame(
        {"path": paths, "deletion_vector": None, "records": records, "deleted_records": deleted},
        schema_overrides={"deletion_vector": pl.String, "records": pl.Int64, "deleted_records": pl.Int64},
    )

    def counts(*nulls: int | None) -> pl.DataFrame:
        column = [{"null_count": n} for n in (*nulls, None)[: len(records)]]
        kind = pl.Struct({"null_count": pl.Int64})
        schema = pl.Schema({"_path": pl.String(), "_deletion_vector": pl.String(), "b": kind})
        return pl.DataFrame({"_path": paths, "_deletion_vector": None, "b": column}, schema=schema)

    shares = absent_shares({"b": since}, counts(None, 3), counts(60, 3), files, rows, 100)
    ((path, share, *words),) = shares.rows()
    assert (path, share, *words) == ("b", pytest.approx(expected[0], abs=1e-3), *expected[1:])
