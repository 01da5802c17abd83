"""Equality delete files to those that can reach a data file: newer, of its partition or of none, with bounds that meet.

Decided as a table of booleans, files by deletes, a block of it at a time. Files that the same deletes reach share one
set of them: a thousand deletes of twenty thousand files are no pairs, but a few sets.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from lakeview.iceberg.deletes.index import key_columns
from lakeview.iceberg.manifests.statistics import Metrics, file_bounds, file_counts
from lakeview.model.data_types import DecimalType, Field, PrimitiveType

_ORDERED = frozenset(
    {"boolean", "integer", "long", "float", "double", "date", "time", "timestamp", "timestamp_ntz", "timestamp_ns",
     "timestamptz_ns", "string"}
)  # fmt: skip
_CELLS = 4_000_000
"""Of the table of files by deletes that are computed at once: as many bytes, a few times over."""

_Rows: TypeAlias = npt.NDArray[np.intp]
_Booleans: TypeAlias = npt.NDArray[np.bool_]


def is_ordered(field: Field) -> bool:
    """Whether all writers order the values of a column alike, so that bounds tell which deletes reach a file."""
    type_ = field.type
    return isinstance(type_, DecimalType) or (isinstance(type_, PrimitiveType) and type_.name in _ORDERED)


class EqualityIndex:
    """The equality delete files of a snapshot. `deletes`: delete ENTRIES with the metrics of `fields`: columns by id,
    of which those that are compared count; `global_specs`: the unpartitioned specs, whose deletes reach every file."""

    def __init__(self, deletes: pl.DataFrame, fields: Mapping[int, Field], global_specs: Sequence[int]) -> None:
        self._deletes = deletes.with_row_index("delete").filter(pl.col("content") == 2)
        self._ids = [frozenset(ids or ()) for ids in self._deletes["equality_ids"].to_list()]
        field_ids = frozenset[int]().union(*self._ids)
        self._fields = {i: field for i, field in fields.items() if i in field_ids and is_ordered(field)}
        self._global_specs = list(global_specs)

    @property
    def columns(self) -> frozenset[int]:
        """The ids of the columns whose metrics `reaching` needs of data files."""
        return frozenset(self._fields)

    def reaching(self, data: pl.DataFrame) -> tuple[list[tuple[int, ...]], list[int]]:
        """The distinct sets of deletes, by their row numbers in ascending order, and for each of these data ENTRIES
        the number of the set that can reach it. The set 0 is empty."""
        sets: list[tuple[int, ...]] = [()]
        of_files = [0] * data.height
        if not self._deletes.height or not data.height:
            return sets, of_files
        numbers = self._deletes["delete"].to_numpy()
        sequences, newer = data["sequence_number"].to_numpy(), self._deletes["sequence_number"].to_numpy()
        columns = [_Column(data, self._deletes, f, [i in ids for ids in self._ids]) for i, f in self._fields.items()]
        for files, deletes in self._candidates(data):
            set_numbers: dict[bytes, int] = {bytes(-(-len(deletes) // 8)): 0}
            step = max(1, _CELLS // len(deletes))
            for block in (files[at : at + step] for at in range(0, len(files), step)):
                # "the data file's data sequence number is strictly less than the delete's"  iceberg spec, Scan Planning
                reach = sequences[block, None] < newer[None, deletes]
                for column in columns:
                    reach &= column.meeting(block, deletes)
                for row, file, bits in zip(reach, block.tolist(), np.packbits(reach, axis=1), strict=True):
                    key = bits.tobytes()
                    if key not in set_numbers:
                        set_numbers[key] = len(sets)
                        sets.append(tuple(numbers[deletes[row]].tolist()))
                    of_files[file] = set_numbers[key]
        return sets, of_files

    def _candidates(self, data: pl.DataFrame) -> Iterator[tuple[_Rows, _Rows]]:
        """Data files, by row number, with the deletes of their partition and those of none; files of partitions
        without deletes of their own together."""
        anywhere = self._deletes["spec_id"].is_in(self._global_specs)
        local: dict[tuple[Any, ...], list[int]] = {}
        for row, (place, everywhere) in enumerate(zip(_places(self._deletes), anywhere, strict=True)):
            if not everywhere:
                local.setdefault(place, []).append(row)
        files: dict[tuple[Any, ...] | None, list[int]] = {}
        for row, place in enumerate(_places(data) if local else [()] * data.height):
            files.setdefault(place if place in local else None, []).append(row)
        global_deletes = anywhere.arg_true().to_list()
        for key, rows in files.items():
            deletes = sorted([*global_deletes, *(() if key is None else local[key])])
            if deletes:
                yield np.array(rows), np.array(deletes)


@dataclass(frozen=True, slots=True)
class _Values:
    """What metrics say of one column, an element a file: the range of its values, as ranks among all bounds; and
    whether nulls and NaN, which equal one another, may occur. The range of a file without values meets none."""

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    null: _Booleans
    nan: _Booleans


class _Column:
    """One column of data files and deletes. `compared`: by which deletes."""

    def __init__(self, data: pl.DataFrame, deletes: pl.DataFrame, field: Field, is_compared: Sequence[bool]) -> None:
        bounds = [_bounds(entries, field) for entries in (data, deletes)]
        every = pl.concat([side for pair in bounds for side in pair]).rank("dense").cast(pl.Int64)
        top = every.len() + 1
        lengths = [entries.height for entries in (data, deletes)]
        self._data = _values(data, field, every.slice(0, lengths[0]), every.slice(lengths[0], lengths[0]), top)
        after = 2 * lengths[0]
        self._deletes = _values(
            deletes, field, every.slice(after, lengths[1]), every.slice(after + lengths[1], lengths[1]), top
        )
        self._others = ~np.array(is_compared)

    def meeting(self, files: _Rows, deletes: _Rows) -> _Booleans:
        """Whether each of these deletes may hold a value of each of these files, or does not compare this column."""
        ours, theirs = self._data, self._deletes
        overlap: _Booleans = (ours.low[files, None] <= theirs.high[deletes]) & (
            theirs.low[deletes] <= ours.high[files, None]
        )
        overlap |= self._others[deletes]
        overlap |= ours.null[files, None] & theirs.null[deletes]
        overlap |= ours.nan[files, None] & theirs.nan[deletes]
        return overlap


def _bounds(entries: pl.DataFrame, field: Field) -> tuple[pl.Series, pl.Series]:
    """Lower and upper bounds, null where one is unknown; zeros without a sign, as values are compared."""
    bounds = file_bounds(Metrics(entries), field)
    assert bounds is not None, "a column whose values are ordered has bounds"
    low, high = (b.fill_nan(None) + 0.0 if b.dtype.is_float() else b.to_physical() for b in bounds)
    return low, high


def _values(entries: pl.DataFrame, field: Field, low: pl.Series, high: pl.Series, top: int) -> _Values:
    """`low` and `high`: ranks from 1 to below `top`, null where unknown: such an end may lie anywhere."""
    metrics = Metrics(entries)
    nulls = file_counts(metrics, "null_value_counts", field)
    nans = pl.repeat(0, entries.height, dtype=pl.Int64, eager=True)
    if isinstance(field.type, PrimitiveType) and field.type.name in ("float", "double"):
        nans = file_counts(metrics, "nan_value_counts", field)
    none = ((nulls == entries["records"]) | (nulls + nans == entries["records"])).fill_null(value=False)
    return _Values(
        low.fill_null(0).set(none, top + 1).to_numpy(),
        high.fill_null(top).set(none, -1).to_numpy(),
        (nulls != 0).fill_null(value=True).to_numpy(),
        (nans != 0).fill_null(value=True).to_numpy(),
    )


def _places(entries: pl.DataFrame) -> list[tuple[Any, ...]]:
    """Spec and partition of each entry."""
    keys = key_columns(entries)
    return keys.select("spec_id", *(c for c in keys.columns if c.startswith("f") and c[1:].isdigit())).rows()
