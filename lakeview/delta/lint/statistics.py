"""Statistics and deletion vectors of live files: do their numbers contradict each other?"""

from collections.abc import Iterator

import polars as pl

from lakeview.delta.data.statistics import physical_leaves, statistics_frame
from lakeview.delta.lint.facts import LogFacts
from lakeview.delta.lint.report import finding, short, some
from lakeview.model.contradictions import ALL_NULL
from lakeview.model.contradictions import contradictions as find_contradictions
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import count_text

_SECTION = "Per-file Statistics"
_NEGATIVE = r'"numRecords"\s*:\s*-|"nullCount"\s*:\s*\{[^}]*:\s*-\d'
_COLUMNS = 200
"""Columns whose bounds are compared, in schema order: a table of thousands indexes far fewer."""
_FILES = 200_000
"""Files whose bounds are compared; counts are compared in all of them."""


def present(facts: LogFacts) -> Iterator[Finding]:
    """Live files count their rows."""
    live = facts.stated_files
    silent = live.filter(pl.col("records").is_null())
    if silent.height:
        verb = "does not count its" if silent.height == 1 else "do not count their"
        yield finding(
            "rows-not-counted",
            Severity.NOTE,
            f"{silent.height:,} of {live.height:,} live files {verb} rows",
            some(silent["path"].head(3).to_list(), silent.height),
            section=_SECTION,
            place=silent["path"][0],
            remedy="no filter can skip them: write them again with statistics",
            page="files",
        )
    negative = live.filter(pl.col("stats").str.contains(_NEGATIVE))
    if negative.height:
        yield finding("negative-counts",
            Severity.BROKEN, f"{count_text(negative.height, 'live file')} with a negative number of rows or nulls",
            some(negative["path"].head(3).to_list(), negative.height), section=_SECTION, place=negative["path"][0],
            remedy="write the statistics of these files again", page="files",
        )  # fmt: skip


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
            yield finding("deletion-vector-cardinality",
                Severity.BROKEN, f"{count_text(rows.height, 'live file')} with {claim}",
                f"{short(rows['path'][0])} {evidence.format(**rows.row(0, named=True))}",
                section="Deletion Vectors", place=rows["path"][0],
                remedy="the counts of this table are wrong: write the file again", page="files",
            )  # fmt: skip
    silent = with_vectors.filter(pl.col("records").is_null())
    if silent.height:
        yield finding("deletion-vector-without-row-count",
            Severity.BROKEN, f"{count_text(silent.height, 'live file')} with a deletion vector and no numRecords",
            some(silent["path"].head(3).to_list(), silent.height), section="Deletion Vectors",
            place=silent["path"][0], remedy="write the file again: how many rows are left is unknown", page="files",
        )  # fmt: skip


def contradictions(facts: LogFacts) -> Iterator[Finding]:
    """No minimum above its maximum, no more nulls than rows, no bounds where everything is null."""
    live, schema = facts.stated_files, facts.schema
    if schema is None or not live.height:
        return
    partitions = (facts.latest_metadata.partition_columns if facts.latest_metadata else None) or ()
    leaves = physical_leaves(schema, None, partitions)[:_COLUMNS]
    frame = statistics_frame(live.head(_FILES), leaves)
    every = find_contradictions(frame, live["records"].head(_FILES))
    for (claim,), cases in every.group_by("kind", maintain_order=True):
        first = cases.row(0, named=True)
        yield finding(
            "statistics-contradictory",
            Severity.ATTENTION if claim == ALL_NULL else Severity.BROKEN,
            f"Statistics contradict themselves: {count_text(int(cases['files'].sum()), 'column')} of files {claim}",
            f"{first['column']} in {short(first['path'])}: {first['text']}",
            section=_SECTION,
            place=first["path"],
            remedy="filters may lose rows: write the statistics of these files again",
            page="files",
        )


def tight_bounds(facts: LogFacts) -> Iterator[Finding]:
    """Bounds of a file with a deletion vector that call themselves tight."""
    live = facts.stated_files
    loose = live.filter(
        pl.col("deletion_vector").is_not_null()
        & (pl.col("deleted_records") > 0)
        & pl.col("stats").str.contains(r'"tightBounds"\s*:\s*true')
    )
    if loose.height:
        yield finding(
            "bounds-claimed-tight",
            Severity.NOTE,
            f"{count_text(loose.height, 'file has', 'files have')} deleted rows and say their bounds are tight",
            some(loose["path"].head(3).to_list(), loose.height),
            section=_SECTION,
            place=loose["path"][0],
            remedy="true only if the writer computed the statistics again without the deleted rows",
            page="files",
        )
