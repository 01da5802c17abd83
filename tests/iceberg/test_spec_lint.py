"""What the log doctor says of schemas: changes of types, ids and identifier fields that are not allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lakeview.iceberg.metadata.table_metadata import parse_metadata
from lakeview.iceberg.spec_lint import schema_findings
from tests.builders.iceberg_metadata import document, snapshot, text


def schema(schema_id: int, type_: Any, **more: Any) -> dict[str, Any]:
    return {"type": "struct", "schema-id": schema_id, "fields": [{"id": 1, "name": "x", "type": type_, **more}]}


def ids(*schemas: dict[str, Any], version: int = 3, written: Sequence[int] = (0,), **more: Any) -> list[str]:
    """The findings of a table that was written with the first schema, or those of these ids, and has the last."""
    current = schemas[-1]["schema-id"]
    changes: dict[str, Any] = {"schemas": list(schemas), "current_schema_id": current, "format_version": version}
    changes |= {"snapshots": [snapshot(7 + i, schema_id=i) for i in written], "current_snapshot_id": 7}
    return [f.id for f in schema_findings(parse_metadata(text(document(**changes | more)), "m"))]


def field_list(element: Any) -> dict[str, Any]:
    return {"type": "list", "element-id": 2, "element": element, "element-required": False}


def struct(type_: str) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"id": 3, "name": "a", "required": False, "type": type_}]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("int", "long"),
        ("float", "double"),
        ("decimal(9,2)", "decimal(12,2)"),
        ("date", "timestamp_ns"),
        ("unknown", "string"),
        (field_list("int"), field_list("long")),
        (field_list(struct("int")), field_list(struct("long"))),
        (struct("int"), struct("long")),
    ],
)
def test_promotions_are_no_findings(before: Any, after: Any) -> None:
    assert ids(schema(0, before), schema(1, after)) == []


@pytest.mark.parametrize(
    ("before", "after", "version"),
    [
        ("long", "int", 3),
        ("date", "timestamptz", 3),
        ("date", "timestamp", 2),
        ("unknown", "string", 2),
        ("decimal(9,2)", "decimal(12,4)", 3),
        ("fixed[4]", "fixed[8]", 3),
        ("int", "string", 3),
        (field_list(struct("long")), field_list(struct("int")), 3),
        (struct("double"), struct("float"), 3),
        ("int", struct("int"), 3),
    ],
)
def test_other_changes_of_types_are_named(before: Any, after: Any, version: int) -> None:
    assert ids(schema(0, before), schema(1, after), version=version) == ["type-change-not-allowed"]


def test_a_change_is_one_finding_however_many_schemas_came_before_it() -> None:
    schemas = [schema(i, "long", doc=str(i)) for i in range(3)]
    assert ids(*schemas, schema(3, "int"), written=range(3)) == ["type-change-not-allowed"]
    assert len(ids(*schemas, schema(3, "double"), schema(4, "int"), written=range(4))) == 2


def test_schemas_that_no_snapshot_was_written_with_change_nothing() -> None:
    assert ids(schema(0, "long"), schema(2, "string"), schema(1, "long")) == []


@pytest.mark.parametrize(
    ("column", "identifiers", "finding"),
    [
        ({"required": True}, [1], []),
        ({"required": False}, [1], ["identifier-field-not-allowed"]),
        ({"required": True, "type": "double"}, [1], ["identifier-field-not-allowed"]),
        ({"required": True}, [9], ["identifier-field-not-allowed"]),
        ({"required": True, "id": 2147483447}, [], []),
        ({"required": True, "id": 2147483448}, [], ["field-id-reserved"]),
    ],
)
def test_ids_and_identifier_fields(column: dict[str, Any], identifiers: list[int], finding: list[str]) -> None:
    current = schema(0, "long", **column)
    assert ids(current | {"identifier-field-ids": identifiers}) == finding
