"""Metadata files: what every version may leave out, and what none may."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from lakeview.iceberg.metadata.documents import metadata_document
from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT
from lakeview.iceberg.metadata.table_metadata import Metadata, parse_metadata
from lakeview.model.data_types import ArrayType, DecimalType, MapType, PrimitiveType, StructType
from lakeview.model.errors import CorruptTableError, UnsupportedTableError
from tests.builders.iceberg_metadata import ABSENT, SCHEMA, document, snapshot, text, version_1


def parsed(content: dict[str, Any]) -> Metadata:
    return parse_metadata(text(content), "v1.metadata.json")


def schema_of(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return document(schemas=[{"type": "struct", "schema-id": 0, "fields": list(fields), **more}])


def test_version_1_has_its_schema_and_spec_in_the_singular() -> None:
    metadata = parsed(version_1())
    assert metadata.schema.names == ["id", "day"]
    assert [(f.field_id, f.name, f.transform.text) for f in metadata.spec.fields] == [
        (1000, "day", "identity"),
        (1001, "b", "bucket[4]"),
    ]
    assert metadata.current_snapshot_id == NO_SNAPSHOT


@pytest.mark.parametrize("none", [None, -1, ABSENT], ids=["null", "minus one", "absent"])
def test_no_current_snapshot_is_spelled_in_three_ways(none: Any) -> None:
    metadata = parsed(document(current_snapshot_id=none))
    assert metadata.current_snapshot_id == NO_SNAPSHOT
    assert metadata.refs == {}


@pytest.mark.parametrize("none", [None, -1, ABSENT], ids=["null", "minus one", "absent"])
def test_the_current_snapshot_is_that_of_main_where_it_is_not_recorded(none: Any) -> None:
    refs = {"main": {"snapshot-id": 7, "type": "branch"}}
    metadata = parsed(document(current_snapshot_id=none, snapshots=[snapshot(7)], refs=refs))
    assert metadata.current_snapshot_id == 7


def test_the_main_branch_is_the_current_snapshot_where_no_refs_are_recorded() -> None:
    metadata = parsed(document(current_snapshot_id=7, snapshots=[snapshot(7)]))
    assert metadata.refs["main"].snapshot_id == 7


@pytest.mark.parametrize("fields", [5, ["x"], None], ids=["a number", "texts", "null"])
def test_what_only_a_struct_has_means_nothing_in_a_list(fields: Any) -> None:
    odd = {"type": "list", "element-id": 2, "element": "int", "element-required": False, "fields": fields}
    assert str(parsed(schema_of({"id": 1, "name": "a", "type": odd})).schema["a"].type) == "array<integer>"


def test_version_1_may_have_no_specs_beside_its_one() -> None:
    assert len(parsed(version_1(partition_specs=[])).spec.fields) == 2


def test_gzip_is_known_by_its_first_bytes() -> None:
    assert parse_metadata(gzip.compress(text(document())), "v1.metadata.json").format_version == 2


def test_optional_parts_may_be_null_or_odd() -> None:
    part = {"name": "z", "transform": "identity", "source-id": 1, "source-ids": None, "field-id": None}
    content = document(
        schemas=[SCHEMA, {**SCHEMA, "schema-id": 3}],
        partition_specs=[{"spec-id": 0, "fields": [part]}],
        snapshots=[snapshot(1, schema_id="3"), snapshot(2, schema_id=None)],
        statistics=[None, {"snapshot-id": 1}],
        partition_statistics=["odd"],
    )
    metadata = parsed(content)
    assert [(f.field_id, f.source_ids) for f in metadata.spec.fields] == [(1000, (1,))]
    assert [metadata.schema_of(s).schema_id for s in metadata.snapshots.values()] == [3, 0]
    assert (len(metadata.statistics), metadata.partition_statistics) == (1, ())


def test_unknown_keys_operations_types_and_transforms_are_kept() -> None:
    fields = [{"id": 1, "name": "shape", "required": False, "type": "hyperbole(7)"}]
    content = document(
        schemas=[{"type": "struct", "schema-id": 0, "fields": fields}],
        partition_specs=[
            {"spec-id": 0, "fields": [{"field-id": 1000, "name": "z", "transform": "zorder[7]", "source-id": 1}]}
        ],
        snapshots=[snapshot(1, summary={"operation": "ponder"})],
        current_snapshot_id=1,
        something_new={"a": 1},
    )
    metadata = parsed(content)
    assert metadata.schema["shape"].type == PrimitiveType("hyperbole(7)")
    assert metadata.spec.fields[0].transform.name == "unknown"
    assert metadata.snapshots[1].operation == "ponder"


def test_types_at_every_level_and_ids_of_fields() -> None:
    nested = {
        "type": "list", "element-id": 3, "element-required": False,
        "element": {
            "type": "map", "key-id": 4, "key": "string", "value-id": 5, "value-required": True,
            "value": {"type": "struct", "fields": [{"id": 6, "name": "d", "required": True, "type": "decimal(9, 2)"}]},
        },
    }  # fmt: skip
    schema = parsed(schema_of({"id": 2, "name": "n", "required": False, "type": nested, "doc": "why"})).schema
    field = schema["n"]
    assert (field.id, field.comment) == (2, "why")
    assert isinstance(field.type, ArrayType)
    assert isinstance(field.type.element, MapType)
    assert not field.type.element.value_contains_null
    value = field.type.element.value
    assert isinstance(value, StructType)
    assert (value.fields[0].id, value.fields[0].type, value.fields[0].nullable) == (6, DecimalType(9, 2), False)


@pytest.mark.parametrize(
    ("word", "ours"),
    [
        ("int", "integer"),
        ("timestamp", "timestamp_ntz"),
        ("timestamptz", "timestamp"),
        ("unknown", "void"),
        ("fixed[16]", "fixed"),
    ],
)
def test_words_for_types(word: str, ours: str) -> None:
    assert parsed(schema_of({"id": 1, "name": "c", "type": word})).schema["c"].type == PrimitiveType(ours)


def spec_of(field: dict[str, Any]) -> dict[str, Any]:
    return document(partition_specs=[{"spec-id": 0, "fields": [field]}])


TWICE = [{"id": 1, "name": "a", "type": "int"}, {"id": 1, "name": "b", "type": "int"}]

INVALID: dict[str, tuple[dict[str, Any], str]] = {
    "no format version": (document(format_version=ABSENT), "missing required field `format-version`"),
    "version 0": (document(format_version=0), "the format version is 0"),
    "no schemas": (document(schemas=ABSENT), "it has no schemas"),
    "version 1 without a schema": (version_1(schema=None), "it has no schemas"),
    "version 1 with schemas of which none is current": (
        version_1(schema=None, schemas=[SCHEMA, {**SCHEMA, "schema-id": 5}]),
        "it has no current-schema-id",
    ),
    "no current schema": (document(current_schema_id=ABSENT), "it has no current-schema-id"),
    "a dangling current schema": (document(current_schema_id=5), "current-schema-id is 5"),
    "no specs": (document(partition_specs=ABSENT), "it has no partition-specs"),
    "a dangling default spec": (document(default_spec_id=3), "default-spec-id is 3"),
    "a current snapshot that is not there": (document(current_snapshot_id=5), "is 5, but no snapshot"),
    "a snapshot id beyond 64 bits": (document(snapshots=[snapshot(2**63)]), "9223372036854775807"),
    "a snapshot id that is no whole number": (document(current_snapshot_id=1.5), "Expected `int"),
    "an id twice": (schema_of(*TWICE), "the field id 1 occurs twice"),
    "a field without a name": (schema_of({"id": 1, "type": "int"}), "the name None"),
    "a field without a type": (schema_of({"id": 1, "name": "a"}), "None is no type"),
    "a struct without fields": (
        schema_of({"id": 1, "name": "a", "type": {"type": "struct"}}),
        "a struct has no fields",
    ),
    "a partition field without a transform": (
        document(partition_specs=[{"spec-id": 0, "fields": [{"name": "p", "source-id": 1}]}]),
        "a partition field cannot be understood",
    ),
    "a partition field of no column": (spec_of({"name": "p", "source-ids": [], "transform": "identity"}), "understood"),
    "a partition field id beyond 32 bits": (
        spec_of({"name": "p", "source-id": 1, "field-id": 2**31, "transform": "identity"}),
        "a partition field cannot be understood",
    ),
    "a spec id beyond 32 bits": (
        document(partition_specs=[{"spec-id": 2**31, "fields": []}], default_spec_id=0),
        "a partition spec has the id 2147483648",
    ),
    "a schema id beyond 32 bits": (document(schemas=[SCHEMA, {**SCHEMA, "schema-id": 2**70}]), "a schema has the id"),
    "a name twice": (
        schema_of({"id": 1, "name": "a", "type": "int"}, {"id": 2, "name": "a", "type": "int"}),
        "two columns side by side are called a",
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_metadata_says_what_is_wrong(case: str) -> None:
    content, message = INVALID[case]
    with pytest.raises(CorruptTableError) as caught:
        parsed(content)
    assert caught.value.kind == "invalid-metadata"
    assert caught.value.place == "v1.metadata.json"
    assert caught.value.fix
    assert message in caught.value.message


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, gzip.compress(b"{}" * 50)[:20]],
    ids=["nothing", "half an object", "no text", "very deep", "a gzip file cut short"],
)
def test_what_is_no_json_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptTableError):
        parse_metadata(data[:100_000], "v1.metadata.json")


@pytest.mark.parametrize(
    "content",
    [document(format_version=4), {"format-version": 4, "schemas": "elsewhere"}],
    ids=["alike", "of another shape"],
)
def test_a_newer_version_is_refused_by_its_number(content: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedTableError, match="format version 4") as caught:
        parsed(content)
    assert caught.value.kind == "unsupported-version"


def test_a_view_is_no_corrupt_table() -> None:
    version = {"version-id": 1, "schema-id": 0, "timestamp-ms": 1, "summary": {}, "default-namespace": ["sales"]}
    view = {
        "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
        "format-version": 1,
        "location": "s3://lake/sales/big",
        "current-version-id": 1,
        "versions": [{**version, "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}]}],
        "version-log": [{"timestamp-ms": 1, "version-id": 1}],
        "schemas": [SCHEMA],
    }
    with pytest.raises(UnsupportedTableError, match=r"v1\.metadata\.json describes a view") as caught:
        parsed(view)
    assert caught.value.kind == "view"


def test_a_schema_nested_too_deep_is_refused() -> None:
    type_: Any = "int"
    for i in range(80):
        type_ = {"type": "list", "element-id": i + 2, "element": type_, "element-required": False}
    with pytest.raises(UnsupportedTableError, match="nested deeper"):
        parsed(schema_of({"id": 1, "name": "deep", "type": type_}))


def test_a_snapshot_without_a_schema_id_has_the_current_schema() -> None:
    later = {**SCHEMA, "schema-id": 1, "fields": SCHEMA["fields"][:1]}
    metadata = parsed(
        document(schemas=[SCHEMA, later], current_schema_id=1, snapshots=[snapshot(1), snapshot(2, schema_id=0)])
    )
    assert metadata.schema_of(metadata.snapshots[1]).schema.names == ["id"]
    assert metadata.schema_of(metadata.snapshots[2]).schema.names == ["id", "day"]


@pytest.mark.parametrize("value", [b'"\xff"', b"[" * 100_000], ids=["no UTF-8", "nested too deep"])
def test_a_field_that_only_a_writer_reads_is_refused_where_it_is_no_json(value: bytes) -> None:
    with pytest.raises(CorruptTableError, match=r"v1\.metadata\.json") as caught:
        metadata_document(b'{"note":' + value + b"}", "v1.metadata.json")
    assert caught.value.place == "v1.metadata.json"
