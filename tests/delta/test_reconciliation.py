"""Actions of several commits to one state: the newest wins, whatever its spelling, with and without a checkpoint."""

from __future__ import annotations

import pickle
import threading
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.delta.log import checkpoint_files, checkpoint_parquet
from lakeview.delta.log.checkpoint_footer import Footer
from lakeview.delta.table import DeltaTable
from lakeview.model.frames import (
    COMMITS,
    DOMAIN_METADATA,
    FILES,
    LIFETIMES,
    SCHEMAS,
    TOMBSTONES,
    TRANSACTIONS,
    VERSIONS,
)
from tests.builders.actions import Action, add, info, metadata, protocol, remove, txn
from tests.builders.history import CHECKPOINT_SHAPE, DeltaHistory
from tests.builders.stores import FarStorage

WHERE = ["in commits", "across a checkpoint", "inside a checkpoint"]


def snapshot_after(history: DeltaHistory, before: list[Action], after: list[Action], where: str) -> lv.Snapshot:
    """Two commits, with a checkpoint behind the first, behind the second, or nowhere."""
    history.create().commit(*before)
    if where == "across a checkpoint":
        history.checkpoint().without(0, 1)
    history.commit(*after)
    if where == "inside a checkpoint":
        history.checkpoint().without(0, 1, 2)
    return lv.open_table(history.address).snapshot()


@pytest.mark.parametrize("where", WHERE)
def test_a_file_added_again_has_its_newest_size_statistics_and_tags(history: DeltaHistory, where: str) -> None:
    first = add("f", size=10, records=1, tags={"old": "1"})
    snapshot = snapshot_after(
        history, [first, add("g", size=5)], [add("f", size=20, records=7, tags={"new": None})], where
    )
    row = snapshot.files.filter(path="f").row(0, named=True)
    assert (row["size"], row["records"], row["tags"]) == (20, 7, '{"new": null}')
    assert snapshot.num_files == 2
    assert snapshot.tombstones.is_empty()


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("loaded", [[], ["size"]], ids=["nothing loaded", "some columns loaded"])
def test_files_and_tombstones_are_the_same_by_one_reading_of_the_commits_as_by_two(
    history: DeltaHistory, where: str, loaded: list[str]
) -> None:
    snapshot_after(history, [add("f"), add("g"), remove("h")], [remove("f"), add("i")], where)
    table, other = (lv.open_table(history.address) for _ in range(2))
    assert isinstance(table, DeltaTable)
    assert isinstance(other, DeltaTable)
    if loaded:
        other.state().adds(loaded)
    adds, removes = other.state().adds_and_removes()
    assert adds.sort("key").equals(table.state().adds([]).sort("key"))
    assert removes.sort("key").equals(table.state().removes(["modified"]).sort("key"))
    assert adds["key"].sort().to_list() == ["g", "i"]


@pytest.mark.parametrize("where", WHERE)
def test_statistics_that_a_newer_add_lacks_are_gone(history: DeltaHistory, where: str) -> None:
    assert snapshot_after(history, [add("f", records=3)], [add("f")], where).num_records is None


@pytest.mark.parametrize("where", WHERE)
def test_a_removed_file_becomes_a_tombstone_and_adding_it_again_undoes_that(history: DeltaHistory, where: str) -> None:
    snapshot = snapshot_after(history, [add("f"), add("g")], [remove("f", at=1_700_000_000_123, size=100)], where)
    assert snapshot.files["path"].to_list() == ["g"]
    assert snapshot.tombstones.rows() == [
        ("f", None, 100, datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC), True)
    ]
    history.commit(add("f", records=4))
    again = lv.open_table(history.address).snapshot()
    assert again.files["path"].sort().to_list() == ["f", "g"]
    assert again.tombstones.is_empty()


def test_a_file_that_a_checkpoint_holds_twice_is_one_file(history: DeltaHistory) -> None:
    history.create().commit(add("f", size=10, records=1), add("g", size=5, records=2))
    files = history.reconciled(1)
    history.checkpoint(actions=[*files, next(action for action in files if "add" in action)]).without(0, 1)
    table = lv.open_table(history.address)
    snapshot = table.snapshot()
    assert (snapshot.num_files, snapshot.size_bytes, snapshot.num_records) == (2, 15, 3)
    assert sorted(snapshot.files["path"]) == sorted(table.lifetimes()["path"]) == ["f", "g"]
    assert table.statistics().height == 2
    history.commit(remove("f"))
    assert lv.open_table(history.address).snapshot().files["path"].to_list() == ["g"]


