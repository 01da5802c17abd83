"""Vacuum: what goes, what stays, what is recorded, and what a crash on the way leaves."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.checkpoint import write_checkpoint
from lakeview.delta.write.log_cleanup import clean_log
from lakeview.delta.write.vacuum import VACUUM, vacuum
from lakeview.model.config import Config
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import (
    CorruptTableError,
    InvalidRequestError,
    LakeviewError,
    StoreUnavailableError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from lakeview.model.schema import Schema
from lakeview.storage import LocalStorage
from tests.builders.actions import add, cdc, metadata, protocol, remove
from tests.builders.history import DeltaHistory
from tests.builders.opening import open_delta_table
from tests.builders.vectors import relative
from tests.differential.oracles import ORACLES

NOW = datetime(2026, 6, 1, tzinfo=UTC)
OLD, YOUNG = NOW - timedelta(days=20), NOW - timedelta(days=2)
ORDERS = Schema((Field("id", PrimitiveType("long")), Field("city", PrimitiveType("string"))))


def clock() -> datetime:
    return NOW


def rows(*ids: int) -> pl.DataFrame:
    return pl.DataFrame({"id": list(ids), "city": ["Rome"] * len(ids)}, schema={"id": pl.Int64, "city": pl.String})


def aged(path: Path, at: datetime) -> None:
    """Give a file, or every file of a folder, this time."""
    for file in [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]:
        os.utime(file, (at.timestamp(), at.timestamp()))


def data_files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and "_delta_log" not in p.parts}


def commits(folder: Path) -> list[dict[str, Any]]:
    """The commitInfo of every commit, oldest first."""
    lines = [p.read_text().splitlines()[0] for p in sorted((folder / "_delta_log").glob("*.json"))]
    return [json.loads(line).get("commitInfo", {}) for line in lines]


def orders(folder: Path, **more: Any) -> DeltaTable:
    """Versions 0 to 3, all of them written long ago: one file, two, and one again."""
    table = lv.create_table(str(folder), ORDERS, clock=lambda: OLD, **more)
    assert isinstance(table, DeltaTable)
    for frame in (rows(1), rows(2)):
        with table.transaction(clock=lambda: OLD) as txn:
            txn.append(frame)
    with table.transaction(clock=lambda: OLD) as txn:
        txn.overwrite(rows(3))
    aged(folder, OLD)
    return table


# -- which files


VECTOR, OTHER_VECTOR, OLD_VECTOR = (uuid.UUID(int=n) for n in (1, 2, 3))
AT_YOUNG, AT_OLD = (int(at.timestamp() * 1000) for at in (YOUNG, OLD))


def vector_name(number: uuid.UUID) -> str:
    return f"deletion_vector_{number}.bin"


def furnished(folder: Path) -> DeltaTable:
    """A table with one file for each reason to keep one or not; all files are old but those called young."""
    history = DeltaHistory(folder).commit(
        protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors", "changeDataFeed"]),
        metadata({"id": "long", "_p": "long"}, partition_by=("_p",), properties={"delta.enableChangeDataFeed": "true"}),
        add("_p=1/live.parquet", partition={"_p": "1"}),
        add("with%20space.parquet", partition={"_p": None}),
        add(f"file://{folder}/absolute.parquet", partition={"_p": None}),
        add("vectored.parquet", partition={"_p": None}, deletionVector=relative(VECTOR, b"1234", 1)),
        add("removed-lately.parquet", partition={"_p": None}, deletionVector=relative(OTHER_VECTOR, b"1234", 1)),
        add("removed-long-ago.parquet", partition={"_p": None}, deletionVector=relative(OLD_VECTOR, b"1234", 1)),
    )
    history.dated(0, OLD)
    history.commit(
        remove("removed-long-ago.parquet", at=AT_OLD, deletionVector=relative(OLD_VECTOR, b"1234", 1)), at=OLD
    )
    history.commit(
        remove("removed-lately.parquet", at=AT_YOUNG, deletionVector=relative(OTHER_VECTOR, b"1234", 1)),
        cdc(add("changes/c.parquet")),
        at=YOUNG,
    )
    for name in (*NEEDED_FILES, *DELETED):
        history.write(name, b"x" * 10)
        aged(folder / name, YOUNG if "young" in name else OLD)
    return open_delta_table(folder)


NEEDED_FILES = {
    "_p=1/live.parquet": "live",
    "with space.parquet": "live, recorded as a URI",
    "absolute.parquet": "live, recorded with the whole address",
    "vectored.parquet": "live",
    vector_name(VECTOR): "the deletion vector of a live file",
    "removed-lately.parquet": "within the retention",
    vector_name(OTHER_VECTOR): "the deletion vector of a file within the retention",
    "changes/c.parquet": "change data within the retention",
    "young.parquet": "a writer may be about to commit it",
    "_change_data/young.parquet": "the same, of change data",
    "_hidden/a.parquet": "hidden",
    "_hidden=1/a.parquet": "no partition column",
    "deep/.hidden/a.parquet": "hidden below",
    "_hidden.parquet": "hidden",
    ".hidden.parquet": "hidden",
    "nested/_delta_log/00000000000000000000.json": "another table's log",
    "nested/data.parquet": "another table's data",
    "_delta_log/.hidden": "the log's own",
    "_p=2/.young.parquet.0123456789abcdef0123456789abcdef.tmp": "a writer is at work",
}
DELETED = {
    "removed-long-ago.parquet": "removed before the retention",
    vector_name(OLD_VECTOR): "its deletion vector",
    "orphan.parquet": "left by a killed writer",
    "_p=2/orphan.parquet": "left in a partition whose column begins with an underscore",
    "_change_data/old.parquet": "change data before the retention",
    "_delta_index/old.bin": "an index before the retention",
    "deep/er/any.csv": "no data of the table",
    "_p=2/.part.parquet.0123456789abcdef0123456789abcdef.tmp": "a file that a killed writer had begun",
    "0123456789abcdef0123456789abcdef.staging/_temporary/0/.p.crc": "a file that Spark had begun for a killed writer",
}


def test_what_nothing_needs_is_deleted_and_the_rest_stays(tmp_path: Path) -> None:
    table = furnished(tmp_path / "t")
    plan = vacuum(table, clock=clock)
    assert plan.schema == VACUUM
    assert {path: DELETED.get(path) for path in plan["path"]} == dict(sorted(DELETED.items()))
    assert plan["size"].unique().to_list() == [10]
    assert not plan["deleted"].any()
    assert data_files(tmp_path / "t") >= DELETED.keys(), "a dry run"
    assert open_delta_table(tmp_path / "t").latest_version == 2
    deletions = vacuum(table, dry_run=False, clock=clock)
    assert deletions["deleted"].all()
    assert deletions.drop("deleted").equals(plan.drop("deleted"))
    present = data_files(tmp_path / "t")
    assert present == {name for name in NEEDED_FILES if "_delta_log" not in name}
    assert (tmp_path / "t/nested/_delta_log/00000000000000000000.json").exists()
    assert vacuum(table, dry_run=False, clock=clock).is_empty()


def test_the_metadata_of_iceberg_readers_stays(tmp_path: Path) -> None:
    properties: dict[str, str | None] = {"delta.universalFormat.enabledFormats": "iceberg"}
    history = DeltaHistory(tmp_path).create(properties=properties).write("metadata/v1.metadata.json", b"{}")
    history.write("orphan.parquet", b"x")
    aged(tmp_path, OLD)
    assert vacuum(open_delta_table(tmp_path), clock=clock)["path"].to_list() == ["orphan.parquet"]


def test_a_link_that_leads_out_of_the_table_is_not_followed(tmp_path: Path) -> None:
    table = orders(tmp_path / "t")
    (tmp_path / "outside.parquet").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/inside.parquet").write_bytes(b"x")
    aged(tmp_path, OLD)
    (tmp_path / "t/link.parquet").symlink_to(tmp_path / "outside.parquet")
    (tmp_path / "t/linked").symlink_to(tmp_path / "folder")
    deletions = vacuum(table, dry_run=False, clock=clock)
    assert deletions.filter(~pl.col("deleted"))["path"].to_list() == ["link.parquet"]
    assert (tmp_path / "outside.parquet").exists()
    assert (tmp_path / "folder/inside.parquet").exists()


@pytest.mark.parametrize("name", ["_delta_log", "city=Rome", "city=Rome/*.parquet"])
def test_what_a_link_inside_the_table_leads_to_stays(tmp_path: Path, name: str) -> None:
    created = lv.create_table(str(tmp_path), ORDERS, partition_by=["city"])
    created.append(rows(1, 2))
    (path,) = tmp_path.glob(name)
    (tmp_path / "elsewhere").mkdir()
    path.rename(tmp_path / "elsewhere/place")
    path.symlink_to(tmp_path / "elsewhere/place")
    (tmp_path / "elsewhere/orphan").write_bytes(b"x")
    aged(tmp_path, OLD)
    table = open_delta_table(tmp_path)
    assert vacuum(table, dry_run=False, clock=clock)["path"].to_list() == ["elsewhere/orphan"]
    assert open_delta_table(tmp_path).scan().collect().height == 2


def test_a_link_on_the_way_from_a_link_to_a_file_stays(tmp_path: Path) -> None:
    lv.create_table(str(tmp_path), ORDERS, partition_by=["city"]).append(rows(1, 2))
    (path,) = tmp_path.glob("city=Rome/*.parquet")
    path.rename(tmp_path / "file")
    (tmp_path / "way").symlink_to("file")
    (tmp_path / "other").symlink_to("other")
    path.symlink_to("../way")
    aged(tmp_path, OLD)
    assert vacuum(open_delta_table(tmp_path), dry_run=False, clock=clock).is_empty()
    assert open_delta_table(tmp_path).scan().collect().height == 2


def test_a_longer_retention_than_the_tables_finds_tombstones_that_checkpoints_dropped(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path).create().write("gone.parquet", b"x")
    history.commit(add("gone.parquet"), at=OLD).commit(remove("gone.parquet", at=AT_OLD), at=OLD)
    history.dated(0, OLD).commit(at=NOW)
    aged(tmp_path / "gone.parquet", OLD - timedelta(days=1))
    write_checkpoint(open_delta_table(tmp_path))
    assert open_delta_table(tmp_path).snapshot().tombstones.is_empty()
    assert vacuum(open_delta_table(tmp_path), clock=clock)["path"].to_list() == ["gone.parquet"]
    assert vacuum(open_delta_table(tmp_path), timedelta(days=20), clock=clock).is_empty()


def test_versions_to_keep_can_still_be_read(tmp_path: Path) -> None:
    table = orders(tmp_path)
    actions = vacuum(table, dry_run=False, keep_versions=[1], clock=clock)
    assert actions.height == 1
    assert open_delta_table(tmp_path).scan(1).collect()["id"].to_list() == [1]
    with pytest.raises(LakeviewError, match="but not in the store"):
        open_delta_table(tmp_path).scan(2).collect()
    with pytest.raises(VersionNotFoundError):
        vacuum(table, keep_versions=[99], clock=clock)


def test_a_lite_vacuum_asks_the_log_alone(tmp_path: Path) -> None:
    table = furnished(tmp_path / "t")
    lists = table.storage.requests["list"]
    plan = vacuum(table, lite=True, clock=clock)
    assert plan.rows() == [(vector_name(OLD_VECTOR), None, None, False), ("removed-long-ago.parquet", None, OLD, False)]
    assert table.storage.requests["list"] == lists + 1, "the refresh"
    vacuum(table, dry_run=False, lite=True, clock=clock)
    assert data_files(tmp_path / "t") >= DELETED.keys() - set(plan["path"])
    assert not (tmp_path / "t/removed-long-ago.parquet").exists()


def test_deletion_vectors_that_were_replaced_go(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), ORDERS, properties={"delta.enableDeletionVectors": "true"})
    assert isinstance(table, DeltaTable)
    table.append(rows(1, 2, 3, 4))
    table.delete("id = 1")
    table.delete("id = 2")
    aged(tmp_path, OLD)
    deletions = vacuum(table, dry_run=False, clock=lambda: datetime(2100, 1, 1, tzinfo=UTC))
    assert [path.startswith("deletion_vector_") for path in deletions["path"]] == [True]
    for oracle in ORACLES.values():
        assert sorted(oracle(str(tmp_path), table.latest_version)["id"].to_pylist()) == [3, 4]


def test_what_a_killed_writer_left_is_named_by_the_doctor_and_removed(tmp_path: Path) -> None:
    table = orders(tmp_path)
    live = table.snapshot().files["path"][0]
    (tmp_path / "part-of-nobody.parquet").write_bytes((tmp_path / live).read_bytes())
    aged(tmp_path, OLD)
    assert "orphan-files" in [f.id for f in open_delta_table(tmp_path).check(NOW)]
    assert "part-of-nobody.parquet" in vacuum(table, dry_run=False, clock=clock)["path"]
    assert "orphan-files" not in [f.id for f in open_delta_table(tmp_path).check(NOW)]


def test_what_a_killed_writer_left_in_the_log_is_named_by_the_doctor_and_removed(tmp_path: Path) -> None:
    table = orders(tmp_path)
    name = ".00000000000000000009.json.0123456789abcdef0123456789abcdef.tmp"
    (tmp_path / "_delta_log" / name).write_bytes(b"{}")
    aged(tmp_path, OLD)
    orphans = [f for f in open_delta_table(tmp_path).check(NOW) if f.id == "orphan-files"]
    assert [(f.place, f.remedy) for f in orphans] == [(f"_delta_log/{name}", "a cleanup of the log removes them")]
    assert name in clean_log(table, dry_run=False, clock=clock)["name"]
    assert "orphan-files" not in [f.id for f in open_delta_table(tmp_path).check(NOW)]


# -- what is refused


@pytest.mark.parametrize(
    ("retention", "words"),
    [
        (timedelta(days=6), "shorter than the 7 days"),
        (timedelta(0), "shorter than"),
        (-timedelta(1), "in the future"),
    ],
)
def test_a_short_retention_is_refused(tmp_path: Path, retention: timedelta, words: str) -> None:
    table = orders(tmp_path)
    with pytest.raises(InvalidRequestError, match=words) as caught:
        vacuum(table, retention, clock=clock)
    assert caught.value.kind == "short-retention"


def test_a_short_retention_may_be_allowed_and_is_recorded(tmp_path: Path) -> None:
    table = orders(tmp_path)
    aged(tmp_path, YOUNG)
    assert vacuum(table, clock=clock).is_empty()
    with pytest.raises(InvalidRequestError, match="lies in the future"):
        vacuum(table, -timedelta(1), allow_short_retention=True, clock=clock)
    deletions = vacuum(table, timedelta(days=1), allow_short_retention=True, dry_run=False, clock=clock)
    assert deletions.height == 2
    start = commits(tmp_path)[-2]["operationParameters"]
    assert (start["retentionCheckEnabled"], start["specifiedRetentionMillis"]) == (False, 86_400_000)


REFUSED = {
    "an unknown writer feature": (protocol(1, 7, writerFeatures=["timeMachine"]), "timeMachine"),
    "writer version 8": (protocol(1, 8), "writer version 8"),
    "a catalog": (
        protocol(3, 7, readerFeatures=["catalogManaged"], writerFeatures=["catalogManaged"]), "managed by a catalog"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("action", "words"), REFUSED.values(), ids=REFUSED)
def test_a_table_that_must_not_be_written_is_not_vacuumed(tmp_path: Path, action: dict[str, Any], words: str) -> None:
    DeltaHistory(tmp_path).commit(action, metadata()).write("orphan.parquet", b"x")
    aged(tmp_path, OLD)
    with pytest.raises(UnsupportedTableError, match=words):
        vacuum(open_delta_table(tmp_path), dry_run=False, clock=clock)
    assert data_files(tmp_path) == {"orphan.parquet"}


def test_a_deletion_vector_that_names_no_file_stops_it(tmp_path: Path) -> None:
    broken = {"storageType": "x", "pathOrInlineDv": "?", "sizeInBytes": 1, "cardinality": 1}
    history = DeltaHistory(tmp_path).commit(
        protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"]), metadata()
    )
    history.commit(add("f", deletionVector=broken)).write("orphan.parquet", b"x")
    aged(tmp_path, OLD)
    with pytest.raises(CorruptTableError):
        vacuum(open_delta_table(tmp_path), dry_run=False, clock=clock)
    assert (tmp_path / "orphan.parquet").exists()


def test_an_action_that_is_null_names_no_change_file(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path).commit(protocol(1, 4), metadata(properties={"delta.enableChangeDataFeed": "true"}))
    history.commit({"cdc": None} | add("f"), at=NOW).write("f", b"x").write("orphan.parquet", b"x")
    aged(tmp_path / "orphan.parquet", OLD)
    vacuum(open_delta_table(tmp_path), dry_run=False, clock=clock)
    assert data_files(tmp_path) == {"f"}


# -- what is recorded


def test_a_run_is_recorded_as_other_engines_do(tmp_path: Path) -> None:
    table = orders(tmp_path, properties={"delta.enableInCommitTimestamps": "true"})
    deletions = vacuum(table, dry_run=False, clock=clock)
    start, end = commits(tmp_path)[-2:]
    assert (start["operation"], end["operation"]) == ("VACUUM START", "VACUUM END")
    assert start["operationParameters"] == {"retentionCheckEnabled": True, "defaultRetentionMillis": 604_800_000}
    size = int(deletions["size"].sum())
    assert start["operationMetrics"] == {"numFilesToDelete": "2", "sizeOfDataToDelete": str(size)}
    assert end["operationParameters"] == {"status": "COMPLETED"}
    assert end["operationMetrics"] == {"numDeletedFiles": "2", "numVacuumedDirectories": "1"}
    assert end["inCommitTimestamp"] == start["inCommitTimestamp"] + 1
    assert open_delta_table(tmp_path).scan().collect()["id"].to_list() == [3]
    for oracle in ORACLES.values():
        assert oracle(str(tmp_path), 5)["id"].to_pylist() == [3]


def test_a_run_may_go_unrecorded_and_reports_its_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeview.delta.write.vacuum.run.BATCH", 1)
    table = orders(tmp_path)
    progress_calls: list[tuple[int, int]] = []
    vacuum(table, dry_run=False, record=False, progress=lambda *step: progress_calls.append(step), clock=clock)
    assert progress_calls == [(1, 2), (2, 2)]
    assert open_delta_table(tmp_path).latest_version == 3


# -- others at work


def test_a_file_that_comes_into_use_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeview.delta.write.vacuum.run.BATCH", 1)
    table = orders(tmp_path)
    first, second = vacuum(table, clock=clock)["path"]

    def restore(done: int, _: int) -> None:
        if done == 1:
            DeltaHistory(tmp_path).commit(add(second), version=open_delta_table(tmp_path).latest_version + 1)

    deletions = vacuum(table, dry_run=False, progress=restore, clock=clock)
    assert deletions.select("path", "deleted").rows() == [(first, True), (second, False)]
    assert data_files(tmp_path) == {second, *table.snapshot(3).files["path"]}


def test_a_file_that_is_gone_already_does_not_matter(tmp_path: Path) -> None:
    table = orders(tmp_path)
    original: Callable[[], pl.DataFrame] = table.storage.walk

    def walk_and_lose() -> pl.DataFrame:
        files = original()
        (tmp_path / vacuum_plan[0]).unlink()
        return files

    vacuum_plan = vacuum(table, clock=clock)["path"].to_list()
    table.storage.walk = walk_and_lose  # type: ignore[method-assign]
    assert vacuum(table, dry_run=False, clock=clock)["deleted"].all()
    assert open_delta_table(tmp_path).scan().collect()["id"].to_list() == [3]


class CrashingStorage(LocalStorage):
    """A folder whose store stops answering at the n-th change, and answers none after it."""

    def __init__(self, root: object, at: int) -> None:
        super().__init__(str(root), Config())
        self.left = at

    def _count_down(self, path: str) -> None:
        self.left -= 1
        if self.left <= 0:
            raise StoreUnavailableError("the process died", place=path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._count_down(path)
        super().put_if_absent(path, data)

    def delete(self, path: str) -> None:
        self._count_down(path)
        super().delete(path)


def test_a_crash_at_any_step_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    for step in range(1, 10):
        folder = tmp_path / str(step)
        orders(folder)
        try:
            vacuum(DeltaTable(CrashingStorage(folder, step)), dry_run=False, clock=clock)
        except StoreUnavailableError:
            assert open_delta_table(folder).scan().collect()["id"].to_list() == [3]
            vacuum(open_delta_table(folder), dry_run=False, clock=clock)
            assert data_files(folder) == set(open_delta_table(folder).snapshot().files["path"])
        else:
            break
    assert step == 5, "START, two files, END"


def test_a_run_that_fails_says_so(tmp_path: Path) -> None:
    table = orders(tmp_path)
    calls: list[str] = []

    def fail(path: str) -> None:
        calls.append(path)
        raise StoreUnavailableError("the store does not answer", place=path)

    table.storage.delete = fail  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailableError):
        vacuum(table, dry_run=False, clock=clock)
    end = commits(tmp_path)[-1]
    assert (end["operation"], end["operationParameters"]) == ("VACUUM END", {"status": "FAILED"})
    assert end["operationMetrics"]["numDeletedFiles"] == "0"


@pytest.mark.parametrize(
    ("winner", "error"),
    [
        ([add("new.parquet")], None),
        ([metadata(properties={"a": "b"})], None),
        ([protocol(1, 7, writerFeatures=["x"])], "feature x"),
    ],
    ids=["an append", "a change of metadata", "a feature that is not written"],
)
def test_the_start_follows_a_commit_that_was_first(
    tmp_path: Path, winner: list[dict[str, Any]], error: str | None
) -> None:
    table = orders(tmp_path)
    original = table.storage.walk

    def walk_and_lose() -> pl.DataFrame:
        DeltaHistory(tmp_path).commit(*winner, version=4)
        return original()

    table.storage.walk = walk_and_lose  # type: ignore[method-assign]
    if error is None:
        assert vacuum(table, dry_run=False, clock=clock).height == 2
        assert [c.get("operation") for c in commits(tmp_path)[4:]] == [None, "VACUUM START", "VACUUM END"]
        return
    with pytest.raises(UnsupportedTableError, match=error):
        vacuum(table, dry_run=False, clock=clock)
    assert len(data_files(tmp_path)) == 3


def test_files_recorded_under_another_name_of_the_tables_folder_are_not_deleted(tmp_path: Path) -> None:
    folder, link = tmp_path / "table", tmp_path / "link"
    table = lv.create_table(str(folder), ORDERS)
    table.append(rows(1))
    table.append(rows(2))
    link.symlink_to(folder)
    for version, name in ((1, folder), (2, link)):
        commit = folder / "_delta_log" / f"{version:020d}.json"
        commit.write_text(commit.read_text().replace('"path":"part', f'"path":"file://{name}/part'))
    aged(folder, OLD)
    for name in (folder, link):
        assert open_delta_table(name).vacuum(clock=clock).is_empty()
