"""Credentials that a catalog hands out with every answer: the newest are used, and nothing is read again for them."""

import pickle
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakeview.iceberg.catalog.stores import store_options
from lakeview.iceberg.manifests.entries import open_manifest
from lakeview.iceberg.table import IcebergTable
from lakeview.model.config import Config
from lakeview.model.errors import AccessDeniedError, CorruptTableError
from lakeview.storage import open_storage
from tests.builders.catalogs import FIELDS, RestState, newest, rest_catalog, table
from tests.builders.iceberg import IcebergHistory
from tests.builders.object_server import EXPIRED, REFUSE, ObjectServer, object_server
from tests.builders.opening import open_iceberg_table

ORDERS = "catalog://prod/sales.orders"


@pytest.fixture
def history(tmp_path: Path) -> IcebergHistory:
    """A table of three appends."""
    return table(tmp_path / "orders", rows=3)


@pytest.fixture
def server(history: IcebergHistory) -> Iterator[ObjectServer]:
    """A store that holds the table at `wh/orders` of its bucket."""
    with object_server() as store:
        store.copy(history.root, f"{store.bucket()}/wh/orders")
        yield store


@pytest.fixture
def state(server: ObjectServer, history: IcebergHistory, monkeypatch: pytest.MonkeyPatch) -> Iterator[RestState]:
    """A catalog by the name `prod` that holds it, and hands out the session token `token-0`."""
    catalog_state = RestState([("sales",)], {("sales", "orders"): location(history)}, config=vended(server, 0))
    with rest_catalog(catalog_state) as address:
        monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", address)
        yield catalog_state


def location(history: IcebergHistory) -> str:
    return f"s3://lake-0/wh/orders/metadata/{Path(newest(history)).name}"


def vended(server: ObjectServer, number: int) -> dict[str, str]:
    return {
        "s3.endpoint": server.endpoint, "s3.access-key-id": f"key-{number}", "s3.secret-access-key": "s3cr3t",
        "s3.session-token": f"token-{number}", "s3.region": "us-east-1",
    }  # fmt: skip


