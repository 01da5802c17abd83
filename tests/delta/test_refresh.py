"""What a refresh costs: one listing from the latest known version, and the new commits. Nothing else."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import CorruptTableError
from lakeview.storage import Entry
from tests.builders.actions import add, info, metadata, protocol, remove
from tests.builders.history import DeltaHistory, log_name
from tests.builders.stores import FarStorage


class Watched(FarStorage):
    """A far store that notes every path read and every listing."""

    def __init__(self, root: object) -> None:
        super().__init__(root)
        self.calls: list[str] = []

    def entries_from(self, folder: str, start: str = "") -> list[Entry]:
        self.calls.append(f"list {start}")
        return super().entries_from(folder, start)

    def read(self, path: str) -> bytes:
        self.calls.append(path)
        return super().read(path)

    def open(self, path: str, size: int = 0):  # type: ignore[no-untyped-def]  # as the store's own
        self.calls.append(path)
        return super().open(path, size)


class Racing(FarStorage):
    """A store whose next listings, one each, lack files that were created while the folder was read."""

    def __init__(self, root: object, *lacking: str) -> None:
        super().__init__(root)
        self.lacking = list(lacking)

    def entries_from(self, folder: str, start: str = "") -> list[Entry]:
        lacking = self.lacking.pop(0) if self.lacking else None
        return [entry for entry in super().entries_from(folder, start) if f"{folder}/{entry[0]}" != lacking]


def write_versions(history: DeltaHistory, last: int = 12, checkpoint: int = 10) -> DeltaHistory:
    """Versions 0 to `last`, one file each from 1 on, with a checkpoint."""
    history.create()
    for version in range(1, last + 1):
        history.commit(info(operation="WRITE"), add(f"f{version}", records=version, size=version))
        if version == checkpoint:
            history.checkpoint()
    return history


def everything(table: DeltaTable) -> None:
    snapshot = table.snapshot()
    assert snapshot.files.height == snapshot.num_files
    assert snapshot.num_records is not None
    assert snapshot.size_bytes is not None
    assert snapshot.size_bytes > 0
    assert table.history().height > 0
    assert table.schemas().height > 0


OPENED: dict[str, Callable[[DeltaTable], object]] = {
    "only opened": lambda table: table.latest_version,
    "described": lambda table: table.snapshot().schema,
    "loaded with its files": lambda table: table.snapshot().files,
    "loaded with its history": lambda table: table.history(),
    "loaded with everything": everything,
}


@pytest.mark.parametrize("loaded", OPENED.values(), ids=[f"a table {words}" for words in OPENED])
def test_a_refresh_costs_one_listing(history: DeltaHistory, loaded: Callable[[DeltaTable], object]) -> None:
    store = Watched(write_versions(history).hint({"version": 10, "size": 1}).address)
    table = DeltaTable(store)
    loaded(table)
    store.calls.clear()
    assert table.refresh() is False
    assert store.calls == [f"list {12:020d}"]
    history.commit(add("f13", records=13)).commit(add("f14", records=14))
    assert table.refresh() is True
    assert store.calls[1:] == [f"list {12:020d}"]


def test_a_listing_that_races_with_two_commits_shows_no_gap(history: DeltaHistory) -> None:
    write_versions(history)
    opened = DeltaTable(Racing(history.address, log_name(11), log_name(12)))
    assert (opened.latest_version, opened.snapshot().num_files) == (11, 11)
    store = Racing(history.address)
    table = DeltaTable(store)
    history.commit(add("f13", records=13)).commit(add("f14", records=14))
    store.lacking = [log_name(13)]
    assert table.refresh()
    assert (table.latest_version, table.snapshot().num_files) == (14, 14)


def test_what_was_loaded_goes_on_with_the_new_commits_alone(history: DeltaHistory) -> None:
    store = Watched(write_versions(history).address)
    table = DeltaTable(store)
    everything(table)
    store.calls.clear()
    history.commit(info(operation="DELETE"), remove("f3"), add("f13", records=13, size=13)).commit(
        add("f14", records=14)
    )
    assert table.refresh()
    everything(table)
    assert store.calls[0] == f"list {12:020d}"
    assert sorted(store.calls[1:]) == [log_name(13), log_name(14)]
    assert table.snapshot().num_files == 13
    assert table.snapshot().num_records == sum(range(1, 15)) - 3
    removed = table.history().filter(pl.col("version") == 13).row(0, named=True)
    assert (removed["records_removed"], removed["bytes_removed"]) == (3, 3)


@pytest.mark.parametrize(
    "loaded", [everything, lambda table: table.state().protocol], ids=["everything", "the protocol, as appends do"]
)
def test_a_table_that_is_followed_reads_no_checkpoint_it_has_passed(
    history: DeltaHistory, loaded: Callable[[DeltaTable], object]
) -> None:
    store = Watched(write_versions(history).address)
    table = DeltaTable(store)
    loaded(table)
    for version in range(13, 26):
        history.commit(info(operation="WRITE"), add(f"f{version}", records=version, size=version))
        if version == 20:
            history.checkpoint()
        store.calls.clear()
        assert table.refresh()
        loaded(table)
        assert store.calls == [f"list {version - 1:020d}", log_name(version)]
    whole = lv.open_table(history.address)
    columns = ["path", "size", "records", "deletion_vector"]
    assert table.files(columns=columns).sort("path").equals(whole.files(columns=columns).sort("path"))
    assert table.history().equals(whole.history())


def test_followed_or_opened_anew_a_table_is_the_same(history: DeltaHistory) -> None:
    write_versions(history, 4, checkpoint=2)
    table = lv.open_table(history.address)
    assert table.snapshot().num_files == 4
    history.commit(remove("f1"), add("./f2", size=7, records=9)).commit(metadata({"id": "long"}, properties={"k": "v"}))
    history.commit(add("f1", size=5, records=5), remove("f4")).commit(protocol(1, 3))
    assert table.refresh()
    anew = lv.open_table(history.address)
    for one in (table, anew):
        now = one.snapshot()
        assert sorted(now.files["path"]) == ["./f2", "f1", "f3"]
        assert (now.schema.names, now.properties, now.protocol.min_writer_version) == (["id"], {"k": "v"}, 3)
        assert now.num_records == 17
    assert table.history().equals(anew.history())
    assert table.snapshot(4).num_files == 4, "what was there before stays as it was"


def test_what_can_be_read_does_not_depend_on_what_was_read_before(history: DeltaHistory) -> None:
    write_versions(history, 4, checkpoint=3).write(log_name(3, "checkpoint.parquet"), b"garbage")
    table, other = lv.open_table(history.address), lv.open_table(history.address)
    assert table.snapshot(2).num_files == 2
    assert table.snapshot(4).num_files == other.snapshot(4).num_files == 4
    assert table.versions().equals(lv.open_table(history.address).versions())
    history.without(1)
    table = lv.open_table(history.address)
    assert table.snapshot(0).num_files == 0
    with pytest.raises(CorruptTableError, match=r"checkpoint 00000000000000000003\.checkpoint\.parquet cannot be read"):
        table.snapshot(4)
    reasons = dict(table.versions().select("version", pl.col("reason").is_null()).iter_rows())
    assert reasons == {0: True, 2: False, 3: False, 4: False}


def test_versions_tells_of_each_checkpoint_that_is_broken(history: DeltaHistory) -> None:
    write_versions(history, 9, checkpoint=2).checkpoint(5).checkpoint(7)
    for name in [f"f{i}" for i in range(1, 10)]:
        history.write(name, b"")
    history.write(log_name(5, "checkpoint.parquet"), b"PAR1 no Parquet PAR1").without(4)
    table = lv.open_table(history.address)
    readable = dict(table.versions().select("version", "readable").iter_rows())
    assert {v for v, is_readable in readable.items() if not is_readable} == {5, 6}
    for version, is_readable in readable.items():
        if is_readable:
            assert table.snapshot(version).num_files == version
        else:
            with pytest.raises(CorruptTableError):
                table.snapshot(version)
