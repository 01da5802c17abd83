"""Tables of a lake, each read once, to one ranked list: what needs attention first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import polars as pl

from lakeview.errors import LakeviewError
from lakeview.findings import Severity
from lakeview.snapshot import Snapshot
from lakeview.views.findings import findings, verdict
from lakeview.views.readability import cadence
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
    }
)
"""One row a table, by what needs attention: LakeState, how many findings are broken and need attention, lateness, size.
`verdict` and `finding` (the worst, with its evidence; null if nothing needs attention) are sentences, of an unreadable
table why it is so; `page` shows the finding best; `age` of the last commit that changed data and the `usual` gap
between such commits. What is not known, and all of a table that was not read, is null."""


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


def lake_entry(
    found: LakeEntry, snapshot: Snapshot, *, versions: pl.DataFrame, commits: pl.DataFrame, now: datetime
) -> LakeEntry:
    """A table that was read: its newest Snapshot, VERSIONS and COMMITS; what takes statistics or the lives of files to
    know is not judged."""
    told = findings(snapshot, versions=versions, commits=commits, now=now)
    broken, attention = (sum(f.severity is s for f in told) for s in (Severity.BROKEN, Severity.ATTENTION))
    worst = next((f for f in told if f.severity in (Severity.BROKEN, Severity.ATTENTION)), None)
    rhythm = cadence(commits, now)
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
    )


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
