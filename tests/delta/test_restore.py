"""Earlier versions brought back: the rows, the definition, and nothing that must not go back."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import deltalake
import numpy as np
import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.restore import check_no_vacuum
from lakeview.model.clock import system_clock
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import (
    CommitConflictError,
    ConstraintViolationError,
    DataFileMissingError,
    InvalidRequestError,
    VersionNotFoundError,
)
from lakeview.model.schema import Schema
from lakeview.model.snapshot import milliseconds
from tests.builders.findings import GRAVE
from tests.builders.opening import open_delta_table

SCHEMA = Schema((Field("id", PrimitiveType("long")), Field("name", PrimitiveType("string"))))
ALL = {
    "delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
}  # fmt: skip


def rows(first: int, count: int = 10) -> pl.DataFrame:
    return pl.DataFrame({"id": range(first, first + count), "name": [f"n{i}" for i in range(count)]})


def make_table(address: Path, properties: dict[str, str] | None = None) -> DeltaTable:
    table = lv.create_table(str(address), SCHEMA, properties=properties)
    table.append(rows(0))
    table.append(rows(10))
    return table


@pytest.mark.parametrize("properties", [{}, ALL], ids=["plain", "with everything"])
def test_a_version_comes_back_whatever_happened_since(tmp_path: Path, properties: dict[str, str]) -> None:
    table = make_table(tmp_path, properties)
    before = {version: open_delta_table(table).scan(version).collect().sort("id") for version in (1, 2)}
    table.delete("id % 3 = 1")
    table.update({"name": "'x'"}, "id < 5")
    table.optimize()
    table.add_column("more", PrimitiveType("long"))
    table.append(rows(50).with_columns(more=pl.lit(1, pl.Int64)))
    for version in (2, 1, 2):
        restored = open_delta_table(table).restore(version)
        assert open_delta_table(table).scan().collect().sort("id").equals(before[version])
        assert open_delta_table(table).latest_version == restored
    assert open_delta_table(table).restore(2) is None, "it is that already"
    if not properties:
        query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(tmp_path))).execute("select * from t")
        assert pl.DataFrame(query.read_all()).sort("id").equals(before[2])
    else:
        ids = open_delta_table(table).scan(row_tracking=True).collect()["_row_id"]
        open_delta_table(table).append(rows(70))
        later = open_delta_table(table).scan(row_tracking=True).collect()["_row_id"]
        assert later.n_unique() == later.len() == ids.len() + 10, "ids go on from their mark"
    assert [f for f in open_delta_table(table).check() if f.severity in GRAVE] == []
    assert "violated" not in open_delta_table(table).audit()["verdict"].to_list()


def test_a_moment_comes_back_and_the_commit_says_what_it_did(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    moment = open_delta_table(table).history()["timestamp"][0]
    table.delete()
    table.restore(at=moment + timedelta(milliseconds=0))
    assert open_delta_table(table).snapshot().num_records == 20
    kinds = open_delta_table(table).commit(4).select("kind", "action").iter_rows()
    info = next(json.loads(text) for kind, text in kinds if kind == "commitInfo")
    assert info["operation"] == "RESTORE"
    assert (info["operationMetrics"]["numRestoredFiles"], info["operationMetrics"]["numRemovedFiles"]) == ("2", "0")


def test_a_transaction_that_restores_records_its_target_if_it_does_no_more(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    with open_delta_table(table).transaction("RESTORE") as txn:
        txn.restore(1)
    with open_delta_table(table).transaction("RESTORE") as txn:
        txn.restore(2)
        txn.append(rows(90))
    table.refresh()
    parameters = [json.loads(table.commit(version)["action"][0])["operationParameters"] for version in (3, 4)]
    assert parameters == [{"version": 1, "timestamp": None}, {}]
    verdicts = table.audit().filter(pl.col("law") == "restore-equals-target")
    assert verdicts["verdict"].to_list() == ["proven", "unknowable"]


def test_a_version_may_be_an_integer_of_numpy(tmp_path: Path) -> None:
    table = lv.create_table(tmp_path, {"id": pl.Int64})
    table.append(pl.DataFrame({"id": [1]}))
    assert table.restore(np.int64(0)) == 2  # type: ignore[arg-type]  # on purpose
    assert table.scan().collect().is_empty()


def test_a_restore_to_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="neither a version nor a moment"):
        make_table(tmp_path).restore()


def test_what_is_gone_is_named_and_nothing_changes(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    (first, _) = [tmp_path / path for path in open_delta_table(table).snapshot().files["path"]]
    table.overwrite(rows(90))
    first.unlink()
    with pytest.raises(DataFileMissingError, match=r"1 of 2 files of that version are not in the store any more"):
        open_delta_table(table).restore(2)
    with pytest.raises(VersionNotFoundError):
        open_delta_table(table).restore(77)
    assert open_delta_table(table).latest_version == 3


def test_a_restore_collides_with_whatever_came_in_between(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    mine = open_delta_table(table).transaction("RESTORE")
    mine.restore(1)
    table.append(rows(30))
    with pytest.raises(CommitConflictError), mine:
        pass
    assert open_delta_table(table).snapshot().num_records == 30


def test_a_restore_collides_with_a_property_that_it_would_have_taken_back(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    mine = open_delta_table(table).transaction("RESTORE")
    mine.restore(1)
    table.set_properties({"delta.checkpointPolicy": "classic"})
    with pytest.raises(CommitConflictError, match="changed the table's metadata"), mine:
        pass


def test_rows_of_an_append_only_table_are_not_taken_back(tmp_path: Path) -> None:
    table = make_table(tmp_path, {"delta.appendOnly": "true"})
    with pytest.raises(ConstraintViolationError, match="append-only"):
        table.restore(1)


def test_nothing_is_restored_while_a_vacuum_deletes(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    table.delete("id < 10")
    begin = {"commitInfo": {"operation": "VACUUM START", "timestamp": milliseconds(system_clock()), "userName": "ann"}}
    path = tmp_path / "_delta_log" / f"{table.latest_version + 1:020}.json"
    path.write_text(json.dumps(begin))
    for _ in range(2):
        with pytest.raises(CommitConflictError, match="a vacuum, version 4, is deleting files") as caught:
            open_delta_table(table).restore(2)
        assert (caught.value.kind, caught.value.version, caught.value.user) == ("concurrent-vacuum", 4, "ann")
        open_delta_table(table).checkpoint()  # the log is read from there on
    begin["commitInfo"]["timestamp"] = milliseconds(system_clock() - timedelta(hours=2))  # it was killed
    path.write_text(json.dumps(begin))
    assert open_delta_table(table).restore(2) == 5
    assert open_delta_table(table).scan().collect().height == 20


def test_a_vacuum_that_ended_is_not_the_one_that_still_deletes(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    table.delete("id < 10")
    log, first = tmp_path / "_delta_log", table.latest_version + 1
    operations = ("VACUUM START", "VACUUM START", "VACUUM END", "VACUUM END")
    commits = [{"commitInfo": {"operation": name, "timestamp": milliseconds(system_clock())}} for name in operations]
    for version, commit in enumerate(commits[:3], first):
        (log / f"{version:020}.json").write_text(json.dumps(commit))
    with pytest.raises(CommitConflictError, match="a vacuum, version 4, is deleting files"):
        open_delta_table(table).restore(2)
    (log / f"{first + 3:020}.json").write_text(json.dumps(commits[3]))
    assert open_delta_table(table).restore(2) == first + 4


def test_a_vacuum_counts_whatever_a_log_cleanup_takes_beside_the_restore(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    log, begin = tmp_path / "_delta_log", table.latest_version + 1
    for version in range(begin, begin + 12):  # a vacuum begins, and appends follow
        operation = "VACUUM START" if version == begin else "WRITE"
        info = {"commitInfo": {"operation": operation, "timestamp": milliseconds(system_clock())}}
        (log / f"{version:020}.json").write_text(json.dumps(info))
    table.refresh()
    table.checkpoint()
    opened, later = open_delta_table(table), open_delta_table(table)
    versions = opened.log.versions()
    assert later.log.versions() == versions
    for version in range(begin):  # gone after they were listed
        (log / f"{version:020}.json").unlink()
    with pytest.raises(CommitConflictError, match=f"a vacuum, version {begin}, is deleting files"):
        check_no_vacuum(opened.log, versions[-1], milliseconds(system_clock()))
    (log / f"{begin:020}.json").unlink()
    check_no_vacuum(later.log, versions[-1], milliseconds(system_clock()))
