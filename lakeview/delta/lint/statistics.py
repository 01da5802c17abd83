"""Statistics and deletion vectors of live files: do their numbers contradict each other?"""

from collections.abc import Iterator

import polars as pl

from lakeview.delta.data.statistics import physical_leaves, statistics_frame
from lakeview.delta.lint.facts import LogFacts
from lakeview.delta.lint.report import finding, of_files, short
from lakeview.model.contradictions import ALL_NULL
from lakeview.model.contradictions import contradictions as find_contradictions
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import count_text

_NEGATIVE = r'"numRecords"\s*:\s*-|"nullCount"\s*:\s*\{[^}]*:\s*-\d'
_COLUMNS = 200
"""Columns whose bounds are compared, in schema order: a table of thousands indexes far fewer."""
_FILES = 200_000
"""Files whose bounds are compared; counts are compared in all of them."""


def present(facts: LogFacts) -> Iterator[Finding]:
    """Live files count their rows."""
    live = facts.stated_files
    silent = live.filter(pl.col("records").is_null())
    verb = "does not count its" if silent.height == 1 else "do not count their"
    yield from of_files("rows-not-counted", silent, f"{silent.height:,} of {live.height:,} live files {verb} rows")
    negative = live.filter(pl.col("stats").str.contains(_NEGATIVE))
    claim = f"{count_text(negative.height, 'live file')} with a negative number of rows or nulls"
    yield from of_files("negative-counts", negative, claim)


def vectors(facts: LogFacts) -> Iterator[Finding]:
    """A deletion vector deletes no more rows than its file has, and its file counts them."""
    with_vectors = facts.live.filter(pl.col("deletion_vector").is_not_null())
    for claim, evidence, rows in (
        (
            "a deletion vector that deletes more rows than they hold",
            "deletes {deleted_records:,} of {records:,} rows",
            with_vectors.filter(pl.col("deleted_records") > pl.col("records")),
        ),
        (
            "a deletion vector of a negative cardinality",
            "deletes {deleted_records:,} rows",
            with_vectors.filter(pl.col("deleted_records") < 0),
        ),
    ):
        if rows.height:
            yield finding(
                "deletion-vector-cardinality",
                f"{count_text(rows.height, 'live file')} with {claim}",
                f"{short(rows['path'][0])} {evidence.format(**rows.row(0, named=True))}",
                rows["path"][0],
            )
    silent = with_vectors.filter(pl.col("records").is_null())
    claim = f"{count_text(silent.height, 'live file')} with a deletion vector and no numRecords"
    yield from of_files("deletion-vector-without-row-count", silent, claim)


def contradictions(facts: LogFacts) -> Iterator[Finding]:
    """No minimum above its maximum, no more nulls than rows, no bounds where everything is null."""
    live, schema = facts.stated_files, facts.schema
    if schema is None or not live.height:
        return
    leaves = physical_leaves(schema, None, facts.partition_columns)[:_COLUMNS]
    frame = statistics_frame(live.head(_FILES), leaves)
    every = find_contradictions(frame, live["records"].head(_FILES))
    for (claim,), cases in every.group_by("kind", maintain_order=True):
        first = cases.row(0, named=True)
        yield finding(
            "statistics-contradictory",
            f"Statistics contradict themselves: {count_text(int(cases['files'].sum()), 'column')} of files {claim}",
            f"{first['column']} in {short(first['path'])}: {first['text']}",
            first["path"],
            severity=Severity.ATTENTION if claim == ALL_NULL else None,
        )


def tight_bounds(facts: LogFacts) -> Iterator[Finding]:
    """Bounds of a file with a deletion vector that call themselves tight."""
    live = facts.stated_files
    loose = live.filter(
        pl.col("deletion_vector").is_not_null()
        & (pl.col("deleted_records") > 0)
        & pl.col("stats").str.contains(r'"tightBounds"\s*:\s*true')
    )
    claim = f"{count_text(loose.height, 'file has', 'files have')} deleted rows and say their bounds are tight"
    yield from of_files("bounds-claimed-tight", loose, claim)
