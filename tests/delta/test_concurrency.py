"""Several writers at once: who may follow whom, and that nothing is lost or doubled."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.log.actions import AddFile
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.transaction import Transaction
from lakeview.model.config import Config
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import CommitConflictError, StoreUnavailableError
from lakeview.model.schema import Schema
from lakeview.storage import Entry, LocalStorage
from tests.builders.actions import add, info, protocol
from tests.builders.findings import GRAVE
from tests.builders.history import DeltaHistory
from tests.builders.opening import open_delta_table
from tests.builders.stores import FarStorage, GoesDark, LosesReplies, TellsOwnFileIsThere

ORDERS = Schema((Field("id", PrimitiveType("long")), Field("city", PrimitiveType("string"))))


def rows(number: int, city: str = "Rome") -> pl.DataFrame:
    return pl.DataFrame({"id": [number], "city": [city]})


def created(address: Path, partition_by: tuple[str, ...] = ("city",)) -> DeltaTable:
    table = lv.create_table(str(address), ORDERS, partition_by=partition_by)
    assert isinstance(table, DeltaTable)
    table.append(pl.concat([rows(1), rows(2, "Oslo")]))
    return table


def of(table: DeltaTable, city: str) -> list[str]:
    files = table.snapshot().files
    return files.filter(pl.col("path").str.contains(city))["path"].to_list()


Step = Callable[[Transaction], Any]


def append(city: str) -> Step:
    return lambda txn: txn.append(rows(9, city))


def overwrite(where: str | None) -> Step:
    return lambda txn: txn.overwrite(rows(8), where)


def delete(where: str | None) -> Step:
    return lambda txn: txn.remove(where)


def delete_files(city: str) -> Step:
    return lambda txn: txn.remove(paths=of(txn._table, city))  # type: ignore[arg-type]  # the table it was begun on


def compact(city: str) -> Step:
    def step(txn: Transaction) -> None:
        txn.remove(paths=of(txn._table, city), data_change=False)  # type: ignore[arg-type]  # as above
        txn.add([AddFile(f"city={city}/compacted", 1, {"city": city}, 0, data_change=False)])

    return step


ROME, OSLO = "city = 'Rome'", "city = 'Oslo'"
CONFLICTS: list[tuple[str, Step, Step, str | None]] = [
    ("an overwrite does not follow an append", overwrite(None), append("Oslo"), "concurrent-append"),
    ("an overwrite does not follow another", overwrite(None), overwrite(None), "concurrent-delete-delete"),
    ("a delete does not follow an append it should have seen", delete(ROME), append("Rome"), "concurrent-append"),
    ("a delete of named files follows an append", delete_files("Rome"), append("Rome"), None),
    ("a delete of all does not follow a delete of some", delete(None), delete(ROME), "concurrent-delete-delete"),
    ("a compaction follows an append", compact("Rome"), append("Rome"), None),
    ("a compaction follows a delete elsewhere", compact("Rome"), delete(OSLO), None),
    ("a compaction does not follow a delete of its files", compact("Rome"), delete(ROME), "concurrent-delete-delete"),
    ("a compaction does not follow another of the same files", compact("Rome"), compact("Rome"),
     "concurrent-delete-delete"),
    ("a delete does not follow a compaction of its files", delete(ROME), compact("Rome"), "concurrent-delete-delete"),
]  # fmt: skip


def delete_rows(where: str) -> Step:
    return lambda txn: txn.delete(where)


def update_rows(where: str) -> Step:
    return lambda txn: txn.update({"city": "'Rome'"}, where)


def merge_rows(number: int) -> Step:
    def step(txn: Transaction) -> None:
        txn.merge(rows(number), ["id"]).when_matched_update().when_not_matched_insert().execute()

    return step


def vectors(address: Path, level: str = "Serializable") -> DeltaTable:
    """One file of the ids 0 to 9, in a table with deletion vectors, and one of the ids 100 to 109."""
    properties = {"delta.enableDeletionVectors": "true", "delta.isolationLevel": level}
    table = lv.create_table(str(address), ORDERS, properties=properties)
    assert isinstance(table, DeltaTable)
    for first in (0, 100):
        table.append(pl.DataFrame({"id": range(first, first + 10), "city": ["Oslo"] * 10}))
    return table


def count_statistics(txn: Transaction) -> None:
    for file in txn.live_files(None):
        txn.files.add_again(file.row, '{"numRecords":10}')


def track_rows(txn: Transaction) -> None:
    txn.set_properties({"delta.enableRowTracking": "true"})


SERIAL, WRITE_SERIAL = "Serializable", "WriteSerializable"
ROW_CONFLICTS: list[tuple[str, Step, Step, str, str | None, list[int]]] = [
    ("deletes of other rows of a file are joined", delete_rows("id = 1"), delete_rows("id IN (2, 3)"), SERIAL, None,
     [1, 2, 3]),
    ("deletes of the same rows of a file are joined", delete_rows("id IN (1, 2)"), delete_rows("id IN (2, 3)"), SERIAL,
     None, [1, 2, 3]),
    ("deletes that leave no row of a file remove it", delete_rows("id < 5"), delete_rows("id BETWEEN 5 AND 50"), SERIAL,
     None, [*range(10)]),
    ("an update of other rows of a file is joined", update_rows("id = 1"), delete_rows("id = 2"), SERIAL, None, [2]),
    ("an update of rows that were deleted is not", update_rows("id = 1"), delete_rows("id = 1"), SERIAL,
     "concurrent-delete-delete", [1]),
    ("a delete of rows that were updated is not", delete_rows("id = 1"), update_rows("id = 1"), SERIAL,
     "concurrent-append", []),
    ("a delete beside an update is joined", delete_rows("id = 1"), update_rows("id = 7"), SERIAL, None, [1]),
    ("a merge of other rows is joined", merge_rows(1), delete_rows("id = 105"), SERIAL, None, [105]),
    ("a merge of a row that was deleted is not", merge_rows(1), delete_rows("id = 1"), SERIAL,
     "concurrent-delete-read", [1]),
    ("two merges of one new key collide", merge_rows(50), merge_rows(50), SERIAL, "concurrent-append", []),
    ("two merges of other keys do not", merge_rows(50), merge_rows(60), SERIAL, None, []),
    ("a delete does not follow an append of what it deletes", delete_rows("id = 9"), append("Rome"), SERIAL,
     "concurrent-append", []),
    ("it does where writes alone are serializable", delete_rows("id = 9"), append("Rome"), WRITE_SERIAL, None, []),
    ("a delete follows an append of other values", delete_rows("id = 3"), append("Rome"), SERIAL, None, [3]),
    ("statistics of a file that went do not bring it back", count_statistics, overwrite(None), SERIAL,
     "concurrent-delete-delete", [*range(8), 9, *range(100, 110)]),
    ("row ids for a file that went do not either", track_rows, delete_rows("id < 10"), SERIAL,
     "concurrent-delete-delete", [*range(10)]),
    ("nor for one whose rows were deleted", track_rows, delete_rows("id = 3"), SERIAL, "concurrent-delete-delete", [3]),
    ("a file written again is not joined", delete_rows("id = 1"), overwrite(None), SERIAL, "concurrent-delete-delete",
     [*range(8), 9, *range(100, 110)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "winner", "level", "kind", "deleted"), [c[1:] for c in ROW_CONFLICTS], ids=[c[0] for c in ROW_CONFLICTS]
)
def test_which_changes_of_rows_may_follow_which(
    tmp_path: Path, ours: Step, winner: Step, level: str, kind: str | None, deleted: list[int]
) -> None:
    table = vectors(tmp_path, level)
    mine = open_delta_table(table).transaction("MINE")
    ours(mine)
    with table.transaction("THEIRS") as theirs:
        winner(theirs)
    if kind is None:
        mine.commit()
    else:
        with pytest.raises(CommitConflictError) as caught, mine:
            pass
        assert caught.value.kind == kind
    there = set(lv.open_table(str(tmp_path)).scan().collect()["id"])
    before = {*range(10), *range(100, 110)}
    assert before - there == set(deleted)
    assert [f for f in open_delta_table(table).check() if f.severity in GRAVE] == []


def test_a_delete_does_not_follow_a_restore_of_rows_it_would_have_deleted(tmp_path: Path) -> None:
    table = vectors(tmp_path)
    table.delete("id = 1")
    mine = open_delta_table(table).transaction("MINE")
    mine.delete("id = 1 OR id = 105")
    open_delta_table(table).restore(2)
    with pytest.raises(CommitConflictError) as caught, mine:
        pass
    assert caught.value.kind == "concurrent-append"


def test_a_delete_does_not_follow_a_restore_that_deletes_more_than_it_brings_back(tmp_path: Path) -> None:
    table = vectors(tmp_path)
    table.delete("id IN (2, 3, 4)")
    table.restore(2)
    table.delete("id = 1")
    mine = open_delta_table(table).transaction("MINE")
    mine.delete("id = 1 OR id = 105")
    open_delta_table(table).restore(3)
    with pytest.raises(CommitConflictError) as caught, mine:
        pass
    assert caught.value.kind == "concurrent-append"


def test_row_tracking_is_not_turned_on_beside_a_file_without_ids(tmp_path: Path) -> None:
    table = created(tmp_path)
    mine = open_delta_table(table).transaction("MINE")
    mine.set_properties({"delta.enableRowTracking": "true"})
    table.append(rows(3))
    with pytest.raises(CommitConflictError) as caught, mine:
        pass
    assert caught.value.kind == "concurrent-append"


def test_rows_that_moved_without_ids_do_not_follow_row_tracking(tmp_path: Path) -> None:
    table = created(tmp_path, partition_by=())
    mine = open_delta_table(table).transaction("MINE")
    mine.delete("id = 1")
    table.set_properties({"delta.enableRowTracking": "true"})
    with pytest.raises(CommitConflictError) as caught, mine:
        pass
    assert caught.value.kind == "metadata-changed"


def test_a_constraint_is_checked_against_every_row_at_every_level(tmp_path: Path) -> None:
    table = vectors(tmp_path, level="SnapshotIsolation")
    mine = open_delta_table(table).transaction("MINE")
    mine.add_constraint("known", "id < 1000")
    table.append(rows(5000))
    with pytest.raises(CommitConflictError) as caught, mine:
        pass
    assert caught.value.kind == "concurrent-append"


@pytest.mark.parametrize("dropped", [False, True], ids=["turned off", "dropped"])
def test_vectors_are_not_written_once_they_are_off(tmp_path: Path, dropped: bool) -> None:
    table = vectors(tmp_path)
    mine = open_delta_table(table).transaction("MINE")
    mine.delete("id = 1")
    if dropped:
        DeltaHistory(tmp_path).commit(protocol(1, 2), version=3)
    else:
        table.set_properties({"delta.enableDeletionVectors": "false"})
    with pytest.raises(CommitConflictError) as caught, mine:
        pass
    assert caught.value.kind == ("protocol-changed" if dropped else "metadata-changed")


def test_a_lost_attempt_costs_one_listing_and_the_winners_commit(tmp_path: Path) -> None:
    table = open_delta_table(created(tmp_path))
    mine = table.transaction()
    mine.append(rows(5))
    created_by_others = open_delta_table(table)
    created_by_others.append(rows(6))
    table.storage.requests.clear()
    mine.commit()
    requests = dict(table.storage.requests)
    assert requests == {"put": 2, "read": 2, "list": 2}, "try, whose it is and what it did, try again, see it is there"


@pytest.mark.parametrize(("ours", "winner", "kind"), [c[1:] for c in CONFLICTS], ids=[c[0] for c in CONFLICTS])
def test_who_may_follow_whom(tmp_path: Path, ours: Step, winner: Step, kind: str | None) -> None:
    table = created(tmp_path)
    mine = open_delta_table(table).transaction("MINE", user="me")
    ours(mine)
    with table.transaction("THEIRS", user="ada") as theirs:
        winner(theirs)
    on_disk = {p for p in tmp_path.rglob("*.parquet") if p.is_file()}
    if kind is None:
        with mine:
            pass
        assert mine.version == 3
        assert table.refresh()
        assert table.snapshot(3).num_files >= 0
        return
    with pytest.raises(CommitConflictError) as caught, mine:
        pass
    error = caught.value
    assert error.kind == kind
    assert (error.version, error.operation, error.user) == (2, "THEIRS", "ada")
    assert error.message.startswith("version 2 (THEIRS by ada) was committed meanwhile: ")
    assert error.fix == "refresh the table and do it again on what is there now"
    assert mine.version is None
    assert not table.refresh()
    files_before = {p for p in tmp_path.rglob("*.parquet") if p.is_file()}
    assert files_before <= on_disk
    live = {tmp_path / p for p in table.snapshot().files["path"] if "compacted" not in p}
    assert live <= files_before, "only our own files are discarded"


def test_without_partitions_every_append_could_have_been_read(tmp_path: Path) -> None:
    table = created(tmp_path, ())
    mine = open_delta_table(table).transaction()
    mine.overwrite(rows(7))
    table.append(rows(8))
    with pytest.raises(CommitConflictError, match="which ours would have had to read"), mine:
        pass
    assert sorted(table.scan().collect()["id"]) == [1, 2, 8]


def test_a_protocol_upgraded_meanwhile_beyond_us_stops_the_commit(history: DeltaHistory) -> None:
    history.create({"id": "long", "city": "string"})
    table = open_delta_table(history.address)
    mine = table.transaction()
    mine.append(rows(1))
    history.commit(info(operation="UPGRADE"), protocol(1, 7, writerFeatures=["timeMachine"]))
    with pytest.raises(lv.errors.UnsupportedTableError, match="timeMachine"), mine:
        pass
    assert [p.name for p in Path(history.address).glob("*.parquet")] == []


def test_many_winners_before_us_are_all_checked(tmp_path: Path) -> None:
    table = created(tmp_path)
    mine = open_delta_table(table).transaction()
    mine.remove(ROME)
    for i in range(5):
        table.append(rows(i, "Oslo"))
    table.append(rows(6, "Rome"))
    with pytest.raises(CommitConflictError) as caught, mine:
        pass
    assert caught.value.version == 7


# -- lost replies


@pytest.mark.parametrize("store", [LosesReplies, TellsOwnFileIsThere])
def test_a_lost_reply_does_not_double_the_commit(tmp_path: Path, store: type[LosesReplies]) -> None:
    created(tmp_path)
    table = DeltaTable(store(tmp_path))
    assert table.append(rows(3)) == 2
    assert table.refresh() is False
    assert sorted(open_delta_table(table).scan().collect()["id"]) == [1, 2, 3]


def test_a_lost_reply_of_a_commit_that_another_writer_won_is_tried_again(tmp_path: Path) -> None:
    created(tmp_path)

    class Late(LosesReplies):
        def put_if_absent(self, path: str, data: bytes) -> None:
            if self.losses:
                self.losses -= 1
                open_delta_table(table).append(rows(4))
                raise FileExistsError(path)
            LocalStorage.put_if_absent(self, path, data)

    table = DeltaTable(Late(tmp_path))
    assert table.append(rows(3)) == 3
    assert sorted(open_delta_table(table).scan().collect()["id"]) == [1, 2, 3, 4]


def test_an_outcome_nobody_knows_keeps_the_data_files(tmp_path: Path) -> None:
    created(tmp_path)
    with pytest.raises(StoreUnavailableError) as caught:
        DeltaTable(GoesDark(tmp_path)).append(rows(3))
    assert caught.value.kind == "outcome-unknown"
    assert caught.value.message.startswith("whether version 2 was committed is not known: ")
    assert caught.value.fix is not None
    assert "its data files were kept" in caught.value.fix
    # it was committed after all, and is whole
    assert sorted(lv.open_table(str(tmp_path)).scan().collect()["id"]) == [1, 2, 3]


def test_an_outcome_nobody_knows_keeps_the_data_files_of_a_commit_inside_the_block(tmp_path: Path) -> None:
    created(tmp_path)
    txn = DeltaTable(GoesDark(tmp_path)).transaction()
    txn.append(rows(3))
    with pytest.raises(StoreUnavailableError), txn:
        txn.commit()
    assert sorted(lv.open_table(str(tmp_path)).scan().collect()["id"]) == [1, 2, 3]


def test_an_interruption_after_the_commit_keeps_its_data_files(tmp_path: Path) -> None:
    created(tmp_path)

    class Interrupted(LocalStorage):
        def put_if_absent(self, path: str, data: bytes) -> None:
            super().put_if_absent(path, data)
            raise KeyboardInterrupt

    txn = DeltaTable(Interrupted(str(tmp_path), Config())).transaction()
    txn.append(rows(3))
    with pytest.raises(KeyboardInterrupt), txn:
        txn.commit()
    assert sorted(lv.open_table(str(tmp_path)).scan().collect()["id"]) == [1, 2, 3]


def test_a_store_that_fails_before_anything_is_made_leaves_nothing(tmp_path: Path) -> None:
    created(tmp_path)

    class Full(LocalStorage):
        def put_if_absent(self, path: str, data: bytes) -> None:
            raise StoreUnavailableError("no space left", place=path)

    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StoreUnavailableError, match="no space left"):
        DeltaTable(Full(str(tmp_path), Config())).append(rows(3))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_refresh_that_fails_after_the_commit_does_not_fail_it(tmp_path: Path) -> None:
    created(tmp_path)

    class Tired(FarStorage):
        tired = False

        def entries_from(self, folder: str, start: str = "") -> list[Entry]:
            if self.tired:
                raise StoreUnavailableError("no listing", place=folder)
            return super().entries_from(folder, start)

        def put_if_absent(self, path: str, data: bytes) -> None:
            super().put_if_absent(path, data)
            self.tired = True

    store = Tired(tmp_path)
    with DeltaTable(store).transaction() as txn:
        txn.append(rows(3))
    assert txn.version == 2
    assert txn.checkpoint_error is not None
    assert sorted(lv.open_table(str(tmp_path)).scan().collect()["id"]) == [1, 2, 3]


def test_a_writer_that_always_loses_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    created(tmp_path)
    waits: list[float] = []
    monkeypatch.setattr("lakeview.delta.write.commit_loop.back_off", lambda *_, share: waits.append(share))

    class Crowded(LocalStorage):
        def put_if_absent(self, path: str, data: bytes) -> None:
            DeltaHistory(tmp_path).write(path, b"{}\n")
            raise FileExistsError(path)

    with pytest.raises(CommitConflictError) as caught:
        DeltaTable(Crowded(str(tmp_path), Config())).append(rows(3))
    assert caught.value.kind == "too-many-attempts"
    assert caught.value.message == "200 commits in a row were won by other writers"
    assert caught.value.fix == "try again when fewer writers are at work"
    assert waits == sorted(waits, reverse=True), "who has lost often waits less"
    assert len(list(tmp_path.rglob("*.parquet"))) == 2


def test_writers_that_queue_leave_a_window_to_others_before_every_fourth_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created(tmp_path)
    windows: list[float] = []

    class Queued(LocalStorage):
        @contextmanager
        def turn(self, meanwhile: Callable[[], None] | None = None) -> Iterator[bool]:
            yield True

    def window(*_: object, least: float) -> None:
        windows.append(least)
        if len(windows) == 1:  # another engine uses it
            open_delta_table(table).append(rows(0))

    monkeypatch.setattr("lakeview.delta.write.commit_loop.back_off", window)
    table = DeltaTable(Queued(str(tmp_path), Config()))
    versions = []
    for i in range(1, 8):
        with table.transaction() as txn:
            txn.append(rows(i))
        versions.append(txn.version)
    assert versions == [2, 3, 5, 6, 7, 8, 9], "version 4 is of the other engine"
    assert len(windows) == 2
    assert min(windows) > 0.02
    assert sorted(lv.open_table(str(tmp_path)).scan().collect()["id"]) == [0, 1, 1, 2, 2, 3, 4, 5, 6, 7]


# -- processes and threads


def _append_many(address: str, start: int, count: int) -> None:
    table = open_delta_table(address)
    for i in range(start, start + count):
        table.append(rows(i))


_APPENDS = """
import sys
import polars as pl
import lakeview as lv

