"""Simulate a vacuum or snapshot expiration for any retention, from versions, lifetimes and a policy.

Every object has a minimum retention that retains it (`needs_ms`): a cleanup with a shorter one removes it. A removed
file needs the time since its removal, and a version as much as the most demanding of its files; where versions expire
by age it is the other way round. One pass answers for every retention.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from lakeview.model.errors import InvalidRequestError
from lakeview.views.conform import conform
from lakeview.views.retention.policy import RetentionPolicy, version_ages
from lakeview.views.sums import total_of
from lakeview.views.timeline.live_intervals import Stays, with_positions
from lakeview.views.timeline.readability import RIBBON, readability, readability_runs, runs_text
from lakeview.views.units import count_text

VERSION_NEEDS = pl.Schema(
    {**RIBBON, "position": pl.Int64(), "readable": pl.Boolean(), "needs_ms": pl.Int64()},
)
"""One row a version, oldest first: RIBBON, its place, and the least retention in milliseconds that keeps it readable;
0 where no cleanup removes it, null where it is not readable now or where that is unknown."""

FILE_NEEDS = pl.Schema({"path": pl.String(), "size": pl.Int64(), "removed": pl.Int64(), "needs_ms": pl.Int64()})
"""One row a data file that is no longer live and that a readable version still needs, so that it is there. `removed`:
the version that removed it last; `needs_ms` as in VERSION_NEEDS."""

CURVE = pl.Schema({"days": pl.Float64(), "bytes": pl.Int64(), "files": pl.Int64(), "versions": pl.Int64()})
"""One row a step, by retention in days: what a cleanup removes that retains everything up to this age. Between two
steps it removes as much as at the first of them."""

_MOST_STEPS = 400
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Retention:
    """The input of a cleanup: VERSION_NEEDS, FILE_NEEDS and the policy. `live_bytes` of the latest version, None if
    unknown.

    `bound`: why the bytes are a lower bound; None where they are exact. `refs`: how many branches and tags retain
    versions of the table, whichever ref is selected.
    """

    policy: RetentionPolicy
    versions: pl.DataFrame
    files: pl.DataFrame
    live_bytes: int | None
    bound: str | None
    refs: int = 0

    @property
    def what(self) -> str:
        """The text for what a cleanup selects by age."""
        if self.policy.rule == "removed files":
            return "removed files"
        return (
            f"versions of all {count_text(self.refs, 'branch or tag', 'branches and tags')}"
            if self.refs > 1
            else "versions"
        )

    @property
    def lists_all_files(self) -> bool:
        """True if the log lists the files of every version, so that one may go and free none: its files are live in
        others. Where removed files go, a version ends with a file of its own."""
        return self.policy.rule == "old versions"

    @property
    def has_no_times(self) -> bool:
        """True if there are versions and none has a timestamp: a share, which does not record what versions retain."""
        return not self.versions.is_empty() and self.versions["timestamp"].is_null().all()

    @property
    def retained_bytes(self) -> int:
        """Bytes of files that only old, readable versions need; those of unknown size add nothing, as `bound` says."""
        return total_of(self.files["size"].fill_null(0)) or 0

    @property
    def stored_bytes(self) -> int | None:
        """Bytes of the latest version and of what only old, readable versions need; None if either is unknown."""
        return None if self.has_no_times or self.live_bytes is None else self.live_bytes + self.retained_bytes


@dataclass(frozen=True, slots=True)
class Simulation:
    """What one cleanup removes. `share` of the bytes retained for old versions, None where there are none;
    `lost_versions`: those that become unreadable, as text, None for none; `ribbon`: RIBBON with the state `at risk`;
    `is_unknown`: whether the bytes are unknown, as versions become unreadable whose files the log does not list."""

    keep: timedelta
    files: int
    bytes: int
    share: float | None
    versions: int
    versions_left: int
    lost_versions: str | None
    ribbon: pl.DataFrame
    is_unknown: bool


def retention(
    versions: pl.DataFrame,
    lifetimes: pl.DataFrame,
    policy: RetentionPolicy,
    *,
    commits: pl.DataFrame | None = None,
    refs: pl.DataFrame | None = None,
    tombstones: pl.DataFrame | None = None,
    now: datetime,
) -> Retention:
    """Retention at `now` (aware), from VERSIONS and LIFETIMES.

    By removed files the timestamp of a removal is its tombstone's (TOMBSTONES), else its commit's. By old versions REFS
    and COMMITS (for parents) are needed. InvalidRequestError for VERSIONS whose readability was not checked.
    """
    if versions["readable"].null_count():
        raise InvalidRequestError(
            "the readability of these versions was not checked, so the files they retain are unknown",
            fix="give versions() of the table, without look=False",
            kind="unknown-readability",
        )
    readable = versions.reverse()["readable"]
    readable_versions = readability(versions).with_columns(readable, position=pl.int_range(pl.len(), dtype=pl.Int64))
    stays = with_positions(lifetimes, readable_versions["version"]).select(
        "path", "deletion_vector", "size", removed_by="removed", added="from", removed="to"
    )
    required_files = _required_files(stays, readable_versions)
    if policy.rule == "old versions":
        needs = version_ages(readable_versions, commits, refs, policy, now)
        files = _files_by_versions(required_files, needs)
        bound = "files of branches, of deletes and of metadata are not counted"
    else:
        # most of many files were never removed: nothing of theirs is due
        paths = stays.filter(pl.col("removed").is_not_null())["path"]
        ends = _add_ages(stays.filter(pl.col("path").is_in(paths.implode())), readable_versions, tombstones, now)
        needs = (
            Stays(ends, readable_versions["position"])
            .extremes({"needs_ms": ("max", ends["needs_ms"])})["needs_ms"]
            .fill_null(0)
        )
        ages = ends.group_by("path").agg(pl.col("path_ms").first())
        files = required_files.join(ages, on="path", how="left", maintain_order="left").with_columns(needs_ms="path_ms")
        bound = "files that the log no longer names are not counted"
    with_needs = readable_versions.with_columns(needs_ms=pl.when("readable").then(needs).otherwise(None))
    live = lifetimes.filter(pl.col("removed").is_null())
    if live["deletion_vector"].null_count() < live.height:  # else no file stays twice
        live = live.unique("path")
    num_refs = 0 if refs is None else refs.height
    was_empty = lifetimes.is_empty() and num_refs < 2  # always, and no branch has files
    return Retention(
        policy,
        conform(with_needs, VERSION_NEEDS),
        conform(files, FILE_NEEDS),
        total_of(live["size"]),
        None if was_empty else f"{bound}, nor are those of unknown size" if files["size"].has_nulls() else bound,
        num_refs,
    )


def simulate(retention: Retention, keep: timedelta) -> Simulation:
    """Simulate a cleanup that retains everything up to the age `keep`."""
    limit = keep // timedelta(milliseconds=1)
    removals = retention.files.filter(pl.col("needs_ms") > limit)
    ribbon = retention_ribbon(retention, keep)
    versions_at_risk = ribbon.filter(pl.col("state") == "at risk").height
    size = total_of(removals["size"].fill_null(0)) or 0
    whole = retention.retained_bytes
    return Simulation(
        keep,
        removals.height,
        size,
        size / whole if whole else None,
        versions_at_risk,
        int(ribbon.select((pl.col("state") == "kept").sum()).item()),
        runs_text(readability_runs(ribbon), "at risk", limit=2),
        ribbon,
        versions_at_risk > 0 and not size and not (retention.lists_all_files and removals.is_empty()),
    )


def retention_ribbon(retention: Retention, keep: timedelta) -> pl.DataFrame:
    """RIBBON in which versions that a cleanup removes have the state `at risk`."""
    limit = keep // timedelta(milliseconds=1)
    dies = (pl.col("state") == "kept") & (pl.col("needs_ms") > limit)
    ribbon = retention.versions.with_columns(state=pl.when(dies).then(pl.lit("at risk")).otherwise("state"))
    return conform(ribbon, RIBBON)


def cleanup_sentence(done: Simulation, latest: int) -> str:
    """What a cleanup means for the version `latest`, and for others: `Current data is safe; 1 old version goes, v1`."""
    states = dict(done.ribbon.select("version", "state").iter_rows())
    data = "Current data cannot be read" if states.get(latest) in ("broken", "gone") else "Current data is safe"
    if not done.versions:
        return f"{data}; every {'' if {*states.values()} == {'kept'} else 'readable '}version stays readable"
    versions = count_text(done.versions, "old version goes", "old versions go")
    return f"{data}; {versions}{'' if done.lost_versions is None else f', {done.lost_versions}'}"


def at_risk(ribbon: pl.DataFrame, retention: Retention) -> pl.DataFrame:
    """RIBBON in which versions that the next cleanup by the table's own policy would end have the state `at risk`."""
    ending = retention_ribbon(retention, retention.policy.keep).filter(pl.col("state") == "at risk")["version"]
    risk = (pl.col("state") == "kept") & pl.col("version").is_in(ending.implode())
    return ribbon.with_columns(state=pl.when(risk).then(pl.lit("at risk")).otherwise("state"))


