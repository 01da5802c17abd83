"""Per-file statistics: JSON text and parsed structs to STATISTICS, for the columns asked (delta protocol, Per-file
Statistics). What is missing or cannot be read is unknown: null."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Literal

import polars as pl

from lakeview.delta.data.bounds import ParsedStatistics, bound_kind, first_known, loosen, typed_bounds
from lakeview.delta.data.document_values import Columns, Kind, null_columns
from lakeview.delta.data.documents import Documents
from lakeview.delta.data.partition_values import within_calendar
from lakeview.delta.data.type_widening import type_changes
from lakeview.delta.log.state import TableState
from lakeview.delta.properties import value
from lakeview.model.arguments import names_of
from lakeview.model.data_types import DataType, DecimalType, Field, PrimitiveType, StructType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import choices
from lakeview.model.schema import Schema, leaf_name, polars_type
from lakeview.predicates.bounds import fill_unknown

Path = tuple[str, ...]
Leaf = tuple[Path, Path, Field]
"""A leaf's path, its path in data files and statistics, and its field."""

_STRING_PREFIX = 32
"""Spark cuts string bounds to 32 UTF-16 units, so a bound that long only bounds."""

_PREFIX_PROPERTY = "delta.dataSkippingStringPrefixLength"
_SEED = 0
_VALUES = 65_536
"""Texts of several columns that become bounds at once."""
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
        self._fields = [(physical, field) for _, physical, field in leaves]
        self._places = _places_of(self._fields)
        self._texts: dict[PrimitiveType, list[Path]] = {}
        for physical, field in self._fields:
            if isinstance(field.type, PrimitiveType) and bound_kind(field.type) is Kind.TEXT:
                self._texts.setdefault(field.type, []).append(physical)
        self._documents = Documents(self._places)
        keys = {"nullCount": ("nullCount", "nullCounts")}
        self.leaves = [".".join((key, *rest)) for top, *rest in self._places for key in keys.get(top, (top,))]

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
        documents = null_columns(rows, self._places) if stats is None else self._documents.decode(stats)
        tight = fill_unknown(first_known(documents[_TIGHT], structs.find(_TIGHT, pl.Boolean())), True)
        count = first_known(documents[_RECORDS], structs.find(_RECORDS, pl.Int64()))
        columns = [count.alias("records"), tight.alias("tight")]
        structs_of = [pl.col("records")]
        bounds = self._bounds_of_texts(documents) if stats_parsed is None else {}
        for i, (physical, field) in enumerate(self._fields):
            parts = self._column(documents, structs, bounds, physical, field)
            columns += [part.alias(f"{name} {i}") for name, part in parts.items()]
            structs_of.append(_struct_of(i, tuple(parts)))
        # one query for all columns: a query for each part of each of them would cost more than the work
        return pl.DataFrame(columns).select(structs_of).to_struct("statistics")

    def _bounds_of_texts(self, documents: Columns) -> dict[Path, tuple[pl.Series, pl.Series | None]]:
        """`_bound` of every place of a type that JSON has as text, some thousand values of one type at once: of few
        files a query for each column takes longer than the work (`benches/README.md`, tables of many columns)."""
        bounds: dict[Path, tuple[pl.Series, pl.Series | None]] = {}
        rows = documents[_RECORDS].len()
        at_once = _VALUES // max(rows, 1) or 1
        for type_, paths in self._texts.items():
            for (side, key), start in product(_SIDES, range(0, len(paths), at_once)):
                places = [(key, *path) for path in paths[start : start + at_once]]
                values, sure = self._bound(side, pl.concat([documents[place] for place in places]), None, type_)
                for i, place in enumerate(places):
                    part = None if sure is None else sure.slice(i * rows, rows)
                    bounds[place] = values.slice(i * rows, rows), part
        return bounds

    def _bound(
        self, side: str, raw: pl.Series, fallback: pl.Series | None, type_: DataType
    ) -> tuple[pl.Series, pl.Series | None]:
        """Bounds of documents, `fallback` where these have none, in their type, and `_precise`."""
        bound = within_calendar(first_known(typed_bounds(raw, type_), fallback))
        sure = self._precise(bound, raw, type_)
        if side == "max" and sure is not None and isinstance(bound.dtype, pl.Datetime):
            bound = _raise_bounds(bound, sure)
        return bound, sure

    def _column(
        self,
        documents: Columns,
        structs: ParsedStatistics,
        bounds: Mapping[Path, tuple[pl.Series, pl.Series | None]],
        path: Path,
        field: Field,
    ) -> dict[str, pl.Series]:
        """`nulls`, and of a type with bounds `min`, `max`; `sure`: where both occur among the values, if not
        everywhere. `bounds`: those that are made already."""
        nulls = first_known(
            documents["nullCount", *path],
            structs.find(("nullCount", *path), pl.Int64()),
            structs.find(("nullCounts", *path), pl.Int64()),
        )
        parts = {"nulls": nulls}
        if bound_kind(field.type) is None:
            return parts
        dtype = polars_type(field.type)
        for side, key in _SIDES:
            raw = documents[key, *path]
            pair = bounds.get((key, *path))
            bound, sure = pair or self._bound(side, raw, structs.find((key, *path), dtype), field.type)
            if isinstance(field.type, DecimalType):
                bound, is_rounded = loosen(bound, raw, side)
                sure = ~is_rounded
            if _was_float(field):
                single = bound.cast(pl.Float32).cast(pl.Float64)
                sure = single == bound
                bound = pl.select(
                    pl.min_horizontal(bound, single) if side == "min" else pl.max_horizontal(bound, single)
                ).to_series()
            parts[side] = bound
            if sure is not None:
                parts["sure"] = parts["sure"] & sure if "sure" in parts else sure
        return parts

    def _precise(self, values: pl.Series, raw: pl.Series, type_: DataType) -> pl.Series | None:
        """Whether a bound is a value that occurs: writers cut strings, and timestamps to milliseconds. None: where
        there is one, it is."""
        match type_:
            case PrimitiveType("string"):
                shortest = values.str.len_bytes() < self._prefix
                return shortest if shortest.all() else _units(values) < self._prefix
            case PrimitiveType("timestamp" | "timestamp_ntz"):
                longest = raw.str.len_bytes().max()
                if not isinstance(longest, int) or longest < _WITH_MICROSECONDS:
                    return pl.Series([False]).new_from_index(0, raw.len())
                return raw.str.contains(r"\.\d{6}")
        return None