@pytest.fixture
def manifests(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The paths of the manifests that were decoded."""
    paths: Counter[str] = Counter()

    def count_manifest(data: bytes, path: str, row: Any) -> Any:
        paths[path] += 1
        return open_manifest(data, path, row)

    monkeypatch.setattr("lakeview.iceberg.manifests.tree.open_manifest", count_manifest)
    return paths


def read(opened_table: IcebergTable) -> tuple[int, int]:
    """Reads the manifests of all snapshots: the numbers of files now and ever."""
    return opened_table.files().height, opened_table.lifetimes().height


def test_other_credentials_are_used_and_nothing_is_read_again(
    state: RestState, server: ObjectServer, manifests: Counter[str]
) -> None:
    opened_table = open_iceberg_table(ORDERS)
    pinned = opened_table.scan()
    assert read(opened_table) == (3, 3)
    assert len(manifests) == 3
    state.config = vended(server, 1)
    server.requests.clear()
    server.session_tokens.clear()
    manifests.clear()
    assert not opened_table.refresh()
    assert read(opened_table) == (3, 3)
    assert (server.requests, manifests) == ([], {})
    assert sorted(opened_table.scan().collect()["id"]) == [0, 1, 2]
    assert sorted(pinned.collect()["id"]) == [0, 1, 2]
    assert server.session_tokens == {"token-1"}, "by the scan that began before too"


def test_newer_metadata_costs_itself_and_the_manifests_that_are_new(
    state: RestState, server: ObjectServer, history: IcebergHistory, manifests: Counter[str]
) -> None:
    opened_table = open_iceberg_table(ORDERS)
    snapshot = opened_table.snapshot()
    assert read(opened_table) == (3, 3)
    history.append("f3", [{"id": 3}])
    server.copy(history.root, "s3://lake-0/wh/orders")
    state.tables["sales", "orders"], state.config = location(history), vended(server, 1)
    server.requests.clear()
    server.session_tokens.clear()
    manifests.clear()
    assert opened_table.refresh()
    assert server.count() == {"GET": 1}
    assert read(opened_table) == (4, 4)
    assert server.count() == {"GET": 3}, "its manifest list and its manifest"
    assert len(manifests) == 1
    assert snapshot.statistics().height == 3
    assert server.session_tokens == {"token-1"}


def test_the_same_address_at_another_endpoint_is_another_store(
    state: RestState, server: ObjectServer, history: IcebergHistory
) -> None:
    opened_table = open_iceberg_table(ORDERS)
    read(opened_table)
    with object_server() as other:
        other.copy(history.root, f"{other.bucket()}/wh/orders")
        state.config = vended(other, 1)
        server.requests.clear()
        assert not opened_table.refresh()
        assert read(opened_table) == (3, 3)
        assert len(other.requests) == 7, "the metadata, three manifest lists and three manifests"
        assert server.requests == []


def test_newer_credentials_are_neither_shown_nor_pickled(state: RestState, server: ObjectServer) -> None:
    opened_table = open_iceberg_table(ORDERS)
    state.config = vended(server, 1)
    assert not opened_table.refresh()
    snapshot = opened_table.snapshot()
    texts = [repr(opened_table), repr(vars(opened_table)), repr(opened_table.storage), repr(snapshot)]
    assert not [text for text in texts if "token-" in text or "s3cr3t" in text]
    assert b"token-" not in pickle.dumps(snapshot)


def test_metadata_that_could_not_be_read_is_read_by_the_next_refresh(
    state: RestState, server: ObjectServer, history: IcebergHistory
) -> None:
    opened_table = open_iceberg_table(ORDERS)
    history.append("f3", [{"id": 3}])
    server.copy(history.root, "s3://lake-0/wh/orders")
    state.tables["sales", "orders"] = location(history)
    key = location(history).removeprefix("s3://lake-0/")
    stored = server.buckets["lake-0"][key]
    server.buckets["lake-0"][key] = stored._replace(data=b"{")
    with pytest.raises(CorruptTableError):
        opened_table.refresh()
    server.buckets["lake-0"][key] = stored
    assert opened_table.refresh()
    assert read(opened_table) == (4, 4)


# -- credentials that expire between two refreshes


READS: dict[str, Any] = {
    "files": lambda t: t.files().height,
    "rows": lambda t: t.scan().collect().height,
    "versions, by a listing of the folder": lambda t: int(t.versions()["readable"].sum()),
}


@pytest.mark.parametrize("refusal", [REFUSE, EXPIRED])
@pytest.mark.parametrize("ask", READS.values(), ids=list(READS))
def test_credentials_that_expired_are_asked_for_again(
    state: RestState, server: ObjectServer, refusal: str, ask: Any
) -> None:
    opened_table = open_iceberg_table(ORDERS)
    server.fault = lambda _: refusal if server.session_tokens == {"token-0"} else None
    server.session_tokens.clear()
    state.config = vended(server, 1)
    state.requests.clear()
    assert ask(opened_table) == 3
    assert state.requests["GET tables/table"] == 1, "by several threads at once too"
    assert server.session_tokens == {"token-0", "token-1"}


@pytest.mark.parametrize(
    "change",
    [lambda s: s.views.clear(), lambda s: s.tables.clear(), lambda s: setattr(s, "raw", b"{")],
    ids=["the same credentials", "no table any more", "nonsense"],
)
def test_a_store_that_refuses_still_is_an_error_of_the_store(
    state: RestState, server: ObjectServer, change: Any
) -> None:
    opened_table = open_iceberg_table(ORDERS)
    change(state)
    server.fault = lambda _: REFUSE
    server.requests.clear()
    with pytest.raises(AccessDeniedError, match="refuses access to"):
        opened_table.files()
    assert len(server.requests) == 1


def test_newer_credentials_are_tried_once(state: RestState, server: ObjectServer) -> None:
    opened_table = open_iceberg_table(ORDERS)
    state.config = vended(server, 1)
    server.fault = lambda _: REFUSE
    server.requests.clear()
    with pytest.raises(AccessDeniedError, match="refuses access to"):
        opened_table.files()
    assert len(server.requests) == 2


# -- which manifests stay cached


def test_an_append_to_a_folder_costs_one_manifest(history: IcebergHistory, manifests: Counter[str]) -> None:
    opened_table = open_iceberg_table(history)
    assert read(opened_table) == (3, 3)
    manifests.clear()
    history.append("f3", [{"id": 3}])
    assert opened_table.refresh()
    assert read(opened_table) == (4, 4)
    assert len(manifests) == 1


def test_manifests_are_decoded_again_for_other_partition_columns(
    history: IcebergHistory, manifests: Counter[str]
) -> None:
    opened_table = open_iceberg_table(history)
    assert read(opened_table) == (3, 3)
    manifests.clear()
    history.partition_by((1, "identity", "id")).append("f3", [{"id": 3}])
    assert opened_table.refresh()
    assert opened_table.files()["partition"].to_list() == [*[{"id": None}] * 3, {"id": 3}]
    assert len(manifests) == 4


def test_manifests_are_decoded_again_without_a_uuid(tmp_path: Path, manifests: Counter[str]) -> None:
    """Nothing shows that it is the same table."""
    history = IcebergHistory(tmp_path / "t", FIELDS, version=1, location=str(tmp_path / "t"))
    del history.document["table-uuid"]
    history.append("f0", [{"id": 0}])
    opened_table = open_iceberg_table(history)
    assert read(opened_table) == (1, 1)
    manifests.clear()
    history.append("f1", [{"id": 1}])
    assert opened_table.refresh()
    assert read(opened_table) == (2, 2)
    assert len(manifests) == 2


# -- which options are credentials

LATER: dict[str, tuple[str, dict[str, str], dict[str, str], bool]] = {
    "S3, a session token": (
        "s3://b/t", {"s3.session-token": "a", "s3.region": "r"}, {"s3.session-token": "b", "s3.region": "r"}, True,
    ),
    "S3, a region": ("s3://b/t", {"s3.region": "r"}, {"s3.region": "q"}, False),
    "S3, an endpoint": ("s3://b/t", {"s3.endpoint": "https://a"}, {"s3.endpoint": "https://b"}, False),
    "Google, a token": ("gs://b/t", {"gcs.oauth2.token": "a"}, {"gcs.oauth2.token": "b"}, True),
    "Google, a host": ("gs://b/t", {"gcs.service.host": "https://a"}, {"gcs.service.host": "https://b"}, False),
    "Azure, a signature": (
        "abfss://c@a.dfs.core.windows.net/t", {"adls.sas-token.a": "sig=1"}, {"adls.sas-token.a": "sig=2"}, True,
    ),
    "Azure, an account": ("az://c/t", {"adls.account-name": "a"}, {"adls.account-name": "b"}, False),
}  # fmt: skip


@pytest.mark.parametrize(("address", "first", "second", "same"), LATER.values(), ids=list(LATER))
def test_a_store_adopts_credentials_and_nothing_else(
    address: str, first: dict[str, str], second: dict[str, str], same: bool
) -> None:
    store, newer = (open_storage(address, options=store_options(address, each)) for each in (first, second))
    assert store.adopt_credentials(newer) == same
    assert (store.options == newer.options) == same


@pytest.mark.parametrize("address", ["s3://b/t", "/t", "memory://t"])
def test_no_credentials_are_adopted_of_another_place(address: str) -> None:
    store = open_storage(address)
    assert store.adopt_credentials(open_storage(address))
    assert not store.adopt_credentials(open_storage(address + "/other"))
    assert not store.adopt_credentials(open_storage(address, config=Config(max_log_file_bytes=5)))