def retention_curve(retention: Retention) -> pl.DataFrame:
    """CURVE: every retention at which a cleanup removes something else, from 0 to one that removes nothing.

    With more than _MOST_STEPS steps some between are left out; the others are exact.
    """
    files = retention.files.group_by("needs_ms").agg(bytes=pl.col("size").sum(), files=pl.len().cast(pl.Int64))
    versions = retention.versions.drop_nulls("needs_ms").group_by("needs_ms").agg(versions=pl.len().cast(pl.Int64))
    thresholds = (
        pl.concat([files, versions], how="diagonal")
        .group_by("needs_ms")
        .agg(pl.col("bytes", "files", "versions").sum())
        .filter(pl.col("needs_ms") > 0)
    )
    zero = pl.DataFrame({"needs_ms": [0]}, schema={"needs_ms": pl.Int64()})
    steps = pl.concat([zero, thresholds], how="diagonal").sort("needs_ms").fill_null(0)
    # at a retention of `needs_ms` everything that needs more goes
    remainders = [(pl.col(n).sum() - pl.col(n).cum_sum()).alias(n) for n in ("bytes", "files", "versions")]
    steps = steps.select((pl.col("needs_ms") / _DAY_MS).alias("days"), *remainders)
    if steps.height > _MOST_STEPS:
        steps = steps.gather_every(-(-steps.height // _MOST_STEPS)).extend(steps.tail(1))
    return conform(steps, CURVE).unique("days", keep="last", maintain_order=True)


def _required_files(stays: pl.DataFrame, versions: pl.DataFrame) -> pl.DataFrame:
    """Files without a live stay that a readable version needs: `path, size, removed, first, last` place it was in."""
    readable = versions.filter("readable").select(reader="position").sort("reader")
    removed_files = stays.filter(pl.col("removed").is_not_null())
    live = stays.filter(pl.col("removed").is_null() & pl.col("path").is_in(removed_files["path"].implode()))
    removed_files = removed_files.join(live, on="path", how="anti")
    # the first readable version from `added` on needs the file if it comes before `removed`
    first = (
        removed_files.with_columns(pl.col("added").fill_null(0))
        .sort("added")
        .join_asof(readable, left_on="added", right_on="reader", strategy="forward", coalesce=False)
    )
    paths = first.filter(pl.col("reader") < pl.col("removed")).select("path").unique()
    # every interval of such a file counts: one that was added again is retained by any version, readable or not
    return (
        first.join(paths, on="path", how="semi", maintain_order="left")
        .group_by("path", maintain_order=True)
        .agg(
            pl.col("size").first(),
            removed=pl.col("removed_by").sort_by("removed").last(),
            first=pl.col("added").min(),
            last=pl.col("removed").max() - 1,
        )
    )


def _add_ages(
    stays: pl.DataFrame, versions: pl.DataFrame, tombstones: pl.DataFrame | None, now: datetime
) -> pl.DataFrame:
    """Stays with `path_ms` (how long ago the file was removed last, 0 while it is live) and `needs_ms`: the same, or
    more where its deletion vector went for good earlier."""
    moments = versions.select(removed="position", moment="timestamp")
    with_moments = stays.join(moments, on="removed", how="left", maintain_order="left")
    if tombstones is not None and not tombstones.is_empty():
        tombstone_times = tombstones.select("path", "deletion_vector", "deleted").unique(["path", "deletion_vector"])
        with_moments = with_moments.join(
            tombstone_times, on=["path", "deletion_vector"], how="left", nulls_equal=True, maintain_order="left"
        ).with_columns(
            moment=pl.when(pl.col("removed").is_null()).then(None).otherwise(pl.coalesce("deleted", "moment"))
        )
    age = (pl.lit(now).cast(versions.schema["timestamp"]) - pl.col("moment")).dt.total_milliseconds().clip(0)
    with_ages = with_moments.with_columns(stay_ms=pl.when(pl.col("removed").is_null()).then(0).otherwise(age))
    with_ages = with_ages.with_columns(path_ms=pl.col("stay_ms").min().over("path"))
    if with_ages["deletion_vector"].null_count() == with_ages.height:
        return with_ages.with_columns(needs_ms="path_ms")
    # a vector may come back, as a file may: with a restored version
    own = pl.col("stay_ms").min().over("path", "deletion_vector")
    vector = pl.when(pl.col("deletion_vector").is_not_null()).then(own).otherwise(0)
    return with_ages.with_columns(needs_ms=pl.max_horizontal("path_ms", vector))


def _files_by_versions(files: pl.DataFrame, needs: pl.Series) -> pl.DataFrame:
    """FILE_NEEDS where versions expire: a file goes with the last version that has it, the one that needs least.

    The least over a span of versions is the least of two spans of a power of two: one pass a power.
    """
    rows = files.with_row_index("row").with_columns(
        level=63 - (pl.col("last") - pl.col("first") + 1).bitwise_leading_zeros().cast(pl.Int64)
    )
    parts, least = [], needs
    for level in range(int(rows["level"].max() or 0) + 1):  # type: ignore[arg-type]  # an integer column's maximum
        part = rows.filter(pl.col("level") == level)
        ends = part["last"] - (1 << level) + 1
        pairs = pl.DataFrame({"row": part["row"], "a": least.gather(part["first"]), "b": least.gather(ends)})
        parts.append(pairs.select("row", needs_ms=pl.min_horizontal("a", "b")))
        shifted_needs = least.shift(-(1 << level))
        least = pl.DataFrame({"a": least, "b": shifted_needs}).select(pl.min_horizontal("a", "b")).to_series()
    return rows.join(pl.concat(parts), on="row", how="left", maintain_order="left")
