"""Troubles of what table features ask of a table, one table each; and sound tables with these features."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from lakeview.model.findings import Severity
from tests.builders.actions import Action, info, metadata, protocol, struct
from tests.builders.history import CHECKPOINT_SHAPE, DeltaHistory, log_name, parquet_actions
from tests.doctor.diagnosis import diagnosis, one_finding, rows

BROKEN, ATTENTION, NOTE = Severity.BROKEN, Severity.ATTENTION, Severity.NOTE
Tell = Callable[[DeltaHistory], object]


def field(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": True, "metadata": more}


def mapped(name: str, number: int, type_: Any, **more: Any) -> dict[str, Any]:
    keys = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}
    return field(name, type_, **keys, **more)


def schema(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "struct", "fields": list(fields)})


def domain(name: str, configuration: object) -> Action:
    return {"domainMetadata": {"domain": name, "configuration": json.dumps(configuration), "removed": False}}


def properties(**texts: str) -> dict[str, str | None]:
    return {f"delta.{name.replace('__', '.')}": text for name, text in texts.items()}


# -- row tracking

TRACKED = {
    "enableRowTracking": "true",
    "rowTracking__materializedRowIdColumnName": "_id",
    "rowTracking__materializedRowCommitVersionColumnName": "_version",
}
IDS: dict[str, Any] = {"baseRowId": 0, "defaultRowCommitVersion": 1}


def tracked(h: DeltaHistory, *files: Action, mark: int | None = 9, **more: str) -> None:
    first = protocol(1, 7, writerFeatures=["rowTracking", "domainMetadata"])
    marks = [] if mark is None else [domain("delta.rowTracking", {"rowIdHighWaterMark": mark})]
    h.commit(first, metadata(properties=properties(**{**TRACKED, **more})), *marks).commit(*files)


# -- clustering


def clustered(h: DeltaHistory, columns: object, partition_by: tuple[str, ...] = (), **stats: Any) -> None:
    columns_of_table = {
        "id": "long",
        "city": "string",
        "s": struct(a="long"),
        "v": {"type": "array", "elementType": "long"},
    }
    h.commit(
        protocol(1, 7, writerFeatures=["clustering", "domainMetadata"]),
        metadata(columns_of_table, partition_by=partition_by),
        domain("delta.clustering", columns),
    )
    partition = dict.fromkeys(partition_by, "x")
    h.commit(h.data("a.parquet", {"id": [1]}, partition=partition, stats={"numRecords": 1, **stats}))


def by(*paths: object) -> dict[str, object]:
    return {"clusteringColumns": list(paths)}


COUNTED: dict[str, Any] = {"nullCount": {"id": 0}, "minValues": {"id": 1}, "maxValues": {"id": 1}}

# -- times inside commits

FIRST, SECOND = 1_800_000_000_000, 1_800_000_000_500
VERSION, TIME = "inCommitTimestampEnablementVersion", "inCommitTimestampEnablementTimestamp"


def timed(h: DeltaHistory, **enablement: str) -> None:
    """Times inside commits from v1 on."""
    h.commit(protocol(1, 7, writerFeatures=["inCommitTimestamp"]), metadata())
    on = metadata(properties=properties(enableInCommitTimestamps="true", **enablement))
    h.commit(info(inCommitTimestamp=FIRST), on).commit(info(inCommitTimestamp=SECOND), rows(h, "a.parquet"))


def managed(h: DeltaHistory, *features: str, first: dict[str, Any], **more: str) -> None:
    both = ["catalogManaged"]
    first_protocol = protocol(3, 7, readerFeatures=both, writerFeatures=[*both, *features])
    h.commit(info(**first), first_protocol, metadata(properties=properties(**more)))


# -- compatibility with Iceberg


def compatible(
    h: DeltaHistory, number: int, *fields: dict[str, Any], others: tuple[str, ...] = (), **more: str
) -> None:
    names = [f"icebergCompatV{number}", "columnMapping", *others]
    readers = [name for name in names if name in ("columnMapping", "deletionVectors", "typeWidening")]
    settings = {"columnMapping__mode": "name", f"enableIcebergCompatV{number}": "true", **more}
    settings["columnMapping__maxColumnId"] = "9"
    first = protocol(3, 7, readerFeatures=readers, writerFeatures=names)
    h.commit(first, metadata(schema=schema(*(fields or (mapped("id", 1, "long"),))), properties=properties(**settings)))


# -- V2 checkpoints

FILE_ACTIONS = {kind: CHECKPOINT_SHAPE[kind] for kind in ("add", "remove")}


def with_v2_checkpoint(h: DeltaHistory, *described: int, size: int | None = None) -> None:
    """A checkpoint of v1 with these checkpointMetadata actions, whose sidecar is recorded with a size, or its own."""
    both = ["v2Checkpoint"]
    h.commit(protocol(3, 7, readerFeatures=both, writerFeatures=both), metadata()).commit(rows(h, "a.parquet"))
    sidecar = parquet_actions([rows(h, "a.parquet")], FILE_ACTIONS)
    own_size = len(sidecar) if size is None else size
    h.write("_delta_log/_sidecars/s.parquet", sidecar)
    top: list[Action] = [{"checkpointMetadata": {"version": version}} for version in described]
    top += [action for action in h.reconciled(1) if "add" not in action]
    top.append({"sidecar": {"path": "s.parquet", "sizeInBytes": own_size, "modificationTime": 0}})
    name = log_name(1, "checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json")
    h.write(name, "".join(json.dumps(action) + "\n" for action in top).encode())


def nested_ids(element: int) -> dict[str, Any]:
    return {"delta.columnMapping.nested.ids": {"l.element": element}}


LIST = {"type": "array", "elementType": "long", "containsNull": True}
WIDENED = {"delta.typeChanges": [{"fromType": "integer", "toType": "double"}]}


def widened(h: DeltaHistory, before: str, after: str) -> None:
    change = {"delta.typeChanges": [{"fromType": before, "toType": after}]}
    both = ["typeWidening"]
    first = protocol(3, 7, readerFeatures=both, writerFeatures=both)
    h.commit(first, metadata(schema=schema(field("id", after, **change))))


TROUBLES: dict[str, tuple[Tell, Severity, str, str]] = {
    "a type change that no reader takes": (
        lambda h: widened(h, "string", "integer"), BROKEN, "A recorded type change is not one", "string to integer",
    ),
    "a float that became a text, beside files with bounds": (
        lambda h: widened(h.commit(rows(h, "a.parquet")), "float", "string"),
        BROKEN, "A recorded type change is not one", "float to string",
    ),
    "no names for columns of ids": (
        lambda h: tracked(h, rowTracking__materializedRowIdColumnName=""),
        BROKEN, "has no name for a column of materialized ids", "materializedRowIdColumnName",
    ),
    "one name for both columns of ids": (
        lambda h: tracked(h, rowTracking__materializedRowIdColumnName="_version"),
        BROKEN, "has the name of another column", "_version",
    ),
    "ids under the name of a column": (
        lambda h: tracked(h, rowTracking__materializedRowIdColumnName="city"),
        BROKEN, "has the name of another column", "city",
    ),
    "row tracking that is suspended": (
        lambda h: tracked(h, rowTrackingSuspended="true"), ATTENTION, "enabled and suspended", "= true",
    ),
    "a file without row ids": (
        lambda h: tracked(h, rows(h, "a.parquet")), BROKEN, "1 live file has no row ids", "a.parquet",
    ),
    "two files with one row id": (
        lambda h: tracked(h, rows(h, "a.parquet", **IDS), rows(h, "b.parquet", **{**IDS, "baseRowId": 2})),
        BROKEN, "1 live file begins with row ids of another file", "b.parquet",
    ),
    "a high-water mark that is too low": (
        lambda h: tracked(h, rows(h, "a.parquet", **IDS), mark=1),
        BROKEN, "below ids in use", "rowIdHighWaterMark 1; the highest id is 2",
    ),
    "no high-water mark": (
        lambda h: tracked(h, rows(h, "a.parquet", **IDS), mark=None), BROKEN, "below ids in use", "is not recorded",
    ),
    "a clustering column that is not there": (
        lambda h: clustered(h, by(["day"])), ATTENTION, "Clustering columns that are missing", '["day"]',
    ),
    "a clustering column without bounds": (
        lambda h: clustered(h, by(["v"])), ATTENTION, "Clustering columns that are missing", "v: array<long>",
    ),
    "clustering columns that are none": (
        lambda h: clustered(h, {}), ATTENTION, "Clustering columns that are missing", "{}",
    ),
    "a clustered table with partitions": (
        lambda h: clustered(h, by(["id"]), ("city",), **COUNTED), ATTENTION, "clustered and partitioned", "city",
    ),
    "a file without statistics of a clustering column": (
        lambda h: clustered(h, by(["id"], ["s", "a"]), **COUNTED),
        ATTENTION, "1 live file lacks statistics of a clustering column", "a.parquet",
    ),
    "an enablement that is not recorded": (
        timed, ATTENTION, "enablement of in-commit timestamps is wrong", "commit v0 has no in-commit timestamp",
    ),
    "an enablement without its time": (
        lambda h: timed(h, **{VERSION: "1"}), ATTENTION, "enablement of in-commit timestamps", f"{TIME} = None",
    ),
    "an enablement of another time": (
        lambda h: timed(h, **{VERSION: "1", TIME: "5"}),
        ATTENTION, "enablement of in-commit timestamps is wrong", f"commit v1 has {FIRST}",
    ),
    "an enablement after the latest version": (
        lambda h: timed(h, **{VERSION: "7", TIME: str(FIRST)}),
        ATTENTION, "enablement of in-commit timestamps is wrong", "the latest version is 2",
    ),
    "a table of a catalog without in-commit timestamps": (
        lambda h: managed(h, first={"txnId": "a"}), ATTENTION, "in-commit timestamps are off", "file times",
    ),
    "a table of a catalog without a txnId": (
        lambda h: managed(h, "inCommitTimestamp", first={"inCommitTimestamp": FIRST}, enableInCommitTimestamps="true"),
        NOTE, "1 commit has no txnId", "v0",
    ),
    "an undeclared geo column": (
        lambda h: h.create({"id": "long", "g": "geometry(OGC:CRS84)"}),
        BROKEN, "used and not declared: geospatial", "column g",
    ),
    "a V2 checkpoint without its metadata": (
        with_v2_checkpoint, ATTENTION, "1 V2 checkpoint does not describe", "0001.checkpoint.80a083e8",
    ),
    "a V2 checkpoint with metadata of another version": (
        lambda h: with_v2_checkpoint(h, 9), ATTENTION, "1 V2 checkpoint does not describe", "0001.checkpoint.80a083e8",
    ),
    "a V2 checkpoint that is described twice": (
        lambda h: with_v2_checkpoint(h, 1, 1), ATTENTION, "1 V2 checkpoint does not describe", "0001.checkpoint.80a08",
    ),
    "a sidecar of another size": (
        lambda h: with_v2_checkpoint(h, 1, size=7), ATTENTION, "1 sidecar has another size", "s.parquet has",
    ),
    "compatibility without mapped columns": (
        lambda h: compatible(h, 2, columnMapping__mode="none"), ATTENTION, "1 rule of icebergCompatV2", "not mapped",
    ),
    "two versions of compatibility": (
        lambda h: compatible(h, 2, others=("icebergCompatV1",), enableIcebergCompatV1="true"),
        ATTENTION, "1 rule of icebergCompatV2", "V1 is active too",
    ),
    "the first version with deletion vectors": (
        lambda h: compatible(h, 1, others=("deletionVectors",)), ATTENTION, "1 rule of icebergCompatV1", "deletion",
    ),
    "the second version with deletion vectors": (
        lambda h: compatible(h, 2, others=("deletionVectors",), enableDeletionVectors="true"),
        ATTENTION, "1 rule of icebergCompatV2", "deletion vectors are enabled",
    ),
    "the third version without row ids": (
        lambda h: compatible(h, 3), ATTENTION, "1 rule of icebergCompatV3", "rows are not tracked",
    ),
    "a list in the first version": (
        lambda h: compatible(h, 1, mapped("l", 1, LIST)), ATTENTION, "1 rule of icebergCompatV1", "l is array<long>",
    ),
    "a type that Iceberg has not": (
        lambda h: compatible(h, 2, mapped("l", 1, "void")), ATTENTION, "1 rule of icebergCompatV2", "l is void",
    ),
    "an element without an id": (
        lambda h: compatible(h, 2, mapped("l", 1, LIST)), ATTENTION, "1 rule of icebergCompatV2", "l.element has no id",
    ),
    "an id of elements above the highest": (
        lambda h: compatible(h, 2, mapped("l", 1, LIST, **nested_ids(12))),
        ATTENTION, "maxColumnId is lower than an id in use", "9, and the highest id is 12",
    ),
    "an id of elements that is a column's": (
        lambda h: compatible(h, 2, mapped("l", 1, LIST, **nested_ids(1))), BROKEN, "shares its mapping id", "l (id 1)",
    ),
    "a type change that Iceberg has not": (
        lambda h: compatible(h, 2, mapped("x", 1, "double", **WIDENED), others=("typeWidening",)),
        ATTENTION, "1 rule of icebergCompatV2", "x was changed from integer to double",
    ),
}  # fmt: skip


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_trouble_of_a_feature_is_found(history: DeltaHistory, trouble: str) -> None:
    tell, severity, claim, evidence = TROUBLES[trouble]
    tell(history)
    one_finding(diagnosis(history), severity, claim, evidence)


SOUND: dict[str, Tell] = {
    "row tracking": lambda h: tracked(
        h, rows(h, "a.parquet", **IDS), rows(h, "b.parquet", **{**IDS, "baseRowId": 3}), mark=5
    ),
    "clustering by paths": lambda h: clustered(h, by(["id"]), **COUNTED),
    "clustering by names": lambda h: clustered(h, by("id"), **COUNTED),
    "times inside commits": lambda h: timed(h, **{VERSION: "1", TIME: str(FIRST)}),
    "a V2 checkpoint": lambda h: with_v2_checkpoint(h, 1),
    "a widened column": lambda h: widened(h, "integer", "long"),
    "compatibility with Iceberg": lambda h: compatible(h, 2, mapped("l", 1, LIST, **nested_ids(5))),
}  # fmt: skip


@pytest.mark.parametrize("tell", SOUND.values(), ids=SOUND)
def test_a_sound_table_with_a_feature_has_no_trouble(history: DeltaHistory, tell: Tell) -> None:
    tell(history)
    assert [f for f in diagnosis(history) if f.severity is not NOTE] == []
