"""Snapshots and frames to findings, worst first, each with its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from lakeview.model.findings import Finding, Severity
from lakeview.model.frames import MOST_BYTES
from lakeview.model.snapshot import Snapshot
from lakeview.views.files.sizes import SMALL_FILE_BYTES, TARGET_HIGH, TARGET_LOW, FileFacts, file_facts
from lakeview.views.partitions.sizes import missing_partitions, partition_arrivals, partition_sizes, partition_skew
from lakeview.views.quality.verdicts import ConstraintVerdicts, Verdict
from lakeview.views.retention.maintenance import history_findings, maintenance_findings
from lakeview.views.retention.remedies import command
from lakeview.views.retention.simulation import Retention
from lakeview.views.schema.columns import silent_files
from lakeview.views.sums import total_of
from lakeview.views.timeline.commits import timeline as make_timeline
from lakeview.views.timeline.readability import LATE, ON_TIME, cadence, readability, readability_runs, runs_text
from lakeview.views.units import (
    counted,
    format_age,
    format_bytes,
    format_count,
    format_moment,
    format_percent,
    format_version,
)

UNREADABLE = "version-unreadable"

MOST_RULES_NAMED = 3

MOST_FILES_TIMES = 3
SMALL_FILES_AT_LEAST = 20
"""Files are too many when there are this many times as many as needed, and this many to be saved."""

SKEW_TIMES = 10.0
"""A partition is out of line with this many times the median bytes or files of its siblings."""

DELETED_SHARE = 0.1
"""Deleted rows still in files are many from this share on."""

ORDER = (Severity.BROKEN, Severity.ATTENTION, Severity.NOTE, Severity.PASS)

NUMBERS = ("nothing", "one thing", "two things", "three things", "four things", "five things", "six things")


FINDINGS = pl.Schema(
    {
        "id": pl.String(),
        "severity": pl.String(),
        "title": pl.String(),
        "evidence": pl.String(),
        "remedy": pl.String(),
        "command": pl.String(),
        "effect": pl.String(),
        "threshold": pl.String(),
        "place": pl.String(),
        "rule": pl.String(),
        "page": pl.String(),
        "commit": pl.Int64(),
    }
)
"""One row a finding, as `Finding` declares them; `title` is its claim."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The input of `findings`: a Snapshot, and where they were read VERSIONS, COMMITS, STATISTICS, LIFETIMES, what a
    cleanup finds, LOG_FILES, the proofs of constraints and PARTITION_ARRIVALS. What is None is not judged."""

    snapshot: Snapshot
    versions: pl.DataFrame | None = None
    commits: pl.DataFrame | None = None
    statistics: pl.DataFrame | None = None
    lifetimes: pl.DataFrame | None = None
    retention: Retention | None = None
    log: pl.DataFrame | None = None
    rules: ConstraintVerdicts | None = None
    arrivals: pl.DataFrame | None = None


def findings(evidence: Evidence, now: datetime) -> list[Finding]:
    """Every finding, worst first. PARTITION_ARRIVALS are computed from lifetimes and commits unless they are given."""
    snapshot, commits = evidence.snapshot, evidence.commits
    every = past_findings(evidence, now)
    every += [*_files(snapshot), *_statistics(snapshot, evidence.statistics), *_partitions(snapshot)]
    every += maintenance_findings(snapshot, log=evidence.log)
    if evidence.rules is not None:
        every += rule_findings(evidence.rules)
    if commits is not None:
        every += _cadence(commits, now)
        arrivals = _arrivals(snapshot, evidence.lifetimes, commits, evidence.arrivals)
        every += _late(arrivals)
        every += _loads(make_timeline(commits, evidence.lifetimes, arrivals=arrivals))
    return worst_first(every)


def past_findings(evidence: Evidence, now: datetime) -> list[Finding]:
    """Those of `findings` about old versions: which can be read (VERSIONS), and what retaining them costs."""
    versions, retention = evidence.versions, evidence.retention
    found = [] if versions is None else _versions(versions, evidence.snapshot.version)
    if retention is not None:
        found += history_findings(evidence.snapshot, retention, evidence.commits, now)
    return worst_first(found)


def findings_frame(findings: Sequence[Finding]) -> pl.DataFrame:
    """FINDINGS of a list, in its order."""
    rows = [
        {name: getattr(each, "claim" if name == "title" else name) for name in FINDINGS}
        | {"severity": each.severity.value}
        for each in findings
    ]
    return pl.DataFrame(rows, schema=FINDINGS, orient="row")


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by severity, stable; maintenance comes last: that a cleanup ends versions holds for most tables."""
    return sorted(findings, key=lambda f: (ORDER.index(f.severity), f.page == "health"))


