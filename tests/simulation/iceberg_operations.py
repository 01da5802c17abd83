"""What writers do to an Iceberg table in simulations, each with its model, and the tables that they begin with."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from lakeview.iceberg.metadata.locate import FOLDER, HINT, Place, metadata_number
from lakeview.iceberg.table import IcebergTable
from lakeview.iceberg.write.context import write_context
from lakeview.iceberg.write.data_file import write_files
from lakeview.iceberg.write.metadata_file import StreamBatch
from lakeview.iceberg.write.snapshot_commit import CommitOptions, SnapshotCommit
from lakeview.rows.batches import batches_of
from lakeview.storage import Storage
from tests.builders.iceberg import IcebergHistory
from tests.simulation.operations import BEFORE_MS, NOW, Base, Model, Operation, Row, Step, frame
from tests.simulation.store import Call, Files, LogNames, Reply, Stored, reply
from tests.simulation.writers import ROOT, SimulatedStorage

FIELDS = [{"id": 1, "name": "id", "required": True, "type": "long"}, {"id": 2, "name": "v", "type": "long"}]

FIRST = ((1, 30), (2, 10), (3, 20), (0, 0))
SECOND = ((4, 40), (5, 50), (6, 60), (11, 110))

ICEBERG_LAYOUTS = ("iceberg", "iceberg-deletes", "iceberg-vectors", "iceberg-catalog")
"""Two data files and nothing else; with position deletes, a file of them for one data file and one for both; and with
deletion vectors and row lineage, of version 3; the first with a catalog that makes the commits."""


@cache
def is_numbered(path: str) -> bool:
    """Whether a path is that of a metadata file: its creation is the commit."""
    return posixpath.dirname(path) == FOLDER and metadata_number(posixpath.basename(path)) is not None


def is_version_hint(path: str) -> bool:
    """Whether a path is that of the version hint."""
    return path == f"{FOLDER}/{HINT}"


def number_of(path: str) -> int:
    """The number of a metadata file."""
    number = metadata_number(posixpath.basename(path))
    assert number is not None
    return number


def is_shared(path: str) -> bool:
    """Whether writers share a name; those of manifests, their lists and data files are unique."""
    return is_numbered(path) or is_version_hint(path)


ICEBERG_NAMES = LogNames(FOLDER, is_shared, is_numbered, is_version_hint, number_of, is_listed=is_shared)
"""Writers list the folder of metadata for the numbered files and the hint alone."""


def iceberg_table(storage: Storage, _: str = "") -> IcebergTable:
    """The table as a writer or a reader opens it."""
    return IcebergTable(storage, Place(ROOT))


def _rows(change: Callable[[tuple[Row, ...]], Iterable[Row]]) -> Step:
    return lambda versions, _: versions[-1].changed(change(versions[-1].rows))


def _clock() -> datetime:
    return NOW


def _ingest(table: IcebergTable) -> int | None:
    """A batch of a stream that may be written again."""
    table.refresh()
    context = write_context(table.state)
    files = write_files(context, batches_of(frame((8, 80))), table.state.storage)
    options = CommitOptions(_clock, batch=StreamBatch("sender", 1))
    return SnapshotCommit(table, context, files, options).run()


ICEBERG_OPERATIONS: Mapping[str, Operation] = {
    "append": Operation(lambda t: t.append(frame((7, 70)), clock=_clock), _rows(lambda rows: [*rows, (7, 70)])),
    "ingest": Operation(_ingest, _rows(lambda rows: [*(r for r in rows if r != (8, 80)), (8, 80)])),
    "overwrite": Operation(lambda t: t.overwrite(frame((10, 100)), clock=_clock), _rows(lambda _: [(10, 100)])),
    "replace": Operation(
        lambda t: t.overwrite(frame((3, 33)), "id = 3", clock=_clock),
        _rows(lambda rows: [*(row for row in rows if row[0] != 3), (3, 33)]),
    ),
    "delete": Operation(
        lambda t: t.delete("id = 2", clock=_clock), _rows(lambda rows: [row for row in rows if row[0] != 2])
    ),
    "prune": Operation(
        lambda t: t.delete("id >= 4", clock=_clock), _rows(lambda rows: [row for row in rows if row[0] < 4])
    ),
}


def iceberg_base(layout: str) -> Base:
    """Six rows in two files, beside two that are deleted in some layouts."""
    deleted = layout in ("iceberg-deletes", "iceberg-vectors")
    with TemporaryDirectory() as folder:
        root = Path(folder) / "table"
        history = IcebergHistory(root, FIELDS, location=ROOT, version=3 if layout == "iceberg-vectors" else 2)
        first, second = (
            history.append(name, [{"id": i, "v": v} for i, v in rows[: None if deleted else 3]])
            for name, rows in (("first.parquet", FIRST), ("second.parquet", SECOND))
        )
        if layout == "iceberg-deletes":
            positions = {"own.parquet": {first: [3]}, "both.parquet": {first: [3], second: [3]}}
            history.delete_positions_by(positions, aimed=True)
        elif deleted:
            history.delete_vectors("vectors.puffin", {first: [3], second: [3]})
        history.summarise()
        paths = [path for path in root.rglob("*") if path.is_file()]
        content = {path.relative_to(root).as_posix(): Stored(path.read_bytes(), BEFORE_MS) for path in paths}
    files = Files(content)
    return Base(files, max(number_of(name) for name in content if is_numbered(name)), Model(rows_at(files)))


def rows_at(files: Files, snapshot: int | None = None) -> tuple[Row, ...]:
    """The rows of the table that files are, in order."""
    rows = reader(files).scan(snapshot).select("id", "v").collect()
    return tuple(sorted(rows.iter_rows()))


def reader(files: Files) -> IcebergTable:
    """The table that files are."""
    return iceberg_table(_store(files))


def walk(files: Files) -> pl.DataFrame:
    """A listing of them."""
    return _store(files).walk()


def _store(files: Files) -> SimulatedStorage:
    def ask(call: Call) -> Reply:
        return reply(files, call)

    return SimulatedStorage(ask, remote=False)
