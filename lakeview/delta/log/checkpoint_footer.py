"""The footer of a Parquet file of actions: which leaves it has, where they have values, and what it may decode to."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakeview.model.errors import CorruptTableError, UnsupportedTableError
from lakeview.rows.footer_reader import FIRST_READ, check_chunks, check_length, footer_bytes, unchecked_footer

_SLACK_BYTES, _SLACK_ROW = 256 << 20, 256
CORRUPT_CHECKPOINT = "corrupt-checkpoint"
"""The kind of the errors of `corrupt_checkpoint`."""
UNTRUSTED = "do not open tables of writers you do not trust"
DELETABLE = "if every commit is still there, deleting the checkpoint is enough"

PATH_AND_OTHERS = ("path", "size", "dataChange")
"""The path of a file action, and leaves that tell one without a path from a row of another action."""

FEW_ROWS = 2_000
"""Up to so many rows are decoded sooner than the column chunks are checked, which takes longer than to open a table
(benches/bench_rows.py, filtered scan)."""


def corrupt_checkpoint(
    message: str, place: str, fix: str = f"restore the file from a backup; {DELETABLE}"
) -> CorruptTableError:
    """The error for a file of a checkpoint that cannot be read."""
    return CorruptTableError(message, fix=fix, place=place, kind=CORRUPT_CHECKPOINT)


class Footer:
    """What the footer of one file of actions says. `name` for messages, `size`: the file's bytes; `end`: the last of
    them, with the footer, by which column chunks are checked before the first of them is looked at: a table that is
    only opened needs none of them, and the check took a tenth of its time (benches/bench_logs.py, V2).

    CorruptTableError for a footer that claims more rows than any file of its size has.
    """

    def __init__(self, file: pq.ParquetFile, name: str, size: int, end: bytes | None = None) -> None:
        self.metadata: pq.FileMetaData = file.metadata
        self._bytes_to_check = end
        self._name = name
        self._size = size
        # an action takes more than a byte, however well it is compressed: a footer that claims more is made to exhaust
        if self.metadata.num_rows > max(100_000, size):
            claim = f"{name} claims {self.metadata.num_rows:,} rows in {size:,} bytes"
            raise corrupt_checkpoint(claim, name, f"restore the file from a backup; {UNTRUSTED}")
        schema = self.metadata.schema
        self._fields: list[pa.Field] = list(file.schema_arrow)
        self._leaves = {schema.column(i).path: i for i in range(len(schema))}

    @property
    def num_rows(self) -> int:
        """The rows of the file, one an action."""
        return int(self.metadata.num_rows)

    @cached_property
    def _places(self) -> set[str]:  # on first use: a table that is only opened asks for leaves
        return {place for path in self._leaves for place in _above(path)}

    def has(self, place: str) -> bool:
        """Whether there is a leaf, or a struct above leaves, of this path (`add.stats`)."""
        return place in self._places

    def has_leaf(self, leaf: str) -> bool:
        """Whether there is a leaf of this path."""
        return leaf in self._leaves

    @property
    def is_checked(self) -> bool:
        """Whether column chunks, and so null counts, can be looked at without a check."""
        return self._bytes_to_check is None

    def check(self) -> None:
        """An error as `check_chunks`, once."""
        if self._bytes_to_check is not None:
            check_chunks(self.metadata, self._bytes_to_check)
            self._bytes_to_check = None

    @cached_property
    def is_small(self) -> bool:
        """Whether the rows are few, so that no null count is looked at and every leaf may have values. Not of a file
        with statistics or partition values as structs, which would be read beside the same in text."""
        return self.metadata.num_rows <= FEW_ROWS and not any("_parsed." in path for path in self._leaves)

    def groups(self, *leaves: str) -> list[int]:
        """The row groups in which one of these leaves has values."""
        groups = range(self.metadata.num_row_groups)
        return [g for g in groups if not all(self._no_values(g, leaf) for leaf in leaves)]

    def rows(self, groups: Sequence[int]) -> int:
        """The rows of these row groups."""
        return sum(self.metadata.row_group(g).num_rows for g in groups)

    def has_values(self, place: str) -> bool:
        """Whether a leaf, or a struct above leaves, is there and not known to be null throughout."""
        return self.has(place) and bool(self.groups(place))

    def is_null(self, place: str) -> bool:
        """Whether a leaf, or every leaf of a struct, is known to be null throughout, or not there."""
        return not any(self.groups(leaf) for leaf in self._leaves if leaf == place or leaf.startswith(f"{place}."))

    def covers(self, leaf: str, other: str) -> bool:
        """Whether a leaf is known to have a value wherever another one has."""
        for group in range(self.metadata.num_row_groups):
            nulls, others = self._nulls(group, leaf), self._nulls(group, other)
            if nulls is None or others is None or nulls > others:
                return False
        return True

    def require_structs(self, kinds: Iterable[str]) -> None:
        """TypeError for a kind of action that is no struct, or there twice."""
        for kind in kinds:
            fields = [field for field in self._fields if field.name == kind]
            if len(fields) > 1:
                raise TypeError(f"it has two columns called {kind}")
            if fields and not pa.types.is_struct(fields[0].type):
                raise TypeError(f"{kind} is {fields[0].type}, a struct was expected")

    def keys(self, kinds: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """The kinds of actions that are columns of the file, and which of these keys they have. TypeError as
        `require_structs`."""
        self.require_structs(kinds)
        keys = {kind: [key for key in of if self.has_leaf(f"{kind}.{key}")] for kind, of in kinds.items()}
        return {kind: of for kind, of in keys.items() if of}

    def require_paths(self, kind: str) -> None:
        """ValueError if a file action of this kind has no path: it would be taken for another action's row. Of a small
        file with paths the rows tell."""
        if self.is_small and self.has_leaf(f"{kind}.path"):
            return
        for group in range(self.metadata.num_row_groups):
            without, *others = (self._recorded_nulls(group, f"{kind}.{leaf}") for leaf in PATH_AND_OTHERS)
            if without is None and not self.has_leaf(f"{kind}.path"):
                without = self.metadata.row_group(group).num_rows
            if without is not None and any(nulls is not None and nulls < without for nulls in others):
                raise ValueError(f"one of its {kind} actions has no path")

    def batch_rows(self, most: int) -> int:
        """Rows to decode at a time: few of a small file, so that one whose dictionary inflates is stopped early."""
        return max(64, min(most, self._size // 512))

    def allowance(self, leaves: Sequence[str], groups: Sequence[int]) -> int:
        """How many bytes these leaves may decode to: far beyond what any honest file does."""
        begins = tuple(f"{leaf}." for leaf in leaves)
        columns = [i for path, i in self._leaves.items() if f"{path}.".startswith(begins)]
        chunks = [self.metadata.row_group(g) for g in groups]
        if self.is_checked:
            size = sum(group.column(i).total_uncompressed_size for group in chunks for i in columns)
        else:
            size = sum(group.total_byte_size for group in chunks)
        return 16 * min(int(size), 1000 * self._size) + _SLACK_BYTES + _SLACK_ROW * len(columns) * self.rows(groups)

    def inflates(self, size: int) -> UnsupportedTableError:
        """The error for a file that decodes to more than its allowance."""
        return UnsupportedTableError(
            f"{self._name} holds {self._size:,} bytes and inflates to more than {size:,}",
            fix=UNTRUSTED,
            place=self._name,
            kind="too-large",
        )

    def _nulls(self, group: int, leaf: str) -> int | None:
        return None if self.is_small else self._recorded_nulls(group, leaf)

    def _recorded_nulls(self, group: int, leaf: str) -> int | None:
        index = self._leaves.get(leaf)
        if index is None:
            return None
        self.check()
        statistics = self.metadata.row_group(group).column(index).statistics
        return statistics.null_count if statistics is not None and statistics.has_null_count else None

    def _no_values(self, group: int, leaf: str) -> bool:
        return bool(self._nulls(group, leaf) == self.metadata.row_group(group).num_rows)


def source_of(handle: IO[bytes]) -> Any:
    """A file of actions as Arrow reads it: a small one from memory."""
    if handle.seek(0, 2) > FIRST_READ:
        return handle
    handle.seek(0)
    return pa.BufferReader(handle.read(FIRST_READ))


def open_with_footer(source: Any, name: str, *, ahead: bool) -> tuple[pq.ParquetFile, Footer]:
    """A file of actions and its footer. `source`: of `source_of`; `ahead`: whether it is read ahead. Of a small file
    what is checked of its footer, and what Arrow makes of it, are the same bytes."""
    end = footer_bytes(source)
    if isinstance(source, pa.BufferReader):
        check_length(end)
        file = pq.ParquetFile(source, pre_buffer=False)
    else:
        file = pq.ParquetFile(source, metadata=unchecked_footer(end), pre_buffer=ahead)
    return file, Footer(file, name, source.seek(0, 2), end)


def _above(path: str) -> list[str]:
    """A leaf's path and those of the structs above it. A name with a dot in it only makes more of them."""
    parts = path.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts) + 1)]
