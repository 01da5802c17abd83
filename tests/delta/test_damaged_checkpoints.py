"""A checkpoint that is damaged inside its pages: its footer is sound, and only decoding a column shows it."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

import lakeview as lv
from lakeview.delta.log.checkpoint_footer import corrupt_checkpoint
from lakeview.delta.log.checkpoints import Checkpoint
from lakeview.delta.log.replay import Replay
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.checkpoint import order
from lakeview.model.errors import CorruptTableError
from tests.builders.actions import add, remove, txn
from tests.builders.history import DeltaHistory, log_name, parquet_actions

NEWEST = log_name(7, "checkpoint.parquet")
UNIQUE = log_name(7, "checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet")
ALL_FILES = [f"f{version}" for version in range(2, 7)]


@pytest.fixture
def history(tmp_path: Path) -> DeltaHistory:
    """Versions 0 to 8: f1 to f6 are added by versions 1 to 6, version 7 removes f1, version 8 adds f8; version 1
    records a transaction. There is a checkpoint of version 7."""
    history = DeltaHistory(tmp_path / "t").create().commit(add("f1", records=1), txn("job", 5))
    for version in range(2, 7):
        history.commit(add(f"f{version}", records=version))
    return history.commit(remove("f1")).checkpoint(7).commit(add("f8", records=8))


def damage(history: DeltaHistory, name: str, *columns: str) -> None:
    """Overwrite the pages of these columns of a checkpoint; its footer stays as it is."""
    path = Path(history.address) / name
    data = bytearray(path.read_bytes())
    group = pq.ParquetFile(path).metadata.row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    for chunk in (chunk for chunk in chunks if chunk.path_in_schema in columns):
        start = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
        data[start : start + chunk.total_compressed_size] = b"\xee" * chunk.total_compressed_size
    path.write_bytes(data)


PARTS: dict[str, tuple[str, Callable[[lv.Table], object], object]] = {
    "files": ("add.path", lambda t: sorted(t.files(columns=["path"])["path"]), [*ALL_FILES, "f8"]),
    "statistics": ("add.stats", lambda t: sorted(t.statistics()["_path"]), [*ALL_FILES, "f8"]),
    "counts of rows": ("add.stats", lambda t: t.snapshot().num_records, 28),
    "protocol": ("protocol.minReaderVersion", lambda t: t.snapshot().protocol.min_reader_version, 1),
    "schema": ("metaData.schemaString", lambda t: t.snapshot().schema.names, ["id", "city"]),
    "transactions": ("txn.appId", lambda t: t.snapshot().transactions["version"].to_list(), [5]),
    "tombstones": ("remove.path", lambda t: t.snapshot().tombstones["path"].to_list(), ["f1"]),
}


def with_two_older(history: DeltaHistory) -> None:
    history.checkpoint(3).checkpoint(5).without(0, 1, 2)
    damage(history, log_name(5, "checkpoint.parquet"), *(column for column, *_ in PARTS.values()))


WAYS: dict[str, Callable[[DeltaHistory], object]] = {
    "the commits from 0 on": lambda history: history,
    "an older checkpoint and commits": lambda history: history.checkpoint(4).without(0, 1, 2, 3, 4),
    "the older of two checkpoints, as the other is damaged too": with_two_older,
}


@pytest.mark.parametrize("find_way", WAYS.values(), ids=list(WAYS))
@pytest.mark.parametrize(("column", "ask", "answer"), PARTS.values(), ids=list(PARTS))
def test_a_version_is_read_along_another_segment(
    history: DeltaHistory, column: str, ask: Callable[[lv.Table], Any], answer: object, find_way: Callable[..., object]
) -> None:
    find_way(history)
    damage(history, NEWEST, column)
    history.hint({"version": 7, "size": 8})
    assert ask(lv.open_table(history.address)) == answer


@pytest.mark.parametrize(("column", "ask", "answer"), PARTS.values(), ids=list(PARTS))
def test_a_version_is_read_along_its_other_checkpoint(
    history: DeltaHistory, column: str, ask: Callable[[lv.Table], Any], answer: object
) -> None:
    history.write(UNIQUE, parquet_actions(history.reconciled(7))).without(*range(8))
    damage(history, UNIQUE, column)  # the name that is preferred
    assert ask(lv.open_table(history.address)) == answer


@pytest.mark.parametrize(("column", "ask", "answer"), PARTS.values(), ids=list(PARTS))
def test_without_another_way_the_error_names_the_checkpoint(
    history: DeltaHistory, column: str, ask: Callable[[lv.Table], Any], answer: object
) -> None:
    history.checkpoint(4).without(*range(5))
    damage(history, NEWEST, column)
    damage(history, log_name(4, "checkpoint.parquet"), column)
    table = lv.open_table(history.address)
    for _ in range(2):
        with pytest.raises(CorruptTableError) as caught:
            ask(table)
        assert caught.value.kind == "corrupt-checkpoint"
        assert caught.value.place == NEWEST.rpartition("/")[2]


def test_what_is_not_damaged_is_read_where_there_is_no_other_way(history: DeltaHistory) -> None:
    history.without(*range(8))
    damage(history, NEWEST, "add.stats")
    table = lv.open_table(history.address)
    for _ in range(2):
        with pytest.raises(CorruptTableError):
            table.statistics()
        assert sorted(table.files(columns=["path"])["path"]) == [*ALL_FILES, "f8"]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Version -> how often file actions were read from its checkpoint."""
    reads = Counter[int]()
    adds = Checkpoint.adds

    def count(checkpoint: Checkpoint, *args: Any) -> Any:
        reads[checkpoint.version] += 1
        return adds(checkpoint, *args)

    monkeypatch.setattr(Checkpoint, "adds", count)
    return reads


