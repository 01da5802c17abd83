"""ANOMALIES and TIMELINE to the sentence that says why one commit stands out."""

from __future__ import annotations

import polars as pl

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
