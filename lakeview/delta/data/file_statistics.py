"""Rows of one file to the JSON text of its statistics (delta protocol, Per-file Statistics)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa

from lakeview.delta.data.partition_values import calendar

Path = tuple[str, ...]

STRING_PREFIX = 32
_BOUNDED = (pl.String, pl.Date, pl.Datetime, pl.Decimal)
_ENCODER = msgspec.json.Encoder(decimal_format="number")


def file_statistics(rows: pa.Table, indexed: Collection[Path] | None = None, *, prefix: int = STRING_PREFIX) -> str:
    """numRecords, and minValues, maxValues and nullCount of these leaves, all without `indexed`.

    Leaves go by their names in the rows, which are those of data files and statistics. Strings are cut to `prefix`
    characters, a maximum upwards; timestamps to milliseconds, a maximum upwards; NaN is left out.
    """
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    leaves = [leaf for leaf in _leaves(frame.get_columns(), ()) if indexed is None or leaf[0] in indexed]
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for path, series in leaves:
        _put(nulls, path, series.null_count())
        if series.dtype.is_numeric() or isinstance(series.dtype, _BOUNDED):
            minimum, maximum = _bounds(series, prefix)
            if minimum is not None:
                _put(low, path, minimum)
            if maximum is not None:
                _put(high, path, maximum)
    found = {"numRecords": rows.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}
    return _ENCODER.encode(found).decode()


def _leaves(columns: list[pl.Series], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], pl.Series]]:
    for series in columns:
        path = (*above, series.name)
        if isinstance(series.dtype, pl.Struct):
            # a null struct makes its leaves null
            inner = series.struct.unnest()
            valid = series.is_not_null()
            yield from _leaves([c.set(~valid, None) if series.null_count() else c for c in inner.get_columns()], path)
        else:
            yield path, series


def _put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for part in path[:-1]:
        tree = tree.setdefault(part, {})
    tree[path[-1]] = value


def _bounds(series: pl.Series, prefix: int) -> tuple[Any, Any]:
    if series.dtype.is_float():
        series = series.fill_nan(None)
        infinite = series.is_infinite().any()
        return (None, None) if infinite else (series.min(), series.max())  # JSON has no word for infinity
    if not in_calendar(series):
        return None, None
    return _lower(series.min(), prefix), _upper(series.max(), prefix)


def in_calendar(series: pl.Series) -> bool:
    """Whether dates and times lie in the years 1 to 9999: others have no text that every reader understands."""
    return bool(calendar(series).all())


def _lower(value: Any, prefix: int) -> Any:
    match value:
        case str():
            return value[:prefix]
        case datetime():
            return timestamp_text(value)
        case date():
            return value.isoformat()
    return value


def _upper(value: Any, prefix: int) -> Any:
    match value:
        case str():
            return value if len(value) <= prefix else _above(value, prefix)
        case datetime():
            return timestamp_text(value)
        case date():
            return value.isoformat()
    return value


def _above(text: str, length: int) -> str | None:
    """A text of so many characters and one that is above every text with this prefix; None where there is none."""
    # the highest code point is above whatever follows, unless the text goes on with it
    return None if text[length] == "\U0010ffff" else text[:length] + "\U0010ffff"


def timestamp_text(value: datetime) -> str:
    """Milliseconds, cut: readers know that a maximum may lie up to one millisecond above."""
    utc = value if value.tzinfo is None else value.astimezone(UTC)
    text = f"{utc.year:04d}{utc.strftime('-%m-%dT%H:%M:%S')}.{utc.microsecond // 1000:03d}"
    return text if value.tzinfo is None else text + "Z"
