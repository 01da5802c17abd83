"""Many cases of one kind to one finding: how many there are, and the first of them."""

from collections.abc import Iterable, Sequence

from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import first_few

PROTOCOL = "Delta protocol"
_LONGEST = 120


def finding(
    finding_id: str,
    severity: Severity,
    claim: str,
    evidence: str = "",
    *,
    section: str,
    place: str | None = None,
    remedy: str | None = None,
    threshold: str | None = None,
    page: str | None = "timeline",
) -> Finding:
    """A Finding whose rule is a section of the protocol."""
    return Finding(finding_id, severity, claim, evidence, threshold, place, f"{PROTOCOL}, {section}", remedy, page)


def some(examples: Sequence[object], total: int | None = None, *, limit: int = 3) -> str:
    """The first few of many in words: `a, b, c and 12 more`."""
    return first_few([short(str(e)) for e in examples], limit, total)


def versions(numbers: Iterable[int]) -> str:
    """`v3, v7 and 12 more`."""
    return first_few([f"v{n}" for n in numbers])


def short(text: str) -> str:
    """Text cut in the middle, so that both ends of a path can be seen."""
    if len(text) <= _LONGEST:
        return text
    half = (_LONGEST - 3) // 2
    return f"{text[:half]}...{text[-half:]}"


def differing(pairs: Iterable[tuple[str, object, object]]) -> str:
    """`files 3, not 5; bytes 10, not 12` from (what, actual, expected)."""
    return "; ".join(f"{what} {_number(actual)}, not {_number(other)}" for what, actual, other in pairs)


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else short(str(value))
