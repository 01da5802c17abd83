"""Per-file statistics: JSON text and parsed structs to STATISTICS, for the columns asked (delta protocol, Per-file
Statistics). What is missing or cannot be read is unknown: null."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import and_

import polars as pl

from lakeview.delta.data.bounds import (
    ParsedStatistics,
    bound_kind,
    loosen,
    typed_bounds,
    was_float,
    widen_floats,
)
from lakeview.delta.data.document_values import Columns, Kind
from lakeview.delta.data.documents import Documents
from lakeview.delta.data.partition_values import within_calendar
from lakeview.delta.properties import value
from lakeview.model.arguments import names_of
from lakeview.model.data_types import DataType, DecimalType, Field, PrimitiveType, StructType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import choices
from lakeview.model.schema import Schema, leaf_name
from lakeview.predicates.bounds import fill_unknown

Path = tuple[str, ...]
Leaf = tuple[Path, Path, Field]
"""A leaf's path, its path in data files and statistics, and its field."""

_STRING_PREFIX = 32
"""Spark cuts string bounds to 32 UTF-16 units, so a bound that long only bounds."""

_PREFIX_PROPERTY = "delta.dataSkippingStringPrefixLength"
_SEED = 0
_VALUES = 32_768
"""Bounds of either side that are made at once, if of several columns: more take memory that is new to the process."""
_UNKNOWN, _TRUE, _FALSE = pl.Series([None]), pl.Series([True]), pl.Series([False])
_WITH_MICROSECONDS = len("2026-01-01T00:00:00.123456")
_CUT_OFF = 999
"""Microseconds that a writer may have cut off: "Timestamp columns are truncated down to milliseconds" (delta protocol,
Per-file Statistics)."""


def string_prefix(properties: Mapping[str, str]) -> int:
    """The UTF-16 units that string bounds of a table may be cut to: what it asks for, at most what writers cut to when
    they are not asked, since older files were written under other properties."""
    return min(value(properties, _PREFIX_PROPERTY) or _STRING_PREFIX, _STRING_PREFIX)


def physical_leaves(schema: Schema, columns: Sequence[str] | None, skip: Iterable[str]) -> list[Leaf]:
    """(path, path in data files and statistics, field) of the leaves asked for, partition columns left out.

    `columns`: leaf names as in STATISTICS, or names of top-level structs; InvalidRequestError for one that is neither.
    """
    hidden = set(skip)
    leaves = [
        entry for field in schema if field.name not in hidden for entry in _leaves(field, (), ())
    ]  # fmt: skip
    if columns is None:
        return leaves
    names = set(names_of(columns, "columns"))
    columns_there = {leaf_name(path) for path, _, _ in leaves} | {path[0] for path, _, _ in leaves} | hidden
    columns_there |= {leaf_name((name,)) for name in hidden}
    if unknown := sorted(names - columns_there):
        raise InvalidRequestError(
            f"there is no column {unknown[0]}",
            fix=choices(unknown[0], sorted(columns_there)),
            place=unknown[0],
            kind="unknown-column",
        )
    return [entry for entry in leaves if leaf_name(entry[0]) in names or entry[0][0] in names]


def _leaves(field: Field, above: Path, physical: Path) -> Iterable[tuple[Path, Path, Field]]:
    path, physical = (*above, field.name), (*physical, field.stored_name)
    if isinstance(field.type, StructType):
        for inner in field.type.fields:
            yield from _leaves(inner, path, physical)
    else:
        yield path, physical, field


