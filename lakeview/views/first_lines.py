"""The first line of a page: the answer to the question in its title, in one sentence."""

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import first_few, shorten
from lakeview.model.snapshot import Snapshot
from lakeview.views.pruning.plan import ReadCost
from lakeview.views.schema.column_history import last_change
from lakeview.views.sums import rows_text
from lakeview.views.timeline.branches import on_branch
from lakeview.views.units import (
    UNKNOWN,
    count_text,
    format_age,
    format_bytes,
    format_date,
    format_mean,
    format_row_change,
    format_version,
)

_VERBS = ("added", "dropped", "renamed", "moved")
"""The changes of SCHEMA_DIFF that say what became of a column; the others name what changed of it."""

_LONGEST_WRITER = 80
"""Characters of a name that a log may give any length."""


def timeline_line(timeline: pl.DataFrame, now: datetime, *, has_baseline: bool = True) -> str:
    """What happened, when and by whom, from TIMELINE; "" without commits. `has_baseline`: loads could be compared with
    earlier ones."""
    line = on_branch(timeline)
    if line.is_empty():
        return ""
    last = line.row(-1, named=True)
    writers = line["writer"].drop_nulls().n_unique()
    by = f" by {count_text(writers, 'writer')}" if writers else ""
    since = line["timestamp"].drop_nulls().min()
    start = f" since {format_date(since)}" if isinstance(since, datetime) else ""
    first = f"{count_text(line.height, 'commit')}{by}{start}"
    who = f", {shorten(last['writer'], _LONGEST_WRITER)}" if last["writer"] else ""
    age = "" if last["timestamp"] is None else f", {format_age(now - last['timestamp'])} ago"
    bad = line.filter("suspicious")
    in_table = bad["taken_back_by"].null_count()
    some = f"{in_table:,} of them " if in_table < bad.height else ""
    state = f"{some}still in the table" if in_table else "repaired"
    none = "no bad load" if has_baseline else "no load can be judged"
    load = f"{count_text(bad.height, 'bad load')}, {state}" if bad.height else none
    rows = _rows(last["records_added"], last["records_removed"])
    return f"{first}; the latest is {format_version(last['version'])}{who}{age}{rows}; {load}"


def _rows(gain: int | None, loss: int | None) -> str:
    if gain is None or loss is None or not (gain or loss):
        return ""
    return ": as many rows as before" if gain == loss else f": {format_row_change(gain - loss)}"


def schema_line(changes: pl.DataFrame, columns: int, schemas: pl.DataFrame) -> str:
    """How many columns there are, and what changed last: from SCHEMA_CHANGES between the newest two of SCHEMAS."""
    have = count_text(columns, "column")
    if changes.is_empty():
        if schemas.height == 1 and not schemas["timestamp"].has_nulls():
            return f"{have}, {last_change(schemas)[0]}"
        return f"{have}; no change of the schema is known"
    version, timestamp = changes.select("version", "timestamp").row(-1)
    by_weight = changes.sort(pl.col("change") == "moved", maintain_order=True)
    words = [_change_text(*change) for change in by_weight.select("column", "change", "before", "after").iter_rows()]
    when = "" if timestamp is None else f" on {format_date(timestamp)}"
    earlier = f"; {count_text(schemas.height - 2, 'change')} before" if schemas.height > 2 else ""
    return f"{have}; changed last by {format_version(version)}{when}: {first_few(words)}{earlier}"


def _change_text(column: str, change: str, before: str | None, after: str | None) -> str:
    if change == "renamed" and before is not None and after is not None:
        return f"renamed {before} to {after}"
    return f"{change if change in _VERBS else f'{change} of'} {column}"


def empty_line(version: int, what: str) -> str:
    """That a version holds none of `what`, files or rows; that the table has no version yet."""
    if version < 0:
        return f"The table has no version yet, and no {what}."
    return f"{format_version(version)} holds no {what}."


