"""One JSON file of a V2 checkpoint to the actions it holds (today's protocol, V2 Spec)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import msgspec
import polars as pl

from lakeview.delta.log.checkpoint_batches import readable
from lakeview.delta.log.checkpoint_footer import corrupt_checkpoint
from lakeview.delta.log.commits import RAW_LINES, parse_lines
from lakeview.delta.log.file_actions import newest_actions
from lakeview.model.errors import CorruptTableError
from lakeview.storage import Storage

_ACTION = msgspec.json.Decoder(dict[str, Any] | None)
_FILES = frozenset({"add", "remove"})


class JsonActions:
    """One JSON file of actions, of the table's `version`. CorruptTableError for what cannot be read."""

    def __init__(self, storage: Storage, path: str, version: int) -> None:
        self._storage = storage
        self._path = path
        self._version = version
        self.name = path.rpartition("/")[2]

    def structs(self, kinds: Mapping[str, Sequence[str]], *, first: bool = False) -> dict[str, list[dict[str, Any]]]:
        """The actions of each kind, where one of its keys is not null; nulls are left out. `first`: one of each."""
        actions = {
            kind: [a for a in self._actions(kind) if not a.keys().isdisjoint(keys)] for kind, keys in kinds.items()
        }
        return {kind: rows[: 1 if first else None] for kind, rows in actions.items()}

    def _actions(self, kind: str) -> Iterator[dict[str, Any]]:
        """The actions of one kind, without nulls."""
        with readable(self.name):
            for line in self._lines:
                if kind in line and (action := _ACTION.decode(line[kind])) is not None:
                    yield {name: value for name, value in action.items() if value is not None}

    def files(self, kind: str, columns: Sequence[str]) -> pl.DataFrame:
        """FILE_ACTIONS of the adds or the removes (`kind`), with these columns, as `newest_actions` gives them."""
        with _as_checkpoint(self.name):
            actions = newest_actions([(self._version, self._read())], self._storage.root, columns)
        return actions.filter(pl.col("added") if kind == "add" else ~pl.col("added")).drop("added")

    def check(self) -> None:
        """CorruptTableError if the file is no JSON."""
        _ = self._lines

    @cached_property
    def _lines(self) -> list[dict[str, bytes]]:
        """The lines by kind, file actions left out; copied, since raw values retain the buffer of the whole file."""
        with _as_checkpoint(self.name):
            lines = parse_lines(RAW_LINES, self._read(), self.name)
        few = ({kind: bytes(body) for kind, body in line.items() if kind not in _FILES} for line in lines)
        return [line for line in few if line]

    def _read(self) -> bytes:
        with readable(self.name):
            return self._storage.read(self._path)


@contextmanager
def _as_checkpoint(name: str) -> Iterator[None]:
    """A commit's error, as one of the checkpoint."""
    try:
        yield
    except CorruptTableError as error:
        if error.kind != "corrupt-commit":
            raise
        reason = error.message.partition(" cannot be read ")[2]
        line = (error.place or "").rpartition(":")[2]
        raise corrupt_checkpoint(f"checkpoint {name} cannot be read {reason}", f"{name}:{line}") from error
