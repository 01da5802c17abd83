"""Statistics and deletion vectors of live files: do their numbers contradict each other?"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from lakeview.delta.data.statistics import physical_leaves, statistics_frame
from lakeview.delta.lint.facts import LogFacts
from lakeview.delta.lint.report import counted, finding, short, some
from lakeview.model.findings import Finding, Severity

_SECTION = "Per-file Statistics"
_NEGATIVE = r'"numRecords"\s*:\s*-|"nullCount"\s*:\s*\{[^}]*:\s*-\d'
_COLUMNS = 200
"""Columns whose bounds are compared, in schema order: a table of thousands indexes far fewer."""
_FILES = 200_000
"""Files whose bounds are compared; counts are compared in all of them."""


def present(facts: LogFacts) -> Iterator[Finding]:
    """Live files count their rows."""
    live = facts.stated
    if live is None:
        return
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
            Severity.BROKEN, f"{counted(negative.height, 'live file')} with a negative number of rows or nulls",
            some(negative["path"].head(3).to_list(), negative.height), section=_SECTION, place=negative["path"][0],
            remedy="write the statistics of these files again", page="files",
        )  # fmt: skip


def vectors(facts: LogFacts) -> Iterator[Finding]:
    """A deletion vector deletes no more rows than its file has, and its file counts them."""
    live = facts.live
    if live is None:
        return
    marked = live.filter(pl.col("deletion_vector").is_not_null())
    for claim, evidence, rows in (
        (
            "a deletion vector that deletes more rows than they hold",
            "deletes {deleted_records:,} of {records:,} rows",
            marked.filter(pl.col("deleted_records") > pl.col("records")),
        ),
        (
            "a deletion vector of a negative cardinality",
            "deletes {deleted_records:,} rows",
            marked.filter(pl.col("deleted_records") < 0),
        ),
    ):
        if rows.height:
            yield finding("deletion-vector-cardinality",
                Severity.BROKEN, f"{counted(rows.height, 'live file')} with {claim}",
                f"{short(rows['path'][0])} {evidence.format(**rows.row(0, named=True))}",
                section="Deletion Vectors", place=rows["path"][0],
                remedy="the counts of this table are wrong: write the file again", page="files",
            )  # fmt: skip
    silent = marked.filter(pl.col("records").is_null())
    if silent.height:
        yield finding("deletion-vector-without-row-count",
            Severity.BROKEN, f"{counted(silent.height, 'live file')} with a deletion vector and no numRecords",
            some(silent["path"].head(3).to_list(), silent.height), section="Deletion Vectors",
            place=silent["path"][0], remedy="write the file again: how many rows are left is unknown", page="files",
        )  # fmt: skip


def contradictions(facts: LogFacts) -> Iterator[Finding]:
    """No minimum above its maximum, no more nulls than rows, no bounds where everything is null."""
    live, schema = facts.stated, facts.schema
    if live is None or schema is None or not live.height:
        return
    partitions = (facts.latest_metadata.partition_columns if facts.latest_metadata else None) or ()
    leaves = physical_leaves(schema, None, partitions)[:_COLUMNS]
    frame = statistics_frame(live.head(_FILES), leaves)
    counts = live["records"].head(_FILES)
    above: list[tuple[str, str, str]] = []
    nulls: list[tuple[str, str, str]] = []
    hollow: list[tuple[str, str, str]] = []
    for name in frame.columns[2:]:
        column = frame[name].struct.unnest().with_columns(frame["_path"].alias("path"), counts.alias("rows"))
        if column["min"].dtype != pl.Null:
            wrong = column.filter(pl.col("min") > pl.col("max"))
            above += [(p, name, f"min {_value(a)}, max {_value(b)}") for p, a, b in _of(wrong, "min", "max")]
            empty = column.filter(
                (pl.col("null_count") == pl.col("rows"))
                & (pl.col("rows") > 0)
                & pl.col("null_count_exact")
                & pl.col("min").is_not_null()
            )
            hollow += [(p, name, f"{n:,} rows, all null, min {_value(a)}") for p, n, a in _of(empty, "rows", "min")]
        wrong = column.filter(pl.col("null_count") > pl.col("rows"))
        nulls += [(p, name, f"{n:,} nulls in {r:,} rows") for p, n, r in _of(wrong, "null_count", "rows")]
    for claim, cases in (
        ("have a minimum above their maximum", above),
        ("hold more nulls than rows", nulls),
        ("are all null and have bounds", hollow),
    ):
        if cases:
            path, column_name, what = cases[0]
            yield finding(
                "statistics-contradictory",
                Severity.BROKEN if cases is not hollow else Severity.ATTENTION,
                f"Statistics contradict themselves: {counted(len(cases), 'column')} of files {claim}",
                f"{column_name} in {short(path)}: {what}",
                section=_SECTION,
                place=path,
                remedy="filters may lose rows: write the statistics of these files again",
                page="files",
            )


def _of(rows: pl.DataFrame, *columns: str) -> list[tuple[str, object, object]]:
    return [(p, a, b) for p, a, b in rows.select("path", *columns).iter_rows()]


def _value(value: object) -> str:
    return short(str(value), 40)


def tight(facts: LogFacts) -> Iterator[Finding]:
    """Bounds of a file with a deletion vector that call themselves tight."""
    live = facts.stated
    if live is None:
        return
    loose = live.filter(
        pl.col("deletion_vector").is_not_null()
        & (pl.col("deleted_records") > 0)
        & pl.col("stats").str.contains(r'"tightBounds"\s*:\s*true')
    )
    if loose.height:
        yield finding(
            "bounds-claimed-tight",
            Severity.NOTE,
            f"{counted(loose.height, 'file has', 'files have')} deleted rows and say their bounds are tight",
            some(loose["path"].head(3).to_list(), loose.height),
            section=_SECTION,
            place=loose["path"][0],
            remedy="true only if the writer computed the statistics anew without the deleted rows",
            page="files",
        )
