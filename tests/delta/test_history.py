"""What happened: commits with their counts, the life of every file, schemas, readable versions."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.log.actions import Metadata
from lakeview.delta.log.definition_cache import DefinitionCache
from lakeview.model.errors import AccessDeniedError, CorruptTableError, UnsupportedTableError
from tests.builders.actions import add, info, metadata, protocol, remove, struct
from tests.builders.history import DeltaHistory, log_name, parquet_actions
from tests.builders.opening import open_delta_table

COUNTS = ["files_added", "files_removed", "bytes_added", "bytes_removed", "records_added", "records_removed"]


def counts(table: lv.Table, version: int) -> tuple[int | None, ...]:
    row = table.history().filter(pl.col("version") == version).row(0, named=True)
    return tuple(row[name] for name in COUNTS)


def story(history: DeltaHistory) -> DeltaHistory:
    """0 create, 1 two files, 2 one of them replaced, 3 a file of unknown rows, 4 it goes, 5 no file actions."""
    history.create()
    history.write("a", b"").write("b", b"").write("c", b"").write("d", b"")
    history.commit(add("a", size=10, records=1), add("b", size=20, records=2))
    history.commit(remove("a"), add("c", size=30, records=3))
    history.commit(add("d", size=40))
    history.commit(remove("d", size=41))
    return history.commit(info(operation="NOTHING"))


def test_what_a_commit_removed_is_counted_by_what_was_added(history: DeltaHistory) -> None:
    table = lv.open_table(story(history).address)
    assert counts(table, 0) == (0, 0, 0, 0, 0, 0)
    assert counts(table, 1) == (2, 0, 30, 0, 3, 0)
    assert counts(table, 2) == (1, 1, 30, 10, 3, 1)
    assert counts(table, 3) == (1, 0, 40, 0, None, 0)
    assert counts(table, 4) == (0, 1, 0, 41, 0, None)
    assert counts(table, 5) == (0, 0, 0, 0, 0, 0)
    assert table.history()["data_change"].to_list() == [False, True, True, True, True, False]


def test_what_the_log_no_longer_tells_is_unknown_and_what_a_checkpoint_tells_is_known(history: DeltaHistory) -> None:
    story(history).checkpoint(1).without(0, 1)
    table = lv.open_table(history.address)
    assert table.history()["version"].to_list() == [5, 4, 3, 2]
    assert counts(table, 2) == (1, 1, 30, 10, 3, 1), "the checkpoint knows what a was"
    history.remove(log_name(1, "checkpoint.parquet"))
    assert counts(lv.open_table(history.address), 2) == (1, 1, 30, None, 3, None)


def test_a_version_has_its_schema_whatever_of_the_log_was_read_before(history: DeltaHistory) -> None:
    history.create().write(log_name(1), b'{"add": 3}\n')
    table = lv.open_table(history.address)
    assert table.history()["version"].to_list() == [1, 0], "the history notes that commit 1 is corrupt"
    assert table.snapshot(1).schema == table.snapshot(0).schema
    with pytest.raises(CorruptTableError, match="line 1"):
        _ = table.snapshot(1).files


def test_definitions_of_commits_are_cached_up_to_a_size_and_read_again_beyond_it(history: DeltaHistory) -> None:
    many = DefinitionCache()
    many.put({version: (None, Metadata(schema_string="x" * (6 << 20))) for version in range(5)} | {5: (None, None)})
    assert list(many.of(range(6))) == [5, 3, 4], "two of 6 MiB in 16; without an action they cost nothing"
    history.create()
    for version in range(1, 5):
        history.commit(metadata(configuration={"n": str(version) * (6 << 20)}))
    table = lv.open_table(history.address)
    assert [table.snapshot(version).properties["n"][0] for version in (4, 1, 3, 2, 1)] == ["4", "1", "3", "2", "1"]


def test_a_part_that_is_unknown_makes_the_sum_unknown(history: DeltaHistory) -> None:
    history.create().commit(add("a", records=1), add("b")).commit(remove("a"), remove("b"), remove("never"))
    table = lv.open_table(history.address)
    assert counts(table, 1) == (2, 0, 200, 0, None, 0)
    assert counts(table, 2) == (0, 3, 0, None, 0, None)


def test_history_is_limited_to_the_newest(history: DeltaHistory) -> None:
    table = lv.open_table(story(history).address)
    assert table.history(2)["version"].to_list() == [5, 4]
    assert table.history(0).height == 0
    assert table.history(99).height == 6


COMMITS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("as Spark says it",
     {"timestamp": 1_700_000_000_000, "userName": "ada", "operation": "WRITE", "clientVersion": "4.0",
      "operationParameters": {"mode": "Append", "partitionBy": "[]"}, "operationMetrics": {"numFiles": "1"},
      "engineInfo": "Spark/3.5"},
     {"recorded_timestamp": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), "user": "ada", "operation": "WRITE",
      "parameters": '{"mode":"Append","partitionBy":"[]"}', "metrics": '{"numFiles":"1"}', "engine": "Spark/3.5",
      "client_version": "4.0"}),
    ("with a user id only", {"userId": "100121"}, {"user": "100121"}),
    ("with nothing", {}, {"user": None, "operation": None, "parameters": None, "recorded_timestamp": None}),
    ("with numbers for words", {"operation": 3, "userName": 7}, {"operation": "3", "user": "7"}),
    ("with a time as text", {"timestamp": "1700000000000"},
     {"recorded_timestamp": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)}),
    ("with a time in words", {"timestamp": "yesterday"}, {"recorded_timestamp": None}),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), [s[1:] for s in COMMITS], ids=[f"a commit {s[0]}" for s in COMMITS])
def test_provenance_is_shown_as_recorded(history: DeltaHistory, body: dict[str, Any], expected: dict[str, Any]) -> None:
    history.commit(info(**body), protocol(), metadata())
    row = lv.open_table(history.address).history().row(0, named=True)
    assert {name: row[name] for name in expected} == expected
    assert (row["version"], row["position"], row["parent"]) == (0, 0, None)
    assert (row["schema_changed"], row["protocol_changed"]) == (True, True)


@pytest.mark.parametrize(("field", "metrics"), [("other", '{"n":1}'), ("operationMetrics", None)])
def test_text_that_is_no_utf8_hides_only_the_field_of_commit_info_that_has_it(
    history: DeltaHistory, field: str, metrics: str | None
) -> None:
    fields = b'"operation":"WRITE","operationMetrics":{"n":1},"' + field.encode() + b'":{"k":"\xff"}'
    history.create().raw_commit(b'{"commitInfo":{' + fields + b"}}\n")
    row = lv.open_table(history.address).history().row(0, named=True)
    assert (row["operation"], row["metrics"]) == ("WRITE", metrics)


def test_of_a_corrupt_commit_nothing_is_known_and_its_flags_are_false(history: DeltaHistory) -> None:
    history.create().raw_commit(b'{"add":{"path"').commit(add("a", size=10, records=1))
    newest, corrupt = lv.open_table(history.address).history().head(2).rows(named=True)
    assert (newest["version"], newest["files_added"], newest["bytes_added"], newest["records_added"]) == (2, 1, 10, 1)
    flags = [corrupt[name] for name in ("schema_changed", "protocol_changed", "data_change")]
    assert flags == [False, False, False]
    assert [corrupt[name] for name in ("operation", "files_added", "bytes_added", "records_added")] == [None] * 4


def test_lifetimes_tell_each_stay(history: DeltaHistory) -> None:
    story(history).commit(add("./a", size=11, records=5)).commit(remove("a%20b")).commit(add("c", size=31, records=4))
    lifetimes = lv.open_table(history.address).lifetimes().drop("deletion_vector")
    assert sorted(lifetimes.rows(), key=str) == sorted(
        [
            ("a", 1, 2, 10, 1),
            ("b", 1, None, 20, 2),
            ("c", 2, 8, 30, 3),
            ("d", 3, 4, 40, None),
            ("./a", 6, None, 11, 5),
            ("c", 8, None, 31, 4),
        ],
        key=str,
    )


def test_lifetimes_of_files_from_before_the_log_begin_nowhere(history: DeltaHistory) -> None:
    story(history).checkpoint(2).without(0, 1, 2)
    lifetimes = lv.open_table(history.address).lifetimes().select("path", "added", "removed", "records")
    assert sorted(lifetimes.rows(), key=str) == [("b", None, None, 2), ("c", None, None, 3), ("d", 3, 4, None)]


def test_schemas_are_told_where_they_changed(history: DeltaHistory) -> None:
    history.create({"a": "long"}).commit(metadata({"a": "long"}, properties={"k": "v"}))
    history.commit(metadata({"a": "long", "b": "string"})).commit(metadata({"a": "long"}))
    table = lv.open_table(history.address)
    schemas = table.schemas()
    assert schemas["version"].to_list() == [0, 2, 3]
    assert [len(json.loads(text)["fields"]) for text in schemas["schema"]] == [1, 2, 1]
    assert schemas["timestamp"].is_sorted()
    history.checkpoint(2).without(0, 1, 2)
    assert lv.open_table(history.address).schemas()["version"].to_list() == [2, 3]


def test_the_actions_of_a_commit_are_shown_as_recorded(history: DeltaHistory) -> None:
    text = '{"commitInfo":{"operation":"\u00dc"}}\n{"add":{"path":"a%20b","size": 1.0e0,"x":[1,2]}}\n'
    history.create().raw_commit(text.replace("1.0e0", "1").encode()).commit({"wish": {"path": 3}}, {"txn": None})
    table = lv.open_table(history.address)
    assert table.commit(1).rows() == [
        ("commitInfo", None, '{"operation":"\u00dc"}'),
        ("add", "a%20b", '{"path":"a%20b","size": 1,"x":[1,2]}'),
    ]
    assert table.commit(2).rows() == [("wish", None, '{"path": 3}'), ("txn", None, "null")]


REASONS = "version", "readable", "reason"


def readable(table: lv.Table) -> dict[int, str | None]:
    versions = table.versions()
    assert (versions["readable"] == versions["reason"].is_null()).all()
    return dict(versions.select("version", "reason").iter_rows())


def test_every_reason_why_a_version_cannot_be_read(history: DeltaHistory) -> None:
    story(history)
    assert set(readable(lv.open_table(history.address)).values()) == {None}
    history.remove("a")
    reasons = readable(lv.open_table(history.address))
    assert {v for v, reason in reasons.items() if reason} == {1}
    assert reasons[1] == "1 of its data files is missing from the store"
    history.remove("b")
    reasons = readable(lv.open_table(history.address))
    assert reasons[1] == "2 of its data files are missing from the store"
    assert reasons[5] == "1 of its data files is missing from the store"
    history.write("a", b"").write("b", b"").without(3)
    reasons = readable(lv.open_table(history.address))
    assert {reasons[v] for v in (4, 5)} == {"commit 3 is missing from the log"}
    assert reasons[2] is None
    history.checkpoint(2).without(0)
    reasons = readable(lv.open_table(history.address))
    assert reasons[1] == "the log starts at version 1, and no checkpoint lies at or below it"
    assert reasons[2] is None


def test_versions_are_told_without_a_look_at_the_files(history: DeltaHistory) -> None:
    story(history).checkpoint(2).without(0, 1, 2, 4)
    table = open_delta_table(history.address)
    listings = table.storage.requests["list"]
    versions = table.versions(look=False)
    assert table.storage.requests["list"] == listings
    looked = table.versions()
    assert table.storage.requests["list"] == listings + 1
    assert versions["version"].to_list() == [5, 3, 2]
    assert versions.schema == looked.schema
    assert versions.select("version", "timestamp").equals(looked.select("version", "timestamp"))
    assert versions.select("readable", "reason").null_count().row(0) == (3, 3)


@pytest.mark.parametrize("version", range(6))
def test_what_is_said_to_be_readable_is_and_the_rest_is_not(history: DeltaHistory, version: int) -> None:
    story(history).checkpoint(2).without(1, 4)
    history.write(log_name(5, "checkpoint.parquet"), parquet_actions(history.reconciled(5)))
    table = lv.open_table(history.address)
    reasons = readable(table)
    if version in (1, 4):
        assert reasons.get(version) is None
        assert version not in reasons
        return
    if reasons[version] is None:
        assert table.snapshot(version).num_files >= 0
    else:
        with pytest.raises(CorruptTableError):
            table.snapshot(version)


def test_a_base_that_cannot_be_read_is_a_reason(history: DeltaHistory) -> None:
    story(history).write(log_name(2, "checkpoint.parquet"), b"garbage").without(0, 1)
    table = lv.open_table(history.address)
    reasons = readable(table)
    assert all(reason is not None and "checkpoint 00000000000000000002" in reason for reason in reasons.values())
    assert table.history().height == 4
    assert table.schemas().height == 0


def test_files_outside_the_table_are_taken_to_be_there_where_the_roots_allow_them(
    history: DeltaHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.create().commit(add("/elsewhere/f"), add("/elsewhere/g")).commit(remove("/elsewhere/g"), add("s3://b/f"))
    refused = "2 of its data files lie outside the table and the allowed roots"
    assert readable(lv.open_table(history.address)) == {0: None, 1: refused, 2: refused}
    with pytest.raises(AccessDeniedError, match="outside the table and the allowed roots"):
        lv.open_table(history.address).scan(1).collect()
    monkeypatch.setenv("LAKEVIEW_ROOTS", f"{history.address},/elsewhere")
    one = "1 of its data files lies outside the table and the allowed roots"
    assert readable(lv.open_table(history.address)) == {0: None, 1: None, 2: one}


def test_versions_that_a_scan_refuses_by_what_the_log_shows_are_not_readable(history: DeltaHistory) -> None:
    changed = {"delta.typeChanges": [{"fromType": "string", "toType": "long"}]}
    widened = struct(a="long")
    widened["fields"][0]["metadata"] = changed
    history.create({"a": "long"}).commit(metadata(schema=json.dumps(widened))).commit(metadata({"a": "long"}))
    history.commit(metadata({"a": "long"}, provider="csv"))
    table = lv.open_table(history.address)
    reasons = readable(table)
    assert (reasons[0], reasons[2]) == (None, None)
    for version in (1, 3):
        with pytest.raises(UnsupportedTableError) as caught:
            table.scan(version)
        assert caught.value.message.replace(history.address, "it") == reasons[version]


GAPS: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
    ("commits are missing", (5,), (4, 5)),
    ("commits up to the checkpoint are missing", (6,), (4, 5, 6)),
    ("an older checkpoint is left by a partial cleanup", (2, 6), (0, 1, 2, 3, 4, 5, 6)),
    ("two checkpoints bridge two gaps", (2, 4, 6), (0, 1, 2, 4, 6)),
]


@pytest.mark.parametrize(("checkpoints", "missing"), [g[1:] for g in GAPS], ids=[g[0] for g in GAPS])
def test_a_checkpoint_bridges_a_gap_in_the_commits(
    history: DeltaHistory, checkpoints: tuple[int, ...], missing: tuple[int, ...]
) -> None:
    """Each readable version has the live files and the schema that its snapshot has, and is unreadable if one of its
    files is gone."""
    history.create({"a": "long"}).write("late", b"").write("kept", b"").write("early", b"").write("g", b"")
    history.commit(add("early"), add("kept"), add("dead")).commit(remove("dead")).commit(add("g", size=7, records=1))
    history.commit(remove("early"), metadata({"a": "long", "b": "string"}))
    history.commit(add("late", size=8, records=2, stats=None), remove("g")).commit(info(operation="NOTHING"))
    history.commit(add("last")).write("last", b"")
    for version in checkpoints:
        history.checkpoint(version)
    table = open_delta_table(history.without(*missing).address)
    lives, schemas = table.lifetimes(), table.schemas()
    reasons = readable(table)
    sound = [version for version, reason in reasons.items() if reason is None]
    assert {7, *checkpoints} <= set(sound)
    for version in sound:
        there = (pl.col("added").fill_null(-1) <= version) & (pl.col("removed").fill_null(99) > version)
        snapshot = table.snapshot(version)
        assert sorted(lives.filter(there)["path"]) == sorted(snapshot.files["path"]), version
        text = schemas.filter(pl.col("version") <= version)["schema"][-1]
        assert [f["name"] for f in json.loads(text)["fields"]] == snapshot.schema.names
    history.remove("late")
    expected = readable(lv.open_table(history.address))
    assert expected[7] == "1 of its data files is missing from the store"
    statistics = table.lifetimes(["a"])
    assert statistics.drop("statistics").equals(lives)
