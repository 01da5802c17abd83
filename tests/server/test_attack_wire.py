"""Connections that mean harm: smuggling, slowness, endless heads and bodies; nobody else waits for them."""

from __future__ import annotations

import gc
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import msgspec
import pytest

from lakeview.sharing.server import reading
from lakeview.sharing.server.serving import ImpatientProtocol
from tests.server.conftest import RunningServer, listening
from tests.server.shared_lake import TABLE, configuration

PATH = "/delta-sharing/" + TABLE.format("months")


@contextmanager
def connected(running: RunningServer) -> Iterator[socket.socket]:
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        yield connection


def receive_all(connection: socket.socket) -> bytes:
    """Everything until the other side closes."""
    answer = b""
    try:
        while part := connection.recv(1 << 16):
            answer += part
    except ConnectionResetError:
        pass
    return answer


def head(running: RunningServer, line: str, *headers: str, close: bool = True) -> bytes:
    """A request's head, in full."""
    lines = [line, "Host: x", f"Authorization: Bearer {running.token}", *headers, *(["Connection: close"] * close)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def statuses(answer: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"^HTTP/1\.1 (\d{3})", answer, re.MULTILINE)]


def alive(running: RunningServer) -> None:
    """Others are served meanwhile."""
    answer = httpx.get(
        running.url + PATH + "/version", headers={"Authorization": f"Bearer {running.token}"}, timeout=30
    )
    assert answer.status_code == 200


HIDDEN = "GET /delta-sharing/shares HTTP/1.1\r\nHost: x\r\n\r\n"
SMUGGLED: dict[str, tuple[tuple[str, ...], bytes]] = {
    "two lengths": (("Content-Length: 2", "Content-Length: 50"), b"{}"),
    "a length and chunks": (("Content-Length: 4", "Transfer-Encoding: chunked"), b"0\r\n\r\n"),
    "chunks of another kind": (("Transfer-Encoding: xchunked",), b"0\r\n\r\n"),
    "chunks twice": (("Transfer-Encoding: chunked", "Transfer-Encoding: identity"), b"0\r\n\r\n"),
    "a negative length": (("Content-Length: -1",), b"{}"),
    "a length with a sign": (("Content-Length: +2",), b"{}"),
    "a length that is none": (("Content-Length: two",), b"{}"),
    "a length beyond measure": (("Content-Length: " + "9" * 30,), b"{}"),
    "a blank before the colon": (("Content-Length : 2",), b"{}"),
    "a folded header": (("X-A: b", " Content-Length: 2"), b"{}"),
    "a chunk whose size is none": (("Transfer-Encoding: chunked",), b"zz\r\n{}\r\n0\r\n\r\n"),
    "a chunk of a negative size": (("Transfer-Encoding: chunked",), b"-2\r\n{}\r\n0\r\n\r\n"),
    "a bare line feed": (("X-A: b\nX-B: c",), b""),
    "a zero in a header": (("X-A: \x00",), b""),
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_a_request_whose_end_is_in_doubt_gives_one_refusal_and_no_second_answer(
    name: str, running: RunningServer
) -> None:
    headers, body = SMUGGLED[name]
    with connected(running) as connection:
        connection.sendall(head(running, f"POST {PATH}/query HTTP/1.1", *headers, close=False) + body + HIDDEN.encode())
        connection.shutdown(socket.SHUT_WR)
        statuses_found = statuses(receive_all(connection))
    assert statuses_found == [400]
    alive(running)


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET /delta-sharing/shares HTTP/9.9", 505), ("PRI * HTTP/2.0", 505), ("GET  HTTP/1.1", 400),
        ("GET /x y HTTP/1.1", 400), ("\x00\x01 / HTTP/1.1", 400), ("GET http://evil/x HTTP/1.1", 404),
        ("CONNECT evil:443 HTTP/1.1", 404),
    ],
    ids=repr,
)  # fmt: skip
def test_a_request_line_that_the_server_does_not_know_is_refused(
    line: str, status: int, running: RunningServer
) -> None:
    with connected(running) as connection:
        connection.sendall(head(running, line))
        assert statuses(receive_all(connection)) == [status]
    alive(running)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/x" * 40_000, ()), (f"{PATH}/version?x={'y' * 70_000}", ()),
        ("/delta-sharing/shares", ("X-A: " + "b" * 70_000,)),
        ("/delta-sharing/shares", tuple(f"X-{i}: b" for i in range(300))),
    ],
    ids=["a path", "a query", "a header", "many headers"],
)  # fmt: skip
@pytest.mark.parametrize("pieces", [1, 2])
def test_a_head_that_is_too_large_is_refused(
    path: str, headers: tuple[str, ...], pieces: int, running: RunningServer
) -> None:
    data = head(running, f"GET {path} HTTP/1.1", *headers)
    half = len(data) // pieces
    with connected(running) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # it closed before it had all: a refusal as well
            connection.sendall(data[:half])
            connection.sendall(data[half:])
        assert statuses(receive_all(connection)) in ([431], [400], [])  # 400 and none from the parser, before the end
    alive(running)


