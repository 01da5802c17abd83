"""Anomalous loads: far more rows than expected, or reverted later by a commit that removed just them."""

import polars as pl

from lakeview.model.column_values import format_expression
from lakeview.views.sums import total
from lakeview.views.thresholds import (
    ANOMALY_SPREADS,
    BASELINE_MIN,
    BASELINE_WINDOW,
    LOAD_TIMES,
    REVERTED_ROUTINE,
    REVERTED_SHARE,
)
from lakeview.views.timeline.lifetimes import continuations
from lakeview.views.units import version_label

BAD_LOAD = "bad load"
"""The name of a load that is an anomaly, in charts, filters and the drawer."""

LATE_PARTITION = "late "
"""What the name of a load that brought a late partition begins with."""

_OF_ROWS = ("DELETE", "UPDATE", "MERGE", "overwrite")
"""Operations that may rewrite a load's files because of some of their rows; Iceberg's `overwrite` is any of these."""


def mark_loads(commits: pl.DataFrame, lifetimes: pl.DataFrame | None) -> pl.DataFrame:
    """COMMITS with `row`, `lane` and states, oldest first, with `suspicious`, `taken_back_by` and `note` added."""
    loads = _with_usual(commits)
    back = _taken_back(commits, lifetimes)
    rows = commits.join(loads, on="row", how="left").join(back, on="row", how="left", maintain_order="left")
    routine = pl.col("taken_back_by").is_not_null().sum() > REVERTED_ROUTINE * (pl.col("lane") == "append").sum()
    unusual = pl.col("times").is_not_null()
    is_reverted = pl.col("taken_back_by").is_not_null() & (unusual | ~routine)
    return (
        rows.sort("row")
        .with_columns(
            suspicious=unusual | (is_reverted & ~pl.col("is_rewritten")),
            taken_back_by=pl.when(is_reverted).then("taken_back_by"),
        )
        .join(_restored_versions(commits), on="version", how="left", maintain_order="left")
        .with_columns(
            taken_back_at=pl.coalesce("taken_back_at", "restored_at"),
            taken_back_by=pl.coalesce("taken_back_by", "restored_by"),
        )
        .with_columns(note=pl.when("suspicious").then(_note()))
    )


def _with_usual(commits: pl.DataFrame) -> pl.DataFrame:
    """`row`, `usual` (the expected rows) and `times` (how many times that): only for anomalous loads.

    The expected rows grow with the time since the load before: a week's rows after a week are normal in a table that is
    loaded daily.
    """
    rows = pl.col("records_added").cast(pl.Float64)
    gap = pl.col("timestamp").diff().dt.total_milliseconds().cast(pl.Float64)
    longer = (pl.col("gap") / pl.col("usual_gap")).fill_nan(1.0).fill_null(1.0).clip(1.0)
    distance = (pl.col("rows") - pl.col("usual")).abs()
    return (
        commits.filter(pl.col("lane") == "append")
        .select("row", rows.alias("rows"), gap.alias("gap"))
        .filter(pl.col("rows") > 0)
        .with_columns(
            usual=pl.col("rows").shift(1).rolling_median(BASELINE_WINDOW, min_samples=BASELINE_MIN),
            usual_gap=pl.col("gap").shift(1).rolling_median(BASELINE_WINDOW, min_samples=1),
        )
        .with_columns(usual=pl.col("usual") * longer)
        # deviations are from each load's own baseline: one pass, and a slow growth is no anomaly
        .with_columns(spread=distance.shift(1).rolling_median(BASELINE_WINDOW, min_samples=1))
        .with_columns(times=pl.col("rows") / pl.col("usual"))
        .filter(
            (pl.col("times") >= LOAD_TIMES)
            & (pl.col("rows") - pl.col("usual") > ANOMALY_SPREADS * pl.col("spread").fill_null(0.0))
        )
        .select("row", "times", "usual")
    )


