"""Whether the snapshot before another one is still there."""

from lakeview.iceberg.manifests.tree import Tree
from lakeview.iceberg.metadata.snapshots import SnapshotEntry
from lakeview.iceberg.metadata.table_metadata import Metadata


def has_expired_parent(metadata: Metadata, tree: Tree, snapshot: SnapshotEntry) -> bool:
    """Whether a snapshot follows one that has expired. Reads the manifests of one that records no parent."""
    if snapshot.parent is not None:
        return snapshot.parent not in metadata.snapshots
    # pyiceberg takes the record of its parent from a snapshot whose parent it expires: files of others show that one
    # was there
    own = snapshot.snapshot_id
    manifests = tree.manifests(snapshot)
    if (manifests["added_snapshot_id"] != own).any():
        return True
    entries = tree.entries(manifests)
    return bool(((entries["status"] == 2) | (entries["snapshot_id"] != own)).any())
