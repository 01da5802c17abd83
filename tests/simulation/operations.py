"""What writers do in simulations, each with its model: adding an operation is a line of OPERATIONS."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import Any
from unittest.mock import patch

import polars as pl

from lakeview.delta.table import DeltaTable
from lakeview.delta.write.create import create_log
from lakeview.delta.write.transaction import Transaction
from lakeview.model.clock import Clock
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.schema import Schema
from lakeview.storage import Storage
from tests.simulation.store import Call, Files, Reply, effect, reply
from tests.simulation.writers import SimulatedStorage

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
BEFORE = datetime(2026, 6, 1, 12, tzinfo=UTC)
BEFORE_MS = int(BEFORE.timestamp() * 1000)
"""When the table was made: beyond the retention of what it has deleted."""

SCHEMA = Schema((Field("id", PrimitiveType("long")), Field("v", PrimitiveType("long"))))
PARITY = Field("parity", PrimitiveType("long"), metadata={"delta.generationExpression": "id % 2"})


class Writer(DeltaTable):
    """A table whose commits name their writer, at the simulation's time."""

    def __init__(self, storage: Storage, slot: str, clock: Clock = lambda: NOW) -> None:
        super().__init__(storage)
        self.slot = slot
        self.clock = clock

    def transaction(
        self,
        operation: str = "WRITE",
        *,
        parameters: dict[str, Any] | None = None,
        metrics: dict[str, Any] | None = None,
        user: str | None = None,
        user_metadata: str | None = None,
        engine: str | None = None,
        clock: Clock | None = None,
    ) -> Transaction:
        return super().transaction(
            operation, parameters=parameters, metrics=metrics, user=user, user_metadata=user_metadata,
            engine=engine or f"writer {self.slot}", clock=clock or self.clock,
        )  # fmt: skip


Row = tuple[int, int]


@dataclass(frozen=True)
class Model:
    """A table at a version, as far as operations say: a multiset of rows in order, its columns and properties."""

    rows: tuple[Row, ...]
    columns: tuple[str, ...] = ("id", "v")
    properties: frozenset[tuple[str, str]] = frozenset()

    def changed(self, rows: Iterable[Row]) -> Model:
        """With other rows."""
        return replace(self, rows=tuple(sorted(rows)))


Step = Callable[[Sequence[Model], int], Model]
"""The versions so far to the next one; the number is how many commits the same writer made before."""


@dataclass(frozen=True)
class Operation:
    """What a writer does, and what its commit has to mean. `run` returns a version, rows at a version, or None.

    `commits`: how many it makes at most; `walks`: whether it lists data files; `deletes`: whether it deletes those that
    were removed; `cleans`: whether it deletes old files of the log; `may_fail`: whether it may end in an error without
    a fault, the table left as it is.
    """

    run: Callable[[Any], Any]
    step: Step = lambda versions, _: versions[-1]
    commits: int = 1
    walks: bool = False
    deletes: bool = False
    cleans: bool = False
    may_fail: bool = False


def frame(*rows: Row) -> pl.DataFrame:
    return pl.DataFrame({"id": [row[0] for row in rows], "v": [row[1] for row in rows]})


def _rows(change: Callable[[tuple[Row, ...]], Iterable[Row]]) -> Step:
    return lambda versions, _: versions[-1].changed(change(versions[-1].rows))


def _add_column(name: str) -> Callable[[Writer], int | None]:
    def run(table: Writer) -> int | None:
        with table.transaction("ADD COLUMNS") as txn:
            if name not in txn.schema.names:
                txn.evolve(Schema((*txn.schema, Field(name, PrimitiveType("string")))))
        return txn.version

    return run


def _with_column(name: str) -> Step:
    return lambda versions, _: replace(versions[-1], columns=tuple(dict.fromkeys((*versions[-1].columns, name))))


def _ingest(table: Writer) -> int | None:
    """A batch that its sender may send again."""
    with table.transaction("STREAMING UPDATE") as txn:
        txn.append(frame((8, 80)))
        txn.set_transaction("sender", 1, once=True)
    return txn.version


