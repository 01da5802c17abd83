"""An application to a running server: one uvicorn, on loopback by default, closed to slow and idle clients."""

import asyncio
import ipaddress
import logging
import socket
import sys
import threading
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from lakeview.model.errors import InvalidRequestError
from lakeview.sharing.server.app import application
from lakeview.sharing.server.hub import Hub
from lakeview.sharing.server.limits import HEAD_BYTES
from lakeview.sharing.server.settings import Settings

_KEEP_ALIVE = 30
_SWITCH_SECONDS = 0.001
_STEP = 0.01
_SHUTDOWN = 10  # seconds that answers under way may take once the server is to end


class ImpatientProtocol(H11Protocol):
    """Closes connections on which nothing happens: uvicorn itself waits for ever.

    Each is checked every `patience` seconds. One without a request, or without another request since the last check, is
    closed; one that is closing and whose reader still takes nothing is aborted.
    """

    patience = 30.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own type
        super().connection_made(transport)
        self._last_cycle: object = None
        self._ending = False
        self._waiting = self.loop.call_later(self.patience, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting.cancel()  # it would hold what is left of the connection for as long as it waits
        super().connection_lost(exc)

    def _look(self) -> None:
        cycle: Any = self.cycle  # uvicorn says that it is always there, and it is not until the first request
        if self.transport.is_closing():
            if self._ending:  # what is left to send would be held as long as the reader likes
                self.transport.abort()
                return
            self._ending = True
        elif (cycle is None or cycle.response_complete) and cycle is self._last_cycle:
            self.transport.close()
            self._ending = True
        self._last_cycle = cycle
        self._waiting = self.loop.call_later(self.patience, self._look)


def check_exposure(settings: Settings) -> None:
    """InvalidRequestError for plain http on an interface that others reach, unless that is allowed by name."""
    if settings.ssl is None and not settings.allow_http and not _loopback(settings.host):
        raise InvalidRequestError(
            f"tokens would travel in the clear: {settings.host} is no loopback address and no TLS is set",
            fix="set ssl, or serve on 127.0.0.1 behind a proxy, or set allowHttp: true if the network is trusted",
            kind="bad-configuration",
        )


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def uvicorn_config(hub: Hub) -> uvicorn.Config:
    """How the server is run. The access log of uvicorn would print signatures: the audit log takes its place."""
    settings = hub.settings
    check_exposure(settings)
    tls: dict[str, Any] = {}
    if settings.ssl is not None:
        tls = {"ssl_certfile": settings.ssl.certificate_file, "ssl_keyfile": settings.ssl.certificate_key_file}
        if settings.ssl.certificate_password_file is not None:
            with open(settings.ssl.certificate_password_file, encoding="utf-8") as file:
                tls["ssl_keyfile_password"] = file.read().strip()
    return uvicorn.Config(
        application(hub),
        host=settings.host,
        port=settings.port,
        http=ImpatientProtocol,
        ws="none",
        lifespan="on",
        access_log=False,
        log_level=logging.WARNING,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies or None,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=_SHUTDOWN,
        h11_max_incomplete_event_size=HEAD_BYTES,
        **tls,
    )


class Server(uvicorn.Server):
    """A uvicorn that leaves no connection behind: those still open after the time given are cut off."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)  # for the loop to close what was cut


def serve(hub: Hub) -> None:
    """Serve until interrupted."""
    # a thread that parses or writes lines gives the interpreter's lock back after 1 ms instead of 5: the event loop
    # takes it several times for one answer, and beside a costly parse waited 100 ms for it in all, now 20
    sys.setswitchinterval(_SWITCH_SECONDS)
    Server(uvicorn_config(hub)).run()


def serve_in_background(hub: Hub, listener: socket.socket) -> None:
    """Serves the connections of a bound socket in a thread that ends with this process; returns when it takes requests.

    InvalidRequestError if the server ends before.
    """
    server = Server(uvicorn_config(hub))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True, name="sharing-server")
    thread.start()
    while thread.is_alive() and not server.started:
        thread.join(_STEP)
    if not server.started:
        raise InvalidRequestError("the sharing server did not start", fix="its reason is in the log of this process")


def free_port(host: str) -> int:
    """A port of this interface on which no server listens now."""
    with socket.create_server((host, 0)) as probe:
        return int(probe.getsockname()[1])
