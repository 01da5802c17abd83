"""Earlier metadata files to since when something stands: which of them had it first (iceberg spec, Table Metadata,
metadata-log)."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from lakeview.iceberg.metadata.snapshots import NO_SNAPSHOT, MetadataLogEntry
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.model.column_values import frame_with_moments
from lakeview.model.errors import LakeviewError
from lakeview.model.frames import FORMAT_VERSIONS

Earlier = Callable[[MetadataLogEntry], Metadata]
"""Reads an earlier metadata file; LakeviewError where it is gone or broken."""

# `v<V>.metadata.json` of file systems, `<V>-<uuid>.metadata.json` of metastores; V counts from 0 or 1
_FIRST = re.compile(r"v?0*[01][.-]")


@dataclass(frozen=True, slots=True)
class Place:
    """A metadata file that was the current one, and the one before it; None where the table began with it."""

    name: str
    timestamp_ms: int | None
    metadata: Metadata
    before: Metadata | None


class MetadataLog:
    """Every metadata file that is still named, oldest first, the one in use last. Each is read at most once.

    What only ever is added (a spec, a format version) is found by halving: a few reads for each question.
    """

    def __init__(self, metadata: Metadata, name: str, earlier: Earlier) -> None:
        self._metadata = metadata
        self._name = name
        self._earlier = earlier
        self._log = metadata.metadata_log
        self._cache: dict[int, Metadata | None] = {len(self._log): metadata}

    def first(self, has: Callable[[Metadata], bool]) -> Place | None:
        """The first file that has it, which the one in use does. None where an older one is gone that could."""
        low, high = 0, len(self._log)
        oldest = self._at(0)
        if oldest is not None:  # what is as old as the log, and most things are, costs one read
            low, high = (0, 0) if has(oldest) else (1, high)
        while low < high:
            middle = (low + high) // 2
            metadata = self._at(middle)
            if metadata is not None and has(metadata):  # one that is gone counts as older
                high = middle
            else:
                low = middle + 1
        metadata = self._at(low)
        before = self._at(low - 1) if low > 0 else None
        if metadata is None or (before is None and not self._begins(low, metadata)):
            return None
        if low == len(self._log):
            return Place(self._name, self._metadata.last_updated_ms, metadata, before)
        entry = self._log[low]
        return Place(entry.metadata_file.rpartition("/")[2], entry.timestamp_ms, metadata, before)

    def _begins(self, place: int, metadata: Metadata) -> bool:
        """Whether the table began with a file: no file was before it, and its own number says so."""
        name = self._name if place == len(self._log) else self._log[place].metadata_file.rpartition("/")[2]
        return place == 0 and not metadata.metadata_log and _FIRST.match(name) is not None

    def _at(self, place: int) -> Metadata | None:
        if place not in self._cache:
            try:
                self._cache[place] = self._earlier(self._log[place])
            except LakeviewError:
                self._cache[place] = None
        return self._cache[place]


def format_versions(metadata: Metadata, name: str, earlier: Earlier) -> pl.DataFrame:
    """FORMAT_VERSIONS, oldest first. `name`: of the metadata file itself.

    A table is only ever upgraded: the file that raised its version is found by halving the metadata log.
    """
    log = MetadataLog(metadata, name, earlier)
    rows: list[tuple[int, int | None, int | None, str | None]] = []
    version = metadata.format_version
    while version >= 1:
        place = log.first(_at_least(version))
        if place is None:
            rows.append((version, None, None, None))
            break
        rows.append((version, _came_with(place), place.timestamp_ms, place.name))
        version = 0 if place.before is None else place.before.format_version
    return frame_with_moments(rows[::-1], FORMAT_VERSIONS, "since")


def _at_least(version: int) -> Callable[[Metadata], bool]:
    return lambda file: file.format_version >= version


def _came_with(place: Place) -> int | None:
    """The snapshot that was committed in the same file; None where it had none of its own."""
    current = place.metadata.current_snapshot_id
    is_earlier = place.before is not None and current in place.before.snapshots
    return None if is_earlier or current == NO_SNAPSHOT else current
