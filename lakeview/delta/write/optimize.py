"""Many small files to few large ones, the same rows: in the order that they have, or along a curve through columns."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa

from lakeview.delta.write.context import WriteContext
from lakeview.delta.write.curve import MOST_COLUMNS, in_curve_order
from lakeview.delta.write.deletion_vectors import Rearrangement
from lakeview.delta.write.file_changes import FileChanges, paths_of
from lakeview.delta.write.live_files import LiveFile, portions_of, together
from lakeview.delta.write.pending_commit import PendingCommit
from lakeview.delta.write.row_changes import THREADS
from lakeview.delta.write.stored_columns import with_variant_binaries
from lakeview.delta.write.target import Progress
from lakeview.delta.write.writer import FileWriter
from lakeview.model.data_types import VARIANT
from lakeview.model.errors import InvalidRequestError
from lakeview.model.runs import runs
from lakeview.model.schema import Schema
from lakeview.rows.batches import read_ahead

TARGET_BYTES = 128 << 20
"""How large files get where neither the call nor `delta.targetFileSize` says it."""

_LARGE = 0.75
"""A file of this share of the target is left as it is."""

_DELETED = 0.05
"""A file of which so many rows are deleted is written again, however large."""


def optimize(
    txn: PendingCommit,
    where: pl.Expr | None,
    *,
    target_bytes: int,
    z_order_by: Sequence[str] = (),
    progress: Progress | None = None,
) -> list[Rearrangement]:
    """Write the files of the partitions that `where` selects again, in larger files, `dataChange` false.

    Without `z_order_by` only small files and those with many deleted rows are taken, as many together as make one of
    about `target_bytes`. InvalidRequestError for a size below one, and a column to order by that has no order.
    """
    if target_bytes < 1:
        raise InvalidRequestError(
            f"target_bytes is {target_bytes}, and files have one byte at least",
            fix="give a size in bytes, such as 256 << 20",
            place="target_bytes",
            kind="bad-size",
        )
    z_order_by = order_columns(txn.definition.schema, txn.definition.partition_columns, z_order_by)
    groups = groups_of(txn.live_files(where), target_bytes, z_order_by)
    writer = txn.file_writer()
    writer = replace(writer, context=optimize_context(writer.context, target_bytes, z_order_by))
    rearrangements = rewrite(writer, txn.files, groups, z_order_by, progress)
    txn.entry.count(optimize_metrics(rearrangements))
    return rearrangements


def optimize_context(context: WriteContext, target_bytes: int, z_order_by: Sequence[str]) -> WriteContext:
    """How the files of an optimize are written. Only `target_bytes` end one: by its rows it could be a small one, which
    the next optimize writes again. Files of rows in order stay at their number of rows: a filter skips more."""
    rows = context.rows_per_file if z_order_by else sys.maxsize
    return replace(context, target_bytes=target_bytes, rows_per_file=rows)


def rewrite_each(txn: PendingCommit, files: Sequence[LiveFile]) -> None:
    """Write each of these files again as the definition has it, without the rows that a deletion vector names,
    `dataChange` false. The commit of another writer that changes one of these files collides with it."""
    with txn.files.operation():
        moves = rewrite(txn.file_writer(), txn.files, [[file] for file in files], ())
    txn.entry.count(optimize_metrics(moves))


def groups_of(files: Iterable[LiveFile], target_bytes: int, z_order_by: Sequence[str]) -> list[list[LiveFile]]:
    """The files that are written together: of one partition each; those that are well as they are left out, and along a
    curve those that another implementation has clustered."""
    partitions: dict[tuple[tuple[str, str | None], ...], list[LiveFile]] = {}
    for file in files:
        # "must only recluster files that have the field clusteringProvider set to the name of the same clustering
        # implementation", or unset  today's protocol, Clustered Table
        if z_order_by and file.row["clustering_provider"] is not None:
            continue
        partitions.setdefault(file.partition, []).append(file)
    if z_order_by:
        return list(partitions.values())
    groups: list[list[LiveFile]] = []
    for members in partitions.values():
        some = (f for f in members if f.task.size < _LARGE * target_bytes or _has_many_deletions(f))
        groups += runs(some, lambda file: file.task.size, target_bytes)
    return [group for group in groups if len(group) > 1 or _has_many_deletions(group[0])]


def _has_many_deletions(file: LiveFile) -> bool:
    vector = file.row["vector"]
    rows = msgspec.json.decode(file.row["stats"] or "{}").get("numRecords")
    return vector is not None and (not rows or vector["cardinality"] >= _DELETED * rows)


def _size(group: Sequence[LiveFile]) -> int:
    return sum(file.task.size for file in group)


def rewrite(
    writer: FileWriter,
    changes: FileChanges,
    groups: Sequence[Sequence[LiveFile]],
    z_order_by: Sequence[str],
    progress: Progress | None = None,
) -> list[Rearrangement]:
    """Write the rows of each of these groups of files again; `changes` gets what goes and comes. Two groups are
    written at once, unless their rows are ordered, which takes memory: one goes on while the other waits for the disk
    (benches/bench_writer.py, partitions: three take no less time and half as much memory again)."""
    alone = bool(z_order_by) or len(groups) == 1

    def write(group: Sequence[LiveFile]) -> Rearrangement:
        move = _rewrite(writer, group, z_order_by, alone=alone)
        changes.paths += paths_of(move.adds)  # known, and discarded, if another group fails
        return move

    total, done, moves = sum(map(_size, groups)), 0, []
    threads = ThreadPoolExecutor(1 if alone else THREADS, thread_name_prefix="lakeview-write")
    try:
        for move in threads.map(write, groups):
            for file in move.files:
                changes.remove(file.row, data_change=False)
            changes.adds += move.adds
            moves.append(move)
            done += _size(move.files)
            if progress is not None:
                progress(done, total)
    finally:
        threads.shutdown(cancel_futures=True)
    return moves


def _rewrite(writer: FileWriter, group: Sequence[LiveFile], z_order_by: Sequence[str], *, alone: bool) -> Rearrangement:
    """`alone`: no other group is written meanwhile, so that a thread reads ahead."""
    before = tuple(file.deletions(writer.storage) for file in group)
    live = [0] * len(group)
    schema = with_variant_binaries(group[0].task.schema)

    def batches() -> Iterator[pa.RecordBatch]:
        live[:] = [0] * len(group)
        first = 0
        for files in together(group):
            for portion in portions_of(files, writer.storage, schema):
                for number, part in portion.by_file(np.arange(portion.rows.num_rows)):
                    live[first + number] += part.stop - part.start
                yield portion.rows
            first += len(files)

    rows_in_order = in_curve_order(batches, z_order_by) if z_order_by else batches()
    rows = read_ahead(rows_in_order) if alone else rows_in_order
    adds = replace(writer, data_change=False).write_conformed(rows)
    counts = tuple(count + len(positions) for count, positions in zip(live, before, strict=True))
    return Rearrangement(tuple(group), counts, before, before, tuple(adds), is_ordered=not z_order_by)


def order_columns(schema: Schema, partition_columns: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The columns of a table that these names mean, case aside. InvalidRequestError for those that no curve goes
    through."""
    if len(columns) > MOST_COLUMNS:
        raise InvalidRequestError(
            f"{len(columns)} columns are more than a curve orders rows by",
            fix=f"name at most {MOST_COLUMNS}: those that are filtered by most",
            place="z_order_by",
            kind="bad-order",
        )
    names = schema.resolve_names(columns, place="z_order_by")
    for name in names:
        if name in partition_columns:
            raise InvalidRequestError(
                f"{name} is a partition column: each file has one value of it",
                fix="order by columns of the rows",
                place=name,
                kind="bad-order",
            )
        type_ = schema.select([name]).to_polars()[name]
        if type_.is_nested() or type_ == pl.Null() or schema[name].type == VARIANT:
            raise InvalidRequestError(
                f"{name} is {schema[name].type}, which has no order",
                fix="order by other columns",
                place=name,
                kind="bad-order",
            )
    return names


def optimize_metrics(moves: Sequence[Rearrangement]) -> dict[str, int]:
    """operationMetrics of an OPTIMIZE, in the words of other engines."""
    adds = [add for move in moves for add in move.adds]
    files = [file for move in moves for file in move.files]
    sizes = pl.Series([add.size for add in adds] or [0], dtype=pl.Int64)
    at = {"min": 0.0, "p25": 0.25, "p50": 0.5, "p75": 0.75, "max": 1.0}
    return {
        "numAddedFiles": len(adds),
        "numAddedBytes": sum(add.size for add in adds),
        "numRemovedFiles": len(files),
        "numRemovedBytes": _size(files),
        "numDeletionVectorsRemoved": sum(file.row["vector"] is not None for file in files),
        **{f"{name}FileSize": int(sizes.quantile(share, "nearest") or 0) for name, share in at.items()},
    }
