"""Fields of structs that are set: by an update and by clauses of a merge, in structs that are null too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.data_types import ArrayType, Field, PrimitiveType, StructType
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError
from lakeview.model.schema import Schema
from tests.builders.findings import GRAVE

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
POINT = StructType((Field("x", LONG), Field("tag", STRING)))
SCHEMA = Schema(
    (
        Field("id", LONG),
        Field("at", StructType((Field("name", STRING), Field("point", POINT)))),
        Field("twice", LONG, metadata={"delta.generationExpression": "at.point.x * 2"}),
        Field("many", ArrayType(POINT)),
        Field("v", StructType((Field("doc", PrimitiveType("variant")), Field("n", LONG)))),
    )
)
KINDS = {
    "plain": {},
    "mapped, with deletion vectors and a feed": {
        "delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true",
    },
}  # fmt: skip
CHECKED = {"delta.constraints.small": "at.point.x IS NULL OR at.point.x < 100"}


def at(name: str | None, x: int | None, tag: str | None) -> dict[str, Any]:
    return {"name": name, "point": {"x": x, "tag": tag}}


def make_table(address: Path, properties: dict[str, str]) -> DeltaTable:
    table = lv.create_table(str(address), SCHEMA, properties=properties)
    rows = [
        {"id": 0, "at": at("a", 1, "t"), "v": {"doc": '{"k":[1.50]}', "n": 1}},
        {"id": 1, "at": {"name": "b", "point": None}},
        {"id": 2, "at": None},
        {"id": 3, "at": at("d", 4, None)},
    ]
    every = pl.DataFrame(rows, schema_overrides={k: v for k, v in SCHEMA.to_polars().items() if k != "twice"})
    table.append(every)
    assert isinstance(table, DeltaTable)
    return table


def column(table: DeltaTable, name: str) -> list[Any]:
    return lv.open_table(table.address).scan().collect().sort("id")[name].to_list()


@pytest.mark.parametrize("properties", KINDS.values(), ids=list(KINDS))
def test_fields_are_set_and_the_others_stay(tmp_path: Path, properties: dict[str, str]) -> None:
    table = make_table(tmp_path, properties)
    table.update({"at.point.x": "id + 10", "at.name": pl.lit("new"), "`v`.`n`": "at.point.x"}, "id < 3")
    # a null struct becomes one that has the value, as delta-spark's CreateNamedStruct makes it
    assert column(table, "at") == [at("new", 10, "t"), at("new", 11, None), at("new", 12, None), at("d", 4, None)]
    assert column(table, "twice") == [20, 22, 24, 8]
    docs = ['{"k":[1.50]}', None, None]
    assert column(table, "v")[:3] == [{"doc": doc, "n": n} for doc, n in zip(docs, [1, None, None], strict=True)]
    assert not [f for f in table.check() if f.severity in GRAVE]


@pytest.mark.parametrize("properties", KINDS.values(), ids=list(KINDS))
def test_clauses_of_a_merge_set_fields(tmp_path: Path, properties: dict[str, str]) -> None:
    table = make_table(tmp_path, properties)
    source = pl.DataFrame({"id": [0, 2], "x": [7, 8]})
    (
        table.merge(source, ["id"])
        .when_matched_update({"at.point.x": "source.x", "at.point.tag": "target.at.name", "v.doc": "'[2]'"})
        .when_not_matched_by_source_update({"at.name": "'alone'"}, where="id = 3")
        .execute()
    )
    assert column(table, "at") == [
        at("a", 7, "a"), {"name": "b", "point": None}, at(None, 8, None), at("alone", 4, None),
    ]  # fmt: skip
    assert column(table, "twice") == [14, None, 16, 8]
    assert [row and row["doc"] for row in column(table, "v")] == ["[2]", None, "[2]", None]


REFUSED: list[tuple[str, Any, str]] = [
    ("an unknown field", lambda t: t.update({"at.planet": "1"}), "there is no field planet in at"),
    ("a field of what is no struct", lambda t: t.update({"id.x": "1"}), "id is long, which is no struct"),
    ("a field of elements", lambda t: t.update({"many.element.x": "1"}), "many is array.*, which is no struct"),
    ("a struct and its field", lambda t: t.update({"at.point.x": "1", "at": "at"}), "at.point.x and at are assigned"),
    ("a field twice", lambda t: t.update({"at.name": "'a'", "`at`.name": "'b'"}), "at.name and `at`.name are assigned"),
    ("a value of another type", lambda t: t.update({"at.point.x": "'far'"}), "column at.point.x is .* does not fit"),
    ("a field of a new row", lambda t: t.merge(pl.DataFrame({"id": [9]}), ["id"]).when_not_matched_insert(
        {"at.name": "'new'"}).execute(), "a new row has none"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "words"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_is_no_field_to_set_is_refused(tmp_path: Path, change: Any, words: str) -> None:
    table = make_table(tmp_path, {})
    with pytest.raises(InvalidRequestError, match=words):
        change(table)
    assert lv.open_table(table.address).latest_version == 1


def test_rules_about_fields_are_checked(tmp_path: Path) -> None:
    table = make_table(tmp_path / "checked", CHECKED)
    with pytest.raises(ConstraintViolationError, match="1 of 1 rows break constraint small"):
        table.update({"at.point.x": "100"}, "id = 0")
    strict = StructType((Field("must", LONG, nullable=False), Field("may", LONG)))
    other = lv.create_table(str(tmp_path / "strict"), Schema((Field("id", LONG), Field("s", strict))))
    other.append(pl.DataFrame({"id": [1], "s": [None]}, schema=other.snapshot().schema.to_polars()))
    with pytest.raises(ConstraintViolationError, match=r"column s\.must must not be null"):
        other.update({"s.may": "1"})
    other.update({"s.must": "id"})
    assert other.scan().collect()["s"].to_list() == [{"must": 1, "may": None}]
