"""Damaged and hostile tables that are shared: each harms only itself, no answer is 5xx, none names a place."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from lakeview.sharing.server.app import application
from tests.builders.actions import add, cdc, metadata, protocol, remove, schema_string
from tests.builders.feeds import FED, feed, ids_file, with_vectors
from tests.builders.history import DeltaHistory, log_name
from tests.server.conftest import Api
from tests.server.shared_lake import TABLE
from tests.server.test_queries import share

DELTA = {"delta-sharing-capabilities": "responseformat=delta;readerfeatures=deletionvectors,columnmapping"}
HINTS = {"predicateHints": ["id > 1", "id = 7 OR id IS NULL", "city = 'x'"], "limitHint": 3}


def nested(depth: int) -> Any:
    """A struct within a struct within ..."""
    type_: Any = "long"
    for _ in range(depth):
        type_ = {"type": "struct", "fields": [{"name": "x", "type": type_, "nullable": True, "metadata": {}}]}
    return type_


def deep_schema(depth: int) -> str:
    """Structs within structs, deeper than a JSON writer goes."""
    start = '{"type":"struct","fields":[{"name":"x","nullable":true,"metadata":{},"type":'
    return start * depth + '"long"' + "}]}" * depth


def changes_of(*actions: dict[str, Any]) -> Callable[[DeltaHistory], object]:
    """A table that records changes, then one commit of these actions."""
    return lambda history: feed(history, {"id": "long", "city": "string"}).commit(*actions)


def raw(data: bytes) -> Callable[[DeltaHistory], object]:
    """A sound file, then a commit of these bytes."""

    def build(history: DeltaHistory) -> object:
        feed(history)
        return history.commit(ids_file(history, "a.parquet", 1)).raw_commit(data)

    return build


def schema(text: str) -> Callable[[DeltaHistory], object]:
    """A table with this schemaString and one file."""
    return lambda history: history.commit(protocol(1, 4), metadata(schema=text, properties=dict(FED))).commit(
        add("a.parquet", stats={"numRecords": 3, "minValues": {"id": 1}, "maxValues": {"id": 9}})
    )


def vector(**changed: Any) -> Callable[[DeltaHistory], object]:
    """A file whose deletion vector's descriptor is odd."""
    descriptor = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1, "sizeInBytes": 40,
             "cardinality": 2, **changed}  # fmt: skip
    return lambda history: with_vectors(history).commit(add("b.parquet", deletionVector=descriptor, records=5))


def dropped(name: str) -> Callable[[DeltaHistory], object]:
    """A sound table, one file of its log taken away."""

    def build(history: DeltaHistory) -> object:
        feed(history)
        for i in range(3):
            history.commit(ids_file(history, f"{i}.parquet", i))
        return history.remove(name)

    return build


def checkpoint(data: bytes) -> Callable[[DeltaHistory], object]:
    """A table whose only base is a checkpoint of these bytes."""

    def build(history: DeltaHistory) -> object:
        feed(history)
        history.commit(ids_file(history, "a.parquet", 1))
        history.write(log_name(1, "checkpoint.parquet"), data).without(0)
        return history.commit(ids_file(history, "b.parquet", 2))

    return build


def stats(value: Any) -> Callable[[DeltaHistory], object]:
    """A file with these statistics."""
    return changes_of(add("a.parquet", stats=value), add("b.parquet", stats={"numRecords": 1, "maxValues": {"id": 5}}))


