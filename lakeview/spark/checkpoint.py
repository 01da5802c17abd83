"""The checkpoint of a Delta table, written by Spark's tasks: each reads files of the log, then each writes a part."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.sql import SparkSession

from lakeview.delta.write.checkpoint.file_rows import Definition, shape_of
from lakeview.delta.write.checkpoint.files import finish_parts
from lakeview.delta.write.checkpoint.parts import PART_BYTES, PackedActions, PartWork, part_work
from lakeview.delta.write.checkpoint.plan import plan_checkpoint
from lakeview.spark.addresses import delta_table
from lakeview.spark.dml.jobs import OUTCOME, attempt, collect, outcome_batch, parts_frame, parts_of, without_errors
from lakeview.storage.access import StoreAccess

_PACKED = "part int, position int, kind string, data binary"
_PACKED_TYPES = pa.schema(
    [("part", pa.int32()), ("position", pa.int32()), ("kind", pa.string()), ("data", pa.binary())]
)
"""PackedActions; `position`: of the file of the log that they are from. Without a kind: nothing but the part."""


def checkpoint(
    spark: SparkSession,
    address: str,
    version: int | None = None,
    *,
    parts: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> int:
    """Write the checkpoint of a version (the latest without one) of a Delta table; returns the version.

    As the library's own `checkpoint`, except for the number of files: `parts`, or one file (a sidecar, of a table with
    V2 checkpoints) for each 32 MB of the last checkpoint. Tasks read the files of that checkpoint and write those of
    the new one; the driver has what the commits since then touch. Readers see the table as before until all files are
    there. UnsupportedTableError for a table of another format, InvalidRequestError for parts that it must not have.
    """
    access = StoreAccess(storage_options or {})
    table = delta_table(address, "checkpointed", "leave it to the engine that writes the table", access)
    state = table.state(version)
    pieces, tail = state.pieces(shape_of(Definition.of(state)).columns)
    most = max(1, -(-sum(piece.size for piece in pieces) // PART_BYTES))
    plan = plan_checkpoint(table, state, parts, most_parts=most)
    if plan.is_present:
        return state.version
    work = part_work(table, plan)
    pack_actions = partial(_packed_actions, work, tail.select("key", "deletion_vector"))
    old = parts_frame(spark, list(enumerate(pieces))).mapInArrow(pack_actions, _PACKED)
    # every part of a V1 checkpoint is a file, also one without actions
    rows: list[tuple[int, int, str | None, bytes | None]] = [(part, -1, None, None) for part in range(len(plan.names))]
    rows += [(p.part, len(pieces), p.kind, p.data) for p in work.of_commits(tail)]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * len(_PACKED_TYPES)
    new = spark.createDataFrame(pa.table(columns, schema=_PACKED_TYPES), _PACKED)

    def write(rows: pa.Table) -> pa.Table:  # Spark reads the annotations, which a partial has not
        return _write_part(work, rows)

    # so many tasks, which Spark does not join to fewer as it does after a shuffle of its own
    by_part = old.union(new).repartition(plan.parts, "part").groupBy("part")
    finish_parts(table, plan, without_errors(collect(by_part.applyInArrow(write, OUTCOME))))
    return state.version


# -- in tasks


def _packed_actions(work: PartWork, newer: pl.DataFrame, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for position, piece in parts_of(batches):
        for actions in work.of_piece(piece, newer):
            row = {"part": actions.part, "position": position, "kind": actions.kind, "data": actions.data}
            yield pa.RecordBatch.from_pylist([row], schema=_PACKED_TYPES)


def _write_part(work: PartWork, rows: pa.Table) -> pa.Table:
    """The outcome of writing the part that these rows are of."""
    part = rows["part"][0].as_py()
    order = rows.sort_by("position")
    actions = (
        PackedActions(part, kind.as_py(), data.as_py())
        for kind, data in zip(order["kind"], order["data"], strict=True)
        if kind.is_valid
    )
    return pa.Table.from_batches([outcome_batch([attempt(lambda: work.write(part, actions))])])
