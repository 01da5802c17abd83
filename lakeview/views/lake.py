"""Tables of a lake, each read once, to one ranked list: what needs attention first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import polars as pl

from lakeview.model.errors import LakeviewError
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import shorten
from lakeview.model.snapshot import Snapshot
from lakeview.views.conform import conform
from lakeview.views.files.sizes import file_facts
from lakeview.views.health.findings import OPEN, Evidence, findings, open_findings, verdict
from lakeview.views.retention.simulation import Retention
from lakeview.views.timeline.readability import cadence
from lakeview.views.units import count_text, format_count, format_share


class LakeState(StrEnum):
    """The state of a table, the one that most needs attention first."""

    UNREADABLE = "unreadable"
    BROKEN = "broken"
    ATTENTION = "attention"
    FINE = "fine"
    UNREAD = "not read"


@dataclass(frozen=True, slots=True)
class LakeEntry:
    """One table of a lake: a row of LAKE."""

    name: str
    address: str
    format: str
    state: LakeState = LakeState.UNREAD
    verdict: str | None = None
    finding: str | None = None
    page: str | None = None
    version: int | None = None
    records: int | None = None
    records_bound: bool | None = None
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
    retained_gap: str | None = None
    judged: str | None = None


_TYPES: Mapping[Any, pl.DataType] = {
    int | None: pl.Int64(), float | None: pl.Float64(), bool | None: pl.Boolean(),
    datetime | None: pl.Datetime("ms", "UTC"), timedelta | None: pl.Duration("ms"),
}  # fmt: skip
LAKE = pl.Schema({field.name: _TYPES.get(field.type, pl.String()) for field in fields(LakeEntry)})
"""One row a table, by what needs attention: LakeState, how many findings are broken and need attention, lateness, size.
`verdict` and `finding` (the worst, with its evidence; null if nothing needs attention) are sentences, of an unreadable
table why it is so; `page` shows the finding best; `age` of the last commit that changed data and the `usual` gap
between such commits. `records` are at least so many where `records_bound`; `small_share`: of the files, those below 1
MiB; `versions` that can be read; `retained`: bytes of files that only old versions need, at least so many where
`retained_bound`, unknown for the reason `retained_gap`; `judged`: what the verdict is made from.
What is not known, and all of a table that was not read, is null."""

LAKE_COLUMNS = pl.Schema(
    {
        "table": pl.String(),
        "address": pl.String(),
        "column": pl.String(),
        "type": pl.String(),
        "null_share": pl.Float64(),
        "null_share_mark": pl.String(),
        "absent_share": pl.Float64(),
        "min_text": pl.String(),
        "max_text": pl.String(),
    }
)
"""One row a leaf column of a table; the others as in SCHEMA_TREE."""

WHOLE = "the whole log"
LOG = "log but statistics"
NEWEST = "newest version, commits, log listing"

_LONGEST_NAME = 60
"""Characters of a name in a sentence."""

MOST_FILES = 50_000
MOST_COMMITS = 2_000
MOST_STATISTICS = 500_000
"""Tables of more files or commits are judged by their newest version, their commits and the listing of their log alone,
and those of more statistics (files times columns) without them: a lake holds many tables, and each is read in about a
second."""


def lake_columns(entry: LakeEntry, tree: pl.DataFrame) -> pl.DataFrame:
    """LAKE_COLUMNS of one table, from its SCHEMA_TREE."""
    leaves = tree.filter("leaf").with_columns(table=pl.lit(entry.name), address=pl.lit(entry.address), column="path")
    return conform(leaves, LAKE_COLUMNS)


def columns_line(matches: pl.DataFrame, nulls_above: float | None = None) -> str:
    """How many LAKE_COLUMNS match, of how many tables: `4 columns of 2 tables have nulls above 10 %`, and of how many
    of them that is not certain. Without a share: which one has the most nulls."""
    line = f"{count_text(matches.height, 'column')} of {count_text(matches['table'].n_unique(), 'table')}"
    if matches.is_empty():
        return line
    if nulls_above is None:
        first = matches.sort("null_share", descending=True, nulls_last=True, maintain_order=True).row(0, named=True)
        share = format_share(first["null_share"], first["null_share_mark"])
        name = f"{shorten(first['column'], _LONGEST_NAME)} of {shorten(first['table'], _LONGEST_NAME)}"
        return f"{line}, most nulls in {name}: {share}" if first["null_share"] else line
    bounds = matches.filter(pl.col("null_share_mark") == "\N{LESS-THAN OR EQUAL TO}").height
    uncertain = f"; of {bounds:,} only an upper bound is known" if bounds else ""
    return f"{line} {'has' if matches.height == 1 else 'have'} nulls above {nulls_above * 100:g} %{uncertain}"


def with_one_decimal(columns: pl.DataFrame) -> pl.DataFrame:
    """LAKE_COLUMNS whose shares one decimal of a percent shows: one that would be 0 or 100, and is neither, is marked
    as less than 0.1 or more than 99.9, so that a null in a million rows gives all other shares no more decimals."""
    share, mark = pl.col("null_share"), pl.col("null_share_mark")
    is_small = share.is_between(0, 0.0005, closed="none")
    is_large = share.is_between(0.9995, 1, closed="none")
    some = is_small & mark.ne_missing(pl.lit("\N{GREATER-THAN OR EQUAL TO}"))
    most = is_large & mark.ne_missing(pl.lit("\N{LESS-THAN OR EQUAL TO}"))
    return columns.with_columns(
        null_share=pl.when(some).then(0.001).when(most).then(0.999).when(is_small | is_large).then(share.round(0))
        .otherwise(share),
        null_share_mark=pl.when(some).then(pl.lit("<")).when(most).then(pl.lit(">")).otherwise(mark),
    )  # fmt: skip


def matching_columns(columns: pl.DataFrame, text: str, nulls_above: float | None) -> pl.DataFrame:
    """LAKE_COLUMNS whose name or type contains a text, in any case, and that have more nulls than a share; most nulls
    first, unknown shares last."""
    texts = pl.concat_str("column", "type", separator=" ").str.to_lowercase()
    matches = columns.filter(texts.str.contains(text.lower(), literal=True))
    if nulls_above is not None:
        matches = matches.filter(pl.col("null_share") > nulls_above)
    return matches.sort("null_share", "table", descending=[True, False], nulls_last=True, maintain_order=True)


def is_shallow(snapshot: Snapshot, commits: pl.DataFrame) -> bool:
    """Whether a table is small enough for its whole log to be read among many."""
    return snapshot.num_files <= MOST_FILES and commits.height <= MOST_COMMITS


def has_few_statistics(snapshot: Snapshot) -> bool:
    """Whether the statistics of all columns are few enough to be read among many tables."""
    return snapshot.num_files * sum(1 for _ in snapshot.schema.leaves()) <= MOST_STATISTICS


def lake_entry(entry: LakeEntry, evidence: Evidence, now: datetime) -> LakeEntry:
    """A table that was read, judged by its Evidence, which holds at least VERSIONS and COMMITS.

    With lifetimes the verdict is that of the table's overview; without them what takes the whole log is not judged.
    """
    assert evidence.versions is not None
    assert evidence.commits is not None
    snapshot = evidence.snapshot
    depth = NEWEST if evidence.lifetimes is None else LOG if evidence.statistics is None else WHOLE
    entry = _with_findings(entry, findings(evidence, now))
    rhythm = cadence(evidence.commits, now)
    gap = _retained_gap(evidence.retention)
    retention = None if gap is not None else evidence.retention
    facts = file_facts(snapshot.files, snapshot.delete_files)
    return replace(
        entry,
        version=snapshot.version,
        records=(facts.least_records or None) if snapshot.num_records is None else snapshot.num_records,
        records_bound=snapshot.num_records is None and bool(facts.least_records),
        bytes=snapshot.size_bytes,
        files=snapshot.num_files,
        last=rhythm.last,
        age=rhythm.age,
        usual=rhythm.usual,
        late=rhythm.late,
        small_share=facts.small_files / facts.files if facts.files else None,
        versions=int(evidence.versions["readable"].sum()),
        retained=None if retention is None else retention.retained_bytes,
        retained_bound=None if retention is None else retention.bound is not None,
        retained_gap=gap,
        judged=depth,
    )


def _retained_gap(retention: Retention | None) -> str | None:
    """Why the bytes that only old versions need are unknown; None where they are known. At least 0 is no news."""
    if retention is None:
        return "the whole log was not read"
    if retention.has_no_times:
        return "commits have no timestamps"
    return None if retention.retained_bytes else retention.bound


def gap_notes(entries: pl.DataFrame) -> list[str]:
    """Of which tables of LAKE the bytes of old versions are unknown, a note for each reason: `["airlines: commits have
    no timestamps"]`."""
    gaps = entries.drop_nulls("retained_gap").group_by("retained_gap", maintain_order=True).agg("name")
    return [
        f"{names[0] if len(names) == 1 else count_text(len(names), 'table')}: {gap}" for gap, names in gaps.iter_rows()
    ]


def state_of(findings: Sequence[Finding]) -> LakeState:
    """The state of a table that was read, by its worst finding."""
    severities = {finding.severity for finding in findings}
    if Severity.BROKEN in severities:
        return LakeState.BROKEN
    return LakeState.ATTENTION if Severity.ATTENTION in severities else LakeState.FINE


def _with_findings(entry: LakeEntry, findings: Sequence[Finding]) -> LakeEntry:
    num_broken, attention = open_findings(findings)
    worst = next((f for f in findings if f.severity in OPEN), None)
    return replace(
        entry,
        state=state_of(findings),
        verdict=verdict(findings),
        finding=None if worst is None else f"{worst.claim}: {worst.evidence}" if worst.evidence else worst.claim,
        page=None if worst is None else worst.page,
        broken=num_broken,
        attention=attention,
    )


def lake_failure(entry: LakeEntry, error: LakeviewError) -> LakeEntry:
    """A table that could not be read, and why."""
    return replace(entry, state=LakeState.UNREADABLE, verdict=error.message, finding=error.fix, page="timeline")


def lake(entries: Sequence[LakeEntry]) -> pl.DataFrame:
    """LAKE of the entries."""
    rows = [tuple(getattr(entry, name) for name in LAKE.names()) for entry in entries]
    return worst_first(pl.DataFrame(rows, schema=LAKE, orient="row", strict=False))


def worst_first(tables: pl.DataFrame) -> pl.DataFrame:
    """Tables with state, broken, attention, late, bytes and name as in LAKE, in its order."""
    order = pl.col("state").replace_strict({state.value: i for i, state in enumerate(LakeState)}, return_dtype=pl.Int64)
    descending = {"broken": True, "attention": True, "late": True, "bytes": True, "name": False}
    return tables.sort(order, *descending, descending=[False, *descending.values()], nulls_last=True)


def rows_text(row: Mapping[str, Any]) -> str | None:
    """The rows of a row of LAKE: `308,641`, `≥ 308,641` where it is a bound."""
    rows = row["records"]
    return None if rows is None else format_count(None if row["records_bound"] else rows, exact=True, least=rows)


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
    return f"{count_text(tables.height, 'table')}: {', '.join(parts)}"
