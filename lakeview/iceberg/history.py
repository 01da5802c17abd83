"""Snapshots, their logs and manifests to what happened: VERSIONS and ACTIONS."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import accumulate, islice

import msgspec
import polars as pl

from lakeview.iceberg.manifests.entries import FORMATS, entry_actions
from lakeview.iceberg.manifests.manifest_lists import MANIFESTS, parts_of
from lakeview.iceberg.manifests.tree import Tree
from lakeview.iceberg.metadata.locations import Locations
from lakeview.iceberg.metadata.snapshots import SnapshotEntry
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.iceberg.metadata.versions import in_order, version_frame
from lakeview.model.errors import LakeviewError
from lakeview.model.frames import ACTIONS
from lakeview.storage import Storage
from lakeview.storage.names_ahead import NamesAhead

_NONE = pl.DataFrame(schema=MANIFESTS)
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
            lists, errors = self._tree.manifests_of(newest_first)
            for part in islice(parts_of(next(iter(lists.values()), _NONE), _PATHS_AT_ONCE), 1):  # into the cache
                with suppress(LakeviewError):  # raised by those that examine them
                    self._tree.entries(part)
            present = listing.result()
        paths = {number: manifests["manifest_path"].to_list() for number, manifests in lists.items()}
        every = pl.concat([_NONE, *lists.values()]).unique("manifest_path", keep="first", maintain_order=True)
        faults = self._faults(paths, every, present)
        reasons = {number: error.message for number, error in errors.items()}
        for number, each in paths.items():
            if reason := next(filter(None, map(faults.get, each)), None):
                reasons[number] = reason
        ids = [(s.snapshot_id, s.timestamp_ms) for s in newest_first]
        return version_frame([(number, time, number not in reasons, reasons.get(number)) for number, time in ids])

    def _faults(self, paths: Mapping[int, Sequence[str]], manifests: pl.DataFrame, names: pl.Series) -> dict[str, str]:
        """Why the files of a manifest cannot be read, by its path, for those of which one cannot.

        `paths`: of the manifests of each snapshot; of one that misses a file not all are examined.
        """
        path = pl.col("manifest_path")
        first = manifests.filter(path.is_in([each[0] for each in paths.values() if each]))
        faults = self._examine(first, names)
        whole = {path for each in paths.values() if faults.keys().isdisjoint(each) for path in each}
        rest = manifests.filter(path.is_in(list(whole.difference(first["manifest_path"]))))
        return faults | self._examine(rest, names)

    def _examine(self, manifests: pl.DataFrame, names: pl.Series) -> dict[str, str]:
        """`_faults` of these manifests; of several that cannot be read together, each half by itself."""
        faults: dict[str, str] = {}
        for part in parts_of(manifests, _PATHS_AT_ONCE):
            try:
                entries, counts = self._tree.counted_entries(part)
            except LakeviewError as error:
                if part.height == 1:
                    faults[str(part["manifest_path"][0])] = error.message
                else:
                    half = part.height // 2
                    faults |= self._examine(part.head(half), names) | self._examine(part.tail(-half), names)
                continue
            live = entries["status"] != 2
            absent = live & self._absent(entries["path"], names)
            unread = live & ~entries["format"].is_in([*FORMATS, "PUFFIN"])
            at_fault = absent | unread
            if not at_fault.any():
                continue
            for manifest, start, length in zip(
                part["manifest_path"], accumulate(counts, initial=0), counts, strict=False
            ):
                if (hits := at_fault.slice(start, length).arg_true()).len():
                    path, kind, is_absent = (
                        each[start + int(hits[0])] for each in (entries["path"], entries["format"], absent)
                    )
                    faults[manifest] = f"the file {path} is " + (
                        "not in the store" if is_absent else f"of the format {kind}, which is not read"
                    )
        return faults

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
