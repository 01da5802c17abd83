"""What every store promises: on disk, in memory, on S3, Google Cloud Storage and Azure, and by a coordinator.

The three things that Delta's log asks of a store have a test each: a file appears whole or not at all, one writer
creates it, and a listing shows what was created.
"""

from __future__ import annotations

import io
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from lakeview.model.config import Config
from lakeview.model.errors import StoreUnavailableError, UnsupportedTableError
from lakeview.storage import LISTING, FsspecStorage, Storage, open_storage
from lakeview.storage.interface import BLOCK
from tests.builders.azurite import azurite
from tests.builders.object_server import object_server
from tests.builders.s3 import new_bucket, s3_server

OBJECTS = ("s3", "google", "azure")


class Sloppy(fsspec.AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A store that creates over what is there: fsspec's memory under another name."""

    protocol = "sloppy"
    cachable = False

    def __init__(self, **_: object) -> None:
        super().__init__()
        self._memory = fsspec.filesystem("memory")

    def __getattribute__(self, name: str) -> Any:
        if name in ("ls", "find", "cat_file", "pipe_file", "isfile", "rm_file", "walk", "open", "size", "cp_file"):
            return getattr(object.__getattribute__(self, "_memory"), name)
        return object.__getattribute__(self, name)


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Any]]:
    """Servers of this machine, by the name of what they serve."""
    with object_server() as ours, s3_server() as moto, azurite() as emulator:
        yield {"ours": ours, "moto": moto, "azurite": emulator}


@pytest.fixture(params=["disk", "memory", "moto", *OBJECTS, "azurite", "coordinator"])
def store(request: pytest.FixtureRequest, tmp_path: Path, servers: dict[str, Any]) -> Storage:
    """An empty store."""
    match request.param:
        case "disk":
            return open_storage(str(tmp_path / "root"))
        case "memory":
            return open_storage(f"memory://test-{uuid.uuid4().hex}/root")
        case "moto":
            bucket = new_bucket(servers["moto"])
            return open_storage(f"s3://{bucket.name}/root", options=bucket.options)
        case "azurite":
            if servers["azurite"] is None:
                pytest.skip("azurite is not installed: make azurite")
            return servers["azurite"].storage()  # type: ignore[no-any-return]
        case "coordinator":
            fsspec.register_implementation("sloppy", Sloppy, clobber=True)
            options = {"commit_coordinator": f"sqlite:///{tmp_path}/commits.db"}
            return open_storage(f"sloppy://test-{uuid.uuid4().hex}/root", options=options)
        case kind:
            ours = servers["ours"]
            return open_storage(f"{ours.bucket(kind)}/root", options=ours.options(kind))


def test_a_file_is_put_read_listed_and_deleted(store: Storage) -> None:
    for name in ("log/c", "log/a", "log/b", "log/inner/d", "top"):
        store.put(name, name.encode())
    assert store.list_from("log")["name"].to_list() == ["a", "b", "c"]
    assert store.list_from("log", "b")["name"].to_list() == ["b", "c"]
    assert store.list_from("log", "bb")["name"].to_list() == ["c"]
    assert store.walk().select("name", "size").rows() == [
        ("log/a", 5), ("log/b", 5), ("log/c", 5), ("log/inner/d", 11), ("top", 3),
    ]  # fmt: skip
    assert sorted(store.names()) == store.walk()["name"].to_list()
    assert (store.folders("log"), store.folders("log/inner"), store.folders("gone")) == (["inner"], [], [])
    assert store.list_from("log")["modified"].null_count() == 0
    assert (store.read("log/a"), store.read(f"{store.root}/log/../log/a")) == (b"log/a", b"log/a")
    with store.open("log/inner/d") as file:
        file.seek(4)
        assert (file.read(5), file.tell(), file.read()) == (b"inner", 9, b"/d")
    store.put("log/a", b"new")
    assert store.read("log/a") == b"new"
    for name in ("log/a", "log", "gone"):  # a folder is no file that is there
        store.delete(name)
    assert [store.exists(name) for name in ("log/a", "log/b", "log", "gone")] == [False, True, False, False]


