"""Counts and bounds as documents and parsed structs record them, in the types of their columns.

Bounds of decimals to bounds that hold: some writers take them through a double, which rounds them.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import polars as pl
import pyarrow as pa

from lakeview.delta.data.document_values import Kind, Place, join_columns
from lakeview.delta.data.partition_values import instants, within_calendar
from lakeview.delta.data.type_widening import type_changes
from lakeview.model.data_types import DataType, DecimalType, Field, PrimitiveType
from lakeview.model.schema import polars_type

Side: TypeAlias = Literal["min", "max"]
_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("long", "integer", "short", "byte"), Kind.INTEGER),
    **dict.fromkeys(("float", "double"), Kind.FLOAT),
    **dict.fromkeys(("string", "date", "timestamp", "timestamp_ntz"), Kind.TEXT),
    "boolean": Kind.BOOLEAN,
}
"""Types whose bounds can be compared."""


def bound_kind(type_: DataType) -> Kind | None:
    """What a bound of this type is in JSON; None for a type that has none, or none that can be compared."""
    if isinstance(type_, DecimalType):
        return Kind.NUMBER
    return _KINDS.get(type_.name) if isinstance(type_, PrimitiveType) else None


def first_known(first: pl.Series, *others: pl.Series | None) -> pl.Series:
    """The first value of each row that is not null; None is a series that is not there."""
    for other in others:
        if other is not None and first.null_count():
            first = pl.select(pl.coalesce(first, other)).to_series()
    return first


def typed_bounds(raw: pl.Series, type_: DataType) -> pl.Series:
    """Bounds as JSON gives them, in the column's type; null where one does not fit."""
    match type_:
        case PrimitiveType("string" | "boolean"):
            return raw
        case PrimitiveType("date"):
            # ten characters are a date of these years alone: of 12000-01-15 and -0044-03-15 they are another day
            return within_calendar(raw.str.head(10).str.to_date("%Y-%m-%d", strict=False))
        case PrimitiveType("timestamp"):
            return _instants(raw)
        case PrimitiveType("timestamp_ntz"):
            return _instants(raw).dt.replace_time_zone(None)
        case PrimitiveType("float"):
            return raw.cast(pl.Float32).set(raw.is_finite() & raw.cast(pl.Float32).is_infinite(), None)
    return raw.cast(polars_type(type_), strict=False)


def _instants(raw: pl.Series) -> pl.Series:
    """As `instants`, twenty times as fast for what most writers write: all with a zone, or all without."""
    for zone in ("UTC", None):
        try:
            column = pl.Series(raw.to_arrow().cast(pa.timestamp("us", zone)))
        except pa.ArrowInvalid:
            continue
        return column if zone else column.dt.replace_time_zone("UTC")
    return instants(raw)


class ParsedStatistics:
    """The `stats_parsed` struct of a checkpoint, if there is one. Names are addressed exactly: no patterns."""

    def __init__(self, struct: pl.Series | None) -> None:
        self._struct = struct if struct is not None and isinstance(struct.dtype, pl.Struct) else None
        # a struct of thousands of columns is taken apart once, not once for each of them
        self._parts: dict[Place, dict[str, pl.Series]] = {}

    def fill(self, columns: pl.Series, places: Sequence[Place]) -> pl.Series:
        """The columns of these places, one after the other, where they are null by what is in the struct."""
        if not columns.null_count() or self._struct is None:
            return columns
        structs = [self.find(place, columns.dtype) for place in places]
        unknown = pl.Series([None], dtype=columns.dtype).new_from_index(0, self._struct.len())
        values = join_columns([unknown if column is None else column for column in structs])
        return values if columns.null_count() == columns.len() else first_known(columns, values)

    def find(self, path: Place, dtype: pl.DataType) -> pl.Series | None:
        """The leaf at a path, cast; None if it is not there."""
        series = self._struct
        for i, part in enumerate(path):
            if path[:i] not in self._parts:  # asking a wide struct for its type alone takes milliseconds
                if series is None or not isinstance(series.dtype, pl.Struct):
                    return None
                fields = series.struct.unnest().get_columns()
                self._parts[path[:i]] = dict(zip(series.struct.fields, fields, strict=True))
            series = self._parts[path[:i]].get(part)
        if series is None or series.dtype.is_nested():
            return None
        series = series.alias("value")  # one called ^x$ would be a pattern to polars
        if isinstance(dtype, pl.Datetime) and isinstance(series.dtype, pl.Datetime):
            naive = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if series.dtype.time_zone else series
            return naive.cast(pl.Datetime("us")).dt.replace_time_zone(dtype.time_zone)
        try:
            return series.cast(dtype, strict=False)
        except pl.exceptions.InvalidOperationError:  # a type from which there is no way: the value is unknown
            return None


