"""One Parquet file of actions to the rows and columns asked for: a checkpoint, a part of one, or a sidecar.

A checkpoint of a million files is read leaf by leaf, and the footer's null counts say which row groups to leave out.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from io import BytesIO
from typing import IO, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakeview.delta.log.checkpoint_batches import (
    Arrays,
    Piece,
    Structs,
    actions_of,
    join_pieces,
    leaf_of,
    merge_batches,
    readable,
    with_values,
)
from lakeview.delta.log.checkpoint_footer import FEW_ROWS, PATH_AND_OTHERS, Footer, open_with_footer, source_of
from lakeview.storage import Storage
from lakeview.storage.byte_cache import SmallFiles
from lakeview.storage.object_files import TAIL

Consumer: TypeAlias = Callable[[dict[str, pa.Array]], Mapping[str, Piece]]
"""Takes the arrays of a batch, gives those to keep, all of one length."""

_STATE: Mapping[str, Sequence[str]] = {
    "protocol": ("minReaderVersion", "minWriterVersion"),
    "metaData": ("id", "schemaString"),
    "sidecar": ("path", "sizeInBytes"),
}
"""What every reader of a checkpoint asks for, and by which keys it is known: of a small file all at once."""

_CONSUMERS = 2  # batches taken apart while the next is decoded: each holds tens of megabytes
_MANY_ROWS = 100_000
_BATCH_ROWS = 65_536
_WIDE_BATCH_ROWS = 32_768  # with statistics, a row is a kilobyte or two
_STREAMED_ROWS = 16_384
_NARROW_ROWS = 8_192
_WIDE_ROWS = 250_000
"""Up to so many rows with statistics come in smaller batches: memory that is new to the process costs more than the
threads save. Where little is read of them, in smaller ones still, whatever their number."""


class ParquetActions:
    """One file of actions. Nothing is read before it is asked for; the footer is read once.

    `path` below the table's root, and its `size` as `Storage.open` takes it; `cache`: where small files of a remote
    store stay; `parent`: the checkpoint whose sidecar this is. `leaves` and `each_batch` are called within `readable`.
    CorruptTableError for what cannot be read.
    """

    def __init__(
        self, storage: Storage, path: str, size: int, cache: SmallFiles | None = None, parent: str | None = None
    ) -> None:
        self._storage = storage
        self._cache = cache
        self._path = path
        self._recorded_size = size
        self.name = path.rpartition("/")[2]
        self.parent = parent
        self._footer: Footer | None = None
        self._state: Structs = {}

    def structs(self, kinds: Mapping[str, Sequence[str]], *, first: bool = False) -> Structs:
        """The actions of each kind, where one of its keys is not null; nulls left out: absent and null are the same.

        `first`: one action of each kind is enough, and nothing is read after it.
        """
        with readable(self.name, self.parent):
            is_read = self._state.keys() >= kinds.keys() or (self._footer is not None and not self._footer.keys(kinds))
        if not is_read:
            with self._open() as file:  # once, for its footer and its rows
                return self._read_structs(file, kinds, first=first)
        return {kind: self._state.get(kind, [])[: 1 if first else None] for kind in kinds}

    def _read_structs(self, file: pq.ParquetFile, kinds: Mapping[str, Sequence[str]], *, first: bool) -> Structs:
        is_small = self.footer.metadata.num_rows <= FEW_ROWS
        keys = self.footer.keys({**_STATE, **kinds} if is_small else kinds)
        actions: Structs = {kind: [] for kind in (*_STATE, *kinds)}
        for batch in self._state_batches(file, keys):
            for kind, column in zip(batch.schema.names, batch.columns, strict=True):
                actions[kind] += actions_of(column, keys[kind])
            if first and not is_small and all(map(actions.get, batch.schema.names)):
                break
        if is_small:
            self._state = {kind: actions[kind] for kind in _STATE}
        return {kind: actions[kind][: 1 if first else None] for kind in kinds}

    def _state_batches(self, file: pq.ParquetFile, keys: Mapping[str, Sequence[str]]) -> Iterator[pa.RecordBatch]:
        """The columns of these kinds of actions, of the row groups where one of their keys has values."""
        for groups in self._state_groups(file, keys):
            yield from self._state_rows(file, list(keys), groups)

    def _state_groups(self, file: pq.ParquetFile, keys: Mapping[str, Sequence[str]]) -> Iterator[list[int]]:
        """The row groups where one of these keys has values, some at a time; all of a small file. Before column chunks
        are checked, the keys of a local file are decoded to tell: most are null, and 2,000 rows take as long as the
        check of one column chunk."""
        leaves = [f"{kind}.{key}" for kind, of in keys.items() for key in of]
        metadata = self.footer.metadata
        groups = list(range(metadata.num_row_groups))
        chunks = len(groups) * metadata.num_columns
        if metadata.num_rows <= FEW_ROWS:
            yield groups
        elif self.footer.is_checked or self._storage.remote or metadata.num_rows > FEW_ROWS * chunks:
            yield self.footer.groups(*leaves)
        else:
            for group in groups:
                batches = self._state_rows(file, leaves, [group])
                if any(column.null_count < len(column) for batch in batches for column in batch.columns):
                    yield [group]

    def _state_rows(
        self, file: pq.ParquetFile, columns: Sequence[str], groups: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        if columns and groups:
            # one thread: these are few rows
            size = self.footer.batch_rows(_BATCH_ROWS)
            batches = file.iter_batches(size, row_groups=groups, columns=columns, use_threads=False)
            yield from self._check_batches(batches, columns, groups)

    def leaves(
        self,
        kind: str,
        names: Sequence[str],
        consume: Consumer | None = None,
        struct_parts: Mapping[str, Sequence[str]] | None = None,
        *,
        is_wide: bool = False,
    ) -> tuple[Arrays, int]:
        """The leaves of the rows whose `path` is in a row group at all, as lists of arrays, and how many rows.

        A leaf that is not there, or null throughout, is left out. `consume` takes each batch's arrays and gives what is
        worth keeping, with `path`, or nothing, in threads: what it drops is never held. `struct_parts`: of a struct
        among the leaves, only these parts. `is_wide`: `consume` makes many columns of the statistics, and is faster
        with many of them at once.
        """
        footer = self.footer
        present, groups = self._present(kind, names)
        if not groups:
            return {}, 0

        def take(batch: pa.RecordBatch) -> Mapping[str, Piece]:
            struct = self._with_paths(kind, batch.column(0))
            arrays = {leaf: leaf_of(struct, leaf) for leaf in present if len(struct)}
            return consume(arrays) if consume is not None and arrays else arrays

        columns, rows = self._columns(kind, present, struct_parts or {}), footer.rows(groups)
        size = _rows_with_statistics(rows, is_wide) if "stats" in present else _BATCH_ROWS
        half = len(groups) // 2 if rows > _MANY_ROWS else 0  # each half of a large file by a thread of its own
        with ThreadPoolExecutor(2 * _CONSUMERS, thread_name_prefix="lakeview-leaves") as pool:
            first = pool.submit(self._decode, groups[:half], columns, size, pool, take) if half else None
            rest = self._decode(groups[half:], columns, size, pool, take)
            arrays = join_pieces([*(first.result() if first is not None else ()), *rest])
        if footer.is_small:
            arrays = with_values(arrays)  # null counts tell them of larger files
        return (arrays, sum(map(len, arrays["path"]))) if "path" in arrays else ({}, 0)

    def each_batch(self, kind: str, names: Sequence[str]) -> Iterator[dict[str, pa.Array]]:
        """What `leaves` gives, a batch at a time in the order of the file: for who retains none of them."""
        present, groups = self._present(kind, names)
        if not groups:
            return
        columns, rows = self._columns(kind, present, {}), self.footer.batch_rows(_STREAMED_ROWS)
        with self._open() as file:
            batches = file.iter_batches(rows, row_groups=groups, columns=columns)
            for batch in merge_batches(self._check_batches(batches, columns, groups), _STREAMED_ROWS):
                struct = self._with_paths(kind, batch.column(0))
                yield {leaf: leaf_of(struct, leaf) for leaf in present}

    def _present(self, kind: str, names: Sequence[str]) -> tuple[list[str], list[int]]:
        """The leaves of a kind of action that are there, and the row groups with its paths. Errors as `Footer` has."""
        self.footer.require_structs([kind])
        self.footer.require_paths(kind)
        present = [name for name in names if self.footer.has(f"{kind}.{name}")]
        return present, self.footer.groups(f"{kind}.path") if "path" in present else []

    def _columns(self, kind: str, leaves: Sequence[str], parts: Mapping[str, Sequence[str]]) -> list[str]:
        """The columns of the file for leaves of a kind of action, `parts` in place of a struct, and those that show
        whether an action has no path where null counts do not."""
        places = [f"{kind}.{leaf}{part}" for leaf in leaves for part in [f".{p}" for p in parts.get(leaf, ())] or [""]]
        others = [f"{kind}.{leaf}" for leaf in PATH_AND_OTHERS if self.footer.is_small]
        return list(dict.fromkeys([*places, *filter(self.footer.has_leaf, others)]))

    def _with_paths(self, kind: str, struct: pa.Array) -> pa.Array:
        """The rows of a small file that are actions of this kind; ValueError as `Footer.require_paths`."""
        if not self.footer.is_small or not (path := leaf_of(struct, "path")).null_count:
            return struct
        if path.null_count == struct.null_count:  # the rows without it are other actions
            return struct.filter(path.is_valid())
        others = [leaf_of(struct, leaf) for leaf in PATH_AND_OTHERS if struct.type.get_field_index(leaf) >= 0]
        if any(pc.any(pc.and_not(other.is_valid(), path.is_valid())).as_py() for other in others):
            raise ValueError(f"one of its {kind} actions has no path")
        return struct.filter(path.is_valid())

    def _decode(
        self,
        groups: Sequence[int],
        columns: Sequence[str],
        size: int,
        pool: ThreadPoolExecutor,
        take: Callable[[pa.RecordBatch], Mapping[str, Piece]],
    ) -> list[Mapping[str, Piece]]:
        """The rows of each batch of these row groups, and what `take` keeps of it: in threads, few of them waiting; of
        the last batch, often the only one, in this thread."""
        waiting = deque[Future[Mapping[str, Piece]]]()
        pieces: list[Mapping[str, Piece]] = []
        last: pa.RecordBatch | None = None
        with self._open() as file:
            rows, threads = self.footer.batch_rows(size), not self.footer.is_small
            batches = file.iter_batches(rows, row_groups=groups, columns=columns, use_threads=threads)
            for batch in merge_batches(self._check_batches(batches, columns, groups), size):
                if last is not None:
                    waiting.append(pool.submit(take, last))
                last = batch
                if len(waiting) > _CONSUMERS:
                    pieces.append(waiting.popleft().result())
        end = [] if last is None else [take(last)]
        return [*pieces, *(piece.result() for piece in waiting), *end]

    def _check_batches(
        self, batches: Iterable[pa.RecordBatch], columns: Sequence[str], groups: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """The batches, each valid; UnsupportedTableError once they decode to more than any honest file does."""
        limit, size, rows = self.footer.allowance(columns, groups), 0, self.footer.rows(groups)
        for batch in batches:
            size += batch.nbytes
            if size > limit:
                raise self.footer.inflates(size)
            batch.validate(full=True)  # text that is no UTF-8 would make polars panic
            yield batch
            rows -= batch.num_rows
            if rows == 0:  # Arrow begins every column again to find nothing: a thirtieth of opening a table
                return

    def check(self) -> None:
        """CorruptTableError if even the footer cannot be read."""
        with readable(self.name, self.parent):
            self.footer.check()

    # -- inside

    @property
    def footer(self) -> Footer:
        """What the file's footer says, read once."""
        if self._footer is None:
            with self._open():
                pass
        assert self._footer is not None
        return self._footer

    def _small_file(self, cache: SmallFiles) -> IO[bytes]:
        """A small checkpoint of a remote store comes whole when it is first opened, and stays in memory: its footer,
        state, files and statistics are asked for one after the other (benches/bench_stores.py)."""
        data = cache.get(self._path)
        if data is None:
            with self._storage.open(self._path, self._recorded_size) as handle:
                data = handle.read(TAIL + 1)
            if len(data) > TAIL:  # written again since it was listed
                return self._storage.open(self._path)
            cache.put(self._path, data)
        return BytesIO(data)

    @contextmanager
    def _open(self) -> Iterator[pq.ParquetFile]:
        cache = self._cache if 0 < self._recorded_size <= TAIL else None
        with (
            readable(self.name, self.parent),
            self._storage.open(self._path, self._recorded_size) if cache is None else self._small_file(cache) as handle,
        ):
            source = source_of(handle)
            # without reading ahead: of a million files with statistics that would be half a gigabyte at once
            ahead = self._storage.remote
            if self._footer is not None:
                yield pq.ParquetFile(source, metadata=self._footer.metadata, pre_buffer=ahead)
                return
            file, self._footer = open_with_footer(source, self.name, ahead=ahead)
            yield file


def _rows_with_statistics(rows: int, is_wide: bool) -> int:
    """Rows of a batch that has statistics, of a checkpoint of so many rows."""
    if not is_wide:
        return _NARROW_ROWS
    return _WIDE_BATCH_ROWS if rows > _WIDE_ROWS else _STREAMED_ROWS
