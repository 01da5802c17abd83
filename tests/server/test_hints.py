"""Filters: what is understood spares files, what is not spares none, and no row that matches is ever lost."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from lakeview.model.data_types import DecimalType, Field, PrimitiveType, StructType
from lakeview.model.schema import Schema
from lakeview.predicates.tree import Unknown
from lakeview.sharing.server.shared_version import json_condition, sql_condition
from tests.builders.actions import metadata, protocol
from tests.builders.history import DeltaHistory
from tests.server.conftest import Api
from tests.server.test_queries import month_of, share

P = PrimitiveType
_COLUMNS = {"n": pl.Int64, "t": pl.String, "f": pl.Float64}
SCHEMA = Schema(
    (
        Field("id", P("long")),
        Field("city", P("string")),
        Field("day", P("date")),
        Field("at", P("timestamp")),
        Field("ratio", P("float")),
        Field("ok", P("boolean")),
        Field("price", DecimalType(5, 2)),
        Field("part", StructType((Field("x", P("long")),))),
    )
)


def months_sent(api: Api, *hints: str, **more: Any) -> list[int]:
    return sorted(month_of(f) for f in api.files("months", predicateHints=list(hints), **more))


ALL = list(range(6))


@pytest.mark.parametrize(
    ("hint", "months"),
    [
        ("month = 3", [3]),
        ("3 = MONTH", [3]),
        ("`month` <> 3", [0, 1, 2, 4, 5]),
        ("month >= 4", [4, 5]),
        ("2 > month", [0, 1]),
        ("month IN (1, 5, 99)", [1, 5]),
        ("month NOT IN (1, 5)", [0, 2, 3, 4]),
        ("month BETWEEN 2 AND 3", [2, 3]),
        ("NOT (month < 4)", [4, 5]),
        ("month = '3'", [3]),
        ("month IS NULL", []),
        ("month IS NOT NULL", ALL),
        ("id = 7", [3]),
        ("id > 9", [5]),
        ("id >= 9 AND id < 10", [4]),
        ("id = 1 OR month = 5", [0, 5]),
        ("(id = 1 OR city LIKE 'c%') AND month < 2", [0, 1]),
        ("NOT (id > 2 OR month = 0)", [1]),
        ("NOT (NOT (month = 1))", [1]),
        ("id IS NULL", []),
        ("false", []),
        ("month = NULL", []),
        ("month = 1.5", ALL),
        ("city = 5", ALL),
        ("id + 1 = 7", ALL),
        ("upper(city) = 'C1'", ALL),
        ("id = month", ALL),
        ("unknown = 1", ALL),
        ("cast(month as string) = '3'", ALL),
        ("month <=> 3", ALL),
        ("month = (SELECT 1)", ALL),
        ("month IN (SELECT 1)", ALL),
        ("this is no SQL (", ALL),
        ("'", ALL),
        ("", ALL),
        ("; DROP TABLE months", ALL),
        ("(" * 400 + "month = 3" + ")" * 400, [3]),
        (" AND ".join(f"id >= {i % 9}" for i in range(300)), [4, 5]),
        ("(" * 5000, ALL),
    ],
    ids=lambda value: repr(value)[:50],
)
def test_sql_hints(api: Api, hint: str, months: list[int]) -> None:
    assert months_sent(api, hint) == months


def test_hints_hold_together_and_one_that_is_not_understood_is_skipped(api: Api) -> None:
    assert months_sent(api, "month > 1", "nonsense(", "month < 4") == [2, 3]


def test_the_limit_comes_after_the_hints_and_counts_live_rows(api: Api) -> None:
    assert months_sent(api, "month < 3", limitHint=3) == [1, 2]
    assert len(api.files("months", limitHint=1)) == 1
    assert len(api.files("months", limitHint=5)) == 3
    assert len(api.files("months", limitHint=10_000)) == 6


def test_no_hint_is_evaluated_where_that_is_switched_off(api: Api) -> None:
    import msgspec

    api.hub.catalogue.settings = msgspec.structs.replace(
        api.hub.settings, evaluate_predicate_hints=False, evaluate_json_predicate_hints=False
    )
    tree = json.dumps(comparison("equal", "month", "3", "int"))
    assert months_sent(api, "month = 3", jsonPredicateHints=tree) == ALL


def column(name: str, kind: str) -> dict[str, Any]:
    return {"op": "column", "name": name, "valueType": kind}


def comparison(op: str, name: str, value: str, kind: str) -> dict[str, Any]:
    return {"op": op, "children": [column(name, kind), {"op": "literal", "value": value, "valueType": kind}]}


def both(*children: Any, op: str = "and") -> dict[str, Any]:
    return {"op": op, "children": list(children)}


def nested(depth: int) -> dict[str, Any]:
    tree = comparison("equal", "month", "3", "int")
    for _ in range(depth):
        tree = both(tree, op="not")
    return tree


MIRRORED = {"op": "lessThan", "children": [{"op": "literal", "value": "3", "valueType": "int"}, column("month", "int")]}


@pytest.mark.parametrize(
    ("tree", "months"),
    [
        (comparison("equal", "month", "3", "int"), [3]),
        (comparison("lessThan", "month", "2", "int"), [0, 1]),
        (comparison("lessThanOrEqual", "month", "2", "int"), [0, 1, 2]),
        (comparison("greaterThan", "month", "3", "long"), [4, 5]),
        (comparison("greaterThanOrEqual", "id", "10", "long"), [5]),
        (MIRRORED, [4, 5]),
        (both(comparison("greaterThan", "month", "1", "int"), comparison("lessThan", "id", "8", "long")), [2, 3]),
        (both(comparison("equal", "month", "1", "int"), comparison("equal", "month", "4", "int"), op="or"), [1, 4]),
        (both(comparison("equal", "month", "1", "int"), op="not"), [0, 2, 3, 4, 5]),
        (both(column("month", "int"), op="isNull"), []),
        (both(both(column("month", "int"), op="isNull"), op="not"), ALL),
        (comparison("equal", "month", "3", "string"), ALL),
        (comparison("equal", "id", "7", "int"), ALL),
        (comparison("equal", "nothing", "7", "int"), ALL),
        (comparison("equal", "month", "x", "int"), ALL),
        (comparison("near", "month", "3", "int"), ALL),
        (both(comparison("equal", "month", "3", "int")), ALL),
        (both(comparison("equal", "month", "3", "int"), {"op": "?"}), ALL),
        (nested(40), [3]),
        (nested(120), ALL),
        ([], ALL),
        ("month", ALL),
        (None, ALL),
        ({"op": "equal", "children": "x"}, ALL),
        ({"op": ["equal"], "children": [1, 2]}, ALL),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_json_hints(api: Api, tree: Any, months: list[int]) -> None:
    assert sorted(month_of(f) for f in api.files("months", jsonPredicateHints=json.dumps(tree))) == months


@pytest.mark.parametrize("text", ["{", "[" * 90_000, "1e999", "nul"])
def test_json_hints_that_are_no_json_spare_nothing(api: Api, text: str) -> None:
    assert len(api.files("months", jsonPredicateHints=text)) == 6


@pytest.mark.parametrize(
    "hint",
    [
        "at > '2021-01-01 00:00:00'",  # in whose time zone?
        "at > TIMESTAMP '2021-01-01 00:00:00'",
        "at > '2021-01-01'",
        "day > '2021-02-30'",
        "price = 1.255",
        "price = 123456.00",
        "id = 99999999999999999999",
        "city = 05",
        "ok = 'perhaps'",
        "part = 1",
        "part.y = 1",
        "ratio = 'NaN'",
        "ratio = 'Infinity'",
    ],
)
def test_constants_that_are_not_certainly_the_columns_are_unknown(hint: str) -> None:
    assert sql_condition([hint], SCHEMA) == Unknown()


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        ("day = DATE '2021-03-04'", date(2021, 3, 4)),
        ("at = '2021-03-04T05:06:07+01:00'", datetime.fromisoformat("2021-03-04T04:06:07+00:00")),
        ("at = TIMESTAMP '2021-03-04T05:06:07Z'", datetime.fromisoformat("2021-03-04T05:06:07+00:00")),
        ("price = -1.25", Decimal("-1.25")),
        ("ratio < 0.1", 0.1),
        ("part.x = 4", 4),
        ("PART.X = 4", 4),
        ("ok", True),
        (r"city = 'it\'s (('", "it's (("),
    ],
)
def test_constants_are_read_as_the_columns_type(hint: str, value: Any) -> None:
    condition: Any = sql_condition([hint], SCHEMA)
    assert condition.value[0] == value


def test_every_row_that_matches_lies_in_a_file_that_is_kept(api: Api, tmp_path: Path) -> None:
    """Rows of nulls, missing statistics, cut strings, floats: what polars finds in the files must be in those kept."""
    frames = [
        pl.DataFrame({"n": [1, None], "t": ["a" * 40, "b"], "f": [0.1, float("nan")]}),
        pl.DataFrame({"n": [None] * 2, "t": [None] * 2, "f": [None] * 2}, schema=_COLUMNS),
        pl.DataFrame({"n": [5, 9], "t": ["m", "z"], "f": [-1.0, 2.5]}),
        pl.DataFrame({"n": [7, 7], "t": ["q", "q"], "f": [3.0, 3.0]}),
    ]  # fmt: skip
    statistics: list[Any] = [
        {"numRecords": 2, "minValues": {"n": 1, "t": "a" * 32, "f": 0.1}, "maxValues": {"n": 1, "t": "b", "f": 0.1},
         "nullCount": {"n": 1, "t": 0, "f": 0}},
        {"numRecords": 2, "nullCount": {"n": 2, "t": 2, "f": 2}},
        None,
        {"numRecords": 2, "minValues": {"n": 7, "t": "q", "f": 3.0}, "maxValues": {"n": 7, "t": "q", "f": 3.0},
         "nullCount": {"n": 0, "t": 0, "f": 0}},
    ]  # fmt: skip
    history = DeltaHistory(tmp_path / "rows")
    history.commit(protocol(), metadata({"n": "long", "t": "string", "f": "double"}))
    history.commit(
        *(
            history.data(f"{i}.parquet", frame.to_arrow(), **({} if stats is None else {"stats": stats}))
            for i, (frame, stats) in enumerate(zip(frames, statistics, strict=True))
        )
    )
    share(api, tmp_path, "rows")
    conditions = [
        f"{column} {op} {value}"
        for column, values in (("n", ("1", "7", "8")), ("t", ("'a'", "'q'", "'b'")), ("f", ("0.1", "3.0", "2")))
        for op in ("=", "<>", "<", "<=", ">", ">=")
        for value in values
    ]
    conditions += [f"{c} IS {n}NULL" for c in ("n", "t", "f") for n in ("", "NOT ")]
    conditions += ["n NOT IN (7)", "n IN (1, 5)", "NOT (n = 7 OR t = 'b')", "NOT (n = 7 AND t = 'q')"]
    spared = 0
    for condition in conditions:
        file_names = {Path(f["url"].partition("?")[0]).stem for f in api.files("rows", predicateHints=[condition])}
        expected = {
            str(i) for i, frame in enumerate(frames) if frame.sql(f"SELECT * FROM self WHERE {condition}").height
        }
        assert expected <= file_names, condition
        spared += 4 - len(file_names)
    assert spared > 40


def test_a_faulty_tree_says_nothing() -> None:
    assert json_condition('{"op": "and", "children": []}', SCHEMA) == Unknown()
