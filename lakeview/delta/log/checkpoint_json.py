"""One JSON file of a V2 checkpoint to the actions it holds (today's protocol, V2 Spec)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import msgspec
import polars as pl

from lakeview.delta.log.checkpoint_parquet import readable
from lakeview.delta.log.commits import parse_lines
from lakeview.delta.log.file_lines import newest_actions
from lakeview.model.errors import CorruptTableError
from lakeview.storage import Storage


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    """One line of a JSON checkpoint, its file actions left aside."""

    protocol: dict[str, Any] | None = None
    meta_data: dict[str, Any] | None = None
    txn: dict[str, Any] | None = None
    domain_metadata: dict[str, Any] | None = None
    sidecar: dict[str, Any] | None = None
    checkpoint_metadata: dict[str, Any] | None = None


_LINES = msgspec.json.Decoder(_Line)
_ATTRIBUTES = {
    "metaData": "meta_data",
    "domainMetadata": "domain_metadata",
    "checkpointMetadata": "checkpoint_metadata",
}


class JsonActions:
    """One JSON file of actions, of the table's `version`. CorruptTableError for what cannot be read."""

    def __init__(self, storage: Storage, path: str, name: str, version: int) -> None:
        self._storage = storage
        self._path = path
        self._version = version
        self.name = name

    def structs(self, kinds: Mapping[str, Sequence[str]], *, first: bool = False) -> dict[str, list[dict[str, Any]]]:
        """The actions of each kind, where one of its keys is not null; nulls are left out. `first`: one of each."""
        found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
        for line in self._lines:
            for kind, keys in kinds.items():
                action = getattr(line, _ATTRIBUTES.get(kind, kind))
                if action is not None and any(action.get(key) is not None for key in keys):
                    found[kind].append({name: value for name, value in action.items() if value is not None})
        return {kind: rows[:1] if first else rows for kind, rows in found.items()}

    def files(self, kind: str, columns: Sequence[str]) -> pl.DataFrame:
        """FILE_ACTIONS of the adds or the removes (`kind`), with these columns, as `newest_actions` gives them."""
        with _as_checkpoint(self.name):
            actions = newest_actions([(self._version, self._read())], self._storage.root, columns)
        return actions.filter(pl.col("added") if kind == "add" else ~pl.col("added")).drop("added")

    def check(self) -> None:
        """CorruptTableError if the file is no JSON."""
        _ = self._lines

    @cached_property
    def _lines(self) -> list[_Line]:
        with _as_checkpoint(self.name):
            return parse_lines(_LINES, self._read(), self.name)

    def _read(self) -> bytes:
        with readable(self.name):
            return self._storage.read(self._path)


@contextmanager
def _as_checkpoint(name: str) -> Iterator[None]:
    """A commit's error, told as the checkpoint's."""
    try:
        yield
    except CorruptTableError as error:
        if error.kind != "corrupt-commit":
            raise
        reason = error.message.partition(" cannot be read ")[2]
        raise CorruptTableError(
            f"checkpoint {name} cannot be read {reason}",
            fix="restore the file from a backup; if every commit is still there, deleting the checkpoint is enough",
            place=f"{name}:{(error.place or '').rpartition(':')[2]}",
            kind="corrupt-checkpoint",
        ) from error
