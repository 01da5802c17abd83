"""Trends of loads to anomalies and findings: what was not as expected in which load, by whom, and who repaired it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

import polars as pl

from lakeview.model.findings import Finding, Severity
from lakeview.model.frames import UTC_MILLIS
from lakeview.model.printable import first_few, shorten
from lakeview.views.conform import conform
from lakeview.views.health.kinds import finding
from lakeview.views.quality.loads import repeated_loads, row_losses
from lakeview.views.quality.persistence import loads_to_compare, next_loads_alike
from lakeview.views.quality.sudden_changes import SUDDEN
from lakeview.views.quality.trends import event_column, far_back, lag_trend, rows_trend
from lakeview.views.timeline.commits import up_to
from lakeview.views.timeline.events import repair_text
from lakeview.views.timeline.loads import BAD_LOAD, LATE_PARTITION
from lakeview.views.timeline.readability import LATE, NO_NEWER_EVENTS, ON_TIME
from lakeview.views.units import (
    count_text,
    format_age,
    format_count,
    format_figure,
    format_moment,
    format_percent,
    format_version,
)

NO_CHANGES = pl.DataFrame(schema=SUDDEN)
_LONGEST_NAME = 60
"""Characters of a column's name in a sentence."""
_OF_DATA = frozenset(
    (
        "constraint-violated",
        "load-anomaly",
        "load-anomaly-repaired",
        "loads-as-expected",
        "partition-late",
        LATE,
        NO_NEWER_EVENTS,
        ON_TIME,
    )
)


ANOMALIES = pl.Schema(
    {
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "writer": pl.String(),
        "reasons": pl.List(pl.String()),
        "column": pl.String(),
        "repaired_by": pl.Int64(),
        "repaired_at": UTC_MILLIS,
        "repairer": pl.String(),
        "repaired_since": pl.Int64(),
    }
)
"""One row a load that is an anomaly, open ones before repaired ones, newest first. `reasons` in words, the first says
most; `column`: what that one is about, null for the load itself; `repaired_by`: the version that removed the load
again, or brought back the rows that it replaced, with its timestamp and writer, null while it is open;
`repaired_since`: the one that did so after the version that they are of."""


def anomalies(timeline: pl.DataFrame, changes: pl.DataFrame, version: int | None = None) -> pl.DataFrame:
    """ANOMALIES of TIMELINE and SUDDEN; with a version, as they were then: of loads up to it, repaired up to it."""
    history = timeline if version is None else up_to(timeline, version)
    sudden = _sudden(changes.filter(pl.col("version").is_in(history["version"].implode())))
    reasons = {**sudden, **_taken_back(sudden, timeline)}
    losses = row_losses(timeline)
    for load, text, column in chain(_of_rows(losses, changes, timeline), _lags(changes, timeline)):
        reasons.setdefault(load, []).append((text, column))
    other_loads = timeline.filter(
        pl.col("suspicious") & pl.col("taken_back_by").is_null() & pl.col("note").is_not_null()
    )
    for row in other_loads.iter_rows(named=True):
        reasons.setdefault(row["version"], [(f"{_rows(row['records_added'])}, {row['note']}", None)])
    commits = history.select("version", "timestamp", "writer").with_row_index("order")
    repairs = commits.select(
        repaired_by="version", repaired_at="timestamp", repairer="writer", repaired=pl.lit(value=True)
    )
    loads = pl.DataFrame(
        [(load, [text for text, _ in why], why[0][1]) for load, why in reasons.items()],
        schema={"version": pl.Int64(), "reasons": pl.List(pl.String()), "column": pl.String()},
        orient="row",
    )
    return (
        loads.join(commits, on="version")
        .join(history.select("version", "taken_back_by"), on="version")
        .join(losses.select("version", "restored_by"), on="version", how="left")
        .with_columns(repaired_by=pl.coalesce("restored_by", "taken_back_by"))
        .join(repairs, on="repaired_by", how="left")
        .with_columns(repaired_since=pl.when(pl.col("repaired").is_null()).then("repaired_by"))
        .with_columns(repaired_by=pl.when("repaired").then("repaired_by"))
        .sort(pl.col("repaired_by").is_not_null(), pl.col("order").cast(pl.Int64).neg())
        .pipe(conform, ANOMALIES)
    )


def has_baseline(timeline: pl.DataFrame, changes: pl.DataFrame) -> bool:
    """True if a load was compared with earlier ones: by a column of SUDDEN, or by its rows in TIMELINE."""
    return changes["usual"].count() > 0 or rows_trend(timeline)["band_high"].count() > 0


