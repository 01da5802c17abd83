"""Trends of loads to findings: which loads were not normal, in what, by whom, and whether they were repaired."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from lakeview.model.findings import Finding, Severity
from lakeview.views.quality.trends import event_column, lag_trend, rows_trend
from lakeview.views.thresholds import NULL_JUMP, RANGE_WIDTHS, percent
from lakeview.views.timeline.readability import LATE, ON_TIME
from lakeview.views.units import counted, format_count, format_moment, format_percent, format_version

_MOST_COLUMNS_NAMED = 3


def quality_findings(changes: pl.DataFrame, timeline: pl.DataFrame) -> list[Finding]:
    """One finding a load that is not normal, from SUDDEN and TIMELINE: open ones before repaired ones, newest first.

    Without any, one that says so; none where no load tells enough to be judged.
    """
    anomalies = {**_sudden(changes), **_taken_back(changes, timeline)}
    for version, parts in [*_volumes(timeline), *_lags(changes)]:
        anomalies.setdefault(version, []).extend(parts)
    back = dict(timeline.select("version", "taken_back_by").iter_rows())
    who = {row["version"]: row for row in timeline.select("version", "timestamp", "writer").iter_rows(named=True)}
    order = {version: place for place, version in enumerate(timeline["version"])}
    found = [
        _finding(
            version,
            parts,
            who[version]["timestamp"],
            who[version]["writer"],
            back.get(version),
        )
        for version, parts in anomalies.items()
        if version in who
    ]
    places = {format_version(version): place for version, place in order.items()}
    found.sort(key=lambda f: (f.severity is not Severity.ATTENTION, -places.get(f.place or "", 0)))
    if found or changes.drop_nulls("usual").is_empty():
        return found
    loads = counted(changes["version"].n_unique(), "load")
    return [
        Finding(
            "loads-as-expected",
            Severity.PASS,
            "No anomalous loads",
            f"{loads}, {counted(changes['column'].n_unique(), 'column')}",
        )
    ]


def freshness(findings: Sequence[Finding]) -> list[Finding]:
    """Of the findings about a table those that say whether new data is on time."""
    return [finding for finding in findings if finding.id in (LATE, ON_TIME)]


def _finding(version: int, parts: list[str], moment: datetime | None, writer: str | None, back: int | None) -> Finding:
    first, *more = parts
    when = format_moment(moment)
    by = f"by {writer}, " if writer else ""
    rest = f"; {'; '.join(more)}" if more else ""
    repaired = "" if back is None else f"; repaired by {format_version(back)}"
    return Finding(
        "load-anomaly" if back is None else "load-anomaly-repaired",
        Severity.ATTENTION if back is None else Severity.NOTE,
        f"{format_version(version)}: {first}",
        f"{by}{when} UTC{rest}{repaired}",
        f"nulls {percent(NULL_JUMP)} above the baseline; values {RANGE_WIDTHS:g} times the expected range away",
        format_version(version),
        page="timeline",
        commit=version,
    )


def _sudden(changes: pl.DataFrame) -> dict[int, list[str]]:
    """For each load the columns that changed suddenly, in words, the farthest first."""
    anomalies: dict[int, list[str]] = {}
    for version, rows in _by_version(changes.filter(pl.col("sudden_range"))):
        anomalies.setdefault(version, []).append(_ranges(rows))
    for version, rows in _by_version(changes.filter(pl.col("sudden"))):
        anomalies.setdefault(version, []).append(_nulls(rows))
    return anomalies


def _taken_back(changes: pl.DataFrame, timeline: pl.DataFrame) -> dict[int, list[str]]:
    """Loads that were taken back: what was sudden in them, else what was unusual, else only that they were."""
    sudden = _sudden(changes)
    anomalies = {}
    bad = timeline.filter(pl.col("suspicious") & pl.col("taken_back_by").is_not_null())
    unusual = dict(_by_version(changes.filter("unusual")))
    for version in bad["version"]:
        words = sudden.get(version, [])
        if not words and version in unusual:
            words = [_nulls(unusual[version])]
        anomalies[version] = words or ["a load that was taken back"]
    return anomalies


def _by_version(rows: pl.DataFrame) -> list[tuple[int, pl.DataFrame]]:
    return [(int(part["version"][0]), part) for part in rows.partition_by("version", maintain_order=True)]


def _nulls(rows: pl.DataFrame) -> str:
    rows = rows.sort(pl.col("null_share") - pl.col("usual"), descending=True, maintain_order=True)
    first = rows.row(0, named=True)
    text = (
        f"{first['column']} is null in {format_percent(first['null_share'])}, expected {format_percent(first['usual'])}"
    )
    others = rows["column"].to_list()[1:]
    return f"{text}; also {_column_list(others)}" if others else text


def _ranges(rows: pl.DataFrame) -> str:
    beyond = pl.max_horizontal(pl.col("high") / pl.col("usual_high"), pl.col("usual_low") / pl.col("low"))
    rows = rows.sort(beyond.abs(), descending=True, nulls_last=True, maintain_order=True)
    first = rows.row(0, named=True)
    above = first["high"] - first["usual_high"] >= first["usual_low"] - first["low"]
    value, usual = (first["high"], first["usual_high"]) if above else (first["low"], first["usual_low"])
    words = ("reaches", "at most") if above else ("goes down to", "at least")
    text = f"{first['column']} {words[0]} {_number(value)}, expected {words[1]} {_number(usual)}"
    others = rows["column"].to_list()[1:]
    return f"{text}; also {_column_list(others)}" if others else text


def _column_list(columns: list[str]) -> str:
    named = ", ".join(columns[:_MOST_COLUMNS_NAMED])
    more = len(columns) - _MOST_COLUMNS_NAMED
    return f"{named} and {more} more" if more > 0 else named


def _number(value: float) -> str:
    return format_count(value, exact=True) if value == round(value) else f"{value:,.4g}"


def _volumes(timeline: pl.DataFrame) -> list[tuple[int, list[str]]]:
    """Loads of far more or far fewer rows than usual."""
    rows = rows_trend(timeline)
    usual = (rows["band_low"] + rows["band_high"]) / 2
    judged = rows.with_columns(usual=usual).filter("outside").drop_nulls("usual")
    return [
        (version, [f"{format_count(value)} rows, expected {format_count(often)}"])
        for version, value, often in judged.select("version", "value", "usual").iter_rows()
    ]


def _lags(changes: pl.DataFrame) -> list[tuple[int, list[str]]]:
    """Loads whose newest event lies far longer back than that of the loads around."""
    column = event_column(changes)
    if column is None:
        return []
    rows = lag_trend(changes, column)
    late = rows.filter("outside").with_columns(more=pl.col("value") - pl.col("band_high"))
    return [
        (version, [f"{column} is {counted(round(more), 'day')} later than expected"])
        for version, more in late.drop_nulls("more").select("version", "more").iter_rows()
        if more >= 1
    ]