class LeafStatistics:
    """Reads statistics of these leaves wherever adds are read, a batch at a time (`log.state`).

    `prefix`: the UTF-16 units of the shortest string that may be cut (`string_prefix`). `share`: of about so many of
    the rows, the same ones each time; the struct of the others is null.

    The struct it gives has `records` (physical rows, null when unknown) and then one field a leaf, called f0, f1, ...:
    min, max, null_count, exact, null_count_exact.
    """

    def __init__(self, leaves: Sequence[Leaf], prefix: int = _STRING_PREFIX, share: float = 1.0) -> None:
        self._prefix = prefix
        self._share = share
        self.is_sample = share < 1.0
        self._groups = _groups(leaves)
        places = _places_of([(leaf.type, physical) for _, physical, leaf in leaves])
        self._documents = Documents(places, _places_of([(g.type, path) for g in self._groups for path in g.paths]))
        self._places = places

    @cached_property
    def leaves(self) -> list[str]:
        """Leaves of `stats_parsed` that are needed."""
        keys = {"nullCount": ("nullCount", "nullCounts")}
        return [".".join((key, *rest)) for top, *rest in self._places for key in keys.get(top, (top,))]

    def read(self, stats: pl.Series | None, structs: pl.Series | None, rows: int) -> pl.Series:
        """The struct column, from documents and from structs; where both say something the document counts."""
        if not self.is_sample:
            return self._read(stats, structs, rows)
        count = math.ceil(rows * self._share)  # some of each batch, however small batches are
        sample = pl.int_range(rows, dtype=pl.UInt32, eager=True).sample(count, seed=_SEED).sort()
        part = [None if column is None else column.gather(sample) for column in (stats, structs)]
        places = pl.Series([None], dtype=pl.UInt32).new_from_index(0, rows)
        places = places.scatter(sample, pl.int_range(sample.len(), dtype=pl.UInt32, eager=True))
        return self._read(part[0], part[1], sample.len()).gather(places)

    def _read(self, stats: pl.Series | None, stats_parsed: pl.Series | None, rows: int) -> pl.Series:
        structs = ParsedStatistics(stats_parsed)
        documents = self._documents.unknown(rows) if stats is None else self._documents.decode(stats)
        tight = fill_unknown(structs.fill(documents[_TIGHT], [_TIGHT]), True)
        records = structs.fill(documents[_RECORDS], [_RECORDS]).alias("records")
        columns: dict[int, pl.Series] = {}
        for group in _parts(self._groups, _VALUES // max(rows, 1) or 1):
            column = self._column(group, documents, structs, tight)
            for i, leaf in enumerate(group.leaves):
                columns[leaf] = column.slice(i * rows, rows).alias(f"f{leaf}")
        return pl.DataFrame([records]).hstack([columns[i] for i in range(len(columns))]).to_struct("statistics")

    def _column(self, group: _Group, documents: Columns, structs: ParsedStatistics, tight: pl.Series) -> pl.Series:
        """min, max, null_count, exact and null_count_exact of the leaves of a group, one after the other."""
        places = [("nullCount", *path) for path in group.paths]
        nulls = structs.fill(documents.side_by_side(places), places)
        nulls = structs.fill(nulls, [("nullCounts", *path) for path in group.paths])
        loose = [] if tight.all() else [pl.concat([tight] * len(places))]
        if bound_kind(group.type) is None:
            low = high = _UNKNOWN.new_from_index(0, nulls.len())
            sure = []
        else:
            low, high, *sure = self._bounds(group, documents, structs)
        exact = _all(nulls.len(), _has_value(low), _has_value(high), *loose, *sure)
        exact_nulls = _all(nulls.len(), _has_value(nulls), *(values | (nulls == 0) for values in loose))
        parts = {"min": low, "max": high, "null_count": nulls, "exact": exact, "null_count_exact": exact_nulls}
        return pl.DataFrame([part.alias(name) for name, part in parts.items()]).to_struct("statistics")

    def _bounds(self, group: _Group, documents: Columns, structs: ParsedStatistics) -> list[pl.Series]:
        """Lowest and highest values of documents, of structs where these have none, in their type; and where either
        occur in the file, if not everywhere."""
        places = [(side, *path) for side in ("minValues", "maxValues") for path in group.paths]
        raw = documents.side_by_side(places)  # of both sides at once, since a query costs more than what it works on
        bounds = within_calendar(structs.fill(typed_bounds(raw, group.type), places))
        sure = self._precise(bounds, raw, group.type)
        (low, high), of_either = _halves(bounds), [] if sure is None else _halves(fill_unknown(sure, False))
        if of_either and isinstance(bounds.dtype, pl.Datetime):
            high = _raise_bounds(high, of_either[1])
        if isinstance(group.type, DecimalType):
            lowest, highest = _halves(raw)
            (low, is_low_rounded), (high, is_high_rounded) = loosen(low, lowest, "min"), loosen(high, highest, "max")
            of_either = [~is_low_rounded, ~is_high_rounded]
        if group.was_float:
            singles = [bound.cast(pl.Float32).cast(pl.Float64) for bound in (low, high)]
            of_either = [fill_unknown(low == singles[0], False), fill_unknown(high == singles[1], False)]
            low, high = widen_floats(low, "min"), widen_floats(high, "max")
        return [low, high, *of_either]

    def _precise(self, values: pl.Series, raw: pl.Series, type_: DataType) -> pl.Series | None:
        """Whether a bound is a value that occurs: writers cut strings, and timestamps to milliseconds. None: where
        there is one, it is."""
        match type_:
            case PrimitiveType("string"):
                sizes = values.str.len_bytes()
                shortest = sizes < self._prefix
                return shortest if shortest.all() else _units(values, sizes) < self._prefix
            case PrimitiveType("timestamp" | "timestamp_ntz"):
                longest = raw.str.len_bytes().max()
                if not isinstance(longest, int) or longest < _WITH_MICROSECONDS:
                    return _FALSE.new_from_index(0, raw.len())
                return raw.str.contains(r"\.\d{6}")
        return None


def _has_value(values: pl.Series) -> pl.Series | None:
    """Where there is a value; None: everywhere."""
    if values.null_count() == values.len():
        return _FALSE.new_from_index(0, values.len())
    return values.is_not_null() if values.null_count() else None


def _all(rows: int, *masks: pl.Series | None) -> pl.Series:
    """Where all of these are true; None is one that is everywhere."""
    some = [mask for mask in masks if mask is not None]
    return reduce(and_, some) if some else _TRUE.new_from_index(0, rows)


def statistics_frame(adds: pl.DataFrame, leaves: Sequence[Leaf]) -> pl.DataFrame:
    """STATISTICS from FILE_ACTIONS with `stats` and, where a checkpoint had it, `stats_parsed`."""
    structs = adds["stats_parsed"] if "stats_parsed" in adds.columns else None
    return statistics_of(adds.with_columns(LeafStatistics(leaves).read(adds["stats"], structs, adds.height)), leaves)


def statistics_of(adds: pl.DataFrame, leaves: Sequence[Leaf]) -> pl.DataFrame:
    """STATISTICS from FILE_ACTIONS with `statistics`, as LeafStatistics reads them."""
    statistics = adds["statistics"].struct.unnest()
    statistics.drop_in_place("records")
    statistics.columns = [leaf_name(path) for path, _, _ in leaves]
    columns = [adds["path"].alias("_path"), adds["deletion_vector"].alias("_deletion_vector")]
    return pl.DataFrame(columns).hstack(statistics)


_TIGHT, _RECORDS = ("tightBounds",), ("numRecords",)


@dataclass(frozen=True)
class _Group:
    """Leaves of one type, whose statistics are worked on at once: a query for each column would cost more than the work
    (`benches/README.md`, tables of many columns). `leaves`: their numbers; `was_float`: see the function."""

    type: DataType
    was_float: bool
    leaves: list[int] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)


