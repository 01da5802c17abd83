"""Tables of a lake, each read once, to one ranked list: what needs attention first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import polars as pl

from lakeview.model.errors import LakeviewError
from lakeview.model.findings import Severity
from lakeview.model.snapshot import Snapshot
from lakeview.views.files.sizes import file_facts
from lakeview.views.health.findings import findings, verdict
from lakeview.views.quality.constraints import KeptRules, kept_rules, stated_rules
from lakeview.views.retention.simulation import Retention
from lakeview.views.timeline.readability import cadence
from lakeview.views.units import counted


class LakeState(StrEnum):
    """How a table stands, what needs somebody most first."""

    UNREADABLE = "unreadable"
    BROKEN = "broken"
    ATTENTION = "attention"
    FINE = "fine"
    UNREAD = "not read"


LAKE = pl.Schema(
    {
        "name": pl.String(),
        "address": pl.String(),
        "format": pl.String(),
        "state": pl.String(),
        "verdict": pl.String(),
        "finding": pl.String(),
        "page": pl.String(),
        "version": pl.Int64(),
        "records": pl.Int64(),
        "bytes": pl.Int64(),
        "files": pl.Int64(),
        "last": pl.Datetime("ms", "UTC"),
        "age": pl.Duration("ms"),
        "usual": pl.Duration("ms"),
        "late": pl.Boolean(),
        "broken": pl.Int64(),
        "attention": pl.Int64(),
        "small_share": pl.Float64(),
        "versions": pl.Int64(),
        "retained": pl.Int64(),
        "retained_bound": pl.Boolean(),
        "judged": pl.String(),
    }
)
"""One row a table, by what needs attention: LakeState, how many findings are broken and need attention, lateness, size.
`verdict` and `finding` (the worst, with its evidence; null if nothing needs attention) are sentences, of an unreadable
table why it is so; `page` shows the finding best; `age` of the last commit that changed data and the `usual` gap
between such commits. `small_share`: of the files, those below 1 MiB; `versions` that can be read; `retained`: bytes of
files that only old versions need, at least so many where `retained_bound`; `judged`: what the verdict is made from.
What is not known, and all of a table that was not read, is null."""

WHOLE = "the whole log"
LOG = "log but statistics"
NEWEST = "newest version, commits"

MOST_FILES = 50_000
MOST_COMMITS = 2_000
MOST_STATISTICS = 500_000
"""Tables of more files or commits are judged by their newest version and their commits alone, and those of more
statistics (files times columns) without them: a lake holds many tables, and each is read in about a second."""


@dataclass(frozen=True, slots=True)
class LakeEntry:
    """One table of a lake: a row of LAKE, its fields as there."""

    name: str
    address: str
    format: str
    state: LakeState = LakeState.UNREAD
    verdict: str | None = None
    finding: str | None = None
    page: str | None = None
    version: int | None = None
    records: int | None = None
    bytes: int | None = None
    files: int | None = None
    last: datetime | None = None
    age: timedelta | None = None
    usual: timedelta | None = None
    late: bool | None = None
    broken: int | None = None
    attention: int | None = None
    small_share: float | None = None
    versions: int | None = None
    retained: int | None = None
    retained_bound: bool | None = None
    judged: str | None = None


@dataclass(frozen=True, slots=True)
class Depth:
    """What the whole log of a table tells beside its newest version and its commits: LIFETIMES, what a clean-up finds,
    LOG_FILES, and STATISTICS of all columns, None where they were not asked for."""

    lifetimes: pl.DataFrame
    retention: Retention
    log: pl.DataFrame
    statistics: pl.DataFrame | None


def is_shallow(snapshot: Snapshot, commits: pl.DataFrame) -> bool:
    """Whether a table is small enough for its whole log to be read among many."""
    return snapshot.num_files <= MOST_FILES and commits.height <= MOST_COMMITS


def has_few_statistics(snapshot: Snapshot) -> bool:
    """Whether the statistics of all columns are few enough to be read among many tables."""
    return snapshot.num_files * sum(1 for _ in snapshot.schema.leaves()) <= MOST_STATISTICS


def lake_entry(
    found: LakeEntry,
    snapshot: Snapshot,
    *,
    versions: pl.DataFrame,
    commits: pl.DataFrame,
    depth: Depth | None = None,
    now: datetime,
) -> LakeEntry:
    """A table that was read: its newest Snapshot, VERSIONS and COMMITS. With `depth` the verdict is that of its
    overview; without it what takes the whole log to know is not judged."""
    retention = None if depth is None else depth.retention
    told = findings(
        snapshot,
        versions=versions,
        commits=commits,
        statistics=None if depth is None else depth.statistics,
        lifetimes=None if depth is None else depth.lifetimes,
        retention=retention,
        log=None if depth is None else depth.log,
        rules=None if depth is None or depth.statistics is None else _rules(snapshot, depth.statistics),
        now=now,
    )
    broken, attention = (sum(f.severity is s for f in told) for s in (Severity.BROKEN, Severity.ATTENTION))
    worst = next((f for f in told if f.severity in (Severity.BROKEN, Severity.ATTENTION)), None)
    rhythm = cadence(commits, now)
    facts = file_facts(snapshot.files)
    return LakeEntry(
        found.name,
        found.address,
        found.format,
        LakeState.BROKEN if broken else LakeState.ATTENTION if attention else LakeState.FINE,
        verdict(told),
        None if worst is None else f"{worst.claim}: {worst.evidence}" if worst.evidence else worst.claim,
        None if worst is None else worst.page,
        snapshot.version,
        snapshot.num_records,
        snapshot.size_bytes,
        snapshot.num_files,
        rhythm.last,
        rhythm.age,
        rhythm.usual,
        rhythm.late,
        broken,
        attention,
        facts.small_files / facts.files if facts.files else None,
        int(versions["readable"].sum()),
        None if retention is None or retention.undated else retention.retained_bytes,
        None if retention is None or retention.undated else retention.bound is not None,
        NEWEST if depth is None else LOG if depth.statistics is None else WHOLE,
    )


def _rules(snapshot: Snapshot, statistics: pl.DataFrame) -> KeptRules:
    return kept_rules(snapshot, stated_rules(snapshot), statistics)


def lake_failure(found: LakeEntry, error: LakeviewError) -> LakeEntry:
    """A table that could not be read, and why."""
    return LakeEntry(
        found.name, found.address, found.format, LakeState.UNREADABLE, error.message, error.fix, "timeline"
    )


def lake(entries: Sequence[LakeEntry]) -> pl.DataFrame:
    """LAKE of the entries."""
    rows = [tuple(getattr(entry, name) for name in LAKE.names()) for entry in entries]
    order = pl.col("state").replace_strict({state.value: i for i, state in enumerate(LakeState)}, return_dtype=pl.Int64)
    return pl.DataFrame(rows, schema=LAKE, orient="row", strict=False).sort(
        order,
        "broken",
        "attention",
        "late",
        "bytes",
        "name",
        descending=[False, True, True, True, True, False],
        nulls_last=True,
    )


def lake_sentence(tables: pl.DataFrame) -> str:
    """What LAKE says in one line: `5 tables: 1 unreadable, 2 need attention, 2 are fine`."""
    if tables.is_empty():
        return "No tables"
    counts = dict(tables["state"].value_counts().iter_rows())
    words = {
        LakeState.UNREADABLE: ("unreadable", "unreadable"),
        LakeState.BROKEN: ("broken", "broken"),
        LakeState.ATTENTION: ("needs attention", "need attention"),
        LakeState.FINE: ("is fine", "are fine"),
        LakeState.UNREAD: ("not read", "not read"),
    }
    parts = [f"{n:,} {one if n == 1 else many}" for state, (one, many) in words.items() if (n := counts.get(state, 0))]
    return f"{counted(tables.height, 'table')}: {', '.join(parts)}"
