"""CHANGES_PLAN to the rows that commits changed, by version and before any row is read; and which commits to read."""

import polars as pl

from lakeview.views.conform import conform
from lakeview.views.sums import total
from lakeview.views.timeline.branches import on_branch
from lakeview.views.units import version_label

CHANGE_COSTS = pl.Schema(
    {
        "version": pl.Int64(),
        "change_type": pl.String(),
        "files": pl.Int64(),
        "rows": pl.Int64(),
        "bytes": pl.Int64(),
        "source": pl.String(),
    }
)
"""One row a version and type of change, newest version first, by the order of the plan. `change_type`: insert,
delete, or `recorded` where files of a change feed have it row by row; `rows` null where a file does not count them;
`bytes` that reading them reads at most, null where one is unknown; `source` as CHANGES_PLAN has it."""


def change_costs(plan: pl.DataFrame) -> pl.DataFrame:
    """CHANGE_COSTS of a CHANGES_PLAN."""
    costs = plan.group_by("version", pl.col("change_type").fill_null("recorded"), "source", maintain_order=True).agg(
        files=pl.len(),
        rows=total("rows"),
        bytes=total("size"),
    )
    return costs.reverse().pipe(conform, CHANGE_COSTS)


def first_of_last(timeline: pl.DataFrame, version: int, commits: int) -> int | None:
    """The version of the first of the last `commits` commits up to `version`, None where it is not on the branch."""
    branch = on_branch(timeline)["version"]
    position = branch.index_of(version)
    return None if position is None else int(branch[max(position + 1 - commits, 0)])


def first_after(timeline: pl.DataFrame, base: int, version: int) -> int | None:
    """The version of the commit after `base`, None where that is not a version of the branch before `version`."""
    branch = on_branch(timeline)["version"]
    position, before = branch.index_of(version), branch.index_of(base)
    return None if position is None or before is None or before >= position else int(branch[before + 1])


def for_display(changes: pl.DataFrame) -> pl.DataFrame:
    """CHANGES with the change, the version as text and the timestamp before the table's own columns."""
    first = ("_change_type", "_commit_version", "_commit_timestamp")
    # the user's columns may be called anything, also a pattern: they are taken by place
    own = [series for series in changes.get_columns() if series.name not in first]
    labels = changes.select(version_label("_commit_version")).to_series()
    return pl.DataFrame([changes["_change_type"], labels, changes["_commit_timestamp"], *own])
