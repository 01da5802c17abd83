"""S3 as a store: listed, read in parts, written to once, and opened as tables of both formats and of a catalog."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.iceberg.table import IcebergTable
from lakeview.model.config import Config
from lakeview.model.errors import AccessDeniedError, CommitConflictError, StoreUnavailableError, UnsupportedTableError
from lakeview.rows.parquet import read_task
from lakeview.storage import FsspecStorage, Storage, open_storage
from lakeview.storage.interface import READ_AHEAD
from tests.builders.actions import add, metadata, protocol
from tests.builders.catalogs import RestState, rest_catalog, table
from tests.builders.history import DeltaHistory
from tests.builders.s3 import REGION, Bucket, new_bucket, s3_server

pytestmark = pytest.mark.together


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """One server for all tests of this file."""
    with s3_server() as address:
        yield address


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """An empty bucket; nothing but storage options leads to it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr("lakeview.storage.remote.back_off", lambda *_: None)
    return new_bucket(endpoint)


@pytest.fixture
def store(bucket: Bucket) -> Storage:
    """A folder in it."""
    return open_storage(f"s3://{bucket.name}/t", options=bucket.options)


@pytest.fixture
def calls(store: Storage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests that the store sends, by the names that S3 has for them."""
    assert isinstance(store, FsspecStorage)
    return watch(store, monkeypatch)


def watch(store: FsspecStorage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests that a store sends from now on."""
    sent: list[str] = []
    send = store._fs._call_s3

    async def watched(method: str, *args: Any, **options: Any) -> Any:
        sent.append(method)
        return await send(method, *args, **options)

    monkeypatch.setattr(store._fs, "_call_s3", watched)
    return sent


def test_a_whole_file_costs_one_request(store: Storage, calls: list[str]) -> None:
    store.put("log/a", b"a" * 100_000)
    calls.clear()
    assert len(store.read("log/a")) == 100_000
    assert store.read_range("log/a", 10, 5) == b"aaaaa"
    assert calls == ["get_object"] * 2


def test_many_files_are_read_ahead_in_order_with_one_request_each(store: Storage, calls: list[str]) -> None:
    names = [f"log/{number:02d}" for number in range(40)]
    for name in names:
        store.put(name, name.encode())
    calls.clear()
    assert list(store.read_many(names)) == [name.encode() for name in names]
    assert store.read_all("log", ["03", "01"]) == [b"log/03", b"log/01"]
    assert calls == ["get_object"] * 42
    calls.clear()
    reader = store.read_many(names)
    assert next(reader) == b"log/00"
    reader.close()
    assert len(calls) <= READ_AHEAD


def test_a_file_that_is_gone_ends_reading_ahead(store: Storage) -> None:
    store.put("log/0", b"0")
    reader = store.read_many(["log/0", "log/1"])
    assert next(reader) == b"0"
    with pytest.raises(FileNotFoundError):
        next(reader)


def test_a_file_is_put_read_listed_and_deleted(store: Storage) -> None:
    for name in ("log/c", "log/a", "log/b", "log/inner/d", "top"):
        store.put(name, name.encode())
    assert store.list_from("log")["name"].to_list() == ["a", "b", "c"]
    assert store.list_from("log", "bb")["name"].to_list() == ["c"]
    assert store.list_from("log")["modified"].null_count() == 0
    assert store.walk().select("name", "size").rows() == [
        ("log/a", 5), ("log/b", 5), ("log/c", 5), ("log/inner/d", 11), ("top", 3),
    ]  # fmt: skip
    with store.open("log/inner/d") as file:
        file.seek(4)
        assert (file.read(5), file.tell(), file.read()) == (b"inner", 9, b"/d")
    store.delete("log/a")
    assert [store.exists(name) for name in ("log/a", "log/b", "log", "gone")] == [False, True, False, False]


def test_what_is_not_there_lists_as_nothing_and_is_not_read(store: Storage) -> None:
    assert store.list_from("nowhere").height == store.walk().height == 0
    store.delete("nowhere/x")
    for miss in (
        store.read,
        store.open,
        lambda name: store.read_range(name, 0, 1),
        lambda n: store.read_range(n, 0, 0),
    ):
        with pytest.raises(FileNotFoundError):
            miss("nowhere/x")


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [(0, 3, b"abc"), (2, 2, b"cd"), (4, 99, b"ef"), (6, 1, b""), (99, 1, b""), (2**62, 1, b""), (0, 0, b"")],
)
def test_a_part_of_a_file_is_read_and_less_where_it_ends(
    store: Storage, start: int, length: int, expected: bytes
) -> None:
    store.put("f", b"abcdef")
    assert store.read_range("f", start, length) == expected


