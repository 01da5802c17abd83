"""Equality delete files to those that can reach a data file: newer, of its partition or of none, with bounds that meet.

What reaches a file is kept as the bits of one number, a bit a delete file, and files that the same ones reach share
what stands for them: a thousand deletes of twenty thousand files are no pairs, but a few sets.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, compress
from operator import or_
from typing import Any, NamedTuple

import polars as pl

from lakeview.iceberg.deletes.index import keyed
from lakeview.iceberg.manifests.metrics import Metrics
from lakeview.iceberg.manifests.statistics import counted, file_bounds
from lakeview.model.schema import DecimalType, Field, PrimitiveType

_ORDERED = frozenset(
    {"boolean", "integer", "long", "float", "double", "date", "time", "timestamp", "timestamp_ntz", "timestamp_ns",
     "timestamptz_ns", "string"}
)  # fmt: skip
_STEPS = 256
"""Into so many parts deletes are divided by an end of their ranges: what lies in a part is taken together."""
_DIGITS = bytes.maketrans(b"01", b"\0\1")


def is_ordered(field: Field) -> bool:
    """Whether all writers order the values of a column alike, so that bounds tell which deletes reach a file."""
    type_ = field.type
    return isinstance(type_, DecimalType) or (isinstance(type_, PrimitiveType) and type_.name in _ORDERED)


class EqualityIndex:
    """The equality delete files of a snapshot. `deletes`: delete ENTRIES with the metrics of `fields`: columns by id,
    of which those that are compared count; `global_specs`: the unpartitioned specs, whose deletes reach every file."""

    def __init__(self, deletes: pl.DataFrame, fields: Mapping[int, Field], global_specs: Sequence[int]) -> None:
        equality = deletes.with_row_index("delete").filter(pl.col("content") == 2)
        compared = set(equality["equality_ids"].explode().drop_nulls())
        self._fields = {i: field for i, field in fields.items() if i in compared and is_ordered(field)}
        everywhere = equality["spec_id"].is_in(list(global_specs))
        self._anywhere = _Scope(equality.filter(everywhere), self._fields)
        local = equality.filter(~everywhere)
        rows: dict[tuple[Any, ...], list[int]] = {}
        for row, place in enumerate(_places(local)):
            rows.setdefault(place, []).append(row)
        self._local = {place: _Scope(local[numbers], self._fields) for place, numbers in rows.items()}

    @property
    def columns(self) -> frozenset[int]:
        """The ids of the columns whose metrics `reaching` wants of data files."""
        return frozenset(self._fields)

    def reaching(self, data: pl.DataFrame) -> list[tuple[int, ...]]:
        """For each of these data ENTRIES the deletes that can reach it, by their row numbers; the same object for all
        files that the same ones reach."""
        places = _places(data) if self._local else [()] * data.height
        told = {i: _values(data, field) for i, field in self._fields.items()}
        known: dict[tuple[Any, ...], tuple[int, ...]] = {}
        found = []
        for row, (sequence, place) in enumerate(zip(data["sequence_number"].to_list(), places, strict=True)):
            values = {i: column[row] for i, column in told.items()}
            scopes = [scope for scope in (self._anywhere, self._local.get(place)) if scope is not None]
            bits = [scope.reaching(sequence, values) for scope in scopes]
            key = (place, *bits) if len(bits) > 1 and bits[1] else (bits[0],)
            if key not in known:
                each = [scope.numbers(b) for scope, b in zip(scopes, bits, strict=True)]
                known[key] = tuple(sorted(number for numbers in each for number in numbers))
            found.append(known[key])
        return found


class _Scope:
    """Equality deletes that can reach the same files, a bit each, in the order of their sequence numbers."""

    def __init__(self, deletes: pl.DataFrame, fields: Mapping[int, Field]) -> None:
        deletes = deletes.sort("sequence_number", maintain_order=True)
        self._sequences: list[int] = deletes["sequence_number"].to_list()
        self._numbers: list[int] = deletes["delete"].to_list()
        self._all = (1 << deletes.height) - 1
        compared = [set(ids or ()) for ids in deletes["equality_ids"].to_list()]
        self._columns: dict[int, _Column] = {}
        for i, field in fields.items() if deletes.height else ():
            values = _values(deletes, field)
            self._columns[i] = _Column([v if i in ids else None for v, ids in zip(values, compared, strict=True)])

    def reaching(self, sequence: int, values: Mapping[int, _Values]) -> int:
        """The deletes that can reach a data file with this data sequence number and these values."""
        # "the data file's data sequence number is strictly less than the delete's"  iceberg spec, Scan Planning
        older = bisect_right(self._sequences, sequence)
        found = self._all >> older << older
        for i, column in self._columns.items() if found else ():
            found &= column.meeting(values[i])
        return found

    def numbers(self, bits: int) -> Iterator[int]:
        """The row numbers of deletes."""
        return compress(self._numbers, f"{bits:b}"[::-1].encode().translate(_DIGITS))


class _Values(NamedTuple):
    """What metrics say of one column of a file: the range of its values, None for an end that is unknown; whether it
    may have any, nulls, and NaN, which equal one another."""

    low: Any
    high: Any
    some: bool
    null: bool
    nan: bool


def _values(entries: pl.DataFrame, field: Field) -> list[_Values]:
    metrics = Metrics(entries)
    bounds = file_bounds(metrics, field)
    assert bounds is not None, "a column whose values are ordered has bounds"
    low, high = (b.fill_nan(None) if b.dtype.is_float() else b for b in bounds)
    nulls = counted(metrics, "null_value_counts", field)
    others = nulls
    nan = pl.repeat(False, entries.height, dtype=pl.Boolean, eager=True)
    if low.dtype.is_float():
        nans = counted(metrics, "nan_value_counts", field)
        nan, others = ~(nans == 0).fill_null(value=False), nulls + nans
    some = ~((nulls == entries["records"]) | (others == entries["records"])).fill_null(value=False)
    columns = (low, high, some, ~(nulls == 0).fill_null(value=False), nan)
    return list(map(_Values._make, zip(*(column.to_list() for column in columns), strict=True)))


class _Column:
    """One column of the deletes of a scope. `values`: of each of them, None for one that does not compare it."""

    def __init__(self, values: Sequence[_Values | None]) -> None:
        self._others = _bits(number for number, v in enumerate(values) if v is None)
        told = [(number, v) for number, v in enumerate(values) if v is not None]
        self._null = _bits(number for number, v in told if v.null)
        self._nan = _bits(number for number, v in told if v.nan)
        self._low = _Order([(number, v.low) for number, v in told if v.some])
        self._high = _Order([(number, v.high) for number, v in told if v.some])

    def meeting(self, values: _Values) -> int:
        """The deletes that may hold a value of a file, or that do not ask for one."""
        found = self._others | (self._null if values.null else 0) | (self._nan if values.nan else 0)
        return found | (self._low.up_to(values.high) & self._high.from_(values.low) if values.some else 0)


class _Order:
    """Deletes by one end of their ranges. `ends`: number and end, None where it is unknown and may lie anywhere."""

    def __init__(self, ends: Sequence[tuple[int, Any]]) -> None:
        known = sorted((end, number) for number, end in ends if end is not None)
        self._ends = [end for end, _ in known]
        self._step = max(1, len(known) // _STEPS)
        parts = [known[at : at + self._step] for at in range(0, len(known), self._step)]
        self._before: list[int] = [0, *accumulate((_bits(number for _, number in part) for part in parts), or_)]
        self._unknown = _bits(number for number, end in ends if end is None)
        self._all: int = self._before[-1] | self._unknown

    def up_to(self, most: Any) -> int:
        """Those whose end may be a value or less; None for a value that is unknown. It may be some more."""
        if most is None:
            return self._all
        return self._unknown | self._before[-(-bisect_right(self._ends, most) // self._step)]

    def from_(self, least: Any) -> int:
        """Those whose end may be a value or more."""
        return self._all if least is None else self._all & ~self._before[bisect_left(self._ends, least) // self._step]


def _bits(numbers: Iterable[int]) -> int:
    found = bytearray()
    for number in numbers:
        if number >> 3 >= len(found):
            found.extend(bytes((number >> 3) + 1 - len(found)))
        found[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(found, "little")


def _places(entries: pl.DataFrame) -> list[tuple[Any, ...]]:
    """Spec and partition of each entry."""
    found = keyed(entries)
    return found.select("spec_id", *(c for c in found.columns if c.startswith("f") and c[1:].isdigit())).rows()
