"""Addresses, roots and links, retries and refusals of stores; test_conformance.py has what every store promises."""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import pickle
import socket
import sys
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import fsspec
import pytest

from lakeview.model.addresses import normalise
from lakeview.model.config import Config
from lakeview.model.errors import (
    AccessDeniedError,
    InvalidRequestError,
    LakeviewError,
    StoreUnavailableError,
    UnsupportedTableError,
)
from lakeview.storage import FsspecStorage, LocalStorage, Storage, local_files, local_opening, open_storage


@pytest.fixture(params=["on disk", "in memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """An empty store."""
    if request.param == "on disk":
        return open_storage(str(tmp_path / "root"))
    return open_storage(f"memory://test-{uuid.uuid4().hex}/root")


SPELLINGS = [
    ("lake/orders", "{cwd}/lake/orders"),
    ("lake//orders/", "{cwd}/lake/orders"),
    ("./lake/../orders", "{cwd}/orders"),
    ("/lake/orders/", "/lake/orders"),
    ("file:/lake/orders", "/lake/orders"),
    ("file:///lake/orders", "/lake/orders"),
    ("file://localhost/lake", "/lake"),
    ("FILE:///lake", "/lake"),
    ("~/lake", "{home}/lake"),
    ("s3://bucket/a//b/../c/", "s3://bucket/a/c"),
    ("S3://Bucket", "s3://Bucket"),
    ("memory://x", "memory://x"),
    ("memory:///x", "memory:///x"),
]


@pytest.mark.parametrize(("address", "expected"), SPELLINGS, ids=[s for s, _ in SPELLINGS])
def test_an_address_has_one_spelling(address: str, expected: str) -> None:
    home = os.path.expanduser("~")
    assert normalise(address) == expected.format(cwd=os.getcwd(), home=home)


def test_what_a_user_types_is_decoded_and_what_a_log_holds_is_not() -> None:
    assert normalise("file:///a%20b", decode=True) == "/a b"
    assert normalise("file:///a%20b") == "/a%20b"


@pytest.mark.parametrize(
    ("address", "words"), [("", "is empty"), ("  ", "is empty"), ("a\0b", "null character")], ids=repr
)
def test_an_address_that_is_none_is_refused(address: str, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words) as caught:
        normalise(address)
    assert caught.value.fix is not None


@pytest.mark.parametrize("address", ["gopher://x/y", "nosuchstore://x"])
def test_a_store_no_one_knows_is_refused(address: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"no store is known for {address.partition(':')[0]}://"):
        open_storage(address)


@pytest.mark.parametrize(
    ("address", "error", "words"),
    [
        ("s3://", InvalidRequestError, "s3:// names a store and no place in it"),
        ("github://x/y", InvalidRequestError, "github:// cannot be opened by its address alone"),
        ("reference://x", InvalidRequestError, "reference:// cannot be opened by its address alone"),
        ("ftp://host/table", InvalidRequestError, "ftp:// cannot be opened by its address alone"),
    ],
)
def test_a_store_that_needs_more_than_its_address_is_refused(
    address: str, error: type[LakeviewError], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        open_storage(address)
    assert caught.value.fix is not None


def test_a_store_that_cannot_list_is_no_store_of_tables() -> None:
    with pytest.raises(UnsupportedTableError, match="_delta_log lies in a store that cannot be asked for this"):
        open_storage("data:text/plain,hello").list_from("_delta_log")


def test_a_store_that_does_not_answer_at_once_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(fsspec, "filesystem", refuse)
    with pytest.raises(StoreUnavailableError, match="sftp:// could not be reached: Connection refused"):
        open_storage("sftp://host/table")


def test_a_store_of_ftp_without_a_connection_is_freed_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    ignored: list[sys.UnraisableHookArgs] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))  # and does not listen
    options = {"host": "127.0.0.1", "port": closed.getsockname()[1]}
    for each in ({}, options):
        with pytest.raises((InvalidRequestError, StoreUnavailableError)) as caught:
            open_storage("ftp://127.0.0.1/table", options=each)
        assert caught.value.fix is not None
        del caught
        gc.collect()
    closed.close()
    assert not ignored


def _create(root: str, number: int) -> list[int]:
    store = open_storage(root)
    won = []
    for i in range(50):
        try:
            store.put_if_absent(f"log/{i}", b"%d" % number * 1000)
        except FileExistsError:
            continue
        won.append(i)
    return won


@pytest.mark.parametrize(
    "refused", [(), ("link",), ("link", "rename")], ids=["with links", "without links", "without exclusive renames"]
)
@pytest.mark.slow
def test_of_two_processes_one_creates_a_file(tmp_path: Path, refused: tuple[str, ...]) -> None:
    with multiprocessing.get_context("spawn").Pool(2, _refuse, refused) as pool:
        one, other = pool.starmap(_create, [(str(tmp_path), 1), (str(tmp_path), 2)])
    assert sorted(one + other) == list(range(50))
    for i in range(50):
        assert len(set((tmp_path / f"log/{i}").read_bytes())) == 1, "whole, by one of them"


def _refuse(*calls: str) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "not here")

    if "link" in calls:
        os.link = refuse  # type: ignore[assignment]  # in this process only
    if "rename" in calls:
        local_files._rename_exclusively = refuse  # type: ignore[assignment]


def write_large(store: Storage, path: str) -> None:
    with store.new_file(path) as file:
        file.write(b"x" * 5_000_000)
        file.publish()


def test_requests_are_counted(store: Storage) -> None:
    store.put("a", b"")
    store.put_if_absent("b", b"")
    store.read("a")
    store.read_range("a", 0, 1)
    store.exists("a")
    store.open("a").close()
    store.list_from("")
    store.walk()
    store.delete("a")
    assert dict(store.requests) == {"put": 2, "read": 3, "open": 1, "list": 2, "delete": 1}


OUTSIDE = ["../x", "a/../../x", "/etc/passwd", "file:///etc/passwd", "s3://bucket/x", "memory://elsewhere/x", "a\0b"]


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_outside_the_root_is_refused_by_every_call(store: Storage, path: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.read(path), lambda: store.open(path), lambda: store.exists(path),
        lambda: store.put(path, b""), lambda: store.put_if_absent(path, b""), lambda: store.delete(path),
        lambda: store.list_from(path),
        lambda: store.read_range(path, 0, 1), lambda: write_large(store, path),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(LakeviewError) as caught:
            call()
        assert isinstance(caught.value, AccessDeniedError)
        assert caught.value.kind == "outside-roots"


def test_a_root_is_not_a_prefix_of_its_neighbours_name(tmp_path: Path) -> None:
    (tmp_path / "root-other").mkdir()
    (tmp_path / "root-other/f").write_bytes(b"")
    with pytest.raises(AccessDeniedError):
        open_storage(str(tmp_path / "root")).read(f"{tmp_path}/root-other/f")
    with pytest.raises(AccessDeniedError):
        open_storage(str(tmp_path / "root-other"), config=Config(roots=(str(tmp_path / "root"),)))


def test_links_are_followed_inside_the_allowed_roots_only(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/f").write_bytes(b"x")
    (tmp_path / "root/f").symlink_to(tmp_path / "shared/f")
    (tmp_path / "root/g").symlink_to(tmp_path / "root/real")
    (tmp_path / "root/real").write_bytes(b"y")
    store = open_storage(str(tmp_path / "root"))
    assert store.read("g") == b"y"
    with pytest.raises(AccessDeniedError, match="is a link that leaves the table and the allowed roots") as caught:
        store.read("f")
    assert caught.value.fix == "add the folder it points into to LAKEVIEW_ROOTS if you trust this table"
    roots = (str(tmp_path / "root"), str(tmp_path / "shared"))
    assert open_storage(str(tmp_path / "root"), config=Config(roots=roots)).read("f") == b"x"


def test_a_link_that_is_changed_while_its_file_is_opened_leads_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("root/inside", "outside"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "f").write_bytes(folder.encode())
    link = tmp_path / "root/linked"

    def changed(full: str) -> None:
        local_opening.require_file(full)
        link.unlink()
        link.symlink_to(tmp_path / "outside")

    monkeypatch.setattr("lakeview.storage.local.require_file", changed)
    store = open_storage(str(tmp_path / "root"))
    reads = (store.read, lambda path: store.open(path).read(), lambda path: store.read_range(path, 0, 9))
    for read in reads:
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / "root/inside")
        with pytest.raises(AccessDeniedError, match="is a link that leaves the table and the allowed roots"):
            read("linked/f")


def test_a_root_reached_through_a_link_is_a_root(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/f").write_bytes(b"x")
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    assert open_storage(str(tmp_path / "linked")).read("f") == b"x"


def test_a_dangling_link_and_a_folder_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    store = open_storage(str(tmp_path))
    assert store.list_from("")["name"].to_list() == []
    assert store.walk()["name"].to_list() == store.names().to_list() == []
    for what in (store.read, store.open):
        with pytest.raises(FileNotFoundError, match="no regular file"):
            what("folder")


def test_a_refused_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise PermissionError(13, "no")

    (tmp_path / "f").write_bytes(b"")
    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(AccessDeniedError) as caught:
        open_storage(str(tmp_path)).read("f")
    assert (caught.value.message, caught.value.place) == ("the store refuses access to f", "f")
    assert (caught.value.kind, caught.value.fix) == ("access-denied", "check the permissions")


def test_a_full_disk_is_an_unavailable_store_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    store = open_storage(str(tmp_path))
    writes: list[Callable[[], object]] = [
        lambda: store.put("f", b"data"), lambda: store.put_if_absent("f", b"data"), lambda: write_large(store, "f"),
    ]  # fmt: skip
    for write in writes:
        with pytest.raises(StoreUnavailableError, match="f could not be read or written: No space left") as caught:
            write()
        assert caught.value.fix == "try again; check the store and the disk"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_put_in_its_place_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    store = LocalStorage(str(tmp_path), Config())
    with pytest.raises(StoreUnavailableError):
        store.put("a.parquet", b"x")
    with pytest.raises(StoreUnavailableError):
        write_large(store, "a.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_the_file_system_has_no_room_for_is_said_to_be_too_long(tmp_path: Path) -> None:
    store = open_storage(str(tmp_path / ("x" * 300)))
    for ask in (store.read, store.list_from):
        with pytest.raises(InvalidRequestError, match="the path of f is longer than the file system allows") as refused:
            ask("f")
        assert (refused.value.kind, "255 bytes" in (refused.value.fix or "")) == ("path-too-long", True)


class Flaky(fsspec.AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A store that fails a number of times before it answers."""

    protocol = "flaky"
    cachable = False
    failures = 0
    calls = 0

    def cat_file(self, path: str, **_: object) -> bytes:
        type(self).calls += 1
        if type(self).failures > 0:
            type(self).failures -= 1
            raise TimeoutError("slow")
        return b"data"


@pytest.fixture
def flaky(monkeypatch: pytest.MonkeyPatch) -> FsspecStorage:
    """A remote store whose failures are counted; waiting costs no time."""
    fsspec.register_implementation("flaky", Flaky, clobber=True)
    monkeypatch.setattr("lakeview.storage.retries.back_off", lambda *_: None)
    Flaky.failures = Flaky.calls = 0
    return FsspecStorage("flaky://bucket/table", Config(), {"key": "s3cr3t"})


@pytest.mark.parametrize(("failures", "calls"), [(0, 1), (1, 2), (2, 3)])
def test_a_remote_call_is_tried_again(flaky: FsspecStorage, failures: int, calls: int) -> None:
    Flaky.failures = failures
    assert flaky.read("f") == b"data"
    assert Flaky.calls == calls


def test_a_remote_store_that_does_not_answer_is_unavailable(flaky: FsspecStorage) -> None:
    Flaky.failures = 9
    with pytest.raises(StoreUnavailableError, match="f could not be read or written: TimeoutError"):
        flaky.read("f")
    assert Flaky.calls == 3


def test_options_are_never_shown(flaky: FsspecStorage) -> None:
    assert "s3cr3t" not in repr(flaky)
    with pytest.raises(UnsupportedTableError) as caught:
        flaky.put_if_absent("f", b"")
    assert "s3cr3t" not in str(caught.value)
    assert "s3cr3t" not in repr(pickle.dumps(caught.value))


def test_a_file_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 100)
    store = LocalStorage(str(tmp_path), Config(max_log_file_bytes=99))
    with pytest.raises(UnsupportedTableError, match="f holds at least 100 bytes, more than the limit of 99"):
        store.read("f")


def test_times_are_those_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")
    os.utime(tmp_path / "f", (1_700_000_000.123, 1_700_000_000.123))
    modification_time = open_storage(str(tmp_path)).list_from("")["modified"][0]
    assert abs(modification_time.timestamp() - 1_700_000_000.123) < timedelta(milliseconds=2).total_seconds()


def test_a_file_that_was_prepared_is_linked(tmp_path: Path) -> None:
    store = LocalStorage(str(tmp_path), Config())
    with store.attempts():
        store.prepare("a", b"ours")
        (temporary_file,) = tmp_path.glob(".a.*")
        number = temporary_file.stat().st_ino
        store.put_if_absent("b", b"ours")
        assert (tmp_path / "b").stat().st_ino == number
    with store.attempts():
        store.prepare("c", b"never created")
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


def test_an_attempt_that_lost_is_tried_again_with_the_file_that_is_written(tmp_path: Path) -> None:
    store = LocalStorage(str(tmp_path), Config())
    (tmp_path / "a").write_bytes(b"theirs")
    with store.attempts():
        with pytest.raises(FileExistsError):
            store.put_if_absent("a", b"ours")
        (temporary_file,) = tmp_path.glob(".a.*")
        number = temporary_file.stat().st_ino
        store.put_if_absent("b", b"ours")
        assert (tmp_path / "b").stat().st_ino == number
        for data in (b"ours", b"others"):
            with pytest.raises(FileExistsError):
                store.put_if_absent("a", data)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"a": b"theirs", "b": b"ours"}
    with pytest.raises(FileExistsError):
        store.put_if_absent("a", b"ours")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_folder_that_cannot_be_is_no_version_that_another_writer_committed(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a file")
    store = open_storage(str(tmp_path))
    for write in (store.put, store.put_if_absent):
        for path in ("log/0.json", "log/more/0.json"):
            with pytest.raises(InvalidRequestError, match=r"log.* is not there and cannot be created"):
                write(path, b"")
