"""Commit coordinators: one writer a name, also where a writer stops between the claim and the file."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.model.errors import CommitConflictError, CorruptTableError, InvalidRequestError, StoreUnavailableError
from lakeview.storage import Storage, open_storage
from lakeview.storage.coordinator import CommitCoordinator, SqliteCoordinator, coordinator_of
from tests.builders.object_server import ObjectServer, object_server


class StopsAfterTheClaim(Exception):
    """A writer that is killed."""


class Killed(SqliteCoordinator):
    """A coordinator whose writer stops as soon as its claim is made, or as soon as the file is put."""

    def __init__(self, path: str, *, after_put: bool = False) -> None:
        super().__init__(path)
        self._after_put = after_put

    def claim(self, address: str, data: bytes) -> bool:
        is_claimed = super().claim(address, data)
        if is_claimed and not self._after_put:
            raise StopsAfterTheClaim
        return is_claimed

    def finish(self, address: str) -> None:
        raise StopsAfterTheClaim


def open_bucket(server: ObjectServer, address: str, coordinator: object) -> Storage:
    """The bucket, whose server ignores conditions, by a coordinator."""
    return open_storage(address, options=server.options("s3") | {"commit_coordinator": coordinator})


@pytest.mark.parametrize("after_put", [False, True], ids=["before the file", "after the file"])
def test_a_writer_that_stops_is_finished_by_the_next(tmp_path: Path, after_put: bool) -> None:
    database = str(tmp_path / "commits.db")
    with object_server() as server:
        server.ignores_conditions = True
        address = f"{server.bucket()}/t"
        with pytest.raises(StopsAfterTheClaim):
            open_bucket(server, address, Killed(database, after_put=after_put)).put_if_absent("log/7", b"first")
        store = open_bucket(server, address, f"sqlite:///{database}")
        assert store.exists("log/7") is after_put
        with pytest.raises(FileExistsError):
            store.put_if_absent("log/7", b"second")
        assert store.read("log/7") == b"first"
        store.put_if_absent("log/8", b"second")
        assert store.read("log/8") == b"second"


def test_a_put_that_fails_leaves_a_claim_that_decides(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/commits.db"
    with object_server() as server:
        address = f"{server.bucket()}/t"
        store = open_bucket(server, address, database)
        server.fault = lambda request: "refuse" if request.kind == "PUT" else None
        with pytest.raises(StoreUnavailableError, match="log/7 is claimed in the commit coordinator") as caught:
            store.put_if_absent("log/7", b"first")
        assert caught.value.kind == "claimed"
        server.fault = lambda _: None
        with pytest.raises(FileExistsError):
            open_bucket(server, address, database).put_if_absent("log/7", b"second")
        assert store.read("log/7") == b"first"


def test_a_commit_whose_file_was_refused_keeps_its_data_files(tmp_path: Path) -> None:
    with object_server() as server:
        options = server.options("s3") | {"commit_coordinator": f"sqlite:///{tmp_path}/commits.db"}
        address = f"{server.bucket()}/t"
        table = lv.create_table(address, pa.schema([("id", pa.int64())]), storage_options=options)
        server.fault = lambda request: "refuse" if request.kind == "PUT" and "_delta_log" in request.key else None
        with pytest.raises(StoreUnavailableError, match="is not known"):
            table.append(pa.table({"id": [1]}))
        server.fault = lambda _: None
        lv.open_table(address, storage_options=options).append(pa.table({"id": [2]}))  # type: ignore[union-attr]
        rows = lv.open_table(address, storage_options=options).scan().collect()["id"]
        assert sorted(rows.to_list()) == [1, 2]


def test_a_coordinator_that_is_locked_fails_the_commit_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakeview.storage.coordinator._SECONDS", 0.0)
    database = tmp_path / "commits.db"
    with object_server() as server:
        options = server.options("s3") | {"commit_coordinator": f"sqlite:///{database}"}
        address = f"{server.bucket()}/t"
        table = lv.create_table(address, pa.schema([("id", pa.int64())]), storage_options=options)
        objects = server.buckets[address.split("/")[2]]
        before = sorted(objects)
        with closing(sqlite3.connect(database, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            with pytest.raises(StoreUnavailableError, match="database is locked") as caught:
                table.append(pa.table({"id": [1]}))
        assert (caught.value.kind, sorted(objects)) == ("coordinator-unavailable", before)
        table.append(pa.table({"id": [2]}))
        assert table.scan().collect()["id"].to_list() == [2]


def test_a_file_that_is_put_is_created_although_its_claim_cannot_be_finished(tmp_path: Path) -> None:
    class FinishesNothing(SqliteCoordinator):
        def finish(self, address: str) -> None:
            raise StoreUnavailableError("the disk is full", kind="coordinator-unavailable")

    with object_server() as server:
        address = f"{server.bucket()}/t"
        open_bucket(server, address, FinishesNothing(str(tmp_path / "c.db"))).put_if_absent("log/7", b"first")
        store = open_bucket(server, address, f"sqlite:///{tmp_path}/c.db")
        with pytest.raises(FileExistsError):
            store.put_if_absent("log/7", b"second")
        assert store.read("log/7") == b"first"


def test_a_table_is_written_by_many_on_a_store_that_cannot_exclude(tmp_path: Path) -> None:
    with object_server() as server:
        server.ignores_conditions = True
        options = server.options("s3") | {"commit_coordinator": f"sqlite:///{tmp_path}/commits.db"}
        address = f"{server.bucket()}/t"
        lv.create_table(address, pa.schema([("id", pa.int64())]), storage_options=options)
        with pytest.raises(CommitConflictError):
            lv.create_table(address, pa.schema([("id", pa.int64())]), storage_options=options)

        def append(number: int) -> None:
            table = lv.open_table(address, storage_options=options)
            for step in range(3):
                table.append(pa.table({"id": [number * 10 + step]}))  # type: ignore[union-attr]  # a Delta table

        threads = [threading.Thread(target=append, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rows = lv.open_table(address, storage_options=options).scan().collect()["id"].sort().to_list()
        assert rows == [0, 1, 2, 10, 11, 12, 20, 21, 22]


def test_a_table_whose_newest_commit_was_put_twice_is_still_the_same(tmp_path: Path) -> None:
    coordinators = {"coordinated": {"commit_coordinator": f"sqlite:///{tmp_path}/commits.db"}, "alone": {}}
    tables = {}
    for name, options in coordinators.items():
        address = f"memory://{tmp_path.name}/{name}"
        tables[name] = lv.create_table(address, pa.schema([("id", pa.int64())]), storage_options=options)
        (commit,) = fsspec.filesystem("memory").glob(f"/{tmp_path.name}/{name}/_delta_log/*.json")
        fsspec.filesystem("memory").store[commit].created += timedelta(seconds=1)
    assert tables["coordinated"].append(pa.table({"id": [1]})) is not None
    with pytest.raises(CorruptTableError, match="created again"):  # no claim says that it is the same commit
        tables["alone"].append(pa.table({"id": [1]}))


def test_a_table_that_was_deleted_is_not_said_to_be_there(tmp_path: Path) -> None:
    with object_server() as server:
        server.ignores_conditions = True
        address = f"{server.bucket()}/t"
        options = server.options("s3") | {"commit_coordinator": f"sqlite:///{tmp_path}/commits.db"}
        lv.create_table(address, {"id": "long"}, storage_options=options)
        storage = open_storage(address, options=options)
        for name in storage.walk()["name"]:
            storage.delete(name)
        with pytest.raises(CommitConflictError, match="stay claimed in the commit coordinator") as caught:
            lv.create_table(address, {"id": "long"}, storage_options=options)
        assert (caught.value.kind, caught.value.version) == ("claimed", 0)


def test_an_address_is_claimed_once_and_stays_claimed(tmp_path: Path) -> None:
    one, other = SqliteCoordinator(str(tmp_path / "c.db")), SqliteCoordinator(str(tmp_path / "c.db"))
    assert one.unfinished_bytes("a") is None
    assert (one.claim("a", b"x"), other.claim("a", b"y"), other.unfinished_bytes("a")) == (True, False, b"x")
    one.finish("a")
    assert (other.unfinished_bytes("a"), other.claim("a", b"y")) == (None, False)


def test_a_coordinator_that_cannot_be_used_is_an_error_before_anything_is_put(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreUnavailableError, match=r"the commit coordinator .*folder could not be used") as caught:
        SqliteCoordinator(str(tmp_path / "folder"))
    assert caught.value.kind == "coordinator-unavailable"


@pytest.mark.parametrize("option", ["commits.db", "sqlite:///", "dynamodb", 7])
def test_an_option_that_names_no_coordinator_is_refused(option: object) -> None:
    with pytest.raises(InvalidRequestError, match="names no commit coordinator"):
        coordinator_of(option)


def test_a_coordinator_of_the_user_is_taken_as_it_is(tmp_path: Path) -> None:
    own: CommitCoordinator = SqliteCoordinator(str(tmp_path / "c.db"))
    assert coordinator_of(own) is own
    assert coordinator_of(None) is None