_SAFE = 1e15
"""Units of the last digit up to which a double holds every decimal apart from its neighbours."""

_PAST_LONG = 2.0**63

_DOUBLE_DIGITS = 17
"""Digits that the text of a double has at most: one with more was written as a decimal, and is exact."""


_DOUBLE = PrimitiveType("double")


def was_float(field: Field) -> bool:
    """Whether bounds of older files may be those of 32-bit floats: 0.1 there is a little more than 0.1 as a double."""
    # a change to any other type is one that no reader takes; the log doctor looks at such tables all the same
    return field.type == _DOUBLE and any(change.get("fromType") == "float" for change in type_changes(field))


def widen_floats(bounds: pl.Series, side: Side) -> pl.Series:
    """Bounds of doubles, moved outwards to what they are as 32-bit floats."""
    floats = bounds.cast(pl.Float32).cast(pl.Float64)
    outer = pl.min_horizontal(bounds, floats) if side == "min" else pl.max_horizontal(bounds, floats)
    return pl.select(outer).to_series().alias(bounds.name)


def loosen(bound: pl.Series, text: pl.Series, side: Side) -> tuple[pl.Series, pl.Series]:
    """The bound, moved outwards where it may have been rounded, and whether it may.

    `bound` is a decimal column; `text` the same numbers in plain notation as recorded, null where only a struct has it.
    A bound that would leave its type is unknown. delta-rs is such a writer: -9697181171602.6959 is -9697181171602.695
    in its statistics, above the value it should bound; and whole numbers beyond 64 bits are the last that has 64.
    """
    assert isinstance(bound.dtype, pl.Decimal)
    unit = 10.0**-bound.dtype.scale
    size = bound.cast(pl.Float64).abs()
    is_rounded = (size >= _SAFE * unit).fill_null(value=False)
    if not is_rounded.any():
        return bound, is_rounded
    is_rounded = is_rounded & ~_written_whole(text)
    cut_off = (size == _PAST_LONG) if bound.dtype.scale == 0 else pl.repeat(False, bound.len(), eager=True)
    is_rounded = (is_rounded | cut_off).fill_null(value=False)
    # the value to a double and the double to its text are half a step each; a division on the way may cost another
    slack = (size * 2.0**-51 + 3 * unit).cast(pl.Decimal(38, bound.dtype.scale), strict=False)
    fits = size * (1 + 2.0**-49) + 8 * unit < 10.0 ** (bound.dtype.precision - bound.dtype.scale)
    inside = bound.set(~fits | cut_off, None)  # an overflow would be an error for the whole column
    loose = (inside - slack if side == "min" else inside + slack).cast(bound.dtype, strict=False)
    return bound.zip_with(~is_rounded, loose), is_rounded


def _written_whole(text: pl.Series) -> pl.Series:
    """Whether a number has more digits than a double's text; zeros around it count only behind a decimal point."""
    digits = text.str.replace(r"^-?[0.]*", "")
    digits = digits.str.strip_chars_end("0").zip_with(
        ~text.str.contains(".", literal=True).fill_null(value=False), digits
    )
    return (digits.str.count_matches(r"\d") > _DOUBLE_DIGITS).fill_null(value=False)
