"""Counts to their sums: unknown where a part is, and never around the corner of 64 bits."""

from __future__ import annotations

import polars as pl


def total(column: str) -> pl.Expr:
    """The sum of a column of integers, under its name: null where one of them is, or where 64 bits do not hold it."""
    part = pl.col(column)
    return pl.when(part.is_not_null().all()).then(at_least(column)).alias(column)


def at_least(column: str) -> pl.Expr:
    """The sum of what is known of a column of integers that are not below zero; null where 64 bits do not hold it."""
    return pl.col(column).cast(pl.Int128).sum().cast(pl.Int64, strict=False)


def total_of(values: pl.Series) -> int | None:
    """As `total`, of one series."""
    found = values.to_frame("values").select(total("values")).item()
    return None if found is None else int(found)
