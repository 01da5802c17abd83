"""What goes wrong between us and a store: each an error of ours, in time, that names the store and says what to do."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

import lakeview as lv
from lakeview.model.errors import (
    AccessDeniedError,
    InvalidRequestError,
    LakeviewError,
    StoreUnavailableError,
    UnsupportedTableError,
)
from lakeview.storage import object_clients, open_storage
from tests.builders.object_server import (
    CONFLICT,
    LOSE_REPLY,
    LOSE_REQUEST,
    REFUSE,
    UNAVAILABLE,
    ObjectServer,
    Request,
    object_server,
)

KINDS = ("s3", "google", "azure")
SECONDS = 5.0
"""So long an endpoint that is dead may take to be an error."""
BUSY = 4
"""So many times that, where other work has the cores. By the library's own settings it takes more than a minute."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    """A server of its own for each test; waiting before another attempt costs no time."""
    monkeypatch.setattr("lakeview.storage.retries.back_off", lambda *_, **__: None)
    with object_server() as server_state:
        yield server_state


@pytest.fixture(autouse=True)
def nothing_but_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine leads anywhere."""
    import os

    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")


@pytest.fixture
def deaf() -> Iterator[str]:
    """An address of this machine where connections are never accepted: its queue is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        for one in waiting:
            one.close()


def options_at(kind: str, endpoint: str) -> dict[str, Any]:
    """Options of a store that would be there."""
    return ObjectServer(endpoint=endpoint).options(kind)


ADDRESSES = {"s3": "s3://lake/t", "google": "gs://lake/t", "azure": "abfss://lake@account.dfs.core.windows.net/t"}


def test_the_last_attempt_to_connect_ends_in_time() -> None:
    for connect, retry_seconds in (
        (object_clients._CONNECT, object_clients._RETRY_SECONDS),
        (object_clients._CONNECT_TO_INSTANCE, object_clients._RETRY_INSTANCE_SECONDS),
    ):
        assert retry_seconds + float(connect.removesuffix("s")) < SECONDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_dead_endpoint_is_named_in_time(kind: str) -> None:
    dead = "http://127.0.0.1:9"
    for look in (lv.open_table, lv.find_tables) if kind == "s3" else (lv.open_table,):
        begun = time.monotonic()
        with pytest.raises(StoreUnavailableError, match=f"at {dead}[a-z/]* does not answer") as caught:
            look(ADDRESSES[kind], storage_options=options_at(kind, dead))
        assert time.monotonic() - begun < BUSY * SECONDS
        assert caught.value.kind == "no-answer"
        assert "s3cr3t" not in str(caught.value)


def test_an_endpoint_that_drops_packets_is_named_in_time(deaf: str) -> None:
    begun = time.monotonic()
    with pytest.raises(StoreUnavailableError, match=f"S3 at {deaf} does not answer"):
        lv.open_table(ADDRESSES["s3"], storage_options=options_at("s3", deaf))
    assert time.monotonic() - begun < BUSY * SECONDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_bucket_is_no_empty_folder(kind: str, server: ObjectServer) -> None:
    options = server.options(kind)
    for look in (lv.open_table, lv.find_tables):
        with pytest.raises(InvalidRequestError, match=r"there is no (bucket|container) lake") as caught:
            look(ADDRESSES[kind], storage_options=options)
        assert caught.value.kind == "no-bucket"
    store = open_storage(ADDRESSES[kind], options=options)
    for call in (store.read, store.list_from, lambda name: store.put(name, b"")):
        with pytest.raises(InvalidRequestError, match="there is no"):
            call("f")


def test_missing_credentials_name_the_store_and_the_option(deaf: str) -> None:
    begun = time.monotonic()
    with pytest.raises(AccessDeniedError, match="no credentials were found for S3") as caught:
        lv.open_table(ADDRESSES["s3"])
    assert "access_key_id and secret_access_key" in str(caught.value.fix)
    with pytest.raises(AccessDeniedError, match="no credentials were found for Azure, which container lake") as caught:
        lv.open_table(ADDRESSES["azure"], storage_options={"msi_endpoint": deaf})
    assert "AZURE_STORAGE_ACCOUNT_KEY" in str(caught.value.fix)
    assert time.monotonic() - begun < 2 * BUSY * SECONDS, "of two stores"


def test_an_azure_address_without_an_account_names_the_option() -> None:
    with pytest.raises(InvalidRequestError, match="the account of the Azure container lake is not known") as caught:
        lv.open_table("az://lake/t")
    assert "account_name" in str(caught.value.fix)


