"""A metadata file to everything a table keeps of it: places, manifests, history."""

from __future__ import annotations

from collections.abc import Mapping

from lakeview.iceberg.history import TreeHistory
from lakeview.iceberg.lifetimes import FileLifetimes
from lakeview.iceberg.manifests.files import IcebergFiles
from lakeview.iceberg.manifests.partitions import partition_columns
from lakeview.iceberg.manifests.tree import Tree
from lakeview.iceberg.metadata.locate import MetadataFile, Place, read_metadata
from lakeview.iceberg.metadata.locations import Locations
from lakeview.iceberg.metadata.snapshots import MetadataLogEntry, SnapshotEntry
from lakeview.iceberg.metadata.table_metadata import Metadata, parse_metadata
from lakeview.iceberg.scan.plan import Scan
from lakeview.model import version_names
from lakeview.model.schema import Schema
from lakeview.storage import Storage


class State:
    """One metadata file and what hangs below it; replaced as a whole by a refresh. `before`: the state that it
    replaces, whose manifests stay cached."""

    def __init__(
        self,
        storage: Storage,
        place: Place,
        file: MetadataFile,
        relocate: Mapping[str, str],
        before: State | None = None,
    ) -> None:
        self.storage = storage
        self.relocate = relocate
        self.metadata_file = file
        self.metadata = self._parse(file.path)
        version_names.register({s.snapshot_id: s.sequence_number for s in self.metadata.snapshots.values()})
        self.place = place
        self.locations = Locations(storage.root, self.metadata, relocate)
        self.columns = partition_columns(self.metadata)
        self.tree = Tree(storage, self.locations, self.columns, self.metadata.unreadable_bounds)
        if before is not None and before.storage is storage:
            self._share_manifests(before)
        self.history = TreeHistory(storage, self.locations, self.tree, self.metadata)
        self.lifetimes = FileLifetimes(self.tree, self.metadata)

    def earlier(self, entry: MetadataLogEntry) -> Metadata:
        """A metadata file that was current before; LakeviewError where it is gone or broken."""
        return self._parse(self.locations.resolve(entry.metadata_file))

    def files(self, entry: SnapshotEntry | None) -> IcebergFiles:
        """The files of a snapshot; none without one."""
        return IcebergFiles(self.tree, self.metadata, entry, self.columns)

    def scan(self, entry: SnapshotEntry | None, schema: Schema) -> Scan:
        """A read of a snapshot's rows with the columns of a schema."""
        files, store = self.files(entry), self.storage
        return Scan(files, self.metadata, schema, self.columns, self.locations, store.root, store.config.roots)

    def _share_manifests(self, before: State) -> None:
        """Manifests never change once written, as long as it is the same table: only its uuid shows that."""
        if before.metadata.table_uuid is None or before.metadata.table_uuid != self.metadata.table_uuid:
            return
        earlier = before.metadata.snapshots
        self.tree.share_caches(before.tree, [n for n, s in self.metadata.snapshots.items() if earlier.get(n) == s])

    def _parse(self, path: str) -> Metadata:
        return parse_metadata(read_metadata(self.storage, path), path, self.storage.config.max_schema_depth)