def with_anomalies(timeline: pl.DataFrame, anomalies: pl.DataFrame) -> pl.DataFrame:
    """TIMELINE with the loads of ANOMALIES as its suspicious ones, and their reasons and repair as `note`."""
    marks = anomalies.select("version", "repaired_by", reason=pl.col("reasons").list.join("; "))
    commits = timeline.join(marks, on="version", how="left", maintain_order="left")
    repair = pl.when(pl.col("reason").is_null() | pl.col("taken_back_by").is_not_null()).then("note")
    return commits.with_columns(
        suspicious=pl.col("suspicious") | pl.col("reason").is_not_null(),
        note=pl.concat_str("reason", repair, separator="; ", ignore_nulls=True).replace("", None),
        taken_back_by=pl.coalesce("taken_back_by", "repaired_by"),
        label=pl.when(pl.col("reason").is_not_null()).then(pl.lit(BAD_LOAD)).otherwise("label"),
    ).select(timeline.columns)


def anomaly_findings(anomalies: pl.DataFrame, now: datetime, command: str | None = None) -> list[Finding]:
    """One finding a load of ANOMALIES, in their order; `command` takes the newest open one back."""
    commands = [command, *[None] * anomalies.height]
    return [_finding(row, now, run) for row, run in zip(anomalies.iter_rows(named=True), commands, strict=False)]


def normal_finding(changes: pl.DataFrame) -> list[Finding]:
    """A finding that no load is an anomaly; none where no load of SUDDEN could be judged."""
    num_judged = changes.drop_nulls("usual")["column"].n_unique()
    if not num_judged:
        return []
    columns = changes["column"].n_unique()
    evidence = f"{count_text(changes['version'].n_unique(), 'load')}, {count_text(num_judged, 'column')}"
    if num_judged < columns:
        evidence += f"; {columns - num_judged:,} of {columns:,} without enough statistics"
    return [finding("loads-as-expected", Severity.PASS, "No anomalous loads", evidence)]


def quality_findings(findings: Sequence[Finding]) -> list[Finding]:
    """Of the findings about a table those about its data: constraints, loads, and whether data is on time."""
    return [each for each in findings if each.id in _OF_DATA]


def _finding(anomaly: Mapping[str, Any], now: datetime, command: str | None) -> Finding:
    version, back = anomaly["version"], anomaly["repaired_by"]
    first, *more = anomaly["reasons"]
    moment = anomaly["timestamp"]
    parts = [
        anomaly["writer"],
        None if moment is None else f"{format_age(now - moment)} ago, {format_moment(moment)} UTC",
    ]
    details = [", ".join(filter(None, parts)), *more, repair_text(anomaly)]
    if anomaly["repaired_since"] is not None:
        details.append(f"repaired since, by {format_version(anomaly['repaired_since'])}")
    return finding(
        "load-anomaly" if back is None else "load-anomaly-repaired",
        Severity.ATTENTION if back is None else Severity.NOTE,
        f"{format_version(version)}: {first}",
        "; ".join(filter(None, details)),
        format_version(version),
        command=command,
        commit=version,
        column=anomaly["column"],
    )


_Reason = tuple[str, str | None]
"""Why a load is an anomaly, in words, and the column that this is about."""


def _sudden(changes: pl.DataFrame) -> dict[int, list[_Reason]]:
    """For each load the columns that changed suddenly, the farthest first, and the loads after it that are like it."""
    anomalies: dict[int, list[_Reason]] = {}
    loads = loads_to_compare(changes)  # once: with 500 anomalies among 600,000 loads it is most of the time
    for version, rows in _by_version(changes.filter(pl.col("sudden_range"))):
        anomalies.setdefault(version, []).extend(_ranges(rows, loads))
    for version, rows in _by_version(changes.filter(pl.col("sudden"))):
        anomalies.setdefault(version, []).extend(_nulls(rows, loads))
    return anomalies


def _taken_back(sudden: dict[int, list[_Reason]], timeline: pl.DataFrame) -> dict[int, list[_Reason]]:
    """Loads that were removed again: what was sudden in them, else only that they were."""
    bad = timeline.filter(pl.col("suspicious") & pl.col("taken_back_by").is_not_null())
    return {
        version: sudden.get(version, [(f"{_rows(records)}, removed again", None)])
        for version, records in bad.select("version", "records_added").iter_rows()
    }


