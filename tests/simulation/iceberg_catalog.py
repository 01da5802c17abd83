"""A REST catalog in simulations: it checks what a change requires, makes it the next metadata file, and answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lakeview.iceberg.metadata.locate import FOLDER, Place, metadata_number
from lakeview.iceberg.table import IcebergTable
from lakeview.storage import Storage
from tests.builders.catalogs import apply_update, is_met
from tests.simulation.writers import ROOT, SimulatedStorage


class SimulatedCatalog:
    """Implements `Pointer` over the writer's own store: every step of the catalog is one of the schedule's, and a lost
    reply of its last one is an answer 5xx, whether the change was made or not."""

    address = ROOT
    takes_commits = True

    def __init__(self, storage: SimulatedStorage) -> None:
        self._storage = storage

    def current(self) -> tuple[Storage, Place]:
        """The table's folder, whose newest metadata file is the current one."""
        return self._storage, Place(ROOT)

    def commit(self, requirements: Sequence[Mapping[str, Any]], updates: Sequence[Mapping[str, Any]]) -> bool:
        """As `Pointer`; false is the answer 409."""
        names = [entry[0] for entry in self._storage.entries_from(FOLDER)]
        numbers = {number: name for name in names if (number := metadata_number(name)) is not None}
        newest = max(numbers)
        document = json.loads(self._storage.read(f"{FOLDER}/{numbers[newest]}"))
        if not all(is_met(requirement, document) for requirement in requirements):
            return False
        before = {"timestamp-ms": document["last-updated-ms"], "metadata-file": f"{ROOT}/{FOLDER}/{numbers[newest]}"}
        document["metadata-log"] = [*document.get("metadata-log", ()), before]
        for update in updates:
            apply_update(update, document)
        try:
            self._storage.put_if_absent(f"{FOLDER}/v{newest + 1}.metadata.json", json.dumps(document).encode())
        except FileExistsError:
            return False
        return True


def iceberg_catalog_table(storage: SimulatedStorage, _: str = "") -> IcebergTable:
    """The table as a writer opens it by its catalog."""
    return IcebergTable(storage, Place(ROOT), {}, SimulatedCatalog(storage))
