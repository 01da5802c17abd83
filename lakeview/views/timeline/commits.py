"""Commits to a timeline: what the table was after each, what each did, and which stand out.

States come from LIFETIMES where they are given (exact from the log), otherwise from summing commits since the first.
"""

import json

import polars as pl

from lakeview.model.column_values import format_expression
from lakeview.model.frames import UTC_MILLIS
from lakeview.views.conform import conform, first_label
from lakeview.views.sums import FLOWS, total
from lakeview.views.timeline.branches import on_branch
from lakeview.views.timeline.lifetimes import continuations
from lakeview.views.timeline.loads import BAD_LOAD, LATE_PARTITION, mark_loads
from lakeview.views.timeline.trend import states
from lakeview.views.units import count_text

TIMELINE = pl.Schema(
    {
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "operation": pl.String(),
        "lane": pl.String(),
        "writer": pl.String(),
        "files": pl.Int64(),
        "bytes": pl.Int64(),
        "records": pl.Int64(),
        **FLOWS,
        "schema_changed": pl.Boolean(),
        "data_change": pl.Boolean(),
        "suspicious": pl.Boolean(),
        "taken_back_by": pl.Int64(),
        "note": pl.String(),
        "label": pl.String(),
        "least_records": pl.Int64(),
        "files_redeleted": pl.Int64(),
    }
)
"""One row a commit, oldest first. `files`, `bytes`, `records`: the table after it, null when unknown; `least_records`:
at least so many rows, null where the files cannot be followed. What came and went leaves out files that stayed on
with other deleted rows, `files_redeleted` (null where the files cannot be followed), but for those rows.
`lane`: append, change, schema, maintenance or other; off-branch for a commit of another branch than the one looked at,
whose `files`, `bytes` and `records` are null and whose `note` says where it lies.
`writer`: user, else engine. `suspicious` with `note` (why) and `taken_back_by` (the version that removed the load, or
brought back the rows that it replaced)."""

_OPERATIONS = {
    "append": (
        "WRITE", "APPEND", "STREAMING UPDATE", "COPY INTO", "CREATE TABLE AS SELECT", "CONVERT", "CLONE",
    ),
    "change": (
        "DELETE", "UPDATE", "MERGE", "OVERWRITE", "RESTORE", "TRUNCATE", "REPLACE TABLE AS SELECT",
        "CREATE OR REPLACE TABLE AS SELECT",
    ),
    "schema": (
        "ADD COLUMNS", "CHANGE COLUMN", "CHANGE COLUMNS", "RENAME COLUMN", "DROP COLUMNS", "REPLACE COLUMNS",
    ),
    "maintenance": ("OPTIMIZE", "REORG", "REPLACE", "VACUUM START", "VACUUM END", "COMPUTE STATS"),
}  # fmt: skip
_OPERATION_LANES = {operation: lane for lane, operations in _OPERATIONS.items() for operation in operations}
"""The lane of an operation whose commit does not tell by what it did to the files."""


def commit_count_text(timeline: pl.DataFrame) -> str:
    """How many commits TIMELINE has: `17 commits, 4 off-branch`."""
    off_branch = timeline.height - on_branch(timeline).height
    return f"{count_text(timeline.height, 'commit')}{f', {off_branch:,} off-branch' if off_branch else ''}"


def up_to(timeline: pl.DataFrame, version: int) -> pl.DataFrame:
    """The commits of TIMELINE up to a version, by their order; all where it is not among them."""
    position = timeline["version"].index_of(version)
    return timeline if position is None else timeline.head(position + 1)


def version_before(timeline: pl.DataFrame, version: int) -> int | None:
    """The version before this one on the branch shown, None for the first."""
    branch = timeline.filter((pl.col("lane") != "off-branch") | (pl.col("version") == version))["version"]
    position = branch.index_of(version)
    return int(branch[position - 1]) if position else None


def commit_rows(timeline: pl.DataFrame) -> pl.DataFrame:
    """TIMELINE with `mark`, the lane of each commit or `anomaly` for a suspicious load, and `records_change`."""
    return timeline.with_columns(
        mark=pl.when("suspicious").then(pl.lit("anomaly")).otherwise("lane"),
        records_change=pl.col("records_added") - pl.col("records_removed"),
    )


