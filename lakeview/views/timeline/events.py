"""A timeline to the few commits worth naming in a picture, and to the reason why one commit stands out."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import polars as pl

from lakeview.model.findings import Severity
from lakeview.model.frames import UTC_MILLIS
from lakeview.model.schema import leaf_name
from lakeview.views.conform import conform, first_label
from lakeview.views.schema.column_history import SchemaVersion
from lakeview.views.schema.diff import Change, field_changes
from lakeview.views.timeline.branches import on_branch
from lakeview.views.timeline.loads import BAD_LOAD
from lakeview.views.units import format_age, format_version

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
    is_load = (pl.col("operation") == "RESTORE") | (pl.col("lane") == "append")
    rank = first_label({0: "suspicious", 1: pl.col("lane") == "schema", 2: is_load}, 3)
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
        .pipe(conform, EVENTS)
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


def reason(timeline: pl.DataFrame, anomalies: pl.DataFrame, version: int) -> tuple[str, Severity] | None:
    """The sentence, and whether it needs attention: `Bad load: delay reaches 9,000, expected at most 900; repaired by
    v5, data-desk, 5 days later`, or of the commit that repaired it: `Repairs v4: delay reaches 9,000, ...`; None for a
    commit like the others."""
    for load in anomalies.filter(pl.col("version") == version).iter_rows(named=True):
        repair = repair_text(load)
        parts = [*load["reasons"], *([] if repair is None else [repair])]
        return f"{BAD_LOAD.capitalize()}: {'; '.join(parts)}", Severity.ATTENTION if repair is None else Severity.NOTE
    for load in anomalies.filter(pl.col("repaired_by") == version).iter_rows(named=True):
        return f"Repairs {format_version(load['version'])}: {'; '.join(load['reasons'])}", Severity.NOTE
    note = timeline.row(by_predicate=pl.col("version") == version, named=True)["note"]
    return (note, Severity.NOTE) if note else None


def repair_text(load: Mapping[str, Any]) -> str | None:
    """What repaired a load of ANOMALIES: `repaired by v5, data-desk, 5 days later`; None while it is open."""
    if load["repaired_by"] is None:
        return None
    is_dated = load["repaired_at"] is not None and load["timestamp"] is not None
    later = f"{format_age(load['repaired_at'] - load['timestamp'])} later" if is_dated else None
    return f"repaired by {', '.join(filter(None, (format_version(load['repaired_by']), load['repairer'], later)))}"


def reason_columns(
    timeline: pl.DataFrame, anomalies: pl.DataFrame, version: int, start: int | None = None
) -> list[str]:
    """The columns for which commits stand out: of one version, or of those from `start` on; those of open loads first,
    then of the newest."""
    places = {each: place for place, each in enumerate(on_branch(timeline)["version"])}
    ends = sorted(places.get(each, -1) for each in (version, version if start is None else start))
    loads = [each for each, place in places.items() if ends[0] <= place <= ends[1]] if ends[0] >= 0 else [version]
    columns = anomalies.filter(pl.col("version").is_in(loads))["column"].drop_nulls()
    return columns.unique(maintain_order=True).to_list()


def columns_first(rows: pl.DataFrame, columns: Sequence[str], after: int = 0) -> pl.DataFrame:
    """The rows with some of their columns before the others, behind the first `after`: why they are shown is seen at
    once. Names of columns that they do not have are left out."""
    head, names = rows.columns[:after], rows.columns[after:]
    first = [name for name in columns if name in names]
    # by name: a name like ^x$ is no pattern
    return pl.DataFrame([rows[name] for name in (*head, *first, *(name for name in names if name not in first))])
