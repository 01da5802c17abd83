"""Schemas compared, and the lives of columns."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeview import views
from lakeview.model.data_types import ArrayType, DataType, DecimalType, Field, MapType, PrimitiveType, StructType
from lakeview.model.schema import Schema

LONG, INTEGER, STRING = PrimitiveType("long"), PrimitiveType("integer"), PrimitiveType("string")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def f(name: str, type_: DataType = LONG, nullable: bool = True, **more: Any) -> Field:
    return Field(name, type_, nullable, **more)


def s(*fields: Field) -> Schema:
    return Schema(fields)


def changes(a: Schema, b: Schema) -> list[tuple[str, str, str | None, str | None]]:
    return views.schema.diff.diff_schemas(a, b).select("column", "change", "before", "after").rows()


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        pytest.param(s(f("x")), s(f("x")), [], id="nothing changed"),
        pytest.param(s(), s(f("x")), [("x", "added", None, "long")], id="added"),
        pytest.param(s(f("x")), s(), [("x", "dropped", "long", None)], id="dropped"),
        pytest.param(s(f("x", id=1)), s(f("y", id=1)), [("y", "renamed", "x", "y")], id="renamed, told by id"),
        pytest.param(
            s(f("x", physical_name="col-7")),
            s(f("y", physical_name="col-7")),
            [("y", "renamed", "x", "y")],
            id="renamed, told by physical name",
        ),
        pytest.param(
            s(f("x")),
            s(f("y", id=1, physical_name="x")),
            [("y", "renamed", "x", "y")],
            id="renamed after name mapping came to the table",
        ),
        pytest.param(
            s(f("x", id=1)),
            s(f("x", id=2)),
            [("x", "added", None, "long"), ("x", "dropped", "long", None)],
            id="dropped and added again under its name",
        ),
        pytest.param(
            s(f("x")),
            s(f("y")),
            [("y", "added", None, "long"), ("x", "dropped", "long", None)],
            id="without ids a new name is a new column",
        ),
        pytest.param(
            s(f("x", id=1), f("y", id=2)),
            s(f("y", id=1), f("x", id=2)),
            [("y", "renamed", "x", "y"), ("x", "renamed", "y", "x")],
            id="two names swapped",
        ),
        pytest.param(s(f("x", INTEGER)), s(f("x")), [("x", "type", "integer", "long")], id="widened"),
        pytest.param(
            s(f("x", DecimalType(9, 2))),
            s(f("x", DecimalType(12, 2))),
            [("x", "type", "decimal(9,2)", "decimal(12,2)")],
            id="a wider decimal",
        ),
        pytest.param(
            s(f("x", nullable=False)), s(f("x")), [("x", "nullability", "not null", "nullable")], id="nullability"
        ),
        pytest.param(s(f("x")), s(f("x", metadata={"comment": "km"})), [("x", "comment", None, "km")], id="a comment"),
        pytest.param(
            s(f("x")), s(f("x", metadata={"CURRENT_DEFAULT": "0"})), [("x", "default", None, "0")], id="a default"
        ),
        pytest.param(
            s(f("x", metadata={"pii": True})),
            s(f("x", metadata={"pii": False, "owner": "li"})),
            [("x", "metadata", None, 'owner: "li"'), ("x", "metadata", "pii: true", "pii: false")],
            id="other metadata, a row a key",
        ),
        pytest.param(
            s(f("x", metadata={"delta.columnMapping.id": 1})), s(f("x")), [], id="what identifies is no metadata"
        ),
        pytest.param(
            s(f("x"), f("y"), f("z")),
            s(f("z"), f("x"), f("y")),
            [("z", "moved", "after y", "first")],
            id="one moved, the others made room",
        ),
        pytest.param(
            s(f("x"), f("z")), s(f("x"), f("y"), f("z")), [("y", "added", None, "long")], id="an insert moves nobody"
        ),
        pytest.param(
            s(f("a", StructType((f("b", INTEGER), f("c"))))),
            s(f("a", StructType((f("b"), f("d"))))),
            [("a.b", "type", "integer", "long"), ("a.d", "added", None, "long"), ("a.c", "dropped", "long", None)],
            id="inside a struct",
        ),
        pytest.param(
            s(f("a", ArrayType(StructType((f("b", id=5),))))),
            s(f("a", ArrayType(StructType((f("c", id=5),)), contains_null=False))),
            [("a.element", "nullability", "nullable", "not null"), ("a.element.c", "renamed", "b", "c")],
            id="inside a list",
        ),
        pytest.param(
            s(f("m", MapType(STRING, INTEGER))),
            s(f("m", MapType(STRING, LONG))),
            [("m.value", "type", "integer", "long")],
            id="inside a map",
        ),
        pytest.param(
            s(f("a")),
            s(f("a", StructType((f("b"),)))),
            [("a", "type", "long", "struct<b: long>")],
            id="a column became a struct",
        ),
        pytest.param(s(f("a.b")), s(), [("`a.b`", "dropped", "long", None)], id="a dot in a name is quoted"),
        pytest.param(s(f("^x$"), f("x")), s(f("x")), [("^x$", "dropped", "long", None)], id="a name like a pattern"),
    ],
)
def test_changes(a: Schema, b: Schema, expected: list[tuple[str, str, str | None, str | None]]) -> None:
    assert changes(a, b) == expected


@pytest.mark.parametrize(
    ("a", "b", "breaks"),
    [
        pytest.param(s(), s(f("x")), "nothing", id="a nullable column is added"),
        pytest.param(s(), s(f("x", nullable=False)), "writers that leave it out", id="a required column is added"),
        pytest.param(s(f("x", id=1)), s(f("y", id=1)), "readers by name", id="a rename"),
        pytest.param(s(f("x")), s(), "readers of it", id="a drop"),
        pytest.param(s(f("x", INTEGER)), s(f("x")), "readers of the old type", id="a wider type"),
        pytest.param(s(f("x")), s(f("x", INTEGER)), "readers; old files may not convert", id="a narrower type"),
    ],
)
def test_what_a_change_breaks(a: Schema, b: Schema, breaks: str) -> None:
    assert views.schema.diff.diff_schemas(a, b)["breaks"].to_list() == [breaks]


def test_unchanged_fields_are_left_out() -> None:
    diff = views.schema.diff.diff_schemas(s(f("x", id=1)), s(f("x", id=1), f("y", id=2)))
    assert diff.select("column", "change", "id").rows() == [("y", "added", 2)]
    assert diff.schema == views.schema.diff.diff_schemas(s(), s()).schema


@given(order=st.permutations(range(8)))
def test_moves_are_the_fewest_that_explain_the_order(order: list[int]) -> None:
    before, after = s(*(f(f"c{i}") for i in range(8))), s(*(f(f"c{i}") for i in order))
    moved = set(views.schema.diff.diff_schemas(before, after)["column"].to_list())
    common_columns = [c for c in after.names if c not in moved]
    assert common_columns == sorted(common_columns)
    assert views.schema.diff.diff_schemas(before, after)["change"].is_in(["moved"]).all()


def history_of(*schemas: Schema) -> list[tuple[int, datetime, Schema]]:
    return [(10 * i, NOON, schema) for i, schema in enumerate(schemas)]


def test_a_column_keeps_its_life_through_renames() -> None:
    column_lives = history_of(
        s(f("carrier", id=1), f("delay", INTEGER, id=2)),
        s(f("carrier", id=1), f("delay", id=2)),
        s(f("airline", id=1), f("delay", id=2)),
        s(f("airline", id=1)),
    )
    assert views.schema.column_history.column_history(column_lives).select(
        "column", "version", "change", "before", "after"
    ).rows() == [
        ("airline", 0, "added", None, "long"),
        ("airline", 20, "renamed", "carrier", "airline"),
        ("delay", 0, "added", None, "integer"),
        ("delay", 10, "type", "integer", "long"),
        ("delay", 30, "dropped", "long", None),
    ]
    lives = views.schema.column_history.column_lives(column_lives)
    assert lives.schema == views.schema.column_history.COLUMN_LIVES
    assert lives.drop("born_timestamp", "since").rows() == [
        ("airline", 0, 1, 20, "renamed from carrier", None),
        ("delay", 0, 1, 30, "dropped", 30),
    ]


def test_a_column_dropped_and_born_again_has_two_lives() -> None:
    lives = views.schema.column_history.column_lives(history_of(s(f("x")), s(), s(f("x"))))
    assert lives.select("column", "born", "dropped").rows() == [("x", 0, 10), ("x", 20, None)]


def test_nested_fields_are_born_and_die_with_their_parent() -> None:
    nested = ArrayType(StructType((f("b"),)))
    column_lives = history_of(s(f("a", nested)), s(f("a", nested, nullable=False)), s())
    lives = views.schema.column_history.column_lives(column_lives)
    assert lives.select("column", "born", "dropped").rows() == [
        ("a", 0, 20),
        ("a.element", 0, 20),
        ("a.element.b", 0, 20),
    ]


def test_a_change_of_shape_does_not_lose_the_thread() -> None:
    column_lives = history_of(
        s(f("a")), s(f("a", StructType((f("b", id=1),)))), s(f("a", StructType((f("c", id=1),)))), s()
    )
    lives = views.schema.column_history.column_lives(column_lives)
    assert lives.select("column", "born", "dropped").rows() == [("a", 0, 30), ("a.c", 10, 30)]
    back = history_of(s(f("a", StructType((f("b"),)))), s(f("a")))
    assert views.schema.column_history.column_lives(back).select("column", "born", "dropped").rows() == [
        ("a", 0, None),
        ("a.b", 0, 10),
    ]


def test_no_schemas_no_history() -> None:
    assert views.schema.column_history.column_history([]).schema == views.schema.column_history.COLUMN_HISTORY
    assert views.schema.column_history.column_lives([]).schema == views.schema.column_history.COLUMN_LIVES