def test_a_damaged_checkpoint_is_read_once(history: DeltaHistory, reads: Counter[int]) -> None:
    damage(history, NEWEST, "add.path")
    table = lv.open_table(history.address)
    for version in (8, 7, 8, None):
        assert len(table.files(version, columns=["path"])) == (5 if version == 7 else 6)
    history.commit(add("f9"))
    assert table.refresh()
    assert len(table.files()) == 7
    assert reads == {7: 1}


def test_the_doctor_names_it_and_every_version_is_readable(history: DeltaHistory) -> None:
    damage(history, NEWEST, "add.path")
    table = lv.open_table(history.address)
    assert "checkpoint-unreadable" in {finding.id for finding in table.check()}
    for file in ("f1", *ALL_FILES, "f8"):
        history.write(file, b"")
    assert table.versions()["readable"].all()


FOOTERS = {"empty": b"", "no Parquet": b"PAR1 no PAR1"}


@pytest.mark.parametrize("data", FOOTERS.values(), ids=list(FOOTERS))
def test_versions_that_a_broken_checkpoint_does_not_stand_for_are_readable(history: DeltaHistory, data: bytes) -> None:
    for file in ("f1", *ALL_FILES, "f8"):
        history.write(file, b"")
    history.write(NEWEST, data)
    assert lv.open_table(history.address).versions()["readable"].all()
    history.without(5)
    versions = lv.open_table(history.address).versions()
    reasons = dict(versions.select("version", "reason").iter_rows())
    assert {version for version, reason in reasons.items() if reason is None} == set(range(5))
    assert reasons[6] == "commit 5 is missing from the log"
    history.without(6, 7)
    reasons = dict(lv.open_table(history.address).versions().select("version", "reason").iter_rows())
    assert str(reasons[7]).startswith("checkpoint 00000000000000000007.checkpoint.parquet cannot be read")
    assert reasons[8] == reasons[7]


@pytest.mark.parametrize("column", ["add.path", "add.size", "add.stats", "remove.path", "txn.appId"])
def test_a_new_checkpoint_is_written_from_another_segment(history: DeltaHistory, column: str) -> None:
    damage(history, NEWEST, column)
    table = lv.open_table(history.address)
    assert isinstance(table, DeltaTable)
    assert table.checkpoint(8) == 8
    history.without(*range(9))
    again = lv.open_table(history.address)
    assert sorted(again.files()["path"]) == [*ALL_FILES, "f8"]
    assert again.snapshot().num_records == 28


