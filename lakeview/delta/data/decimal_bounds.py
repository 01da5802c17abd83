"""Bounds of decimals to bounds that hold: some writers take them through a double, which rounds them."""

from typing import Literal

import polars as pl

_SAFE = 1e15
"""Units of the last digit up to which a double holds every decimal apart from its neighbours."""

_PAST_LONG = 2.0**63

_DOUBLE_DIGITS = 17
"""Digits that the text of a double has at most: one with more was written as a decimal, and is exact."""


def loosen(bound: pl.Series, text: pl.Series, side: Literal["min", "max"]) -> tuple[pl.Series, pl.Series]:
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
