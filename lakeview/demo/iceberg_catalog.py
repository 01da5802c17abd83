"""A catalog for the demo's Iceberg tables: pyiceberg's in-memory one, with the story's clock and the lake's own place.

Rows come through Spark, which commits to the folders; the catalog makes what lakeview does not write.

The catalog is gone after the build: the tables are opened from their folders.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.io import PY_IO_IMPL
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import StagedTable, Table
from pyiceberg.table.update import AddSnapshotUpdate, TableRequirement, TableUpdate
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties
from pyiceberg.utils.concurrent import ExecutorFactory

from lakeview.iceberg.metadata.locate import HINT, metadata_number

NAMESPACE = "demo"
_RECORD, _FOLDER = "lakeview.demo.recorded", "lakeview.demo.folder"


class StoryCatalog(InMemoryCatalog):
    """Tables that are recorded as lying in `recorded_folder`, and are folder to `folder`, which will be moved there.

    Set `moment` before a commit: it is the time that its snapshots, its log entries and its metadata file bear.
    """

    moment: datetime
    place: str

    def __init__(self, recorded_folder: Path, folder: Path) -> None:
        places = {_RECORD: str(recorded_folder), _FOLDER: str(folder)}
        io = f"{FutureFiles.__module__}.{FutureFiles.__qualname__}"
        super().__init__("demo", warehouse=str(recorded_folder), **{PY_IO_IMPL: io}, **places)
        self.place = str(recorded_folder)
        self.create_namespace(NAMESPACE)
        self._folder = folder

    def follow(self, name: str) -> None:
        """Know a table as another writer left it in its folder; the catalog is the next to commit."""
        names = [path.name for path in (self._folder / name / "metadata").glob("*.metadata.json")]
        newest = max(names, key=lambda each: metadata_number(each) or 0)
        # what it says is not true any more with the next commit
        (self._folder / name / "metadata" / HINT).unlink(missing_ok=True)
        self.drop_table(f"{NAMESPACE}.{name}")
        self.register_table(f"{NAMESPACE}.{name}", f"{self.place}/{name}/metadata/{newest}")

    @staticmethod
    def _parse_metadata_version(metadata_location: str) -> int:
        """Names of other writers have no uuid: the library would count from 0 again."""
        return metadata_number(metadata_location.rpartition("/")[2]) or 0

    def _update_and_stage_table(
        self,
        current_table: Table | None,
        table_identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable:
        # The library asks the wall clock in three places; all of them end in this step of a commit.
        now = round(self.moment.timestamp() * 1000)
        staged_table = super()._update_and_stage_table(
            current_table, table_identifier, requirements, tuple(_set_time(u, now) for u in updates)
        )
        num_old = len(current_table.metadata.snapshot_log) if current_table else 0
        log = [
            entry if number < num_old else entry.model_copy(update={"timestamp_ms": now})
            for number, entry in enumerate(staged_table.metadata.snapshot_log)
        ]
        staged_table.metadata = staged_table.metadata.model_copy(update={"last_updated_ms": now, "snapshot_log": log})
        return staged_table


def _set_time(update: TableUpdate, now: int) -> TableUpdate:
    """The update with a new snapshot of this time, in milliseconds since 1970."""
    if not isinstance(update, AddSnapshotUpdate):
        return update
    return AddSnapshotUpdate(snapshot=update.snapshot.model_copy(update={"timestamp_ms": now}))


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for pyiceberg in this block.

    Its threads evaluate manifests by one visitor that holds the manifest at hand (0.12, `_ManifestEvalVisitor`): with
    several of them a file may be missed, and an overwrite then ends with "Missing required files to delete".
    """
    before = ExecutorFactory._instance, ExecutorFactory._instance_pid
    with ThreadPoolExecutor(max_workers=1) as executor:
        ExecutorFactory._instance, ExecutorFactory._instance_pid = executor, os.getpid()
        try:
            yield
        finally:
            ExecutorFactory._instance, ExecutorFactory._instance_pid = before


class FutureFiles(PyArrowFileIO):
    """Files of a folder that will be moved when it is whole, by the paths that they will have then."""

    @staticmethod
    def parse_location(location: str, properties: Properties = EMPTY_DICT) -> tuple[str, str, str]:
        """As the library's, in the folder that the files lie in for now."""
        recorded_folder, folder = properties[_RECORD], properties[_FOLDER]
        if location.startswith(f"{recorded_folder}/"):
            location = folder + location.removeprefix(recorded_folder)
        return PyArrowFileIO.parse_location(location, properties)