def _groups(leaves: Sequence[Leaf]) -> list[_Group]:
    groups: dict[tuple[DataType, bool], _Group] = {}
    for number, (_, physical, leaf) in enumerate(leaves):
        kind = leaf.type, was_float(leaf)
        group = groups.get(kind) or groups.setdefault(kind, _Group(*kind))
        group.leaves.append(number)
        group.paths.append(physical)
    return list(groups.values())


def _parts(groups: Iterable[_Group], most: int) -> Iterable[_Group]:
    """The groups, of at most so many leaves each."""
    for group in groups:
        for i in range(0, len(group.leaves), most):
            part = slice(i, i + most)
            yield _Group(group.type, group.was_float, group.leaves[part], group.paths[part])


def _places_of(columns: Sequence[tuple[DataType, Path]]) -> dict[Path, Kind]:
    """Places in a statistics document that these columns need, and what has to be there."""
    kinds = {type_: bound_kind(type_) for type_ in {type_ for type_, _ in columns}}
    with_bounds = [(path, kind) for type_, path in columns if (kind := kinds[type_]) is not None]
    return {
        _TIGHT: Kind.BOOLEAN,
        _RECORDS: Kind.COUNT,
        **{(key, *path): kind for key in ("minValues", "maxValues") for path, kind in with_bounds},
        **{("nullCount", *path): Kind.COUNT for _, path in columns},
    }


def _units(texts: pl.Series, sizes: pl.Series) -> pl.Series:
    """The length of texts in UTF-16 units: characters beyond the basic plane, four bytes in UTF-8, are two. `sizes`: in
    bytes."""
    characters = texts.str.len_chars()
    if (characters == sizes).all():  # ASCII, as most are
        return characters
    return characters + texts.str.count_matches(r"[\x{10000}-\x{10FFFF}]")


def _halves(columns: pl.Series) -> list[pl.Series]:
    half = columns.len() // 2
    return [columns.slice(0, half), columns.slice(half)]


def _raise_bounds(highest: pl.Series, sure: pl.Series) -> pl.Series:
    """Upper bounds of timestamps, raised by what may have been cut off: where they are whole milliseconds, and not
    `sure` to occur."""
    high = highest.cast(pl.Int64)
    cut = (high % 1_000 == 0) & ~sure
    return (high + cut.cast(pl.Int64) * _CUT_OFF).cast(highest.dtype)
