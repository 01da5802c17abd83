"""What a writer needs of the table it writes to."""

from __future__ import annotations

from typing import Protocol

from lakeview.delta.log.replay import Replay
from lakeview.delta.log.table_log import TableLog
from lakeview.storage import Storage


class Target(Protocol):
    """A Delta table as writers see it."""

    storage: Storage

    @property
    def log(self) -> TableLog:
        """Its log."""

    @property
    def latest_version(self) -> int:
        """The newest version seen by the last refresh."""

    def refresh(self) -> bool:
        """Look for newer versions."""

    def state(self, version: int | None = None) -> Replay:
        """The replayed log at a version, its protocol checked; the latest without one."""
