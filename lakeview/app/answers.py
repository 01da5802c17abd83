"""What is opened to what the views say about it, each computed once for a version and kept.

Views are pure functions of frames; here they meet the caches. `latest` and `version` are part of every key.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from lakeview import views
from lakeview.app import cache, maintenance
from lakeview.app.memo import kept
from lakeview.app.session import Opened
from lakeview.model.errors import LakeviewError
from lakeview.model.findings import Finding
from lakeview.model.schema import Schema

MAX_SCHEMAS = 200
MOST_FILES_AT_A_GLANCE = 200_000
"""Of more files the statistics are read where they are asked for, on Schema, Pruning and Quality: it takes seconds."""
FEW_RULES = 4
MOST_RULE_VALUES = 4_000_000
"""So many files times constraints are looked at, and of any table the first FEW_RULES constraints."""

SPANS = {"all": None, "last year": 365, "last 90 days": 90, "last 30 days": 30, "last 7 days": 7}
"""What the timeline can be narrowed to, in days before the last commit."""


def timeline(now: Opened) -> pl.DataFrame:
    """TIMELINE, oldest first: exact from file lifetimes, or summed from commits where the files cannot be followed."""
    return timeline_of(now.address, now.latest, now.ref)


@kept(32)
def timeline_of(address: str, latest: int, ref: str | None) -> pl.DataFrame:
    """As `timeline`, by address, latest version and ref."""
    commits = cache.logged("history", address, latest)
    asides = views.timeline.branches.asides(commits, cache.logged("refs", address, latest), latest)
    try:
        lifetimes = cache.lifetimes(address, latest, ref)
        arrivals = _arrivals(address, latest, latest, ref)
    except LakeviewError:  # an unsupported or broken table still has commits to tell about
        return views.timeline.commits.timeline(commits, asides=asides)
    return views.timeline.commits.timeline(commits, lifetimes, arrivals=arrivals, asides=asides)


def branches(now: Opened) -> pl.DataFrame:
    """BRANCHES: every branch and tag, and how far it is from the default one."""
    return views.timeline.branches.branches(now.refs, now.history)


def aside(now: Opened) -> str | None:
    """Where the version shown lies, if it is not on the line that is told."""
    found = views.timeline.branches.asides(now.history, now.refs, now.latest).filter(pl.col("version") == now.version)
    return next(iter(found["note"]), None)


def arrivals(now: Opened) -> pl.DataFrame:
    """PARTITION_ARRIVALS: when each partition of the version shown was first written, and which came late."""
    return _arrivals(now.address, now.version, now.latest, now.ref)


@kept(32)
def _arrivals(address: str, version: int, latest: int, ref: str | None) -> pl.DataFrame:
    snapshot = cache.snapshot(address, version)
    sizes = views.partitions.sizes.partition_sizes(snapshot)
    lifetimes, commits = cache.lifetimes(address, latest, ref), cache.logged("history", address, latest)
    return views.partitions.sizes.partition_arrivals(sizes, snapshot.files, lifetimes, commits)


def schemas_up_to(now: Opened) -> pl.DataFrame:
    """SCHEMAS up to the version shown, oldest first: by the order of versions, whose numbers may be random."""
    newest_first = now.versions["version"]
    place = newest_first.index_of(now.version)
    return now.schemas if place is None else now.schemas.filter(pl.col("version").is_in(newest_first[place:].implode()))


def schema_versions(now: Opened) -> list[tuple[int, datetime | None, Schema]]:
    """Every schema the table had, oldest first, as far as those versions can still be read."""
    found: list[tuple[int, datetime | None, Schema]] = []
    for version, moment in now.schemas.tail(MAX_SCHEMAS).select("version", "timestamp").iter_rows():
        try:
            found.append((version, moment, cache.snapshot(now.address, version).schema))
        except LakeviewError:  # its log is gone; the schemas that can be read are told
            continue
    return found


def events(now: Opened) -> pl.DataFrame:
    """EVENTS: the few commits worth naming."""
    try:
        schemas = schema_versions(now)
    except LakeviewError:  # events are then named by their operation
        schemas = []
    return views.timeline.events.events(timeline(now), schemas)


def versions(now: Opened) -> pl.DataFrame:
    """VERSIONS of the line that is told, newest first, of which nobody looks whether they can be read."""
    return _of_line(now.versions, now.address, now.latest)


def ribbon(now: Opened) -> pl.DataFrame:
    """RIBBON of the line that is told: which versions can still be read, and which the next clean-up takes."""
    return _ribbon(now.address, now.latest)


@kept(32, 60)
def _ribbon(address: str, latest: int) -> pl.DataFrame:
    told = views.timeline.readability.readability(
        _of_line(cache.logged("readable versions", address, latest), address, latest)
    )
    if told.is_empty():
        return told
    try:
        found = maintenance.retention_of(address, latest)
    except LakeviewError:  # a broken or unsupported table: nobody can say what a clean-up would take
        return told
    dying = views.retention.simulation.retention_ribbon(found, found.policy.keep).filter(pl.col("state") == "risk")[
        "version"
    ]
    risk = (pl.col("state") == "kept") & pl.col("version").is_in(dying.implode())
    return told.with_columns(state=pl.when(risk).then(pl.lit("risk")).otherwise("state"))


def _of_line(frame: pl.DataFrame, address: str, latest: int) -> pl.DataFrame:
    """The rows of versions on the line that ends at `latest`."""
    asides = views.timeline.branches.asides(
        cache.logged("history", address, latest), cache.logged("refs", address, latest), latest
    )
    return frame.join(asides, on="version", how="anti", maintain_order="left")


def checkpoints(now: Opened) -> pl.DataFrame:
    """`version` of each checkpoint in the log; empty where it has none, or is not in sight."""
    try:
        found = maintenance.log_files(now.address, now.latest)
    except LakeviewError:  # the commits are told all the same
        return pl.DataFrame(schema={"version": pl.Int64()})
    return found.filter(pl.col("kind") == "checkpoint").select("version").drop_nulls().unique().sort("version")


def narrowed(frame: pl.DataFrame, lanes: Sequence[str], writer: str | None, span: str | None) -> pl.DataFrame:
    """TIMELINE rows of these lanes (all if none is named), this writer and this span before the last commit."""
    if lanes:
        bad = pl.col("suspicious") if "bad load" in lanes else pl.lit(value=False)
        frame = frame.filter(pl.col("lane").is_in(list(lanes)) | bad)
    if writer is not None:
        frame = frame.filter(pl.col("writer") == writer)
    days = SPANS.get(span or "all")
    last = frame["timestamp"].max()
    if days is not None and isinstance(last, datetime):
        frame = frame.filter(pl.col("timestamp") >= last - timedelta(days=days))
    return frame


def findings(now: Opened) -> list[Finding]:
    """What somebody should know about the version shown, worst first."""
    present = present_findings(now)  # what is wrong with the version itself is said before what is with its past
    return views.health.findings.worst_first([*_past_findings(now.address, now.version, now.latest), *present])


def present_findings(now: Opened) -> list[Finding]:
    """Those of `findings` that need no look whether the files of all versions are there."""
    return list(_present_findings(now.address, now.version, now.latest, now.ref, now.branch))


@kept(32, 60)
def _past_findings(address: str, version: int, latest: int) -> list[Finding]:
    commits = cache.logged("history", address, latest)
    return views.health.findings.past_findings(
        cache.snapshot(address, version),
        versions=cache.logged("readable versions", address, latest),
        retention=maintenance.retention_of(address, latest),  # of the whole table, whichever ref is looked at
        commits=views.timeline.branches.of_line(commits, cache.logged("refs", address, latest), latest),
        now=cache.now(),
    )


@kept(32, 60)
def _present_findings(address: str, version: int, latest: int, ref: str | None, branch: str | None) -> list[Finding]:
    snapshot = cache.snapshot(address, version)
    few = snapshot.num_files <= MOST_FILES_AT_A_GLANCE
    commits = cache.logged("history", address, latest)
    return views.health.findings.findings(
        snapshot,
        commits=views.timeline.branches.of_line(commits, cache.logged("refs", address, latest), latest),
        statistics=_told_by_statistics(address, version, branch).silent if few else None,
        lifetimes=cache.lifetimes(address, latest, ref),
        log=maintenance.log_files(address, latest),
        rules=kept_rules(address, version, branch),
        arrivals=_arrivals(address, version, latest, ref) if snapshot.partition_columns else None,
        now=cache.now(),
    )


@kept(16)
def kept_rules(address: str, version: int, branch: str | None) -> views.quality.constraints.KeptRules:
    """What the statistics of a version prove of its own constraints; of a huge table of the first ones."""
    snapshot = cache.snapshot(address, version, branch)
    rules = views.quality.constraints.stated_rules(snapshot)
    most = min(views.quality.constraints.MOST_RULES, max(FEW_RULES, MOST_RULE_VALUES // max(1, snapshot.num_files)))
    columns = views.quality.constraints.rule_columns(rules, snapshot.schema, most)
    statistics = cache.statistics(address, version, tuple(columns)) if rules else pl.DataFrame()
    return views.quality.constraints.kept_rules(snapshot, rules, statistics, most)


def layout_findings(now: Opened, page: str) -> list[Finding]:
    """What should be known of how the files lie, the findings that this page shows best."""
    return [finding for finding in present_findings(now) if finding.page == page]


@dataclass(frozen=True, slots=True)
class ToldByStatistics:
    """What the statistics of all columns say of a version: SCHEMA_TREE, NULL_SHARES, the rows of STATISTICS that say
    nothing, CLUSTERING, the columns that spare most first, DEPTHS of the first of them, and filters worth trying."""

    tree: pl.DataFrame
    shares: pl.DataFrame
    silent: pl.DataFrame
    clustering: pl.DataFrame
    depths: pl.DataFrame
    examples: tuple[str, ...]


@kept(32)
def _told_by_statistics(address: str, version: int, branch: str | None) -> ToldByStatistics:
    """All of it at once: statistics of a million files are read in seconds, and are too large to be kept."""
    snapshot = cache.snapshot(address, version, branch)
    statistics = cache.statistics(address, version)
    files = snapshot.files
    with ThreadPoolExecutor(2, thread_name_prefix="lakeview-statistics") as pool:  # of a million files a second each
        tree = pool.submit(
            views.schema.columns.schema_tree, snapshot.schema, statistics, snapshot.num_records, files=files
        )
        shares = pool.submit(views.schema.columns.null_shares, statistics, files)
        clustering = views.pruning.clustering.clustering(snapshot.schema, statistics, files)
        clustering = clustering.sort("reads_share", nulls_last=True, maintain_order=True)
        return ToldByStatistics(
            tree.result(),
            shares.result(),
            views.schema.columns.silent_files(statistics),
            clustering,
            views.pruning.clustering.depth_profile(statistics, files, next(iter(clustering["column"]), "")),
            tuple(views.pruning.plan.example_filters(snapshot, statistics, clustering)),
        )


def told_by_statistics(now: Opened) -> ToldByStatistics:
    """What statistics of all columns say of the version shown."""
    return _told_by_statistics(now.address, now.version, now.branch)


def few_files(now: Opened) -> bool:
    """Whether the statistics of all files are read to show the table at a glance."""
    return now.snapshot.num_files <= MOST_FILES_AT_A_GLANCE


def schema_tree(now: Opened) -> pl.DataFrame:
    """SCHEMA_TREE of the version shown, with what its statistics tell."""
    return told_by_statistics(now).tree


def null_shares(now: Opened) -> pl.DataFrame:
    """NULL_SHARES of the version shown, from statistics alone."""
    return told_by_statistics(now).shares


def cadence(now: Opened) -> views.timeline.readability.Cadence:
    """When the last commit came, and how often they usually come."""
    return views.timeline.readability.cadence(timeline(now).filter(pl.col("lane") != "aside"), cache.now())
