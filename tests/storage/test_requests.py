"""How many requests a store is sent: a file one, a listing one, and a table no more than its log makes necessary."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.delta.log.checkpoint_parquet import ParquetActions
from lakeview.storage import Storage, open_storage
from lakeview.storage.byte_cache import SmallFiles
from lakeview.storage.interface import FILES_AHEAD
from lakeview.storage.object_files import TAIL
from tests.builders.catalogs import table
from tests.builders.object_server import ObjectServer, object_server


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectServer]:
    """One server for all tests of this file."""
    with object_server() as server_state:
        yield server_state


@pytest.fixture
def store(server: ObjectServer) -> Storage:
    """An empty folder of an S3 bucket."""
    return open_storage(f"{server.bucket()}/t", options=server.options("s3"))


@pytest.fixture
def requests(server: ObjectServer) -> Callable[[Callable[[], object]], dict[str, int]]:
    """The requests of an action, by kind."""

    def count(action: Callable[[], object]) -> dict[str, int]:
        server.requests.clear()
        action()
        return server.count()

    return count


Count = Callable[[Callable[[], object]], dict[str, int]]


def test_a_file_and_a_listing_cost_one_request(store: Storage, requests: Count) -> None:
    store.put("log/a", b"a" * 100_000)
    assert requests(lambda: store.read("log/a")) == {"GET": 1}
    assert requests(lambda: store.read_range("log/a", 10, 5)) == {"GET": 1}
    assert requests(lambda: store.open("log/a", 100_000).read()) == {"GET": 1}
    assert requests(lambda: store.open("log/a").read()) == {"GET": 1}
    assert requests(lambda: store.exists("log/a")) == {"HEAD": 1}
    assert requests(lambda: store.list_from("log")) == {"LIST": 1}
    assert requests(store.walk) == {"LIST": 1}
    assert requests(store.holds_files) == {"LIST": 1}


def test_the_end_of_a_long_log_is_listed_by_one_request(store: Storage, requests: Count, server: ObjectServer) -> None:
    bucket = server.buckets[store.root.split("/")[2]]
    store.put("log/0", b"")
    for number in range(3_000):
        bucket[f"t/log/{number:020d}.json"] = bucket["t/log/0"]
        bucket[f"t/log/_sidecars/{number}"] = bucket["t/log/0"]
    del bucket["t/log/0"]
    listings: list[int] = []
    counts = requests(lambda: listings.append(store.list_from("log", f"{2_990:020d}").height))
    assert (listings, counts) == ([10], {"LIST": 2}), "the folder of sidecars is passed over"
    assert store.list_from("log", f"{100:020d}").height == 2_900
    folders: list[list[str]] = []
    counts = requests(lambda: folders.extend([store.folders(""), store.folders("log")]))
    assert (folders, counts) == ([["log"], ["_sidecars"]], {"LIST": 7}), "a folder that fills a page is passed over"


def test_many_files_are_read_ahead_in_order(store: Storage, requests: Count, server: ObjectServer) -> None:
    names = [f"log/{number:02d}" for number in range(40)]
    for name in names:
        store.put(name, name.encode())
    contents: list[bytes] = []
    assert requests(lambda: contents.extend(store.each_ahead(store.read, names, FILES_AHEAD))) == {"GET": 40}
    assert contents == [name.encode() for name in names]
    server.requests.clear()
    reader = store.each_ahead(store.read, names, FILES_AHEAD)
    assert next(reader) == b"log/00"
    reader.close()
    assert len(server.requests) <= FILES_AHEAD + 1, "one more takes the place of the file that was handed out"


def test_a_file_that_is_gone_ends_reading_ahead(store: Storage) -> None:
    store.put("log/0", b"0")
    reader = store.each_ahead(store.read, ["log/0", "log/1"], FILES_AHEAD)
    assert next(reader) == b"0"
    with pytest.raises(FileNotFoundError):
        next(reader)


def test_connections_are_kept_by_the_next_store(server: ObjectServer) -> None:
    address, options = server.bucket(), server.options("s3")
    before = threading.active_count()
    for _ in range(20):
        open_storage(address, options=options).put("f", b"")
    assert threading.active_count() <= before + 4, "the server has a thread for each connection"


@pytest.fixture
def delta(tmp_path: Path, server: ObjectServer) -> tuple[str, dict[str, str]]:
    """A table of twelve appends with a checkpoint at the tenth, and the options that lead there."""
    new_table = lv.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]))
    for number in range(12):
        new_table.append(pa.table({"id": [number]}))
    address = f"{server.bucket()}/t"
    server.copy(tmp_path / "t", address)
    return address, server.options("s3")


def test_a_delta_table_costs_what_its_log_holds(delta: tuple[str, dict[str, str]], requests: Count) -> None:
    address, options = delta
    assert requests(lambda: lv.open_table(address, storage_options=options)) == {"GET": 1, "LIST": 1}
    opened_table = lv.open_table(address, storage_options=options)
    # commits 10 to 12; the checkpoint once for its footer, for protocol and metadata, and for columns of its files
    assert requests(lambda: opened_table.snapshot().files) == {"GET": 3 + 1}
    assert requests(opened_table.history) == {"LIST": 1, "GET": 10}  # the commits before
    assert requests(opened_table.versions) == {"LIST": 1}
    # the files; the checkpoint, which has their deletion vectors too, is small and still there
    assert requests(lambda: opened_table.scan().collect()) == {"GET": 12}
    assert requests(opened_table.refresh) == {"LIST": 1}


def test_the_folder_is_listed_while_the_log_is_read(delta: tuple[str, dict[str, str]], server: ObjectServer) -> None:
    opened_table = lv.open_table(delta[0], storage_options=delta[1])
    server.requests.clear()
    for _ in range(2):
        opened_table.list_ahead()
        for thread in [thread for thread in threading.enumerate() if thread.name == "lakeview-names"]:
            thread.join()
    assert server.count() == {"LIST": 1}
    opened_table.versions()
    assert server.count()["LIST"] == 2, "the folder, and the log before its checkpoint"
    opened_table.list_ahead()  # no question needs the names: the files of the version were looked up
    opened_table.versions()
    assert server.count()["LIST"] == 3


def test_a_checkpoint_that_is_larger_than_listed_does_not_stay_in_memory(store: Storage) -> None:
    store.put("large", b"a" * (TAIL + 1))
    cache = SmallFiles(2 * TAIL, len)
    with ParquetActions(store, "large", 1_000)._small_file(cache) as handle:
        assert len(handle.read()) == TAIL + 1
    assert not len(cache)


def test_a_refresh_lists_the_folder_again(tmp_path: Path, server: ObjectServer) -> None:
    addresses = [f"{server.bucket()}/{name}" for name in ("delta", "iceberg")]
    options = server.options("s3")
    delta_table = lv.create_table(addresses[0], pa.schema([("id", pa.int64())]), storage_options=options)
    delta_table.append(pl.DataFrame({"id": [1]}))
    server.copy(table(tmp_path / "orders", rows=3).root, addresses[1])
    for address in addresses:
        opened_table = lv.open_table(address, storage_options=options)
        opened_table.list_ahead()
        for thread in [thread for thread in threading.enumerate() if thread.name == "lakeview-names"]:
            thread.join()
        store = open_storage(address, options=options)
        store.delete_each([name for name in store.names() if "/data/" in f"/{name}" or name.endswith(".parquet")])
        opened_table.refresh()
        assert not opened_table.versions()["readable"][0], "a vacuum makes no version"


def test_an_inspection_reads_what_a_log_holds_once(delta: tuple[str, dict[str, str]], requests: Count) -> None:
    look = lv.inspect(lv.open_table(delta[0], storage_options=delta[1]))
    counts = requests(look.health)
    # commits and the checkpoint, each once; the log before the checkpoint, and the folder
    assert counts == {"GET": 13 + 1, "LIST": 2}


def test_a_filter_reads_the_files_that_it_may_match(delta: tuple[str, dict[str, str]], requests: Count) -> None:
    opened_table = lv.open_table(delta[0], storage_options=delta[1])
    rows = opened_table.scan().filter(pl.col("id") == 3)
    rows.collect()
    assert requests(rows.collect)["GET"] <= 2


def test_an_iceberg_table_is_read_without_asking_for_sizes(
    tmp_path: Path, server: ObjectServer, requests: Count
) -> None:
    history = table(tmp_path / "orders", rows=3)
    address = f"{server.bucket()}/orders"
    server.copy(history.root, address)
    opened_table = lv.open_table(address, storage_options=server.options("s3"))
    # the manifest list, three manifests and three data files, whose sizes are recorded
    assert requests(lambda: opened_table.scan().collect()) == {"GET": 1 + 3 + 3}


def test_an_inspection_reads_manifests_once(tmp_path: Path, server: ObjectServer, requests: Count) -> None:
    history = table(tmp_path / "orders", rows=3)
    address = f"{server.bucket()}/orders"
    server.copy(history.root, address)
    look = lv.inspect(lv.open_table(address, storage_options=server.options("s3")))
    # three manifest lists and three manifests; the folder, and its metadata for files of the log
    assert requests(look.health) == {"GET": 3 + 3, "LIST": 2}
