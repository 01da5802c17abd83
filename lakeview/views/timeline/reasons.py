"""ANOMALIES and TIMELINE to the sentence that says why one commit stands out."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from lakeview.views.timeline.commits import on_branch
from lakeview.views.timeline.loads import BAD_LOAD
from lakeview.views.units import format_age, format_version


def reason(timeline: pl.DataFrame, anomalies: pl.DataFrame, version: int) -> tuple[str, str] | None:
    """The sentence, and the colour of its meaning: `Bad load: delay reaches 9,000, expected at most 900; repaired by
    v5, data-desk, 5 days later`, or of the commit that repaired it: `Repairs v4: delay reaches 9,000, ...`. Red is
    open, orange was repaired, gray explains; None for a commit like the others."""
    for load in anomalies.filter(pl.col("version") == version).iter_rows(named=True):
        parts = [*load["reasons"]]
        if load["repaired_by"] is not None:
            later = None
            if load["repaired_at"] is not None and load["timestamp"] is not None:
                later = f"{format_age(load['repaired_at'] - load['timestamp'])} later"
            by = filter(None, (format_version(load["repaired_by"]), load["repairer"], later))
            parts.append(f"repaired by {', '.join(by)}")
        colour = "red" if load["repaired_by"] is None else "orange"
        return f"{BAD_LOAD.capitalize()}: {'; '.join(parts)}", colour
    for load in anomalies.filter(pl.col("repaired_by") == version).iter_rows(named=True):
        return f"Repairs {format_version(load['version'])}: {'; '.join(load['reasons'])}", "gray"
    note = timeline.row(by_predicate=pl.col("version") == version, named=True)["note"]
    return (note, "gray") if note else None


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