SPELLINGS: dict[str, tuple[str, str]] = {
    "percent-encoded and not": ("a b", "a%20b"),
    "with needless encoding": ("part-1", "p%61rt%2D1"),
    "with and without a leading dot": ("./dir/f", "dir/f"),
    "with a dot inside": ("dir/./f", "dir/f"),
    "with a detour": ("dir/sub/../f", "dir/f"),
    "with a doubled slash": ("dir//f", "dir/f"),
    "relative and absolute": ("dir/f", "{root}/dir/f"),
    "relative and as file:/": ("dir/f", "file:{root}/dir/f"),
    "relative and as file:///": ("dir/f", "file://{root}/dir/f"),
    "relative and as file://localhost/": ("dir/f", "file://localhost{root}/dir/f"),
    "absolute and as FILE:///": ("{root}/dir/f", "FILE://{root}/dir/f"),
    "an absolute one elsewhere as two URIs": ("file:/elsewhere/f", "file:///elsewhere/f"),
    "of letters beyond ASCII": ("caf\u00e9", "caf%C3%A9"),
    "with a percent sign in the name": ("100%25", "100%25"),
    "bytes that are no UTF-8": ("x%FFy", "x%FFy"),
}


@pytest.mark.parametrize("swapped", [False, True], ids=["", "the other way round"])
@pytest.mark.parametrize("where", WHERE[:2])
@pytest.mark.parametrize(("one", "other"), SPELLINGS.values(), ids=SPELLINGS)
def test_two_spellings_of_one_path_are_one_file(
    history: DeltaHistory, one: str, other: str, where: str, swapped: bool
) -> None:
    one, other = (text.format(root=history.address) for text in ((other, one) if swapped else (one, other)))
    snapshot = snapshot_after(history, [add(one, records=1)], [remove(other)], where)
    assert snapshot.num_files == 0
    history.commit(add(one, records=2))
    assert lv.open_table(history.address).snapshot().num_records == 2


DIFFERENT: dict[str, tuple[str, str]] = {
    "by case": ("f", "F"),
    "by a plus and a blank": ("a+b", "a%20b"),
    "by being decoded once, not twice": ("a%2520b", "a%20b"),
    "by folder": ("a/f", "b/f"),
    "by bytes that are no UTF-8": ("x%FE", "x%FF"),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=[f"paths that differ {w}" for w in DIFFERENT])
def test_two_paths_are_two_files(history: DeltaHistory, one: str, other: str) -> None:
    assert snapshot_after(history, [add(one)], [remove(other)], "in commits").num_files == 1


def test_the_path_shown_is_the_recorded_one_decoded_once(history: DeltaHistory) -> None:
    recorded = ["a%20b", "p=x%252Fy/f", "./g", "caf%C3%A9", "a+b"]
    history.create().commit(*(add(p) for p in recorded))
    paths = lv.open_table(history.address).snapshot().files["path"].to_list()
    assert paths == ["a b", "p=x%2Fy/f", "./g", "caf\u00e9", "a+b"]


@pytest.mark.parametrize("where", WHERE)
def test_the_latest_version_of_an_application_wins_even_if_it_is_lower(history: DeltaHistory, where: str) -> None:
    snapshot = snapshot_after(history, [txn("a", 9), txn("b", 1, 1_700_000_000_000)], [txn("a", 2)], where)
    moment = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert sorted(snapshot.transactions.rows()) == [("a", 2, None), ("b", 1, moment)]


