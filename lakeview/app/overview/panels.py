"""The overview's parts: six figures with their past, the schema at a glance, protocol and properties."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import polars as pl
import streamlit as st

from lakeview import views
from lakeview.app import answers
from lakeview.app.components import facts, frame, grid, tile
from lakeview.app.files import panels
from lakeview.app.session import Opened

SAMPLES = 48
_MAX_PROPERTIES = 40
_NUMBERS = dict(enumerate(("Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")))
_NUMBERS |= {11: "Eleven", 12: "Twelve"}


def tiles(now: Opened, timeline: pl.DataFrame) -> None:
    """Rows, live bytes, retained bytes, files, last commit and log, each with its course."""
    snapshot = now.snapshot
    timeline = timeline.filter(pl.col("lane") != "aside")
    past = timeline.filter(timeline["version"].is_in(_up_to(timeline, now.version)))
    before = _compared_with(now, timeline, past)
    beside = None if before is None else _since(now, int(str(before["version"])))
    facts_of_files = panels.layout(now).facts
    found = now.look.retention_simulation()
    kept = found.retained_bytes
    # what the store holds is no matter of the version or branch that is shown
    together = None if found.undated or found.live_bytes is None else found.live_bytes + kept
    cells = grid(150)
    with cells:
        tile(
            "Rows",
            _or_more(snapshot.num_records, facts_of_files.least_records, views.units.format_count),
            _change(snapshot.num_records, before, "records"),
            beside=beside,
            help=_exactness(snapshot.num_records, facts_of_files.least_records),
            trend=sampled(past, "records"),
        )
        tile(
            "Live bytes",
            _or_more(snapshot.size_bytes, facts_of_files.least_bytes, views.units.format_bytes),
            _change(snapshot.size_bytes, before, "bytes"),
            beside=beside,
            help=_bytes_known(facts_of_files),
            trend=sampled(past, "bytes"),
        )
        tile(
            "Retained bytes",
            views.units.format_bytes(together),
            None if found.undated else f"+{views.units.format_bytes(kept)}" if kept else "nothing more",
            beside="old versions" if kept else None,
            help="Bytes of the latest version, and of removed files that versions which can still be read need"
            f"{', of the default branch' if found.refs > 1 else ''}.",
            trend=sampled(views.retention.cost.retained_course(found, past), "bytes") if now.ref is None else None,
            attention=_has_finding(now, "history-cost"),
        )
        small = facts_of_files.small_files
        tile(
            "Files",
            f"{snapshot.num_files:,}",
            f"{small:,} under 1 MiB" if small else _change(snapshot.num_files, before, "files"),
            beside=None if small else beside,
            help="Data files of this version, exact, from the log.",
            trend=sampled(past, "files"),
            attention=_is_finding(now, "files"),
        )
        rhythm = answers.cadence(now)
        tile(
            "Last commit",
            "none" if rhythm.age is None and not found.undated else views.units.format_age(rhythm.age),
            None if rhythm.usual is None else f"every {views.units.format_age(rhythm.usual)}",
            beside=None if rhythm.usual is None else "usual",
            help="Age of the last commit that changed data, and the usual gap between such commits.",
            trend=_gaps(past),
            bars=True,
            attention=rhythm.late,
        )
        _log_tile(now)


def _log_tile(now: Opened) -> None:
    log = now.look.frames.of_log("log files")
    tile(
        "Log size",
        views.units.format_bytes(None if log.is_empty() else int(log["size"].sum())),
        None if log.is_empty() else views.units.counted(log.height, "file"),
        help="What the table's own log takes: commits, checkpoints, metadata; by one listing.",
        trend=sampled(views.retention.cost.log_course(log), "bytes"),
        attention=_has_finding(now, "log-size") or _has_finding(now, "checkpoint-age"),
    )


def _since(now: Opened, version: int) -> str:
    """What a change is counted from, short enough for a tile: numbers made at random say nothing there."""
    label = views.units.format_version(version)
    if label != f"v{version}":
        return "this commit" if now.base is None else "since the base"
    return f"since {label}"


def sampled(past: pl.DataFrame, column: str) -> list[float] | None:
    """A state at 48 equal times between the first and the last commit; None if it is not known throughout."""
    known = past.select("timestamp", column).drop_nulls().sort("timestamp")
    first, last = known["timestamp"].min(), known["timestamp"].max()
    if known.height < 2 or not isinstance(first, datetime) or not isinstance(last, datetime) or first == last:
        return None
    step = (last - first) / (SAMPLES - 1)
    times = pl.DataFrame(
        {"timestamp": [first + step * i for i in range(SAMPLES)]}, schema=known.select("timestamp").schema
    )
    joined = times.join_asof(known, on="timestamp", strategy="backward")[column].fill_null(strategy="backward")
    return [float(value) for value in joined]


def span_title(timeline: pl.DataFrame) -> str:
    """How long the log's memory is: `Twelve months`."""
    first, last = timeline["timestamp"].min(), timeline["timestamp"].max()
    if not isinstance(first, datetime) or not isinstance(last, datetime):
        return "The past"
    days = (last - first).days
    if days >= 50:
        months = round(days / 30.4)
        return f"{_NUMBERS.get(months, months)} months"
    return f"{_NUMBERS.get(days, days)} days" if days > 1 else "The first hours"


