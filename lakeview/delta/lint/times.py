"""Do the times of commits go forward, and do commits carry the time they have to?"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from lakeview.delta.lint.facts import LogFacts
from lakeview.delta.lint.report import finding, versions
from lakeview.delta.log.paths import commit_name
from lakeview.delta.log.times import asks_for_in_commit_times
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import count_text

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
        on = [v for v, m in facts.metadata if asks_for_in_commit_times(m.properties)]
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
