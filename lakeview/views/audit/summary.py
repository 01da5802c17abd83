"""AUDIT to its summaries: violations first, verdicts by law, engines to blame, and what cannot be known."""

from __future__ import annotations

import polars as pl

from lakeview.model.laws import LAWS, Verdict
from lakeview.views.units import count_text

LAW_COUNTS = pl.Schema(
    {
        "law": pl.String(),
        "title": pl.String(),
        "violated": pl.Int64(),
        "unknowable": pl.Int64(),
        "proven": pl.Int64(),
        "sentence": pl.String(),
        "rule": pl.String(),
    }
)
"""One row a law that applies to some commit: how many commits have each verdict, violated laws first."""

BLAME = pl.Schema(
    {
        "engine": pl.String(),
        "client_version": pl.String(),
        "commits": pl.Int64(),
        "violations": pl.Int64(),
        "laws": pl.String(),
        "first": pl.Int64(),
    }
)
"""One row an engine and version with violations, most first: its commits with some, the laws' titles, the first such
commit. Both are null for commits that name none."""

REASONS = pl.Schema({"law": pl.String(), "title": pl.String(), "reason": pl.String(), "commits": pl.Int64()})
"""One row a law and reason why it is unknowable, most commits first."""

_ORDER = {verdict.value: place for place, verdict in enumerate(Verdict)}
_TITLES = {law.id: law.title for law in LAWS.values()}
_PLACES = {law: place for place, law in enumerate(LAWS)}


def _title() -> pl.Expr:
    return pl.col("law").replace_strict(_TITLES, return_dtype=pl.String).alias("title")


def worst_first(audit: pl.DataFrame) -> pl.DataFrame:
    """AUDIT with `title` of the law: violated, then unknowable, then proven; newest commits first in each."""
    order = pl.col("verdict").replace_strict(_ORDER, return_dtype=pl.Int64)
    place = pl.col("law").replace_strict(_PLACES, return_dtype=pl.Int64)
    return audit.with_columns(_title()).sort(order, pl.col("position") * -1, place)


def violations(audit: pl.DataFrame) -> pl.DataFrame:
    """Rows of AUDIT that are violated, with `title`, newest first."""
    return worst_first(audit.filter(pl.col("verdict") == Verdict.VIOLATED.value))


def law_counts(audit: pl.DataFrame) -> pl.DataFrame:
    """LAW_COUNTS."""
    counts = audit.group_by("law").agg(
        *((pl.col("verdict") == verdict.value).sum().cast(pl.Int64).alias(verdict.value) for verdict in Verdict)
    )
    facts = {
        name: {law.id: getattr(law, name) for law in LAWS.values()} for name in ("sentence", "rule")
    }  # fmt: skip
    rows = counts.with_columns(
        _title(), *(pl.col("law").replace_strict(f, return_dtype=pl.String).alias(name) for name, f in facts.items())
    )
    place = pl.col("law").replace_strict(_PLACES, return_dtype=pl.Int64)
    return rows.sort(pl.col("violated") == 0, place).select(LAW_COUNTS.names()).cast(LAW_COUNTS)


def blame(audit: pl.DataFrame) -> pl.DataFrame:
    """BLAME."""
    wrong = audit.filter(pl.col("verdict") == Verdict.VIOLATED.value).with_columns(_title())
    rows = (
        wrong.sort("position", maintain_order=True)
        .group_by("engine", "client_version", maintain_order=True)
        .agg(
            pl.col("version").n_unique().alias("commits"),
            pl.len().alias("violations"),
            pl.col("title").unique(maintain_order=True).str.join("; ").alias("laws"),
            pl.col("version").first().alias("first"),
        )
    )
    return rows.sort("violations", descending=True, maintain_order=True).select(BLAME.names()).cast(BLAME)


def reasons(audit: pl.DataFrame) -> pl.DataFrame:
    """REASONS."""
    unknown = audit.filter(pl.col("verdict") == Verdict.UNKNOWABLE.value).with_columns(_title())
    rows = unknown.group_by("law", "title", "reason", maintain_order=True).agg(pl.len().alias("commits"))
    return rows.sort("commits", descending=True, maintain_order=True).select(REASONS.names()).cast(REASONS)


def sentence(audit: pl.DataFrame) -> str:
    """One sentence: `76 commits: 2 violations in 1 commit, 5 verdicts unknowable, 361 proven`."""
    counts = dict(audit.group_by("verdict").len().iter_rows())
    wrong = audit.filter(pl.col("verdict") == Verdict.VIOLATED.value)
    bad = counts.get(Verdict.VIOLATED.value, 0)
    claim = "no violation"
    if bad:
        claim = f"{count_text(bad, 'violation')} in {count_text(wrong['version'].n_unique(), 'commit')}"
    unknown, sure = counts.get(Verdict.UNKNOWABLE.value, 0), counts.get(Verdict.PROVEN.value, 0)
    commits = count_text(audit["version"].n_unique(), "commit")
    return f"{commits}: {claim}, {count_text(unknown, 'verdict')} unknowable, {sure:,} proven"