def verdict(findings: Sequence[Finding]) -> str:
    """One sentence over the findings: `Readable and fresh, but three things need attention`."""
    ids = {f.id for f in findings}
    state = "Readable and fresh" if ON_TIME in ids else "Readable"
    broken = sum(f.severity is Severity.BROKEN for f in findings)
    attention = sum(f.severity is Severity.ATTENTION for f in findings)
    parts = []
    if broken:
        parts.append(f"{_number(broken)} {'is' if broken == 1 else 'are'} broken")
    if attention:
        things = _number(attention) if not broken else f"{_number(attention).split(' ')[0]}"
        parts.append(f"{things} {'needs' if attention == 1 else 'need'} attention")
    if UNREADABLE in ids:
        return f"Not readable: {' and '.join(parts)}"
    if parts:
        return f"{state}, but {' and '.join(parts)}"
    return f"{state}, and nothing needs attention"


def rule_findings(verdicts: ConstraintVerdicts) -> list[Finding]:
    """One finding about the table's constraints that some rows are proved to violate; none without such rows."""
    broken = verdicts.rules.filter(pl.col("verdict") == Verdict.VIOLATED.value)
    if broken.is_empty():
        return []
    first = broken.row(0, named=True)
    one = f"{first['name']} is violated"
    claim = one if broken.height == 1 else f"{broken.height:,} of the table's constraints are violated"
    texts = [
        f"{row['rule']} in {'' if row['certainty'] == 'exact' else 'at least '}"
        f"{counted(row['files_violating'], 'file')}, {counted(row['records_violating'], 'row')} or more"
        for row in broken.head(MOST_RULES_NAMED).iter_rows(named=True)
    ]
    more = f"; and {broken.height - MOST_RULES_NAMED:,} more" if broken.height > MOST_RULES_NAMED else ""
    return [
        Finding(
            "constraint-violated",
            Severity.ATTENTION,
            claim,
            f"{'; '.join(texts)}{more}",
            "every row satisfies the table's constraints, by its statistics",
            remedy="correct these rows, and check that their writer enforces the table's constraints",
            page="quality",
            effect="readers and optimizers rely on the constraints",
        )
    ]


def _files(snapshot: Snapshot) -> list[Finding]:
    facts = file_facts(snapshot.files)
    if facts.files == 0:
        return [Finding("no-files", Severity.NOTE, "The table holds no files", "no rows at this version", page="files")]
    return [*_impossible_sizes(facts), *_small_files(snapshot, facts), *_deleted_rows(snapshot, facts)]


def _impossible_sizes(facts: FileFacts) -> list[Finding]:
    if not facts.files_without_size:
        return []
    return [
        Finding(
            "impossible-file-sizes",
            Severity.ATTENTION,
            f"{facts.files_without_size:,} of {facts.files:,} files are recorded with a size that no file has",
            "how many bytes the table takes is unknown",
            f"from 0 to {format_bytes(MOST_BYTES)}",
            remedy="see which writer recorded it, and have these files rewritten",
            page="files",
            effect="readers that trust the size cannot read the file",
        )
    ]


