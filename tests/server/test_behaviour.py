"""What holds while things go wrong: slow tables, silent clients, streams that break, faults of ours."""

from __future__ import annotations

import json
import socket
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from starlette.testclient import TestClient

from lakeview.model.errors import CorruptTableError
from lakeview.sharing.server.app import application
from lakeview.sharing.server.delta_source import DeltaSource
from lakeview.sharing.server.lines import encode_rows
from lakeview.sharing.server.serving import ImpatientProtocol
from lakeview.sharing.server.shared_version import SharedVersion
from tests.server.conftest import Api, RunningServer, hub_of
from tests.server.shared_lake import TABLE, configuration


def test_a_table_that_hangs_holds_up_no_other(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    free, hanging = threading.Event(), threading.Event()
    refresh = DeltaSource.refresh

    def slow(self: DeltaSource) -> int:
        if self.storage.root.endswith("/fed"):
            hanging.set()
            assert free.wait(30)
        return refresh(self)

    monkeypatch.setattr(DeltaSource, "refresh", slow)

    async def ask() -> tuple[int, list[int]]:
        transport = httpx.ASGITransport(application(api.hub))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=api.headers()) as http:

            async def version(table: str) -> int:
                return (await http.get(f"/delta-sharing/{TABLE.format(table)}/version")).status_code

            statuses_found: list[int] = []

            async def hung() -> None:
                statuses_found.append(await version("fed"))

            async with anyio.create_task_group() as group:
                for _ in range(30):  # more than there are threads
                    group.start_soon(hung)
                await anyio.to_thread.run_sync(hanging.wait)
                other = await version("months")
                assert statuses_found == []
                free.set()
            return other, statuses_found

    other, statuses_found = anyio.run(ask)
    assert (other, statuses_found) == (200, [200] * 30)


def broken(*_: Any) -> Iterator[bytes]:
    raise CorruptTableError("a part of /secret/place is damaged", kind="corrupt-commit")


def test_an_error_on_the_way_is_told_where_an_end_was_agreed(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeview.sharing.server.reading.encode_rows", broken)
    lines = api.query("months", {"delta-sharing-capabilities": "includeendstreamaction=true"})
    end = lines[-1]["endStreamAction"]
    assert end == {
        "errorMessage": "the table is damaged and cannot be read (corrupt-commit)",
        "httpStatusErrorCode": 400,
    }


def test_an_error_on_the_way_cuts_the_connection_otherwise(
    running: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakeview.sharing.server.reading.encode_rows", broken)
    url = f"{running.endpoint}/{TABLE.format('months')}/query"
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.post(url, json={}, headers={"Authorization": f"Bearer {running.token}"})


def test_the_first_lines_go_out_before_the_files_are_written(
    running: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def later(*arguments: Any) -> bytes:
        assert go_on.wait(30)
        return encode_rows(*arguments)

    monkeypatch.setattr("lakeview.sharing.server.reading.encode_rows", later)
    url = f"{running.endpoint}/{TABLE.format('months')}/query"
    headers = {"Authorization": f"Bearer {running.token}", "Accept-Encoding": "gzip"}
    with httpx.stream("POST", url, json={}, headers=headers) as answer:
        parts = answer.iter_raw()
        unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
        head = unpacker.decompress(next(parts))
        assert [next(iter(json.loads(line))) for line in head.splitlines()] == ["protocol", "metaData"]
        go_on.set()
        assert unpacker.decompress(b"".join(parts)).count(b"\n") == 6


def test_a_fault_of_ours_is_500_and_says_nothing(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: Any) -> int:
        raise ZeroDivisionError("/secret/place")

    monkeypatch.setattr(DeltaSource, "refresh", fault)
    with TestClient(application(api.hub), raise_server_exceptions=False) as client:
        answer = client.get(f"/delta-sharing/{TABLE.format('months')}/version", headers=api.headers())
    assert (answer.status_code, answer.json()) == (
        500, {"errorCode": "INTERNAL_ERROR", "message": "the server failed; its log says why"},
    )  # fmt: skip


def test_a_client_that_says_nothing_is_cut_off(running: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImpatientProtocol, "patience", 0.2)
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as silent:
        assert silent.recv(1) == b""


def test_a_request_that_is_no_http_is_refused(running: RunningServer) -> None:
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as odd:
        odd.sendall(b"\x16\x03\x01 nonsense\r\n\r\n")
        assert odd.recv(12) == b"HTTP/1.1 400"


def test_metadata_reads_no_listing(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakeview.delta.log.replay import Replay

    def never(*_: Any) -> Any:
        raise AssertionError("files were listed")

    monkeypatch.setattr(Replay, "adds", never)
    assert api.get(TABLE.format("months") + "/metadata").status_code == 200


def test_tables_are_loaded_before_anybody_asks_and_a_broken_one_stops_nothing(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, done = [], threading.Event()
    at = DeltaSource.at

    def watched(self: DeltaSource, version: int) -> SharedVersion:
        loaded.append(self.storage.root.rpartition("/")[2])
        if loaded[-1] == "odd":
            done.set()
        return at(self, version)

    monkeypatch.setattr(DeltaSource, "at", watched)
    with TestClient(application(hub_of(tmp_path, configuration(lake, loadAhead=7)))):
        assert done.wait(30)
    assert loaded == ["months", "fed", "vectors", "mapped", "empty", "broken", "odd"]
