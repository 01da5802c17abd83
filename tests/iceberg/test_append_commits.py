"""Commits of appends to folders: other writers at the same time, stores that fail or say nothing, and interruptions."""

from __future__ import annotations

import errno
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.iceberg.metadata.locate import Place
from lakeview.iceberg.table import IcebergTable
from lakeview.iceberg.write.commits import FolderCommits
from lakeview.model.config import Config
from lakeview.model.errors import (
    AccessDeniedError,
    CommitConflictError,
    CorruptTableError,
    LakeviewError,
    StoreUnavailableError,
)
from lakeview.model.findings import Severity
from lakeview.storage import LocalStorage, Storage
from lakeview.storage.system_errors import ErrorTranslation
from tests.builders.catalogs import FIELDS
from tests.builders.iceberg import IcebergHistory
from tests.builders.stores import FarStorage, GoesDark, LosesReplies, TellsOwnFileIsThere

SPEC = ((1, "bucket[2]", "id_b"),)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying again costs no time."""
    for module in ("iceberg.write.snapshot_commit", "iceberg.write.commits", "storage.exclusive"):
        monkeypatch.setattr(f"lakeview.{module}.back_off", lambda *_, **__: None)


def make_history(place: Path) -> IcebergHistory:
    history = IcebergHistory(place, FIELDS, SPEC, location=str(place))
    table(LocalStorage(str(place), Config())).append(rows(0))
    return history


def table(storage: LocalStorage) -> IcebergTable:
    return IcebergTable(storage, Place(storage.root))


def rows(first: int, count: int = 3) -> pl.DataFrame:
    return pl.DataFrame({"id": range(first, first + count)})


def ids(place: Path) -> list[int]:
    ids_read: list[int] = sorted(lv.open_table(str(place)).scan().collect()["id"])
    return ids_read


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def sound(place: Path, *findings: str) -> None:
    """Every snapshot is there as it says, and nothing of its metadata contradicts itself; the log doctor has these
    findings alone."""
    store_table = table(LocalStorage(str(place), Config()))
    assert [f.id for f in store_table.check() if f.severity is not Severity.PASS] == list(findings)
    assert set(store_table.audit()["verdict"]) == {"proven"}


class Fails(LocalStorage):
    """A folder whose writes fail from one on, with this error; the writes before do what they should."""

    def __init__(self, root: Path, after: int, error: BaseException) -> None:
        super().__init__(str(root), Config())
        self.left = after
        self._error = error

    def _spend(self, path: str) -> None:
        self.left -= 1
        if self.left < 0:
            with ErrorTranslation(path):
                raise self._error

    def put(self, path: str, data: bytes) -> None:
        self._spend(path)
        super().put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._spend(path)
        super().put_if_absent(path, data)


class Killed(BaseException):
    """The process ends here."""


class Dies(Fails):
    """The same of a process that ends: nothing is removed after it."""

    def delete(self, path: str) -> None:
        if self.left < 0:
            raise Killed
        super().delete(path)


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, StoreUnavailableError), (errno.EACCES, AccessDeniedError)])
def test_a_store_that_fails_at_any_write_leaves_the_table_and_the_folder_as_they_were(
    tmp_path: Path, number: int, kind: type[LakeviewError]
) -> None:
    make_history(tmp_path)
    before = files_below(tmp_path)
    for after in range(20):
        try:
            table(Fails(tmp_path, after, OSError(number, "on purpose"))).append(rows(10))
        except kind:
            assert files_below(tmp_path) == before
            assert ids(tmp_path) == [0, 1, 2]
        else:
            break
    assert after > 3
    assert ids(tmp_path) == [0, 1, 2, 10, 11, 12]
    sound(tmp_path)


def test_a_process_that_ends_at_any_write_leaves_the_table_as_it_was_or_as_it_should_be(tmp_path: Path) -> None:
    make_history(tmp_path)
    expected = ids(tmp_path)
    for after in range(20):
        first = 10 * (after + 1)
        try:
            table(Dies(tmp_path, after, Killed())).append(rows(first))
        except Killed:
            ids_found = ids(tmp_path)
            assert ids_found in (expected, [*expected, first, first + 1, first + 2])
            expected = ids_found
        else:
            break
    assert after > 3
    table(LocalStorage(str(tmp_path), Config())).append(rows(500))
    assert ids(tmp_path)[-3:] == [500, 501, 502]
    sound(tmp_path, "snapshot-orphan-files")


def test_what_a_killed_writer_left_is_named(tmp_path: Path) -> None:
    make_history(tmp_path)
    with pytest.raises(Killed):
        table(Dies(tmp_path, 3, Killed())).append(rows(10))
    now = datetime.now(UTC)  # noqa: TID251 (files have the system's times)
    opened_table = table(LocalStorage(str(tmp_path), Config()))
    (finding,) = [f for f in opened_table.check(now + timedelta(days=2)) if f.id == "snapshot-orphan-files"]
    assert finding.claim == "3 files in the folder are named by no snapshot"
    paths = {str(path) for path in opened_table.files()["path"]}
    orphans = [p for p in files_below(tmp_path) if p.suffix == ".parquet" and str(p) not in paths]
    assert all(path.name in finding.evidence for path in orphans)
    assert "older than a day" in finding.evidence
    assert "snapshot-orphan-files" not in {f.id for f in opened_table.check(now)}, "a write may be under way"


@pytest.mark.parametrize("store", [LosesReplies, TellsOwnFileIsThere])
def test_a_lost_reply_does_not_double_the_snapshot(tmp_path: Path, store: type[LosesReplies]) -> None:
    make_history(tmp_path)
    table(store(str(tmp_path))).append(rows(10))
    assert ids(tmp_path) == [0, 1, 2, 10, 11, 12]
    assert lv.open_table(str(tmp_path)).versions().height == 2
    sound(tmp_path)


def test_an_outcome_that_nobody_knows_keeps_the_files(tmp_path: Path) -> None:
    make_history(tmp_path)
    with pytest.raises(StoreUnavailableError, match=r"whether metadata/v3.metadata.json was committed") as caught:
        table(GoesDark(str(tmp_path))).append(rows(10))
    assert caught.value.kind == "outcome-unknown"
    assert ids(tmp_path) == [0, 1, 2, 10, 11, 12]


class Races(FarStorage):
    """A folder whose writers do not wait for their turn, as those of other machines do not."""

    turn = Storage.turn


class Interleaved(Races):
    """Before the first creation another writer does something."""

    def __init__(self, root: Path, other: Any) -> None:
        super().__init__(root)
        self._other = other

    def put_if_absent(self, path: str, data: bytes) -> None:
        if self._other is not None:
            other, self._other = self._other, None
            other()
        super().put_if_absent(path, data)


def test_an_append_follows_what_another_writer_committed_meanwhile(tmp_path: Path) -> None:
    make_history(tmp_path)
    table(Interleaved(tmp_path, lambda: table(Races(tmp_path)).append(rows(20)))).append(rows(10))
    assert ids(tmp_path) == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    sound(tmp_path)
    documents = [json.loads(p.read_text()) for p in sorted((tmp_path / "metadata").glob("v*.metadata.json"))]
    assert [s["sequence-number"] for s in documents[-1]["snapshots"]] == [1, 2, 3]
    assert len(list((tmp_path / "metadata").glob("snap-*"))) == 3  # that of the lost attempt is gone


def test_an_append_does_not_follow_other_columns(tmp_path: Path) -> None:
    history = make_history(tmp_path)
    newer = json.loads((tmp_path / "metadata/v2.metadata.json").read_text())
    newer["schemas"].append({**history.document["schemas"][0], "schema-id": 1})
    newer["current-schema-id"] = 1
    before = files_below(tmp_path)
    store = Interleaved(tmp_path, lambda: (tmp_path / "metadata/v3.metadata.json").write_text(json.dumps(newer)))
    with pytest.raises(CommitConflictError, match="changed while the rows were written") as caught:
        table(store).append(rows(10))
    assert caught.value.kind == "metadata-changed"
    assert files_below(tmp_path) == before | {tmp_path / "metadata/v3.metadata.json"}


class HintsLate(LocalStorage):
    """A folder in which another writer commits before the first hint of this one is written."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root), Config())
        self._waits = True

    def put(self, path: str, data: bytes) -> None:
        if self._waits and path.endswith("version-hint.text"):
            self._waits = False
            table(Races(Path(self.root))).append(rows(20))
        super().put(path, data)