@pytest.mark.parametrize("where", WHERE)
def test_the_latest_protocol_and_metadata_win_whole(history: DeltaHistory, where: str) -> None:
    old = metadata({"a": "long"}, properties={"x": "1", "gone": "2"}, name="old")
    new = metadata({"b": "string"}, properties={"x": "3", "unset": None}, description="new")
    snapshot = snapshot_after(history, [old, protocol(1, 1)], [new, protocol(1, 4)], where)
    assert snapshot.schema.names == ["b"]
    assert snapshot.properties == {"x": "3"}
    assert (snapshot.name, snapshot.description) == (None, "new")
    assert snapshot.protocol.label == "reader 1 · writer 4"
    assert snapshot.id == "7f3a6b1e-0d0f-4a54-9a1f-2b1c5f9d6e01"
    assert snapshot.created == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_domains_are_shown_by_their_latest_configuration_until_removed(history: DeltaHistory) -> None:
    def domain(name: str, configuration: str, removed: bool = False) -> Action:
        return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": removed}}

    history.create().commit(domain("a", "{}"), domain("b", "1"))
    history.commit(domain("a", '{"x":1}'), domain("b", "", removed=True))
    assert lv.open_table(history.address).snapshot().domain_metadata.rows() == [("a", '{"x":1}')]


def test_change_files_and_unknown_actions_never_touch_the_file_set(history: DeltaHistory) -> None:
    history.create().commit(add("f"))
    history.commit({"cdc": {"path": "f", "size": 1, "partitionValues": {}, "dataChange": False}}, {"sidecar": {}})
    assert lv.open_table(history.address).snapshot().files["path"].to_list() == ["f"]


