"""Large commits come in pieces: together they are the commit, none cuts an action, and all who read them agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lakeview as lv
from lakeview.delta.log import table_log
from lakeview.model.config import Config
from lakeview.model.errors import CorruptTableError
from tests.builders.actions import Action, add, info, metadata, protocol, remove
from tests.builders.history import DeltaHistory, log_name
from tests.builders.opening import open_delta_table


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits of a few lines count as large."""
    monkeypatch.setattr(table_log, "_PIECE_BYTES", 300)
    monkeypatch.setattr(table_log, "_READ_BYTES", 1000)


def write_history(folder: Path) -> DeltaHistory:
    """The head in the middle of a large commit, then a small one, then a large one that removes and adds again."""
    history = DeltaHistory(folder)
    adds: list[Action] = [add(f"a{i}", records=i) for i in range(20)]
    history.commit(info(operation="CREATE"), *adds[:10], protocol(), metadata(), *adds[10:])
    history.commit(add("b", records=1))
    return history.commit(*(remove(f"a{i}") for i in range(8)), *(add(f"a{i}", records=50) for i in range(3)))


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("read_bytes", [500, 1000, 100_000])
def test_pieces_are_whole_lines_and_add_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newest_first: bool, read_bytes: int
) -> None:
    monkeypatch.setattr(table_log, "_READ_BYTES", read_bytes)
    log = open_delta_table(write_history(tmp_path)).log
    lines: dict[int, list[bytes]] = {}
    for version, piece in log.each_piece([2, 1, 0], newest_first=newest_first):
        lines.setdefault(version, []).append(piece)
    assert list(lines) == [2, 1, 0]
    for version, pieces in lines.items():
        together = pieces[::-1] if newest_first else pieces
        assert b"".join(together) == log.commit_bytes(version)
        assert all(json.loads(line) for piece in pieces for line in piece.splitlines())
    assert [len(lines[v]) > 3 for v in (0, 1, 2)] == [True, False, True]


def test_a_pretty_printed_commit_is_cut_between_its_actions(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path)
    actions = [protocol(), metadata(), *(add(f"a{i}", partition={"x": "1"}) for i in range(20))]
    history.raw_commit("\n".join(json.dumps(action, indent=2) for action in actions).encode())
    assert sorted(open_delta_table(history).snapshot().files["path"]) == sorted(f"a{i}" for i in range(20))


def test_a_line_longer_than_a_piece_stays_whole(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path).create()
    history.commit(add("a"), add("b", tags={"k": "x" * 5000}), add("c"))
    table = open_delta_table(history)
    for newest_first in (False, True):
        pieces = [piece for _, piece in table.log.each_piece([1], newest_first=newest_first)]
        assert sorted(b"".join(pieces).splitlines()) == sorted(table.log.commit_bytes(1).splitlines())
    assert sorted(table.snapshot().files["path"]) == ["a", "b", "c"]


@pytest.mark.parametrize("read_bytes", [500, 100_000], ids=["read in ranges", "read at once"])
def test_a_large_commit_that_is_empty_by_now_is_one_without_actions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_bytes: int
) -> None:
    monkeypatch.setattr(table_log, "_READ_BYTES", read_bytes)
    history = DeltaHistory(tmp_path).create()
    history.commit(*(add(f"a{i}", records=i) for i in range(20))).commit(add("b", records=1))
    table = open_delta_table(history)
    history.write(log_name(1), b"")
    for newest_first in (False, True):
        pieces = list(table.log.each_piece([2, 1, 0], newest_first=newest_first))
        assert [(version, len(data)) for version, data in pieces if version == 1] == [(1, 0)]
    assert dict(table.log.definitions([2, 1]))[1] == (None, None)
    assert table.schemas()["version"].to_list() == [0]
    assert table.files()["path"].to_list() == ["b"]


@pytest.mark.parametrize("checkpoint", [None, 0, 1], ids=["commits alone", "checkpoint 0", "checkpoint 1"])
def test_newest_first_gives_the_live_files_backwards(tmp_path: Path, checkpoint: int | None) -> None:
    history = write_history(tmp_path)
    if checkpoint is not None:
        history.checkpoint(checkpoint)
    columns = ["size", "records", "stats", "partition_values"]
    state = open_delta_table(history).state()
    expected = state.adds(columns)
    rows_found = [row for part in state.newest_first(columns) for row in part.select(expected.columns).iter_rows()]
    assert rows_found == expected.rows()[::-1]
    assert len(rows_found) == 16


def test_history_of_commits_in_pieces_is_complete(tmp_path: Path) -> None:
    table = open_delta_table(write_history(tmp_path))
    assert table.history()["operation"].to_list() == [None, None, "CREATE"]
    assert table.schemas()["version"].to_list() == [0]
    assert table.snapshot().num_records == sum(range(8, 20)) + 151


def test_a_broken_line_is_counted_from_the_beginning_of_its_commit(tmp_path: Path) -> None:
    lines = "".join(json.dumps(add(f"a{i}")) + "\n" for i in range(20))
    history = DeltaHistory(tmp_path).create().raw_commit(lines.encode() + b'{"add":7}\n')
    with pytest.raises(CorruptTableError, match="at line 21"):
        open_delta_table(history).state().adds([])
    with pytest.raises(CorruptTableError, match="at line 21"):
        list(open_delta_table(history).state().newest_first([]))


def test_a_large_commit_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path).create().commit(*(add(f"a{i}") for i in range(20)))
    table = lv.open_table(history.address, config=Config(max_log_file_bytes=1500))
    with pytest.raises(lv.errors.UnsupportedTableError, match="more than the limit of 1,500"):
        table.files(columns=["path"])
