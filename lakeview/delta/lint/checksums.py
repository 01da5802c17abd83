"""Figures that are recorded beside the actions of the log, compared with them: version checksum files, log compactions
and the metrics of commits."""

from collections.abc import Iterator
from typing import Any

import msgspec
import polars as pl

from lakeview.delta.audit.metrics import FIGURES, count_empty_files, metric_differences
from lakeview.delta.audit.run import sums_of
from lakeview.delta.lint.checkpoints import Pair, metadata_differences, protocol_differences
from lakeview.delta.lint.facts import LogFacts, json_file
from lakeview.delta.lint.report import differing, finding, of_names, some, versions
from lakeview.delta.log.actions import Metadata, Protocol
from lakeview.delta.log.commit_info import whole
from lakeview.delta.log.commits import parse_commit
from lakeview.delta.log.file_actions import IDENTITY, file_actions
from lakeview.delta.log.paths import commit_name
from lakeview.model.errors import CorruptTableError
from lakeview.model.findings import Finding
from lakeview.model.printable import count_text

_NEWEST = 100
"""Checksum files that are compared, newest first; and compactions."""


def checksum_files(facts: LogFacts) -> Iterator[Finding]:
    """`.crc` files against the table as the log tells it: files, bytes, protocol, metadata."""
    names = facts.files.filter(pl.col("kind") == "crc").select("name", "version")
    wrong: list[tuple[int, list[Pair]]] = []
    broken_versions: list[int] = []
    totals = _totals(facts)
    for name, version in names.sort("version").tail(_NEWEST).iter_rows():
        figures = json_file(facts.read(name))
        if figures is None:
            broken_versions.append(version)
        elif pairs := list(_compare(facts, figures, version, totals.get(version))):
            wrong.append((version, pairs))
    if wrong:
        claim = f"{count_text(len(wrong), 'version checksum disagrees', 'version checksums disagree')} with the log"
        evidence = f"{versions(v for v, _ in wrong)}; v{wrong[0][0]}: {differing(wrong[0][1])}"
        yield finding("checksum-disagrees", claim, evidence, f"{wrong[0][0]:020d}.crc")
    if broken_versions:
        claim = f"{count_text(len(broken_versions), 'version checksum')} cannot be read"
        yield finding("checksum-unreadable", claim, versions(broken_versions), f"{broken_versions[0]:020d}.crc")


def _totals(facts: LogFacts) -> dict[int, tuple[int, int]]:
    """Files and bytes of each version that a replay from version 0 reaches."""
    if not facts.runs or facts.runs[0][0] is not None:
        return {}
    first, last = facts.runs[0][1][0], facts.runs[0][1][-1]
    events = facts.events.filter(pl.col("version") <= last).unique(
        ["version", *IDENTITY], keep="last", maintain_order=True
    )
    before_added = pl.col("added").shift(1).over(IDENTITY).fill_null(value=False)
    before_size = pl.when(before_added).then(pl.col("size").shift(1).over(IDENTITY)).otherwise(0)
    steps = events.select(
        "version",
        (pl.col("added").cast(pl.Int64) - before_added.cast(pl.Int64)).alias("files"),
        (pl.when("added").then("size").otherwise(0) - before_size).alias("bytes"),
    )
    every = pl.DataFrame({"version": pl.int_range(first, last + 1, eager=True)}, schema={"version": pl.Int64()})
    sums = (
        every.join(steps.group_by("version").agg(pl.col("files", "bytes").sum()), on="version", how="left")
        .sort("version")
        .with_columns(pl.col("files", "bytes").fill_null(0).cum_sum())
    )
    return {v: (f, b) for v, f, b in sums.iter_rows()}


def _compare(facts: LogFacts, figures: dict[str, Any], version: int, totals: tuple[int, int] | None) -> Iterator[Pair]:
    for name, actual in zip(("numFiles", "tableSizeBytes"), totals or (None, None), strict=True):
        figure = whole(figures.get(name))
        if figure is not None and actual is not None and figure != actual:
            yield name, figure, actual
    for name in ("numMetadata", "numProtocol"):
        if (figure := whole(figures.get(name))) is not None and figure != 1:
            yield name, figure, 1
    if totals is not None:
        yield from _actions_compared(facts, figures, version)


def _actions_compared(facts: LogFacts, figures: dict[str, Any], version: int) -> Iterator[Pair]:
    log_protocol, log_metadata = facts.newest_definition(0, version)
    metadata, protocol = _as(figures.get("metadata"), Metadata), _as(figures.get("protocol"), Protocol)
    if metadata is not None and log_metadata is not None:
        yield from metadata_differences(metadata, log_metadata)
    if protocol is not None and log_protocol is not None:
        yield from protocol_differences(protocol, log_protocol)


def _as(value: Any, kind: type[Any]) -> Any:
    try:
        return None if value is None else msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None


def compactions(facts: LogFacts) -> Iterator[Finding]:
    """Log compactions against the commits they stand for: the newest action of each file, and each file once."""
    spans = facts.files.filter(pl.col("kind") == "compaction").select("name", "version", "part").sort("part")
    odd, unreadable = [], []
    for name, start, end in spans.tail(_NEWEST).iter_rows():
        data = facts.read(name)
        try:
            actions = file_actions([parse_commit(data or b"", end, name)], facts.storage.root, [])
        except CorruptTableError:
            unreadable.append(name)
            continue
        newest = facts.events.filter(pl.col("version").is_between(start, end)).unique(
            IDENTITY, keep="last", maintain_order=True
        )
        columns = [*IDENTITY, "added"]
        twice = actions.height - actions.unique(IDENTITY).height
        extra = actions.select(columns).join(newest.select(columns), on=columns, how="anti", nulls_equal=True).height
        if twice or extra:
            odd.append(f"{name}: {count_text(twice, 'file')} twice, {extra:,} not as the commits leave them")
    if odd:
        claim = f"{count_text(len(odd), 'log compaction is', 'log compactions are')} not reconciled"
        yield finding("log-compaction-not-reconciled", claim, some(odd, limit=1), odd[0].partition(":")[0])
    claim = f"{count_text(len(unreadable), 'log compaction')} cannot be read"
    yield from of_names("log-compaction-unreadable", unreadable, claim)


def metrics_agree_with_actions(facts: LogFacts) -> Iterator[Finding]:
    """operationMetrics, written as numbers or as text, against the file actions of the same commit."""
    sums = {row["version"]: row for row in sums_of(facts.events).iter_rows(named=True)}
    wrong: list[tuple[int, str]] = []
    empty: list[tuple[int, str]] = []
    for commit in facts.records:
        if commit.info.operation in FIGURES:
            pairs = metric_differences(commit, sums.get(commit.version))
            if pairs and not isinstance(pairs, str):
                text = f"v{commit.version} {commit.info.operation}: {differing(pairs)}"
                (empty if count_empty_files(pairs) else wrong).append((commit.version, text))
    if empty:
        yield finding(
            "metrics-count-empty-files",
            f"{count_text(len(empty), 'commit counts', 'commits count')} more files than {_its(len(empty))} actions"
            " add",
            f"{some([text for _, text in empty], limit=1)}; Spark counts files without rows that it then leaves out",
            commit_name(empty[0][0]),
        )
    if wrong:
        yield finding(
            "metrics-disagree",
            f"{count_text(len(wrong), 'commit did', 'commits did')} something else than {_its(len(wrong))} metrics say",
            some([text for _, text in wrong]),
            commit_name(wrong[0][0]),
        )


def _its(number: int) -> str:
    return "its" if number == 1 else "their"