@pytest.mark.parametrize("where", WHERE[:2])
def test_a_file_is_identified_by_its_deletion_vector_as_well(history: DeltaHistory, where: str) -> None:
    """The add with the new vector may stand before the remove of the old one: never by path alone."""

    def vector(name: str, count: int) -> dict[str, object]:
        return {"storageType": "u", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": 9, "cardinality": count}

    snapshot_files = [add("f", records=10)]
    history.create().commit(*snapshot_files)
    if where == "across a checkpoint":
        history.checkpoint().without(0, 1)
    history.commit(add("f", records=10, deletionVector=vector("one", 2)), remove("f"))
    history.commit(add("f", records=10, deletionVector=vector("two", 3)), remove("f", deletionVector=vector("one", 2)))
    snapshot = lv.open_table(history.address).snapshot()
    assert snapshot.files.select("path", "records", "deleted_records", "deletion_vector").rows() == [
        ("f", 10, 3, "utwo@1")
    ]
    assert snapshot.num_records == 7


TWO_LEVEL = {
    **CHECKPOINT_SHAPE,
    "add": {
        **CHECKPOINT_SHAPE["add"],
        "partitionValues": pa.list_(pa.struct({"key": pa.string(), "value": pa.string()}.items())),
        "tags": pa.list_(pa.struct({"key": pa.string(), "value": pa.string()}.items())),
    },
}
LEAN = {
    "add": {k: v for k, v in CHECKPOINT_SHAPE["add"].items() if k not in ("tags", "stats", "dataChange")},
    "metaData": {k: v for k, v in CHECKPOINT_SHAPE["metaData"].items() if k not in ("name", "description")},
    "protocol": {k: v for k, v in CHECKPOINT_SHAPE["protocol"].items() if not k.endswith("Features")},
}
WIDE = {
    **{k: CHECKPOINT_SHAPE[k] for k in reversed(CHECKPOINT_SHAPE)},
    "add": {**CHECKPOINT_SHAPE["add"], "mood": pa.int64()},
    "wish": {"path": pa.string()},
}
LARGE = {
    **CHECKPOINT_SHAPE,
    "add": {**CHECKPOINT_SHAPE["add"], "path": pa.large_string(), "size": pa.int32(), "modificationTime": pa.int32()},
}


@pytest.mark.parametrize(
    ("shape", "tags"),
    [(None, True), (TWO_LEVEL, True), (LEAN, False), (WIDE, True), (LARGE, True)],
    ids=["as Spark writes it", "maps as lists of pairs", "columns left out", "columns we do not know", "other widths"],
)
def test_checkpoints_of_several_shapes_say_the_same(
    history: DeltaHistory, shape: dict[str, dict[str, pa.DataType]] | None, tags: bool
) -> None:
    pairs = shape is TWO_LEVEL
    values: dict[str, str | None] = {"city": "Rome"}
    tagged: dict[str, str | None] = {"k": "v", "none": None}

    def as_pairs(texts: dict[str, str | None]) -> object:
        return [{"key": k, "value": v} for k, v in texts.items()] if pairs else texts

    rows = [
        protocol(),
        metadata(partition_by=("city",), properties={"p": "1"}),
        add("f", partition=as_pairs(values), tags=as_pairs(tagged), modificationTime=1_000),
        add("g", partition=as_pairs({"city": None})),
    ]
    if shape is LARGE:
        rows[3]["add"]["modificationTime"] = 0
    history.commit(protocol()).checkpoint(actions=rows, shape=shape).without(0)
    snapshot = lv.open_table(history.address).snapshot()
    files = snapshot.files.sort("path")
    assert files["partition_text"].to_list() == ["city=Rome", "city=null"]
    assert files["tags"].to_list() == (['{"k": "v", "none": null}', None] if tags else [None, None])
    assert snapshot.properties == {"p": "1"}
    assert snapshot.transactions.is_empty()
    assert snapshot.tombstones.is_empty()


@pytest.mark.parametrize("texts", [{}, {"partitionValues": CHECKPOINT_SHAPE["add"]["partitionValues"]}])
def test_partition_values_that_a_checkpoint_has_as_values_alone_are_read(
    history: DeltaHistory, texts: dict[str, pa.DataType]
) -> None:
    values = {"d": date(2026, 3, 1), "t": datetime(2026, 3, 1, 8, 30, tzinfo=UTC), "b": True, "x": Decimal("1.50")}
    types = {"d": "date", "t": "timestamp", "b": "boolean", "x": "decimal(5,2)"}
    history.commit(protocol(), metadata({"id": "long", **types}, partition_by=tuple(types)))
    add_file = {**add("f", partition=None)["add"], "partitionValues_parsed": values}
    nothing = {**add("g", partition=None)["add"], "partitionValues_parsed": dict.fromkeys(values)}
    struct_type = pa.struct([("d", pa.date32()), ("t", pa.timestamp("us", "UTC")), ("b", pa.bool_()),
                             ("x", pa.decimal128(5, 2))])  # fmt: skip
    without = {name: type_ for name, type_ in CHECKPOINT_SHAPE["add"].items() if name != "partitionValues"}
    shape = {**CHECKPOINT_SHAPE, "add": {**without, **texts, "partitionValues_parsed": struct_type}}
    actions: list[Action] = [*history.actions[0], {"add": add_file}, {"add": nothing}]
    history.commit().checkpoint(actions=actions, shape=shape)
    files = lv.open_table(history.address).files()
    assert dict(files.select("path", "partition").iter_rows()) == {"f": values, "g": dict.fromkeys(values)}
    assert "t=2026-03-01T08:30:00.000000Z" in files["partition_text"][0], "no zone would be that of the writer"


def test_frames_have_their_declared_columns_when_there_is_nothing_in_them(history: DeltaHistory) -> None:
    history.create()
    table = lv.open_table(history.address)
    snapshot = table.snapshot()
    assert snapshot.files.schema == FILES
    assert snapshot.delete_files.schema == FILES
    assert snapshot.tombstones.schema == TOMBSTONES
    assert snapshot.transactions.schema == TRANSACTIONS
    assert snapshot.domain_metadata.schema == DOMAIN_METADATA
    assert table.lifetimes().schema == LIFETIMES
    assert table.history().schema == COMMITS
    assert table.versions().schema == VERSIONS
    assert table.schemas().schema == SCHEMAS
    assert (snapshot.num_files, snapshot.size_bytes, snapshot.num_records) == (0, 0, 0)


@pytest.mark.parametrize("base", ["commits", "a checkpoint"])
def test_frames_have_their_declared_columns_when_there_is_something(history: DeltaHistory, base: str) -> None:
    history.create(partition_by=("city",)).commit(
        add("f", partition={"city": "x"}, records=1),
        add("g", partition={"city": "y"}),
        txn("a", 1),
        info(operation="X"),
    ).commit(remove("g"))
    if base == "a checkpoint":
        history.checkpoint().without(0, 1)
    table = lv.open_table(history.address)
    snapshot = table.snapshot()
    names = list(FILES)
    assert snapshot.files.columns == [*names[:5], "partition", *names[5:]]
    assert {k: v for k, v in snapshot.files.schema.items() if k != "partition"} == dict(FILES)
    assert snapshot.tombstones.schema == TOMBSTONES
    assert snapshot.transactions.schema == TRANSACTIONS
    assert table.lifetimes().schema == LIFETIMES
    assert table.history().schema == COMMITS
    assert table.versions().schema == VERSIONS
    assert table.files(columns=["size", "path"]).columns == ["size", "path"]


def test_a_file_listing_refuses_a_column_it_does_not_have(history: DeltaHistory) -> None:
    history.create()
    with pytest.raises(lv.errors.InvalidRequestError, match="a file listing has no column stats") as caught:
        lv.open_table(history.address).files(columns=["path", "stats"])
    assert caught.value.kind == "unknown-column"
    assert caught.value.fix is not None
    assert caught.value.fix.startswith("choose from path, size, records")


def test_a_snapshot_travels_without_its_store(history: DeltaHistory) -> None:
    history.create().commit(add("f", records=3), txn("a", 1)).commit(remove("f"), add("g", records=4))
    store = FarStorage(history.address)
    store.secret = "s3cr3t-key"  # type: ignore[attr-defined]  # what a store may hold
    snapshot = DeltaTable(store).snapshot()
    data = pickle.dumps(snapshot)
    assert b"s3cr3t" not in data
    assert b"Storage" not in data
    copy = pickle.loads(data)
    history.remove("_delta_log/00000000000000000001.json")
    assert copy.files.equals(snapshot.files)
    assert copy.tombstones.equals(snapshot.tombstones)
    assert copy.transactions.equals(snapshot.transactions)
    assert (copy.num_records, copy.version, copy.schema) == (4, 2, snapshot.schema)


def test_a_snapshot_stays_as_it_was_while_the_table_goes_on(history: DeltaHistory) -> None:
    history.create().commit(add("f", records=3))
    table = lv.open_table(history.address)
    before = table.snapshot()
    history.commit(remove("f"))
    assert table.snapshot().version == 1, "newer versions are seen on refresh only"
    assert table.refresh() is True
    assert table.refresh() is False
    assert (before.version, before.files["path"].to_list()) == (1, ["f"])
    assert table.snapshot().num_files == 0


def test_a_refresh_costs_one_listing_and_history_after_it_the_new_commits(history: DeltaHistory) -> None:
    history.create()
    for version in range(1, 20):
        history.commit(add(f"f{version}", records=1))
    store = FarStorage(history.address)
    table = DeltaTable(store)
    table.history()
    history.commit(add("new1")).commit(add("new2"))
    store.requests.clear()
    assert table.refresh() is True
    assert dict(store.requests) == {"list": 1}
    assert table.history().height == 22
    assert store.requests["read"] == 2
    assert store.requests["list"] == 1


def test_opening_a_checkpointed_table_reads_only_what_follows_the_checkpoint(history: DeltaHistory) -> None:
    history.create()
    for version in range(1, 13):
        history.commit(add(f"f{version}", records=1))
    history.checkpoint(10).hint({"version": 10, "size": 12})
    store = FarStorage(history.address)
    assert DeltaTable(store).files(columns=["path"]).height == 12
    assert store.requests["read"] == 3, "the hint and two commits"
    assert store.requests["list"] == 1


def test_paths_of_a_checkpoint_are_decoded_whichever_batch_is_done_last(
    history: DeltaHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.create().commit(add("plain"), add("a%20b")).checkpoint().without(0, 1)
    look, end, odd_is_known = checkpoint_files.Spelling.look, checkpoint_files._end, threading.Event()

    def looked(self: checkpoint_files.Spelling, paths: pa.Array) -> None:
        look(self, paths)
        if paths.to_pylist() == ["a%20b"]:
            odd_is_known.set()

    def ended(paths: pa.Array) -> int:  # in the midst of a look
        assert paths.to_pylist() != ["plain"] or odd_is_known.wait(10)
        return end(paths)

    monkeypatch.setattr(checkpoint_files.Spelling, "look", looked)
    monkeypatch.setattr(checkpoint_files, "_end", ended)
    monkeypatch.setattr(checkpoint_files, "_FEW_PATHS", -1)
    monkeypatch.setattr(Footer, "batch_rows", lambda _self, _most: 1)
    monkeypatch.setattr(checkpoint_parquet, "_BATCH_ROWS", 1)
    assert lv.open_table(history.address).snapshot().files["path"].to_list() == ["plain", "a b"]