def _small_files(snapshot: Snapshot, facts: FileFacts) -> list[Finding]:
    needed = facts.files if facts.ideal_files is None else facts.ideal_files
    limit = f"{MOST_FILES_TIMES} times the files needed, at least {SMALL_FILES_AT_LEAST} too many"
    if facts.files - needed < SMALL_FILES_AT_LEAST or facts.files < MOST_FILES_TIMES * needed:
        return []
    small = facts.small_files >= facts.files / 2
    size = format_bytes(SMALL_FILE_BYTES if small else TARGET_LOW)
    many = facts.small_files if small else facts.files
    claim = f"{many:,} of {facts.files:,} files are smaller than {'1 MiB' if small else size}"
    if not small:
        claim = f"{facts.files:,} files where {needed:,} would do"
    share = facts.small_bytes / facts.bytes if facts.bytes and facts.small_bytes is not None else None
    evidence = (
        f"{format_percent(share)} of the bytes, {format_percent(many / facts.files)} of the requests; "
        f"{counted(needed, 'file')} of up to {format_bytes(TARGET_HIGH)} would hold the table"
    )
    skew = partition_skew(partition_sizes(snapshot))
    if skew.partitions > 1 and skew.most_files_count > facts.files / 2:
        evidence += f"; {skew.most_files_count:,} of them in {skew.most_files}"
    remedy = "compact: OPTIMIZE, and fewer, larger commits or auto-compaction at the writer"
    effect, run = "a query opens and plans many files for little data", command("compact", snapshot)
    return [
        Finding(
            "small-files",
            Severity.ATTENTION,
            claim,
            evidence,
            limit,
            remedy=remedy,
            page="files",
            effect=effect,
            command=run,
        )
    ]


def _deleted_rows(snapshot: Snapshot, facts: FileFacts) -> list[Finding]:
    if not facts.deleted_records:
        return []
    rows = int(snapshot.files["records"].sum())
    share = facts.deleted_records / rows if rows else None
    heavy = share is not None and share >= DELETED_SHARE
    return [
        Finding(
            "deleted-rows",
            Severity.ATTENTION if heavy else Severity.PASS,
            "Deleted rows pile up in files" if heavy else "Deleted rows in files are few",
            f"{counted(facts.files_with_deletes, 'file')}, {format_count(facts.deleted_records, exact=True)} rows, "
            f"{format_percent(share)} of the table",
            f"{DELETED_SHARE:.0%} of the rows".replace("%", " %"),
            remedy="rewrite these files: OPTIMIZE or REORG" if heavy else None,
            page="files",
            effect="every read decodes rows that it then drops" if heavy else None,
            command=command("apply_deletes", snapshot) if heavy else None,
        )
    ]


def _statistics(snapshot: Snapshot, statistics: pl.DataFrame | None) -> list[Finding]:
    files = snapshot.files
    if files.is_empty():
        return []
    silent = files.filter(pl.col("records").is_null())
    what, unknown = "do not count their rows", "counts over them are"
    if silent.is_empty() and statistics is not None:
        silent, what = silent_files(statistics), "carry no statistics"
        unknown = "how many of their values are null is"
    if silent.is_empty():
        return [
            Finding(
                "files-with-row-counts",
                Severity.PASS,
                "Every file counts its rows",
                counted(files.height, "file"),
                "every file",
                page="files",
            )
        ]
    size = total_of(files["size"])
    skipping = "only partition values can skip them" if snapshot.partition_columns else "no filter can skip them"
    paths = silent.select(pl.col("path" if "path" in silent.columns else "_path").alias("path"))
    silent_bytes = total_of(files.join(paths, on="path", how="semi")["size"])
    share = silent_bytes / size if size and silent_bytes is not None else None
    return [
        Finding(
            "files-without-statistics",
            Severity.ATTENTION,
            f"{silent.height:,} of {files.height:,} files {what}",
            f"{format_percent(share)} of the bytes; {skipping}, and {unknown} unknown",
            "every file",
            remedy="rewrite these files with a writer that collects statistics, or compute them in place",
            page="files",
        )
    ]