def data_line(
    version: int,
    rows: str,
    columns: int,
    files: int,
    all_files: int,
    size: int | None,
    *,
    condition: str | None = None,
    sample: int | None = None,
    first: int | None = None,
    gap: str | None = None,
) -> str:
    """How many rows a version has, as `sums.rows_text` counts them, and where those are that are shown: in so many of
    all files, of so many bytes. Shown are those that satisfy a condition, a sample of at most so many, or the first.
    `gap`: why not all rows can be read; it comes first, and the count is what the log records."""
    count = "an unknown number of rows" if rows == UNKNOWN else f"{rows} {'row' if rows == '1' else 'rows'}"
    has = f"{format_version(version)} has" if gap is None else f"{gap}; the log records"
    line = f"{has} {count} in {count_text(columns, 'column')}"
    if condition is not None and not files:
        return f"{line}; no file can hold those where {condition}"
    if gap is not None and condition is None and sample is None:
        return f"{line}; only those of the other files can be read"
    part = f"{files:,} of " if files < all_files else ""
    cost = f"{part}{count_text(all_files, 'file')}, {'of unknown size' if size is None else format_bytes(size)}"
    if (condition, sample, first, files) == (None, None, None, all_files):
        return f"{line} and {cost}"
    return f"{line}; {_shown_rows(condition, sample, first)} {cost}"


def _shown_rows(condition: str | None, sample: int | None, first: int | None) -> str:
    """Which rows of a version are shown: `the first 100 are in`."""
    if sample is not None:
        return f"at most {sample:,}{'' if condition is None else f' of those where {condition}'} are drawn from"
    if condition is not None:
        return f"those where {condition} are in at most"
    return "all are in" if first is None else f"the first {first:,} are in"


def contents_line(now: Snapshot, gap: str | None = None) -> str:
    """How many rows a version has, in how many columns and files; `gap`: why not all of them can be read."""
    if not now.num_files:
        return empty_line(now.version, "data files")
    rows, files = rows_text(now, exact=True), now.num_files
    return data_line(now.version, rows, len(now.schema), files, files, now.size_bytes, gap=gap)


def unpartitioned_line(files: int) -> str:
    """What decides about the reading of so many files that are in no partition."""
    if files < 2:
        return "New files are in no partition."
    return f"New files are in no partition; statistics decide which of its {count_text(files, 'file')} a filter reads."


def pruning_line(clustering: pl.DataFrame) -> str:
    """By which column a filter reads the fewest files, and by which the most, from CLUSTERING; that none has ranges."""
    by_reads = clustering.drop_nulls("reads").sort("reads", maintain_order=True)
    if by_reads.is_empty():
        return "No column has min and max in its files: only partition values and null counts skip any"
    best, worst = (by_reads.row(place, named=True) for place in (0, -1))
    if by_reads.height > 1 and _of_files(best) == _of_files(worst):
        return f"A filter for one value of any of {by_reads.height:,} columns reads {_of_files(best)} on average"
    text = f"A filter for one value of {best['column']} reads {_of_files(best)} on average"
    return text if by_reads.height == 1 else f"{text}, of {worst['column']} {_of_files(worst)}"


def filter_line(cost: ReadCost) -> str:
    """What a filter reads of a version: `It reads at most 3 of 44 files, 41.0 KiB of 4.78 MiB`."""
    if not cost.all_files:
        return "There are no data files to read"
    sizes = f"{format_bytes(cost.bytes)} of {format_bytes(cost.all_bytes)}"
    return f"It reads at most {cost.files:,} of {count_text(cost.all_files, 'file')}, {sizes}"


def _of_files(row: dict[str, object]) -> str:
    return f"{format_mean(max(1.0, float(str(row['reads']))))} of {count_text(int(str(row['files'])), 'file')}"


def files_line(findings: Sequence[Finding], files: int, size: int | None, ideal: int | None) -> str:
    """That none of the findings is a problem in the layout of so many files and bytes, of which `ideal` ones would hold
    the table; "" where one is."""
    if any(finding.severity is not Severity.PASS for finding in findings):
        return ""
    enough = "" if ideal is None or ideal >= files else f", where {ideal:,} would do"
    of = "" if size is None else f", {format_bytes(size)}"
    return f"No problem found in the layout of {count_text(files, 'file')}{of}{enough}"


