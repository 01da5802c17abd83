"""AUDIT to its summaries and findings: verdicts by law, engines to blame, what cannot be known, what was violated."""

from typing import Any

import polars as pl

from lakeview.model.findings import Finding, Severity
from lakeview.model.laws import LAWS, Verdict
from lakeview.views.conform import conform
from lakeview.views.units import count_text, format_version

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
    return rows.sort(pl.col("violated") == 0, place).pipe(conform, LAW_COUNTS)


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
    return rows.sort("violations", descending=True, maintain_order=True).pipe(conform, BLAME)


def reasons(audit: pl.DataFrame) -> pl.DataFrame:
    """REASONS."""
    unknown = audit.filter(pl.col("verdict") == Verdict.UNKNOWABLE.value).with_columns(_title())
    rows = unknown.group_by("law", "title", "reason", maintain_order=True).agg(pl.len().alias("commits"))
    return rows.sort("commits", descending=True, maintain_order=True).pipe(conform, REASONS)


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


_COUNTS_ONLY = frozenset(
    {"metrics-equal-actions", "summary-adds-up", "in-commit-timestamps-increase", "sequence-numbers-increase"}
)
"""Laws whose violation leaves the table's rows as they are."""

_NO_ENGINE = "an engine that is not recorded"


def audit_findings(audit: pl.DataFrame) -> list[Finding]:
    """One finding for each law that commits of an engine violate, the first such commit to blame; empty without any."""
    wrong = violations(audit).sort("position", maintain_order=True)
    groups = wrong.group_by("law", "engine", "client_version", maintain_order=True)
    return [_finding(rows) for _, rows in groups]


def _finding(rows: pl.DataFrame) -> Finding:
    first: dict[str, Any] = rows.row(0, named=True)
    law = LAWS[first["law"]]
    commits = rows["version"].n_unique()
    others = f", and {count_text(commits - 1, 'further commit')}" if commits > 1 else ""
    operation = f" {first['operation']}" if first["operation"] else ""
    figures = f": expected {first['expected']}, found {first['found']}" if first["expected"] is not None else ""
    path = f" ({first['path']})" if first["path"] else ""
    return Finding(
        "commit-violates-law",
        Severity.ATTENTION if law.id in _COUNTS_ONLY else Severity.BROKEN,
        f"A commit of {_engine(first)} violates a law: {law.title[0].lower()}{law.title[1:]}",
        f"{format_version(first['version'])}{operation}: {first['reason']}{figures}{path}{others}",
        place=format_version(first["version"]),
        rule=law.rule,
        remedy=law.remedy,
        page="timeline",
        commit=first["version"],
    )


def _engine(row: dict[str, Any]) -> str:
    names = [str(row[name]) for name in ("engine", "client_version") if row[name]]
    # delta-rs repeats its version in both
    return " ".join(names[:1] if len(names) == 2 and names[0].endswith(names[1][-5:]) else names) or _NO_ENGINE
