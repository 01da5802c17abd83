"""Counts to their sums: unknown where a part is, and never around the corner of 64 bits. Shares that are bounds to
figures that are still bounds as they are shown. A version's files to its rows, or the tightest bound of them."""

import polars as pl

from lakeview.model.column_values import least_records
from lakeview.model.snapshot import Snapshot
from lakeview.views.units import format_count

_STEPS, _FINE_STEPS = 1_000, 100_000
"""Shares are shown to a tenth of a percent, those nearer to none or all to a thousandth."""


def shown_bounds(share: str = "null_share") -> pl.Expr:
    """A column of shares whose bounds are rounded away from what they bound: of 83.85 % at least 83.8 % are, not 83.9.

    Column `mark` says "≥" of a lower bound and "≤" of an upper one. Other shares stay as they are.
    """
    value = pl.col(share)

    def away(steps: int) -> pl.Expr:
        in_steps = (value * steps).round(6)  # 0.003 is no more than three thousandths
        is_lower = pl.col("mark") == "\N{GREATER-THAN OR EQUAL TO}"
        return pl.when(is_lower).then(in_steps.floor()).otherwise(in_steps.ceil()) / steps

    is_bound = pl.col("mark").is_in(["\N{GREATER-THAN OR EQUAL TO}", "\N{LESS-THAN OR EQUAL TO}"])
    is_coarse = away(_STEPS).is_in([0.0, 1.0])
    return (
        pl.when(is_bound & is_coarse)
        .then(away(_FINE_STEPS))
        .when(is_bound)
        .then(away(_STEPS))
        .otherwise(value)
        .alias(share)
    )


def total(column: str) -> pl.Expr:
    """The sum of a column of integers, under its name: null where one of them is, or where 64 bits do not hold it."""
    part = pl.col(column)
    return pl.when(part.is_not_null().all()).then(at_least(column)).alias(column)


def at_least(column: str) -> pl.Expr:
    """The sum of what is known of a column of integers that are not below zero; null where 64 bits do not hold it."""
    return pl.col(column).cast(pl.Int128).sum().cast(pl.Int64, strict=False)


FLOWS = pl.Schema(
    {f"{what}_{way}": pl.Int64() for what in ("files", "bytes", "records") for way in ("added", "removed")}
)
"""What commits added and removed; `bytes` and `records` null where one of the files does not tell its own."""


def flows(files: pl.DataFrame, by: pl.Expr | str, way: str, records: str = "records") -> pl.DataFrame:
    """`files`, `bytes` and `records`, each with the suffix `_way`, of FILES or LIFETIMES grouped by an expression."""
    return files.group_by(by).agg(
        pl.len().cast(pl.Int64).alias(f"files_{way}"),
        total("size").alias(f"bytes_{way}"),
        total(records).alias(f"records_{way}"),
    )


def zero_where(none: pl.Expr, *columns: str) -> list[pl.Expr]:
    """These columns with 0 where there is nothing to count; null still where a file's count is unknown."""
    return [pl.when(none).then(0).otherwise(name).alias(name) for name in columns]


def zero_without_files() -> list[pl.Expr]:
    """`bytes` and `records` of `flows`, added and removed, joined: 0 where no file is there."""
    return [
        column
        for way in ("added", "removed")
        for column in zero_where(pl.col(f"files_{way}").is_null(), f"bytes_{way}", f"records_{way}")
    ]


def with_least(rows: pl.DataFrame, least: str) -> pl.DataFrame:
    """Rows with the bound `least`, a column that is dropped, where `records` are unknown, and `mark`: "≥" there, else
    ""."""
    is_bound = pl.col("records").is_null() & pl.col(least).is_not_null()
    mark = pl.when(is_bound).then(pl.lit("\N{GREATER-THAN OR EQUAL TO}")).otherwise(pl.lit(""))
    return rows.with_columns(mark=mark, records=pl.coalesce("records", least)).drop(least)


def total_of(values: pl.Series) -> int | None:
    """As `total`, of one series."""
    figure = values.to_frame("values").select(total("values")).item()
    return None if figure is None else int(figure)


def rows_text(snapshot: Snapshot, *, exact: bool = False) -> str:
    """The live rows of a version: `61.5 M` (`61,480,112` with `exact`), `≥ 308,641` where that is all that the log
    tells, or unknown."""
    rows = snapshot.num_records
    least = least_records(snapshot.files, snapshot.delete_files) if rows is None else None
    return format_count(rows, exact=exact, least=least)
