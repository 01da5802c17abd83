"""The storage options of one table as a value that a task in another process gets with its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakeview.model.config import task_settings
from lakeview.storage import Storage, open_storage


@dataclass(frozen=True)
class StoreAccess:
    """Storage options of a table. They are pickled with a task, and no repr shows them."""

    options: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)

    @staticmethod
    def of(storage: Storage) -> StoreAccess:
        """The options that a store was opened with: those of the call over those of this process's configuration."""
        return StoreAccess(dict(storage.options))

    def open(self, root: str, roots: Sequence[str] = ()) -> Storage:
        """The store below an address, in a task; roots configured in its process win over `roots`."""
        return open_storage(root, options=self.options, config=task_settings(roots))


NO_OPTIONS = StoreAccess()
"""What a process opens a store with by itself."""