def test_a_process_that_was_forked_from_one_with_clients_is_told_so(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_storage(f"{server.bucket()}/t", options=server.options("s3"))
    store.put("f", b"abc")
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(StoreUnavailableError, match="was forked from one that had used object stores") as caught:
        store.read("f")
    assert caught.value.kind == "forked"
    monkeypatch.setattr("lakeview.storage.object_clients._processes", set())
    assert store.read("f") == b"abc", "forked before a store was used"


def test_a_refused_request_names_the_store(server: ObjectServer) -> None:
    server.fault = lambda _: REFUSE
    with pytest.raises(AccessDeniedError, match="refuses access to f in bucket"):
        open_storage(f"{server.bucket()}/t", options=server.options("s3")).read("f")


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_is_busy_is_asked_again(kind: str, server: ObjectServer) -> None:
    store = open_storage(f"{server.bucket(kind)}/t", options=server.options(kind) | {"max_retries": 0})
    store.put("f", b"x")
    answers = [UNAVAILABLE, UNAVAILABLE]
    server.fault = lambda _: answers.pop() if answers else None
    assert store.read("f") == b"x"
    server.fault = lambda _: UNAVAILABLE
    with pytest.raises(StoreUnavailableError, match="is too busy to read or write f"):
        store.read("f")


# -- creation: won, lost or unknown


def failing_once(server: ObjectServer, fault: str) -> None:
    """One put fails."""
    faults_left = [fault]
    server.fault = lambda request: (
        faults_left.pop() if faults_left and request.kind == "PUT" and "0.json" in request.key else None
    )


@pytest.mark.parametrize("fault", [UNAVAILABLE, CONFLICT])
def test_a_creation_that_was_not_carried_out_is_sent_again(fault: str, server: ObjectServer) -> None:
    """S3 answers 409 while another request for the key is under way: the file is not there, and is not ours yet."""
    store = open_storage(f"{server.bucket()}/t", options=server.options("s3"))
    failing_once(server, fault)
    store.put_if_absent("log/0.json", b"ours")
    assert store.read("log/0.json") == b"ours"


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_lost_reply_it_is_not_known_who_created_a_file(kind: str, server: ObjectServer) -> None:
    """It is sent once: sent again, it would meet itself, and take its own file for another writer's."""
    for fault, is_there in ((LOSE_REPLY, True), (LOSE_REQUEST, False)):
        store = open_storage(f"{server.bucket(kind)}/t", options=server.options(kind))
        failing_once(server, fault)
        with pytest.raises(StoreUnavailableError, match=r"asked for log/0\.json"):
            store.put_if_absent("log/0.json", b"ours")
        assert store.exists("log/0.json") is is_there


def test_a_store_that_ignores_the_condition_is_not_written_to(server: ObjectServer) -> None:
    server.ignores_conditions = True
    address = server.bucket()
    store = open_storage(f"{address}/t", options=server.options("s3"))
    with pytest.raises(UnsupportedTableError, match=r"the store at http://127\.0\.0\.1:\d+ cannot create a file only"):
        store.put_if_absent("log/0", b"ours")
    assert server.buckets[address.partition("://")[2]] == {}, "the file that it was tried with is gone"


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("AWS_S3_LOCKING_PROVIDER", "dynamodb", "writers of this table lock it by dynamodb"),
        ("AWS_CONDITIONAL_PUT", "disabled", "cannot create a file only if it is absent"),
    ],
)
def test_options_that_say_how_others_exclude_are_respected(
    option: str, value: str, words: str, server: ObjectServer
) -> None:
    store = open_storage(f"{server.bucket()}/t", options=server.options("s3") | {option: value})
    with pytest.raises(UnsupportedTableError, match=words):
        store.put_if_absent("log/0", b"ours")
    assert not store.exists("log/0")


def test_a_store_that_excludes_is_tried_once(server: ObjectServer) -> None:
    store = open_storage(f"{server.bucket()}/t", options=server.options("s3"))
    store.put_if_absent("log/0", b"")
    server.requests.clear()
    store.put_if_absent("log/1", b"")
    assert server.requests == [Request("PUT", store.root.split("/")[2], "t/log/1")]


def test_a_name_that_cannot_be_listed_is_named(server: ObjectServer) -> None:
    address = server.bucket()
    store = open_storage(address, options=server.options("s3"))
    store.put("a", b"")
    bucket = server.buckets[address.partition("://")[2]]
    bucket["t//x"] = bucket["a"]
    with pytest.raises(LakeviewError, match="holds a name that cannot be listed"):
        store.walk()
