"""Every check in one table, run one after the other: a log to findings, worst first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from lakeview.delta.lint import (
    actions,
    checkpoints,
    checksums,
    files,
    metrics,
    properties,
    protocol,
    schema,
    segment,
    statistics,
    times,
)
from lakeview.delta.lint.facts import LogFacts
from lakeview.delta.lint.report import counted, finding
from lakeview.delta.log.table_log import TableLog
from lakeview.errors import CorruptTableError, UnsupportedTableError
from lakeview.findings import Finding, Severity


@dataclass(frozen=True, slots=True)
class Area:
    """Checks that pass together: `passed` is the claim when none of them finds anything that matters."""

    passed: str
    section: str
    seen: Callable[[LogFacts], str]
    checks: tuple[Callable[[LogFacts], Iterator[Finding]], ...]


def _live(facts: LogFacts) -> str:
    return "unknown" if facts.live is None else counted(facts.live.height, "live file")


def _protocol(facts: LogFacts) -> str:
    found = facts.latest_protocol
    if found is None:
        return "unknown"
    features = counted(len(facts.features), "feature")
    return f"reader {found.min_reader_version}, writer {found.min_writer_version}, {features}"


def _commits(facts: LogFacts) -> str:
    numbers = facts.commits["version"]
    span = f", v{numbers[0]} to v{numbers[-1]}" if numbers.len() else ""
    return counted(numbers.len(), "commit") + span


AREAS = (
    Area("No commit is missing or broken", "Delta Log Entries", _commits, (segment.commits_complete,)),
    Area(
        "Commits keep the rules for their actions",
        "Actions",
        lambda facts: counted(facts.events.height, "file action"),
        (actions.one_of_each, actions.once_a_file, actions.read_versions, actions.append_only),
    ),
    Area("Commit times go forward", "In-Commit Timestamps", _commits, (times.file_times, times.in_commit_times)),
    Area(
        "Checkpoint files are whole and easy to find",
        "Checkpoints",
        lambda facts: counted(len(facts.checkpoints), "complete checkpoint"),
        (segment.multi_part, segment.last_checkpoint, segment.log_tail),
    ),
    Area(
        "Checkpoints agree with the commits",
        "Action Reconciliation",
        checkpoints.compared,
        (checkpoints.agree_with_replay, checksums.checksum_files, checksums.compactions),
    ),
    Area("Metrics agree with actions", "Commit Provenance Information", _commits, (metrics.agree_with_actions,)),
    Area(
        "Protocol, features and properties fit each other",
        "Table Features",
        _protocol,
        (
            protocol.versions_and_lists,
            protocol.features_used,
            protocol.domains_declared,
            properties.names,
            properties.values,
        ),
    ),
    Area(
        "The schema is sound",
        "Schema Serialization Format",
        lambda facts: "unknown" if facts.schema is None else counted(len(facts.schema), "column"),
        (schema.readable, schema.names_and_types, schema.mapping),
    ),
    Area(
        "Every live file is in the store and in the table",
        "Data Files",
        _live,
        (files.stored, files.paths, files.orphans, files.keys_once, files.partition_values),
    ),
    Area(
        "Statistics do not contradict themselves",
        "Per-file Statistics",
        _live,
        (statistics.present, statistics.vectors, statistics.contradictions, statistics.tight),
    ),
)
"""What is checked, in the order of the report."""

_ORDER = tuple(Severity)


def check(log: TableLog, now: datetime | None = None) -> list[Finding]:
    """Everything the log breaks or leaves odd, worst first; then what was checked and is well.

    Works on tables that do not open: corrupt commits, gaps, features this reader lacks. `now`: an aware moment by
    which files too young to be judged are left out. Costs the whole log and one listing of the table's folder.
    StoreUnavailableError and AccessDeniedError are the only errors.
    """
    facts = LogFacts(log, now)
    found: list[Finding] = []
    for area in AREAS:
        own = [f for run in area.checks for f in _run(run, facts)]
        found += own
        if all(f.severity is Severity.NOTE for f in own):
            found.append(finding(Severity.PASS, area.passed, area.seen(facts), section=area.section))
    return sorted(found, key=lambda f: _ORDER.index(f.severity))


def _run(run: Callable[[LogFacts], Iterator[Finding]], facts: LogFacts) -> list[Finding]:
    try:
        return list(run(facts))
    except (CorruptTableError, UnsupportedTableError) as error:
        what = (run.__doc__ or run.__name__).splitlines()[0].rstrip(".")
        return [
            Finding(
                Severity.NOTE, f"Could not be checked: {what}", error.message, place=error.place, remedy=error.fix,
            )
        ]  # fmt: skip
