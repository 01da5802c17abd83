"""Finding: one claim about a table, with its evidence and what to do."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from lakeview.model.printable import count_text


class Severity(StrEnum):
    """How much a finding matters; ordered from the worst."""

    BROKEN = "broken"
    ATTENTION = "attention"
    NOTE = "note"
    PASS = "pass"


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim about a table.

    `id`: what kind of finding it is, in words joined by hyphens, the same in every release and for every table; several
    findings of one table may have it, each at its place. `claim`: a short sentence; `evidence`: the figures behind it;
    `threshold`: the limit that was crossed, in words; `place`: version, file or column; `rule`: the rule cited
    (specification and section); `remedy`: what to do;
    `page`: the page that shows it best; `effect`: what it costs users of the table; `command`: one to copy;
    `commit`: the version whose commit is to blame; `column`: the name of the column that the claim is about.
    """

    id: str
    severity: Severity
    claim: str
    evidence: str = ""
    threshold: str | None = None
    place: str | None = None
    rule: str | None = None
    remedy: str | None = None
    page: str | None = None
    effect: str | None = None
    command: str | None = None
    commit: int | None = None
    column: str | None = None


_SEVERITY_WORDS = {
    Severity.BROKEN: ("broken", "broken"),
    Severity.ATTENTION: ("needs attention", "need attention"),
    Severity.NOTE: ("note", "notes"),
    Severity.PASS: ("passes", "pass"),
}


def severity_counts(findings: Iterable[Finding]) -> str:
    """How many findings there are of each severity, the worst first: `1 broken, 2 need attention, 3 notes, 9 pass`."""
    severities = [finding.severity for finding in findings]
    counts = {severity: severities.count(severity) for severity in Severity}
    texts = [count_text(count, *_SEVERITY_WORDS[severity]) for severity, count in counts.items() if count]
    return ", ".join(texts) or "nothing judged"
