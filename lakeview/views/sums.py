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


def flows(files: pl.DataFrame, by: pl.Expr | str, way: str, records: str = "records") -> pl.DataFrame:
    """`files`, `bytes` and `records`, each with the suffix `_way`, of FILES or LIFETIMES grouped by an expression."""
    return files.group_by(by).agg(
        pl.len().cast(pl.Int64).alias(f"files_{way}"),
        total("size").alias(f"bytes_{way}"),
        total(records).alias(f"records_{way}"),
    )


def zero_without_files(way: str) -> list[pl.Expr]:
    """`bytes` and `records` of `flows`, joined: 0 where no file is there; null still where a file's are unknown."""
    none = pl.col(f"files_{way}").is_null()
    return [pl.when(none).then(0).otherwise(name).alias(name) for name in (f"bytes_{way}", f"records_{way}")]


def total_of(values: pl.Series) -> int | None:
    """As `total`, of one series."""
    found = values.to_frame("values").select(total("values")).item()
    return None if found is None else int(found)
