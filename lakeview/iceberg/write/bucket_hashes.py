"""Columns of numbers to their buckets, all values at once (iceberg spec, Appendix B)."""

from __future__ import annotations

import polars as pl

_MASK = 0xFFFF_FFFF


def number_buckets(values: pl.Series, count: int) -> pl.Series:
    """The buckets of whole numbers, as `Transform.apply` gives them; null stays null."""
    bits = values.cast(pl.Int64).cast(pl.UInt64, wrap_numerical=True)
    state = pl.Series(values.name, [0], dtype=pl.UInt64).new_from_index(0, values.len())
    for block in (bits & _MASK, bits // (1 << 32)):
        mixed = _turned(block * 0xCC9E_2D51 & _MASK, 15) * 0x1B87_3593 & _MASK
        state = (_turned(state ^ mixed, 13) * 5 + 0xE654_6B64) & _MASK
    state = state ^ 8  # the length of what is hashed
    for shift, factor in ((16, 0x85EB_CA6B), (13, 0xC2B2_AE35)):
        state = (state ^ state // (1 << shift)) * factor & _MASK
    state = state ^ state // (1 << 16)
    return ((state & 0x7FFF_FFFF) % count).cast(pl.Int32)


def _turned(numbers: pl.Series, places: int) -> pl.Series:
    """Numbers of 32 bits, turned to the left."""
    return (numbers * (1 << places) & _MASK) | numbers // (1 << (32 - places))