def _merge(table: Writer) -> int | None:
    count: int | None = (
        table.merge(frame((3, 33), (9, 90)), ["id"]).when_matched_update().when_not_matched_insert().execute()
    )
    return count


def _merged(rows: tuple[Row, ...]) -> Sequence[Row]:
    rows_after = [(i, {3: 33, 9: 90}.get(i, v)) for i, v in rows]
    present = {i for i, _ in rows_after}
    return [*rows_after, *(row for row in ((3, 33), (9, 90)) if row[0] not in present)]


def _fill(table: Writer) -> int | None:
    count: int | None = table.merge(frame((2, 22), (9, 91)), ["id"]).when_not_matched_insert().execute()
    return count


def _filled(rows: tuple[Row, ...]) -> Iterable[Row]:
    present = {i for i, _ in rows}
    return [*rows, *(row for row in ((2, 22), (9, 91)) if row[0] not in present)]


def _rework(table: Writer) -> int | None:
    """Two commits of one writer."""
    table.delete("id = 3")
    return table.append(frame((12, 120)))


def _reworked(versions: Sequence[Model], number: int) -> Model:
    rows = versions[-1].rows
    rest = [row for row in rows if row[0] != 3]
    appends = number or len(rest) == len(rows)  # a delete that selects nothing makes no commit
    return versions[-1].changed([*rows, (12, 120)] if appends else rest)


def _set(name: str, text: str) -> Operation:
    def step(versions: Sequence[Model], _: int) -> Model:
        properties = dict(versions[-1].properties) | {name: text}
        return replace(versions[-1], properties=frozenset(properties.items()))

    return Operation(_change("SET TBLPROPERTIES", lambda txn: txn.set_properties({name: text})), step)


def _change(operation: str, change: Callable[[Transaction], object]) -> Callable[[Writer], int | None]:
    def run(table: Writer) -> int | None:
        with table.transaction(operation) as txn:
            change(txn)
        return txn.version

    return run


def _read(table: Writer) -> tuple[int, tuple[Row, ...]]:
    table.refresh()
    version = table.latest_version
    return version, rows_of(table, version)


def rows_of(table: DeltaTable, version: int | None = None) -> tuple[Row, ...]:
    """The rows at a version, in order."""
    rows = table.scan(version).select("id", "v").collect()
    return tuple(sorted(rows.iter_rows()))


def _optimize(table: Writer, *columns: str) -> int | None:
    return table.optimize(z_order_by=columns)


APPEND_ONLY = ("delta.appendOnly", "true")
SET_BY_OPERATIONS = ("delta.appendOnly", "delta.checkpointPolicy", "delta.enableDeletionVectors")

OPERATIONS: Mapping[str, Operation] = {
    "append": Operation(lambda t: t.append(frame((7, 70))), _rows(lambda rows: [*rows, (7, 70)])),
    "ingest": Operation(_ingest, _rows(lambda rows: [*(r for r in rows if r != (8, 80)), (8, 80)])),
    "delete": Operation(lambda t: t.delete("id = 2"), _rows(lambda rows: [r for r in rows if r[0] != 2])),
    "prune": Operation(lambda t: t.delete("id >= 6"), _rows(lambda rows: [r for r in rows if r[0] < 6])),
    "update": Operation(
        lambda t: t.update({"v": "v + 1"}, "id <= 2 OR id = 7"),
        _rows(lambda rows: [(i, v + 1 if i <= 2 or i == 7 else v) for i, v in rows]),
    ),
    "merge": Operation(_merge, _rows(_merged)),
    "fill": Operation(_fill, _rows(_filled)),
    "overwrite": Operation(lambda t: t.overwrite(frame((10, 100))), _rows(lambda _: [(10, 100)])),
    "optimize": Operation(_optimize),
    "order": Operation(lambda t: _optimize(t, "v")),
    "widen": Operation(_add_column("note"), _with_column("note")),
    "mark": Operation(_add_column("mark"), _with_column("mark")),
    "replace": Operation(lambda t: t.replace_table(SCHEMA), lambda *_: Model(())),
    "protect": _set(*APPEND_ONLY),
    "policy": _set("delta.checkpointPolicy", "classic"),
    "unvector": _set("delta.enableDeletionVectors", "false"),
    "rework": Operation(_rework, _reworked, commits=2),
    "restore": Operation(lambda t: t.restore(5), lambda versions, _: versions[0]),
    "rewind": Operation(
        lambda t: t.restore(3), lambda versions, _: versions[0].changed([(1, 30), (2, 10), (3, 20), (11, 110)]),
        may_fail=True,  # its files may be vacuumed
    ),
    "checkpoint": Operation(lambda t: t.checkpoint() and None, commits=0),
    "vacuum": Operation(
        lambda t: t.vacuum(dry_run=False, clock=t.clock) is None, commits=2, walks=True, deletes=True
    ),
    "clean": Operation(
        lambda t: t.clean_log(dry_run=False, clock=t.clock) is None, commits=0, walks=True, cleans=True, may_fail=True
    ),
    "read": Operation(_read, commits=0),
}  # fmt: skip

