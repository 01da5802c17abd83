"""Stores that fail in the midst of an operation: a clear error, and the table and its folder as they were."""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import polars as pl
import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.deep_clone import copy_files
from lakeview.delta.write.first_commit import clone
from lakeview.model.clock import system_clock
from lakeview.model.config import Config
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import AccessDeniedError, LakeviewError, StoreUnavailableError, UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.rows import open_files
from lakeview.storage import LocalStorage, local_files
from lakeview.storage.system_errors import ErrorTranslation
from tests.builders.catalogs import FIELDS
from tests.builders.findings import GRAVE
from tests.builders.iceberg import IcebergHistory

SCHEMA = Schema((Field("id", PrimitiveType("long")), Field("name", PrimitiveType("string"))))
PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}


def rows(first: int, count: int = 10) -> pl.DataFrame:
    return pl.DataFrame({"id": range(first, first + count), "name": [f"n{i}" for i in range(count)]})


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


class Fails(LocalStorage):
    """A folder whose writes fail from one on: the disk is full, or the folder must not be written to."""

    def __init__(self, root: object, after: int, number: int) -> None:
        super().__init__(str(root), Config())
        self._left = after
        self._number = number

    def _spend(self, path: str) -> None:
        self._left -= 1
        if self._left < 0:
            raise OSError(self._number, "on purpose", path)

    def put_file(self, path: str, file: IO[bytes]) -> None:
        with ErrorTranslation(path):
            self._spend(path)
        super().put_file(path, file)

    def put_if_absent(self, path: str, data: bytes) -> None:
        with ErrorTranslation(path):
            self._spend(path)
        super().put_if_absent(path, data)


class FailsAtAnyFile(Fails):
    """As Fails, of files too that are written bit by bit and then get their name."""

    def count(self, kind: str, times: int = 1) -> None:
        if kind == "put":
            with ErrorTranslation("a file"):
                self._spend("a file")
        super().count(kind, times)


class FailsOnce(Fails):
    """The first removal fails as well."""

    fails = True

    def delete(self, path: str) -> None:
        if self.fails:
            self.fails = False
            raise StoreUnavailableError("the removal failed", place=path)
        super().delete(path)


class CreatesNothing(LocalStorage):
    """A folder in which no file can be created exclusively."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        raise UnsupportedTableError("no exclusive creation", place=path)


@pytest.mark.parametrize(("full", "left"), [(True, 1), (False, 0)])
def test_copies_of_a_deep_clone_that_fails_are_removed(tmp_path: Path, full: bool, left: int) -> None:
    """All that can be, and the error is the one that stopped the clone."""
    source = lv.create_table(tmp_path / "source", SCHEMA)
    for first in range(3):
        source.append(rows(first))
    target = str(tmp_path / "target")
    storage = FailsOnce(target, 2, errno.ENOSPC) if full else CreatesNothing(target, Config())
    with pytest.raises(LakeviewError, match=r"on purpose|no exclusive creation"):
        clone(source, storage, system_clock, copy=copy_files)
    assert len(files_below(tmp_path / "target")) == left


def forbid_removal_in_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that may be added to and not deleted from."""
    remove = os.unlink

    def refuse(path: str, **_: object) -> None:
        if "_delta_log" in path:
            raise PermissionError(errno.EPERM, "Operation not permitted", path)
        remove(path)

    monkeypatch.setattr(os, "unlink", refuse)


def test_a_commit_whose_temporary_file_must_not_be_removed_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that may only be added to: the commit was taken for refused, and its data files were deleted."""
    table = lv.create_table(str(tmp_path), SCHEMA)
    forbid_removal_in_log(monkeypatch)
    assert table.append(rows(0)) == 1
    assert lv.open_table(str(tmp_path)).scan().collect().height == 10


def test_a_commit_that_is_there_though_its_sync_failed_keeps_its_data_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither hard links nor exclusive renames, and a folder that may only be added to: the commit was taken for
    refused."""
    table = lv.create_table(str(tmp_path), SCHEMA)

    def no_renames(*_: object) -> None:
        monkeypatch.setattr(os, "fsync", no_sync)
        raise OSError(errno.EINVAL, "no such renames here")

    def no_links(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "no links here")

    def no_sync(_: int) -> None:
        monkeypatch.undo()
        forbid_removal_in_log(monkeypatch)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "link", no_links)
    monkeypatch.setattr(local_files, "_rename_exclusively", no_renames)
    assert table.append(rows(0)) == 1
    assert lv.open_table(str(tmp_path)).scan().collect().height == 10


