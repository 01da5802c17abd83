"""Troubles of protocol, properties, schema, files and statistics, one table each."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lakeview.model.findings import Severity
from tests.builders.actions import Action, add, cdc, info, metadata, protocol, remove, struct
from tests.builders.history import DeltaHistory
from tests.builders.opening import open_delta_table
from tests.doctor.diagnosis import diagnosis, one_finding, rows, sound

BROKEN, ATTENTION, NOTE = Severity.BROKEN, Severity.ATTENTION, Severity.NOTE
GENERATED = "delta.generationExpression"
Tell = Callable[[DeltaHistory], object]


def fields(*columns: dict[str, Any]) -> str:
    whole = [{"nullable": True, "metadata": {}, **c} for c in columns]
    return json.dumps({"type": "struct", "fields": whole})


def mapped(name: str, number: int | None, physical: str | None) -> dict[str, Any]:
    keys = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": "long", "metadata": {k: v for k, v in keys.items() if v is not None}}


def first(h: DeltaHistory, protocol_action: Action, **meta: Any) -> None:
    """A table that begins with this protocol."""
    h.commit(protocol_action, metadata(**meta))


def with_schema(h: DeltaHistory, schema: str, protocol_action: Action | None = None, **meta: Any) -> None:
    h.commit(protocol_action or protocol(), metadata(schema=schema, **meta))


def with_mapping(h: DeltaHistory, *columns: dict[str, Any], highest: str | None = "2") -> None:
    properties = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": highest}
    with_schema(h, fields(*columns), protocol(2, 5), properties=properties)


def with_properties(h: DeltaHistory, **properties: str) -> None:
    sound(h, properties={f"delta.{k.replace('__', '.')}": v for k, v in properties.items()})


def partitioned(h: DeltaHistory, day_type: str = "date", **partition: str | None) -> None:
    h.create({"id": "long", "city": "string", "day": day_type}, partition_by=("day",))
    h.commit(rows(h, "a.parquet", partition=dict(partition)))


def vector(**more: Any) -> dict[str, Any]:
    """An inline deletion vector of one row, unless it says otherwise."""
    text = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": 44, "cardinality": 2, **more}


def with_vector(h: DeltaHistory, declared: bool = True, **more: Any) -> None:
    both = ["deletionVectors"]
    h.commit(protocol(3, 7, readerFeatures=both, writerFeatures=both) if declared else protocol(), metadata())
    h.commit(rows(h, "a.parquet", ids=range(20), deletionVector=more.pop("vector", vector()), **more))


def with_statistics(h: DeltaHistory, **stats: Any) -> None:
    whole = {"numRecords": 3, "minValues": {"id": 1}, "maxValues": {"id": 3}, "nullCount": {"id": 0}, **stats}
    sound(h).commit(rows(h, "c.parquet", stats={k: v for k, v in whole.items() if v is not None}))


def several_features(h: DeltaHistory) -> None:
    first(h, protocol(3, 7, readerFeatures=["timestampNtz"], writerFeatures=["timestampNtz", "appendOnly"]))


def outside(h: DeltaHistory, *more: Action) -> None:
    sound(h).commit(*more, add("../elsewhere.parquet", records=3))


def missing_vector_file(h: DeltaHistory) -> None:
    with_vector(h, vector=vector(storageType="u", pathOrInlineDv="vBn[lx{q8@P<9BNH/isA", offset=1))


def odd_vector(h: DeltaHistory) -> None:
    with_vector(h, vector=vector(storageType="z"))


def two_vectors_at_once(h: DeltaHistory) -> None:
    with_vector(h)
    h.commit(rows(h, "a.parquet", ids=range(20)))


def another_size(h: DeltaHistory) -> None:
    action = rows(h, "c.parquet")
    sound(h).commit({"add": {**action["add"], "size": 12}})


def domain_action(h: DeltaHistory) -> None:
    sound(h).commit({"domainMetadata": {"domain": "delta.clustering", "configuration": "{}", "removed": False}})


def not_in_the_schema(h: DeltaHistory) -> None:
    h.create(partition_by=("day",))


TROUBLES: dict[str, tuple[Tell, Severity, str, str]] = {
    "an unknown reader version": (
        lambda h: first(h, protocol(9, 7)), BROKEN, "No specification knows this protocol: reader 9", "1 to 3",
    ),
    "reader 3 with writer 5": (
        lambda h: first(h, protocol(3, 5, readerFeatures=[])), BROKEN, "An odd pair", "reader 3 needs writer 7",
    ),
    "reader 2 with writer 2": (lambda h: first(h, protocol(2, 2)), ATTENTION, "An odd pair", "from version 5 on"),
    "no writerFeatures": (lambda h: first(h, protocol(1, 7)), BROKEN, "The protocol has no writerFeatures", "reader 1"),
    "no readerFeatures": (
        lambda h: first(h, protocol(3, 7, writerFeatures=[])), BROKEN, "The protocol has no readerFeatures", "reader 3",
    ),
    "features in a protocol without": (
        lambda h: first(h, protocol(1, 2, writerFeatures=["appendOnly"])),
        ATTENTION, "writerFeatures stand in a protocol that has none", "appendOnly",
    ),
    "a reader feature that writers need not know": (
        lambda h: first(h, protocol(3, 7, readerFeatures=["timestampNtz"], writerFeatures=[])),
        BROKEN, "1 reader feature is missing from writerFeatures", "timestampNtz",
    ),
    "a feature that readers need not know": (
        lambda h: first(h, protocol(3, 7, readerFeatures=[], writerFeatures=["deletionVectors"])),
        BROKEN, "1 feature that readers need is listed for writers only", "deletionVectors",
    ),
    "a feature that readers of version 1 do not know": (
        lambda h: first(h, protocol(1, 7, writerFeatures=["deletionVectors"])),
        BROKEN, "1 feature that readers need is listed for writers only", "deletionVectors",
    ),
    "a generated column without its feature": (
        lambda h: with_schema(h, fields({"name": "a", "type": "long", "metadata": {GENERATED: "1"}})),
        ATTENTION, "used and not declared: generatedColumns", "delta.generationExpression on column a",
    ),
    "features that nothing uses": (
        several_features, NOTE, "1 feature is declared and not used", "timestampNtz",
    ),
    "a property without its feature": (
        lambda h: first(h, protocol(1, 7, writerFeatures=[]), properties={"delta.enableChangeDataFeed": "true"}),
        ATTENTION, "1 feature is used and not declared: changeDataFeed", "delta.enableChangeDataFeed",
    ),
    "a constraint in a table of writer 2": (
        lambda h: sound(h, properties={"delta.constraints.positive": "id > 0"}),
        ATTENTION, "1 feature is used and not declared: checkConstraints", "delta.constraints.positive",
    ),
    "a default without its feature": (
        lambda h: with_schema(h, fields({"name": "a", "type": "long", "metadata": {"CURRENT_DEFAULT": "1"}})),
        ATTENTION, "used and not declared: allowColumnDefaults", "CURRENT_DEFAULT on column a",
    ),
    "a collation without its feature": (
        lambda h: with_schema(h, fields({"name": "a", "type": "string", "metadata": {"__COLLATIONS": {"a": "ICU.d"}}})),
        ATTENTION, "used and not declared: collations", "ICU.d on column a",
    ),
    "collations that nothing uses": (
        lambda h: first(h, protocol(1, 7, writerFeatures=["collations-preview"])),
        NOTE, "1 feature is declared and not used", "collations",
    ),
    "a deep timestamp_ntz without its feature": (
        lambda h: h.create({"s": struct(at={"type": "array", "elementType": "timestamp_ntz", "containsNull": True})}),
        BROKEN, "used and not declared: timestampNtz", "column s.at",
    ),
    "deletion vectors without their feature": (
        lambda h: with_vector(h, declared=False), BROKEN, "used and not declared: deletionVectors", "1 file with",
    ),
    "a mapping mode without its feature": (
        lambda h: with_properties(h, columnMapping__mode="name"),
        ATTENTION, "used and not declared: columnMapping", "delta.columnMapping.mode name",
    ),
    "a domain without its feature": (
        domain_action, ATTENTION, "Metadata domains in a table without the feature", "first delta.clustering at v3",
    ),
    "a misspelt property": (
        lambda h: with_properties(h, enableChangeDataFed="true"),
        ATTENTION, "1 property is misspelt", "delta.enableChangeDataFed (meant: delta.enableChangeDataFeed)",
    ),
    "a property in the wrong case": (
        lambda h: with_properties(h, AppendOnly="true"), ATTENTION, "1 property is misspelt", "meant: delta.appendOnly",
    ),
    "a property of tomorrow": (
        lambda h: with_properties(h, enableIcebergCompatV9="true"),
        NOTE, "1 delta property is known to no engine", "enableIcebergCompatV9",
    ),
    "a property that nobody knows": (
        lambda h: with_properties(h, moonPhase="full"), NOTE, "1 delta property is known to no engine", "moonPhase",
    ),
    "a property that is no boolean": (
        lambda h: with_properties(h, enableExpiredLogCleanup="yes"),
        ATTENTION, "1 property has a value that engines", "delta.enableExpiredLogCleanup = yes",
    ),
    "a property that is no duration": (
        lambda h: with_properties(h, logRetentionDuration="30"), ATTENTION, "1 property has a value", "= 30",
    ),
    "a property below its least": (
        lambda h: with_properties(h, checkpointInterval="0"), ATTENTION, "1 property has a value", "Interval = 0",
    ),
    "no schema": (
        lambda h: h.commit(protocol(), {"metaData": {"id": "x", "format": {"provider": "parquet", "options": {}}}}),
        ATTENTION, "The table has no schema", "schemaString",
    ),
    "a schema that is none": (
        lambda h: with_schema(h, '{"type":"struct","fields":[7]}'), BROKEN, "The schema cannot be used", "no field",
    ),
    "a partition column that is not there": (
        not_in_the_schema, BROKEN, "The schema cannot be used", "day is not in the schema",
    ),
    "names that differ by case": (
        lambda h: h.create({"id": "long", "ID": "long"}), BROKEN, "2 column names given twice, but for case", "id, ID",
    ),
    "an unknown type": (
        lambda h: h.create({"id": "long", "x": "quaternion"}),
        ATTENTION, "1 column of a type no specification knows", "x: quaternion",
    ),
    "nothing but partition columns": (
        lambda h: h.create({"day": "date"}, partition_by=("day",)), ATTENTION, "Every column is a partition", "day",
    ),
    "a mapped column without an id": (
        lambda h: with_mapping(h, mapped("a", 1, "p"), mapped("b", None, "q")),
        BROKEN, "1 column lacks a mapping id or physical name", "b",
    ),
    "a mapping id twice": (
        lambda h: with_mapping(h, mapped("a", 1, "p"), mapped("b", 1, "q")),
        BROKEN, "2 columns share their mapping id", "a (id 1), b (id 1)",
    ),
    "a physical name twice": (
        lambda h: with_mapping(h, mapped("a", 1, "p"), mapped("b", 2, "p")),
        BROKEN, "2 columns share their physical name", "a (p), b (p)",
    ),
    "a highest id that is too low": (
        lambda h: with_mapping(h, mapped("a", 1, "p"), mapped("b", 7, "q")),
        ATTENTION, "maxColumnId is lower than an id in use", "2, and the highest id is 7",
    ),
    "no highest id": (
        lambda h: with_mapping(h, mapped("a", 1, "p"), highest=None), ATTENTION, "maxColumnId is not set", "none",
    ),
    "a missing file": (
        lambda h: sound(h).remove("a.parquet"), BROKEN, "1 live file is missing from the store", "a.parquet; of 2",
    ),
    "a file of another size": (
        another_size, ATTENTION, "1 live file has another size than the log says", "12 recorded",
    ),
    "a file outside the table": (
        outside, ATTENTION, "1 live file lies outside the table", "../elsewhere.parquet",
    ),
    "a file outside a clone": (
        lambda h: outside(h, info(operation="CLONE")), NOTE, "1 live file lies outside the table", "is a clone",
    ),
    "a missing deletion vector file": (
        missing_vector_file, BROKEN, "1 deletion vector file is missing", "deletion_vector_",
    ),
    "a deletion vector of no known kind": (
        odd_vector, BROKEN, "1 deletion vector descriptor cannot be read", "storage type",
    ),
    "a file live with and without its vector": (
        two_vectors_at_once, BROKEN, "1 file is live with two deletion vectors at once", "a.parquet",
    ),
    "a file that no commit names": (
        lambda h: sound(h).write("leftover.parquet", b"x" * 40),
        NOTE, "1 file in the folder is named by no commit", "40 bytes; some may belong to a commit under way",
    ),
    "no partition value": (
        partitioned, BROKEN, "1 live file lacks a partition value", "a.parquet; partition columns: day",
    ),
    "a partition value too many": (
        lambda h: partitioned(h, day="2026-03-01", hour="7"),
        ATTENTION, "1 live file has values for columns that are no partition columns", "hour: a.parquet",
    ),
    "a partition value of another type": (
        lambda h: partitioned(h, day="yesterday"), BROKEN, "1 partition value of day is no date", "'yesterday'",
    ),
    "no statistics": (
        lambda h: sound(h).commit(h.data("c.parquet", {"id": [1]})),
        NOTE, "1 of 3 live files does not count its rows", "c.parquet",
    ),
    "a negative number of rows": (
        lambda h: with_statistics(h, numRecords=-3), BROKEN, "1 live file with a negative number of rows", "c.parquet",
    ),
    "a negative number of nulls": (
        lambda h: with_statistics(h, nullCount={"id": -1}), BROKEN, "a negative number of rows or nulls", "c.parquet",
    ),
    "a file of a negative size": (
        lambda h: sound(h).commit(add("a.parquet", size=-1, records=1)), BROKEN, "1 live file of a negative size", "a",
    ),
    "a file larger than any": (
        lambda h: sound(h).commit(add("a.parquet", size=2**62, records=1)),
        BROKEN, "1 live file of a size that no store lets a file have", "a.parquet",
    ),
    "a table that a catalog manages": (
        lambda h: first(h, protocol(3, 7, readerFeatures=["catalogManaged"], writerFeatures=["catalogManaged"])),
        NOTE, "A catalog manages this table", "catalogManaged",
    ),
    "a deletion vector file that no commit names": (
        lambda h: sound(h).write("deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin", b"x"),
        NOTE, "1 file in the folder is named by no commit", "deletion_vector_d2c639aa",
    ),
    "a minimum above its maximum": (
        lambda h: with_statistics(h, minValues={"id": 9}),
        BROKEN, "Statistics contradict themselves: 1 column of files have a minimum above", "id in c.parquet: min 9",
    ),
    "more nulls than rows": (
        lambda h: with_statistics(h, nullCount={"id": 4}),
        BROKEN, "1 column of files have more nulls than rows", "id in c.parquet: 4 nulls in 3 rows",
    ),
    "bounds of nothing but nulls": (
        lambda h: with_statistics(h, nullCount={"id": 3}),
        ATTENTION, "1 column of files are all null and have bounds", "3 rows, all null, min 1",
    ),
    "more rows deleted than there are": (
        lambda h: with_vector(h, vector=vector(cardinality=21)),
        BROKEN, "1 live file with a deletion vector that deletes more rows", "a.parquet deletes 21 of 20 rows",
    ),
    "deleted rows in a file that does not count them": (
        lambda h: with_vector(h, stats={"minValues": {}}),
        BROKEN, "1 live file with a deletion vector and no numRecords", "a.parquet",
    ),
    "tight bounds beside deleted rows": (
        lambda h: with_vector(h, stats={"numRecords": 20, "tightBounds": True}),
        NOTE, "1 file has deleted rows and say their bounds are tight", "a.parquet",
    ),
}  # fmt: skip
"""What is wrong -> how it is told, how grave it is, and parts of the claim and of its evidence."""


ALONE = {
    "a misspelt property", "a property that is no boolean", "a missing file", "a file of another size",
    "a file that no commit names", "a minimum above its maximum", "more nulls than rows", "no highest id",
    "a partition value of another type", "an unknown type", "reader 2 with writer 2", "no writerFeatures",
}  # fmt: skip
"""Troubles of which the trouble is all there is to say."""
assert TROUBLES.keys() >= ALONE


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_trouble_of_the_table_is_found(history: DeltaHistory, trouble: str) -> None:
    tell, severity, claim, evidence = TROUBLES[trouble]
    tell(history)
    findings = diagnosis(history)
    mine = one_finding(findings, severity, claim, evidence)
    if trouble in ALONE:
        assert findings == mine


def test_files_younger_than_a_day_are_no_leavings(history: DeltaHistory) -> None:
    sound(history).write("leftover.parquet", b"x")
    modification_time = datetime.fromtimestamp((Path(history.address) / "leftover.parquet").stat().st_mtime, UTC)
    table = open_delta_table(history.address)

    def leavings(now: datetime) -> list[str]:
        return [f.evidence for f in table.check(now) if "named by no commit" in f.claim]

    assert leavings(modification_time + timedelta(hours=2)) == []
    assert leavings(modification_time + timedelta(days=2)) == ["1 bytes; older than a day: leftover.parquet"]


def test_change_data_files_are_no_leavings_wherever_they_lie(history: DeltaHistory) -> None:
    sound(history).write("changes of mine/cdc-1.parquet", b"x")
    history.commit(cdc(add("changes%20of%20mine/cdc-1.parquet")))
    assert [f.claim for f in diagnosis(history) if "named by no commit" in f.claim] == []


@pytest.mark.parametrize("name", ["_SUCCESS", ".part.crc", "_change_data/cdc.parquet", "a/_temporary/x.parquet"])
def test_hidden_files_are_no_leavings(history: DeltaHistory, name: str) -> None:
    sound(history).write(name, b"x")
    assert diagnosis(history) == []


def test_removed_files_are_no_leavings_and_need_not_be_there(history: DeltaHistory) -> None:
    sound(history).commit(remove("a.parquet"))
    assert diagnosis(history) == []
    history.remove("a.parquet")
    assert diagnosis(history) == []


def test_a_null_partition_value_is_a_value(history: DeltaHistory) -> None:
    partitioned(history, day=None)
    assert diagnosis(history) == []


def test_partition_values_under_physical_names(history: DeltaHistory) -> None:
    columns = (mapped("id", 1, "p"), {**mapped("day", 2, "col-7"), "type": "string"})
    properties: dict[str, str | None] = {
        "delta.columnMapping.mode": "name",
        "delta.columnMapping.maxColumnId": "2",
    }
    history.commit(protocol(2, 5), metadata(schema=fields(*columns), partition_by=("day",), properties=properties))
    history.commit(history.data("a.parquet", {"p": [1]}, stats={"numRecords": 1}, partition={"col-7": "x"}))
    assert diagnosis(history) == []