def _by_version(rows: pl.DataFrame) -> list[tuple[int, pl.DataFrame]]:
    return [(int(part["version"][0]), part) for part in rows.partition_by("version", maintain_order=True)]


def _nulls(rows: pl.DataFrame, loads: Mapping[str, pl.DataFrame]) -> list[_Reason]:
    rows = rows.sort(pl.col("null_share") - pl.col("usual"), descending=True, maintain_order=True)
    first = rows.row(0, named=True)
    of = "" if first["records"] is None else f" of {count_text(first['records'], 'row')}"
    text = (
        f"{_short(first['column'])} is null in {format_percent(first['null_share'])}{of}, "
        f"expected {format_percent(first['usual'])}"
    )
    return _with_others(text, rows, next_loads_alike(loads, first))


def _ranges(rows: pl.DataFrame, loads: Mapping[str, pl.DataFrame]) -> list[_Reason]:
    beyond = pl.max_horizontal(pl.col("high") / pl.col("usual_high"), pl.col("usual_low") / pl.col("low"))
    rows = rows.sort(beyond.abs(), descending=True, nulls_last=True, maintain_order=True)
    first = rows.row(0, named=True)
    above = first["high"] - first["usual_high"] >= first["usual_low"] - first["low"]
    value, usual = (first["high"], first["usual_high"]) if above else (first["low"], first["usual_low"])
    words = ("reaches", "at most") if above else ("goes down to", "at least")
    text = f"{_short(first['column'])} {words[0]} {format_figure(value)}, expected {words[1]} {format_figure(usual)}"
    return _with_others(text, rows, next_loads_alike(loads, first, is_above=above))


def _with_others(text: str, rows: pl.DataFrame, later: str | None) -> list[_Reason]:
    """A text about the first column, with the names of the others; then what it is in the loads after it."""
    column, *others = rows["column"].to_list()
    claim = f"{text}; also {first_few([_short(other) for other in others])}" if others else text
    return [(text, column) for text in (claim, later) if text is not None]


def _of_rows(losses: pl.DataFrame, changes: pl.DataFrame, timeline: pl.DataFrame) -> Iterator[tuple[int, str, None]]:
    """Overwrites that leave far fewer rows than there were, loads that bring the rows of an earlier one again, and
    loads of far more or far fewer rows than usual."""
    for version, records, before in losses.select("version", "records", "records_before").iter_rows():
        yield version, f"replaces {count_text(before, 'row')} by {records:,}", None
    for version, earlier, records, columns in repeated_loads(changes, timeline).iter_rows():
        rows, equal = count_text(records, "row"), count_text(columns, "column")
        same = f"the same {rows} as {format_version(earlier)}, it seems"
        yield version, f"{same}: nulls, min and max are equal in {equal}", None
    outside = rows_trend(timeline).filter("outside").drop_nulls(["band_low", "band_high"])
    for version, value, low, high in outside.select("version", "value", "band_low", "band_high").iter_rows():
        yield version, f"{_rows(value)}, expected {format_count((low + high) / 2)}", None


def _short(column: str) -> str:
    """A column's name for a sentence."""
    return shorten(column, _LONGEST_NAME)


def _rows(number: float | None) -> str:
    return f"{format_count(number)} {'row' if number == 1 else 'rows'}"


def _lags(changes: pl.DataFrame, timeline: pl.DataFrame) -> Iterator[tuple[int, str, str]]:
    """Loads whose newest event lies far longer back than that of the loads around, or far beyond the commit, not those
    of a late partition; and loads with single events of other years."""
    column = event_column(changes)
    if column is None:
        return
    rows = lag_trend(changes, column)
    late_partitions = timeline.filter(pl.col("label").str.starts_with(LATE_PARTITION))
    late = rows.filter("outside").join(late_partitions, on="version", how="anti", maintain_order="left")
    late = late.with_columns(more=pl.col("value") - pl.col("band_high")).drop_nulls("more")
    for version, days, more in late.select("version", "value", "more").iter_rows():
        beyond = f"reaches {count_text(round(-days), 'day')} beyond the commit"
        later = f"is {count_text(round(more), 'day')} later than expected"
        if max(-days, more) >= 1:
            yield version, f"{_short(column)} {beyond if days < 0 else later}", column
    for version, days in far_back(changes, column).iter_rows():
        yield version, f"{_short(column)} goes back {count_text(round(days), 'day')} before the commit", column
