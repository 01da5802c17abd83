"""What a table demands of its rows: each rule kept, broken, and impossible to evaluate."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError, LakeviewError, UnsupportedTableError
from lakeview.model.schema import Schema
from tests.builders.actions import metadata, protocol
from tests.builders.history import START, DeltaHistory
from tests.builders.opening import open_delta_table

FEATURES = ["invariants", "checkConstraints", "generatedColumns", "identityColumns", "allowColumnDefaults"]


def field(name: str, type_: Any, nullable: Any = True, **about: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": nullable, "metadata": about}


def make_table(history: DeltaHistory, *fields: dict[str, Any], **properties: str | None) -> DeltaTable:
    schema = json.dumps({"type": "struct", "fields": list(fields)})
    declaration = metadata(schema=schema, properties={f"delta.{k}": v for k, v in properties.items()})
    history.commit(protocol(1, 7, writerFeatures=FEATURES), declaration)
    return open_delta_table(history.address)


ID, DAY, TEXT = field("Id", "long"), field("day", "date"), field("s", "string")
IDENTITY = {"delta.identity.start": 10, "delta.identity.step": 5, "delta.identity.allowExplicitInsert": False}
INNER = field("st", {"type": "struct", "fields": [field("A", "long")]})


def check(text: str) -> dict[str, str]:
    return {"constraints.c": text}


VALID: list[tuple[str, list[dict[str, Any]], dict[str, str], dict[str, Any], dict[str, Any]]] = [
    ("a constraint, its column in another case", [ID], check("id > 0"), {"Id": [1]}, {"Id": [1]}),
    ("a date compared with a text", [DAY], check("day > '2020-01-01'"), {"day": [date(2021, 1, 1)]},
     {"day": [date(2021, 1, 1)]}),
    ("a constraint on a field of a struct", [INNER], check("ST.a > 0"), {"st": [{"A": 1}]}, {"st": [{"A": 1}]}),
    ("a generated column, computed", [ID, field("g", "long", **{"delta.generationExpression": "id * 2"})], {},
     {"Id": [4]}, {"Id": [4], "g": [8]}),
    ("a generated text, null where a part of it is", [TEXT, field("g", "string", **{"delta.generationExpression":
     "concat(s, '!')"})], {}, {"s": ["a", None]}, {"s": ["a", None], "g": ["a!", None]}),
    ("a generated column, given", [ID, field("g", "long", **{"delta.generationExpression": "id * 2"})], {},
     {"Id": [4, None], "g": [8, None]}, {"Id": [4, None], "g": [8, None]}),
    ("a generated column with a name that is a pattern to polars", [ID, field("^.d$", "long", **{
     "delta.generationExpression": "id * 2"})], {}, {"Id": [4], "^.d$": [8]}, {"Id": [4], "^.d$": [8]}),
    ("a generated date", [field("t", "timestamp"), field("d", "date", **{"delta.generationExpression":
     "CAST(t AS DATE)"})], {}, {"t": [datetime(2024, 5, 6, 23, tzinfo=UTC)]},
     {"t": [datetime(2024, 5, 6, 23, tzinfo=UTC)], "d": [date(2024, 5, 6)]}),
    ("a generated column that must not be null", [ID, field("g", "long", False,
     **{"delta.generationExpression": "id * 2"})], {}, {"Id": [4]}, {"Id": [4], "g": [8]}),
    ("a constraint on a generated column", [ID, field("g", "long", **{"delta.generationExpression": "id * 2"})],
     check("g < 10"), {"Id": [4]}, {"Id": [4], "g": [8]}),
    ("a default", [ID, field("s", "string", CURRENT_DEFAULT="'none'")], {}, {"Id": [4]}, {"Id": [4], "s": ["none"]}),
    ("null in place of a default", [ID, field("s", "string", CURRENT_DEFAULT="'none'")], {},
     {"Id": [4], "s": [None]}, {"Id": [4], "s": [None]}),
    ("the moment as default", [ID, field("t", "timestamp", CURRENT_DEFAULT="current_timestamp()")], {},
     {"Id": [4]}, {"Id": [4], "t": [START]}),
    ("an identity column", [ID, field("i", "long", **IDENTITY)], {}, {"Id": [1, 2]}, {"Id": [1, 2], "i": [10, 15]}),
    ("an identity column that went on", [ID, field("i", "long", **IDENTITY, **{"delta.identity.highWaterMark": 20})],
     {}, {"Id": [1, 2]}, {"Id": [1, 2], "i": [25, 30]}),
    ("an invariant of today", [field("Id", "long", **{"delta.invariants":
     '{"expression":{"expression":"Id > 3"}}'})], {}, {"Id": [4]}, {"Id": [4]}),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "properties", "row", "there"), [k[1:] for k in VALID], ids=[k[0] for k in VALID])
def test_rows_that_keep_the_rules_are_written_with_what_the_table_computes(
    history: DeltaHistory,
    fields: list[dict[str, Any]],
    properties: dict[str, str],
    row: dict[str, Any],
    there: dict[str, Any],
) -> None:
    table = make_table(history, *fields, **properties)
    with table.transaction(clock=lambda: START) as txn:
        txn.append(pl.DataFrame(row))
    assert table.scan().collect().to_dict(as_series=False) == there


def test_identity_values_are_never_given_twice(history: DeltaHistory) -> None:
    table = make_table(history, ID, field("i", "long", **IDENTITY))
    for number in range(3):
        table.append(pl.DataFrame({"Id": [number, number]}))
    assert sorted(table.scan().collect()["i"]) == [10, 15, 20, 25, 30, 35]
    assert table.snapshot().schema["i"].metadata["delta.identity.highWaterMark"] == 35


@pytest.mark.parametrize(
    ("step", "mark", "next_value"), [(5, 22, 25), (5, 25, 30), (5, -3, 10), (-5, -3, -5), (-5, 22, 10)]
)
def test_an_identity_value_is_steps_from_the_start_whatever_the_mark_is(
    history: DeltaHistory, step: int, mark: int, next_value: int
) -> None:
    recorded = {**IDENTITY, "delta.identity.step": step, "delta.identity.highWaterMark": mark}
    table = make_table(history, ID, field("i", "long", **recorded))
    table.append(pl.DataFrame({"Id": [1, 2]}))
    assert table.scan().collect()["i"].to_list() == [next_value, next_value + step]


BROKEN: list[tuple[str, list[dict[str, Any]], dict[str, str], dict[str, Any], type[LakeviewError], str]] = [
    ("a constraint", [ID], check("id > 0"), {"Id": [1, -1, 0]}, ConstraintViolationError,
     r"2 of 3 rows break constraint c \(id > 0\); the first is row 1, from 0: Id = -1"),
    ("a constraint, by null", [ID], check("id > 0"), {"Id": [None]}, ConstraintViolationError, "Id = null"),
    ("an invariant", [field("Id", "long", **{"delta.invariants": "Id > 3"})], {}, {"Id": [2]},
     ConstraintViolationError, "constraint Id"),
    ("a generated column", [ID, field("g", "long", **{"delta.generationExpression": "id * 2"})], {},
     {"Id": [4, 5], "g": [8, 9]}, ConstraintViolationError,
     "1 of 2 rows break column g, which is generated as id . 2; the first is row 1, from 0: g = 9, Id = 5"),
    ("a generated column that does not hold a value", [ID, field("g", "short", **{"delta.generationExpression":
     "CAST(id AS SMALLINT)"})], {}, {"Id": [70_000]}, UnsupportedTableError, "70000"),
    ("an identity column", [ID, field("i", "long", **IDENTITY)], {}, {"Id": [1], "i": [7]},
     ConstraintViolationError, "generated always as identity"),
    ("an identity column without values left", [ID, field("i", "long", **IDENTITY,
     **{"delta.identity.highWaterMark": 2**63 - 3})], {}, {"Id": [1]}, InvalidRequestError, "has no value left"),
    ("a function we do not evaluate", [TEXT], check("soundex(s) = 'A'"), {"s": ["a"]}, UnsupportedTableError,
     "the table's rule c .soundex.s. = 'A'. cannot be evaluated here"),
    ("a column that is not there", [TEXT], check("x > 1"), {"s": ["a"]}, UnsupportedTableError, "no column x"),
    ("a value for a condition", [ID], check("id + 1"), {"Id": [1]}, UnsupportedTableError, "not true or false"),
    ("types that do not compare", [ID], check("id > 'x'"), {"Id": [1]}, UnsupportedTableError, "cannot compare"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "properties", "row", "error", "words"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN]
)
def test_rows_that_break_a_rule_or_whose_rule_is_not_known_are_refused_and_nothing_is_written(
    history: DeltaHistory,
    fields: list[dict[str, Any]],
    properties: dict[str, str],
    row: dict[str, Any],
    error: type[LakeviewError],
    words: str,
) -> None:
    table = make_table(history, *fields, **properties)
    before = table.storage.walk()["name"].to_list()
    with pytest.raises(error, match=words):
        table.append(pl.DataFrame(row))
    assert table.storage.walk()["name"].to_list() == before


def test_updates_keep_the_rules_and_move_what_is_generated(history: DeltaHistory) -> None:
    generated = field("g", "long", **{"delta.generationExpression": "id * 2"})
    table = make_table(history, ID, generated, field("i", "long", **IDENTITY), **check("id > 0"))
    table.append(pl.DataFrame({"Id": [1, 2]}))
    table.update({"Id": "Id + 10"}, "Id = 2")
    assert sorted(table.scan().collect().rows()) == [(1, 2, 10), (12, 24, 15)]
    with pytest.raises(ConstraintViolationError, match="constraint c"):
        table.update({"Id": "-Id"})


def test_identity_values_are_not_updated(history: DeltaHistory) -> None:
    table = make_table(history, ID, field("i", "long", **IDENTITY))
    table.append(pl.DataFrame({"Id": [1]}))
    merge = table.merge(pl.DataFrame({"Id": [1]}), ["Id"]).when_matched_update({"i": "7"})
    calls: list[Callable[[], object]] = [lambda: table.update({"i": "7"}), merge.execute]
    for call in calls:
        with pytest.raises(ConstraintViolationError, match="generated always as identity"):
            call()
    assert table.scan().collect()["i"].to_list() == [10]


def test_an_overwrite_by_condition_computes_what_an_append_does(history: DeltaHistory) -> None:
    table = make_table(history, ID, field("g", "long", **{"delta.generationExpression": "id * 2"}),
                 field("s", "string", CURRENT_DEFAULT="'none'"), field("i", "long", **IDENTITY))  # fmt: skip
    table.overwrite(pl.DataFrame({"Id": [4]}), "g = 8")
    table.overwrite(pl.DataFrame({"Id": [4]}), "g = 8")
    assert table.scan().collect().to_dicts() == [{"Id": 4, "g": 8, "s": "none", "i": 15}]


def test_an_empty_text_is_null_in_a_partition_column(history: DeltaHistory) -> None:
    declaration = metadata(schema=json.dumps({"type": "struct", "fields": [ID, field("s", "string", False)]}),
                    partition_by=("s",))  # fmt: skip
    history.commit(protocol(1, 7, writerFeatures=FEATURES), declaration)
    table = open_delta_table(history.address)
    with pytest.raises(ConstraintViolationError, match="1 of the rows have an empty text") as caught:
        table.append(pl.DataFrame({"Id": [1, 2], "s": ["", "x"]}))
    assert caught.value.place == "s"
    assert table.snapshot().num_files == 0


@pytest.mark.parametrize("type_", ["string", "binary"])
def test_an_empty_value_that_a_table_computes_for_a_partition_column_is_null_to_its_rules(
    tmp_path: Path, type_: str
) -> None:
    generated = {"delta.generationExpression": "UPPER(s)"}
    default = {"CURRENT_DEFAULT": "''" if type_ == "string" else "X''"}
    schema = Schema(
        (
            Field("s", PrimitiveType("string")),
            Field("g", PrimitiveType("string"), metadata=generated),
            Field("d", PrimitiveType(type_), metadata=default),
        )
    )
    properties = {"delta.feature.allowColumnDefaults": "supported", "delta.constraints.c": "d IS NULL AND g IS NULL"}
    table = lv.create_table(tmp_path, schema, partition_by=["g", "d"], properties=properties)
    for rows in ({"s": [""]}, {"s": [""], "g": [""]}, {"s": [""], "g": [None]}):
        table.overwrite(pl.DataFrame(rows))
        assert table.scan().collect().rows() == [("", None, None)]


def test_rules_and_overwrites_see_null_for_an_empty_text_in_a_partition_column(tmp_path: Path) -> None:
    """An overwrite of p = '' took rows that are null once they are written, so that a second one added them again."""
    schema = Schema(
        (
            Field("p", PrimitiveType("string")),
            Field("g", PrimitiveType("string"), metadata={"delta.generationExpression": "p || 'x'"}),
            Field("n", PrimitiveType("long")),
        )
    )
    table = lv.create_table(
        tmp_path, schema, partition_by="p", properties={"delta.constraints.c": "p IS NULL OR p = 'a'"}
    )
    rows = pl.DataFrame({"p": [""], "n": [1]})
    for _ in range(2):
        table.overwrite(rows, "p IS NULL")
    assert table.scan().collect().rows() == [(None, None, 1)]
    with pytest.raises(ConstraintViolationError, match="1 rows lie outside"):
        table.overwrite(rows, "p = ''")


NOT_EVALUATED: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "a constraint": ({}, {"delta.constraints.c": "soundex(s) = 'A'"}, r"rule c \(soundex.* cannot be evaluated"),
    "a constraint of no column": ({}, {"delta.constraints.c": "x > 1"}, "rule c .*no column x"),
    "an invariant": ({"delta.invariants": "soundex(s) = 'A'"}, {}, "rule s .*soundex"),
    "a generated column": ({"delta.generationExpression": "soundex(id)"}, {}, "rule s .*soundex"),
}  # fmt: skip


@pytest.mark.parametrize(("column", "properties", "words"), NOT_EVALUATED.values(), ids=list(NOT_EVALUATED))
def test_a_new_table_is_refused_a_rule_that_would_have_every_write_refused(
    column: dict[str, Any], properties: dict[str, str], words: str, tmp_path: Path
) -> None:
    schema = Schema((Field("id", PrimitiveType("long")), Field("s", PrimitiveType("string"), metadata=column)))
    with pytest.raises(UnsupportedTableError, match=words) as refusal:
        lv.create_table(str(tmp_path / "new"), schema, properties=properties)
    assert refusal.value.fix
    assert not (tmp_path / "new" / "_delta_log").exists()
    table = lv.create_table(str(tmp_path / "t"), Schema((Field("id", PrimitiveType("long")),)))
    with pytest.raises(UnsupportedTableError, match=words):
        table.replace_table(schema, properties=properties)
    if column:
        with pytest.raises(UnsupportedTableError, match=words):
            table.evolve(schema)
    assert table.latest_version == 0


@pytest.mark.parametrize("default", ["uuid()", "current_user()", "reverse('ab')"])
def test_a_default_that_is_not_evaluated_leaves_the_writes_of_rows_that_have_the_column(
    default: str, tmp_path: Path
) -> None:
    column = Field("s", PrimitiveType("string"), metadata={"CURRENT_DEFAULT": default})
    table = lv.create_table(str(tmp_path / "t"), Schema((Field("id", PrimitiveType("long")), column)))
    table.append(pl.DataFrame({"id": [1], "s": ["x"]}))
    with pytest.raises(UnsupportedTableError, match=r"rule s .* cannot be evaluated"):
        table.append(pl.DataFrame({"id": [2]}))
    assert table.scan().collect().rows() == [(1, "x")]


def test_the_word_default_stands_for_what_a_column_has_where_nothing_is_given(history: DeltaHistory) -> None:
    identity = field("k", "long", **{**IDENTITY, "delta.identity.step": 1})
    of_default = [field("c", "float", CURRENT_DEFAULT="0.5"), field("t", "timestamp", CURRENT_DEFAULT="now()")]
    generated = field("g", "long", **{"delta.generationExpression": "id * 2"})
    table = make_table(history, ID, *of_default, generated, identity, TEXT)
    table.append(pl.DataFrame({"id": [1], "c": [9.0], "t": [START], "s": ["old"]}))
    table.update({"c": "DEFAULT", "t": " default", "g": "DEFAULT", "s": "DEFAULT"}, "id = 1")
    insert = {"id": "source.id", "c": "DEFAULT", "g": "DEFAULT", "k": "DEFAULT", "s": "default"}
    table.merge(pl.DataFrame({"id": [4]}), "target.id = source.id").when_not_matched_insert(insert).execute()
    rows = table.scan().collect().sort("Id")
    assert rows.drop("t").rows() == [(1, 0.5, 2, 10, None), (4, 0.5, 8, 11, None)]
    assert (rows["t"] > START).all()
    with pytest.raises(ConstraintViolationError, match="column k is generated always as identity"):
        table.update({"k": "DEFAULT"})
    table.update({"g": "DEFAULT"})
    assert table.scan().collect().sort("Id")["g"].to_list() == [2, 8]


def test_a_default_that_is_assigned_has_the_type_of_its_column(history: DeltaHistory) -> None:
    moments = {"day": "date", "local": "timestamp_ntz"}
    table = make_table(history, ID, *(field(name, type_, CURRENT_DEFAULT="now()") for name, type_ in moments.items()))
    table.append(pl.DataFrame({"id": [1]}))
    (before,) = table.scan().collect().rows()
    table.update({"day": "NULL", "local": "NULL"})
    table.update({"day": "DEFAULT", "local": "DEFAULT"})
    (after,) = table.scan().collect().rows()
    assert all(one <= other for one, other in zip(before, after, strict=True))


def test_the_time_that_is_assigned_by_default_is_that_of_the_commit(history: DeltaHistory) -> None:
    table = make_table(history, ID, field("t", "timestamp", CURRENT_DEFAULT="now()"))
    table.append(pl.DataFrame({"id": [1, 2]}))
    with table.transaction("UPDATE", clock=lambda: START) as txn:
        txn.update({"t": "DEFAULT"}, "id = 1")
    with table.transaction("MERGE", clock=lambda: START) as txn:
        merge = txn.merge(pl.DataFrame({"id": [2]}), "target.id = source.id")
        merge.when_matched_update({"t": "DEFAULT"}).execute()
    assert table.scan().collect()["t"].to_list() == [START, START]


def test_default_gives_a_row_that_is_there_no_identity(history: DeltaHistory) -> None:
    explicit = {"delta.identity.step": 1, "delta.identity.allowExplicitInsert": True}
    table = make_table(history, ID, field("k", "long", **{**IDENTITY, **explicit}))
    table.append(pl.DataFrame({"id": [1]}))
    with pytest.raises(ConstraintViolationError, match="DEFAULT has no value for rows that are there"):
        table.update({"k": "DEFAULT"})
    assert table.scan().collect()["k"].to_list() == [10]


def test_a_column_called_default_is_that_column(history: DeltaHistory) -> None:
    table = make_table(history, ID, field("Default", "long"))
    table.append(pl.DataFrame({"Id": [1], "Default": [5]}))
    table.update({"id": "DEFAULT"})
    assert table.scan().collect().rows() == [(5, 5)]
