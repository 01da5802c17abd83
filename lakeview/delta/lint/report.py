"""Many cases of one kind to one finding: how many there are, and the first of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakeview.model.findings import Finding, Severity

PROTOCOL = "Delta protocol"
_EXAMPLES = 3
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


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 file`, `3,412 files`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def some(examples: Sequence[object], total: int | None = None, *, limit: int = _EXAMPLES) -> str:
    """The first few of many in words: `a, b, c and 12 more`."""
    total = len(examples) if total is None else total
    text = ", ".join(short(str(e)) for e in examples[:limit])
    rest = total - min(limit, len(examples))
    return f"{text} and {rest:,} more" if rest > 0 else text


def versions(numbers: Iterable[int], *, limit: int = _EXAMPLES) -> str:
    """`v3, v7 and 12 more`."""
    return some([f"v{n}" for n in numbers], limit=limit)


def short(text: str, longest: int = _LONGEST) -> str:
    """Text cut in the middle, so that both ends of a path can be seen."""
    if len(text) <= longest:
        return text
    half = (longest - 3) // 2
    return f"{text[:half]}...{text[-half:]}"


def differing(pairs: Iterable[tuple[str, object, object]]) -> str:
    """`files 3, not 5; bytes 10, not 12` from (what, actual, expected)."""
    return "; ".join(f"{what} {_number(actual)}, not {_number(expected)}" for what, actual, expected in pairs)


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else short(str(value))