def _partitions(snapshot: Snapshot) -> list[Finding]:
    found = []
    sizes = partition_sizes(snapshot)
    skew = partition_skew(sizes)
    limit = f"{SKEW_TIMES:g} times the median"
    if skew.files_ratio is not None and skew.files_ratio >= SKEW_TIMES and skew.partitions > 2:
        claim = f"{skew.most_files} has {skew.files_ratio:,.0f} times the files of its siblings"
        evidence = f"{counted(skew.most_files_count, 'file')}; median of all {skew.median_files:,}"
        remedy = "compact this partition"
        found.append(
            Finding(
                "partition-file-skew",
                Severity.ATTENTION,
                claim,
                evidence,
                limit,
                skew.most_files,
                remedy=remedy,
                page="partitions",
            )
        )
    if skew.bytes_ratio is not None and skew.bytes_ratio >= SKEW_TIMES and skew.partitions > 2:
        claim = f"{skew.largest} has {skew.bytes_ratio:,.0f} times the bytes of its siblings"
        evidence = f"{format_bytes(skew.largest_bytes)}; median of all {format_bytes(skew.median_bytes)}"
        remedy = "partition by something more even, or cluster instead"
        found.append(
            Finding(
                "partition-byte-skew",
                Severity.ATTENTION,
                claim,
                evidence,
                limit,
                skew.largest,
                remedy=remedy,
                page="partitions",
            )
        )
    missing = missing_partitions(snapshot)
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        claim = f"{counted(len(missing), 'partition')} missing in the sequence"
        evidence = f"{', '.join(missing[:3])}{more}, between {counted(sizes.height, 'partition')} that are there"
        found.append(
            Finding(
                "partitions-missing",
                Severity.ATTENTION,
                claim,
                evidence,
                "no gap",
                missing[0],
                remedy="load it again",
                page="partitions",
            )
        )
    return found


def _versions(versions: pl.DataFrame, version: int) -> list[Finding]:
    """What cannot be read: the version shown by a finding of its own, then the others."""
    ribbon = readability(versions)
    here = pl.col("version") == version
    own = ribbon.filter(here & (pl.col("state") != "kept"))
    ribbon = ribbon.with_columns(state=pl.when(here & (pl.col("state") == "broken")).then(None).otherwise("state"))
    runs = readability_runs(ribbon)
    remedy = "restore the missing file from a backup, or write the version off"
    found = [
        Finding(
            UNREADABLE,
            Severity.BROKEN,
            "This version cannot be read",
            reason or "the log does not say why",
            "the version that is looked at",
            format_version(version),
            remedy=remedy,
            page="timeline",
            effect="its log can be looked at, its rows cannot",
        )
        for reason in own["reason"]
    ]
    broken = runs_text(runs, "broken")
    if broken is not None:
        many = int(ribbon.select((pl.col("state") == "broken").sum()).item())
        reasons = ribbon.filter(pl.col("state") == "broken")["reason"].drop_nulls()
        evidence = reasons.to_list()[-1] if reasons.len() else "the log does not say why"
        claim = f"{broken} cannot be read"
        found.append(
            Finding(
                "versions-unreadable",
                Severity.BROKEN,
                claim,
                evidence,
                "every version since the oldest kept one",
                broken,
                remedy=remedy,
                page="timeline",
            )
            if many
            else Finding("versions-unreadable", Severity.NOTE, claim, evidence)
        )
    gone = runs_text(runs, "gone")
    if gone is not None:
        reasons = ribbon.filter(pl.col("state") == "gone")["reason"].drop_nulls()
        evidence = reasons.to_list()[-1] if reasons.len() else "older than what the log still holds"
        found.append(
            Finding(
                "versions-gone", Severity.NOTE, f"{gone} can no longer be read", evidence, place=gone, page="timeline"
            )
        )
    return found


