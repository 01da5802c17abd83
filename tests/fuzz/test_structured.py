"""Logs that are JSON through and through, and hold anything where something else belongs: designed answers only.

A fuzzer that turns bytes over seldom gets past the JSON; these tables do: actions of the right shape, with fields left
out, of other types, out of range, and text that means something elsewhere.
"""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from typing import Any

import fsspec
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lakeview.delta.data.schemas import parse_schema, schema_text
from lakeview.delta.data.statistics import physical_leaves, statistics_frame
from lakeview.model.errors import LakeviewError
from lakeview.model.findings import Finding
from tests.builders.actions import add, info, metadata, protocol, remove, txn
from tests.builders.history import log_name
from tests.builders.opening import open_delta_table

QUICK = settings(max_examples=30, suppress_health_check=list(HealthCheck))

ODD_TEXTS = (
    "", "a", "../a", "file:///etc/passwd", "%zz", "\x00", "\ud7ff\U0010ffff", "NaN", "id", "9" * 30, "2026-03-01", "u",
    "i", "^.*$",
)  # fmt: skip
TEXTS = st.sampled_from(ODD_TEXTS) | st.text(max_size=8)
NUMBERS = st.sampled_from([0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 10**40]) | st.integers()
LEAVES = st.none() | st.booleans() | NUMBERS | st.floats() | TEXTS
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))

STATS = {"numRecords": 3, "minValues": {"id": 1}, "maxValues": {"id": 3}, "nullCount": {"id": 0}, "tightBounds": True}
VECTOR = {
    "storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40, "cardinality": 6,
}  # fmt: skip
SOUND: list[dict[str, Any]] = [
    protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"]),
    metadata(partition_by=("city",), properties={"delta.enableInCommitTimestamps": "true"}),
    info(operation="WRITE", operationMetrics={"numFiles": "1"}, inCommitTimestamp=5, readVersion=0, timestamp=4),
    add("a.parquet", stats=STATS, partition={"city": "x"}, deletionVector=VECTOR, tags={"a": "b"}),
    remove("b.parquet", partitionValues={"city": None}, deletionVector=VECTOR),
    txn("stream", 4, 5),
    {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
    {"cdc": {"path": "c.parquet", "partitionValues": {"city": "x"}, "size": 4, "dataChange": False}},
]


@st.composite
def bent(draw: st.DrawFn) -> dict[str, Any]:
    """A sound action with some of its fields replaced by anything, or left out."""
    action: dict[str, Any] = json.loads(json.dumps(draw(st.sampled_from(SOUND))))
    kind, body = next(iter(action.items()))
    for name in draw(st.lists(st.sampled_from(sorted(body)), max_size=3, unique=True)):
        if draw(st.booleans()):
            body[name] = draw(JSON)
        else:
            body.pop(name)
    return {kind: body}


LOGS = st.lists(st.lists(bent(), max_size=4), min_size=1, max_size=4)


def write_table(commits: list[list[dict[str, Any]]]) -> str:
    """A table in memory that begins soundly and goes on with these commits."""
    name = f"/lakeview-bent-{uuid.uuid4().hex}"
    memory = fsspec.filesystem("memory")
    for version, actions in enumerate([SOUND[:2], *commits]):
        lines = "\n".join(json.dumps(a) for a in actions)
        memory.pipe_file(f"{name}/{log_name(version)}", lines.encode())
    return name


@pytest.mark.slow
@QUICK
@given(LOGS)
def test_a_table_of_bent_actions_is_answered_by_design(commits: list[list[dict[str, Any]]]) -> None:
    name = write_table(commits)
    try:
        table = open_delta_table(f"memory:/{name}")
        findings = table.check()
        assert all(isinstance(f, Finding) for f in findings)
        questions = (
            table.history, table.versions, table.schemas, table.lifetimes, table.files, table.statistics,
            table.snapshot, lambda: table.scan().collect(), lambda: table.changes(0).collect(),
            lambda: [table.commit(v) for v in range(len(commits) + 1)], lambda: table.plan("id = 1"),
            lambda: table.snapshot().tombstones, lambda: table.snapshot()._repr_html_(),
        )  # fmt: skip
        for question in questions:
            with suppress(LakeviewError):
                question()
    finally:
        fsspec.filesystem("memory").rm(name, recursive=True)


@QUICK
@given(st.dictionaries(st.sampled_from(sorted(STATS)), JSON), st.booleans())
def test_bent_statistics_leave_their_neighbours_alone(changes: dict[str, Any], first: bool) -> None:
    schema = parse_schema(metadata()["metaData"]["schemaString"])
    texts = [json.dumps(STATS | changes), json.dumps(STATS)]
    adds = pl.DataFrame(
        {"path": ["a", "b"], "deletion_vector": [None, None], "stats": texts if first else texts[::-1]},
        schema={"path": pl.String, "deletion_vector": pl.String, "stats": pl.String},
    )
    frame = statistics_frame(adds, physical_leaves(schema, None, ()))
    sound = frame["id"][1 if first else 0]
    assert sound == {"min": 1, "max": 3, "null_count": 0, "exact": True, "null_count_exact": True}


NAMES_OF_TYPES = ["long", "string", "decimal(10,2)", "timestamp_ntz", "variant", "void", "", "decimal(99,1)"]


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Types made of types, and of what is none."""
    field = st.fixed_dictionaries({"name": TEXTS, "type": inner, "nullable": LEAVES, "metadata": JSON})
    return (
        st.fixed_dictionaries({"type": st.just("array"), "elementType": inner, "containsNull": LEAVES})
        | st.fixed_dictionaries(
            {"type": st.just("map"), "keyType": inner, "valueType": inner, "valueContainsNull": LEAVES}
        )
        | st.fixed_dictionaries({"type": st.just("struct"), "fields": st.lists(field, max_size=3)})
    )


TYPES = st.recursive(st.sampled_from(NAMES_OF_TYPES) | JSON, larger, max_leaves=8)


VOID_KEYS = {"type": "map", "keyType": "void", "valueType": "long", "valueContainsNull": True}


@QUICK
@given(TYPES)
@example({"type": "struct", "fields": [{"name": "a", "type": "void", "nullable": False}]})
@example({"type": "struct", "fields": [{"name": "a", "type": VOID_KEYS}]})
@example({"type": "struct", "fields": [{"name": "a", "type": {**VOID_KEYS, "keyType": "long", "valueType": "void"}}]})
def test_a_bent_schema_is_refused_or_means_what_it_says(value: object) -> None:
    with suppress(LakeviewError):
        schema_read = parse_schema(json.dumps(value))
        assert parse_schema(schema_text(schema_read)) == schema_read
        for leaves in (schema_read.leaves(), schema_read.as_nullable().leaves()):
            assert all(path for path, _ in leaves)
        schema_read.to_polars()
        schema_read.to_arrow()