@lru_cache(maxsize=1_024)  # making these expressions takes a sixth of the time that few files do
def _struct_of(i: int, parts: tuple[str, ...]) -> pl.Expr:
    """`f0`, `f1`, ...: min, max, null_count, exact and null_count_exact of the column of this number, whose `parts` are
    there."""
    nulls, tight = pl.col(f"nulls {i}"), pl.col("tight")
    bounds = [pl.col(f"{side} {i}") if side in parts else pl.lit(None) for side, _ in _SIDES]
    exact = bounds[0].is_not_null() & bounds[1].is_not_null() & tight
    if "sure" in parts:
        exact &= pl.col(f"sure {i}").fill_null(value=False)
    return pl.struct(
        bounds[0].alias("min"),
        bounds[1].alias("max"),
        nulls.alias("null_count"),
        exact.alias("exact"),
        (nulls.is_not_null() & (tight | (nulls == 0))).alias("null_count_exact"),
    ).alias(f"f{i}")


def table_statistics(replay: TableState, leaves: Sequence[Leaf], share: float = 1.0) -> pl.DataFrame:
    """STATISTICS of the live files, or of about this share of them: only what these leaves need is read of the log."""
    adds = replay.adds([], LeafStatistics(leaves, string_prefix(replay.properties), share))
    return _statistics(adds if share >= 1.0 else adds.filter(pl.col("statistics").is_not_null()), leaves)


def statistics_frame(adds: pl.DataFrame, leaves: Sequence[Leaf]) -> pl.DataFrame:
    """STATISTICS from FILE_ACTIONS with `stats` and, where a checkpoint had it, `stats_parsed`."""
    structs = adds["stats_parsed"] if "stats_parsed" in adds.columns else None
    return _statistics(adds.with_columns(LeafStatistics(leaves).read(adds["stats"], structs, adds.height)), leaves)


def _statistics(adds: pl.DataFrame, leaves: Sequence[Leaf]) -> pl.DataFrame:
    fields = adds["statistics"].struct.unnest().get_columns()
    columns = {"_path": adds["path"], "_deletion_vector": adds["deletion_vector"]}
    columns |= {leaf_name(path): column for (path, _, _), column in zip(leaves, fields[1:], strict=True)}
    return pl.DataFrame(columns)  # a list would rename a column without a name


_TIGHT, _RECORDS = ("tightBounds",), ("numRecords",)
_SIDES: tuple[tuple[Literal["min", "max"], str], ...] = (("min", "minValues"), ("max", "maxValues"))


def _places_of(fields: Sequence[tuple[Path, Field]]) -> dict[Path, Kind]:
    """Places in a statistics document that these columns need, and what has to be there."""
    places: dict[Path, Kind] = {_TIGHT: Kind.BOOLEAN, _RECORDS: Kind.COUNT}
    for physical, field in fields:
        kind = bound_kind(field.type)
        if kind is not None:
            places |= {(key, *physical): kind for _, key in _SIDES}
        places["nullCount", *physical] = Kind.COUNT
    return places


def _was_float(field: Field) -> bool:
    """Whether bounds of older files may be those of 32-bit floats: 0.1 there is a little more than 0.1 as a double."""
    return any(change.get("fromType") == "float" for change in type_changes(field))


def _units(texts: pl.Series) -> pl.Series:
    """The length of texts in UTF-16 units: characters beyond the basic plane, four bytes in UTF-8, are two."""
    characters = texts.str.len_chars()
    if (characters == texts.str.len_bytes()).all():  # ASCII, as most are
        return characters
    return characters + texts.str.count_matches(r"[\x{10000}-\x{10FFFF}]")


def _raise_bounds(highest: pl.Series, sure: pl.Series) -> pl.Series:
    """Upper bounds of timestamps, raised by what may have been cut off: where they are whole milliseconds, and not
    `sure` to occur."""
    high = highest.to_physical()
    cut = (high % 1_000 == 0) & ~(sure.fill_null(value=False) if sure.null_count() else sure)
    return (high + cut.cast(pl.Int64) * _CUT_OFF).cast(highest.dtype)
