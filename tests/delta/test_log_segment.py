"""Which files of the log make a version: checkpoints whole and not, hints right and wrong, gaps, stray files."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.model.errors import CorruptTableError, LakeviewError, NotATableError, VersionNotFoundError
from lakeview.storage import Entry
from tests.builders.actions import add, info, metadata, protocol, remove, txn
from tests.builders.history import DeltaHistory, log_name, parquet_actions
from tests.builders.stores import FarStorage


def paths(table: lv.Table, version: int | None = None) -> list[str]:
    return sorted(table.snapshot(version).files["path"])


def ten_appends(history: DeltaHistory, last: int = 10) -> DeltaHistory:
    """Versions 0 to `last`: a table, and one file a version from 1 on."""
    history.create()
    for version in range(1, last + 1):
        history.write(f"f{version}", b"data").commit(add(f"f{version}", records=version))
    return history


def test_commits_alone_make_a_table(address: str) -> None:
    ten_appends(DeltaHistory(address), 3)
    table = lv.open_table(address)
    assert table.latest_version == 3
    assert paths(table) == ["f1", "f2", "f3"]
    assert paths(table, 1) == ["f1"]
    assert paths(table, 0) == []
    assert table.snapshot().num_records == 6


@pytest.mark.parametrize("parts", [None, 1, 3], ids=["in one file", "in one part", "in three parts"])
def test_a_checkpoint_stands_for_the_commits_before_it(address: str, parts: int | None) -> None:
    history = ten_appends(DeltaHistory(address))
    history.checkpoint(parts=parts).without(*range(10)).commit(add("f11", records=11), remove("f1"))
    table = lv.open_table(address)
    assert paths(table) == sorted(f"f{i}" for i in range(2, 12))
    assert table.snapshot().num_records == 65
    assert table.snapshot(10).num_files == 10
    assert table.snapshot().schema.names == ["id", "city"]
    assert table.snapshot().tombstones["path"].to_list() == ["f1"]


def test_a_table_lives_on_a_checkpoint_without_any_commit(history: DeltaHistory) -> None:
    ten_appends(history).checkpoint().without(*range(11))
    table = lv.open_table(history.address)
    assert (table.latest_version, table.snapshot().num_files) == (10, 10)
    assert table.history().is_empty()
    assert table.versions()["readable"].to_list() == [True]
    assert table.lifetimes()["added"].to_list() == [None] * 10


@pytest.mark.parametrize("missing", [1, 2, 3], ids=["the first part", "the middle part", "the last part"])
def test_an_incomplete_checkpoint_is_ignored_and_an_older_complete_one_used(
    history: DeltaHistory, missing: int
) -> None:
    ten_appends(history, 4).checkpoint(4)
    for version in range(5, 9):
        history.commit(add(f"f{version}", records=version))
    history.checkpoint(8, parts=3, write_parts=tuple({1, 2, 3} - {missing})).without(0, 1, 2, 3)
    assert paths(lv.open_table(history.address)) == [f"f{i}" for i in range(1, 9)]


def test_an_incomplete_checkpoint_alone_is_no_base(history: DeltaHistory) -> None:
    ten_appends(history, 4).checkpoint(parts=2, write_parts=(1,)).without(0, 1, 2)
    with pytest.raises(VersionNotFoundError) as caught:
        lv.open_table(history.address).snapshot()
    assert caught.value.kind == "versions-not-contiguous"
    assert "the log starts at version 3, and no checkpoint lies at or below 4" in caught.value.message
    assert caught.value.fix == "restore the log below version 3 from a backup: no version can be read without it"


@pytest.mark.parametrize(
    ("whole", "half"), [(2, 3), (3, 2)], ids=["the smaller set is whole", "the larger set is whole"]
)
def test_of_two_sets_of_parts_at_one_version_the_complete_one_counts(
    history: DeltaHistory, whole: int, half: int
) -> None:
    ten_appends(history).checkpoint(parts=whole).checkpoint(parts=half, write_parts=(1,)).without(*range(10))
    assert lv.open_table(history.address).snapshot().num_files == 10


def test_two_complete_checkpoints_at_one_version_do_not_double_its_files(history: DeltaHistory) -> None:
    ten_appends(history).checkpoint(parts=2).checkpoint(parts=3).checkpoint().without(*range(10))
    assert lv.open_table(history.address).snapshot().num_files == 10


HINTS: dict[str, object] = {
    "is not there": None,
    "is empty": b"",
    "is garbage": b"\x00\xff not json",
    "is half written": b'{"version":',
    "is a list": [10],
    "has no version": {"size": 3},
    "has a version in words": {"version": "ten"},
    "names an older checkpoint": {"version": 5, "size": 1},
    "names the newest checkpoint": {"version": 10, "size": 1},
    "names a version without a checkpoint": {"version": 7, "size": 1},
    "names a checkpoint that is gone": {"version": 3, "size": 1},
    "names a version beyond the latest": {"version": 9_999, "size": 1},
    "names a number beyond 64 bits": {"version": 10**30, "size": 1},
    "names the largest number of 64 bits": {"version": 2**63 - 1, "size": 1},
    "names a negative version": {"version": -1, "size": 1},
    "is nested a thousand deep": b"[" * 100_000,
    "knows more than we do": {"version": 10, "size": 1, "checksum": "?", "v2Checkpoint": {"sidecars": []}},
}


@pytest.mark.parametrize("hint", HINTS.values(), ids=[f"the hint {words}" for words in HINTS])
def test_a_hint_never_changes_what_is_read(history: DeltaHistory, hint: object) -> None:
    ten_appends(history, 12).checkpoint(5).checkpoint(10).without(*range(5))
    if hint is not None:
        history.hint(hint)
    table = DeltaTable(FarStorage(history.address))
    assert table.latest_version == 12
    assert table.snapshot().num_files == 12
    assert table.snapshot(5).num_files == 5
    assert table.snapshot(8).num_files == 8
    assert table.history().height == 8


def test_a_good_hint_saves_listing_the_whole_log(history: DeltaHistory) -> None:
    class StartLog(FarStorage):
        starts: list[str]

        def entries_from(self, folder: str, start: str = "") -> list[Entry]:
            self.__dict__.setdefault("starts", []).append(start)
            return super().entries_from(folder, start)

    ten_appends(history, 12).checkpoint(10).hint({"version": 10, "size": 1})
    store = StartLog(history.address)
    table = DeltaTable(store)
    assert store.starts == [f"{10:020d}"]
    assert table.files(columns=["path"]).height == 12
    assert store.starts == [f"{10:020d}"], "the latest files need nothing from before the hint"
    assert table.files(3, columns=["path"]).height == 3
    assert store.starts == [f"{10:020d}", ""], "an older version is listed for when it is asked for"


LINES = [protocol(), metadata(), add("f", records=1), txn("app", 4)]


def joined(separator: str = "\n", actions: list[dict[str, Any]] = LINES, indent: int | None = None) -> str:
    return separator.join(json.dumps(action, indent=indent) for action in actions)


COMMIT_TEXTS = {
    "has one action a line": joined(),
    "ends in a line break": joined() + "\n",
    "has Windows line ends": joined("\r\n"),
    "has blank lines": "\n\n" + joined("\n  \n\n") + "\n\n",
    "begins with a byte-order mark": "\ufeff" + joined(),
    "is pretty-printed": joined(indent=2),
    "is pretty-printed with a mark": "\ufeff" + joined(indent=2),
    "has all its actions on one line": joined(" "),
    "has unknown actions": joined(actions=[{"wish": {"path": 3}}, *LINES, {}]),
    "has unknown fields": joined(
        actions=[{kind: {**body, "mood": [1, {"x": None}]} for kind, body in action.items()} for action in LINES]
    ),
    "has null beside each action": joined(actions=[{**action, "commitInfo": None, "cdc": None} for action in LINES]),
}


@pytest.mark.parametrize("text", COMMIT_TEXTS.values(), ids=[f"a commit that {words}" for words in COMMIT_TEXTS])
def test_a_commit_is_read(history: DeltaHistory, text: str) -> None:
    history.raw_commit(text.encode())
    table = lv.open_table(history.address)
    assert paths(table) == ["f"]
    assert table.snapshot().num_records == 1
    assert table.snapshot().transactions["app_id"].to_list() == ["app"]
    assert table.history()["files_added"].to_list() == [1]
    assert {"protocol", "metaData", "add", "txn"} <= set(table.commit(0)["kind"])


BROKEN_COMMITS: dict[str, tuple[bytes, str]] = {
    "a line cut short": (b'{"add":{"path":"x"', "line 3"),
    "a word": (b"hello", "line 3"),
    "a number for a path": (b'{"add":{"path":3,"size":1}}', "line 3"),
    "an add without a path": (b'{"add":{"size":1}}', "line 3"),
    "an add without a size": (b'{"add":{"path":"x"}}', "line 3"),
    "a size beyond 64 bits": (b'{"add":{"path":"x","size":99999999999999999999}}', "line 3"),
    "a size that just exceeds 64 bits": (b'{"add":{"path":"x","size":9223372036854775808}}', "line 3"),
    "a time beyond 64 bits": (b'{"remove":{"path":"x","deletionTimestamp":-9223372036854775809}}', "line 3"),
    "a version of an application beyond 64 bits": (b'{"txn":{"appId":"a","version":18446744073709551616}}', "line 3"),
    "a lone surrogate": (b'{"add":{"path":"\\ud800","size":1}}', "line 3"),
    "bytes that are no UTF-8": (b'{"add":{"path":"\xff\xfe","size":1}}', "line 3"),
    "a partition value that is no text": (b'{"add":{"path":"x","size":1,"partitionValues":{"a":1}}}', "line 3"),
    "nesting without end": (b'{"add":' + b"[" * 50_000 + b"]" * 50_000 + b"}", "line 3"),
}


@pytest.mark.parametrize(("line", "place"), BROKEN_COMMITS.values(), ids=[f"with {words}" for words in BROKEN_COMMITS])
def test_a_broken_commit_is_named_with_its_line_and_leaves_the_rest_readable(
    history: DeltaHistory, line: bytes, place: str
) -> None:
    history.create().commit(add("f1", records=1))
    history.raw_commit(json.dumps(info(operation="WRITE")).encode() + b"\n\n" + line + b"\n")
    history.commit(add("f3", records=3))
    history.checkpoint(actions=[protocol(), metadata(), add("f1", records=1), add("f3", records=3)])
    history.commit(add("f4", records=4))
    table = lv.open_table(history.address)
    assert table.snapshot().num_records == 8, "a later checkpoint does not need it"
    assert paths(table, 1) == ["f1"], "nor do earlier versions"
    for _ in range(2):
        with pytest.raises(CorruptTableError) as caught:
            table.snapshot(2).files  # noqa: B018 (files load on first touch)
        assert caught.value.kind == "corrupt-commit"
        assert caught.value.message.startswith(f"commit 00000000000000000002.json cannot be read at {place}: ")
        assert caught.value.place == "00000000000000000002.json:3"
        assert caught.value.fix is not None
        commits = table.history()
        assert commits["version"].to_list() == [4, 3, 2, 1, 0]
        assert commits["files_added"].to_list() == [1, 1, None, 1, 0]
        assert commits["records_added"].to_list() == [4, 3, None, 1, 0]
    with pytest.raises(CorruptTableError):
        table.commit(2)
    assert table.schemas().height == 1
    readable = dict(table.versions().select("version", "reason").iter_rows())
    assert "commit 00000000000000000002.json cannot be read" in readable[2]


@pytest.mark.parametrize(
    "broken", [0, 1, 4, 5, 6], ids=["the first", "the second", "that of the checkpoint", "the one after it", "the last"]
)
def test_whichever_commit_is_broken_history_and_checkpoints_stay_readable(history: DeltaHistory, broken: int) -> None:
    ten_appends(history, 4).checkpoint(4).commit(add("f5")).commit(add("f6"))
    history.write(log_name(broken), b"{")
    table = lv.open_table(history.address)
    assert table.history()["version"].to_list() == [6, 5, 4, 3, 2, 1, 0]
    assert table.snapshot(4).num_files == 4
    assert table.snapshot(4).timestamp is not None
    readable = dict(table.versions().select("version", "readable").iter_rows())
    assert readable[4] is True
    assert readable[broken] is (broken == 4)


STRAY = [
    ".00000000000000000007.json.crc",
    "._00000000000000000007.json",
    "00000000000000000007.json.tmp",
    "00000000000000000007.crc",
    "0000000000000000007.json",
    "000000000000000000007.json",
    "00000000000000000001.00000000000000000002.compacted.json",
    "00000000000000000007.checkpoint.parquet.tmp",
    "00000000000000000007.checkpoint.1.1.parquet",
    "00000000000000000002.checkpoint.0000000000.0000000001.parquet",
    "00000000000000000002.checkpoint.0000000002.0000000001.parquet",
    "99999999999999999999.json",
    "99999999999999999999.checkpoint.parquet",
    "00000000000000000007.JSON",
    "info.txt",
    ".gitignore",
    "_staged_commits/00000000000000000007.0b1c5a6e-58a4-4a5f-8f3c-6d1d0f0f0f0f.json",
    "_commits/00000000000000000007.json",
    "00000000000000000008.json/inside",
]


def test_stray_files_in_the_log_are_no_part_of_it(history: DeltaHistory) -> None:
    ten_appends(history, 2)
    for name in STRAY:
        history.write(f"_delta_log/{name}", b"not of the protocol")
    table = lv.open_table(history.address)
    assert table.latest_version == 2
    assert paths(table) == ["f1", "f2"]
    assert table.history().height == 3
    assert table.refresh() is False


def test_a_name_in_the_log_that_is_no_utf8_is_passed_over(history: DeltaHistory) -> None:
    ten_appends(history, 1)
    for folder in ("_delta_log", "."):
        with open(os.fsencode(f"{history.address}/{folder}/") + b"\xff\xfe.json", "wb"):
            pass
    table = lv.open_table(history.address)
    assert paths(table) == ["f1"]
    assert table.versions().height == 2
    assert lv.find_tables(history.address).height == 1


def test_a_gap_above_the_checkpoint_names_the_missing_commit(history: DeltaHistory) -> None:
    ten_appends(history, 6).checkpoint(3).without(5)
    table = lv.open_table(history.address)
    assert paths(table, 4) == ["f1", "f2", "f3", "f4"]
    with pytest.raises(CorruptTableError) as caught:
        table.snapshot()
    assert caught.value.kind == "versions-not-contiguous"
    assert "commit 5 is missing from the log and no checkpoint lies between it and 6" in caught.value.message
    assert caught.value.fix == "restore 00000000000000000005.json from a backup, or ask for version 4"
    assert caught.value.place == "00000000000000000005.json"
    assert table.history()["version"].to_list() == [6, 4, 3, 2, 1, 0]


def test_a_gap_below_the_checkpoint_harms_only_what_lies_between(history: DeltaHistory) -> None:
    ten_appends(history, 6).checkpoint(4).without(2)
    table = lv.open_table(history.address)
    assert table.snapshot().num_files == 6
    assert table.snapshot(4).num_files == 4
    assert table.snapshot(1).num_files == 1
    with pytest.raises(CorruptTableError, match="commit 2 is missing from the log"):
        table.snapshot(3)


@pytest.mark.parametrize("version", [-1, 13, 10**18, 2**63, -(10**30)])
@pytest.mark.parametrize("checkpoint", [None, 10])
def test_a_version_that_is_not_there_is_told_with_the_range(
    history: DeltaHistory, version: int, checkpoint: int | None
) -> None:
    ten_appends(history, 12)
    if checkpoint is not None:  # what is listed begins there, and the log does not
        history.checkpoint(checkpoint)
    with pytest.raises(VersionNotFoundError) as caught:
        lv.open_table(history.address).snapshot(version)
    end, fix = ("ends at 12", "up to 12") if version > 12 else ("holds 0 to 12", "from 0 to 12")
    assert caught.value.message == f"version {version} of {history.address} is not in the log, which {end}"
    assert caught.value.fix == f"ask for a version {fix}"
    assert caught.value.kind == "version-not-found"


@pytest.mark.parametrize(
    ("version", "fix"),
    [
        (4, "ask for version 6, the oldest that can be read"),
        (13, "ask for a version up to 9"),
        (0, "ask for a version from 6 to 9"),
        (11, "restore 00000000000000000010.json from a backup, or ask for version 9"),
    ],
    ids=["before the oldest checkpoint", "after the log", "before the log", "after a gap"],
)
def test_the_advice_names_versions_that_can_be_read(history: DeltaHistory, version: int, fix: str) -> None:
    ten_appends(history, 12).checkpoint(6).without(0, 1, 2, 10)
    table = lv.open_table(history.address)
    with pytest.raises(LakeviewError) as caught:
        table.snapshot(version)
    assert caught.value.fix == fix
    for readable in re.findall(r"\b\d{1,2}\b(?!\.json)", fix):
        assert table.snapshot(int(readable)).version == int(readable)


@pytest.mark.parametrize("version", [-1, 13, 10**18, 10**30])
def test_the_actions_of_a_version_that_is_not_there_are_refused(history: DeltaHistory, version: int) -> None:
    ten_appends(history, 12)
    with pytest.raises(VersionNotFoundError, match="has no commit file for version"):
        lv.open_table(history.address).commit(version)


@pytest.mark.parametrize("huge", [10**18, 2**63 - 1], ids=["a quintillion", "the largest of 64 bits"])
@pytest.mark.parametrize("kind", ["json", "checkpoint.parquet"])
def test_an_absurd_version_number_costs_no_time(history: DeltaHistory, huge: int, kind: str) -> None:
    ten_appends(history, 2)
    rows = history.reconciled(2)
    history.write(log_name(huge, kind), b"{}" if kind == "json" else parquet_actions(rows))
    table = lv.open_table(history.address)
    assert table.latest_version == huge
    assert table.snapshot(2).num_files == 2
    if kind == "json":
        with pytest.raises(CorruptTableError, match="commit 3 is missing"):
            table.snapshot()
    else:
        assert table.snapshot().num_files == 2
    assert table.versions().height == 4
    assert table.refresh() is False
    table.lifetimes()
    table.schemas()


ABSENT: dict[str, tuple[list[dict[str, object]], str, str]] = {
    "no protocol": ([metadata(), add("f")], "missing-protocol", "has no protocol action"),
    "no metaData": ([protocol(), add("f")], "missing-metadata", "has no metaData action"),
}


@pytest.mark.parametrize(("actions", "kind", "words"), ABSENT.values(), ids=[f"with {w}" for w in ABSENT])
@pytest.mark.parametrize("base", ["commit", "checkpoint"])
def test_a_log_without_its_two_first_actions_is_corrupt(
    history: DeltaHistory, actions: list[dict[str, object]], kind: str, words: str, base: str
) -> None:
    history.commit(*actions)
    if base == "checkpoint":
        history.commit(add("g")).checkpoint().without(0, 1).commit(add("h"))
    table = lv.open_table(history.address)
    with pytest.raises(CorruptTableError) as caught:
        table.snapshot()
    assert caught.value.kind == kind
    assert words in caught.value.message
    assert caught.value.fix == "restore the first commit or a whole checkpoint from a backup"
    assert table.history().height == 1


def test_an_empty_log_is_no_table(history: DeltaHistory) -> None:
    history.write("_delta_log/_last_checkpoint", b'{"version":3,"size":1}').write("data.parquet", b"")
    with pytest.raises(NotATableError) as caught:
        lv.open_table(history.address)
    assert "its _delta_log holds neither commits nor a complete checkpoint" in caught.value.message


GARBAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "no Parquet": lambda _: b"PAR1 or not",
    "cut in half": lambda data: data[: len(data) // 2],
    "without its last byte": lambda data: data[:-1],
    "overwritten in the middle": lambda data: data[:40] + b"\xff" * 200 + data[240:],
    "without its footer's length": lambda data: data[:-8] + b"\xff\xff\xff\x7f" + data[-4:],
    "of other columns": lambda _: parquet_actions([], {"other": {"x": pa.int64()}}),
}


@pytest.mark.parametrize("spoil", GARBAGE.values(), ids=[f"a checkpoint {words}" for words in GARBAGE])
def test_a_broken_checkpoint_is_passed_over_where_commits_are_there_and_named_where_not(
    history: DeltaHistory, spoil: Callable[[bytes], bytes]
) -> None:
    ten_appends(history, 3)
    history.write(log_name(3, "checkpoint.parquet"), spoil(parquet_actions(history.reconciled(3))))
    history.commit(add("f4"))
    table = lv.open_table(history.address)
    assert paths(table, 2) == ["f1", "f2"]
    if spoil is not GARBAGE["of other columns"]:  # which is sound, and of no table
        assert paths(table, 4) == ["f1", "f2", "f3", "f4"]
    assert table.history().height == 5
    assert table.versions().height == 5
    table = lv.open_table(history.without(0, 1, 2, 3).address)
    with pytest.raises(CorruptTableError) as caught:
        table.snapshot().files  # noqa: B018 (files load on first touch)
    assert caught.value.kind in ("corrupt-checkpoint", "missing-protocol")
    assert table.history().height == 1
    assert table.versions().height == 2


@pytest.mark.slow
def test_every_byte_of_a_checkpoint_may_be_wrong(history: DeltaHistory) -> None:
    """Whatever a flipped byte does, it is a table or a designed error."""
    ten_appends(history, 2)
    data = parquet_actions(history.reconciled(2))
    name = log_name(2, "checkpoint.parquet")
    history.without(0, 1)
    for at in range(0, len(data), 61):
        history.write(name, data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        try:
            snapshot = lv.open_table(history.address).snapshot()
            assert snapshot.files.columns[0] == "path"
            assert snapshot.tombstones.height >= 0
        except LakeviewError:
            pass


def test_a_checkpoint_under_a_unique_name_is_a_base_like_any_other(history: DeltaHistory) -> None:
    ten_appends(history, 2)
    history.write(log_name(2, f"checkpoint.{uuid.uuid4()}.parquet"), parquet_actions(history.reconciled(2)))
    history.without(0, 1)
    assert paths(lv.open_table(history.address)) == ["f1", "f2"]
