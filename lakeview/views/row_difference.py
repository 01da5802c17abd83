"""Rows of changes to the difference of two versions: what is in one and not in the other, copies cancelled."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from lakeview.frames import CHANGES

NET = "_difference"
MOST_ROWS = 1_000

_SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


@dataclass(frozen=True, slots=True)
class RowDifference:
    """`gained` and `lost` rows of a version against its base, exact; `read` rows looked at.

    `rows`: at most MOST_ROWS of them, with `_difference`: how often more (or less) the version has each.
    """

    gained: int
    lost: int
    read: int
    rows: pl.DataFrame


def row_difference(changes: pl.LazyFrame, limit: int = MOST_ROWS) -> RowDifference:
    """What CHANGES add up to, or what `table.difference` gives. A row that a rewrite copied is no difference.

    Reads all of `changes`: the caller knows the price (`difference_plan`, `changes_plan`).
    """
    names = [name for name in changes.collect_schema().names() if name not in CHANGES]
    sign = pl.col("_change_type").replace_strict(_SIGNS, default=0, return_dtype=pl.Int64)
    keys = _keys(changes, names)
    marks = key_names(len(keys))
    signed = changes.with_columns(sign.alias(NET), *(key.alias(mark) for key, mark in zip(keys, marks, strict=True)))
    grouped = signed.group_by(marks, maintain_order=True).agg(
        *(pl.nth(i).first() for i in range(len(names))), pl.col(NET).sum(), pl.len().alias("_read")
    )
    found = grouped.collect()
    net = found[NET]
    rows = found.filter(net != 0).head(limit)
    gained = int(net.filter(net > 0).sum())
    return RowDifference(gained, -int(net.filter(net < 0).sum()), int(found["_read"].sum()), rows.select(NET, *names))


def key_names(count: int) -> list[str]:
    """Names of the columns that rows are told apart by."""
    return [f"_key_{i}" for i in range(count)]


def _keys(changes: pl.LazyFrame, names: list[str]) -> list[pl.Expr]:
    """The columns as rows are told apart by them: nested values by their JSON text, which has no order of its own."""
    schema = changes.collect_schema()
    return [
        pl.nth(i).cast(pl.String) if isinstance(schema[name], pl.Map) else pl.nth(i) for i, name in enumerate(names)
    ]
