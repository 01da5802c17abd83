"""A sharing server for a test, and its profile as a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.shares import SharingServer


@pytest.fixture
def server() -> Iterator[SharingServer]:
    sharing_server = SharingServer()
    yield sharing_server
    sharing_server.close()


@pytest.fixture
def profile(server: SharingServer, tmp_path: Path) -> Path:
    path = tmp_path / "team.share"
    path.write_text(json.dumps(server.profile()))
    path.chmod(0o600)
    return path
