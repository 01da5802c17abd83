"""Commits one by one: two actions where the protocol allows one, files that come and go at once, and times that go
back."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import polars as pl

from lakeview.delta.audit.files import is_append_only
from lakeview.delta.audit.records import CommitRecord
from lakeview.delta.lint.facts import LogFacts
from lakeview.delta.lint.report import finding, of_actions, of_commits, some, versions
from lakeview.delta.log.file_actions import IDENTITY
from lakeview.delta.log.paths import commit_name
from lakeview.delta.log.times import asks_for_in_commit_times
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import count_text

_ONE: tuple[tuple[str, str, Severity, Callable[[CommitRecord], int]], ...] = (
    ("protocol", "Protocol Evolution", Severity.BROKEN, lambda commit: len(commit.protocols)),
    ("metaData", "Change Metadata", Severity.BROKEN, lambda commit: len(commit.metadatas)),
    ("commitInfo", "Commit Provenance Information", Severity.ATTENTION, lambda commit: len(commit.places)),
)
"""Action, section, severity of a commit with more than one, and how many it has."""

_ONE_A_KEY: tuple[tuple[str, str, str, Callable[[CommitRecord], list[str]]], ...] = (
    ("txn", "application", "Transaction Identifiers", lambda commit: [txn.app_id for txn in commit.txns]),
    ("domainMetadata", "domain", "Domain Metadata", lambda commit: [domain.domain for domain in commit.domains]),
)
"""Action, what it is about, section, and what those of a commit are about."""


def one_of_each(facts: LogFacts) -> Iterator[Finding]:
    """At most one protocol, metaData and commitInfo in a commit; one txn an application, one entry a domain."""
    for kind, section, severity, count in _ONE:
        twice = [commit.version for commit in facts.records if count(commit) > 1]
        claim, more = f"{_commits(len(twice))} {kind} actions", "; readers may take any of them"
        yield from of_commits("action-twice-in-commit", twice, claim, more, severity=severity, section=section)
    for kind, key, section, keys in _ONE_A_KEY:
        keys_twice = {commit.version: name for commit in facts.records if (name := _twice(keys(commit))) is not None}
        claim, more = (
            f"{_commits(len(keys_twice))} {kind} actions for one {key}",
            f"; first for {[*keys_twice.values(), ''][0]}",
        )
        yield from of_commits("action-twice-for-one-key", list(keys_twice), claim, more, section=section)


def _commits(number: int) -> str:
    return "A commit holds two" if number == 1 else f"{number:,} commits hold two"


def _twice(values: Sequence[str]) -> str | None:
    return next((value for value, number in Counter(values).items() if number > 1), None)


def once_a_file(facts: LogFacts) -> Iterator[Finding]:
    """No file is added and removed, or added twice, in one version: actions inside a commit have no order."""
    counts = facts.events.group_by("version", *IDENTITY, maintain_order=True).agg(
        pl.col("added").sum().alias("adds"), (~pl.col("added")).sum().alias("removes"), pl.col("path").first()
    )
    adds, removes = pl.col("adds"), pl.col("removes")
    for what, severity, where in (
        ("added and removed", None, (adds > 0) & (removes > 0)),
        ("added twice", None, (adds > 1) & (removes == 0)),
        ("removed twice", Severity.NOTE, (removes > 1) & (adds == 0)),
    ):
        files = counts.filter(where)
        claim = f"{count_text(files.height, 'file is', 'files are')} {what} in the same version"
        yield from of_actions("file-action-out-of-turn", files, claim, severity=severity)


def read_versions(facts: LogFacts) -> Iterator[Finding]:
    """A commit read a version that is older than itself."""
    reads = [(commit.version, commit.info.read_version) for commit in facts.records]
    wrong = [(version, read) for version, read in reads if read is not None and read >= version]
    if wrong:
        yield finding(
            "read-version-not-older",
            f"{count_text(len(wrong), 'commit says it', 'commits say they')} read a version not older than "
            f"{'itself' if len(wrong) == 1 else 'themselves'}",
            some([f"v{version} read v{read}" for version, read in wrong]),
            commit_name(wrong[0][0]),
        )


def append_only(facts: LogFacts) -> Iterator[Finding]:
    """A table that is append-only loses no rows: removes only rearrange."""
    commits: list[int] = []
    is_on = False
    for commit in facts.records:  # one that turns the rule on or off is judged by what held before it
        if is_on:
            commits.append(commit.version)
        is_on = is_on if commit.metadata is None else is_append_only(commit.metadata)
    removes = facts.events.filter(~pl.col("added") & pl.col("data_change") & pl.col("version").is_in(commits))
    claim = f"{count_text(removes.height, 'file')} removed from an append-only table"
    yield from of_actions("append-only-files-removed", removes, claim)


_SECOND = 1000


def file_times(facts: LogFacts) -> Iterator[Finding]:
    """Modification times of commit files go forward: time travel by moment rests on them without in-commit times."""
    start = facts.in_commit_start
    commits = facts.log.commit_files().filter(pl.col("modified").is_not_null())
    if start is not None:  # from there on the files' times mean nothing
        commits = commits.filter(pl.col("version") < start)
    times = pl.col("modified").dt.epoch("ms")
    wrong = commits.with_columns((times.shift(1) - times).alias("back")).filter(pl.col("back") > 0)
    if wrong.height:
        largest = int(wrong["back"].max())  # type: ignore[arg-type]  # an Int64 column that is not empty
        yield finding(
            "commit-times-decrease",
            f"{count_text(wrong.height, 'commit is', 'commits are')} dated before the one before",
            f"{versions(wrong['version'])}; by up to {largest / _SECOND:,.3f} s",
            commit_name(wrong["version"][0]),
            severity=None if largest >= _SECOND else Severity.NOTE,
        )


def in_commit_times(facts: LogFacts) -> Iterator[Finding]:
    """With in-commit timestamps each commit begins with a commitInfo that carries one, later than the one before."""
    start = facts.in_commit_start
    if start is None:
        return
    # where the enablement is told by properties, the commit that turned the feature on sets the start itself
    if "delta.inCommitTimestampEnablementVersion" not in facts.properties:
        start = max(start, next((v for v, m in facts.metadata if asks_for_in_commit_times(m.properties)), 0))
    commits = [commit for commit in facts.records if commit.version >= start]
    missing = [commit.version for commit in commits if commit.info.in_commit_timestamp is None]
    lack = count_text(len(missing), "commit lacks", "commits lack")
    yield from of_commits("in-commit-timestamp-missing", missing, f"{lack} the in-commit timestamp the table asks for")
    yield from _recorded_in_commit_times([commit for commit in commits if commit.info.in_commit_timestamp is not None])


def _recorded_in_commit_times(commits: Sequence[CommitRecord]) -> Iterator[Finding]:
    """Of commits that carry their own time: it stands in the first line, and is later than the one before."""
    late = [commit.version for commit in commits if commit.places[0] > 0]
    claim = f"commitInfo is not the first action of {count_text(len(late), 'commit')}"
    yield from of_commits("commit-info-not-first", late, claim, "; readers look for the time in the first line only")
    times = [(commit.version, commit.info.in_commit_timestamp or 0) for commit in commits]
    wrong = [version for (_, before), (version, time) in pairwise(times) if time <= before]
    claim = f"In-commit timestamps do not increase at {count_text(len(wrong), 'commit')}"
    yield from of_commits("in-commit-timestamps-decrease", wrong, claim)
