"""Commits to the lines of `lakeview history`, and to fewer columns where a terminal is narrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeview.cli.text import full_width

if TYPE_CHECKING:
    import polars as pl

_HEADS = {
    "version": "version", "timestamp": "timestamp", "operation": "operation", "files_added": "+files",
    "files_removed": "-files", "records_added": "+rows", "records_removed": "-rows", "user": "user", "engine": "engine",
}  # fmt: skip
"""Columns of COMMITS that fit a line, and their heads."""


def with_heads(commits: pl.DataFrame) -> pl.DataFrame:
    """The columns of COMMITS that are printed, under their heads."""
    import polars as pl

    return commits.select(pl.col(column).alias(head) for column, head in _HEADS.items())


def fit_columns(commits: pl.DataFrame, limit: int | None) -> tuple[pl.DataFrame, dict[str, str]]:
    """Commits that fit `limit` columns without a cut text where possible, and the user or engine that all have.

    While they are too wide, they lose in turn the ids of versions that have names and the versions of engines, the user
    or engine that all have, then what came and went stands in one column."""
    import polars as pl

    of_all: dict[str, str] = {}

    def is_too_wide() -> bool:
        return limit is not None and full_width(commits) > limit

    if is_too_wide():
        commits = commits.drop("id", strict=False).with_columns(pl.col("engine").str.extract(r"^([^\s/]+)"))
    for who in ("user", "engine") if is_too_wide() and commits.height > 1 else ():
        if commits[who].n_unique() == 1 and (value := commits[who][0]) is not None:
            of_all[who] = value
            commits = commits.drop(who)
    for what in ("files", "rows") if is_too_wide() else ():
        gain, loss = f"+{what}", f"-{what}"
        texts = [_gain_and_loss(*row) for row in commits.select(gain, loss).iter_rows()]
        both = commits.with_columns(pl.Series(gain, texts, dtype=pl.String)).drop(loss).rename({gain: what})
        commits = both if full_width(both) < full_width(commits) else commits
    return commits, of_all


def _gain_and_loss(gain: int | None, loss: int | None) -> str:
    """What came and what went without a blank, `±8` where both are 8; "?" for one that is unknown, "" for both."""
    from lakeview.views.units import MINUS, gain_and_loss

    if gain is None and loss is None:
        return ""
    if gain is None or loss is None:
        parts = (("+", gain), (MINUS, loss))
        return "".join(f"{sign}{'?' if count is None else f'{count:,}'}" for sign, count in parts if count != 0)
    return f"±{gain:,}" if gain == loss != 0 else (gain_and_loss(gain, loss) or "").replace(" ", "")
