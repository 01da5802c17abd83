"""The log of a table in a store that shows no folders: names that it must have, tried one by one and side by side."""

import msgspec

from lakeview.delta.log.paths import LAST_CHECKPOINT, LOG_FOLDER, checkpoint_name, commit_name
from lakeview.model import limits
from lakeview.model.errors import AccessDeniedError, UnsupportedTableError
from lakeview.storage import Entry, Storage

_WIDTH = 16
"""Names that are tried at once."""


class _V2(msgspec.Struct, frozen=True):
    path: str | None = None


class _Hint(msgspec.Struct, frozen=True, rename="camel"):
    version: int = -1
    parts: int | None = None
    v2_checkpoint: _V2 | None = None


def probe_log(storage: Storage, start: int = 0) -> list[Entry]:
    """The commits from version `start` on and the checkpoint that `_last_checkpoint` names, without sizes and times.

    Commits follow each other without a gap, so that the last is found among a million by five rounds of requests. A
    log whose first commits were cleaned up begins at its checkpoint.
    """
    hint = _hint(storage)
    checkpoint = _checkpoint_names(hint) if hint.version >= start else []
    base = max(hint.version, start)
    if start < base and _exist(storage, [start])[0]:
        base = start
    first = base if _exist(storage, [base])[0] else base + 1
    commits = [commit_name(version) for version in range(first, _last(storage, base) + 1)]
    return sorted((name, 0, None) for name in checkpoint + commits)


def _hint(storage: Storage) -> _Hint:
    try:
        return msgspec.json.decode(storage.read(LAST_CHECKPOINT), type=_Hint)
    except (FileNotFoundError, AccessDeniedError, UnsupportedTableError, msgspec.DecodeError, UnicodeDecodeError):
        return _Hint()


def _checkpoint_names(hint: _Hint) -> list[str]:
    if not 0 <= hint.version < 2**63:
        return []
    if hint.v2_checkpoint is not None and hint.v2_checkpoint.path:
        return [hint.v2_checkpoint.path.rpartition("/")[2]]
    if hint.parts is not None and 1 <= hint.parts <= limits.CHECKPOINT_PARTS:
        stem = commit_name(hint.version).removesuffix(".json")
        return [f"{stem}.checkpoint.{part:010d}.{hint.parts:010d}.parquet" for part in range(1, hint.parts + 1)]
    return [checkpoint_name(hint.version)]


def _last(storage: Storage, base: int) -> int:
    """The last version of the commits that follow `base` without a gap; `base` itself where none does."""
    steps = [1 << power for power in range(_WIDTH)]
    low, high = base, None
    while high is None:  # the next version that is not there
        exists = _exist(storage, [low + step for step in steps])
        there = exists.index(False) if False in exists else len(exists)
        if there < len(exists):
            high = low + steps[there]
        low += steps[there - 1] if there else 0
    while high - low > 1:
        width = min(_WIDTH, high - low - 1)
        candidates = [low + (high - low) * (i + 1) // (width + 1) for i in range(width)]
        exists = _exist(storage, candidates)
        there = exists.index(False) if False in exists else width
        low, high = (candidates[there - 1] if there else low), (candidates[there] if there < width else high)
    return low


def _exist(storage: Storage, versions: list[int]) -> list[bool]:
    paths = [f"{LOG_FOLDER}/{commit_name(version)}" for version in versions]
    return list(storage.each_ahead(storage.exists, paths))
