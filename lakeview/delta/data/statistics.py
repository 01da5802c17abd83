"""Per-file statistics: JSON text and parsed structs to STATISTICS, for the columns asked (delta protocol, Per-file
Statistics). What is missing or cannot be read is unknown: null."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import polars as pl

from lakeview.delta.data.partition_values import calendar, instants
from lakeview.delta.log.record_counts import records, whole
from lakeview.errors import InvalidRequestError
from lakeview.schema import DataType, DecimalType, Field, PrimitiveType, Schema, StructType, leaf_name, polars_type

Path = tuple[str, ...]

_STRING_PREFIX = 32
"""Spark cuts string bounds to 32 characters, so a bound that long only bounds."""

_COMPARABLE = {
    "string", "long", "integer", "short", "byte", "float", "double", "boolean", "date", "timestamp", "timestamp_ntz",
}  # fmt: skip


def physical_leaves(
    schema: Schema, columns: Sequence[str] | None, skip: Iterable[str]
) -> list[tuple[Path, Path, Field]]:
    """(path, path in data files and statistics, field) of the leaves asked for, partition columns left out.

    `columns`: leaf names as in STATISTICS, or names of top-level structs; InvalidRequestError for one that is neither.
    """
    hidden = set(skip)
    found = [
        entry for field in schema if field.name not in hidden for entry in _leaves(field, (), ())
    ]  # fmt: skip
    if columns is None:
        return found
    wanted = set(columns)
    known = {leaf_name(path) for path, _, _ in found} | {path[0] for path, _, _ in found} | hidden
    if unknown := sorted(wanted - known):
        raise InvalidRequestError(
            f"there is no column {unknown[0]}", fix=f"choose from {', '.join(sorted(known)[:20])}", place=unknown[0],
            kind="unknown-column",
        )  # fmt: skip
    return [entry for entry in found if leaf_name(entry[0]) in wanted or entry[0][0] in wanted]


def _leaves(field: Field, above: Path, physical: Path) -> Iterable[tuple[Path, Path, Field]]:
    path, physical = (*above, field.name), (*physical, field.physical_name or field.name)
    if isinstance(field.type, StructType):
        for inner in field.type.fields:
            yield from _leaves(inner, path, physical)
    else:
        yield path, physical, field


def statistics_frame(adds: pl.DataFrame, leaves: Sequence[tuple[Path, Path, Field]]) -> pl.DataFrame:
    """STATISTICS from FILE_ACTIONS with `stats` and, where a checkpoint had it, `stats_parsed`."""
    documents = _decode(adds["stats"])
    parsed = ParsedStatistics(adds["stats_parsed"] if "stats_parsed" in adds.columns else None)
    tight = pl.Series([_reach(d, ("tightBounds",)) is not False for d in documents], dtype=pl.Boolean)
    tight = tight & parsed.find(("tightBounds",), pl.Boolean()).fill_null(True)
    count = records(adds["stats"], parsed.find(("numRecords",), pl.Int64()))
    columns = [adds["path"].alias("_path"), adds["deletion_vector"].alias("_deletion_vector")]
    for path, physical, field in leaves:
        columns.append(_column(documents, parsed, physical, field.type, tight, count).alias(leaf_name(path)))
    return pl.DataFrame({series.name: series for series in columns})  # a list would rename a column without a name


def _column(
    documents: list[Any], parsed: ParsedStatistics, path: Path, type_: DataType, tight: pl.Series, count: pl.Series
) -> pl.Series:
    nulls = pl.Series([whole(_reach(d, ("nullCount", *path))) for d in documents], dtype=pl.Int64)
    nulls = _first_known(
        nulls, parsed.find(("nullCount", *path), pl.Int64()), parsed.find(("nullCounts", *path), pl.Int64())
    )
    parts = {"null_count": nulls, "null_count_exact": nulls.is_not_null() & (tight | (nulls == 0) | (nulls == count))}
    if isinstance(type_, DecimalType) or (isinstance(type_, PrimitiveType) and type_.name in _COMPARABLE):
        dtype = polars_type(type_)
        sides = {}
        precise = tight
        for side, key in (("min", "minValues"), ("max", "maxValues")):
            text = [_reach(d, (key, *path)) for d in documents]
            bound = _first_known(_values(text, type_), parsed.find((key, *path), dtype))
            sides[side] = bound.set(~calendar(bound), None)  # a day that Python has not would bring down who shows it
            precise = precise & _precise(sides[side], text, type_)
        known = sides["min"].is_not_null() & sides["max"].is_not_null()
        parts = {**sides, **parts, "exact": known & precise.fill_null(False)}
    else:
        empty = pl.Series([None] * len(documents), dtype=pl.Null)
        parts = {"min": empty, "max": empty, **parts, "exact": pl.Series([False] * len(documents), dtype=pl.Boolean)}
    order = ("min", "max", "null_count", "exact", "null_count_exact")
    return pl.DataFrame([parts[name].alias(name) for name in order]).to_struct("column")


def _first_known(*series: pl.Series) -> pl.Series:
    return pl.select(pl.coalesce(*series)).to_series()


def _precise(values: pl.Series, text: list[Any], type_: DataType) -> pl.Series:
    """Whether a bound is a value that occurs: writers cut strings, and timestamps to milliseconds."""
    match type_:
        case PrimitiveType("string"):
            return values.str.len_chars() < _STRING_PREFIX
        case PrimitiveType("timestamp" | "timestamp_ntz"):
            fractions = [isinstance(t, str) and len(t.rpartition(".")[2].rstrip("Zz")) >= 6 and "." in t for t in text]
            return pl.Series(fractions, dtype=pl.Boolean)
    return values.is_not_null()


def _decode(stats: pl.Series) -> list[Any]:
    """Each document as dicts, None where there is none or no JSON. Fractions stay text, so that no digit is lost."""
    decoder = msgspec.json.Decoder(float_hook=str)
    documents: list[Any] = []
    for text in stats:
        try:
            documents.append(None if text is None else decoder.decode(text))
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            documents.append(None)
    return documents


def _reach(document: Any, path: Path) -> Any:
    for part in path:
        if not isinstance(document, dict):
            return None
        document = document.get(part)
    return document


def _values(values: list[Any], type_: DataType) -> pl.Series:
    """Bounds as JSON gives them to the column's type; what does not fit is unknown."""
    dtype = polars_type(type_)
    if dtype == pl.Boolean:
        return pl.Series([v if isinstance(v, bool) else None for v in values], dtype=pl.Boolean)
    if dtype.is_integer():
        whole_numbers = [v if isinstance(v, int) and not isinstance(v, bool) else None for v in values]
        fitting = [v if v is not None and -(2**63) <= v < 2**63 else None for v in whole_numbers]
        return pl.Series(fitting, dtype=pl.Int64).cast(dtype, strict=False)
    if isinstance(type_, DecimalType) or dtype.is_float():
        text = [str(v) if isinstance(v, int | str) and not isinstance(v, bool) else None for v in values]
        return pl.Series(text, dtype=pl.String).cast(dtype, strict=False)
    strings = pl.Series([v if isinstance(v, str) else None for v in values], dtype=pl.String)
    match type_:
        case PrimitiveType("date"):
            return strings.str.head(10).str.to_date("%Y-%m-%d", strict=False)
        case PrimitiveType("timestamp"):
            return instants(strings)
        case PrimitiveType("timestamp_ntz"):
            return instants(strings).dt.replace_time_zone(None)
    return strings


