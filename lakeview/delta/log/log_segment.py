"""A listing of the log to the files that make one version: a complete checkpoint and the commits after it. What
`_last_checkpoint` names, and its checksum."""

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec
import polars as pl

from lakeview.delta.log.paths import LogFile, commit_name
from lakeview.model.errors import CorruptTableError, NotATableError, VersionNotFoundError


@dataclass(frozen=True, slots=True)
class CheckpointFiles:
    """A complete checkpoint: its version, and the names of its files and their bytes, in order."""

    version: int
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    is_v2: bool = False


@dataclass(frozen=True, slots=True)
class LogSegment:
    """What has to be read for one version: the checkpoint it starts from, and the commits after it, without a gap."""

    version: int
    checkpoint: CheckpointFiles | None
    commits: range


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
    """`checkpoints_of` over LOG_FILES."""
    few = log.filter(pl.col("kind").is_in(list(_PREFERENCE)))
    rows = few.select("version", "name", "kind", "part", "parts", "size", pl.lit(None)).iter_rows()
    return checkpoints_of(LogFile._make(row) for row in rows)


def checkpoints_of(files: Iterable[LogFile]) -> list[CheckpointFiles]:
    """Every complete checkpoint among these files, oldest first; at one version the one to prefer comes last.

    "readers must only use a complete checkpoint, wherein all fragments are present" (delta protocol, Checkpoints)
    """
    sets: dict[tuple[int, int, str], list[tuple[int, str, int]]] = {}
    for file in files:
        rank = _PREFERENCE.get(file.kind)
        if rank is None:
            continue
        if file.part is None or file.parts is None:
            sets[file.version, rank, file.name] = [(0, file.name, file.size)]
        elif 1 <= file.part <= file.parts:
            sets.setdefault((file.version, rank, f"{file.parts:010d}"), []).append((file.part, file.name, file.size))
    complete: list[CheckpointFiles] = []
    for (version, rank, group), parts in sorted(sets.items()):
        if rank != _PREFERENCE["part"] or len(parts) == int(group):  # ordinals are distinct: they are part of the name
            _, names, sizes = zip(*sorted(parts), strict=True)
            complete.append(CheckpointFiles(version, names, sizes, is_v2=rank == _PREFERENCE["v2"]))
    return complete


_PREFERENCE = {"part": 0, "checkpoint": 1, "v2": 2}


def no_log(address: str) -> NotATableError:
    """The error for a log that holds neither commit nor complete checkpoint."""
    return NotATableError(
        f"{address} is no Delta table: its _delta_log holds neither commits nor a complete checkpoint",
        fix="check the address; if the table was copied, copy its _delta_log as well",
        place=address,
    )


def no_action(action: str, segment: LogSegment, address: str) -> CorruptTableError:
    """The error for a version without a protocol or metaData action."""
    base = segment.checkpoint
    where = "its commits" if base is None else f"checkpoint {base.version} and what follows"
    return CorruptTableError(
        f"version {segment.version} of {address} has no {action} action: {where} hold none",
        fix="restore the first commit or a whole checkpoint from a backup",
        place=action,
        kind="missing-protocol" if action == "protocol" else "missing-metadata",
    )


def build_segment(
    commits: Sequence[int], checkpoints: Sequence[CheckpointFiles], version: int, address: str
) -> LogSegment:
    """The segment for one version, of the commits' versions and the complete checkpoints, both in ascending order.

    VersionNotFoundError outside the log, CorruptTableError at a gap, NotATableError if there is nothing.
    """
    ends = [*commits[:1], *commits[-1:], *(c.version for c in (*checkpoints[:1], *checkpoints[-1:]))]
    if not ends:
        raise no_log(address)
    low, high = min(ends), max(ends)
    if not low <= version <= high:
        oldest, newest = _oldest_readable(commits, checkpoints), _newest_readable(commits, checkpoints, high)
        # what was listed may begin at the last checkpoint: older versions may be there
        end, fix = f"holds {low} to {high}", f"ask for a version from {oldest} to {newest}"
        if version > high:
            end, fix = f"ends at {high}", f"ask for a version up to {newest}"
        if oldest is None or newest is None:
            fix = _restore(low)
        raise VersionNotFoundError(f"version {version} of {address} is not in the log, which {end}", fix=fix)
    base = next((c for c in reversed(checkpoints) if c.version <= version), None)
    start = 0 if base is None else base.version + 1
    missing = first_missing(commits, start, version)
    if missing is not None and base is None and missing == 0:
        oldest = _oldest_readable(commits, checkpoints)
        raise VersionNotFoundError(
            f"version {version} of {address} can no longer be read: the log starts at version {low}, and no "
            f"checkpoint lies at or below {version}",
            fix=_restore(low) if oldest is None else f"ask for version {oldest}, the oldest that can be read",
            place=commit_name(0),
            kind="versions-not-contiguous",
        )
    if missing is not None:
        raise CorruptTableError(
            f"version {version} of {address} cannot be read: commit {missing} is missing from the log "
            f"and no checkpoint lies between it and {version}",
            # the versions before the first missing commit follow each other from the checkpoint, or from 0
            fix=f"restore {commit_name(missing)} from a backup, or ask for version {missing - 1}",
            place=commit_name(missing),
            kind="versions-not-contiguous",
        )
    return LogSegment(version, base, range(start, version + 1))


def first_missing(versions: Sequence[int], start: int, end: int) -> int | None:
    """The first version of start..end that is not there, without walking the range: numbers may be absurd."""
    low, high = bisect_left(versions, start), bisect_right(versions, end)
    if high - low == end - start + 1:  # distinct numbers in ascending order
        return None
    following = start
    for version in versions[low:high]:
        if version != following:
            break
        following += 1
    return following


def _oldest_readable(commits: Sequence[int], checkpoints: Sequence[CheckpointFiles]) -> int | None:
    if commits and commits[0] == 0:
        return 0
    return checkpoints[0].version if checkpoints else None


def _newest_readable(commits: Sequence[int], checkpoints: Sequence[CheckpointFiles], latest: int) -> int | None:
    missing = first_missing(commits, checkpoints[-1].version + 1 if checkpoints else 0, latest)
    newest = latest if missing is None else missing - 1
    return newest if newest >= 0 else None


def _restore(low: int) -> str:
    return f"restore the log below version {low} from a backup: no version can be read without it"


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def checksum(data: bytes) -> str | None:
    """The checksum a `_last_checkpoint` of these bytes should carry; None if they are no JSON object.

    MD5 over its canonical form (delta protocol, JSON checksum): each value with the path to it, sorted by path.
    """
    try:
        value = json.loads(data, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
        if not isinstance(value, dict):
            return None
        pairs = sorted((p.encode(), v) for p, v in _leaves({k: v for k, v in value.items() if k != "checksum"}, ""))
    except (ValueError, RecursionError):  # a lone surrogate has no bytes: a ValueError too
        return None
    text = ",".join(f"{path.decode()}={leaf}" for path, leaf in pairs)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    entries: list[tuple[str, Any]]
    if isinstance(value, dict):
        entries = [(f'"{quote(k, safe="")}"', v) for k, v in value.items()]
    elif isinstance(value, list):
        entries = [(str(i), v) for i, v in enumerate(value)]
    else:
        yield path, _scalar(value)
        return
    for key, inner in entries:
        yield from _leaves(inner, f"{path}+{key}" if path else key)


def _scalar(value: Any) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, str):
        return f'"{quote(value, safe="")}"'
    return {None: "null", True: "true", False: "false"}[value]
