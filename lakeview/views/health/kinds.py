"""The kinds of findings about a table: for each id its page, limit, remedy and effect, in one table."""

from dataclasses import dataclass
from typing import Final

from lakeview.model.findings import Finding, Severity
from lakeview.model.limits import FILE_BYTES
from lakeview.views import thresholds as limits
from lakeview.views.thresholds import percent
from lakeview.views.timeline.readability import LATE, NO_NEWER_EVENTS, ON_TIME
from lakeview.views.units import format_age, format_bytes

UNREADABLE = "version-unreadable"
EMPTIED = "table-emptied"

_RESTORE = "restore what is missing from a backup, or give the version up"


@dataclass(frozen=True, slots=True)
class _Kind:
    """What all findings of one id have in common; `remedy` and `effect` hold where it needs attention."""

    page: str | None = None
    threshold: str | None = None
    remedy: str | None = None
    effect: str | None = None


_KINDS: Final = {
    # files
    "no-files": _Kind("files"),
    "impossible-file-sizes": _Kind(
        "files",
        f"from 0 to {format_bytes(FILE_BYTES)}",
        "find the writer that recorded them, and rewrite these files",
        "readers that trust the size cannot read the file",
    ),
    "small-files": _Kind(
        "files",
        f"{limits.FILES_TIMES} times the files needed, at least {limits.FILES_EXCESS} too many",
        "compact; fewer, larger commits or auto-compaction at the writer",
        "a query opens and plans many files for little data",
    ),
    "small-partitions": _Kind(
        "files",
        f"a median of {format_bytes(limits.SMALL_FILE_BYTES)} a partition, "
        f"in a table of {format_bytes(limits.SMALL_TABLE_BYTES)} or more",
        "write the table again with fewer partitions: a coarser key, or clustering instead",
        "each partition needs a file of its own, however well it is compacted, and queries plan and open all of them",
    ),
    "deleted-rows": _Kind(
        "files",
        f"{percent(limits.DELETED_SHARE)} of the rows, and {limits.DELETED_ROWS:,} of them",
        "rewrite these files with their deletes applied",
        "every read decodes rows that it then drops",
    ),
    "files-with-row-counts": _Kind("files", "every file"),
    "files-without-statistics": _Kind(
        "files", "every file", "rewrite these files with a writer that collects statistics, or compute them in place"
    ),
    "column-statistics-contradictory": _Kind(
        "files",
        "no minimum above its maximum, no more nulls than rows",
        "find the writer that recorded them, and write the statistics of these files again",
        "filters may skip files that have matching rows, and answers lack these",
    ),
    "delete-files-pile-up": _Kind(
        "files",
        f"one for two data files, at least {limits.DELETE_FILES_MIN}",
        "rewrite the data files with their deletes applied",
        "every read opens and applies them",
    ),
    # partitions
    "partition-file-skew": _Kind("partitions", f"{limits.SKEW_TIMES:g} times the median", "compact this partition"),
    "partition-byte-skew": _Kind(
        "partitions", f"{limits.SKEW_TIMES:g} times the median", "partition by a more even column, or cluster instead"
    ),
    "partitions-missing": _Kind("partitions", "no gap", "load it again"),
    "partition-late": _Kind("partitions", "in the order of the partitions"),
    # versions and loads
    UNREADABLE: _Kind("timeline", "the selected version", _RESTORE, "its log is readable, its rows are not"),
    "versions-unreadable": _Kind("timeline", "every version since the oldest retained one", _RESTORE),
    "versions-gone": _Kind("timeline"),
    LATE: _Kind(
        "timeline",
        f"{limits.LATE_TIMES:g} times the expected gap, and longer than 95 % of the gaps",
        "check whether the writer still runs",
    ),
    ON_TIME: _Kind("timeline", f"{limits.LATE_TIMES:g} times the expected gap, and longer than 95 % of the gaps"),
    NO_NEWER_EVENTS: _Kind(
        "quality",
        f"{limits.LATE_TIMES:g} times the expected gap, and longer than 95 % of the gaps",
        "check whether the writer still gets new data",
        "the latest version looks fresh and is not",
    ),
    "load-anomaly": _Kind(
        "timeline",
        f"nulls {percent(limits.NULL_JUMP)} above the baseline; values {limits.RANGE_WIDTHS:g} times the expected "
        f"range away; {limits.LOAD_TIMES:g} times the expected rows; an overwrite that leaves less than "
        f"{percent(limits.LOST_SHARE)} of the rows",
        "ask its writer; load it again, or delete what came twice; until then read an earlier version; restoring one "
        "takes back all loads since",
        "queries of the latest version contain these rows, or lack those that they replaced",
    ),
    "load-anomaly-repaired": _Kind("timeline"),
    EMPTIED: _Kind(
        "timeline",
        "the first time that a table with rows has none",
        "ask its writer; load it again, or restore the version before",
        "queries of the table find no rows",
    ),
    "loads-as-expected": _Kind("quality"),
    "constraint-violated": _Kind(
        "quality",
        "every row satisfies the table's constraints, by its statistics",
        "correct these rows, and check that their writer enforces the table's constraints",
        "readers and optimizers rely on the constraints",
    ),
    # maintenance
    "history-cost": _Kind(
        "health",
        f"{percent(limits.HISTORY_SHARE)} of the bytes retained, at least {format_bytes(limits.HISTORY_BYTES)}",
        "remove files that only old versions need",
        "storage is paid for old versions",
    ),
    "retention-short": _Kind(
        "health",
        format_age(limits.SAFE_RETENTION),
        "retain them for a week or more",
        "a query or a writer that takes longer may lose files it reads",
    ),
    "cleanup-ends-no-version": _Kind("health", "no readable version needs the files that a cleanup removes"),
    "cleanup-ends-versions": _Kind(
        "health",
        "an earlier version stays readable",
    ),
    "checkpoint-age": _Kind(
        "health",
        f"{limits.CHECKPOINT_TIMES} times the interval",
        "write a checkpoint; find out why the writer does not",
        "every reader replays these commits one by one",
    ),
    "log-size": _Kind(
        "health",
        f"{percent(limits.LOG_SHARE)} of the live bytes, at least {format_bytes(limits.LOG_BYTES)}",
        "shorter log retention, larger commits, a checkpoint",
        "listing and opening the table get slower with every commit",
    ),
    "tombstones-exceed-files": _Kind(
        "health",
        f"{limits.TOMBSTONES_TIMES} times the live files, at least {limits.TOMBSTONES_MIN:,}",
        "rewrite fewer files at once, or retain removed files for a shorter time",
        "every checkpoint contains them",
    ),
}


def finding(
    kind: str,
    severity: Severity,
    claim: str,
    evidence: str = "",
    place: str | None = None,
    *,
    command: str | None = None,
    commit: int | None = None,
    column: str | None = None,
    effect: str | None = None,
) -> Finding:
    """A finding of a kind; remedy, effect and command are left out where nothing has to be done.

    `effect` replaces the kind's; it is stated at any severity, and so is a command that comes with it.
    """
    facts, is_open = _KINDS[kind], severity in (Severity.BROKEN, Severity.ATTENTION)
    return Finding(
        kind,
        severity,
        claim,
        evidence,
        facts.threshold,
        place,
        remedy=facts.remedy if is_open else None,
        page=facts.page,
        effect=effect or (facts.effect if is_open else None),
        command=command if is_open or effect else None,
        commit=commit,
        column=column,
    )
