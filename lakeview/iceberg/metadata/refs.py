"""Refs and the snapshot log to REFS, SNAPSHOT_LOG, and which snapshots lie on which branch (iceberg spec, Snapshot
References, Point in Time Reads)."""

from collections.abc import Mapping

import polars as pl

from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT, SnapshotEntry, SnapshotReference
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.model.column_values import frame_with_moments
from lakeview.model.errors import VersionNotFoundError
from lakeview.model.frames import REFS, SNAPSHOT_LOG

MAIN = "main"


def ancestors(metadata: Metadata, snapshot_id: int) -> list[SnapshotEntry]:
    """A snapshot and those before it on its branch, newest first, as far back as they are still there."""
    chain: dict[int, SnapshotEntry] = {}
    at: int | None = snapshot_id
    snapshots = metadata.snapshots
    while at is not None and at not in chain and (entry := snapshots.get(at)) is not None:
        chain[at] = entry
        at = None if entry.parent_snapshot_id == NO_SNAPSHOT else entry.parent_snapshot_id
    return list(chain.values())


def ref_named(metadata: Metadata, name: str, address: str) -> SnapshotReference:
    """A branch or tag; VersionNotFoundError names those that are there."""
    reference = metadata.refs.get(name)
    if reference is None:
        raise VersionNotFoundError(
            f"{address} has no branch or tag {name}",
            fix=f"choose from {', '.join(sorted(metadata.refs)) or 'none: the table has no snapshot'}",
        )
    return reference


def refs(metadata: Metadata) -> pl.DataFrame:
    """REFS, main first."""
    rows = []
    for name, ref in sorted(metadata.refs.items(), key=lambda item: (item[0] != MAIN, item[0])):
        snapshot = metadata.snapshots.get(ref.snapshot_id)
        rows.append(
            (
                name, ref.type, ref.snapshot_id, None if snapshot is None else snapshot.timestamp_ms, name == MAIN,
                ref.min_snapshots_to_keep, ref.max_snapshot_age_ms, ref.max_ref_age_ms,
            )
        )  # fmt: skip
    return frame_with_moments(rows, REFS, "timestamp")


def names_by_snapshot(metadata: Metadata) -> dict[int, list[str]]:
    """The refs that point at each snapshot, main first."""
    names: dict[int, list[str]] = {}
    for name in sorted(metadata.refs, key=lambda n: (n != MAIN, n)):
        names.setdefault(metadata.refs[name].snapshot_id, []).append(name)
    return names


def snapshot_log(metadata: Metadata) -> pl.DataFrame:
    """SNAPSHOT_LOG in the order recorded, not by the clocks of its writers.

    Each step is known by ancestry alone, which the metadata keeps for snapshots that have not expired.
    """
    current = {s.snapshot_id for s in ancestors(metadata, metadata.current_snapshot_id)}
    line: Mapping[int, int] = _depths(metadata)
    rows = []
    before = NO_SNAPSHOT
    for entry in metadata.snapshot_log:
        there = entry.snapshot_id in metadata.snapshots
        why = _why(metadata, line, before, entry.snapshot_id)
        rows.append((entry.timestamp_ms, entry.snapshot_id, entry.snapshot_id in current if there else None, why))
        before = entry.snapshot_id
    return frame_with_moments(rows, SNAPSHOT_LOG, "timestamp")


def _why(metadata: Metadata, depths: Mapping[int, int], before: int, after: int) -> str:
    if after not in metadata.snapshots:
        return "expired"
    if before == NO_SNAPSHOT:
        return "first"
    if before == after:
        return "again"
    if metadata.snapshots[after].parent == before or _grew_from(metadata, depths, after, before):
        return "commit"
    return "rollback" if _grew_from(metadata, depths, before, after) else "moved"


def _depths(metadata: Metadata) -> dict[int, int]:
    """How many known snapshots come before each on its branch; a circle of parents is cut where it is entered."""
    depths: dict[int, int] = {}
    for start in metadata.snapshots:
        path: list[int] = []
        on_path: set[int] = set()
        at: int | None = start
        while at is not None and at in metadata.snapshots and at not in depths and at not in on_path:
            path.append(at)
            on_path.add(at)
            at = metadata.snapshots[at].parent
        base = depths.get(at, -1) if at is not None else -1
        for place, snapshot_id in enumerate(reversed(path), start=1):
            depths[snapshot_id] = base + place
    return depths


def _grew_from(metadata: Metadata, depths: Mapping[int, int], after: int, before: int) -> bool:
    """Whether a snapshot has another among its ancestors; walks no further than the other's depth."""
    if after not in metadata.snapshots or before not in metadata.snapshots:
        return False
    at: int | None = after
    steps = depths[after] - depths[before]
    while steps > 0 and at is not None and at in metadata.snapshots:
        at = metadata.snapshots[at].parent
        steps -= 1
    return at == before and after != before
