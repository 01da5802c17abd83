"""Writers that make a table where none is: what each does, and what has to hold of version 0."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import polars as pl

from lakeview.delta.table import DeltaTable
from lakeview.delta.write.create import create_log
from lakeview.delta.write.first_commit import clone, convert
from lakeview.model.errors import CommitConflictError, LakeviewError, NotATableError, StoreUnavailableError
from lakeview.model.schema import Schema
from lakeview.storage import open_storage
from tests.simulation.laws import Violation, parse
from tests.simulation.operations import BEFORE_MS, NOW, SCHEMA, Base, Model, Operation, Writer, frame
from tests.simulation.store import Call, Files, Reply, Stored, is_commit, reply
from tests.simulation.writers import Outcome, SimulatedStorage

CREATION_LAYOUTS = ("empty", "parquet")
"""A folder without files, and one of two Parquet files."""

SOURCE = "memory://simulated-source/table"


class Creator(NamedTuple):
    """A writer at a place without a table."""

    storage: SimulatedStorage
    slot: str


@cache
def _source() -> DeltaTable:
    storage = open_storage(SOURCE)
    create_log(storage, SCHEMA, clock=lambda: NOW)
    table = Writer(storage, "s")
    table.append(frame((1, 10), (2, 20)))
    return table


def _operation(make: Callable[[Creator], None], files: int) -> Operation:
    """`files`: how many the table has then, the number in a model's rows."""
    return Operation(make, lambda *_: Model(((files, 0),)))


CREATIONS: Mapping[str, Mapping[str, Operation]] = {
    "empty": {
        "create": _operation(lambda c: create_log(c.storage, SCHEMA, clock=lambda: NOW), 0),
        "clone": _operation(lambda c: clone(_source(), c.storage, lambda: NOW), 1),
    },
    "parquet": {"convert": _operation(lambda c: convert(c.storage, Schema(), lambda: NOW), 2)},
}


def creation_base(layout: str) -> Base:
    """A folder without a table."""
    _source()
    files = {f"part-{n}.parquet": Stored(_parquet(n), BEFORE_MS) for n in range(2 if layout == "parquet" else 0)}
    return Base(Files(files), -1, Model(()))


def _parquet(number: int) -> bytes:
    data = io.BytesIO()
    pl.DataFrame({"id": [number], "v": [0]}).write_parquet(data)
    return data.getvalue()


class CreationLaws:
    """One writer makes the table, whole; the others are told that it is there; no file is touched, none is left."""

    def __init__(self, base: Base) -> None:
        self.base = base

    def check_effect(self, slot: str, operation: Operation, before: Files, call: Call, after: Files) -> None:
        """Version 0 is created exclusively, and that is all."""
        if call.kind != "create" or not is_commit(call.path) or call.path in before.content:
            raise Violation(f"writer {slot} changes the store by {call}")

    def check_opens(self, files: Files) -> None:
        """Nothing but version 0 is written."""

    def needs(self, files: Files, path: str) -> bool:
        """Every file stays."""
        return True

    def check_end(
        self, files: Files, slots: Mapping[str, Operation], outcomes: Mapping[str, Outcome | None], *, faulty: bool
    ) -> None:
        """There is no table, or the one of the writer that reports so."""
        owners = {version: parse(data).txn[:1] for version, data in files.commits.items()}
        if set(owners) - {0}:
            raise Violation(f"versions {sorted(owners)} of a new table")
        for slot, outcome in outcomes.items():
            if outcome is not None:
                _check_outcome(slot, outcome.error, owners.get(0), faulty=faulty)
        self._check_table(files, slots[owners[0]] if owners else None)

    def _check_table(self, files: Files, operation: Operation | None) -> None:
        def ask(call: Call) -> Reply:
            return reply(files, call)

        try:
            count: Any = DeltaTable(SimulatedStorage(ask, remote=False)).snapshot().num_files
        except NotATableError:
            count = None
        expected = None if operation is None else operation.step([], 0).rows[0][0]
        if count != expected:
            raise Violation(f"a reader finds a table of {count} files, not of {expected}")


def _check_outcome(slot: str, error: BaseException | None, owner: str | None, *, faulty: bool) -> None:
    if error is None:
        if owner != slot:
            raise Violation(f"writer {slot} reported a table that is of {owner}")
    elif isinstance(error, CommitConflictError):
        if owner in (None, slot):
            raise Violation(f"writer {slot} was told of another's table, and it is of {owner}")
    elif not isinstance(error, LakeviewError) or not faulty:
        raise Violation(f"writer {slot} failed: {type(error).__name__}: {error}") from error
    elif owner == slot and not (isinstance(error, StoreUnavailableError) and error.kind == "outcome-unknown"):
        raise Violation(f"writer {slot} reported {error}, and the table is its own") from error
