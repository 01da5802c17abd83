"""What an exploration takes of a table format: a base table, its operations, the names of its log and its laws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tests.simulation.creation import CREATION_LAYOUTS, CREATIONS, CreationLaws, Creator, creation_base
from tests.simulation.iceberg_catalog import iceberg_catalog_table
from tests.simulation.iceberg_laws import IcebergLaws
from tests.simulation.iceberg_operations import (
    ICEBERG_LAYOUTS,
    ICEBERG_NAMES,
    ICEBERG_OPERATIONS,
    iceberg_base,
    iceberg_table,
)
from tests.simulation.laws import Laws
from tests.simulation.operations import LAYOUTS as DELTA_LAYOUTS
from tests.simulation.operations import OPERATIONS, Base, Operation, Writer, base_table
from tests.simulation.store import DELTA_NAMES, Call, Files, LogNames
from tests.simulation.writers import Outcome, SimulatedStorage

LAYOUTS = (*DELTA_LAYOUTS, *CREATION_LAYOUTS, *ICEBERG_LAYOUTS)


class FormatLaws(Protocol):
    """What has to hold; each raises a Violation."""

    def check_effect(self, slot: str, operation: Operation, before: Files, call: Call, after: Files) -> None:
        """What a call must not do to the store."""

    def check_opens(self, files: Files) -> None:
        """A reader that comes now opens the table at the newest version."""

    def check_end(
        self, files: Files, slots: Mapping[str, Operation], outcomes: Mapping[str, Outcome | None], *, faulty: bool
    ) -> None:
        """What holds when every writer has reported or was killed (None). `faulty`: whether the store failed once."""

    def needs(self, files: Files, path: str) -> bool:
        """Whether a version from the base on reads a file."""


@dataclass(frozen=True)
class World:
    """A table of a format. `table`: it as a writer in a slot opens it; `laws`: new ones, with nothing remembered."""

    base: Base
    operations: Mapping[str, Operation]
    names: LogNames
    table: Callable[[SimulatedStorage, str], Any]
    laws: Callable[[], FormatLaws]


def operations_of(layout: str) -> Mapping[str, Operation]:
    """What writers do to a table of a layout, by name."""
    if layout in CREATION_LAYOUTS:
        return CREATIONS[layout]
    return ICEBERG_OPERATIONS if layout in ICEBERG_LAYOUTS else OPERATIONS


def world_of(layout: str) -> World:
    """The world of a table by its layout."""
    if layout in ICEBERG_LAYOUTS:
        base = iceberg_base(layout)
        by_catalog = layout == "iceberg-catalog"
        names = replace(ICEBERG_NAMES, lists_late=not by_catalog)
        table = iceberg_catalog_table if by_catalog else iceberg_table
        return World(base, ICEBERG_OPERATIONS, names, table, lambda: IcebergLaws(base))
    if layout in CREATION_LAYOUTS:
        base = creation_base(layout)
        return World(base, CREATIONS[layout], DELTA_NAMES, Creator, lambda: CreationLaws(base))
    base = base_table(layout)
    return World(base, OPERATIONS, DELTA_NAMES, Writer, lambda: Laws(base))