class ParsedStatistics:
    """The `stats_parsed` struct of a checkpoint, if there is one. Names are addressed exactly: no patterns."""

    def __init__(self, struct: pl.Series | None) -> None:
        self._struct = struct if struct is not None and isinstance(struct.dtype, pl.Struct) else None
        # a struct of thousands of columns is taken apart once, not once for each of them
        self._parts: dict[Path, dict[str, pl.Series]] = {}

    def find(self, path: Path, dtype: pl.DataType) -> pl.Series:
        """The leaf at a path, cast; null where it is not there."""
        series = self._struct
        for i, part in enumerate(path):
            if path[:i] not in self._parts:  # asking a wide struct for its type alone takes milliseconds
                if series is None or not isinstance(series.dtype, pl.Struct):
                    return pl.Series([None], dtype=dtype)
                fields = series.struct.unnest().get_columns()
                self._parts[path[:i]] = dict(zip(series.struct.fields, fields, strict=True))
            series = self._parts[path[:i]].get(part)
        if series is None or series.dtype.is_nested():
            return pl.Series([None], dtype=dtype)
        if isinstance(dtype, pl.Datetime) and isinstance(series.dtype, pl.Datetime):
            naive = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if series.dtype.time_zone else series
            return naive.cast(pl.Datetime("us")).dt.replace_time_zone(dtype.time_zone)
        try:
            return series.cast(dtype, strict=False)
        except pl.exceptions.InvalidOperationError:  # a type from which there is no way: the value is unknown
            return pl.Series([None], dtype=dtype)
