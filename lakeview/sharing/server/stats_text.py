"""Statistics that the log holds as values to the JSON text that the protocol gives them as."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import polars as pl

from lakeview.model.schema import Schema, leaf_name

_ENCODER = msgspec.json.Encoder(decimal_format="number")


def stats_texts(statistics: pl.DataFrame, schema: Schema, records: pl.Series) -> list[str | None]:
    """A statistics document for each file, keys by logical names; null where nothing is known of it."""
    documents: list[dict[str, Any]] = [{} if n is None else {"numRecords": n} for n in records]
    for path, _ in schema.leaves():
        name = leaf_name(path)
        if name not in statistics.columns:
            continue
        column = statistics[name].struct
        for part, key in (("min", "minValues"), ("max", "maxValues"), ("null_count", "nullCount")):
            _put(documents, key, path, column.field(part).to_list())
    return [_ENCODER.encode(d).decode() if d else None for d in documents]


def _put(documents: Sequence[dict[str, Any]], key: str, path: tuple[str, ...], values: Sequence[Any]) -> None:
    for document, value in zip(documents, values, strict=True):
        plain = _plain(value)
        if plain is None:
            continue
        place = document.setdefault(key, {})
        for part in path[:-1]:
            place = place.setdefault(part, {})
        place[path[-1]] = plain


def _plain(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return None
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case str() | int() | float() | Decimal() | date():
            return value
    return None