LAYOUTS: Mapping[str, Mapping[str, str]] = {
    "plain": {},
    "due": {"delta.checkpointInterval": "7"},
    "vectors": {"delta.enableDeletionVectors": "true", "delta.feature.appendOnly": "supported"},
    "tracked": {
        "delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true",
        "delta.enableInCommitTimestamps": "true", "delta.checkpointPolicy": "v2",
        "delta.feature.v2Checkpoint": "supported", "delta.feature.appendOnly": "supported",
    },
    "feed": {"delta.enableChangeDataFeed": "true"},
    "partitioned": {},
}  # fmt: skip
"""Tables by their properties; a checkpoint is due at version 7 of `due`."""
WITH_CHECKPOINT = ("due", "tracked")
PARTITIONED = ("partitioned",)
"""Tables that have a third column, which they compute, and are partitioned by it."""


@dataclass(frozen=True)
class Base:
    """The table that a simulation begins with."""

    files: Files
    version: int
    model: Model


def base_table(layout: str) -> Base:
    """Six rows in two files, a row of the first deleted; a file that was removed long ago and one that no commit names;
    in some layouts a checkpoint at version 4."""
    files = Files({})

    def ask(call: Call) -> Reply:
        nonlocal files
        answer = reply(files, call)
        files = effect(files, call, BEFORE_MS)
        return answer

    numbers = count(1)
    with patch("uuid.uuid4", lambda: uuid.UUID(int=next(numbers))):
        version, rows = _filled_table(SimulatedStorage(ask, remote=False), layout)
    properties = {name: text for name, text in LAYOUTS[layout].items() if name in SET_BY_OPERATIONS}
    return Base(files, version, Model(rows, tuple(_schema(layout).names), frozenset(properties.items())))


def _schema(layout: str) -> Schema:
    return Schema((*SCHEMA, PARITY)) if layout in PARTITIONED else SCHEMA


def _filled_table(storage: Storage, layout: str) -> tuple[int, tuple[Row, ...]]:
    properties = {"delta.logRetentionDuration": "interval 1 day", **LAYOUTS[layout]}
    partitions = [PARITY.name] if layout in PARTITIONED else []
    create_log(storage, _schema(layout), partition_by=partitions, properties=properties, clock=lambda: BEFORE)
    table = Writer(storage, "f", lambda: BEFORE)
    table.append(frame((0, 0)))
    table.delete("id = 0")
    table.append(frame((11, 110), (1, 30), (2, 10), (3, 20)))
    table.delete("id = 11")
    if layout in WITH_CHECKPOINT:
        table.checkpoint()
    version = table.append(frame((4, 40), (5, 50), (6, 60)))
    storage.put("part-lost.parquet", b"left by a writer that was killed")
    assert version == 5
    return version, rows_of(table)
