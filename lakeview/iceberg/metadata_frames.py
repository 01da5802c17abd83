"""What an Iceberg table's metadata file says, as frames: snapshots, schemas, refs, specs, orders, manifests, logs."""

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from lakeview.iceberg.manifests.frames import manifest_files
from lakeview.iceberg.manifests.statistics import asked_leaves
from lakeview.iceberg.metadata import refs, versions
from lakeview.iceberg.metadata.locate import MetadataFile
from lakeview.iceberg.metadata.metadata_log import format_versions
from lakeview.iceberg.metadata.snapshots import SnapshotEntry
from lakeview.iceberg.metadata.specs import partition_specs, sort_orders
from lakeview.iceberg.metadata.statistics_files import statistics_files
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.iceberg.metadata.time_travel import snapshot_and_schema
from lakeview.iceberg.state import State
from lakeview.model.arguments import optional_count, optional_integer
from lakeview.model.frames import LOG_FILES
from lakeview.model.schema import Schema


class MetadataFrames:
    """Snapshots, schemas, refs, specs, logs and lives of files; `lakeview.iceberg.table` adds its files and rows."""

    state: State

    @property
    def address(self) -> str:
        """Where the table was opened."""
        raise NotImplementedError

    @property
    def metadata(self) -> Metadata:
        """Everything the metadata file says: schemas, specs, refs, logs."""
        return self.state.metadata

    @property
    def metadata_file(self) -> MetadataFile:
        """The metadata file this is read from, and how it was found."""
        return self.state.metadata_file

    def history(self, limit: int | None = None, before: int | None = None) -> pl.DataFrame:
        """COMMITS, newest first: every snapshot, those of branches included; at most `limit`, older than `before`."""
        return versions.commits(self.state.metadata, optional_count(limit, "limit"), optional_integer(before, "before"))

    def schemas(self) -> pl.DataFrame:
        """SCHEMAS of the main branch, oldest first."""
        metadata = self.state.metadata
        return versions.schemas(metadata, metadata.current_snapshot_id)

    def refs(self) -> pl.DataFrame:
        """REFS, main first."""
        return refs.refs(self.state.metadata)

    def changed_lifetimes(self, columns: Sequence[str]) -> pl.DataFrame:
        """As `lifetimes`, of the paths that a snapshot still there added or removed."""
        state = self.state
        leaves = asked_leaves(state.metadata.schema, columns)
        return state.lifetimes.of_changes(state.metadata.current_snapshot_id, leaves)

    def ref_lifetimes(self, ref: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """LIFETIMES of the data files along a branch, or up to a tag; with `columns` as `lifetimes`, in the types of
        the schema that the ref is read with. VersionNotFoundError, InvalidRequestError.
        """
        state = self.state
        head = refs.ref_named(state.metadata, ref, self.address).snapshot_id
        _, schema = self._snapshot_and_schema(state, ref=ref)
        return state.lifetimes.of(head, None if columns is None else asked_leaves(schema, columns))

    def ref_schemas(self, ref: str) -> pl.DataFrame:
        """SCHEMAS along a branch, or up to a tag, oldest first; VersionNotFoundError."""
        metadata = self.state.metadata
        return versions.schemas(metadata, refs.ref_named(metadata, ref, self.address).snapshot_id)

    def snapshot_log(self) -> pl.DataFrame:
        """SNAPSHOT_LOG, in the order recorded."""
        return refs.snapshot_log(self.state.metadata)

    def partition_specs(self) -> pl.DataFrame:
        """PARTITION_SPECS; where there are several, a few earlier metadata files tell since when."""
        state = self.state
        return partition_specs(state.metadata, state.metadata_file.path.rpartition("/")[2], state.earlier)

    def format_versions(self) -> pl.DataFrame:
        """FORMAT_VERSIONS; a few earlier metadata files tell since when."""
        state = self.state
        return format_versions(state.metadata, state.metadata_file.path.rpartition("/")[2], state.earlier)

    def sort_orders(self) -> pl.DataFrame:
        """SORT_ORDERS."""
        return sort_orders(self.state.metadata)

    def manifests(self, version: int | None = None) -> pl.DataFrame:
        """MANIFESTS of a snapshot, data before deletes as listed; costs its manifest list alone."""
        state = self.state
        entry, _ = self._snapshot_and_schema(state, version)
        return manifest_files(state.tree.manifests(entry), state.metadata, state.columns)

    def statistics_files(self) -> pl.DataFrame:
        """STATISTICS_FILES of all snapshots; one question to the store for each file."""
        state = self.state
        return statistics_files(state.metadata, state.storage, state.locations)

    def log_files(self) -> pl.DataFrame:
        """LOG_FILES of the metadata folder: metadata files as commits, manifests, lists and statistics as others."""
        listing = self.state.storage.list_from(self.state.place.folder)
        kind = (
            pl.when(pl.col("name").str.contains(r"\.metadata\.json")).then(pl.lit("commit")).otherwise(pl.lit("other"))
        )
        files = listing.select("name", kind.alias("kind"), pl.lit(None, pl.Int64).alias("version"), "size", "modified")
        return files.cast(LOG_FILES)

    # -- inside

    def _snapshot_and_schema(
        self, state: State, version: int | None = None, at: datetime | None = None, ref: str | None = None
    ) -> tuple[SnapshotEntry | None, Schema]:
        """A snapshot and the schema to read it with."""
        return snapshot_and_schema(state.metadata, self.address, version, at, ref)