def _cadence(commits: pl.DataFrame, now: datetime) -> list[Finding]:
    rhythm = cadence(commits, now)
    if rhythm.usual is None:
        return []
    evidence = (
        f"{format_age(rhythm.age)} ago, usually every {format_age(rhythm.usual)}; {format_moment(rhythm.last)} UTC"
    )
    limit = "twice the usual gap, and longer than nearly all before"
    if rhythm.late:
        claim, remedy = "No new data for longer than usual", "see whether the writer still runs"
        return [Finding(LATE, Severity.ATTENTION, claim, evidence, limit, remedy=remedy, page="timeline")]
    return [Finding(ON_TIME, Severity.PASS, "The last commit is on time", evidence, limit, page="timeline")]


def _loads(line: pl.DataFrame) -> list[Finding]:
    """The latest load that stands out and was not taken back; those that were are told as repaired."""
    open_ = line.filter(pl.col("suspicious") & pl.col("taken_back_by").is_null()).tail(1)
    back = line.filter(pl.col("suspicious") & pl.col("taken_back_by").is_not_null())
    found = []
    for row in open_.iter_rows(named=True):
        version = format_version(row["version"])
        evidence = f"{format_count(row['records_added'])} rows, {row['note']}; {format_moment(row['timestamp'])} UTC"
        limit = "3 times the usual rows"
        claim = f"{version} loaded far more rows than usual"
        remedy = "compare it with the version before"
        found.append(
            Finding(
                "load-too-large",
                Severity.ATTENTION,
                claim,
                evidence,
                limit,
                version,
                remedy=remedy,
                page="timeline",
                commit=row["version"],
            )
        )
    if back.height:
        largest = back.sort("records_added", descending=True, nulls_last=True).row(0, named=True)
        versions = ", ".join(format_version(v) for v in back["version"].head(3))
        more = f" and {back.height - 3:,} more" if back.height > 3 else ""
        claim = f"{versions} was a bad load, since repaired"
        if back.height > 1:
            claim = f"{back.height:,} loads were bad and are repaired: {versions}{more}"
        first = format_version(largest["version"])
        evidence = f"{first}: {format_count(largest['records_added'])} rows, {largest['note']}"
        commit = largest["version"]
        found.append(
            Finding("bad-loads-repaired", Severity.NOTE, claim, evidence, place=first, page="timeline", commit=commit)
        )
    return found


def _arrivals(
    snapshot: Snapshot, lifetimes: pl.DataFrame | None, commits: pl.DataFrame, arrivals: pl.DataFrame | None
) -> pl.DataFrame | None:
    """PARTITION_ARRIVALS where partitions can be a sequence in time: one key, three or more of them."""
    if lifetimes is None or len(snapshot.partition_columns) != 1:
        return None
    sizes = partition_sizes(snapshot)
    if sizes.height < 3:
        return None
    return arrivals if arrivals is not None else partition_arrivals(sizes, snapshot.files, lifetimes, commits)


def _late(arrivals: pl.DataFrame | None) -> list[Finding]:
    late = pl.DataFrame() if arrivals is None else arrivals.filter("late").sort("lag", descending=True)
    if late.is_empty():
        return []
    row = late.row(0, named=True)
    more = f"; {counted(late.height - 1, 'other partition')} late too" if late.height > 1 else ""
    first = f"{format_version(row['first_version'])} on {format_moment(row['first_written'])} UTC"
    evidence = f"first rows by {first}, after later ones{more}"
    claim = f"{row['partition_text']} arrived {row['note']}"
    limit = "in the order of the partitions"
    return [
        Finding("partition-late", Severity.ATTENTION, claim, evidence, limit, row["partition_text"], page="partitions")
    ]


def _number(n: int) -> str:
    return NUMBERS[n] if n < len(NUMBERS) else f"{n:,} things"