def test_a_hint_does_not_go_back(tmp_path: Path) -> None:
    make_history(tmp_path)
    table(HintsLate(tmp_path)).append(rows(10))
    assert (tmp_path / "metadata/version-hint.text").read_text() == "4"
    assert ids(tmp_path) == [0, 1, 2, 10, 11, 12, 20, 21, 22]


def test_a_folder_that_falls_silent_after_a_commit_does_not_hide_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_history(tmp_path)
    opened_table = table(LocalStorage(str(tmp_path), Config()))
    commit = FolderCommits.commit

    def commit_and_fail(*arguments: Any) -> bool:
        won = commit(*arguments)
        monkeypatch.setattr(opened_table, "refresh", silent)
        return won

    monkeypatch.setattr(FolderCommits, "commit", commit_and_fail)
    assert opened_table.append(rows(10)) is not None
    assert ids(tmp_path) == [0, 1, 2, 10, 11, 12]


def silent() -> bool:
    raise StoreUnavailableError("no answer")


UNFOLLOWED: dict[str, tuple[dict[str, Any], str]] = {
    "main elsewhere": ({"refs": {"main": {"snapshot-id": 1, "type": "branch"}}}, "the branch main is at 1"),
    "the last time": ({"last-updated-ms": 2**63 - 1}, "no snapshot can follow its last-updated-ms"),
    "the last number": ({"last-sequence-number": 2**63 - 1}, "no snapshot can follow its last-sequence-number"),
}