class Blocks(io.BytesIO):
    """A file that remembers how much of it was asked for at once."""

    largest = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.largest = max(self.largest, len(data))
        return data


def test_a_file_is_put_block_by_block_from_its_beginning(store: Storage, request: pytest.FixtureRequest) -> None:
    is_ours = request.node.callspec.params["store"] in OBJECTS  # a server that takes no file in parts
    whole = bytes(range(256)) * (3 if is_ours else BLOCK // 128)
    file = Blocks(whole)
    file.seek(9)
    store.put_file("data", file)
    assert store.read("data") == whole
    assert file.largest <= BLOCK
    store.put_file("data", Blocks(b""))
    assert store.read("data") == b""


@pytest.mark.parametrize("root", ["memory://a[1]*?/t", "sloppy://a[1]*?/t"])
def test_a_file_is_put_below_a_folder_whose_name_looks_like_a_pattern(root: str) -> None:
    fsspec.register_implementation("sloppy", Sloppy, clobber=True)
    store = FsspecStorage(root, Config(), {})
    store.put_file("data", io.BytesIO(b"rows"))
    assert store.read("data") == b"rows"
    assert store.walk()["name"].to_list() == ["data"]
    store.delete("data")


class Failing(Blocks):
    """A file that cannot be read beyond its first block."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell():
            raise StoreUnavailableError("the source is gone")
        return super().read(size)


def test_a_file_whose_source_fails_in_its_midst_is_put_not_at_all(
    store: Storage, request: pytest.FixtureRequest
) -> None:
    is_ours = request.node.callspec.params["store"] in OBJECTS  # a server that takes no file in parts
    store.put("old", b"old")
    for name in ("old", "new"):
        with pytest.raises(StoreUnavailableError):
            store.put_file(name, Failing(bytes(3 if is_ours else 3 * BLOCK)))
    assert store.walk()["name"].to_list() == ["old"]
    assert store.read("old") == b"old"


def test_what_is_not_there_lists_as_nothing_and_is_not_read(store: Storage) -> None:
    assert not store.holds_files()
    for listing in (store.list_from("nowhere"), store.list_from("nowhere", "b"), store.walk()):
        assert (listing.schema, listing.height) == (LISTING, 0)
    store.delete("nowhere/x")
    misses: list[Callable[[str], object]] = [
        store.read,
        store.open,
        lambda n: store.read_range(n, 0, 1),
        lambda n: store.read_range(n, 0, 0),
    ]
    for miss in misses:
        with pytest.raises(FileNotFoundError):
            miss("nowhere/x")
    store.put("a/b/f", b"x")
    assert store.holds_files()


NAMES = ["day=2026-01-01/a b.parquet", "a%20b", "ü/é", "x+y&z=1", "#1", "a'b(c)[d]", "~t", "k=a%2Fb/f"]


def test_names_are_what_they_are(store: Storage) -> None:
    for name in NAMES:
        store.put(name, name.encode())
    assert store.walk()["name"].to_list() == sorted(NAMES)
    assert [store.read(name) for name in NAMES] == [name.encode() for name in NAMES]
    for name in NAMES:
        store.delete(name)
    assert store.walk().height == 0


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [(0, 3, b"abc"), (2, 2, b"cd"), (4, 99, b"ef"), (6, 1, b""), (99, 1, b""), (2**62, 1, b""), (0, 0, b"")],
)
def test_a_part_of_a_file_is_read_and_less_where_it_ends(
    store: Storage, start: int, length: int, expected: bytes
) -> None:
    store.put("f", b"abcdef")
    assert store.read_range("f", start, length) == expected


SIZES = {"the right size": 0, "too small": -1, "a part of it": -700_000, "too large": 1, "absurd": 2**62}


def test_a_file_of_a_recorded_size_is_read_as_the_store_has_it(store: Storage) -> None:
    data = b"".join(b"%07d," % number for number in range(100_000))
    store.put("f", data)
    for wrong_by in SIZES.values():
        with store.open("f", len(data) + wrong_by) as file:
            assert (file.seek(0, 2), file.seek(-5, 2), file.read()) == (len(data), len(data) - 5, data[-5:])
            assert file.read(1) == b""
            file.seek(50_000)
            assert (file.read(600_000), file.tell()) == (data[50_000:650_000], 650_000)
            file.seek(0)
            assert file.read() == data


# -- the three requirements of the log (delta protocol's first draft)


def test_a_file_appears_whole_or_not_at_all(store: Storage) -> None:
    """Atomic creation: a reader beside the writer sees nothing, or all of it."""
    sizes: set[int] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            try:
                sizes.add(len(store.read("log/0")))
            except FileNotFoundError:
                sizes.add(-1)

    thread = threading.Thread(target=watch)
    thread.start()
    store.put_if_absent("log/0", b"x" * 3_000_000)
    store.put("log/0", b"y" * 3_000_000)
    done.set()
    thread.join()
    assert sizes <= {-1, 3_000_000}
    assert store.walk()["name"].to_list() == ["log/0"], "no temporary file is left"


@pytest.mark.parametrize("size", [10, 3 << 20], ids=["small", "large"])
def test_a_file_that_is_written_bit_by_bit_appears_whole_or_not_at_all(store: Storage, size: int) -> None:
    for published in (False, True):
        file = store.new_file("data/f")
        for byte in (b"x", b"y"):
            file.write(byte * size)
        assert not store.exists("data/f")
        file.contents.seek(size)
        assert (file.contents.read(1), file.contents.seek(0, 2)) == (b"y", 2 * size)
        if published:
            file.publish()
        file.close()
        assert file.write(b"z") == 1, "an encoder that is dropped ends its file"
        assert store.walk()["name"].to_list() == ["data/f"] * published, "no temporary file is left"
    assert store.read("data/f") == b"x" * size + b"y" * size
    assert store.requests["put"] == 1


def test_a_file_is_created_only_if_it_is_absent(store: Storage) -> None:
    """Mutual exclusion, one writer after the other."""
    store.put_if_absent("log/0", b"first")
    with pytest.raises(FileExistsError):
        store.put_if_absent("log/0", b"second")
    assert store.read("log/0") == b"first"
    store.put("log/1", b"another's")
    with pytest.raises(FileExistsError):
        store.put_if_absent("log/1", b"ours")
    assert store.read("log/1") == b"another's"


@pytest.fixture
def one_put_at_a_time(request: pytest.FixtureRequest, store: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """moto checks a condition, and writes later: what is shown there is that its answers are understood."""
    if request.node.callspec.params["store"] == "moto":
        lock, create = threading.Lock(), type(store).put_if_absent

        def one_by_one(self: Storage, path: str, data: bytes) -> None:
            with lock:
                create(self, path, data)

        monkeypatch.setattr(type(store), "put_if_absent", one_by_one)


@pytest.mark.usefixtures("one_put_at_a_time")
def test_of_many_threads_one_creates_a_file(store: Storage) -> None:
    """Mutual exclusion, side by side."""
    won: list[int] = []
    start = threading.Barrier(6)

    def create(number: int) -> None:
        start.wait()
        for i in range(8):
            try:
                store.put_if_absent(f"log/{i}", b"%d" % number)
            except FileExistsError:
                continue
            won.append(i)

    threads = [threading.Thread(target=create, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(8))


def test_what_was_created_is_listed_at_once(store: Storage) -> None:
    """Consistent listing, through another client of the same store as well."""
    for number in range(5):
        name = f"{number:020d}.json"
        store.put_if_absent(f"log/{name}", b"x")
        assert store.list_from("log", name)["name"].to_list() == [name]
        assert store.list_from("log").height == number + 1
        assert store.exists(f"log/{name}")


# -- where a store cannot exclude


def test_without_a_coordinator_such_a_store_is_not_written_to() -> None:
    fsspec.register_implementation("sloppy", Sloppy, clobber=True)
    store = FsspecStorage(f"sloppy://{uuid.uuid4().hex}/t", Config(), {})
    with pytest.raises(UnsupportedTableError, match="sloppy:// cannot create a file only if it is absent") as refused:
        store.put_if_absent("log/0", b"")
    assert "commit_coordinator" in str(refused.value.fix)
    assert not store.exists("log/0")
