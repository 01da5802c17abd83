"""A timeline to the few commits worth naming in a picture."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.model.schema import leaf_name
from lakeview.views.schema.column_history import SchemaVersion
from lakeview.views.schema.diff import Change, field_changes

EVENTS = pl.Schema(
    {
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "label": pl.String(),
        "lane": pl.String(),
        "suspicious": pl.Boolean(),
        "taken_back": pl.Boolean(),
    }
)
"""One row an event, oldest first: `label` a few words, `lane` that of the commit."""

_ARROW = "\N{RIGHTWARDS ARROW}"


def events(timeline: pl.DataFrame, schemas: Sequence[SchemaVersion] | None = None, *, limit: int = 8) -> pl.DataFrame:
    """EVENTS: at most `limit` commits of TIMELINE, loads that stand out and schema changes first.

    With the schemas the table had (oldest first), a schema change is named by what it changed.
    """
    commits = pl.DataFrame(
        list(_schema_labels(schemas or [])), schema={"version": pl.Int64(), "event": pl.String()}, orient="row"
    )
    rank = (
        pl.when("suspicious")
        .then(0)
        .when(pl.col("lane") == "schema")
        .then(1)
        .when((pl.col("operation") == "RESTORE") | (pl.col("lane") == "append"))
        .then(2)
        .otherwise(3)
    )
    # of maintenance, what changed the number of files most is worth a name
    effect = (pl.col("files_removed").fill_null(0) - pl.col("files_added").fill_null(0)).abs()
    return (
        timeline.join(commits, on="version", how="left", maintain_order="left")
        .with_columns(label=pl.when("suspicious").then("label").otherwise(pl.coalesce("event", "label")))
        .filter(pl.col("label").is_not_null())
        .with_columns(rank=rank, effect=effect)
        # the maintenance that runs every night is no event: only the greatest few are
        .with_columns(nth=pl.col("effect").rank("ordinal", descending=True).over("rank"))
        .filter((pl.col("rank") < 3) | ((pl.col("nth") <= 2) & (pl.col("effect") > 0)))
        .sort("rank", "effect", descending=[False, True])
        .head(limit)
        .with_columns(taken_back=pl.col("taken_back_by").is_not_null())
        .sort("timestamp", maintain_order=True)
        .select(EVENTS.names())
        .cast(EVENTS)
    )


def _schema_labels(schemas: Sequence[SchemaVersion]) -> list[tuple[int, str]]:
    labels = []
    for (_, _, before), (version, _, after) in pairwise(schemas):
        changes = [c for c in field_changes(before, after) if c.kind not in ("same", "moved", "metadata")]
        if changes:
            more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
            labels.append((version, f"{_in_words(changes[0])}{more}"))
    return labels


def _in_words(change: Change) -> str:
    """`+ cancel_code`, `dep_delay integer → long`, `carrier → airline`."""
    name = leaf_name(change.path or change.before_path or ())
    match change.kind:
        case "added":
            return f"+ {name}"
        case "dropped":
            return f"\N{MINUS SIGN} {name}"
        case "renamed":
            return f"{change.before} {_ARROW} {change.after}"
        case "type":
            return f"{name} {change.before} {_ARROW} {change.after}"
        case "nullability":
            return f"{name} {change.after}"
        case _:
            return f"{name}: {change.kind}"
