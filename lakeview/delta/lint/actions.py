"""Commits one by one: two actions where the protocol allows one, files that come and go at once, and times that go
back."""

from collections.abc import Iterator

import polars as pl

from lakeview.delta.lint.facts import LogFacts
from lakeview.delta.lint.report import finding, some, versions
from lakeview.delta.log.file_actions import IDENTITY
from lakeview.delta.log.paths import commit_name
from lakeview.delta.log.times import asks_for_in_commit_times
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import count_text

_ONE = {
    "protocols": ("protocol", "Protocol Evolution", Severity.BROKEN),
    "metadatas": ("metaData", "Change Metadata", Severity.BROKEN),
    "infos": ("commitInfo", "Commit Provenance Information", Severity.ATTENTION),
}
"""Count in COMMITS_READ -> action, section, severity of a commit with more than one."""


def one_of_each(facts: LogFacts) -> Iterator[Finding]:
    """At most one protocol, metaData and commitInfo in a commit; one txn an application, one entry a domain."""
    for column, (kind, section, severity) in _ONE.items():
        twice = facts.commits.filter(pl.col(column) > 1)
        if twice.height:
            yield finding(
                "action-twice-in-commit",
                severity,
                f"{_commits(twice.height)} {kind} actions",
                f"{versions(twice['version'])}; readers may take any of them",
                section=section,
                place=commit_name(twice["version"][0]),
                remedy="the writer must put one of them into a commit; write the right one again in a new commit",
            )
    for column, kind, section in (
        ("txn_twice", "txn", "Transaction Identifiers"),
        ("domain_twice", "domainMetadata", "Domain Metadata"),
    ):
        twice = facts.commits.filter(pl.col(column).is_not_null())
        if twice.height:
            yield finding(
                "action-twice-for-one-key",
                Severity.BROKEN,
                f"{_commits(twice.height)} {kind} actions for one {'application' if kind == 'txn' else 'domain'}",
                f"{versions(twice['version'])}; first for {twice[column][0]}",
                section=section,
                place=commit_name(twice["version"][0]),
                remedy="the writer must put one of them into a commit: readers may take either",
            )


def _commits(number: int) -> str:
    return "A commit holds two" if number == 1 else f"{number:,} commits hold two"


def once_a_file(facts: LogFacts) -> Iterator[Finding]:
    """No file is added and removed, or added twice, in one version: actions inside a commit have no order."""
    counts = facts.events.group_by("version", *IDENTITY, maintain_order=True).agg(
        pl.col("added").sum().alias("adds"), (~pl.col("added")).sum().alias("removes"), pl.col("path").first()
    )
    for claim, rows in (
        ("added and removed in the same version", counts.filter((pl.col("adds") > 0) & (pl.col("removes") > 0))),
        ("added twice in the same version", counts.filter((pl.col("adds") > 1) & (pl.col("removes") == 0))),
        ("removed twice in the same version", counts.filter((pl.col("removes") > 1) & (pl.col("adds") == 0))),
    ):
        if rows.height:
            yield finding(
                "file-action-out-of-turn",
                Severity.NOTE if claim.startswith("removed") else Severity.BROKEN,
                f"{count_text(rows.height, 'file')} {'is' if rows.height == 1 else 'are'} {claim}",
                f"at {versions(rows['version'].unique(maintain_order=True))}: "
                f"{some(rows['path'].head(3).to_list(), rows.height)}",
                section="Add File and Remove File",
                place=commit_name(rows["version"][0]),
                remedy="readers disagree on such a commit: rewrite the files named in a new commit",
            )


def read_versions(facts: LogFacts) -> Iterator[Finding]:
    """A commit read a version that is older than itself."""
    wrong = facts.commits.filter(pl.col("read_version") >= pl.col("version"))
    if wrong.height:
        pairs = [f"v{v} read v{r}" for v, r in wrong.select("version", "read_version").head(3).iter_rows()]
        yield finding(
            "read-version-not-older",
            Severity.ATTENTION,
            f"{count_text(wrong.height, 'commit says it', 'commits say they')} read a version not older than "
            f"{'itself' if wrong.height == 1 else 'themselves'}",
            some(pairs, wrong.height),
            section="Commit Provenance Information",
            place=commit_name(wrong["version"][0]),
            remedy="a commit was renamed or copied from another table, or its writer counts wrongly",
        )