def leave_while(reading: Iterator[pl.DataFrame], state: Replay) -> list[str]:
    """The paths of what is read, while another reader of the state leaves its checkpoint after the first piece."""
    paths = list(next(reading)["path"])
    with suppress(CorruptTableError):
        state.adds(["stats"])
    return sorted(paths + [path for piece in reading for path in piece["path"]])


def test_what_is_read_in_pieces_is_of_one_segment_while_another_reader_leaves_the_checkpoint(
    history: DeltaHistory,
) -> None:
    damage(history, NEWEST, "add.stats")
    table = lv.open_table(history.address)
    assert isinstance(table, DeltaTable)
    state = table.state()
    assert leave_while(state.newest_first([]), state) == [*ALL_FILES, "f8"]
    assert state.segment.checkpoint is None


def test_no_sound_checkpoint_is_taken_for_the_one_that_another_reader_has_left(history: DeltaHistory) -> None:
    history.checkpoint(4).without(0, 1, 2, 3, 4)
    damage(history, NEWEST, "add.stats")
    table = lv.open_table(history.address)
    assert isinstance(table, DeltaTable)
    state = table.state()
    assert leave_while(state.newest_first(["stats"]), state) == [*ALL_FILES, "f8"]
    assert not table.log.is_damaged(table.log.checkpoints()[0])


@pytest.mark.parametrize("few_bytes", [0, 1 << 20], ids=["of many actions", "of few actions"])
def test_a_checkpoint_is_written_of_one_segment_while_another_reader_leaves_its_own(
    history: DeltaHistory, monkeypatch: pytest.MonkeyPatch, few_bytes: int
) -> None:
    monkeypatch.setattr(order, "_FEW_BYTES", few_bytes)
    table = lv.open_table(history.address)
    assert isinstance(table, DeltaTable)
    small_tail, errors = Replay.small_tail, [corrupt_checkpoint("of a column that no writer reads", "")]

    def leave_meanwhile(state: Replay, columns: list[str]) -> pl.DataFrame | None:
        tail = small_tail(state, columns)
        while errors:
            state.leave_checkpoint(errors.pop())
        return tail

    monkeypatch.setattr(Replay, "small_tail", leave_meanwhile)
    assert table.checkpoint(8) == 8
    assert sorted(lv.open_table(history.without(*range(9)).address).files()["path"]) == [*ALL_FILES, "f8"]


def test_a_vacuum_reads_tombstones_along_another_segment(history: DeltaHistory) -> None:
    damage(history, NEWEST, "remove.path")
    table = lv.open_table(history.address)
    assert isinstance(table, DeltaTable)
    for file in ("f1", *ALL_FILES, "f8", "unused"):
        history.write(file, b"")
        os.utime(Path(history.address) / file, (0, 0))
    assert table.vacuum()["path"].to_list() == ["f1", "unused"]


def test_after_many_damaged_checkpoints_the_commits_are_read_from_the_first(
    tmp_path: Path, reads: Counter[int]
) -> None:
    history = DeltaHistory(tmp_path / "t").create()
    for version in range(1, 21):
        history.commit(add(f"f{version}")).checkpoint(version)
        damage(history, log_name(version, "checkpoint.parquet"), "add.path")
    assert len(lv.open_table(history.address).files()) == 20
    assert sorted(reads) == list(range(13, 21))


def test_a_thousand_broken_checkpoints_of_the_same_versions_are_passed_over(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create().commit(add("f1"))
    folder = Path(history.address) / "_delta_log"
    for number in range(1_200):
        (folder / f"{1:020d}.checkpoint.80a083e8-7026-4e79-81be-{number:012d}.parquet").write_bytes(b"")
    assert len(lv.open_table(history.address).files()) == 1


def test_a_checkpoint_that_proved_damaged_is_written_again_and_then_read(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create().commit(add("f1", records=1)).commit(add("f2", records=2))
    damage(history.checkpoint(2), log_name(2, "checkpoint.parquet"), "add.path")
    table = lv.open_table(history.address)
    assert isinstance(table, DeltaTable)
    assert len(table.files()) == 2
    assert table.checkpoint(2) == 2
    table.refresh()
    assert not table.log.is_damaged(table.log.checkpoints()[0])
    history.without(0, 1, 2)
    assert sorted(lv.open_table(history.address).files()["path"]) == ["f1", "f2"]