table = lv.open_table(sys.argv[1])
for i in range(int(sys.argv[2]), int(sys.argv[2]) + 20):
    table.append(pl.DataFrame({"id": [i]}))
"""


@pytest.mark.slow
def test_two_processes_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    lv.create_table(str(tmp_path), ORDERS)
    writers = [subprocess.Popen([sys.executable, "-c", _APPENDS, str(tmp_path), start]) for start in ("0", "100")]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    table = lv.open_table(str(tmp_path))
    assert table.latest_version == 40
    assert table.versions()["readable"].all()
    assert sorted(table.scan().collect()["id"]) == [*range(20), *range(100, 120)]
    assert table.snapshot(20).num_files == 20
    DeltaHistory(tmp_path).without(*range(40))
    assert lv.open_table(str(tmp_path)).snapshot().num_records == 40, "the checkpoint holds the same"


@pytest.mark.parametrize("address", ["in a folder", "in memory"], indirect=True)
def test_threads_that_append_at_once_lose_nothing(address: str) -> None:
    lv.create_table(address, ORDERS)
    threads = [threading.Thread(target=_append_many, args=(address, i * 10, 6)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = lv.open_table(address)
    assert table.latest_version == 24
    assert sorted(table.scan().collect()["id"]) == sorted(i * 10 + j for i in range(4) for j in range(6))


def test_one_table_may_be_used_from_several_threads(tmp_path: Path) -> None:
    table = created(tmp_path)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(5):
                table.append(rows(number * 10 + i))
                assert table.snapshot().num_files >= 2
                assert table.history().height >= 2
                assert table.scan().collect().height >= 2
        except BaseException as error:  # noqa: BLE001 (shown by the thread that waits)
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert table.snapshot().num_records == 17


# -- crashes

CRASH = """
import os, sys
import polars as pl
import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.storage import LocalStorage, local_files