def span_note(timeline: pl.DataFrame) -> str:
    """How many commits, and by how many writers."""
    writers = timeline["writer"].drop_nulls().n_unique()
    commits = views.units.counted(timeline.height, "commit")
    return f"{commits}, {views.units.counted(writers, 'writer')}" if writers else commits


def schema_note(now: Opened) -> str:
    """How many columns, and since when the schema is as it is."""
    last = answers.schemas_up_to(now).tail(1)
    text = views.units.counted(len(now.snapshot.schema), "column")
    for version, moment in last.select("version", "timestamp").iter_rows():
        when = (
            "not told"
            if moment is None
            else f"{views.units.format_version(version)}, {views.units.format_date(moment)}"
        )
        text += f" · last change {when}"
    return text


def schema_glance(now: Opened) -> None:
    """Columns with type, null share and last change, as the log tells them."""
    few = answers.few_files(now)
    tree = answers.schema_tree(now) if few else views.schema.columns.schema_tree(now.snapshot.schema)
    lives = views.schema.column_history.column_lives(answers.schema_versions(now))
    rows = tree.filter(pl.col("depth") == 0)
    last = lives.filter(pl.col("dropped").is_null()) if "dropped" in lives.columns else lives
    rows = rows.join(last, left_on="path", right_on="column", how="left", maintain_order="left")
    table = rows.select(
        column="name",
        type=pl.col("type"),
        null=pl.col("null_share") * 100,
        mark=pl.col("null_share_mark").fill_null(""),
        statistics=pl.when(pl.col("coverage") == 1)
        .then(pl.lit("min/max"))
        .when(pl.col("coverage") > 0)
        .then(pl.lit("some files"))
        .otherwise(pl.lit("none" if few else "not read")),
        since=pl.when(pl.col("born_timestamp").is_not_null()).then(views.units.version_label("born")),
    )
    column = st.column_config
    frame(
        table,
        {
            "column": column.TextColumn("column", width=116),
            "type": column.TextColumn("type", width=78),
            "mark": column.TextColumn("", width=26, help="≥ or ≤: a bound; ≈: some files do not count; empty: exact"),
            "null": column.ProgressColumn("null, %", format="%.1f", min_value=0, max_value=100, width=96),
            "statistics": column.TextColumn("statistics", width=76),
            "since": column.TextColumn("since", width=90),
        },
        key="schema-glance",
        height=340,
    )


def identity(now: Opened) -> None:
    """Who the table is: protocol, features, partitioning, properties."""
    s = now.snapshot
    facts(
        {
            "name": s.name or "not named",
            "description": s.description or "none",
            "id": s.id,
            "location": s.location,
            "created": f"{views.units.format_moment(s.created)} UTC" if s.created else None,
            "partitioned by": ", ".join(s.partition_columns) or "nothing",
            "protocol": s.protocol.label,
            "features": ", ".join(s.protocol.features) or "none named",
        }
        | dict(list((s.properties or {}).items())[:_MAX_PROPERTIES])
    )


def _compared_with(now: Opened, timeline: pl.DataFrame, past: pl.DataFrame) -> dict[str, object] | None:
    """The state to tell the change from: the base, or without one the version before."""
    if now.base is not None:
        base = timeline.filter(pl.col("version") == now.base)
        return None if base.is_empty() else base.row(0, named=True)
    return past.row(-2, named=True) if past.height > 1 else None


def _up_to(timeline: pl.DataFrame, version: int) -> list[int]:
    position = timeline["version"].index_of(version)
    versions = timeline["version"].to_list()
    return versions if position is None else versions[: position + 1]


def _change(value: int | None, before: dict[str, object] | None, column: str) -> str | None:
    earlier = None if before is None else before[column]
    if value is None or not isinstance(earlier, int):
        return None
    return views.units.format_change(value - earlier, bytes_=column == "bytes")


def _or_more(whole: int | None, told: int | None, said: Callable[[int | None], str]) -> str:
    """A figure, or as much of it as is known: `≥ 1,204`."""
    return said(whole) if whole is not None or not told else f"\N{GREATER-THAN OR EQUAL TO} {said(told)}"


def _exactness(rows: int | None, told: int | None) -> str:
    if rows is None:
        known = f"At least {told:,}" if told else "Unknown"
        return f"{known}: some files do not tell how many live rows they hold. Counting them would read the data."
    return f"{rows:,} live rows, exact, from the log."


def _bytes_known(files: views.files.sizes.FileFacts) -> str:
    if not files.files_without_size:
        return "Bytes of the data files of this version, exact, from the log."
    told = views.units.counted(files.files_without_size, "file is recorded", "files are recorded")
    known = "At least" if files.least_bytes else "Unknown"
    return f"{known}: {told} with a size that no file has."


def _gaps(past: pl.DataFrame) -> list[float] | None:
    gaps = past["timestamp"].drop_nulls().sort().diff().drop_nulls().tail(SAMPLES // 3).dt.total_seconds()
    return [float(gap) for gap in gaps] if gaps.len() > 1 else None


def _is_finding(now: Opened, page: str) -> bool:
    return any(
        finding.page == page and finding.severity in ("broken", "attention") for finding in answers.findings(now)
    )


def _has_finding(now: Opened, finding_id: str) -> bool:
    return any(f.id == finding_id and f.severity in ("broken", "attention") for f in answers.findings(now))