HUGE = "9" * 400
DAMAGES: dict[str, Callable[[DeltaHistory], object]] = {
    "a commit that is no JSON": raw(b'{"add": nonsense\n'),
    "a commit cut short": raw(b'{"add":{"path":"x.par'),
    "a commit of zeros": raw(bytes(5000)),
    "a commit that is no UTF-8": raw(b'{"add":{"path":"\xff\xfe"}}\n'),
    "a commit of nested lists": raw(b"[" * 200_000),
    "a commit of nested objects": raw(b'{"add":' * 50_000),
    "a commit with a number beyond measure": raw(b'{"add":{"path":"a","size":' + b"9" * 5000 + b"}}\n"),
    "an action of another type": raw(b'{"add":[1]}\n{"remove":7}\n{"metaData":"x"}\n'),
    "an add without a path": changes_of({"add": {"size": 1, "dataChange": True}}),
    "a negative size": changes_of(add("a.parquet", size=-5)),
    "times beyond the calendar": changes_of({**add("a.parquet"), "commitInfo": {"timestamp": 2**62}}),
    "in-commit times beyond the calendar": lambda h: h.commit(
        protocol(1, 7, writerFeatures=["inCommitTimestamp", "changeDataFeed"]),
        metadata({"id": "long"}, properties={**FED, "delta.enableInCommitTimestamps": "true"}),
        {"commitInfo": {"inCommitTimestamp": 2**62}},
    ),
    "no protocol": lambda h: h.commit(metadata({"id": "long"})).commit(add("a.parquet")),
    "no metadata": lambda h: h.commit(protocol()).commit(add("a.parquet")),
    "a version that is missing": dropped(log_name(1)),
    "the first version missing": dropped(log_name(0)),
    "a checkpoint that is no Parquet": checkpoint(b"PAR1 nonsense"),
    "an empty checkpoint": checkpoint(b""),
    "a protocol of the future": lambda h: h.commit(protocol(99, 99), metadata()),
    "a feature of the future": lambda h: h.commit(
        protocol(3, 7, readerFeatures=["mindReading"], writerFeatures=["mindReading"]), metadata()
    ),
    "a table that a catalog manages": lambda h: h.commit(
        protocol(3, 7, readerFeatures=["catalogManaged"], writerFeatures=["catalogManaged"]), metadata()
    ),
    "rows in ORC files": lambda h: h.commit(protocol(), metadata(provider="orc")).commit(add("a.orc")),
    "a schema that is no JSON": schema("{"),
    "a schema that is a list": schema("[1,2]"),
    "a schema of an unknown type": schema(schema_string({"id": "quaternion"})),
    "a schema of a decimal beyond measure": schema(schema_string({"id": f"decimal({HUGE},2)"})),
    "a schema deeper than can be walked": schema(deep_schema(3000)),
    "a schema as deep as can be": schema(schema_string({"id": nested(90)})),
    "columns that differ in case": schema(schema_string({"id": "long", "ID": "string", "Id": "date"})),
    "columns with odd names": schema(schema_string({"": "long", "a.b": "long", "`": "long", "\u0000": "string"})),
    "a column twice": schema(
        json.dumps({"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}] * 2})
    ),
    "a partition column that is none": lambda h: h.commit(
        protocol(), metadata({"id": "long"}, partition_by=("nothing",))
    ).commit(add("a.parquet")),
    "partition values that do not fit": lambda h: h.commit(
        protocol(), metadata({"id": "long", "day": "date"}, partition_by=("day",))
    ).commit(add("a.parquet", partition={"day": "soon"}), add("b.parquet", partition={})),
    "partition values that are numbers": lambda h: h.commit(
        protocol(), metadata({"id": "long", "day": "date"}, partition_by=("day",))
    ).commit(add("a.parquet", partition={"day": 7})),
    "statistics that are no JSON": stats("{nonsense"),
    "statistics that are a list": stats("[1]"),
    "statistics of other types": stats({"numRecords": "many", "minValues": 3, "maxValues": [1], "nullCount": "x"}),
    "bounds of other types": stats({"numRecords": 5, "minValues": {"id": "a"}, "maxValues": {"id": {"x": 1}}}),
    "bounds beyond measure": stats(f'{{"numRecords":{HUGE},"minValues":{{"id":-{HUGE}}},"maxValues":{{"id":1e999}}}}'),
    "counts below zero": stats({"numRecords": -5, "nullCount": {"id": -1}}),
    "statistics of a megabyte": stats({"numRecords": 1, "maxValues": {"city": "x" * (1 << 20)}}),
    "statistics deeper than can be walked": stats('{"minValues":' * 3000 + "1" + "}" * 3000),
    "a path with a scheme": changes_of(add("file:///etc/passwd")),
    "a path that climbs": changes_of(add("../../secret.parquet")),
    "an encoded path that climbs": changes_of(add("%2e%2e/%2e%2e/secret.parquet")),
    "a path of the log": changes_of(add("_delta_log/00000000000000000000.json")),
    "a path with a zero": changes_of(add("a%00b.parquet")),
    "a path of a megabyte": changes_of(add("a" * (1 << 20))),
    "an empty path": changes_of(add("")),
    "half a character in a path": raw(
        b'{"add":{"path":"\\ud800.parquet","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}\n'
    ),
    "half a character, encoded": changes_of(add("%ED%A0%80.parquet")),
    "a path that is no UTF-8": changes_of(add("%FF%FE.parquet")),
    "a file added twice": changes_of(add("a.parquet"), add("a.parquet")),
    "a change file of another type": changes_of({"cdc": {"path": 7}}),
    "a change file outside the table": changes_of(cdc(add("../x.parquet"))),
    "a remove of nothing": changes_of(remove("never.parquet")),
    "tags that are none": changes_of(add("a.parquet", tags={"x": {"y": 1}})),
    "properties that are none": lambda h: h.commit(protocol(), metadata(configuration={"delta.x": {"y": 1}})),
    "a vector of an unknown kind": vector(storageType="z"),
    "a vector whose path is none": vector(pathOrInlineDv="!"),
    "a vector outside the table": vector(storageType="p", pathOrInlineDv="file:///etc/passwd"),
    "a vector of another type": vector(offset="x"),
    "a vector beyond measure": vector(cardinality=2**63 - 1, sizeInBytes=2**31 - 1),
    "a vector below zero": vector(cardinality=-7, sizeInBytes=-1, offset=-1),
    "a vector that is empty": lambda h: with_vectors(h).commit(add("b.parquet", deletionVector={})),
    "a log that is a file": lambda h: h.write("_delta_log", b"in the way"),
    "a commit that is a folder": lambda h: h.create().write(f"{log_name(1)}/x", b""),
    "a log without commits": lambda h: h.write("_delta_log/readme.txt", b""),
    "a commit of the last version": lambda h: feed(h).raw_commit(b'{"commitInfo":{}}\n', 2**63 - 1),
}


def answers_about(client: TestClient, token: str, table: str) -> list[Any]:
    """Answers to everything that can be asked about a table."""
    path = "/delta-sharing/" + TABLE.format(table)
    head = {"Authorization": f"Bearer {token}"}
    statuses = []
    for headers in (head, {**head, **DELTA}):
        statuses += [
            client.head(path, headers=headers),
            client.get(f"{path}/version", headers=headers),
            client.get(f"{path}/version", params={"startingTimestamp": "2026-03-01T08:05:00Z"}, headers=headers),
            client.get(f"{path}/metadata", headers=headers),
            client.get(f"{path}/changes", params={"startingVersion": 0}, headers=headers),
            client.get(f"{path}/changes", params={"startingTimestamp": "2020-01-01T00:00:00Z"}, headers=headers),
        ]
        for body in ({}, HINTS, {"version": 0}, {"startingVersion": 0}, {"timestamp": "2026-03-01T08:05:00Z"}):
            statuses.append(client.post(f"{path}/query", json=body, headers=headers))
    return statuses


@pytest.mark.parametrize("name", DAMAGES)
def test_a_table_with(name: str, api: Api, tmp_path: Path) -> None:
    DAMAGES[name](DeltaHistory(tmp_path / "hostile"))
    DeltaHistory(tmp_path / "sound").create().commit(add("a.parquet"))
    share(api, tmp_path, "hostile", "sound")
    with TestClient(application(api.hub), raise_server_exceptions=False, base_url="http://127.0.0.1:8080") as client:
        for answer in answers_about(client, api.token, "hostile"):
            assert answer.status_code in (200, 400), (answer.request.url, answer.request.content, answer.text[:300])
            text = answer.text.replace(answer.request.url.path, "")
            assert str(tmp_path) not in text
            assert "Traceback" not in text
            if answer.status_code == 400 and answer.request.method != "HEAD":
                assert {"errorCode", "message"} == answer.json().keys()
            if answer.status_code == 200 and "ndjson" in answer.headers.get("content-type", ""):
                for line in answer.text.splitlines():
                    assert len(json.loads(line)) == 1
            for url in [f["file"]["url"] for f in map(json.loads, files(answer))]:
                if len(url) < 60_000:  # clients refuse longer ones themselves
                    assert client.get(url).status_code in (403, 404)
    assert len(api.files("sound")) == 1


def files(answer: Any) -> list[str]:
    """The lines of files in parquet format, the first few."""
    return [line for line in answer.text.splitlines() if line.startswith('{"file":{"url"')][:3]


@pytest.mark.skipif(os.geteuid() == 0, reason="a superuser reads whatever the mode says")
def test_a_log_that_may_not_be_read_is_told(api: Api, tmp_path: Path) -> None:
    DeltaHistory(tmp_path / "closed").create()
    (tmp_path / "closed" / "_delta_log").chmod(0)
    share(api, tmp_path, "closed")
    try:
        assert api.refused("closed")[0] == 400
    finally:
        (tmp_path / "closed" / "_delta_log").chmod(0o700)