def quality_line(findings: Sequence[Finding], timeline: pl.DataFrame) -> str:
    """Since when the data is normal, where every bad load of TIMELINE (up to the version shown) was repaired; that no
    load can be judged, where nothing was found out; "" where a finding says what is not normal, or nothing ever was."""
    if not findings:
        return "No load can be judged yet: too few have statistics to compare"
    line = on_branch(timeline)
    bad = line.filter("suspicious")
    if bad.is_empty() or any(finding.severity not in (Severity.PASS, Severity.NOTE) for finding in findings):
        return ""
    repairs = line.filter(pl.col("version").is_in(bad["taken_back_by"].implode()))
    if bad["taken_back_by"].has_nulls() or repairs["version"].n_unique() < bad["taken_back_by"].n_unique():
        return ""
    version, timestamp = repairs.select("version", "timestamp").row(-1)
    since = format_version(version) if timestamp is None else f"{format_version(version)}, {format_date(timestamp)}"
    load = f"bad load {format_version(bad['version'][0])}" if bad.height == 1 else f"last of {bad.height:,} bad loads"
    return f"No anomaly since {since}, which repaired the {load}"


def partitions_line(sizes: pl.DataFrame, keys: Sequence[str], arrivals: pl.DataFrame, timeline: pl.DataFrame) -> str:
    """That no finding is about the partitions of PARTITION_SIZES; about late ones only where PARTITION_ARRIVALS tell
    when each was first written. How many bad loads of TIMELINE, which ends with the version shown, are in them."""
    is_timed = len(keys) == 1 and arrivals.height > 1 and not arrivals["first_written"].has_nulls()
    nothing = "no gap, no skew and no late arrival" if is_timed else "no gap and no skew"
    partitions, outside = sizes.drop_nulls("partition_text"), sizes.filter(pl.col("partition_text").is_null())["files"]
    others = f" and {count_text(int(outside.sum()), 'file')} without one" if outside.len() else ""
    loads = on_branch(timeline).filter("suspicious")["taken_back_by"]
    bad = int((loads.is_null() | ~loads.is_in(timeline["version"].implode())).sum())
    but = f", but {count_text(bad, 'bad load is', 'bad loads are')} in the table" if bad else ""
    return f"{count_text(partitions.height, 'partition')} by {', '.join(keys)}{others}: {nothing} found{but}"


def versions_line(versions: pl.DataFrame) -> str:
    """How many of the versions that a log holds can be read, and which cannot."""
    unreadable = [format_version(version) for version in versions.filter(~pl.col("readable"))["version"]]
    every, able = count_text(versions.height, "version"), versions.height - len(unreadable)
    if not able:
        return f"None of {every} can be read"
    if not unreadable:
        return f"All {every} can be read" if able > 1 else "The only version can be read"
    return f"{able:,} of {every} can be read, not {first_few(unreadable)}"


def engines_line(compatibility: pl.DataFrame, version: int) -> str:
    """How many engines of COMPATIBILITY read the version and how many of those that write tables write it; how many
    fail, where any does."""
    if compatibility.is_empty():
        return "Which engines can read the table is unknown: there are no rules for its format"
    what = "the table" if version < 0 else format_version(version)
    reading = _engines_that(compatibility["read"], count_text(compatibility.height, "engine"), "read", what)
    line = f"{reading[0].upper()}{reading[1:]}"
    writers = compatibility.filter(pl.col("write") != "never")["write"]
    if writers.is_empty():
        return line
    return f"{line}; {_engines_that(writers, f'{writers.len():,} that write tables', 'write', 'it', the='the ')}"


def reading_engines(compatibility: pl.DataFrame, version: int) -> str:
    """How many engines of COMPATIBILITY cannot read the version, or how many read it where none is known to fail; ""
    without rules."""
    if compatibility.is_empty():
        return ""
    what, of = "the table" if version < 0 else format_version(version), count_text(compatibility.height, "engine")
    fail = int((compatibility["read"] == "no").sum())
    return f"{fail:,} of {of} cannot read {what}" if fail else _engines_that(compatibility["read"], of, "read", what)


def _engines_that(answers: pl.Series, engines: str, verb: str, what: str, the: str = "") -> str:
    fail, unknown = int((answers == "no").sum()), int((answers == "unknown").sum())
    doubt = f", of {unknown:,} it is unknown" if unknown else ""
    if fail:
        return f"{fail:,} of {the}{engines} {'fails' if fail == 1 else 'fail'} to {verb} {what}{doubt}"
    if not unknown:
        return f"all {engines} {verb} {what}"
    able = answers.len() - unknown
    return f"{able or 'none'} of {the}{engines} {verb}{'' if able > 1 else 's'} {what}{doubt}"
