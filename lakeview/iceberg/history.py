"""Snapshots, their logs and manifests to what happened: VERSIONS and ACTIONS."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import accumulate, islice

import msgspec
import polars as pl

from lakeview.iceberg.manifests.entries import FORMATS, entry_actions
from lakeview.iceberg.manifests.manifest_lists import Span, rows_of, together
from lakeview.iceberg.manifests.tree import Tree
from lakeview.iceberg.metadata.locations import Locations
from lakeview.iceberg.metadata.snapshots import SnapshotEntry
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.iceberg.metadata.versions import in_order, version_frame
from lakeview.model.errors import LakeviewError
from lakeview.model.frames import ACTIONS
from lakeview.storage import Storage
from lakeview.storage.names_ahead import NamesAhead

_PATHS_AT_ONCE = 2_000_000
"""Looked up together among the names of a folder, which are made a table to look up for each part."""


class TreeHistory:
    """What the manifests of all snapshots tell. Each manifest is read once."""

    def __init__(self, storage: Storage, locations: Locations, tree: Tree, metadata: Metadata) -> None:
        self._storage = storage
        self._locations = locations
        self._tree = tree
        self._metadata = metadata
        self.folder = NamesAhead(storage)

    def versions(self, names: pl.Series | None = None) -> pl.DataFrame:
        """VERSIONS, newest first; one listing of the table's folder shows which files are gone, or `names`, those below
        it where it was listed.

        Files outside the folder are taken to be there. Manifest lists are read together, then the first manifest of
        every snapshot, then the others of those snapshots that miss nothing so far: where a file is gone most often
        all are, and manifests are many requests to a remote store.
        """
        newest_first = list(reversed(in_order(self._metadata)))
        with ThreadPoolExecutor(1, thread_name_prefix="lakeview-names") as lister:
            # a million names take seconds, as their manifests do
            listing = lister.submit(lambda: self.folder.take() if names is None else names)
            paths, spans, reasons = self._manifests_by_snapshot(newest_first)
            newest = [spans[path] for path in next(iter(paths.values()), ())]
            for part in islice(together(newest, _PATHS_AT_ONCE), 1):  # into the cache
                with suppress(LakeviewError):  # raised by those that examine them
                    self._tree.entries(rows_of(part))
            present = listing.result()
        faults = self._faults(list(paths.values()), spans, present)
        for number, each in paths.items():
            if reason := next(filter(None, map(faults.get, each)), None):
                reasons[number] = reason
        ids = [(s.snapshot_id, s.timestamp_ms) for s in newest_first]
        return version_frame([(number, time, number not in reasons, reasons.get(number)) for number, time in ids])

    def _faults(
        self, paths: Sequence[Sequence[str]], spans: Mapping[str, Span], present: pl.Series
    ) -> dict[str, str | None]:
        """Why the files of a manifest cannot be read, by its path; None where they can.

        `paths`: those of each snapshot; one that misses a file is not examined further.
        """
        faults: dict[str, str | None] = {}
        first = dict.fromkeys(each[0] for each in paths if each)
        self._examine([spans[path] for path in first], present, faults)
        whole = [each for each in paths if not any(map(faults.get, each))]
        rest = dict.fromkeys(path for each in whole for path in each if path not in faults)
        self._examine([spans[path] for path in rest], present, faults)
        return faults

    def _manifests_by_snapshot(
        self, snapshots: Sequence[SnapshotEntry]
    ) -> tuple[dict[int, list[str]], dict[str, Span], dict[int, str]]:
        """The manifests' paths of each snapshot, each manifest by its path, and why other snapshots cannot be read."""
        reasons: dict[int, str] = {}
        paths: dict[int, list[str]] = {}
        spans: dict[str, Span] = {}
        self._tree.prepare(snapshots)
        for snapshot in snapshots:
            try:
                manifests = self._tree.manifests(snapshot)
            except LakeviewError as error:
                reasons[snapshot.snapshot_id] = error.message
                continue
            paths[snapshot.snapshot_id] = manifests["manifest_path"].to_list()
            new = ~manifests["manifest_path"].is_in(list(spans))
            spans |= {row["manifest_path"]: Span(row, 0, 0) for row in manifests.filter(new).iter_rows(named=True)}
        return paths, spans, reasons

    def _examine(self, spans: Sequence[Span], names: pl.Series, faults: dict[str, str | None]) -> None:
        """Adds to `faults` why the files of each of these manifests cannot be read, None where they can."""
        for part in together(spans, _PATHS_AT_ONCE):
            try:
                entries, counts = self._tree.counted_entries(rows_of(part))
            except LakeviewError as error:
                if len(part) == 1:
                    faults[str(part[0].row["manifest_path"])] = error.message
                else:
                    for half in (part[: len(part) // 2], part[len(part) // 2 :]):
                        self._examine(half, names, faults)
                continue
            live = entries["status"] != 2
            absent = live & self._absent(entries["path"], names)
            unread = live & ~entries["format"].is_in([*FORMATS, "PUFFIN"])
            at_fault = absent | unread
            is_whole = not at_fault.any()
            for span, start, length in zip(part, accumulate(counts, initial=0), counts, strict=False):
                fault = None
                if not is_whole and (hits := at_fault.slice(start, length).arg_true()).len():
                    path, kind, is_absent = (
                        each[start + int(hits[0])] for each in (entries["path"], entries["format"], absent)
                    )
                    fault = f"the file {path} is " + (
                        "not in the store" if is_absent else f"of the format {kind}, which is not read"
                    )
                faults[str(span.row["manifest_path"])] = fault

    def _absent(self, paths: pl.Series, names: pl.Series) -> pl.Series:
        """Which recorded paths lie in the table's folder and are not among the names there, or name no place at all."""
        places = self._locations.resolve_each(paths)
        root = self._storage.root.rstrip("/") + "/"
        keys = pl.DataFrame({"key": places.str.strip_prefix(root)}).with_row_index("at")
        inside = keys.filter(places.str.starts_with(root))
        positions = inside.join(names.to_frame("key"), on="key", how="anti")["at"]
        return places.is_null().scatter(positions, True)

    def commit(self, snapshot: SnapshotEntry) -> pl.DataFrame:
        """ACTIONS of one snapshot: itself as recorded, then the entries it added and removed."""
        document = msgspec.json.encode(snapshot).decode(errors="replace")
        itself = pl.DataFrame([("snapshot", snapshot.manifest_list, document)], schema=ACTIONS, orient="row")
        manifests = self._tree.manifests(snapshot)
        own = manifests.filter(pl.col("added_snapshot_id").fill_null(snapshot.snapshot_id) == snapshot.snapshot_id)
        entries = self._tree.entries(own).filter(
            (pl.col("snapshot_id") == snapshot.snapshot_id) & (pl.col("status") != 0)
        )
        return pl.concat([itself, entry_actions(entries)])
