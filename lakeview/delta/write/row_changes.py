"""Rows that leave files, change or come: deletion vectors where the table has them, else files in place of files; and
files that a commit adds or removes whole, as change data."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Any, Self

import polars as pl
import pyarrow as pa
import pyroaring

from lakeview.delta.data.scan import tasks_of
from lakeview.delta.features import column_mapping_mode
from lakeview.delta.log.actions import AddCDCFile, AddFile
from lakeview.delta.log.file_actions import PARTITION_VALUES, VECTOR
from lakeview.delta.log.paths import decode_path
from lakeview.delta.write.definition import Definition
from lakeview.delta.write.deletion_vectors import VectorChange, replace_vectors
from lakeview.delta.write.file_changes import FileChanges, paths_of
from lakeview.delta.write.live_files import LiveFile
from lakeview.delta.write.rewrites import (
    NO_NUMBERS,
    Change,
    Copy,
    Numbers,
    Pack,
    Rewrite,
    apply_changes,
    rewrites,
    rewrites_of,
)
from lakeview.delta.write.shared_files import SharedFiles, rows_with
from lakeview.delta.write.stored_columns import with_variant_binaries
from lakeview.delta.write.writer import FileWriter
from lakeview.model.change_columns import CHANGE_TYPE
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.schema import Schema
from lakeview.rows.arrays import values_to_arrow
from lakeview.rows.field_places import Match
from lakeview.rows.parquet import read_task
from lakeview.rows.tasks import FileTask
from lakeview.storage import Storage

THREADS = 2
"""Files that are written at once: encoding keeps a core busy, and memory holds so many."""

PACKED_BYTES = 8 << 20
"""Files below this size that are written again share new files, in groups of about this size: a table that is merged
into daily does not keep a small file for each of an earlier day. Larger groups leave one thread without work
(benches/bench_writer.py: ten files of 4 MB)."""


class RowChanges:
    """Collects what an operation does to rows, as changes of files.

    `counts` adds up what was done, in the words of operationMetrics. Files that are written again are so in threads:
    use it in a `with` block, and call `finish` at its end.
    """

    def __init__(self, writer: FileWriter, files: FileChanges) -> None:
        self.writer = writer
        self.context = writer.context
        self.storage = writer.storage
        self.files = files
        self._pending: list[VectorChange] = []
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="lakeview-write")
        self._copies: list[Future[list[AddFile]]] = []
        self._running: set[Future[list[AddFile]]] = set()
        self._packs: dict[Hashable, Pack] = {}  # by partition
        self._last: Pack | None = None  # of files in memory
        self._moved_rows = SharedFiles(writer)
        self._change_files = SharedFiles(_change_data(writer))
        self.counts: Counter[str] = Counter()

    @cached_property
    def schema(self) -> Schema:
        """The columns that are read and written: the table's, variants as their bytes, and those of row tracking."""
        return with_variant_binaries(Schema((*self.context.schema, *self.context.tracked_fields)))

    def remove(self, file: LiveFile, positions: pyroaring.BitMap64, change: str | None = "delete") -> Sequence[Rewrite]:
        """Let rows of a file go. `change`: what the change feed calls them, None where the caller records them. Gives
        the rows of a file in memory that is written again, for `write`."""
        if not positions:
            return ()
        if self.context.feed and change is not None:
            columns = with_variant_binaries(self.context.schema)
            self.record(change, file.batches(self.storage, columns, selection=positions))
        before = file.deletions(self.storage)
        rows = file.physical_rows(self.storage)
        if file.has_only(self.storage, len(positions) + len(before)):
            self._drop(file)
            self.counts["numDeletionVectorsRemoved"] += bool(before)
        elif self.context.vectors:
            self._pending.append(VectorChange(file, before, positions, rows))
        else:
            self.counts["numCopiedRows"] += rows - len(before) - len(positions)
            self._drop(file)
            return self._copy(Copy(file.without(before), positions))
        return ()

    def replace(
        self, file: LiveFile, positions: pyroaring.BitMap64, change: Change, numbers: Numbers = NO_NUMBERS
    ) -> Iterator[Rewrite]:
        """Let rows of a file give way to those that `change` makes of them. A file that is written again holds them in
        their place; the rows that belong to other files are given, for `write`, and those of
        a file in memory. One `change` for many files gets the rows of many, and with them `numbers`: one for each
        position, in their order, or none at all."""
        if not positions:
            return
        if self.context.vectors:
            start = 0
            for batch in file.batches(self.storage, self.schema, selection=positions):
                yield Rewrite(change(batch, numbers[start : start + batch.num_rows]))
                start += batch.num_rows
            yield from self.remove(file, positions, None)
            return
        rows, before = file.physical_rows(self.storage), file.deletions(self.storage)
        self.counts["numCopiedRows"] += rows - len(before) - len(positions)
        self._drop(file)
        yield from self._copy(Copy(file.without(before), positions, change, numbers))

    def _copy(self, copy: Copy) -> Sequence[Rewrite]:
        """Write what takes the place of a file: a large one by itself, a small one with others of its partition. Gives
        the rows of one in memory."""
        if copy.file.in_memory is not None:
            pack = self._pack_in_memory(copy.file)
            return [part._replace(pack=pack) for part in rewrites_of(copy)]
        size = copy.file.row["size"] or 0
        if size >= PACKED_BYTES:
            self._submit(Pack(copy.file, [copy]))
            return ()
        pack = self._packs.setdefault(copy.file.partition, Pack(copy.file))
        pack.copies.append(copy)
        pack.size += size
        if pack.size >= PACKED_BYTES:
            del self._packs[copy.file.partition]
            self._submit(pack)
        return ()

    def _pack_in_memory(self, file: LiveFile) -> Pack:
        """The pack of a file in memory: that of the one before, unless it is large enough or of another partition."""
        last = self._last
        if last is None or last.first.partition != file.partition or last.size >= PACKED_BYTES:
            last = self._last = Pack(file)
        last.size += file.row["size"] or 0
        return last

    def _submit(self, pack: Pack) -> None:
        if len(self._running) >= THREADS:  # else all files are looked through before most are written
            _, self._running = wait(self._running, return_when=FIRST_COMPLETED)
        rows = apply_changes(rewrites(pack.copies, self.storage, self.schema))
        copy = self._threads.submit(self._write, rows, pack)
        self._running.add(copy)
        self._copies.append(copy)

    def write(self, parts: Iterable[Rewrite]) -> None:
        """Write rows that are conformed, in the columns of `schema`, those of each pack to files of their own; but for
        rows that leave their partition, which share files with such rows of all packs."""
        for pack, rewrites_of_pack in groupby(parts, key=attrgetter("pack")):
            self._add(self._write(apply_changes(rewrites_of_pack), pack))

    def _write(self, batches: Iterable[pa.RecordBatch], pack: Pack | None) -> list[AddFile]:
        if pack is not None and self.context.partition_columns:
            batches = self._staying(batches, pack.first.task.constants)
        return self.writer.write_conformed(batches)

    def _staying(self, batches: Iterable[pa.RecordBatch], values: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        """The rows that have these values of the partition columns; others go to `_moved_rows`."""
        for batch in batches:
            stays = rows_with(batch, {name: values[name] for name in self.context.partition_columns})
            if stays.all():
                yield batch
            else:
                self._moved_rows.write(batch.filter((~stays).to_arrow()))
                yield batch.filter(stays.to_arrow())

    def _add(self, adds: list[AddFile]) -> None:
        self.files.paths += paths_of(adds)
        self.files.adds += adds
        self.counts["numAddedFiles"] += len(adds)
        self.counts["numAddedBytes"] += sum(add.size for add in adds)

    def record(self, change: str, batches: Iterable[pa.RecordBatch]) -> None:
        """Write rows as change data: `change` is insert, delete, update_preimage or update_postimage."""
        for batch in _label(batches, self.context.schema.names, change):
            self._change_files.write(batch)

    def finish(self) -> list[VectorChange]:
        """Wait for all files, write the deletion vectors, and replace the files that got one; returns what was changed
        so. Raises what the writing of a file raised."""
        for pack in self._packs.values():
            self._submit(pack)
        for copy in self._copies:
            self._add(copy.result())
        self._packs, self._copies = {}, []
        self._add(self._moved_rows.close())
        adds = self._change_files.close()
        self.files.paths += paths_of(adds)
        self.files.changes += [AddCDCFile(a.path, a.partition_values, a.size) for a in adds]
        self.counts["numAddedChangeFiles"] += len(adds)
        replace_vectors(self._pending, self.files, self.context.folder_prefix())
        for change in self._pending:
            self.counts["numDeletionVectorsUpdated" if change.before else "numDeletionVectorsAdded"] += 1
        return self._pending

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Wait for what was begun: files that were written for nothing are known, so that they are discarded."""
        self._threads.shutdown(cancel_futures=True)
        for copy in self._copies:
            if not copy.cancelled() and copy.exception() is None:
                self.files.paths += paths_of(copy.result())
        if kind is not None:
            for files in (self._moved_rows, self._change_files):
                self.files.paths += paths_of(files.discard())

    def _drop(self, file: LiveFile) -> None:
        self.files.remove(file.row, data_change=True)
        self.counts["numRemovedFiles"] += 1
        self.counts["numRemovedBytes"] += file.row["size"] or 0


def _change_data(writer: FileWriter) -> FileWriter:
    """What writes files of change data."""
    schema = Schema((*writer.context.schema, Field(CHANGE_TYPE, PrimitiveType("string"))))
    context = replace(
        writer.context, schema=schema, indexed_columns=frozenset(), rules=None, tracked_fields=(), change_data=True
    )
    return replace(writer, context=context, statistics=False)


def _label(batches: Iterable[pa.RecordBatch], names: list[str], change: str) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        label = pa.repeat(values_to_arrow([change], pa.string())[0], batch.num_rows)
        yield batch.select(names).append_column(CHANGE_TYPE, label)


def record_whole_files(
    work: RowChanges, definition: Definition, adds: Sequence[AddFile], removes: Sequence[Mapping[str, Any]]
) -> None:
    """Write the rows of files that come as `insert`, and of files that go as `delete`; the caller finishes the work.

    "When the change data feed is enabled and a version has cdc actions, readers must only read those" (today's
    protocol, Add CDC File). `removes`: rows of FILE_ACTIONS with REMOVAL_COLUMNS.
    """
    new_files = [(decode_path(a.path), a.size, a.partition_values, None) for a in adds]
    old_files = [(r["path"], r["size"], r["partition_values"], r["vector"]) for r in removes]
    schema = with_variant_binaries(work.context.schema)
    mode = column_mapping_mode(definition.table_protocol, definition.properties)
    match: Match = "id" if mode == "id" else "name"
    for change, files in (("insert", new_files), ("delete", old_files)):
        if files:
            paths, sizes, values, vectors = zip(*files, strict=True)
            maps = pl.Series([dict(each or {}) for each in values], dtype=PARTITION_VALUES)
            columns = {"path": paths, "size": sizes, "partition_values": maps, "vector": vectors}
            rows = pl.DataFrame(columns, schema_overrides={"vector": VECTOR})
            tasks = tasks_of(rows, schema, definition.partitions, work.storage.root, match)
            work.record(change, _batches(tasks, work.storage))


def _batches(tasks: Iterable[FileTask], storage: Storage) -> Iterator[pa.RecordBatch]:
    for task in tasks:
        yield from read_task(replace(task, roots=storage.config.roots), storage)
