"""One file of a checkpoint as a value: what another process needs to read its file actions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from lakeview.delta.log.checkpoint_errors import readable
from lakeview.delta.log.checkpoint_files import each_file_actions
from lakeview.delta.log.checkpoint_json import JsonActions
from lakeview.delta.log.checkpoint_parquet import ParquetActions
from lakeview.storage import Storage


@dataclass(frozen=True, slots=True)
class CheckpointPiece:
    """One file of a checkpoint that may hold file actions, as a value that can travel to another process: where it is,
    its bytes (0 where unknown), and the top file that names a sidecar."""

    path: str
    size: int
    version: int
    parent: str | None = None

    def each_action(self, storage: Storage, kind: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """As `Checkpoint.each_action`, of this file."""
        name = self.path.rpartition("/")[2]
        if self.parent is None and name.endswith(".json"):
            yield JsonActions(storage, self.path, name, self.version).files(kind, columns)
            return
        file = ParquetActions(storage, self.path, self.size, name, None, self.parent)
        with readable(file.name, file.parent):
            yield from each_file_actions(file, kind, columns, storage.root)