table = lv.open_table(sys.argv[1])
row = pl.DataFrame({"id": [3], "city": ["Rome"]})
if sys.argv[2] == "before the commit":
    txn = table.transaction()
    txn.append(row)
    os._exit(9)
elif sys.argv[2] == "with the commit half written":
    def torn(full, data, **_):
        with open(full, "wb") as file:
            file.write(data[: len(data) // 2])
            file.flush()
            os._exit(9)
    with table.transaction() as txn:
        txn.append(row)
        local_files.create_exclusively = torn
elif sys.argv[2] == "with the data file half written":
    def torn(full, data, **_):
        with open(full, "wb") as file:
            file.write(data.read(10))
            file.flush()
            os._exit(9)
    local_files.create_exclusively = torn
    table.append(row)
elif sys.argv[2] == "with a large data file before its name":
    def refuse(*_):
        os._exit(9)
    local_files.IN_MEMORY = 0
    os.replace = refuse
    table.append(row)
"""


@pytest.mark.parametrize(
    "when",
    [
        "before the commit", "with the commit half written", "with the data file half written",
        "with a large data file before its name",
    ],
)  # fmt: skip
@pytest.mark.slow
def test_a_process_that_dies_leaves_the_table_as_it_was(tmp_path: Path, when: str) -> None:
    before = created(tmp_path).snapshot().files
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", CRASH, str(tmp_path), when],
        env={**os.environ, "PYTHONPATH": str(root)}, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 9
    table = open_delta_table(str(tmp_path))
    assert table.latest_version == 1
    assert table.snapshot().files.equals(before)
    assert sorted(table.scan().collect()["id"]) == [1, 2]
    assert table.append(rows(4)) == 2
    assert sorted(table.scan().collect()["id"]) == [1, 2, 4]


def test_an_add_by_others_with_odd_statistics_does_not_stop_a_commit(history: DeltaHistory) -> None:
    history.create({"id": "long", "city": "string"}).commit(add("f", stats="not json"))
    table = open_delta_table(history.address)
    with table.transaction() as txn:
        txn.add([AddFile("g", 1, stats="{")])
    assert txn.version == 2
