"""FILE_VERDICTS and PARTS of a filter to what the pruning page lists: files by verdict, unsupported conditions."""

from __future__ import annotations

import polars as pl

from lakeview.views.pruning.plan import can_be_judged, explained


def files_by_reason(verdicts: pl.DataFrame) -> dict[str, int]:
    """The number of files of FILE_VERDICTS for each reason, 0 included."""
    return dict(explained(verdicts).select("reason", "files").iter_rows())


def files_with_verdict(verdicts: pl.DataFrame, verdict: str) -> pl.DataFrame:
    """The files of FILE_VERDICTS that are `read` or `skipped`, or `all`, by path."""
    condition = {"read": pl.col("kept"), "skipped": ~pl.col("kept")}.get(verdict, pl.lit(value=True))
    return verdicts.filter(condition).sort("path")


def unsupported_condition(parts: pl.DataFrame, where: pl.Expr, text: str) -> str | None:
    """The first condition of PARTS that data skipping does not support, the filter's own `text` where it is only one
    condition and unsupported; None if all are supported."""
    if parts.is_empty():
        return None if can_be_judged(where) else text
    return next(iter(parts.filter(~pl.col("judged"))["part"]), None)
