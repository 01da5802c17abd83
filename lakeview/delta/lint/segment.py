"""The files of the log: is every version there, every checkpoint whole, the hint right, the tail short?"""

from collections.abc import Iterator
from typing import Any

import polars as pl

from lakeview.delta.features import CATALOG_FEATURES
from lakeview.delta.lint.facts import LogFacts, json_file
from lakeview.delta.lint.report import differing, finding, short, some, versions
from lakeview.delta.log.checkpoints import UNREADABLE
from lakeview.delta.log.commit_info import whole
from lakeview.delta.log.log_segment import CheckpointFiles, checksum
from lakeview.delta.log.paths import LAST_CHECKPOINT, LOG_FOLDER, commit_name
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import count_text

_REPORTED_ELSEWHERE = ("versions-not-contiguous", "unsupported-reader-feature", "too-large")
"""Why a version cannot be rebuilt, where a gap says so already, or where the fault is not the log's."""

_TAIL_TIMES, _TAIL_AT_LEAST = 10, 100
"""A log is too long after its last checkpoint with this many times the interval, and this many commits."""


def commits_complete(facts: LogFacts) -> Iterator[Finding]:
    """Gaps, commits that cannot be read, and a latest version that cannot be rebuilt."""
    bases = {c.version for c in facts.checkpoints}
    present = facts.log.commit_files()["version"].to_list()
    newest_base = max(bases, default=-1)
    previous, commits = -1, frozenset(present)
    for version in sorted({*present, *bases}):
        # before a checkpoint a cleanup removes what it likes, but not the middle of what it leaves
        if version > previous + 1 and (version not in bases or previous in commits):
            yield _gap(previous, version, newest_base >= version)
        previous = version
    if catalog := sorted(facts.features & CATALOG_FEATURES):
        claim = "A catalog manages this table: only the commits that it has published were examined"
        yield finding("catalog-managed", claim, some(catalog), "protocol")
    if bad := facts.troubles:
        yield finding(
            "commit-unreadable",
            f"{count_text(len(bad), 'commit')} cannot be read",
            some(list(bad.values()), limit=1),
            commit_name(min(bad)),
            severity=Severity.ATTENTION if newest_base >= max(bad) else None,
        )
    elif facts.trouble is not None and facts.trouble.kind not in _REPORTED_ELSEWHERE:
        claim, error = f"version {facts.log.latest} cannot be rebuilt", facts.trouble
        yield finding("latest-version-not-rebuilt", claim, error.message, error.place, remedy=error.fix)


def _gap(previous: int, version: int, has_bridge: bool) -> Finding:
    first, last = previous + 1, version - 1
    if previous < 0 and has_bridge:
        return finding(
            "first-commit-without-checkpoint",
            f"The commits begin at v{version}, which no checkpoint supports",
            "what lies before the oldest checkpoint cannot be rebuilt; a cleanup leaves a log like this",
            commit_name(version),
        )
    missing = f"commit {first}" if first == last else f"commits {first:,} to {last:,}"
    claim = f"The log has a gap: {missing} {'is' if first == last else 'are'} missing"
    evidence = "a later checkpoint bridges it for newer versions" if has_bridge else "no checkpoint lies above it"
    severity = Severity.ATTENTION if has_bridge else None
    return finding("commits-missing", claim, evidence, commit_name(first), severity=severity)


def multi_part(facts: LogFacts) -> Iterator[Finding]:
    """Multi-part checkpoints with parts missing, or in a table that must not have any."""
    parts = facts.files.filter(pl.col("kind") == "part")
    whole = {(c.version, len(c.names)) for c in facts.checkpoints if ".checkpoint.0" in c.names[0]}
    for (version, count), group in parts.group_by("version", "parts", maintain_order=True):
        if (version, count) in whole:
            continue
        missing = sorted(set(range(1, min(int(count), 10_000) + 1)) - set(group["part"]))
        yield finding(
            "checkpoint-incomplete",
            f"The checkpoint of v{version} is incomplete: {group.height:,} of {int(count):,} parts are there",
            f"missing: part {some(missing)}" if missing else "its parts do not number from 1 on",
            group["name"][0],
        )
    features = facts.features
    if parts.height and "v2Checkpoint" in features:
        claim, at = "Multi-part checkpoints in a table with v2Checkpoint", versions(parts["version"].unique().sort())
        yield finding("multi-part-with-v2-feature", claim, f"at {at}", parts["name"][0])
    v2 = [c for c in facts.checkpoints if c.is_v2]
    if v2 and facts.latest_protocol is not None and "v2Checkpoint" not in features:
        claim, at = "V2 checkpoints in a table without the feature v2Checkpoint", versions(c.version for c in v2)
        yield finding("v2-checkpoint-without-feature", claim, f"at {at}", v2[0].names[0])


