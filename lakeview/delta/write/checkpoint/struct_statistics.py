"""Per-file statistics between their two forms: JSON documents and the struct `stats_parsed` (delta protocol,
Checkpoint Schema). Both forms name columns by their physical names."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import polars as pl

from lakeview.delta.data.bounds import (
    ParsedStatistics,
    Side,
    bound_kind,
    first_known,
    loosen,
    typed_bounds,
    was_float,
    widen_floats,
)
from lakeview.delta.data.document_values import Columns, Kind
from lakeview.delta.data.documents import Documents
from lakeview.delta.data.file_statistics import json_time, put_below
from lakeview.delta.data.partition_values import parse_values, within_calendar
from lakeview.delta.data.statistics import Leaf, Path
from lakeview.delta.log.file_actions import IDENTITY
from lakeview.delta.log.replay import Replay
from lakeview.delta.write.file_changes import LIVE_COLUMNS
from lakeview.model.data_types import DecimalType, Field
from lakeview.model.schema import polars_type

_TIGHT, _RECORDS = "tightBounds", "numRecords"
_BOUNDS = ("minValues", "maxValues")
_COUNTS = ("nullCount", "nullCounts")  # the second is the early protocol's name of the same

Tree = dict[str, Any]


class StructStatistics:
    """Documents of adds, and structs of an earlier checkpoint, to `stats_parsed` of these leaves."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._fields = [(physical, field) for _, physical, field in leaves]
        self._bounded_leaves = {physical for physical, field in self._fields if bound_kind(field.type) is not None}
        places: dict[Path, Kind] = {(_TIGHT,): Kind.BOOLEAN, (_RECORDS,): Kind.COUNT}
        for physical, field in self._fields:
            places[_COUNTS[0], *physical] = Kind.COUNT
            kind = bound_kind(field.type)
            if kind is not None:
                places |= {(side, *physical): kind for side in _BOUNDS}
        self._documents = Documents(places)

    def read(self, stats: pl.Series, stats_parsed: pl.Series | None) -> pl.Series:
        """One struct a file, null where it has no statistics: `numRecords`, `tightBounds`, `minValues`, `maxValues` and
        `nullCount`, bounds in the types of the columns. Where both forms have a value, the document's."""
        structs = ParsedStatistics(stats_parsed)
        columns = self._documents.decode(stats)
        tree: Tree = {
            _RECORDS: first_known(columns[_RECORDS,], structs.find((_RECORDS,), pl.Int64())),
            _TIGHT: first_known(columns[_TIGHT,], structs.find((_TIGHT,), pl.Boolean())),
        }
        for side in _BOUNDS:
            for physical, field in self._fields:
                if physical in self._bounded_leaves:
                    put_below(tree, (side, *physical), self._bound(columns, structs, (side, *physical), field))
        for physical, _ in self._fields:
            counts = [structs.find((name, *physical), pl.Int64()) for name in _COUNTS]
            put_below(tree, (_COUNTS[0], *physical), first_known(columns[_COUNTS[0], *physical], *counts))
        absent = stats.is_null() if stats_parsed is None else stats.is_null() & stats_parsed.is_null()
        return _struct(tree, "stats_parsed").set(absent, None)

    def _bound(self, columns: Columns, structs: ParsedStatistics, place: Path, field: Field) -> pl.Series:
        bounds = typed_bounds(columns[place], field.type)
        side: Side = "min" if place[0] == _BOUNDS[0] else "max"
        if isinstance(field.type, DecimalType):  # documents that passed through doubles: what they round is widened
            bounds, _ = loosen(bounds, columns[place], side)
        bounds = first_known(bounds, structs.find(place, polars_type(field.type)))
        return widen_floats(bounds, side) if was_float(field) else bounds


def parsed_partitions(values: pl.Series, fields: Sequence[Field]) -> pl.Series:
    """`partitionValues_parsed`: typed values under physical names; null for a text that is none of the type."""
    maps = values.to_frame("values")
    columns = {}
    for field in fields:
        name = field.stored_name
        columns[name] = parse_values(maps.select(pl.col("values").map.get(name)).to_series().alias("text"), field.type)
    return pl.DataFrame(columns).to_struct("partitionValues_parsed")


def documents_of(stats: pl.Series, structs: pl.Series | None) -> pl.Series:
    """Documents, made of the structs where an earlier checkpoint has them alone: what is null is left out."""
    if structs is None:
        return stats
    rows = (stats.is_null() & structs.is_not_null()).arg_true()
    values = _within_calendar(structs.gather(rows)).to_list()
    documents = pl.Series("stats", [_document(row) for row in values], dtype=pl.String)
    return stats.scatter(rows, documents) if rows.len() else stats


def _within_calendar(values: pl.Series) -> pl.Series:
    """`within_calendar` at every depth of structs. Spark records what its types hold, years beyond 9999 too."""
    if not isinstance(values.dtype, pl.Struct):
        return within_calendar(values)
    fields = [_within_calendar(field) for field in values.struct.unnest().get_columns()]
    return pl.DataFrame(fields).to_struct(values.name).set(values.is_null(), None)


_ENCODER = msgspec.json.Encoder(decimal_format="number")


def _document(row: dict[str, Any] | None) -> str | None:
    if row is None:
        return None
    if _COUNTS[1] in row:
        row = {_COUNTS[0]: row[_COUNTS[1]], **{k: v for k, v in row.items() if k != _COUNTS[1]}}
    return _ENCODER.encode(_plain(row)).decode()


def _plain(value: Any) -> Any:
    match value:
        case {"metadata": bytes()}:  # of a variant, whose bounds documents hold as Z85: left out, which is allowed
            return None
        case dict():
            inner = {name: _plain(v) for name, v in value.items()}
            return {name: v for name, v in inner.items() if v is not None and v != {}}
        case float() if not math.isfinite(value):  # JSON has no word for it
            return None
        case bytes():
            return None
    return json_time(value)


def _struct(tree: Tree, name: str) -> pl.Series:
    columns = {key: _struct(inner, key) if isinstance(inner, dict) else inner for key, inner in tree.items()}
    return pl.DataFrame(columns).to_struct(name)


def live_adds(state: Replay) -> Iterator[dict[str, Any]]:
    """The live files of a version: FILE_ACTIONS with LIVE_COLUMNS, a row each, as `with_documents`."""
    return with_documents(state.adds(LIVE_COLUMNS), state).iter_rows(named=True)


def with_documents(adds: pl.DataFrame, state: Replay) -> pl.DataFrame:
    """FILE_ACTIONS of live files with `stats`, which are made of `stats_parsed` where a checkpoint has that alone: a
    file that is added again keeps its statistics."""
    structs = state.adds(["stats_parsed"]) if adds["stats"].has_nulls() else adds
    if "stats_parsed" not in structs.columns:
        return adds
    structs = structs.select(*IDENTITY, "stats_parsed")
    stats_parsed = adds.join(structs, on=IDENTITY, how="left", nulls_equal=True, maintain_order="left")["stats_parsed"]
    return adds.with_columns(documents_of(adds["stats"], stats_parsed).alias("stats"))
