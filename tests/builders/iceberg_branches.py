"""An Iceberg table with branches and tags in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.builders.iceberg import IcebergHistory


class BranchedHistory(IcebergHistory):
    """Commits go to main, or to a branch inside `with history.on("audit"):`."""

    def tag(self, name: str, **retention: Any) -> BranchedHistory:
        """A tag of the current snapshot; retention with `_` for `-`."""
        return self._point(name, "tag", retention)

    def branch(self, name: str, **retention: Any) -> BranchedHistory:
        """A branch that begins at the current snapshot."""
        self._heads[name] = (list(self._manifests), dict(self._live))
        return self._point(name, "branch", retention)

    @contextmanager
    def on(self, name: str) -> Iterator[BranchedHistory]:
        """What is committed inside goes to this branch; main stays where it was."""
        log, main = list(self.document["snapshot-log"]), self.document["current-snapshot-id"]
        state_before = self._manifests, self._live
        self._manifests, self._live = self._heads[name]
        self.document["current-snapshot-id"] = self.document["refs"][name]["snapshot-id"]
        yield self
        self._heads[name] = self._manifests, self._live
        self._manifests, self._live = state_before
        self.document["refs"][name]["snapshot-id"] = self.document["current-snapshot-id"]
        self.document["current-snapshot-id"], self.document["snapshot-log"] = main, log
        self.document["refs"]["main"]["snapshot-id"] = main
        self._write()

    def record(self, **changes: Any) -> BranchedHistory:
        """The metadata with these members, `_` for `-`, as one more file."""
        self.document |= {key.replace("_", "-"): value for key, value in changes.items()}
        self._write()
        return self

    def _point(self, name: str, kind: str, retention: dict[str, Any]) -> BranchedHistory:
        at = {"snapshot-id": self.document["current-snapshot-id"], "type": kind}
        self.document["refs"][name] = at | {key.replace("_", "-"): value for key, value in retention.items()}
        self._write()
        return self

    @property
    def _heads(self) -> dict[str, Any]:
        heads: dict[str, Any] = self.__dict__.setdefault("_branch_heads", {})
        return heads
