"""Version checksum files and log compactions: exact, reconciled, and read by the log doctor."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.checksum import write_checksum
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import CorruptTableError, InvalidRequestError, UnsupportedTableError
from lakeview.model.schema import Schema
from tests.builders.actions import Action, add, cdc, info, metadata, protocol, remove, txn
from tests.builders.history import DeltaHistory, log_name
from tests.builders.opening import open_delta_table
from tests.builders.vectors import relative
from tests.differential.oracles import ORACLES

ORDERS = Schema((Field("id", PrimitiveType("long")),))
ICT = {"delta.enableInCommitTimestamps": "true"}


def figures(folder: Path, version: int) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / log_name(version, "crc")).read_bytes())
    return document


def has_sound_copies(folder: Path) -> bool:
    ids = {f.id for f in open_delta_table(folder).check()}
    return not ids & {"checksum-disagrees", "checksum-unreadable", "log-compaction-not-reconciled"}


# -- checksums


def test_a_checksum_counts_and_defines_the_table(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), ORDERS, properties=ICT)
    assert isinstance(table, DeltaTable)
    table.append(pl.DataFrame({"id": [1, 2]}))
    assert table.write_checksum()
    document = figures(tmp_path, 1)
    commit = json.loads((tmp_path / log_name(1)).read_text().splitlines()[0])["commitInfo"]
    snapshot = table.snapshot()
    assert (document["numFiles"], document["tableSizeBytes"]) == (1, snapshot.size_bytes)
    assert (document["numMetadata"], document["numProtocol"]) == (1, 1)
    assert (document["txnId"], document["inCommitTimestampOpt"]) == (commit["txnId"], commit["inCommitTimestamp"])
    assert document["metadata"]["id"] == snapshot.id
    assert document["protocol"] == {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["inCommitTimestamp"],
    }
    assert has_sound_copies(tmp_path)
    for oracle in ORACLES.values():
        assert sorted(oracle(str(tmp_path), 1)["id"].to_pylist()) == [1, 2]


def test_a_checksum_that_is_there_stays(tmp_path: Path) -> None:
    DeltaHistory(tmp_path).create().write(log_name(0, "crc"), b"another's")
    assert not open_delta_table(tmp_path).write_checksum()
    assert (tmp_path / log_name(0, "crc")).read_bytes() == b"another's"


VECTOR = relative(uuid.UUID(int=1), b"1234", 1)


def counted_history(folder: Path, *actions: Action, before: dict[str, Any] | bytes | None = None) -> DeltaTable:
    """Version 1 with two files of 100 and 200 bytes and a checksum that says 1,000 files more, so that it can be told
    which way a number took; and version 2 with these actions."""
    history = DeltaHistory(folder).create().commit(add("a", size=100), add("b", size=200))
    history.commit(*actions)
    if before is None:
        before = {"numFiles": 1002, "tableSizeBytes": 5300, "metadata": metadata()["metaData"]}
    history.write(log_name(1, "crc"), before if isinstance(before, bytes) else json.dumps(before).encode())
    return open_delta_table(folder)


def test_commits_of_a_vacuum_are_followed_by_a_checksum_and_a_checkpoint(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), ORDERS, properties={"delta.checkpointInterval": "1"})
    assert isinstance(table, DeltaTable)
    assert table.write_checksum()
    for number in (1, 2):
        table.overwrite(pl.DataFrame({"id": [number]}))
    assert table.vacuum(timedelta(0), dry_run=False, allow_short_retention=True).height == 1
    assert table.latest_version == 4
    assert [figures(tmp_path, version)["numFiles"] for version in range(5)] == [0, 1, 1, 1, 1]
    assert all((tmp_path / log_name(version, "checkpoint.parquet")).exists() for version in range(1, 5))


FOLLOWING: dict[str, tuple[list[Action], tuple[int, int]]] = {
    "files added": ([add("c", size=7), add("d", size=8)], (1004, 5315)),
    "a file replaced": ([remove("a", size=100), add("c", size=7)], (1002, 5207)),
    "rows deleted by a vector": ([remove("a", size=100), add("a", size=100, deletionVector=VECTOR)], (1002, 5300)),
    "nothing but provenance": ([info(operation="VACUUM END")], (1002, 5300)),
}


@pytest.mark.parametrize(("actions", "totals"), FOLLOWING.values(), ids=FOLLOWING)
def test_a_checksum_follows_that_of_the_version_before(
    tmp_path: Path, actions: list[Action], totals: tuple[int, int]
) -> None:
    table = counted_history(tmp_path, *actions)
    assert write_checksum(table, is_reconciled=True)
    document = figures(tmp_path, 2)
    assert (document["numFiles"], document["tableSizeBytes"]) == totals


OTHER_TABLE = {"numFiles": 9, "tableSizeBytes": 9, "metadata": {**metadata()["metaData"], "id": "another"}}
UNUSABLE: dict[str, tuple[list[Action], dict[str, Any] | bytes | None]] = {
    "a removed file of unknown size": ([remove("a")], None),
    "no JSON": ([], b"{"),
    "no numbers": ([], {"metadata": metadata()["metaData"]}),
    "another table's": ([], OTHER_TABLE),
    "negative numbers": ([], {"numFiles": -1, "tableSizeBytes": 0, "metadata": metadata()["metaData"]}),
    "fewer files than are removed": (
        [remove("a", size=100)], {"numFiles": 0, "tableSizeBytes": 0, "metadata": metadata()["metaData"]}
    ),
}  # fmt: skip


@pytest.mark.parametrize(("actions", "before"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_checksum_that_cannot_follow_comes_from_a_small_log_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, actions: list[Action], before: dict[str, Any] | bytes | None
) -> None:
    table = counted_history(tmp_path, *actions, before=before)
    monkeypatch.setattr("lakeview.delta.write.checksum.CHEAP_BYTES", 10)
    assert not write_checksum(table, is_reconciled=True)
    assert not (tmp_path / log_name(2, "crc")).exists()
    monkeypatch.undo()
    assert write_checksum(table, is_reconciled=True)
    assert figures(tmp_path, 2)["numFiles"] == table.snapshot().num_files


def test_actions_of_others_are_not_taken_for_reconciled(tmp_path: Path) -> None:
    table = counted_history(tmp_path, add("a", size=100, stats={"numRecords": 1}))
    assert write_checksum(table)
    assert (figures(tmp_path, 2)["numFiles"], figures(tmp_path, 2)["tableSizeBytes"]) == (2, 300)


# -- compactions


def test_a_compaction_holds_what_its_commits_add_up_to(tmp_path: Path) -> None:
    moved = {"domainMetadata": {"domain": "d", "configuration": "1", "removed": False}}
    domain = {"domainMetadata": {"domain": "d", "configuration": "", "removed": True}}
    unknown = add("b c", stats={"numRecords": 2}, fieldOfTomorrow={"x": 1})
    unknown["add"]["path"] = "b%20c"
    history = (
        DeltaHistory(tmp_path).create().commit(add("a"), add("old"), info(operation="WRITE"), txn("app", 1), moved)
    )
    history.commit(remove("a", at=1), add("a", deletionVector=VECTOR), txn("app", 2), metadata(name="new"))
    history.commit(remove(f"file:{tmp_path}/old", at=1), unknown, domain, cdc(add("c")), protocol(1, 3))
    name = open_delta_table(tmp_path).compact_log(1, 3)
    assert name == f"{1:020d}.{3:020d}.compacted.json"
    lines = [json.loads(line) for line in (tmp_path / "_delta_log" / name).read_text().splitlines()]
    assert lines == [
        remove("a", at=1), add("a", deletionVector=VECTOR), txn("app", 2), metadata(name="new"),
        remove(f"file:{tmp_path}/old", at=1), unknown, domain, protocol(1, 3),
    ]  # fmt: skip
    assert has_sound_copies(tmp_path)
    assert open_delta_table(tmp_path).compact_log(1, 3) == name, "again"
    assert open_delta_table(tmp_path).snapshot().num_files == 2


@pytest.mark.parametrize(("start", "end"), [(1, 1), (2, 1), (-1, 1), (1, 9), (0, 2)])
def test_a_range_that_is_not_in_the_log_is_refused(tmp_path: Path, start: int, end: int) -> None:
    DeltaHistory(tmp_path).create().commit(add("a")).commit(add("b")).checkpoint().without(0)
    with pytest.raises(InvalidRequestError, match="cannot be compacted") as caught:
        open_delta_table(tmp_path).compact_log(start, end)
    assert caught.value.kind == "log-compaction-range"


def test_a_commit_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path).create().commit(add("a")).commit(add("b")).checkpoint()
    history.raw_commit(b'{"add": {"path": 5}}\n', version=1)
    with pytest.raises(CorruptTableError, match=r"commit 0{19}1\.json cannot be read at line 1"):
        open_delta_table(tmp_path).compact_log(1, 2)
    assert not list((tmp_path / "_delta_log").glob("*.compacted.json"))


def test_a_log_that_must_not_be_written_is_not_compacted(tmp_path: Path) -> None:
    DeltaHistory(tmp_path).commit(protocol(1, 7, writerFeatures=["timeMachine"]), metadata()).commit(add("a"))
    with pytest.raises(UnsupportedTableError, match="timeMachine"):
        open_delta_table(tmp_path).compact_log(0, 1)
