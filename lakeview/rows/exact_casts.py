"""Arrow arrays without parts to the types of a table's columns: every value exactly as it was, or a refusal."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import shorten
from lakeview.rows.casts import ValueMisfitError, integers_as_decimals, kind_of

_FRACTIONS = ("half", "float", "double")
_SOURCES: Mapping[str, tuple[str, ...]] = {
    **{kind: (kind,) for kind in ("boolean", "date", "timestamp", "time", "text", "bytes")},
    **dict.fromkeys(("integer", "float", "double"), ("integer", *_FRACTIONS)),
    "decimal": ("decimal", "integer"),
}
"""Kind of a column -> kinds of values that may be in it. Others, such as text for a number, are never converted."""
_WHOLE_NUMBERS = 2**53
"""Up to here a double holds every whole number."""

_MAX_SHOWN_CHARACTERS = 80


def exact(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    """The array as `target`; the same array where it has that type already.

    InvalidRequestError where the types do not fit each other; ValueMisfitError for the first value that the target
    does not hold exactly: a number out of range, with a fraction or rounded, a time finer than microseconds.
    """
    source = array.type
    if source == target:
        return array
    zones = (
        pa.types.is_timestamp(source) and pa.types.is_timestamp(target) and (source.tz is None) != (target.tz is None)
    )
    if zones or kind_of(source) not in _SOURCES.get(kind_of(target), ()):
        raise misfit_of_types(path, source, target)
    try:
        return _check_cast(array, target)
    except pa.ArrowNotImplementedError as error:
        raise misfit_of_types(path, source, target) from error
    except pa.ArrowInvalid as error:
        if kind_of(target) in ("text", "bytes") and not pa.types.is_fixed_size_binary(
            target
        ):  # the same values in any case: only their room is limited
            raise InvalidRequestError(
                f"column {path} holds more than the 2 GB of one batch",
                fix="give the rows in smaller batches",
                place=path,
                kind="type-mismatch",
            ) from error
        position = _first_misfit(array, target)
        raise ValueMisfitError(position, _value_text(array[position]), error) from error


def misfit_of_types(path: str, source: pa.DataType, target: pa.DataType) -> InvalidRequestError:
    """The refusal of a column whose values are of another kind than the table's."""
    zones = pa.types.is_timestamp(source) and pa.types.is_timestamp(target)
    zone = "say which zone its times are in" if pa.types.is_timestamp(target) and target.tz else "take its zone away"
    return InvalidRequestError(
        f"column {path} is {source} and does not fit {target}",
        fix=f"{zone} before writing: times are not shifted on the way" if zones else "cast the column before writing",
        place=path,
        kind="type-mismatch",
    )


def _check_cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The cast array; ArrowInvalid if it does not hold the same values."""
    source_type, source = array.type, kind_of(array.type)
    if kind_of(target) == "integer" and source in _FRACTIONS:
        # Arrow casts and compares; beyond the range of the target what a cast gives depends on the processor
        widest = array.cast(pa.float64())
        if not _all(pc.less_equal(pc.abs(widest), float(_WHOLE_NUMBERS))):
            raise pa.ArrowInvalid("beyond 2^53 a floating point number stands for a range of whole numbers")
    if kind_of(target) == "float" and source in ("double", "integer"):
        narrow = array.cast(pa.float64()).cast(target, safe=False)
        _same(array.cast(pa.float64()), narrow.cast(pa.float64()))
        return narrow
    if pa.types.is_decimal(target) and source == "integer":
        array = integers_as_decimals(array, target.scale)
    cast = array.cast(target)
    if pa.types.is_date64(source_type):
        _same(array, cast.cast(source_type))
    return cast


def _same(before: pa.Array, after: pa.Array) -> None:
    """ArrowInvalid unless both hold the same values; NaN is the same as NaN."""
    equal = pc.equal(before, after)
    if pa.types.is_floating(before.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(before), pc.is_nan(after)))
    if not _all(equal):
        raise pa.ArrowInvalid("the value would be rounded")


def _all(truths: pa.Array) -> bool:
    return pc.all(truths, min_count=0).as_py() is not False


def _first_misfit(array: pa.Array, target: pa.DataType) -> int:
    """The position of the first value that the target does not hold: by halves, so that it costs one cast in all."""
    start, end = 0, len(array)
    while end - start > 1:
        middle = (start + end) // 2
        try:
            _check_cast(array.slice(start, middle - start), target)
            start = middle
        except pa.ArrowInvalid:
            end = middle
    return start


def _value_text(value: pa.Scalar) -> str:
    try:
        text = str(value)
    except (OverflowError, ValueError):  # a time that Python has none for
        text = str(value.cast(pa.int64()))
    return shorten(text, _MAX_SHOWN_CHARACTERS)
