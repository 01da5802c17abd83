"""RULES of a Delta table: defaults, generated and identity columns, constraints, clustering and the like."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

import lakeview as lv
from lakeview.model.frames import RULES
from tests.builders.actions import metadata, protocol
from tests.builders.history import DeltaHistory
from tests.builders.mapped import Json, array, field, mapped, struct


def rules(history: DeltaHistory) -> list[tuple[Any, ...]]:
    facts = lv.open_table(history.address).snapshot().rules
    assert facts.schema == RULES
    return facts.rows()


def plain(name: str, type_: Any = "long", **more: Any) -> Json:
    """A field with this metadata."""
    return {"name": name, "type": type_, "nullable": True, "metadata": more}


INVARIANT = json.dumps({"expression": {"expression": "x > 3"}})


@pytest.mark.parametrize(
    ("field_metadata", "expected"),
    [
        pytest.param({"CURRENT_DEFAULT": "0"}, [("default", "0")], id="a default"),
        pytest.param({"CURRENT_DEFAULT": "NULL", "EXISTS_DEFAULT": "1"}, [("default", "NULL")], id="a default of null"),
        pytest.param({"delta.generationExpression": "upper(city)"}, [("generated", "upper(city)")], id="generated"),
        pytest.param({"delta.invariants": INVARIANT}, [("invariant", "x > 3")], id="an invariant as JSON"),
        pytest.param({"delta.invariants": "x > 3"}, [("invariant", "x > 3")], id="an invariant in early SQL"),
        pytest.param({"delta.invariants": "[1"}, [("invariant", "[1")], id="an invariant that is neither"),
        pytest.param(
            {
                "delta.identity.start": 1,
                "delta.identity.step": 2,
                "delta.identity.highWaterMark": 2**53 + 1,
                "delta.identity.allowExplicitInsert": True,
            },
            [("identity", "from 1, by 2, reached 9007199254740993, explicit values allowed")],
            id="an identity",
        ),
        pytest.param(
            {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False},
            [("identity", "from 1, by 1")],
            id="an identity without values yet",
        ),
        pytest.param({"__CHAR_VARCHAR_TYPE_STRING": "varchar(10)"}, [("length", "varchar(10)")], id="a length"),
        pytest.param({"__COLLATIONS": {"x": "icu.UNICODE"}}, [("collation", "icu.UNICODE")], id="a collation"),
        pytest.param({"__COLLATIONS": {"x": "spark.UTF8_BINARY"}}, [], id="the binary collation"),
        pytest.param(
            {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}, 3]},
            [("type change", "integer to long"), ("type change", "null to null")],
            id="type changes",
        ),
        pytest.param({"comment": "no rule", "owner": "me"}, [], id="a comment is none"),
        pytest.param({"CURRENT_DEFAULT": {"odd": [1]}}, [("default", '{"odd": [1]}')], id="what is no text"),
    ],
)
def test_a_column_tells_its_rules(history: DeltaHistory, field_metadata: Json, expected: list[tuple[str, str]]) -> None:
    history.commit(protocol(), metadata(schema=json.dumps(struct(plain("x", **field_metadata)))))
    assert rules(history) == [("x", kind, None, rule) for kind, rule in expected]


def test_rules_inside_structs_lists_and_maps_are_named_by_their_path(history: DeltaHistory) -> None:
    inner = struct(plain("a.b", CURRENT_DEFAULT="1"))
    fields = plain("s", inner), plain("l", array(inner)), plain("^x$", CURRENT_DEFAULT="2")
    history.commit(protocol(), metadata(schema=json.dumps(struct(*fields))))
    assert [row[0] for row in rules(history)] == ["s.`a.b`", "l.element.`a.b`", "^x$"]


def test_check_constraints_are_the_tables(history: DeltaHistory) -> None:
    properties: dict[str, str | None] = {
        "delta.constraints.positive": "id > 0",
        "delta.constraints.a.b": "city <> ''",
        "delta.appendOnly": "true",
        "delta.constraints.gone": None,
    }
    history.commit(protocol(1, 3), metadata(properties=properties))
    assert rules(history) == [(None, "check", "positive", "id > 0"), (None, "check", "a.b", "city <> ''")]


def clustered_by(*columns: Any) -> Json:
    """The domain in which clustering is recorded."""
    configuration = json.dumps({"clusteringColumns": list(columns), "domainName": "delta.clustering"})
    return {"domainMetadata": {"domain": "delta.clustering", "configuration": configuration, "removed": False}}


@pytest.mark.parametrize("plain", [False, True], ids=["paths", "names, as the protocol had them first"])
def test_clustering_columns_are_told_by_their_logical_names(history: DeltaHistory, plain: bool) -> None:
    fields = field("id", "long", 1), field("s", struct(field("day", "date", 3)), 2)
    one, missing = ("col-1", "col-9") if plain else (["col-1"], ["col-9"])
    history.commit(*mapped("name", *fields), clustered_by(["col-2", "col-3"], one, missing))
    assert rules(history) == [("id", "clustering", None, "2 of 3"), ("s.day", "clustering", None, "1 of 3")]


@pytest.mark.parametrize("configuration", ["", "{", "[]", '{"clusteringColumns": 3}', '{"clusteringColumns": [3]}'])
def test_clustering_that_no_one_understands_is_no_rule(history: DeltaHistory, configuration: str) -> None:
    domain = {"domain": "delta.clustering", "configuration": configuration, "removed": False}
    history.create().commit({"domainMetadata": domain})
    assert rules(history) == []


def test_rules_travel_with_a_snapshot(history: DeltaHistory) -> None:
    history.commit(protocol(), metadata(schema=json.dumps(struct(plain("x", CURRENT_DEFAULT="0")))))
    snapshot = lv.open_table(history.address).snapshot()
    assert pickle.loads(pickle.dumps(snapshot)).rules.rows() == [("x", "default", None, "0")]
