"""V2 checkpoints in all their shapes, with sidecars whole, missing and hostile; and checkpoints made to exhaust."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeview as lv
from lakeview.delta.log.checkpoints import Checkpoint
from lakeview.delta.table import DeltaTable
from lakeview.model.config import Config
from lakeview.model.errors import AccessDeniedError, CorruptTableError, LakeviewError, UnsupportedTableError
from tests.builders.actions import Action, add, metadata, protocol, remove, txn
from tests.builders.history import CHECKPOINT_SHAPE, DeltaHistory, log_name, parquet_actions
from tests.builders.stores import FarStorage

UUID = "0b1c5a6e-58a4-4a5f-8f3c-6d1d0f0f0f0f"
FEATURES = {"readerFeatures": ["v2Checkpoint"], "writerFeatures": ["v2Checkpoint"]}
STATE: list[Action] = [protocol(3, 7, **FEATURES), metadata(properties={"k": "v"}), txn("app", 4)]
FILES: list[Action] = [add(f"f{i}", records=i) for i in range(1, 7)] + [remove("old")]
TOP_SHAPE: dict[str, dict[str, pa.DataType]] = {
    **CHECKPOINT_SHAPE,
    "checkpointMetadata": {"version": pa.int64(), "tags": pa.map_(pa.string(), pa.string())},
    "sidecar": {"path": pa.string(), "sizeInBytes": pa.int64(), "modificationTime": pa.int64()},
}
FILE_SHAPE = {kind: CHECKPOINT_SHAPE[kind] for kind in ("add", "remove")}


def lines(actions: list[Action]) -> bytes:
    return "".join(json.dumps(action) + "\n" for action in actions).encode()


def sidecar(path: str) -> Action:
    return {"sidecar": {"path": path, "sizeInBytes": 1, "modificationTime": 1}}


def write_history(
    history: DeltaHistory, *, name: str, sidecars: int = 0, paths: list[str] | None = None
) -> DeltaHistory:
    """Version 2 of a table, with a V2 checkpoint under this name and its files inline or in so many sidecars."""
    history.commit(*STATE[:2]).commit(*FILES[:3]).commit(*FILES[3:], STATE[2])
    recorded = paths or [f"part-{i}.parquet" for i in range(sidecars)]
    top: list[Action] = [{"checkpointMetadata": {"version": 2}}, *STATE]
    top += [sidecar(path) for path in recorded] if recorded else FILES
    for i in range(sidecars):
        data = parquet_actions(FILES[i::sidecars], FILE_SHAPE)
        history.write(f"_delta_log/_sidecars/part-{i}.parquet", data)
    history.write(log_name(2, name), lines(top) if name.endswith("json") else parquet_actions(top, TOP_SHAPE))
    return history.without(0, 1, 2).commit(add("f7", records=7), remove("f1"), version=3)


NAMES = {
    "JSON under a unique name": f"checkpoint.{UUID}.json",
    "Parquet under a unique name": f"checkpoint.{UUID}.parquet",
    "Parquet under the classic name": "checkpoint.parquet",
}


@pytest.mark.parametrize("sidecars", [0, 1, 3], ids=["no sidecar", "one sidecar", "three sidecars"])
@pytest.mark.parametrize("name", NAMES.values(), ids=list(NAMES))
def test_every_shape_is_read(address: str, name: str, sidecars: int) -> None:
    table = lv.open_table(write_history(DeltaHistory(address), name=name, sidecars=sidecars).address)
    old, now = table.snapshot(2), table.snapshot()
    assert sorted(old.files["path"]) == [f"f{i}" for i in range(1, 7)]
    assert (old.num_records, old.size_bytes) == (21, 600)
    assert sorted(now.files["path"]) == [f"f{i}" for i in range(2, 8)]
    assert now.num_records == 27
    assert sorted(now.tombstones["path"]) == ["f1", "old"]
    assert now.transactions.rows()[0][:2] == ("app", 4)
    assert now.properties == {"k": "v"}
    assert now.protocol.reader_features == ("v2Checkpoint",)


def test_sidecars_are_read_from_afar_at_once(history: DeltaHistory) -> None:
    store = FarStorage(write_history(history, name=NAMES["Parquet under a unique name"], sidecars=3).address)
    assert DeltaTable(store).snapshot().num_files == 6


@pytest.mark.parametrize(
    "recorded", ["part-0.parquet", "{root}/_delta_log/_sidecars/part-0.parquet", "part%2D0.parquet"],
    ids=["by its name", "by an absolute path", "percent-encoded"],
)  # fmt: skip
def test_a_sidecar_is_found_however_it_is_recorded(history: DeltaHistory, recorded: str) -> None:
    path = recorded.format(root=history.address)
    write_history(history, name="checkpoint.parquet", sidecars=1, paths=[path, path])
    assert lv.open_table(history.address).snapshot(2).num_files == 6, "named twice, it still counts once"


def test_a_missing_sidecar_is_named_and_makes_versions_unreadable(history: DeltaHistory) -> None:
    write_history(history, name="checkpoint.parquet", sidecars=2).remove("_delta_log/_sidecars/part-1.parquet")
    table = lv.open_table(history.address)
    assert table.snapshot().schema.names == ["id", "city"], "what it does not hold needs it not"
    with pytest.raises(CorruptTableError) as caught:
        table.files(columns=["path"])
    top = "00000000000000000002.checkpoint.parquet"
    assert caught.value.message == f"sidecar part-1.parquet of checkpoint {top} is missing"
    assert caught.value.fix == (
        "restore the file from a backup; if every commit is still there, deleting the checkpoint is enough"
    )
    reasons = dict(table.versions().select("version", "reason").iter_rows())
    assert reasons == dict.fromkeys((2, 3), "sidecar part-1.parquet of checkpoint 2 is missing")


OUTSIDE = {
    "climbs": "../00000000000000000002.checkpoint.parquet",
    "climbs far": "../../../../etc/passwd",
    "climbs in disguise": "..%2F..%2Fsecret.parquet",
    "lies in a folder": "deeper/part-0.parquet",
    "is the folder": "..",
}


@pytest.mark.parametrize("path", OUTSIDE.values(), ids=[f"a sidecar that {words}" for words in OUTSIDE])
@pytest.mark.parametrize("name", NAMES.values(), ids=list(NAMES))
def test_a_sidecar_outside_its_folder_is_refused(history: DeltaHistory, name: str, path: str) -> None:
    write_history(history, name=name, paths=[path])
    with pytest.raises(CorruptTableError, match="which lies outside _delta_log/_sidecars"):
        lv.open_table(history.address).files(columns=["path"])


@pytest.mark.parametrize("path", ["file:///etc/passwd", "/etc/passwd"])
def test_an_absolute_sidecar_is_opened_only_below_the_allowed_roots(history: DeltaHistory, path: str) -> None:
    write_history(history, name="checkpoint.parquet", paths=[path])
    with pytest.raises(AccessDeniedError, match="lies outside the table and the allowed roots"):
        lv.open_table(history.address).files(columns=["path"])


WITHOUT_PATH: dict[str, tuple[list[Action], str]] = {
    "an add": ([add("f1"), {"add": {**add("f2")["add"], "path": None}}], "one of its add actions has no path"),
    "a remove": ([{"remove": {**remove("f1")["remove"], "path": None}}], "one of its remove actions has no path"),
    "a sidecar": ([sidecar("part-0.parquet"), {"sidecar": {"path": None, "sizeInBytes": 1}}], "the sidecar None"),
}


@pytest.mark.parametrize(("actions", "words"), WITHOUT_PATH.values(), ids=list(WITHOUT_PATH))
def test_a_file_without_a_path_is_named_and_not_left_out(
    history: DeltaHistory, actions: list[Action], words: str
) -> None:
    write_history(history, name="checkpoint.parquet", sidecars=1)
    top = [{"checkpointMetadata": {"version": 2}}, *STATE, *actions]
    history.write(log_name(2, "checkpoint.parquet"), parquet_actions(top, TOP_SHAPE))
    table = lv.open_table(history.address)
    with pytest.raises(CorruptTableError, match=rf"{log_name(2, 'checkpoint.parquet')[11:]}.*{words}"):
        _ = table.snapshot(2).tombstones if words.count("remove") else table.files(2)


def test_a_checkpoint_that_names_itself_as_sidecar_is_not_followed_round(history: DeltaHistory) -> None:
    write_history(history, name="checkpoint.parquet", sidecars=1)
    loop = [*FILES, sidecar("part-0.parquet"), sidecar("part-1.parquet")]
    history.write("_delta_log/_sidecars/part-0.parquet", parquet_actions(loop, TOP_SHAPE))
    assert lv.open_table(history.address).snapshot(2).num_files == 6, "a sidecar holds adds and removes, nothing else"


def test_parts_and_sidecars_exclude_each_other(history: DeltaHistory) -> None:
    history.commit(*STATE[:2]).commit(*FILES)
    for part in (1, 2):
        data = parquet_actions([*STATE, sidecar("part-0.parquet")], TOP_SHAPE)
        history.write(log_name(1, f"checkpoint.{part:010d}.{2:010d}.parquet"), data)
    history.without(0, 1)
    with pytest.raises(CorruptTableError, match="is in 2 parts and names sidecars: one excludes the other"):
        lv.open_table(history.address).files(columns=["path"])


def test_a_thousand_sidecars_are_read_in_bounded_time(history: DeltaHistory) -> None:
    begun = time.process_time()
    paths = [f"part-{i}.parquet" for i in range(1_000)]
    write_history(history, name=NAMES["JSON under a unique name"], paths=paths)
    data = parquet_actions([], FILE_SHAPE)
    for path in paths:
        history.write(f"_delta_log/_sidecars/{path}", data)
    assert lv.open_table(history.address).snapshot().num_files == 1
    assert time.process_time() - begun < 60


BROKEN = {
    "a line cut short": b'{"protocol":{"minReaderVersion":3',
    "an add without a path": lines([*STATE, {"add": {"size": 1}}]),
    "an add whose size is text": lines([*STATE, {"add": {"path": "x", "size": "big"}}]),
    "a protocol that is a list": lines([{"protocol": [1]}, STATE[1]]),
    "bytes": b"\xff\xfe\x00",
    "nesting without end": b"[" * 100_000,
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=list(BROKEN))
def test_a_broken_json_checkpoint_is_a_designed_error(history: DeltaHistory, data: bytes) -> None:
    write_history(history, name=NAMES["JSON under a unique name"])
    history.write(log_name(2, NAMES["JSON under a unique name"]), data)
    table = lv.open_table(history.address)
    with pytest.raises(CorruptTableError) as caught:
        table.snapshot().files  # noqa: B018 (files load on first touch)
    assert caught.value.kind == "corrupt-checkpoint"
    assert f"checkpoint 00000000000000000002.checkpoint.{UUID}.json cannot be read" in caught.value.message


def test_a_json_checkpoint_beyond_the_limit_is_refused(history: DeltaHistory) -> None:
    write_history(history, name=NAMES["JSON under a unique name"])
    with pytest.raises(UnsupportedTableError, match="more than the limit of 300"):
        lv.open_table(history.address, config=Config(max_log_file_bytes=300)).snapshot()


# -- made to exhaust


def bomb(add_struct: pa.Array, **options: Any) -> bytes:
    table = pa.table({"add": add_struct})
    sink = BytesIO()
    pq.write_table(table, sink, compression="zstd", **options)
    return sink.getvalue()


def test_a_checkpoint_that_claims_more_rows_than_bytes_is_refused(history: DeltaHistory) -> None:
    rows = 2_000_000
    nothing = pa.StructArray.from_arrays([pa.nulls(rows, pa.string()), pa.nulls(rows, pa.int64())], ["path", "size"])
    data = bomb(nothing)
    assert len(data) < 1_000_000
    history.commit(*STATE[:2]).write(log_name(0, "checkpoint.parquet"), data).without(0)
    begun = time.process_time()
    with pytest.raises(CorruptTableError, match=r"claims 2,000,000 rows in [0-9,]+ bytes"):
        lv.open_table(history.address).files(columns=["path"])
    assert time.process_time() - begun < 10


@pytest.mark.slow
def test_a_dictionary_that_inflates_is_stopped(history: DeltaHistory) -> None:
    rows = 90_000
    long = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * 1_000_000]))
    data = bomb(pa.StructArray.from_arrays([long, pa.array([1] * rows)], ["path", "size"]))
    assert len(data) < 1_000_000
    history.commit(*STATE[:2]).write(log_name(0, "checkpoint.parquet"), data).commit(*STATE[:2])
    begun, before = time.process_time(), pa.total_allocated_bytes()
    with pytest.raises(UnsupportedTableError, match="inflates to more than") as caught:
        lv.open_table(history.address).files(columns=["path"])
    assert caught.value.kind == "too-large"
    assert pa.total_allocated_bytes() - before < 1 << 30
    assert time.process_time() - begun < 60


@pytest.mark.slow
def test_every_byte_of_a_json_top_file_may_be_wrong(history: DeltaHistory) -> None:
    name = log_name(2, NAMES["JSON under a unique name"])
    write_history(history, name=NAMES["JSON under a unique name"], sidecars=1)
    with open(f"{history.address}/{name}", "rb") as file:
        data = file.read()
    for at in range(0, len(data), 13):
        history.write(name, data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        with suppress(LakeviewError):
            assert lv.open_table(history.address).snapshot().files.height >= 0


DAMAGES: dict[str, Any] = {
    "a sidecar is missing": lambda history: history.remove("_delta_log/_sidecars/part-1.parquet"),
    "it is no Parquet file": lambda history: history.write(log_name(2, f"checkpoint.{UUID}.parquet"), b"PAR1 no PAR1"),
    "it is empty": lambda history: history.write(log_name(2, f"checkpoint.{UUID}.parquet"), b""),
}


@pytest.mark.parametrize("spoil", DAMAGES.values(), ids=list(DAMAGES))
def test_of_two_checkpoints_of_a_version_the_sound_one_is_read(history: DeltaHistory, spoil: Any) -> None:
    write_history(history, name=f"checkpoint.{UUID}.parquet", sidecars=2)
    history.checkpoint(2, actions=[*STATE, *FILES])
    spoil(history)
    table = lv.open_table(history.address)
    assert sorted(table.files()["path"]) == [f"f{i}" for i in range(2, 8)]
    assert table.snapshot(2).num_records == 21
    versions = table.versions(look=True)
    assert "checkpoint" not in str(versions["reason"].to_list())
    assert table.lifetimes().height == 7
    assert table.schemas().height == 1


def test_two_broken_checkpoints_of_a_version_are_an_error(history: DeltaHistory) -> None:
    write_history(history, name=f"checkpoint.{UUID}.parquet", sidecars=2)
    history.write(log_name(2, "checkpoint.parquet"), b"").remove("_delta_log/_sidecars/part-1.parquet")
    with pytest.raises(LakeviewError, match=r"part-1\.parquet"):
        lv.open_table(history.address).files()


def test_what_a_commit_removed_is_looked_for_in_the_sound_one_of_two_checkpoints(history: DeltaHistory) -> None:
    write_history(history, name=f"checkpoint.{UUID}.parquet", sidecars=2).write(log_name(2, "checkpoint.parquet"), b"")
    assert lv.open_table(history.address).history()["records_removed"].to_list() == [1]


def test_only_the_version_that_is_read_has_the_footers_of_its_two_checkpoints_read(
    history: DeltaHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.create()
    for version in range(1, 5):
        history.commit(add(f"f{version}", records=1)).checkpoint(version)
        data = parquet_actions([{"checkpointMetadata": {"version": version}}, *history.reconciled(version)], TOP_SHAPE)
        history.write(log_name(version, f"checkpoint.{UUID}.parquet"), data)
    checked_versions: set[int] = set()
    problem = Checkpoint.problem

    def note_version(checkpoint: Checkpoint) -> str | None:
        checked_versions.add(checkpoint.version)
        return problem(checkpoint)

    monkeypatch.setattr(Checkpoint, "problem", note_version)
    table = lv.open_table(history.address)
    assert table.history(1)["version"].to_list() == [4]
    assert table.snapshot(at=datetime(2999, 1, 1, tzinfo=UTC)).num_files == 4
    assert checked_versions == {4}