def commit_message(actions: pl.DataFrame) -> str | None:
    """The `userMetadata` of a commit's actions (kind, path, action as JSON text), None where the writer left none."""
    for action in actions.filter(pl.col("action").str.contains('"userMetadata"', literal=True))["action"].head(1):
        message = json.loads(action).get("userMetadata")
        return message if isinstance(message, str) and message else None
    return None


def timeline(
    commits: pl.DataFrame,
    lifetimes: pl.DataFrame | None = None,
    *,
    arrivals: pl.DataFrame | None = None,
    off_branch: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """TIMELINE from COMMITS (any order) and, for exact states, LIFETIMES.

    PARTITION_ARRIVALS explain loads: the large one that brings a late partition is late, not suspicious. The commits
    of OFF_BRANCH are listed with the line, and change nothing in it.
    """
    off_branch_commits = commits.clear() if off_branch is None else commits.join(off_branch, on="version")
    on_line = (
        commits.join(off_branch_commits, on="version", how="anti")
        .sort("position")
        .with_columns(lane=_lane(), writer=pl.coalesce("user", "engine"), row=pl.int_range(pl.len(), dtype=pl.Int64))
    )
    line_states = _states_summed(on_line) if lifetimes is None else _states(on_line, lifetimes)
    loads = mark_loads(on_line.hstack(line_states), lifetimes)
    with_notes = loads.join(_late_loads(arrivals), on="version", how="left", maintain_order="left").with_columns(
        suspicious=pl.col("suspicious") & (pl.col("late").is_null() | pl.col("taken_back_by").is_not_null()),
        note=pl.concat_str("note", "late_note", separator="; ", ignore_nulls=True).replace("", None),
    )
    rows = with_notes.with_columns(label=_label(), files_redeleted=pl.lit(None, dtype=pl.Int64))
    if lifetimes is not None:
        rows = without_redeletes(rows, lifetimes)
    if not off_branch_commits.is_empty():
        rows = pl.concat([rows, _off_branch(off_branch_commits)], how="diagonal").sort("position")
    return conform(rows, TIMELINE)


def _off_branch(commits: pl.DataFrame) -> pl.DataFrame:
    """Commits of other lines, with the `note` that says where they are."""
    return commits.with_columns(
        lane=pl.lit("off-branch"), writer=pl.coalesce("user", "engine"), suspicious=pl.lit(value=False)
    )


def _late_loads(arrivals: pl.DataFrame | None) -> pl.DataFrame:
    """`version, late (which partition), late_note`: loads that brought a late partition's first rows."""
    if arrivals is None:
        return pl.DataFrame(schema={"version": pl.Int64(), "late": pl.String(), "late_note": pl.String()})
    return (
        arrivals.filter("late")
        .group_by(pl.col("first_version").alias("version"))
        .agg(
            late=format_expression(f"{LATE_PARTITION}{{}}", pl.col("partition_text").first()),
            late_note=format_expression("{} arrived {}", pl.col("partition_text").first(), pl.col("note").first()),
        )
    )


def _lane() -> pl.Expr:
    """What a commit did to files decides; the operation's name only where that says nothing."""
    first = pl.col("position") == pl.col("position").min()
    came, went = pl.col("files_added").fill_null(0), pl.col("files_removed").fill_null(0)
    moves = (came > 0) | (went > 0)
    is_counted = pl.col("records_removed").is_not_null()
    by_name = pl.col("operation").str.to_uppercase().replace_strict(_OPERATION_LANES, default="other")
    # what a restore brings back was loaded before, and counts as no load
    is_restore = (pl.col("operation").str.to_uppercase() == "RESTORE").fill_null(value=False)
    # "WRITE" without a single file made nothing of what its name says, unless it deleted rows by delete files
    is_empty = pl.col("files_added").is_not_null() & ((by_name == "append") | ((by_name == "change") & is_counted))
    labels = {
        "schema": pl.col("schema_changed") & ~first,
        "maintenance": moves & ~pl.col("data_change"),
        "change": moves & ((went > 0) | is_restore),
        "append": moves,
        "other": is_empty,
    }
    return first_label(labels, by_name.fill_null("other"))


def _states_summed(commits: pl.DataFrame) -> pl.DataFrame:
    """States by adding up commits: unknown from the first commit that does not say, from the first that is missing, and
    without the first commit."""
    is_first = (pl.col("version") == 0) | (pl.col("parent").is_null() & (pl.col("position") == 0))
    from_first = not commits.head(1).filter(is_first).is_empty()
    follows = (pl.col("parent") == pl.col("version").shift(1)).fill_null(value=True)

    def running(kind: str) -> pl.Expr:
        change = pl.col(f"{kind}_added") - pl.col(f"{kind}_removed")
        is_known = (change.is_not_null() & follows).cum_min() & pl.lit(from_first)
        return pl.when(is_known).then(change.cast(pl.Int128).cum_sum()).cast(pl.Int64, strict=False)

    unknown = pl.lit(None, dtype=pl.Int64)
    return commits.select(
        files=running("files"), bytes=running("bytes"), records=running("records"), least_records=unknown
    )


def _states(commits: pl.DataFrame, lifetimes: pl.DataFrame) -> pl.DataFrame:
    """States by counting which files live. What the commits do not reach happened before the first of them."""
    lean = lifetimes.select("added", "removed", "size", "records")
    return states(lean, commits["version"]).select("files", "bytes", "records", "least_records")


def _label() -> pl.Expr:
    """A few words for the chart, for commits worth naming; null for the others."""
    return (
        pl.when("suspicious")
        .then(pl.lit(BAD_LOAD))
        .when(pl.col("late").is_not_null())
        .then("late")
        .when(pl.col("lane").is_in(["schema", "maintenance"]) | (pl.col("operation") == "RESTORE"))
        .then("operation")
        .otherwise(None)
    )


def without_redeletes(timeline: pl.DataFrame, lifetimes: pl.DataFrame) -> pl.DataFrame:
    """TIMELINE with `files_redeleted`: of files that got another deletion vector only the rows deleted (or brought
    back) are counted. A commit that did not count such files, as one that it removes and adds, stays as it is.
    """
    continues = lifetimes.hstack(continuations(lifetimes))
    before = continues.filter("goes_on").select("path", "size", version="removed", records_before="records")
    if before.is_empty():
        return timeline.with_columns(files_redeleted=pl.lit(0, pl.Int64))
    after = continues.filter("went_on").select("path", version="added", records_after="records")
    starts = lifetimes.group_by(version="added").agg(starts=pl.len().cast(pl.Int64))
    change = pl.col("records_before") - pl.col("records_after")
    redeletes = (
        before.join(after, on=["path", "version"])
        .with_columns(rows_deleted=change.clip(0), rows_restored=(-change).clip(0), redeleted=pl.lit(1, pl.Int64))
        .group_by("version")
        .agg(map(total, ("redeleted", "size", "records_before", "records_after", "rows_deleted", "rows_restored")))
        .join(starts, on="version")
    )
    with_redeletes = timeline.join(redeletes, on="version", how="left", maintain_order="left")
    is_counted = pl.col("redeleted").is_not_null() & (pl.col("files_added") >= pl.col("starts"))
    counts = {
        "files_added": pl.col("files_added") - pl.col("redeleted"),
        "files_removed": pl.col("files_removed") - pl.col("redeleted"),
        "bytes_added": pl.col("bytes_added") - pl.col("size"),
        "bytes_removed": pl.col("bytes_removed") - pl.col("size"),
        "records_added": pl.col("records_added") - pl.col("records_after") + pl.col("rows_restored"),
        "records_removed": pl.col("records_removed") - pl.col("records_before") + pl.col("rows_deleted"),
    }
    return (
        with_redeletes.with_columns(
            pl.when(is_counted).then(count).otherwise(name).alias(name) for name, count in counts.items()
        )
        .with_columns(files_redeleted=pl.col("redeleted").fill_null(0))
        .select(timeline.columns)
    )