def append_only(facts: LogFacts) -> Iterator[Finding]:
    """A table that is append-only loses no rows: removes only rearrange."""
    spans = [(v, m.properties.get("delta.appendOnly", "").lower() == "true") for v, m in facts.contents.metadata]
    if not any(on for _, on in spans):
        return
    rules = pl.DataFrame(spans, schema={"version": pl.Int64(), "on": pl.Boolean()}, orient="row").unique(
        "version", keep="last", maintain_order=True
    )
    removes = facts.events.filter(~pl.col("added") & pl.col("data_change")).sort("version")
    # a commit that turns the rule on or off is judged by what held before it
    before = removes.with_columns(pl.col("version") - 1).join_asof(rules.sort("version"), on="version")
    wrong = before.filter(pl.col("on")).with_columns(pl.col("version") + 1)
    if wrong.height:
        yield finding(
            "append-only-files-removed",
            Severity.BROKEN,
            f"{count_text(wrong.height, 'file')} removed from an append-only table",
            f"at {versions(wrong['version'].unique(maintain_order=True))}: "
            f"{some(wrong['path'].head(3).to_list(), wrong.height)}",
            section="Append-only Tables",
            place=commit_name(wrong["version"][0]),
            remedy="restore the rows from the version before; keep the writer out that ignores delta.appendOnly",
        )


_SECOND = 1000


def file_times(facts: LogFacts) -> Iterator[Finding]:
    """Modification times of commit files go forward: time travel by moment rests on them without in-commit times."""
    start = facts.in_commit_start
    commits = facts.commits.filter(pl.col("modified").is_not_null())
    if start is not None:  # from there on the files' times mean nothing
        commits = commits.filter(pl.col("version") < start)
    back = (pl.col("modified").shift(1) - pl.col("modified")).alias("back")
    wrong = commits.with_columns(back).filter(pl.col("back") > 0)
    if wrong.height:
        largest = int(wrong["back"].max())  # type: ignore[arg-type]  # an Int64 column that is not empty
        yield finding(
            "commit-times-decrease",
            Severity.ATTENTION if largest >= _SECOND else Severity.NOTE,
            f"{count_text(wrong.height, 'commit is', 'commits are')} dated before the one before",
            f"{versions(wrong['version'])}; by up to {largest / _SECOND:,.3f} s",
            section="Commit Provenance Information",
            place=commit_name(wrong["version"][0]),
            remedy="time travel by moment moves such commits forward; turn on in-commit timestamps, or keep file times"
            " when copying",
        )


def in_commit_times(facts: LogFacts) -> Iterator[Finding]:
    """With in-commit timestamps each commit begins with a commitInfo that carries one, later than the one before."""
    start = facts.in_commit_start
    if start is None:
        return
    section = "In-Commit Timestamps"
    commits = facts.commits.filter((pl.col("version") >= start) & pl.col("trouble").is_null())
    # where the enablement is told by properties, the commit that turned the feature on sets the start itself
    if "delta.inCommitTimestampEnablementVersion" not in facts.properties:
        on = [v for v, m in facts.contents.metadata if asks_for_in_commit_times(m.properties)]
        commits = commits.filter(pl.col("version") >= (on[0] if on else 0))
    missing = commits.filter(pl.col("in_commit").is_null())
    if missing.height:
        yield finding(
            "in-commit-timestamp-missing",
            Severity.BROKEN,
            f"{count_text(missing.height, 'commit lacks', 'commits lack')} the in-commit timestamp the table asks for",
            versions(missing["version"]),
            section=section,
            place=commit_name(missing["version"][0]),
            remedy="the writer ignores inCommitTimestamp: keep it out; readers fall back on the file's time",
        )
    late = commits.filter(~pl.col("info_first") & pl.col("in_commit").is_not_null())
    if late.height:
        yield finding(
            "commit-info-not-first",
            Severity.ATTENTION,
            f"commitInfo is not the first action of {count_text(late.height, 'commit')}",
            f"{versions(late['version'])}; readers look for the time in the first line only",
            section=section,
            place=commit_name(late["version"][0]),
            remedy="the writer must put commitInfo first",
        )
    present = commits.filter(pl.col("in_commit").is_not_null())
    wrong = present.filter(pl.col("in_commit") <= pl.col("in_commit").shift(1))
    if wrong.height:
        yield finding(
            "in-commit-timestamps-decrease",
            Severity.BROKEN,
            f"In-commit timestamps do not increase at {count_text(wrong.height, 'commit')}",
            versions(wrong["version"]),
            section=section,
            place=commit_name(wrong["version"][0]),
            remedy="time travel by moment is wrong around them: go by version",
        )