def log_tail(facts: LogFacts) -> Iterator[Finding]:
    """More commits after the newest checkpoint than a reader should have to read."""
    newest = facts.checkpoints[-1].version if facts.checkpoints else -1
    tail = facts.log.commit_files().filter(pl.col("version") > newest)
    interval = whole(facts.properties.get("delta.checkpointInterval", "10")) or 10
    limit = max(_TAIL_AT_LEAST, _TAIL_TIMES * interval)
    if tail.height <= limit:
        return
    since = f"since the checkpoint of v{newest}" if newest >= 0 else "and no checkpoint"
    yield finding(
        "checkpoint-overdue",
        f"{tail.height:,} commits {since}",
        f"{int(tail['size'].sum()):,} bytes to read at every opening; the interval is {interval:,}",
        commit_name(tail["version"][0]),
        threshold=f"{limit:,} commits",
    )


def last_checkpoint(facts: LogFacts) -> Iterator[Finding]:
    """`_last_checkpoint`: readers take it as a hint, and some trust it more than they should."""
    data = facts.read(_HINT)
    if data is None and not facts.storage.exists(LAST_CHECKPOINT):
        return
    hint = json_file(data)
    version = None if hint is None else whole(hint.get("version"))
    if hint is None or version is None:
        evidence = f"{len(data or b'')} bytes that hold no version"
        yield finding("last-checkpoint-unreadable", "_last_checkpoint cannot be read", evidence, _HINT)
        return
    if not facts.has_checkpoint(version):
        yield finding(
            "last-checkpoint-without-checkpoint",
            f"_last_checkpoint names v{version}, which has no complete checkpoint",
            f"complete ones: {versions([c.version for c in facts.checkpoints[-3:]]) or 'none'}",
            _HINT,
        )
        return
    if not any(c.version == version for c in facts.checkpoints):
        return  # it was written since the log was listed
    yield from _hint_itself(facts, hint, version, data or b"")
    yield from _other_checkpoint(facts, hint, version)


_HINT = LAST_CHECKPOINT.removeprefix(f"{LOG_FOLDER}/")


def _hint_itself(facts: LogFacts, hint: dict[str, Any], version: int, data: bytes) -> Iterator[Finding]:
    """Whether `_last_checkpoint` is current, sound by its own checksum, and names a file that is there."""
    newest = facts.checkpoints[-1].version
    if version < newest:
        claim = f"_last_checkpoint is stale: it names v{version}, the newest checkpoint is v{newest}"
        evidence = "readers that trust it read more commits than they need"
        yield finding("last-checkpoint-stale", claim, evidence, _HINT)
    text = hint.get("checksum")
    if isinstance(text, str) and text != checksum(data):
        evidence = f"it says {text}, its content gives {checksum(data)}"
        yield finding("last-checkpoint-checksum", "_last_checkpoint fails its own checksum", evidence, _HINT)
    path = hint["v2Checkpoint"].get("path") if isinstance(hint.get("v2Checkpoint"), dict) else None
    if isinstance(path, str) and path.rpartition("/")[2] not in facts.files["name"]:
        claim = "_last_checkpoint names a V2 checkpoint file that is not there"
        yield finding("last-checkpoint-names-missing-file", claim, short(path), _HINT)


def _other_checkpoint(facts: LogFacts, hint: dict[str, Any], version: int) -> Iterator[Finding]:
    """Whether the figures of `_last_checkpoint` are those of a checkpoint of its version."""
    at = [c for c in facts.checkpoints if c.version == version]
    # every complete checkpoint of that version fits the hint, or one of them should
    wrong = [list(_disagreements(facts, hint, c)) for c in at]
    if wrong and all(wrong):
        fewest = min(wrong, key=len)
        # some writers put the checkpoint's bytes, or 1, where its number of actions belongs: no reader minds
        harmless = all(what == "size" for what, _, _ in fewest)
        yield finding(
            "last-checkpoint-describes-another",
            f"_last_checkpoint describes another checkpoint than the one of v{version}",
            differing(fewest),
            _HINT,
            severity=Severity.NOTE if harmless else None,
        )


def _disagreements(
    facts: LogFacts, hint: dict[str, Any], files: CheckpointFiles
) -> Iterator[tuple[str, object, object]]:
    parts = whole(hint.get("parts"))
    if parts is not None and not files.is_v2 and parts != len(files.names):
        yield "parts", parts, len(files.names)
    if files.is_v2 or hint.get("v2Checkpoint") is not None:  # sizes of those may or may not count their sidecars
        return
    if (size := whole(hint.get("sizeInBytes"))) is not None and size != facts.size_of(files):
        yield "sizeInBytes", size, facts.size_of(files)
    checkpoint = facts.log.checkpoint(files)
    try:
        actions, adds = checkpoint.count_actions(), checkpoint.adds([]).height
    except UNREADABLE:  # the check of the checkpoint itself says so
        return
    if actions is not None and (number := whole(hint.get("size"))) is not None and number != actions:
        yield "size", number, actions
    if (number := whole(hint.get("numOfAddFiles"))) is not None and number != adds:
        yield "numOfAddFiles", number, adds
