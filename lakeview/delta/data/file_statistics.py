"""Rows of one file to the JSON text of its statistics (delta protocol, Per-file Statistics)."""

import math
from collections.abc import Collection
from datetime import UTC, date, datetime
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa

from lakeview.delta.data.partition_values import calendar
from lakeview.rows.arrays import struct_leaves

Path = tuple[str, ...]

STRING_PREFIX = 32
_BOUNDED = (pl.String, pl.Date, pl.Datetime, pl.Decimal)
_ENCODER = msgspec.json.Encoder(decimal_format="number")


class FileStatistics:
    """Statistics of a file whose rows come in parts.

    `indexed`: the leaves that get bounds and null counts, by their names in the rows, all without it. Strings are cut
    to `prefix` characters, a maximum upwards; timestamps to milliseconds, a maximum upwards; NaN is left out.
    """

    def __init__(self, indexed_leaves: Collection[Path] | None = None, *, prefix: int = STRING_PREFIX) -> None:
        self._indexed_leaves = indexed_leaves
        self._prefix = prefix
        self._nulls: dict[Path, int] = {}
        self._bounds: dict[Path, tuple[Any, Any] | None] = {}
        self.records = 0

    def add(self, rows: pa.Table, counted_later: Collection[str] = ()) -> None:
        """Count a part of the rows; of the columns `counted_later` the caller adds nulls and bounds."""
        self.records += rows.num_rows
        for name in rows.schema.names:
            if name in counted_later:
                self._count((name,), 0, _NOTHING)  # columns are recorded in their order
                continue
            for path, series in struct_leaves([pl.Series(name, rows[name])]):
                if self._is_indexed(path):
                    self.add_leaf(path, series.null_count(), series)

    def add_column(self, name: str, nulls: int, bounds: tuple[Any, Any]) -> None:
        """Count a part of a column: its nulls, and the least and the greatest of its other values."""
        self._count((name,), nulls, bounds)

    def add_leaf(self, path: Path, nulls: int, values: pl.Series) -> None:
        """Count a part of a leaf: its nulls, and some of its other values, among them the least and the greatest."""
        has_bounds = values.dtype.is_numeric() or isinstance(values.dtype, _BOUNDED)
        self._count(path, nulls, _bounds(values) if has_bounds else _NOTHING)

    def _is_indexed(self, path: Path) -> bool:
        return self._indexed_leaves is None or path in self._indexed_leaves

    def _count(self, path: Path, nulls: int, bounds: tuple[Any, Any] | None) -> None:
        if self._is_indexed(path):
            self._nulls[path] = self._nulls.get(path, 0) + nulls
            self._bounds[path] = _wider(self._bounds.get(path, _NOTHING), bounds)

    def text(self) -> str:
        """numRecords, and minValues, maxValues and nullCount of the leaves, as JSON."""
        low: dict[str, Any] = {}
        high: dict[str, Any] = {}
        nulls: dict[str, Any] = {}
        for path, count in self._nulls.items():
            put_below(nulls, path, count)
            minimum, maximum = self._bounds.get(path) or _NOTHING
            if isinstance(minimum, str):
                minimum, maximum = minimum[: self._prefix], _above(maximum, self._prefix)
            for bounds, bound in ((low, minimum), (high, maximum)):
                if bound is not None:
                    put_below(bounds, path, json_time(bound))
        document = {"numRecords": self.records, "minValues": low, "maxValues": high, "nullCount": nulls}
        return _ENCODER.encode(document).decode()


_NOTHING: tuple[Any, Any] = (None, None)


def _wider(one: tuple[Any, Any] | None, other: tuple[Any, Any] | None) -> tuple[Any, Any] | None:
    """Bounds of both; None where one has values that no bounds can tell."""
    if one is None or other is None:
        return None
    lows, highs = ([v for v in pair if v is not None] for pair in zip(one, other, strict=True))
    return min(lows, default=None), max(highs, default=None)


def put_below(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Puts a value into nested dictionaries, which are made where they lack."""
    for part in path[:-1]:
        tree = tree.setdefault(part, {})
    tree[path[-1]] = value


def _bounds(series: pl.Series) -> tuple[Any, Any] | None:
    """The least and the greatest value, None each where all are null; None for values that no bounds can tell."""
    if series.dtype.is_float():
        bounds: tuple[Any, Any] = series.min(), series.max()  # of numbers, where there are any beside NaN
        if None in bounds or any(math.isnan(bound) for bound in bounds):
            return _NOTHING
        return None if any(math.isinf(bound) for bound in bounds) else bounds  # JSON has no word for infinity
    if series.dtype.is_temporal() and not in_calendar(series):
        return None
    return series.min(), series.max()


def in_calendar(series: pl.Series) -> bool:
    """Whether dates and times lie in the years 1 to 9999: others have no text that every reader understands."""
    return bool(calendar(series).all())


def json_time(value: Any) -> Any:
    """A date or a time as statistics record it; any other value as it is."""
    match value:
        case datetime():
            return timestamp_text(value)
        case date():
            return value.isoformat()
    return value


def _above(text: str, length: int) -> str | None:
    """A text of so many characters at most that is not below another one; None where there is none."""
    if len(text) <= length:
        return text
    # the highest code point is above whatever follows, unless the text goes on with it
    return None if text[length] == "\U0010ffff" else text[:length] + "\U0010ffff"


def timestamp_text(value: datetime) -> str:
    """Milliseconds, cut: readers know that a maximum may lie up to one millisecond above."""
    utc = value if value.tzinfo is None else value.astimezone(UTC)
    text = f"{utc.year:04d}{utc.strftime('-%m-%dT%H:%M:%S')}.{utc.microsecond // 1000:03d}"
    return text if value.tzinfo is None else text + "Z"
