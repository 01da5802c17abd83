"""A listing of the log to the files that make one version: a complete checkpoint and the commits after it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import polars as pl

from lakeview.delta.log.paths import commit_name
from lakeview.errors import CorruptTableError, NotATableError, VersionNotFoundError


@dataclass(frozen=True, slots=True)
class CheckpointFiles:
    """A complete checkpoint: its version and the names of its files, in order."""

    version: int
    names: tuple[str, ...]
    is_v2: bool = False


@dataclass(frozen=True, slots=True)
class LogSegment:
    """What has to be read for one version: `commits` (LOG_FILES) are contiguous and end at `version`."""

    version: int
    checkpoint: CheckpointFiles | None
    commits: pl.DataFrame


class _Hint(msgspec.Struct, frozen=True):
    version: int


def checkpoint_hint(data: bytes | None) -> int | None:
    """The version `_last_checkpoint` names. It is a hint only: absent or broken, it is None."""
    if data is None:
        return None
    try:
        version = msgspec.json.decode(data, type=_Hint).version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return version if 0 <= version < 2**63 else None


def complete_checkpoints(log: pl.DataFrame) -> list[CheckpointFiles]:
    """Every complete checkpoint in LOG_FILES, oldest first; at one version the one to prefer comes last.

    "readers must only use a complete checkpoint, wherein all fragments are present" (delta protocol, Checkpoints)
    """
    columns = ["kind", "version", "part", "parts", "name"]
    files = log.filter(pl.col("kind") != "commit").select(columns).sort("version", "part")  # few beside the commits
    sets: dict[tuple[int, int, str], list[str]] = {}
    for kind, version, part, parts, name in files.iter_rows():
        if kind != "part":
            sets[version, _PREFERENCE[kind], name] = [name]
        elif 1 <= part <= parts:
            sets.setdefault((version, _PREFERENCE[kind], f"{parts:010d}"), []).append(name)
    return [
        CheckpointFiles(version, tuple(names), is_v2=rank == _PREFERENCE["v2"])
        for (version, rank, group), names in sorted(sets.items())
        if rank != _PREFERENCE["part"] or len(names) == int(group)  # ordinals are distinct: they are part of the name
    ]


_PREFERENCE = {"part": 0, "checkpoint": 1, "v2": 2}


def latest_version(log: pl.DataFrame, address: str) -> int:
    """The newest version the log tells about. NotATableError if there is neither commit nor complete checkpoint."""
    versions = [c.version for c in complete_checkpoints(log)[-1:]]
    versions += log.filter(pl.col("kind") == "commit")["version"].tail(1).to_list()
    if not versions:
        raise NotATableError(
            f"{address} is no Delta table: its _delta_log holds neither commits nor a complete checkpoint",
            fix="check the address; if the table was copied, copy its _delta_log as well",
            place=address,
        )
    return max(versions)


def build_segment(log: pl.DataFrame, version: int, address: str) -> LogSegment:
    """The segment for one version. VersionNotFoundError outside the log, CorruptTableError at a gap."""
    checkpoints = complete_checkpoints(log)
    commits = log.filter(pl.col("kind") == "commit")
    present = [c.version for c in checkpoints] + commits["version"].to_list()
    if not present:
        latest_version(log, address)  # raises: this is no table
    low, high = min(present), max(present)
    if not low <= version <= high:
        raise VersionNotFoundError(
            f"version {version} of {address} is not in the log, which holds {low} to {high}",
            fix=f"ask for a version from {low} to {high}",
        )
    base = next((c for c in reversed(checkpoints) if c.version <= version), None)
    start = 0 if base is None else base.version + 1
    tail = commits.filter(pl.col("version").is_between(start, version))
    missing = _first_missing(tail["version"], start, version)
    if missing is not None:
        raise _gap(missing, version, base is None, low if base is None else base.version, address)
    return LogSegment(version, base, tail)


def _first_missing(versions: pl.Series, start: int, end: int) -> int | None:
    """The first version of start..end that is not there, without walking the range: numbers may be absurd."""
    if versions.len() == end - start + 1:
        return None
    expected = start
    for version in versions:
        if version != expected:
            break
        expected += 1
    return expected


def _gap(
    missing: int, version: int, no_base: bool, start: int, address: str
) -> CorruptTableError | VersionNotFoundError:
    if no_base and missing == 0:
        return VersionNotFoundError(
            f"version {version} of {address} can no longer be read: the log starts at version {start}, and no "
            f"checkpoint lies at or below {version}",
            fix="ask for a version at or after the oldest checkpoint; table.versions() lists what can be read",
            place=commit_name(0),
            kind="versions-not-contiguous",
        )
    return CorruptTableError(
        f"version {version} of {address} cannot be read: commit {missing} is missing from the log "
        f"and no checkpoint lies between it and {version}",
        fix=f"restore {commit_name(missing)} from a backup, or ask for a version below {missing}",
        place=commit_name(missing),
        kind="versions-not-contiguous",
    )
