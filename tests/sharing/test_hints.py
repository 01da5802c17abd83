"""Filters to hints: never more than the filter says, in any dialect."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest

from lakeview.delta.data.schemas import parse_schema
from lakeview.predicates import predicate
from lakeview.predicates.expressions import parse
from lakeview.predicates.hints import json_hint, sql_hints
from tests.builders.actions import schema_string, struct

SCHEMA = parse_schema(
    schema_string(
        {
            "id": "long", "n": "integer", "city": "string", "day": "date", "flag": "boolean", "x": "double",
            "at": "timestamp", "price": "decimal(5,2)", "a b`c": "long", "s": struct(t="long"),
        }
    )
)  # fmt: skip
C = pl.col

SQL: dict[str, tuple[pl.Expr | str, list[str]]] = {
    "numbers": (C("id") > 3, ["id > 3"]),
    "the other way round": (pl.lit(3) < C("id"), ["id > 3"]),
    "a text": (C("city") == "Zürich", ["city = 'Zürich'"]),
    "not equal": (C("n") != 5, ["n <> 5"]),
    "a day": (C("day") >= date(2024, 1, 2), ["day >= '2024-01-02'"]),
    "true": (C("flag") == pl.lit(value=True), ["flag = true"]),
    "a decimal": (C("price") < Decimal("9.90"), ["price < 9.90"]),
    "nulls": (C("city").is_null(), ["city IS NULL"]),
    "no nulls": (C("city").is_not_null(), ["city IS NOT NULL"]),
    "membership": (C("n").is_in([1, 2]), ["n IN (1, 2)"]),
    "a name with marks": (C("a b`c") == 1, ["`a b``c` = 1"]),
    "a field of a struct": (C("s").struct.field("t") == 1, ["s.t = 1"]),
    "what holds together": ((C("id") > 3) & (C("n") < 2), ["id > 3", "n < 2"]),
    "one of two": ((C("id") > 3) | (C("n") < 2), ["(id > 3 OR n < 2)"]),
    "SQL": ("id > 3 AND city = 'a'", ["id > 3", "city = 'a'"]),
    "what is not understood beside what is": ((C("id") > 3) & (C("id") % 2 == 0), ["id > 3"]),
    "a text with a quote, which dialects read in two ways": (C("city") == "it's", []),
    "a text with a back-slash": (C("city") == "a\\", []),
    "floats, because of NaN": (C("x") > 1.5, []),
    "a moment, because of zones": (C("at") > datetime(2024, 1, 1, tzinfo=UTC), []),
    "a number that is no whole one": (C("id") > 3.5, []),
    "one of two of which one is not understood": ((C("id") > 3) | (C("x") > 1.5), []),
    "a column against another": (C("id") > C("n"), []),
    "a column that is not there": (C("none") == 1, []),
    "what is not a member": (~C("n").is_in([1, 2]), []),
    "endless membership": (C("n").is_in(list(range(1_000))), []),
}  # fmt: skip


@pytest.mark.parametrize(("where", "hints"), SQL.values(), ids=SQL)
def test_sql(where: pl.Expr | str, hints: list[str]) -> None:
    assert sorted(sql_hints(parse(predicate(where)), SCHEMA)) == sorted(hints)


def compared(op: str, name: str, value: str, kind: str) -> dict[str, object]:
    column = {"op": "column", "name": name, "valueType": kind}
    return {"op": op, "children": [column, {"op": "literal", "value": value, "valueType": kind}]}


ID = compared("greaterThan", "id", "3", "long")
TREES: dict[str, tuple[pl.Expr, object]] = {
    "numbers": (C("id") > 3, ID),
    "a day": (C("day") == date(2024, 1, 2), compared("equal", "day", "2024-01-02", "date")),
    "true": (C("flag") == pl.lit(value=True), compared("equal", "flag", "true", "bool")),
    "a text with a quote is no trouble in JSON, and left out all the same": (C("city") == "it's", None),
    "not equal": (C("n") != 5, {"op": "not", "children": [compared("equal", "n", "5", "int")]}),
    "membership": (
        C("n").is_in([1, 2]),
        {"op": "or", "children": [compared("equal", "n", "1", "int"), compared("equal", "n", "2", "int")]},
    ),
    "no nulls": (
        C("city").is_not_null(),
        {"op": "not", "children": [
            {"op": "isNull", "children": [{"op": "column", "name": "city", "valueType": "string"}]},
        ]},
    ),
    "what is not understood beside what is": ((C("id") > 3) & (C("x") > 1.5), ID),
    "a decimal has no type there": (C("price") < Decimal("9.90"), None),
    "a field of a struct": (C("s").struct.field("t") == 1, None),
}  # fmt: skip


@pytest.mark.parametrize(("where", "tree"), TREES.values(), ids=TREES)
def test_json(where: pl.Expr, tree: object) -> None:
    hint = json_hint(parse(where), SCHEMA)
    assert (None if hint is None else json.loads(hint)) == tree