@pytest.mark.parametrize("case", UNFOLLOWED)
def test_metadata_that_nothing_can_follow_is_refused_and_stays(tmp_path: Path, case: str) -> None:
    make_history(tmp_path)
    change, words = UNFOLLOWED[case]
    current = tmp_path / "metadata/v2.metadata.json"
    current.write_text(json.dumps({**json.loads(current.read_text()), **change}))
    before = files_below(tmp_path)
    with pytest.raises(CorruptTableError, match=words):
        table(LocalStorage(str(tmp_path), Config())).append(rows(10))
    assert files_below(tmp_path) == before


def test_a_number_that_no_name_can_follow_is_refused(tmp_path: Path) -> None:
    make_history(tmp_path)
    last = f"v{10**18 - 1}.metadata.json"
    (tmp_path / "metadata/v2.metadata.json").rename(tmp_path / "metadata" / last)
    (tmp_path / "metadata/version-hint.text").unlink()
    before = files_below(tmp_path)
    with pytest.raises(CorruptTableError, match="its number is so high"):
        table(LocalStorage(str(tmp_path), Config())).append(rows(10))
    assert files_below(tmp_path) == before


def append_often(place: Path, first: int) -> None:
    racing_table = table(Races(place))
    for number in range(4):
        racing_table.append(rows(first + 3 * number))


def test_no_append_of_several_writers_is_lost(tmp_path: Path) -> None:
    make_history(tmp_path)
    with ThreadPoolExecutor(5) as pool:
        for done in [pool.submit(append_often, tmp_path, 3 + 12 * i) for i in range(5)]:
            done.result()
    assert ids(tmp_path) == list(range(63))
    assert lv.open_table(str(tmp_path)).versions().height == 21
    assert len(list((tmp_path / "metadata").glob("snap-*"))) == 21
    sound(tmp_path)
