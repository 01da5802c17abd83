"""Rows of one file to the metrics of its manifest entry: counts and bounds by field id (iceberg spec, Manifests); and
values to what manifests record: numbers for dates and times, and bytes for bounds (Appendix D)."""

import math
import re
import struct
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

from lakeview.iceberg.metadata.transforms import above_prefix, minimal_bytes, unscaled_integer
from lakeview.model.data_types import ArrayType, DataType, DecimalType, Field, MapType, PrimitiveType
from lakeview.model.errors import UnsupportedTableError
from lakeview.model.schema import Schema, leaf_name
from lakeview.rows.arrays import struct_leaves

_PREFIX = "write.metadata.metrics."
_TRUNCATE = re.compile(r"truncate\((\d{1,9})\)")
_NUMBER = re.compile(r"[0-9]{1,18}")
_DEFAULT = "truncate(16)"
_MODES = ("none", "counts", "full")
_INFERRED_COLUMNS = 100


class MetricColumn(NamedTuple):
    """A column with metrics. `bounds`: whether they are recorded besides its counts; `width`: what those of texts and
    bytes are cut to."""

    field: Field
    bounds: bool
    width: int | None = None


def metered_columns(schema: Schema, properties: Mapping[str, str]) -> dict[tuple[str, ...], MetricColumn]:
    """The leaves, by path, of which the table wants metrics (`write.metadata.metrics.*`); not those of lists and maps.

    UnsupportedTableError for a mode that is none.
    """
    leaves = [leaf for leaf in schema.leaves() if not isinstance(leaf[1].type, ArrayType | MapType)]
    default = properties.get(f"{_PREFIX}default")
    inferred_text = properties.get(f"{_PREFIX}max-inferred-column-defaults", "")
    num_inferred = int(inferred_text) if _NUMBER.fullmatch(inferred_text) else _INFERRED_COLUMNS
    columns = {}
    for position, (path, field) in enumerate(leaves):
        rest = _DEFAULT if position < num_inferred else "none"
        text = properties.get(f"{_PREFIX}column.{'.'.join(path)}", rest if default is None else default)
        mode = text.strip().lower()
        cut = _TRUNCATE.fullmatch(mode)
        if cut is None and mode not in _MODES:
            raise UnsupportedTableError(
                f"the table asks for metrics of {leaf_name(path)} in the mode {text!r}, which is none",
                fix="set none, counts, truncate(16) or full",
                place=f"{_PREFIX}column.{leaf_name(path)}",
                kind="unsupported-property",
            )
        if mode != "none":
            columns[path] = MetricColumn(field, mode != "counts", None if cut is None else int(cut[1]))
    return columns


class FileMetrics:
    """The metrics of a file whose rows come in parts. Everything by field id.

    NaN is counted and is no bound; zeros are bounds as -0.0 and 0.0, since readers order them.
    """

    def __init__(self, columns: Mapping[tuple[str, ...], MetricColumn]) -> None:
        self._columns = columns
        self._bounds: dict[int, tuple[Any, Any]] = {}
        self.records = 0
        self.value_counts: dict[int, int] = {}
        self.null_value_counts: dict[int, int] = {}
        self.nan_value_counts: dict[int, int] = {}

    def add(self, rows: pa.Table) -> None:
        """Count a part of the rows."""
        frame = pl.from_arrow(rows)
        assert isinstance(frame, pl.DataFrame)
        self.records += rows.num_rows
        for path, values in struct_leaves(frame.get_columns()):
            if (column := self._columns.get(path)) is not None:
                self._add(column, values.alias("values"))  # a name such as ^x$ would be a pattern to polars

    def lower_bounds(self) -> dict[int, bytes]:
        """A value not above any, of each column that has one."""
        return self._encode_bounds(0)

    def upper_bounds(self) -> dict[int, bytes]:
        """A value not below any, of each column that has one."""
        return self._encode_bounds(1)

    def _add(self, column: MetricColumn, values: pl.Series) -> None:
        field_id = column.field.id
        assert field_id is not None, "every column of an Iceberg table has an id"
        _count(self.value_counts, field_id, values.len())
        _count(self.null_value_counts, field_id, values.null_count())
        if values.dtype.is_float():
            _count(self.nan_value_counts, field_id, int(values.is_nan().sum()))
            values = values.fill_nan(None)
        if column.bounds and values.null_count() < values.len():
            plain = to_recorded_values(values)
            low, high = self._bounds.get(field_id, (None, None))
            least, most = plain.min(), plain.max()
            self._bounds[field_id] = (
                least if low is None else min(low, least),
                most if high is None else max(high, most),
            )

    def _encode_bounds(self, side: int) -> dict[int, bytes]:
        bounds = {}
        for field, _, width in self._columns.values():
            if field.id in self._bounds:
                value = self._bounds[field.id][side]
                cut = (lower_cut, upper_cut)[side](outer_zero(value, side), width)
                if (data := single_bytes(cut, field.type)) is not None:
                    bounds[field.id] = data
        return bounds


def _count(counts: dict[int, int], field_id: int, number: int) -> None:
    counts[field_id] = counts.get(field_id, 0) + number


_FORMATS = {
    "integer": "<i", "long": "<q", "float": "<f", "double": "<d", "date": "<i", "time": "<q", "timestamp": "<q",
    "timestamp_ntz": "<q", "timestamp_ns": "<q", "timestamptz_ns": "<q", "boolean": "<?",
}  # fmt: skip


def to_recorded_values(values: pl.Series) -> pl.Series:
    """Dates as days, times as microseconds, timestamps in their own unit, all since 1970 or midnight; others as they
    are."""
    match values.dtype:
        case pl.Time():
            return values.to_physical() // 1_000
        case pl.Date() | pl.Datetime():
            return values.to_physical()
    return values


def single_bytes(value: Any, type_: DataType) -> bytes | None:
    """A recorded value as a bound; None for one that has no order which all readers share: a uuid, NaN."""
    match value, type_:
        case (None, _) | (_, PrimitiveType("uuid")):
            return None
        case Decimal(), DecimalType():
            return minimal_bytes(unscaled_integer(value))
        case str(), _:
            return value.encode()
        case bytes(), _:
            return value
        case float(), _ if value != value:
            return None
        case _, PrimitiveType(name) if name in _FORMATS:
            return struct.pack(_FORMATS[name], value)
    return None


def outer_zero(value: Any, side: int) -> Any:
    """A bound, the lower one for 0 and the upper one for 1, where a zero is -0.0 or 0.0: readers order them."""
    return math.copysign(0.0, side - 0.5) if isinstance(value, float) and value == 0.0 else value


def lower_cut(value: Any, width: int | None) -> Any:
    """A text or bytes of at most so many code points or bytes, and not above the value."""
    return value if width is None or not isinstance(value, str | bytes) else value[:width]


def upper_cut(value: Any, width: int | None) -> Any:
    """A text or bytes of at most so many code points or bytes, and not below the value; None where there is none."""
    if width is None or not isinstance(value, str | bytes) or len(value) <= width:
        return value
    return above_prefix(value[:width])
