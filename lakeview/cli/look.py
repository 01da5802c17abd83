"""`lakeview rows`, `partitions` and `compare`: a few rows, the files of each partition, what versions differ in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

import lakeview as lv
from lakeview.cli.commands import table_command
from lakeview.cli.text import echo_frame, echo_sentence, width
from lakeview.cli.versions import (
    at_option,
    no_commits_text,
    ref_option,
    snapshot_named,
    version_number,
    version_option,
    version_text,
)
from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import printable
from lakeview.predicates.evaluation import reason

if TYPE_CHECKING:
    import polars as pl


where_option = click.option("--where", help="A condition in SQL: only rows that satisfy it.")
columns_option = click.option(
    "--column", "columns", multiple=True, help="Only this column. May be given several times."
)

_PARTITIONS = {
    "partition_text": "partition", "files": "files", "bytes": "bytes", "records": "rows", "median_size": "median bytes",
    "share": "share of bytes, %",
}  # fmt: skip
"""Columns of PARTITION_SIZES, and their heads."""


_ENDS = ("before", "after")


def rows_of(now: lv.Snapshot, where: str | None, columns: Sequence[str]) -> pl.LazyFrame:
    """The rows of a version that satisfy a condition in SQL, of these columns, or all that can be read."""
    import polars.selectors as cs

    from lakeview.predicates import predicate

    now.schema.require(columns)
    rows = now.scan().drop(cs.by_name(*now.schema.unreadable))
    rows = rows if where is None else rows.filter(predicate(where, now.schema))
    return rows.select(cs.by_name(*columns)) if columns else rows


@contextmanager
def rows_read(what: str) -> Iterator[None]:
    """Within it polars' own errors are an InvalidRequestError: the rows cannot be ... (`what`)."""
    import polars as pl

    try:
        yield
    except pl.exceptions.PolarsError as error:
        raise InvalidRequestError(
            f"the rows cannot be {what}: {reason(error)}",
            fix="compare each column with a value of its own type",
            place="where",
        ) from error


@table_command(
    version_option, at_option, ref_option, where_option, columns_option,
    click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many rows."),
)  # fmt: skip
def rows(
    table: lv.Table,
    machine: bool,
    version: str | None,
    at: str | None,
    ref: str | None,
    where: str | None,
    columns: tuple[str, ...],
    limit: int,
) -> None:
    """Show rows at a version: the first ones, or the first that satisfy a condition. This reads data files.

    On a terminal that is too narrow for the columns each row is a block of lines, one a column.
    """
    rows = rows_of(snapshot_named(table, version, at, ref), where, columns)
    with rows_read("read"):
        frame = rows.head(limit).collect()
    echo_frame(frame, machine, _no_rows_text(where), is_data=True)


def _no_rows_text(where: str | None) -> str:
    from lakeview.predicates.condition import null_comparison_hint

    if where is None:
        return "no rows"
    hint = null_comparison_hint(where)
    return printable(f"no rows where {where}" + (f": {hint}" if hint else ""))


@table_command(version_option, at_option, ref_option)
def partitions(table: lv.Table, machine: bool, version: str | None, at: str | None, ref: str | None) -> None:
    """Show what is wrong with the partitions at a version, and their files, bytes and rows, from the log alone."""
    import polars as pl

    views = lv.views.partitions
    now = snapshot_named(table, version, at, ref)
    sizes = views.sizes.partition_sizes(now)
    if not machine and sizes["partition_text"].count():
        look = lv.inspect(table, now.version) if ref is None else lv.inspect(table, ref=ref)
        findings = [f for f in look.present_findings() if f.page == "partitions"]
        for finding in findings:
            echo_sentence(f"{finding.claim}: {finding.evidence}")
        if not findings:
            names = views.keys.partition_names(now)
            commits = lv.views.timeline.commits.up_to(look.timeline(), now.version)
            echo_sentence(lv.views.first_lines.partitions_line(sizes, names, look.arrivals(), commits))
    if not machine:
        sizes = sizes.select(pl.col(name).alias(head) for name, head in _PARTITIONS.items())
        sizes = sizes.with_columns((pl.col(_PARTITIONS["share"]) * 100).round(1))
        if width() is not None:
            keys = views.keys.partition_names(now)
            sizes = sizes.with_columns(views.keys.short_names(sizes["partition"], keys))
        sizes = sizes.with_columns(pl.col("partition").fill_null(views.keys.NO_PARTITION))
    echo_frame(sizes, machine, "the table has no partitions")


@table_command(click.argument("base", required=False), click.argument("version", required=False))
def compare(table: lv.Table, machine: bool, base: str | None, version: str | None) -> None:
    """Show what two versions differ in: totals, columns, settings, partitions; from the log alone.

    BASE is the version before VERSION, and VERSION the latest, where they are not given.
    """
    look = lv.inspect(table, version_number(table, version))
    timeline = look.timeline()
    before = version_number(table, base)
    if before is None:
        before = _version_before(table, timeline, look.version)
    if before is None and look.version < 0:
        raise InvalidRequestError(no_commits_text(look.version), fix="compare it after two commits")
    if before is None:
        raise InvalidRequestError(
            f"no version before {version_text(look.version)} is known",
            fix="name the version to compare with",
            place="BASE",
        )
    difference = look.compare(before, look.version)
    if not machine:
        ends = table.snapshot(before), table.snapshot(look.version)
        echo_sentence(lv.views.compare.summary.sentence(*ends, timeline))
        difference = _in_words(difference, lv.views.partitions.keys.partition_names(ends[1]))
    echo_frame(difference, machine, "no difference: rows may have been replaced by as many")


def _in_words(difference: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """A comparison as text shows it: the digits of its totals grouped, and on a terminal partitions of several keys by
    their values alone."""
    import polars as pl

    texts = {
        text: re.sub(r"\d+", lambda number: f"{int(number[0]):,}", text)
        for text in pl.concat([difference["before"], difference["after"]]).drop_nulls()
    }
    totals = [pl.when(aspect="total").then(pl.col(end).replace(texts)).otherwise(end).alias(end) for end in _ENDS]
    difference = difference.with_columns(totals)
    if width() is None:
        return difference
    names = difference.filter(aspect="partition")["name"]
    short = dict(zip(names, lv.views.partitions.keys.short_names(names, keys), strict=True))
    name = pl.when(aspect="partition").then(pl.col("name").replace(short)).otherwise("name")
    return difference.with_columns(name.alias("name"))


def _version_before(table: lv.Table, timeline: pl.DataFrame, version: int) -> int | None:
    """The version before this one in TIMELINE, or the newest readable one where commits are not shared."""
    import polars as pl

    if timeline.height:
        return lv.views.timeline.commits.version_before(timeline, version)
    earlier = table.versions().filter((pl.col("version") < version) & pl.col("readable"))["version"]
    return int(earlier[0]) if earlier.len() else None
