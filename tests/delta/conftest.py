"""A history to tell, in a folder or in memory."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from tests.builders.history import DeltaHistory


@pytest.fixture
def history(tmp_path: Path) -> DeltaHistory:
    """An untold history in an empty folder."""
    return DeltaHistory(tmp_path / "table")


@pytest.fixture(params=["in a folder", "in memory"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An address where nothing is, once on disk and once in memory."""
    if request.param == "in a folder":
        yield str(tmp_path / "table")
        return
    name = f"/lakeview-test-{uuid.uuid4().hex}/table"
    yield f"memory:/{name}"
    memory = fsspec.filesystem("memory")
    if memory.exists(name):
        memory.rm(name, recursive=True)
