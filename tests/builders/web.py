"""Web servers on this machine that give a folder's files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from tests.builders.http_servers import http_server


@dataclass
class WebServer:
    """`lists`: whether it shows folders; `ranges`: whether it gives parts of files. `requests`: their first lines."""

    lists: bool = True
    ranges: bool = True
    address: str = ""
    requests: list[str] = field(default_factory=list)


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, *positional: Any, server_state: WebServer, **keywords: Any) -> None:
        self._state = server_state
        super().__init__(*positional, **keywords)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def send_head(self) -> BytesIO | BinaryIO | None:
        self._state.requests.append(f"{self.command} {self.path}")
        path = Path(self.translate_path(self.path))
        range_header = self.headers.get("range")
        if range_header is None or not self._state.ranges or not path.is_file():
            return super().send_head()
        data = path.read_bytes()
        first, _, last = range_header.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(data) - int(last))
        part = data[start : int(last) + 1 if first and last else None]
        if not part:
            self.send_error(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
            return None
        self.send_response(HTTPStatus.PARTIAL_CONTENT)
        self.send_header("Content-Range", f"bytes {start}-{start + len(part) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        return BytesIO(part)

    def list_directory(self, path: Any) -> BytesIO | None:
        if self._state.lists:
            return super().list_directory(path)
        self.send_error(HTTPStatus.NOT_FOUND)
        return None


@contextmanager
def web_server(folder: Path, *, lists: bool = True, ranges: bool = True) -> Iterator[WebServer]:
    """A server of a folder, on a port of its own, which ends with the block."""
    state = WebServer(lists, ranges)
    with http_server(partial(_Handler, directory=str(folder), server_state=state)) as state.address:
        yield state