OPERATIONS: dict[str, Callable[[DeltaTable], Any]] = {
    "append": lambda table: table.append(rows(100)),
    "overwrite": lambda table: table.overwrite(rows(100)),
    "delete": lambda table: table.delete("id % 3 = 1"),
    "update": lambda table: table.update({"name": "'x'"}, "id % 3 = 1"),
    "merge": lambda table: table.merge(rows(5, 20), ["id"]).when_matched_update().when_not_matched_insert().execute(),
    "optimize": lambda table: table.optimize(),
}


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, Fails), (errno.EACCES, Fails), (errno.ENOSPC, FailsAtAnyFile)],
    ids=["a full disk", "no permission", "a full disk, large files"],
)
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
def test_a_store_that_fails_at_any_write_leaves_the_table_and_the_folder_as_they_were(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    operation: Callable[[DeltaTable], Any],
    number: int,
    kind: type[Fails],
) -> None:
    if kind is FailsAtAnyFile:
        monkeypatch.setattr(local_files, "IN_MEMORY", 0)
    table = lv.create_table(str(tmp_path), SCHEMA, properties=PROPERTIES)
    table.append(rows(0))
    table.append(rows(10))
    before, version = files_below(tmp_path), table.latest_version
    expected: type[LakeviewError] = StoreUnavailableError if number == errno.ENOSPC else AccessDeniedError
    for after in range(100):
        try:
            operation(DeltaTable(kind(tmp_path, after, number)))
        except expected:
            assert files_below(tmp_path) == before
            assert lv.open_table(str(tmp_path)).snapshot().version == version
            continue
        break
    assert after > 0
    table_again = lv.open_table(str(tmp_path))
    assert table_again.snapshot().version == version + 1
    assert [f for f in table_again.check() if f.severity in GRAVE] == []


@pytest.fixture(params=["delta", "iceberg"])
def table_on_disk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An empty table whose new files are on the disk from their first byte on."""
    if request.param == "delta":
        lv.create_table(str(tmp_path), SCHEMA)
    else:
        IcebergHistory(tmp_path, FIELDS, location=str(tmp_path))
    monkeypatch.setattr(local_files, "IN_MEMORY", 0)
    monkeypatch.setattr(open_files, "_GROUP_ROWS", 1)
    return lv.open_table(str(tmp_path))


def test_rows_that_end_in_an_error_leave_nothing_of_a_file_that_was_begun(tmp_path: Path, table_on_disk: Any) -> None:
    before = files_below(tmp_path)
    begun: list[Path] = []

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows(0).select("id").to_arrow().to_batches()
        begun.extend(files_below(tmp_path) - before)
        raise KeyError("no more rows")

    with pytest.raises(KeyError):
        table_on_disk.append(pa.RecordBatchReader.from_batches(rows(0).select("id").to_arrow().schema, batches()))
    assert [file.suffix for file in begun] == [".tmp"]
    assert files_below(tmp_path) == before


def test_a_disk_that_is_full_in_the_middle_of_a_file_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_on_disk: Any
) -> None:
    before = files_below(tmp_path)
    write = local_files.NewLocalFile.write
    reports: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reports.append)
    for size in range(0, 4_000, 50):

        def fail_once_begun(file: local_files.NewLocalFile, data: Any, size: int = size) -> int:
            if not file.closed and file.tell() > size:
                raise StoreUnavailableError("no space left")
            return write(file, data)

        monkeypatch.setattr(local_files.NewLocalFile, "write", fail_once_begun)
        try:
            table_on_disk.append(rows(0).select("id").to_arrow())
        except StoreUnavailableError:
            assert files_below(tmp_path) == before
            continue
        break
    gc.collect()
    assert size > 100
    assert reports == []
