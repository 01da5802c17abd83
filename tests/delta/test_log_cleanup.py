"""Cleanup of the log: what the oldest version that stays needs is never taken."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from itertools import repeat
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.checkpoint import write_checkpoint
from lakeview.delta.write.log_cleanup import LOG_CLEANUP, clean_log
from lakeview.model.config import Config
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import CorruptTableError, InvalidRequestError, StoreUnavailableError, UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.storage import LocalStorage
from tests.builders.actions import add, metadata, protocol
from tests.builders.history import DeltaHistory, log_name
from tests.builders.opening import open_delta_table
from tests.delta.test_damaged_checkpoints import damage
from tests.differential.oracles import ORACLES

NOW = datetime(2026, 6, 1, 15, tzinfo=UTC)
DAY = timedelta(days=1)


def clock() -> datetime:
    return NOW


def make_table(
    folder: Path, checkpoints: tuple[int, ...] = (3, 6), features: tuple[str, ...] = (), **properties: str
) -> DeltaTable:
    """Ten versions, each ten days older than the next, v9 of today: v6 is 30 days and 16 hours old. Each adds a
    file; some have checkpoints. Properties by their names without `delta.`"""
    delta_properties: dict[str, str | None] = {f"delta.{name}": text for name, text in properties.items()}
    reader = [f for f in features if f == "v2Checkpoint"]
    first = protocol(3, 7, readerFeatures=reader, writerFeatures=list(features)) if features else protocol()
    history = DeltaHistory(folder).commit(first, metadata(properties=delta_properties), add("f0"), at=NOW - 90 * DAY)
    for version in range(1, 10):
        history.commit(add(f"f{version}"), at=NOW - (9 - version) * 10 * DAY - timedelta(hours=16))
    for version in range(10):
        history.write(f"f{version}", b"x" * 100)
    for version in checkpoints:
        write_checkpoint(open_delta_table(folder), version)
    return open_delta_table(folder)


def log_files(folder: Path) -> list[str]:
    return sorted(p.name for p in (folder / "_delta_log").iterdir() if p.is_file())


def files_by_version(folder: Path) -> dict[int, int | None]:
    """The number of live files at every version that can be read."""
    table = open_delta_table(folder)
    readable = table.versions().filter("readable")["version"].to_list()
    return {version: table.snapshot(version).num_files for version in readable}


def test_what_lies_before_the_newest_old_checkpoint_is_deleted(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    history = DeltaHistory(tmp_path)
    for name in (log_name(5, "crc"), log_name(6, "crc"), f"_delta_log/{4:020d}.{5:020d}.compacted.json",
                 f"_delta_log/{6:020d}.{8:020d}.compacted.json", f"_delta_log/{7:020d}.{8:020d}.compacted.json",
                 log_name(2, "checkpoint.0000000001.0000000002.parquet"), "_delta_log/info.txt"):  # fmt: skip
        history.write(name, b"{}")
    table = open_delta_table(tmp_path)
    before = log_files(tmp_path)
    plan = clean_log(table, clock=clock)
    assert plan.schema == LOG_CLEANUP
    assert log_files(tmp_path) == before, "a dry run"
    expected = [
        *(f"{v:020d}.json" for v in range(6)), f"{3:020d}.checkpoint.parquet", f"{5:020d}.crc",
        f"{4:020d}.{5:020d}.compacted.json", f"{6:020d}.{8:020d}.compacted.json",
        f"{2:020d}.checkpoint.0000000001.0000000002.parquet",
    ]  # fmt: skip
    assert sorted(plan["name"]) == sorted(expected)
    deletions = clean_log(table, dry_run=False, clock=clock)
    assert deletions["name"].equals(plan["name"])
    assert deletions["deleted"].all()
    assert log_files(tmp_path) == [name for name in before if name not in expected]
    assert files_by_version(tmp_path) == {6: 7, 7: 8, 8: 9, 9: 10}
    assert clean_log(table, dry_run=False, clock=clock).is_empty(), "the same table object sees what is gone"
    assert [f.severity.name for f in open_delta_table(tmp_path).check(NOW) if f.id == "commits-missing"] == []


OLDEST: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "the retention of the table": ({}, {}, 6),
    "a longer one of the table": ({"logRetentionDuration": "interval 50 days"}, {}, 3),
    "a longer one that is asked for": ({}, {"retention": 50 * DAY}, 3),
    "a shorter one, allowed": ({"checkpoints": (3, 8)}, {"retention": 0 * DAY, "allow_short_retention": True}, 8),
    "no checkpoint is old enough": ({"checkpoints": (7, 8)}, {}, 0),
    "no checkpoint": ({"checkpoints": ()}, {}, 0),
    "a version to keep": ({}, {"keep_versions": [8, 4]}, 3),
    "a version to keep from before every checkpoint": ({}, {"keep_versions": [2]}, 0),
    "protected up to a later version": (
        {"features": ("checkpointProtection",), "requireCheckpointProtectionBeforeVersion": "7"}, {}, 0
    ),
    "protected up to the checkpoint": (
        {"features": ("checkpointProtection",), "requireCheckpointProtectionBeforeVersion": "6"}, {}, 6
    ),
    "the property of a protection that the table has not": ({"requireCheckpointProtectionBeforeVersion": "7"}, {}, 6),
}  # fmt: skip


@pytest.mark.parametrize(("table", "request_", "oldest"), OLDEST.values(), ids=OLDEST)
def test_the_oldest_version_that_stays(
    tmp_path: Path, table: dict[str, Any], request_: dict[str, Any], oldest: int
) -> None:
    clean_log(make_table(tmp_path, **table), dry_run=False, clock=clock, **request_)
    assert files_by_version(tmp_path) == {version: version + 1 for version in range(oldest, 10)}


def test_days_are_whole_ones(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    DeltaHistory(tmp_path).dated(6, (NOW - 30 * DAY).replace(hour=0, minute=1))  # the cutoff is midnight before
    assert clean_log(open_delta_table(tmp_path), clock=clock)["version"].max() == 2
    assert table.latest_version == 9


def test_the_commits_of_the_last_hour_stay_after_midnight(tmp_path: Path) -> None:
    """One of them may be that of a vacuum which still deletes files: a restore asks for it."""
    table = make_table(tmp_path, checkpoints=(8, 9))
    midnight = NOW.replace(hour=0, minute=0)
    DeltaHistory(tmp_path).dated(9, midnight - timedelta(minutes=20))
    for minutes, latest in ((30, 7), (50, 8)):
        moments = repeat(midnight + timedelta(minutes=minutes))
        plan = clean_log(open_delta_table(tmp_path), 0 * DAY, allow_short_retention=True, clock=moments.__next__)
        assert plan["version"].max() == latest
    assert table.latest_version == 9


def test_times_of_files_that_go_back_are_those_of_time_travel(tmp_path: Path) -> None:
    make_table(tmp_path)
    DeltaHistory(tmp_path).dated(4, NOW)  # which makes every later version as young
    assert clean_log(open_delta_table(tmp_path), clock=clock)["version"].max() == 2


def test_in_commit_times_win_over_those_of_files(tmp_path: Path) -> None:
    make_table(tmp_path, checkpoints=())
    at = int(NOW.timestamp() * 1000)
    history = DeltaHistory(tmp_path)
    history.commit(
        {"commitInfo": {"inCommitTimestamp": at}}, protocol(1, 7, writerFeatures=["inCommitTimestamp"]),
        metadata(properties={"delta.enableInCommitTimestamps": "true",
                             "delta.inCommitTimestampEnablementVersion": "10"}),
        version=10, at=NOW - 60 * DAY,
    )  # fmt: skip
    write_checkpoint(open_delta_table(tmp_path), 10)
    assert clean_log(open_delta_table(tmp_path), clock=clock).is_empty()


@pytest.mark.parametrize("content", [b"", b"PAR1 no more"], ids=["empty", "torn"])
def test_nothing_is_deleted_on_the_word_of_a_broken_checkpoint(tmp_path: Path, content: bytes) -> None:
    make_table(tmp_path, (3, 6, 8))
    DeltaHistory(tmp_path).write(log_name(6, "checkpoint.parquet"), content)
    assert clean_log(open_delta_table(tmp_path), clock=clock)["version"].max() == 2


def test_nothing_is_deleted_on_the_word_of_a_checkpoint_that_proved_damaged(tmp_path: Path) -> None:
    make_table(tmp_path)
    damage(DeltaHistory(tmp_path), log_name(6, "checkpoint.parquet"), "add.path")
    table = open_delta_table(tmp_path)
    assert table.snapshot(6).files.height == 7, "by the checkpoint before it and commits"
    assert clean_log(table, clock=clock)["name"].to_list() == [f"{version:020d}.json" for version in range(3)]


def test_sidecars_go_with_their_checkpoints_but_not_those_in_use_or_young(tmp_path: Path) -> None:
    table = make_table(tmp_path, features=("v2Checkpoint",), checkpointPolicy="v2")
    folder = tmp_path / "_delta_log/_sidecars"
    old = {p.name for p in folder.iterdir()}
    write_checkpoint(open_delta_table(tmp_path), 9)
    DeltaHistory(tmp_path).write("_delta_log/_sidecars/orphan.parquet", b"x").write(
        "_delta_log/_sidecars/young.parquet", b"x"
    )
    for file in folder.iterdir():
        at = (NOW - (timedelta(hours=14) if file.name == "young.parquet" else 3 * DAY)).timestamp()
        os.utime(file, (at, at))
    names = {name for files in open_delta_table(tmp_path).log.checkpoints() if files.version > 3
             for name in open_delta_table(tmp_path).log.checkpoint(files).sidecars}  # fmt: skip
    clean_log(open_delta_table(tmp_path), dry_run=False, clock=clock)
    assert {p.name for p in folder.iterdir()} == names | {"young.parquet"}
    assert len(old - names) == 1
    assert files_by_version(tmp_path) == {6: 7, 7: 8, 8: 9, 9: 10}
    assert table.snapshot().num_files == 10


def test_a_checkpoint_whose_sidecar_is_gone_is_no_base(tmp_path: Path) -> None:
    table = make_table(tmp_path, (3, 6, 8), ("v2Checkpoint",), checkpointPolicy="v2")
    (newest,) = table.log.checkpoint(table.log.checkpoints()[-2]).sidecars
    DeltaHistory(tmp_path).remove(f"_delta_log/_sidecars/{newest}")
    assert clean_log(open_delta_table(tmp_path), clock=clock)["version"].max() == 2


def test_what_a_killed_writer_left_in_the_log_goes(tmp_path: Path) -> None:
    table = make_table(tmp_path, ())
    name = f".{5:020d}.json.0123456789abcdef0123456789abcdef.tmp"
    DeltaHistory(tmp_path).write(f"_delta_log/{name}", b"x")
    at = (NOW - 3 * DAY).timestamp()
    os.utime(tmp_path / "_delta_log" / name, (at, at))
    assert clean_log(table, dry_run=False, clock=clock)["name"].to_list() == [name]
    assert name not in log_files(tmp_path)


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "the table keeps its log": ({"enableExpiredLogCleanup": "false"}, {}, "log-cleanup-disabled"),
    "a short retention": ({}, {"retention": 29 * DAY}, "short-retention"),
    "a negative one": ({}, {"retention": -DAY, "allow_short_retention": True}, "short-retention"),
}


@pytest.mark.parametrize(("table", "request_", "kind"), REFUSED.values(), ids=REFUSED)
def test_a_cleanup_is_refused(tmp_path: Path, table: dict[str, Any], request_: dict[str, Any], kind: str) -> None:
    opened_table = make_table(tmp_path, **table)
    before = log_files(tmp_path)
    with pytest.raises(InvalidRequestError) as caught:
        clean_log(opened_table, dry_run=False, clock=clock, **request_)
    assert caught.value.kind == kind
    assert log_files(tmp_path) == before


def test_a_table_that_must_not_be_written_is_not_cleaned(tmp_path: Path) -> None:
    table = make_table(tmp_path, (), ("timeMachine",))
    with pytest.raises(UnsupportedTableError, match="timeMachine"):
        clean_log(table, dry_run=False, clock=clock)


class CrashingStorage(LocalStorage):
    """A folder whose process dies at the n-th deletion."""

    def __init__(self, root: object, at: int) -> None:
        super().__init__(str(root), Config())
        self.left = at

    def delete(self, path: str) -> None:
        self.left -= 1
        if self.left <= 0:
            raise StoreUnavailableError("the process died", place=path)
        super().delete(path)


def test_a_crash_at_any_step_leaves_every_newer_version_readable(tmp_path: Path) -> None:
    make_table(tmp_path / "whole")
    for step in range(1, 20):
        folder = tmp_path / str(step)
        shutil.copytree(tmp_path / "whole", folder)
        try:
            clean_log(DeltaTable(CrashingStorage(folder, step)), dry_run=False, clock=clock)
        except StoreUnavailableError:
            assert files_by_version(folder).items() >= {6: 7, 7: 8, 8: 9, 9: 10}.items()
            clean_log(open_delta_table(folder), dry_run=False, clock=clock)
            assert files_by_version(folder) == {6: 7, 7: 8, 8: 9, 9: 10}
        else:
            break
    assert step == 8, "six commits and a checkpoint"


def test_others_read_what_is_left(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), Schema((Field("id", PrimitiveType("long")),)))
    assert isinstance(table, DeltaTable)
    for i in range(1, 5):
        table.append(pl.DataFrame({"id": [i]}))
    table.checkpoint(2)
    table.checkpoint(4, parts=2)
    for file in (tmp_path / "_delta_log").iterdir():
        os.utime(file, (10**9, 10**9 + int(file.name[:20]) if file.name[:20].isdecimal() else 10**9))
    table = open_delta_table(tmp_path)
    deletions = table.clean_log(keep_versions=[3], dry_run=False)
    assert deletions["name"].to_list() == [f"{v:020d}.json" for v in (0, 1)]
    for version, expected in ((3, [1, 2, 3]), (4, [1, 2, 3, 4])):
        for oracle in ORACLES.values():
            assert sorted(oracle(str(tmp_path), version)["id"].to_pylist()) == expected
    table.append(pl.DataFrame({"id": [5]}))
    assert sorted(open_delta_table(tmp_path).scan().collect()["id"]) == [1, 2, 3, 4, 5]


def test_a_hint_that_names_what_goes_goes_first(tmp_path: Path) -> None:
    make_table(tmp_path)
    history = DeltaHistory(tmp_path).hint({"version": 3, "size": 5})
    deletions = clean_log(open_delta_table(tmp_path), dry_run=False, clock=clock)
    assert deletions.row(0)[:3] == ("_last_checkpoint", "hint", None)
    assert "_last_checkpoint" not in log_files(tmp_path)
    assert len(deltalake.DeltaTable(str(tmp_path)).file_uris()) == 10
    write_checkpoint(open_delta_table(tmp_path), 9)
    assert clean_log(open_delta_table(tmp_path), clock=clock).is_empty()
    assert history.hint(b"no JSON") is history
    assert clean_log(open_delta_table(tmp_path), clock=clock).is_empty()


def test_a_table_that_has_cleaned_its_log_goes_on(tmp_path: Path) -> None:
    table = make_table(tmp_path, (3,), ("v2Checkpoint",), checkpointPolicy="v2")
    assert table.snapshot().num_files == 10, "from the checkpoint that will be gone"
    write_checkpoint(table, 9)
    clean_log(table, dry_run=False, clock=lambda: NOW + 50_000 * DAY)
    assert table.snapshot().tombstones.is_empty()
    assert table.statistics().height == 10
    assert table.vacuum(clock=clock).is_empty()


def test_what_others_wrote_since_the_table_was_opened_is_known(tmp_path: Path) -> None:
    make_table(tmp_path, (3,), ("v2Checkpoint",), checkpointPolicy="v2")
    table = open_delta_table(tmp_path)
    assert table.log.files.height == 11
    write_checkpoint(open_delta_table(tmp_path), 7)  # of a version that a refresh does not list again
    open_delta_table(tmp_path).compact_log(1, 2)
    clean_log(table, keep_versions=[7], dry_run=False, clock=lambda: NOW + 50_000 * DAY)
    assert files_by_version(tmp_path) == {7: 8, 8: 9, 9: 10}
    assert not list((tmp_path / "_delta_log").glob("*.compacted.json"))
    clean_log(open_delta_table(tmp_path), keep_versions=[2], dry_run=False, clock=lambda: NOW + 50_000 * DAY)
    assert open_delta_table(tmp_path).snapshot(7).num_files == 8, "its sidecar is in use"


def test_a_table_that_cleans_its_log_shows_the_commits_that_come_next(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t")
    assert table.history()["version"].to_list() == list(range(9, -1, -1))
    table.clean_log(dry_run=False, clock=clock)
    with table.transaction("WRITE", clock=clock) as txn:
        txn.remove()
    for page in (table.history(), table.history(3)):
        assert page["version"].to_list() == [10, 9, 8, 7, 6][: page.height]
    assert table.history().height == 5
    assert table.lifetimes().filter(pl.col("removed") == 10).height


def test_a_refresh_helps_where_others_cleaned_up_commits_that_were_listed(tmp_path: Path) -> None:
    make_table(tmp_path / "t")
    table, later = open_delta_table(tmp_path / "t"), open_delta_table(tmp_path / "t")
    assert table.log_files().height == later.log_files().height
    later.clean_log(dry_run=False, clock=clock)
    with pytest.raises(CorruptTableError, match="listed and is gone"):
        table.history()
    assert not table.refresh()
    assert table.history().equals(open_delta_table(tmp_path / "t").history())
    assert table.snapshot().num_files == later.snapshot().num_files