def test_an_upgrade_is_answered_as_a_plain_request(running: RunningServer) -> None:
    with connected(running) as connection:
        upgrade = ("Upgrade: websocket", "Connection: Upgrade")
        connection.sendall(head(running, "GET /delta-sharing/shares HTTP/1.1", *upgrade))
        assert statuses(receive_all(connection)) == [200]


def test_an_endless_body_is_cut_off(running: RunningServer) -> None:
    bytes_sent = 0
    with connected(running) as connection:
        connection.sendall(head(running, f"POST {PATH}/query HTTP/1.1", "Transfer-Encoding: chunked"))
        chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
        try:
            while bytes_sent < 64 << 20:
                connection.sendall(chunk)
                bytes_sent += 65536
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = receive_all(connection)
    assert bytes_sent < 64 << 20 or statuses(answer) == [413]
    alive(running)


def test_many_slow_clients_hold_up_nobody_and_are_cut_off(
    running: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ImpatientProtocol, "patience", 1.0)
    host, port = running.url.removeprefix("http://").split(":")
    slow = [socket.create_connection((host, int(port)), timeout=30) for _ in range(200)]
    try:
        for connection in slow:
            connection.sendall(b"GET /delta-sharing/shares HT")
        begun = time.monotonic()
        alive(running)
        assert time.monotonic() - begun < 10
        for connection in slow:
            assert statuses(receive_all(connection)) in ([], [400], [408])
    finally:
        for connection in slow:
            connection.close()


def test_a_body_that_does_not_come_is_told_and_holds_up_nobody(
    running: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = msgspec.structs.replace(running.hub.settings.limits, stall_seconds=0.5)
    settings = msgspec.structs.replace(running.hub.settings, limits=limits)
    monkeypatch.setattr(running.hub.catalogue, "settings", settings)
    with connected(running) as connection:
        connection.sendall(head(running, f"POST {PATH}/query HTTP/1.1", "Content-Length: 100") + b"{")
        alive(running)
        answer = receive_all(connection)
    assert statuses(answer) == [408]
    assert json.loads(answer.rpartition(b"\r\n")[2])["message"] == "the body did not arrive in time"


def test_readers_that_take_nothing_are_cut_off_and_nothing_is_kept_for_them(
    running: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = msgspec.structs.replace(running.hub.settings.limits, stall_seconds=0.3)
    settings = msgspec.structs.replace(running.hub.settings, limits=limits)
    monkeypatch.setattr(running.hub.catalogue, "settings", settings)
    monkeypatch.setattr(reading, "encode_rows", lambda *_: b" " * (16 << 20))
    monkeypatch.setattr(ImpatientProtocol, "patience", 0.3)
    cut = threading.Event()
    connection_lost = ImpatientProtocol.connection_lost

    def lose_and_note(self: ImpatientProtocol, error: Exception | None) -> None:
        connection_lost(self, error)
        cut.set()

    with connected(running) as connection:
        connection.sendall(head(running, f"POST {PATH}/query HTTP/1.1", "Content-Length: 2") + b"{}")
        assert connection.recv(12) == b"HTTP/1.1 200"
        monkeypatch.setattr(ImpatientProtocol, "connection_lost", lose_and_note)
        assert cut.wait(20)
    alive(running)


def test_a_second_request_that_does_not_come_whole_is_cut_off(
    running: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ImpatientProtocol, "patience", 0.3)
    with connected(running) as connection:
        connection.sendall(head(running, f"GET {PATH}/version HTTP/1.1", close=False) + b"GET /delta-sharing/sha")
        assert statuses(receive_all(connection)) == [200]


def test_requests_one_after_the_other_on_one_connection_are_each_asked_for_a_token(running: RunningServer) -> None:
    first = head(running, f"GET {PATH}/version HTTP/1.1", close=False)
    second = f"GET {PATH}/version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    with connected(running) as connection:
        connection.sendall(first + second)
        statuses_found = statuses(receive_all(connection))
    assert statuses_found == [200, 401]


def test_a_server_that_ends_cuts_off_who_still_hangs_on_and_leaves_no_connection(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "encode_rows", lambda *_: b" " * (16 << 20))
    with listening(tmp_path, lake, configuration(lake)) as running:
        server = running.thread.server
        server.config.timeout_graceful_shutdown = 1
        with connected(running) as connection:
            connection.sendall(head(running, f"POST {PATH}/query HTTP/1.1", "Content-Length: 2") + b"{}")
            assert connection.recv(12) == b"HTTP/1.1 200"
            running.thread.stop()
    assert not server.server_state.connections
    gc.collect()  # a transport that was left open warns here, and a warning is an error
