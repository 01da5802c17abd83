"""Every check in one table, run one after the other: a log to findings, worst first."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from lakeview.delta.lint import (
    actions,
    checkpoints,
    checksums,
    features,
    files,
    iceberg_compatibility,
    protocol,
    schema,
    segment,
    statistics,
)
from lakeview.delta.lint.facts import LogFacts
from lakeview.delta.lint.report import finding
from lakeview.delta.log.actions import version_text
from lakeview.delta.log.checkpoints import UNREADABLE
from lakeview.delta.log.table_log import TableLog
from lakeview.model.errors import LakeviewError
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import count_text

Check = Callable[[LogFacts], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Area:
    """Checks that pass together: `claim` holds when none finds anything that matters.

    `subject`: what they looked at, in words; None where there was nothing to look at, and so nothing that passed.
    """

    claim: str
    section: str
    subject: Callable[[LogFacts], str | None]
    checks: tuple[Check, ...]


def _live(facts: LogFacts) -> str | None:
    return count_text(facts.live.height, "live file") if facts.knows_files else None


def _protocol(facts: LogFacts) -> str | None:
    latest = facts.latest_protocol
    if latest is None:
        return None
    return f"{version_text(latest)}, {count_text(len(facts.features), 'feature')}"


def _commits(facts: LogFacts) -> str | None:
    numbers = facts.log.versions()
    return f"{count_text(len(numbers), 'commit')}, v{numbers[0]} to v{numbers[-1]}" if numbers else None


def _actions(facts: LogFacts) -> str | None:
    return count_text(facts.events.height, "file action") if facts.log.versions() else None


def _checkpoints(facts: LogFacts) -> str | None:
    return count_text(len(facts.checkpoints), "complete checkpoint") if facts.checkpoints else None


def _features_of_files(facts: LogFacts) -> str | None:
    subjects = facts.features & {"rowTracking", "clustering"}
    return ", ".join(sorted(subjects)) if subjects and facts.knows_files else None


def _schema(facts: LogFacts) -> str | None:
    return None if facts.schema is None else count_text(len(facts.schema), "column")


AREAS = (
    Area("No commit is missing or broken", "Delta Log Entries", _commits, (segment.commits_complete,)),
    Area(
        "Commits keep the rules for their actions",
        "Actions",
        _actions,
        (actions.one_of_each, actions.once_a_file, actions.read_versions, actions.append_only),
    ),
    Area(
        "Commit times go forward",
        "In-Commit Timestamps",
        _commits,
        (actions.file_times, actions.in_commit_times, features.in_commit_enablement),
    ),
    Area(
        "Checkpoint files are whole and easy to find",
        "Checkpoints",
        _checkpoints,
        (segment.multi_part, checkpoints.v2_structure, segment.last_checkpoint, segment.log_tail),
    ),
    Area(
        "Checkpoints agree with the commits",
        "Action Reconciliation",
        checkpoints.count_compared,
        (checkpoints.agree_with_replay, checksums.checksum_files, checksums.compactions),
    ),
    Area(
        "Metrics agree with actions", "Commit Provenance Information", _commits, (checksums.metrics_agree_with_actions,)
    ),
    Area(
        "Protocol, features and properties fit each other",
        "Table Features",
        _protocol,
        (
            protocol.versions_and_lists,
            protocol.features_used,
            protocol.domains_declared,
            schema.property_names,
            schema.property_values,
            features.catalog_managed,
            iceberg_compatibility.rules_of_compatibility,
        ),
    ),
    Area(
        "Rows are tracked, and files clustered, as features ask",
        "Table Features",
        _features_of_files,
        (features.row_tracking, features.clustering),
    ),
    Area(
        "The schema is sound",
        "Schema Serialization Format",
        _schema,
        (schema.readable, schema.names_and_types, schema.mapping, features.changes_of_types),
    ),
    Area(
        "Every live file is in the store and in the table",
        "Data Files",
        _live,
        (files.files_in_store, files.paths, files.orphans, files.keys_once, files.partition_values),
    ),
    Area(
        "Statistics do not contradict themselves",
        "Per-file Statistics",
        _live,
        (statistics.present, statistics.vectors, statistics.contradictions, statistics.tight_bounds),
    ),
)
"""What is checked, in the order of the report."""

_ORDER = tuple(Severity)


def check(log: TableLog, now: datetime | None = None) -> list[Finding]:
    """Everything the log breaks or leaves odd, worst first; then what was checked and is well.

    Works on tables that do not open: corrupt commits, gaps, features this reader lacks. `now`: an aware moment by
    which files too young to be judged are left out. Costs the whole log and one listing of the table's folder.
    StoreUnavailableError is the only error.
    """
    facts = LogFacts(log, now)
    findings: list[Finding] = []
    for area in AREAS:
        own: list[Finding] = []
        whole = True
        for run in area.checks:
            try:
                own += run(facts)
            except UNREADABLE as error:
                own.append(_unchecked_finding(run, error))
                whole = False
        findings += own
        subject = area.subject(facts)
        if whole and subject is not None and all(f.severity is Severity.NOTE for f in own):
            findings.append(finding("check-passed", area.claim, subject, section=area.section))
    return sorted(findings, key=lambda f: _ORDER.index(f.severity))


def _unchecked_finding(run: Check, error: LakeviewError) -> Finding:
    what = (run.__doc__ or run.__name__).splitlines()[0].rstrip(".")
    return Finding(
        "check-not-possible",
        Severity.NOTE,
        f"Could not be checked: {what}",
        error.message,
        place=error.place,
        remedy=error.fix,
    )