def test_what_others_wrote_is_seen_at_once(store: Storage, bucket: Bucket) -> None:
    store.put("log/a", b"")
    assert not store.exists("log/b")
    assert store.list_from("log")["name"].to_list() == ["a"]
    bucket.client.put_object(Bucket=bucket.name, Key="t/log/b", Body=b"x")
    assert store.exists("log/b")
    assert store.list_from("log")["name"].to_list() == ["a", "b"]


def test_a_file_is_created_only_if_it_is_absent(store: Storage, bucket: Bucket) -> None:
    store.put_if_absent("log/0", b"first")
    with pytest.raises(FileExistsError):
        store.put_if_absent("log/0", b"second")
    assert store.read("log/0") == b"first"
    bucket.client.put_object(Bucket=bucket.name, Key="t/log/1", Body=b"another's")
    with pytest.raises(FileExistsError):
        store.put_if_absent("log/1", b"ours")
    assert store.read("log/1") == b"another's"


def test_of_many_threads_one_creates_a_file(store: Storage) -> None:
    won: list[int] = []
    start = threading.Barrier(4)

    def create(number: int) -> None:
        start.wait()
        try:
            store.put_if_absent("log/0", b"%d" % number)
        except FileExistsError:
            return
        won.append(number)

    threads = [threading.Thread(target=create, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.read("log/0") == b"%d" % won[0]
    assert len(won) == 1


def test_a_store_that_is_down_or_refuses_is_told(bucket: Bucket) -> None:
    away = bucket.options | {
        "client_kwargs": {"endpoint_url": "http://127.0.0.1:9", "region_name": REGION},
        "config_kwargs": {"retries": {"max_attempts": 1}},
    }
    with pytest.raises(StoreUnavailableError, match="f could not be read or written: EndpointConnectionError") as down:
        open_storage(f"s3://{bucket.name}/t", options=away).read("f")
    assert down.value.fix == "try again; check the address of the store and the network"
    nobody = open_storage(f"s3://{bucket.name}/t", options={"client_kwargs": bucket.options["client_kwargs"]})
    with pytest.raises(AccessDeniedError, match="no credentials were found for the store of f") as missing:
        nobody.put("f", b"")
    assert "s3cr3t" not in str(down.value) + str(missing.value)


# -- tables


def test_a_delta_table_is_read_and_found(bucket: Bucket, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "orders").commit(protocol(), metadata(), add("a.parquet"))
    history.commit(add("b.parquet"))
    address = bucket.copy(tmp_path / "orders", "lake/orders")
    found = lv.open_table(address, storage_options=bucket.options)
    assert (found.address, found.format, found.latest_version) == (address, "delta", 1)
    assert found.snapshot().num_files == 2
    assert lv.find_tables(f"s3://{bucket.name}", storage_options=bucket.options).rows() == [
        (address, "delta", "lake/orders")
    ]
    history.commit(add("c.parquet"))
    bucket.copy(tmp_path / "orders", "lake/orders")
    assert found.refresh()
    assert found.snapshot().num_files == 3


def test_a_delta_table_is_created_once(bucket: Bucket) -> None:
    address, schema = f"s3://{bucket.name}/new", pa.schema([("id", pa.int64())])
    created = lv.create_table(address, schema, storage_options=bucket.options)
    assert lv.open_table(address, storage_options=bucket.options).snapshot().schema == created.snapshot().schema
    with pytest.raises(CommitConflictError):
        lv.create_table(address, schema, storage_options=bucket.options)


def test_an_iceberg_table_is_read_with_its_rows(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = table(tmp_path / "orders", rows=3)
    address = bucket.copy(history.root, "orders")
    found = lv.open_table(address, storage_options=bucket.options)
    assert (found.address, found.format) == (address, "iceberg")
    assert isinstance(found, IcebergTable)
    assert isinstance(found.storage, FsspecStorage)
    calls = watch(found.storage, monkeypatch)
    assert sorted(found.scan().collect()["id"].to_list()) == [0, 1, 2]
    # the manifest list, three manifests and three data files, whose sizes are recorded
    assert dict(Counter(calls)) == {"get_object": 1 + 3 + 3}
    assert found.versions()["readable"].all()
    store = open_storage(address, options=bucket.options)
    rows = [b["id"].to_pylist() for task in found.tasks() for b in read_task(task, store)]
    assert sorted(rows) == [[0], [1], [2]]


def at_catalog(bucket: Bucket, tmp_path: Path) -> RestState:
    history = table(tmp_path / "orders", rows=2)
    address = bucket.copy(history.root, "wh/orders")
    return RestState([("sales",)], {("sales", "orders"): f"{address}/metadata/v3.metadata.json"})


def settings_of(bucket: Bucket) -> dict[str, str]:
    return {
        "s3.endpoint": bucket.endpoint, "s3.access-key-id": "an-id", "s3.secret-access-key": "s3cr3t",
        "s3.region": REGION, "s3.path-style-access": "true",
    }  # fmt: skip


def test_what_a_catalog_hands_out_opens_its_store(bucket: Bucket, tmp_path: Path) -> None:
    state = at_catalog(bucket, tmp_path)
    away = settings_of(bucket) | {"s3.endpoint": "http://127.0.0.1:9"}
    longer = f"s3://{bucket.name}/wh"
    ways: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        (settings_of(bucket), []),
        (away, [{"prefix": p, "config": c} for p, c in {"s3://": away, longer: settings_of(bucket)}.items()]),
    ]
    with rest_catalog(state) as uri:
        for state.config, state.credentials in ways:
            found = lv.open_table("catalog://prod/sales.orders", catalog={"uri": uri})
            assert sorted(found.scan().collect()["id"].to_list()) == [0, 1]
            assert not found.refresh()
            assert "s3cr3t" not in repr(found.snapshot())
        state.config = away
        with pytest.raises(AccessDeniedError, match="outside the allowed roots"):
            lv.open_table("catalog://prod/sales.orders", catalog={"uri": uri}, config=Config(roots=("s3://other",)))


def test_options_of_the_call_win_over_what_a_catalog_hands_out(bucket: Bucket, tmp_path: Path) -> None:
    state = at_catalog(bucket, tmp_path)
    state.config = settings_of(bucket) | {"s3.endpoint": "http://127.0.0.1:9"}
    with rest_catalog(state) as uri:
        found = lv.open_table("catalog://prod/sales.orders", catalog={"uri": uri}, storage_options=bucket.options)
        assert found.snapshot().num_files == 2


SIZES = {"the right size": 0, "too small": -1, "a part of it": -700_000, "too large": 1, "absurd": 2**62}


@pytest.mark.parametrize("wrong_by", SIZES.values(), ids=SIZES)
def test_a_file_of_a_recorded_size_is_read_as_the_store_has_it(store: Storage, calls: list[str], wrong_by: int) -> None:
    data = b"".join(b"%07d," % number for number in range(100_000))
    store.put("f", data)
    calls.clear()
    with store.open("f", len(data) + wrong_by) as file:
        assert (file.seek(0, 2), file.seek(-5, 2), file.read()) == (len(data), len(data) - 5, data[-5:])
        assert file.read(1) == b""
        file.seek(500_000)
        assert (file.read(100_000), file.tell()) == (data[500_000:600_000], 600_000)
        file.seek(0)
        assert file.read() == data
    if not wrong_by:
        assert set(calls) == {"get_object"}


def test_a_file_above_the_limit_is_refused_and_not_read_to_its_end(bucket: Bucket) -> None:
    store = open_storage(f"s3://{bucket.name}/t", options=bucket.options, config=Config(max_log_file_bytes=10))
    store.put("f", b"a" * 10)
    store.put("larger", b"a" * 1_000)
    store.put("empty", b"")
    assert (store.read("f"), store.read("empty")) == (b"a" * 10, b"")
    with pytest.raises(UnsupportedTableError, match="larger holds at least 11 bytes, more than the limit of 10"):
        store.read("larger")


def test_a_table_is_opened_listed_and_scanned_without_asking_for_sizes(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = lv.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]))
    for number in range(12):  # the tenth writes a checkpoint
        written.append(pa.table({"id": [number]}))
    found = lv.open_table(bucket.copy(tmp_path / "t", "t"), storage_options=bucket.options)
    assert isinstance(found, DeltaTable)
    assert isinstance(found.storage, FsspecStorage)
    calls = watch(found.storage, monkeypatch)

    def requests(action: Callable[[], object]) -> dict[str, int]:
        calls.clear()
        action()
        return dict(Counter(calls))

    # commits 10 to 12; the checkpoint for its footer, for protocol and metadata, and for columns of its files
    assert requests(lambda: found.snapshot().files) == {"get_object": 3 + 3}
    assert requests(found.history) == {"list_objects_v2": 1, "get_object": 10}  # the commits before
    # the files, and the checkpoint once more for their deletion vectors
    assert requests(lambda: found.scan().collect()) == {"get_object": 12 + 1}
