"""The audit log stays small in files however often it is written, and loses no row by that."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from lakeview.delta.maintenance import maintain
from lakeview.sharing.server.audit import AuditLog, Entry
from tests.builders.opening import open_delta_table
from tests.server.conftest import Clock

FEW = 12


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dozen files are many here."""
    monkeypatch.setattr("lakeview.delta.maintenance.SMALL_FILES", FEW)


def write_log(folder: Path, clock: Clock, first: int, last: int) -> AuditLog:
    """A log with one flush a request."""
    log = AuditLog(str(folder), clock)
    for number in range(first, last):
        log.add(Entry(clock(), str(number)))
        assert log.flush() == 1
        clock.later(minutes=1)
    return log


def ids(folder: Path) -> list[int]:
    return sorted(open_delta_table(folder).scan().select(pl.col("request_id").cast(pl.Int64)).collect()["request_id"])


def aged(folder: Path, to: datetime) -> None:
    """Every file as if it were of this time."""
    for file in folder.rglob("*"):
        os.utime(file, (to.timestamp(), to.timestamp()))


def test_many_small_files_become_one_and_every_row_stays(tmp_path: Path) -> None:
    clock = Clock()
    log = write_log(tmp_path / "audit", clock, 0, FEW - 1)
    assert open_delta_table(tmp_path / "audit").files().height == FEW - 1
    log.add(Entry(clock(), str(FEW - 1)))
    log.flush()
    table = open_delta_table(tmp_path / "audit")
    assert table.files().height == 1
    assert ids(tmp_path / "audit") == list(range(FEW))
    newest = table.history(1).row(0, named=True)
    assert (newest["operation"], newest["data_change"]) == ("OPTIMIZE", False)
    log.add(Entry(clock(), str(FEW)))  # it goes on after that
    assert log.flush() == 1
    assert ids(tmp_path / "audit") == list(range(FEW + 1))


def test_what_no_recent_version_needs_is_removed_and_what_one_needs_stays(tmp_path: Path) -> None:
    clock = Clock()
    folder = tmp_path / "audit"
    write_log(folder, clock, 0, FEW)
    aged(folder, clock())
    assert len(list(folder.glob("*.parquet"))) == FEW + 1  # versions of the last week need the small ones
    clock.later(days=40)
    write_log(folder, clock, FEW, 2 * FEW - 1)
    files = {f.name for f in folder.glob("*.parquet")}
    assert len(files) == FEW + 1  # those of now: the packed ones and the small ones that became it
    assert set(open_delta_table(folder).files()["path"]) <= files
    assert ids(folder) == list(range(2 * FEW - 1))
    assert not (folder / "_delta_log" / f"{0:020d}.json").exists()
    oldest = min(int(f.name[:20]) for f in (folder / "_delta_log").glob("*.checkpoint.parquet"))
    assert 0 < oldest <= min(int(f.name[:20]) for f in (folder / "_delta_log").glob("*.json"))
    assert open_delta_table(folder).versions().filter("readable")["version"].min() is not None
    assert [f.severity.name for f in open_delta_table(folder).check(clock()) if f.severity.name == "BROKEN"] == []


def test_two_processes_may_tidy_at_once(tmp_path: Path) -> None:
    clock = Clock()
    folder = tmp_path / "audit"
    write_log(folder, clock, 0, FEW - 1)
    open_delta_table(folder).append(pl.DataFrame({"request_id": [str(FEW - 1)]}))
    one, other = open_delta_table(folder), open_delta_table(folder)
    assert maintain(one, clock)
    assert not maintain(other, clock)  # it looks again, and there is nothing left to do
    assert ids(folder) == list(range(FEW))


def test_a_log_that_cannot_be_tidied_keeps_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    folder = tmp_path / "audit"
    log = write_log(folder, clock, 0, FEW - 1)

    def full(*_: object, **__: object) -> list[object]:
        raise OSError("no space left")

    monkeypatch.setattr("lakeview.delta.write.optimize._rewrite", full)
    log.add(Entry(clock(), str(FEW - 1)))
    assert log.flush() == 1
    assert "audit could not be maintained: no space left" in caplog.text
    assert ids(folder) == list(range(FEW))
