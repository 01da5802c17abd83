"""Many cases of one kind to one finding: how many there are, and the first of them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import polars as pl

from lakeview.delta.lint.kinds import KINDS
from lakeview.delta.log.paths import commit_name
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import first_few

PROTOCOL = "Delta protocol"
_LONGEST = 120


def finding(
    kind: str,
    claim: str,
    evidence: str = "",
    place: str | None = None,
    *,
    severity: Severity | None = None,
    section: str | None = None,
    remedy: str | None = None,
    threshold: str | None = None,
) -> Finding:
    """A Finding of a kind in KINDS. `severity`, `section` and `remedy`: in place of the kind's own."""
    own = KINDS[kind]
    rule = f"{PROTOCOL}, {section or own.section}"
    return Finding(
        kind, severity or own.severity, claim, evidence, threshold, place, rule, remedy or own.remedy, own.page
    )


def of_files(kind: str, files: pl.DataFrame, claim: str, more: str = "", **own: Any) -> Iterator[Finding]:
    """A finding about these files (`path`), none where there are none. `more`: evidence after the first of them."""
    if files.height:
        yield finding(kind, claim, _paths(files) + more, files["path"][0], **own)


def of_commits(kind: str, commits: Sequence[int], claim: str, more: str = "", **own: Any) -> Iterator[Finding]:
    """A finding about these versions, none where there are none. `more`: evidence after the first of them."""
    if commits:
        yield finding(kind, claim, versions(commits) + more, commit_name(commits[0]), **own)


def of_actions(kind: str, actions: pl.DataFrame, claim: str, **own: Any) -> Iterator[Finding]:
    """A finding about these file actions (`version`, `path`), none where there are none."""
    if actions.height:
        at = versions(actions["version"].unique(maintain_order=True))
        yield finding(kind, claim, f"at {at}: {_paths(actions)}", commit_name(actions["version"][0]), **own)


def of_names(kind: str, names: Sequence[str], claim: str, place: str | None = None, **own: Any) -> Iterator[Finding]:
    """A finding about these columns, properties or features, none where there are none. `place`: the first of them."""
    if names:
        yield finding(kind, claim, some(names), place or names[0], **own)


def _paths(files: pl.DataFrame) -> str:
    return some(files["path"].head(3).to_list(), files.height)


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
