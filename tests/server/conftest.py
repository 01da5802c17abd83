"""Sharing servers for tests: one inside the test's process, and one that really listens on 127.0.0.1."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lakeview.sharing.server.app import application
from lakeview.sharing.server.config_file import read_settings
from lakeview.sharing.server.hub import Hub
from lakeview.sharing.server.serving import Server, uvicorn_config
from lakeview.sharing.server.tokens import TokenFile
from tests.server.shared_lake import TABLE, build, configuration, write_configuration

with warnings.catch_warnings():  # it asks for another client library than the one that lakeview has
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient


class Clock:
    """A clock that stands still until it is told otherwise; `steady` follows it."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 22, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment

    def steady(self) -> float:
        return self.moment.timestamp()

    def later(self, **more: float) -> None:
        self.moment += timedelta(**more)


@dataclass
class Api:
    """A server inside this process, and requests to it as a recipient."""

    folder: Path
    config: Path
    clock: Clock
    hub: Hub
    client: TestClient
    token: str

    def headers(self, token: str | None = None, **more: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token if token is None else token}", **more}

    def get(self, path: str, token: str | None = None, headers: dict[str, str] | None = None, **query: Any) -> Any:
        return self.client.get(f"/delta-sharing/{path}", params=query, headers=self.headers(token, **(headers or {})))

    def post(self, path: str, body: Any, headers: dict[str, str] | None = None, token: str | None = None) -> Any:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        all_headers = self.headers(token, **{"Content-Type": "application/json", **(headers or {})})
        return self.client.post(f"/delta-sharing/{path}", content=data, headers=all_headers)

    def query(self, table: str, headers: dict[str, str] | None = None, **body: Any) -> list[dict[str, Any]]:
        """The lines that answer a query, which has to go well."""
        answer = self.post(TABLE.format(table) + "/query", body, headers)
        assert answer.status_code == 200, answer.text
        return lines(answer)

    def files(self, table: str, **body: Any) -> list[dict[str, Any]]:
        return [line["file"] for line in self.query(table, **body) if "file" in line]

    def refused(self, table: str, tail: str = "query", **body: Any) -> tuple[int, str, str]:
        """Status, code and message of a query that is refused."""
        answer = self.post(f"{TABLE.format(table)}/{tail}", body)
        document = answer.json()
        return answer.status_code, document["errorCode"], document["message"]

    def new_token(self, recipient: str, life: timedelta | None = None) -> str:
        assert self.hub.settings.tokens is not None
        return TokenFile(Path(self.hub.settings.tokens), self.clock).create(recipient, life)[0]


def lines(answer: Any) -> list[dict[str, Any]]:
    """The lines of an answer."""
    return [json.loads(line) for line in answer.text.splitlines()]


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shared tables. Not to be changed."""
    folder = tmp_path_factory.mktemp("shared") / "lake"
    build(folder)
    return folder


def hub_of(folder: Path, document: dict[str, Any], clock: Clock | None = None) -> Hub:
    """The state of a server by this configuration, written to a folder."""
    path = write_configuration(folder / "server.yaml", document)
    settings, warnings = read_settings(path)
    assert warnings == []
    if clock is None:
        return Hub(settings, config=path)
    return Hub(settings, config=path, now=clock, steady=clock.steady)


@pytest.fixture
def api(lake: Path, tmp_path: Path) -> Iterator[Api]:
    """A server inside this process whose clock stands still."""
    clock = Clock()
    hub = hub_of(tmp_path, configuration(lake, limits={"apiBurst": 100_000}), clock)
    with TestClient(application(hub), base_url="http://127.0.0.1:8080") as client:
        server_api = Api(tmp_path, tmp_path / "server.yaml", clock, hub, client, "")
        server_api.token = server_api.new_token("ann")
        yield server_api


class Thread:
    """A uvicorn in a thread of its own, ended by the test."""

    def __init__(self, hub: Hub) -> None:
        self.server = Server(uvicorn_config(hub))
        self.thread = threading.Thread(target=self.server.run, name="sharing-server")

    def start(self) -> str:
        ready = threading.Event()
        startup = self.server.startup

        async def started(*arguments: Any, **more: Any) -> None:
            await startup(*arguments, **more)
            ready.set()

        self.server.startup = started  # type: ignore[method-assign]  # uvicorn has no word for "listening now"
        self.thread.start()
        assert ready.wait(30)
        host, port = self.server.servers[0].sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(30)
        assert not self.thread.is_alive()


@dataclass(frozen=True)
class RunningServer:
    """A server that listens. `profile`: of a recipient who may read the share `lake`."""

    url: str
    endpoint: str
    token: str
    profile: Path
    lake: Path
    hub: Hub
    thread: Thread


@contextmanager
def listening(folder: Path, lake: Path, document: dict[str, Any]) -> Iterator[RunningServer]:
    """A real server on 127.0.0.1 by this configuration, and the profile of ann; its files lie in `folder`."""
    hub = hub_of(folder, {**document, "limits": {"apiRate": 1e6, "apiBurst": 1_000_000}})
    assert hub.settings.tokens is not None
    token, _ = TokenFile(Path(hub.settings.tokens), hub.now).create("ann")
    thread = Thread(hub)
    url = thread.start()
    try:
        endpoint = f"{url}{hub.settings.endpoint}"
        profile = folder / "ann.share"
        profile.write_text(json.dumps({"shareCredentialsVersion": 1, "endpoint": endpoint, "bearerToken": token}))
        yield RunningServer(url, endpoint, token, profile, lake, hub, thread)
    finally:
        thread.stop()


@pytest.fixture(scope="session")
def running(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A real server, shared by all tests of a session."""
    folder = tmp_path_factory.mktemp("server")
    with listening(folder, lake, configuration(lake, audit=str(folder / "audit"))) as server:
        yield server