def _taken_back(commits: pl.DataFrame, lifetimes: pl.DataFrame | None) -> pl.DataFrame:
    """`row`, `taken_back_by`: loads removed by one later change that removed little else and left other files;
    `is_rewritten`: other files came in their place, perhaps with most of the same rows, which says nothing of the load.
    """
    empty = pl.Schema(
        {
            "row": pl.Int64(),
            "taken_back_by": pl.Int64(),
            "taken_back_at": commits.schema["timestamp"],
            "is_rewritten": pl.Boolean(),
        }
    )
    if lifetimes is None or lifetimes.is_empty():
        return pl.DataFrame(schema=empty)
    loads = commits.filter(pl.col("lane") == "append").select(pl.col("version").alias("added"), "row")
    changes = commits.filter(pl.col("lane") == "change").select(
        pl.col("version").alias("removed"),
        taken_back_at="timestamp",
        change_row="row",
        is_rewritten=pl.col("operation").is_in(_OF_ROWS) & (pl.col("files_added").fill_null(1) > 0),
    )
    if loads.is_empty() or changes.is_empty():
        return pl.DataFrame(schema=empty)
    # the change must leave files that are neither the load's nor its own: a full refresh takes nothing back
    before = commits.select(change_row=pl.col("row") + 1, files_before="files")
    # a file that stays on with other deleted rows is neither removed nor written again
    lives = lifetimes.select("added", "removed", "size").hstack(continuations(lifetimes))
    ends = lives.with_columns(removed=pl.when(~pl.col("goes_on")).then("removed"))
    stays = ends.filter(~pl.col("went_on")).select("added", "removed", "size")
    load_sizes = stays.group_by("added").agg(load_bytes=total("size"))
    removed_sizes = stays.drop_nulls("removed").group_by("removed").agg(removed_bytes=total("size"))
    return (
        stays.drop_nulls(["added", "removed"])
        .group_by("added", "removed")
        .agg(both=total("size"), both_files=pl.len().cast(pl.Int64))
        .join(loads, on="added")
        .join(changes, on="removed")
        .join(load_sizes, on="added")
        .join(removed_sizes, on="removed")
        .join(before, on="change_row")
        .filter(
            (pl.col("both") >= REVERTED_SHARE * pl.col("load_bytes"))
            & (pl.col("both") >= REVERTED_SHARE * pl.col("removed_bytes"))
            & (pl.col("files_before") > pl.col("both_files"))
        )
        .select("row", pl.col("removed").alias("taken_back_by"), "taken_back_at", "is_rewritten")
        .unique("row", keep="first", maintain_order=True)
    )


def _restored_versions(commits: pl.DataFrame) -> pl.DataFrame:
    """`version`, `restored_by` and `restored_at`: commits that a RESTORE to an earlier version took out of the table,
    and no later one brought back. It may take out good loads with a bad one, and says nothing of them. A point in time
    counts with its zone alone: engines record the text of the statement, in the zone of their session."""
    target = pl.col("parameters").str.json_path_match("$.version").cast(pl.Int64, strict=False)
    moment_text = pl.col("parameters").str.json_path_match("$.timestamp").str.extract(r"^(.*T.*(?:Z|[+-]\d\d:\d\d))$")
    at = moment_text.str.to_datetime("%+", time_unit="ms", time_zone="UTC", strict=False)
    restores = commits.filter(pl.col("operation") == "RESTORE").select(
        "version", target.alias("target"), at.alias("at")
    )
    by: dict[int, int] = {}
    for restore, version, moment in restores.iter_rows():
        if version is None and moment is not None:
            version = commits.filter(pl.col("version") < restore, pl.col("timestamp") <= moment)["version"].max()
        if version is None:
            continue
        by = {load: before for load, before in by.items() if load > version or before <= version}
        by |= {load: by.get(load, restore) for load in commits["version"] if version < load < restore}
    schema = {"version": pl.Int64(), "restored_by": pl.Int64()}
    rows = pl.DataFrame({"version": list(by), "restored_by": list(by.values())}, schema=schema)
    moments = commits.select(restored_by="version", restored_at="timestamp")
    return rows.join(moments, on="restored_by", how="left")


def _note() -> pl.Expr:
    times = format_expression("{} times the expected {} rows", pl.col("times").round(1), _in_figures(pl.col("usual")))
    back = format_expression(
        "repaired by {} after {}",
        version_label("taken_back_by"),
        elapsed_text(pl.col("taken_back_at") - pl.col("timestamp")),
    )
    return pl.concat_str([times, back], separator="; ", ignore_nulls=True)


def elapsed_text(span: pl.Expr) -> pl.Expr:
    """A duration as text in one unit: `41 days`, `3 h`, `12 min`."""
    minutes = span.dt.total_seconds() / 60
    days, hours = minutes / 1440, minutes / 60

    def whole(value: pl.Expr, unit: str) -> pl.Expr:
        return format_expression(f"{{}} {unit}", value.round(0).cast(pl.Int64))

    return (
        pl.when(days >= 1.5)
        .then(whole(days, "days"))
        .when(hours >= 1.5)
        .then(whole(hours, "h"))
        .otherwise(whole(minutes, "min"))
    )


def _in_figures(rows: pl.Expr) -> pl.Expr:
    return (
        pl.when(rows >= 1e6)
        .then(format_expression("{} M", (rows / 1e6).round(2)))
        .when(rows >= 1e4)
        .then(format_expression("{} k", (rows / 1e3).round(1)))
        .otherwise(format_expression("{}", rows.round(0).cast(pl.Int64)))
    )
