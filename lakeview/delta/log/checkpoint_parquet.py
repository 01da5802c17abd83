"""One Parquet file of actions to the rows and columns asked for: a checkpoint, a part of one, or a sidecar.

A checkpoint of a million files is read leaf by leaf, and the footer's null counts say which row groups to leave out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import IO, Any, TypeAlias

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from lakeview.delta.log.checkpoint_errors import readable
from lakeview.model.errors import CorruptTableError, UnsupportedTableError
from lakeview.storage import Storage

Piece: TypeAlias = pa.Array | pl.Series
Arrays: TypeAlias = dict[str, list[Piece]]
Consumer: TypeAlias = Callable[[dict[str, pa.Array]], Mapping[str, Piece]]
"""Takes the arrays of a batch, gives those to keep, of the same length."""

_CONSUMERS = 2  # batches taken apart while the next is decoded: each holds tens of megabytes
_MANY_ROWS = 100_000
_BATCH_ROWS = 65_536
_WIDE_BATCH_ROWS = 32_768  # with statistics, a row is a kilobyte or two
_SLACK_BYTES, _SLACK_ROW = 256 << 20, 256


class ParquetActions:
    """One file of actions. Nothing is read before it is asked for; the footer is read once.

    `path` below the table's root, and its `size` as `Storage.open` takes it; `name` for messages, and `parent`: the
    checkpoint whose sidecar this is.
    CorruptTableError for what cannot be read.
    """

    def __init__(self, storage: Storage, path: str, size: int, name: str, parent: str | None = None) -> None:
        self._storage = storage
        self._path = path
        self._recorded_size = size
        self.name = name
        self.parent = parent
        self._footer: pq.FileMetaData | None = None
        self._leaves: dict[str, int] = {}
        self._fields: list[pa.Field] = []
        self._places: set[str] = set()
        self._size = 0

    def structs(self, kinds: Mapping[str, Sequence[str]], *, first: bool = False) -> dict[str, list[dict[str, Any]]]:
        """The actions of each kind, where one of its keys is not null; nulls left out: absent and null are the same.

        `first`: one action of each kind is enough, and nothing is read after it.
        """
        self._read_footer()
        with readable(self.name, self.parent):
            self._require_structs(kinds)
        keys = {kind: [key for key in of if f"{kind}.{key}" in self._leaves] for kind, of in kinds.items()}
        actions: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
        for batch in self._state_batches({kind: of for kind, of in keys.items() if of}):
            for kind, column in zip(batch.schema.names, batch.columns, strict=True):
                actions[kind] += _actions(column, keys[kind])
            if first and all(map(actions.get, batch.schema.names)):
                break
        return {kind: rows[: 1 if first else None] for kind, rows in actions.items()}

    def _state_batches(self, keys: Mapping[str, Sequence[str]]) -> Iterator[pa.RecordBatch]:
        """The columns of these kinds of actions, of the row groups where one of their keys has values."""
        kinds = list(keys)
        groups = self._groups(*(f"{kind}.{key}" for kind, of in keys.items() for key in of))
        if kinds and groups:
            with self._open() as file:
                # one thread: these are few rows
                size = self._batch_rows(_BATCH_ROWS)
                batches = file.iter_batches(size, row_groups=groups, columns=kinds, use_threads=False)
                yield from self._checked(batches, kinds, groups)

    def leaves(
        self,
        kind: str,
        names: Sequence[str],
        consume: Consumer | None = None,
        narrowed: Mapping[str, Sequence[str]] | None = None,
    ) -> tuple[Arrays, int]:
        """The leaves of the rows whose `path` is in a row group at all, as lists of arrays, and how many rows.

        A leaf that is not there, or null throughout, is left out. `consume` takes each batch's arrays and gives what is
        worth keeping, in threads: what it drops is never held. `narrowed`: of a struct among the leaves, only these
        parts.
        """
        with readable(self.name, self.parent):
            return self._read(kind, names, consume or dict, narrowed or {})

    def _read(
        self, kind: str, names: Sequence[str], consume: Consumer, narrowed: Mapping[str, Sequence[str]]
    ) -> tuple[Arrays, int]:
        self._read_footer()
        self._require_structs([kind])
        present = [w for w in names if self._has(kind, w)]
        groups = self._groups(f"{kind}.path")
        if "path" not in present or not groups:
            return {}, 0
        parts = {w: [f"{w}.{part}" for part in narrowed.get(w, ())] or [w] for w in present}
        columns = [f"{kind}.{leaf}" for w in present for leaf in parts[w]]

        def take(batch: pa.RecordBatch) -> Mapping[str, Piece]:
            return consume({leaf: _field(batch.column(0), leaf) for leaf in present})

        size = self._batch_rows(_WIDE_BATCH_ROWS if "stats" in present else _BATCH_ROWS)
        pieces = self._halves(groups, columns, size, take)
        return _joined(piece for _, piece in pieces), sum(rows for rows, _ in pieces)

    def _halves(
        self,
        groups: Sequence[int],
        columns: Sequence[str],
        size: int,
        take: Callable[[pa.RecordBatch], Mapping[str, Piece]],
    ) -> list[tuple[int, Mapping[str, Piece]]]:
        """`_decoded` of these row groups, each half of a large file by a thread of its own."""
        half = len(groups) // 2 if self._rows(groups) > _MANY_ROWS else 0
        with ThreadPoolExecutor(2 * _CONSUMERS, thread_name_prefix="lakeview-leaves") as pool:
            first = pool.submit(self._decoded, groups[:half], columns, size, pool, take) if half else None
            rest = self._decoded(groups[half:], columns, size, pool, take)
            return [*(first.result() if first is not None else ()), *rest]

    def _decoded(
        self,
        groups: Sequence[int],
        columns: Sequence[str],
        size: int,
        pool: ThreadPoolExecutor,
        take: Callable[[pa.RecordBatch], Mapping[str, Piece]],
    ) -> list[tuple[int, Mapping[str, Piece]]]:
        """The rows of each batch of these row groups, and what `take` keeps of it: in threads, few of them waiting."""
        waiting = deque[tuple[int, Future[Mapping[str, Piece]]]]()
        pieces: list[tuple[int, Mapping[str, Piece]]] = []
        with self._open() as file:
            batches = file.iter_batches(size, row_groups=groups, columns=columns)
            for batch in self._checked(batches, columns, groups):
                waiting.append((batch.num_rows, pool.submit(take, batch)))
                if len(waiting) > _CONSUMERS:
                    rows, piece = waiting.popleft()
                    pieces.append((rows, piece.result()))
        return pieces + [(rows, piece.result()) for rows, piece in waiting]

    def _checked(
        self, batches: Iterable[pa.RecordBatch], columns: Sequence[str], groups: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """The batches, each valid; UnsupportedTableError once they decode to more than any honest file does."""
        allowed, decoded = self._allowance(columns, groups), 0
        for batch in batches:
            decoded += batch.nbytes
            if decoded > allowed:
                raise self._inflates(decoded)
            batch.validate(full=True)  # text that is no UTF-8 would make polars panic
            yield batch

    def _groups(self, *leaves: str) -> list[int]:
        """The row groups in which one of these leaves has values."""
        groups = range(self._read_footer().num_row_groups)
        return [g for g in groups if not all(self._no_values(g, leaf) for leaf in leaves)]

    def _rows(self, groups: Sequence[int]) -> int:
        return sum(self._read_footer().row_group(g).num_rows for g in groups)

    def has_values(self, leaf: str) -> bool:
        """Whether a leaf (`add.stats`), or a struct above leaves, is there and not known to be null throughout."""
        footer = self._read_footer()
        kind, _, rest = leaf.partition(".")
        return self._has(kind, rest) and not all(self._no_values(g, leaf) for g in range(footer.num_row_groups))

    def covers(self, leaf: str, other: str) -> bool:
        """Whether a leaf is known to have a value wherever another one has."""
        for group in range(self._read_footer().num_row_groups):
            nulls, others = self._nulls(group, leaf), self._nulls(group, other)
            if nulls is None or others is None or nulls > others:
                return False
        return True

    def check(self) -> None:
        """CorruptTableError if even the footer cannot be read."""
        self._read_footer()

    # -- inside

    def _read_footer(self) -> pq.FileMetaData:
        if self._footer is None:
            with self._open() as file:
                return file.metadata
        return self._footer

    @contextmanager
    def _open(self) -> Iterator[pq.ParquetFile]:
        with (
            readable(self.name, self.parent),
            self._storage.open(self._path, self._recorded_size) as handle,
            _native(handle) as source,
        ):
            # without reading ahead: of a million files with statistics that would be half a gigabyte at once
            file = pq.ParquetFile(source, metadata=self._footer, pre_buffer=self._storage.remote)
            if self._footer is None:
                self._size = handle.seek(0, 2)
                self._learn(file)
            yield file

    def _learn(self, file: pq.ParquetFile) -> None:
        footer = file.metadata
        # an action takes more than a byte, however well it is compressed: a footer that claims more is made to exhaust
        if footer.num_rows > max(100_000, self._size):
            raise CorruptTableError(
                f"{self.name} claims {footer.num_rows:,} rows in {self._size:,} bytes",
                fix="restore the file from a backup; do not open tables of writers you do not trust",
                place=self.name,
                kind="corrupt-checkpoint",
            )
        schema = footer.schema
        self._fields = list(file.schema_arrow)
        self._leaves = {schema.column(i).path: i for i in range(len(schema))}
        self._places = {place for path in self._leaves for place in _above(path)}
        self._footer = footer

    def _has(self, kind: str, leaf: str) -> bool:
        return f"{kind}.{leaf}" in self._places

    def _nulls(self, group: int, leaf: str) -> int | None:
        index = self._leaves.get(leaf)
        if index is None or self._footer is None:
            return None
        statistics = self._footer.row_group(group).column(index).statistics
        return statistics.null_count if statistics is not None and statistics.has_null_count else None

    def _no_values(self, group: int, leaf: str) -> bool:
        assert self._footer is not None
        return bool(self._nulls(group, leaf) == self._footer.row_group(group).num_rows)

    def _batch_rows(self, most: int) -> int:
        """Few rows at a time of a small file: one whose dictionary inflates is stopped early."""
        return max(64, min(most, self._size // 512))

    def _allowance(self, leaves: Sequence[str], groups: Sequence[int]) -> int:
        """How many bytes these leaves may decode to: far beyond what any honest file does."""
        assert self._footer is not None
        wanted = set(leaves)
        read = [i for path, i in self._leaves.items() if not wanted.isdisjoint(_above(path))]
        chunks = [self._footer.row_group(g) for g in groups]
        declared = sum(group.column(i).total_uncompressed_size for group in chunks for i in read)
        rows = sum(group.num_rows for group in chunks)
        return 16 * min(int(declared), 1000 * self._size) + _SLACK_BYTES + _SLACK_ROW * len(read) * int(rows)

    def _inflates(self, decoded: int) -> UnsupportedTableError:
        return UnsupportedTableError(
            f"{self.name} holds {self._size:,} bytes and inflates to more than {decoded:,}",
            fix="do not open tables of writers you do not trust",
            place=self.name,
            kind="too-large",
        )

    def _require_structs(self, kinds: Iterable[str]) -> None:
        for kind in kinds:
            fields = [field for field in self._fields if field.name == kind]
            if len(fields) > 1:
                raise TypeError(f"it has two columns called {kind}")
            if fields and not pa.types.is_struct(fields[0].type):
                raise TypeError(f"{kind} is {fields[0].type}, a struct was expected")


def _joined(pieces: Iterable[Mapping[str, Piece]]) -> Arrays:
    """What batches gave, leaf by leaf."""
    arrays: Arrays = {}
    for piece in pieces:
        for leaf, array in piece.items():
            arrays.setdefault(leaf, []).append(array)
    return arrays


def _above(path: str) -> list[str]:
    """A leaf's path and those of the structs above it. A name with a dot in it only makes more of them."""
    parts = path.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts) + 1)]


def _actions(column: pa.Array, keys: Sequence[str]) -> list[dict[str, Any]]:
    """The structs of a column where one of these leaves is not null."""
    for key in keys:
        leaf = _field(column, key)
        if leaf.null_count < len(leaf):
            rows = [column[i].as_py() for i in pl.Series(leaf).is_not_null().arg_true()]
            return [{name: value for name, value in row.items() if value is not None} for row in rows]
    return []


def _field(struct: pa.Array, leaf: str) -> pa.Array:
    """A leaf of a struct, `deletionVector.offset` for a nested one; null where a struct above it is: some writers
    declare the leaves of an optional action as required, and then they have values where there is no action."""
    for part in leaf.split("."):
        struct = struct.flatten()[struct.type.get_field_index(part)]
    return struct


def _native(handle: IO[bytes]) -> AbstractContextManager[Any]:
    """A local file as Arrow's own, which reads without the interpreter's lock; any other handle as it is."""
    name = getattr(handle, "name", None)
    if isinstance(name, str) and hasattr(handle, "fileno") and type(handle).__module__ in ("io", "_io"):
        native: AbstractContextManager[Any] = pa.OSFile(name, "rb")
        return native
    return nullcontext(handle)
