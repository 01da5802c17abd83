"""Live manifest entries to FILES and TableMetadata's counts, and the loader that fills an Iceberg snapshot."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

import polars as pl

from lakeview.iceberg.deletes.equality_index import EqualityIndex
from lakeview.iceberg.deletes.index import FILE_PATH_ID, VECTOR_NAME, aimless, applying, is_vector, pairs
from lakeview.iceberg.manifests.partitions import PartitionColumn, display_partition, partition_text
from lakeview.iceberg.manifests.tree import Tree, live, one_ahead
from lakeview.iceberg.metadata.snapshots import SnapshotEntry
from lakeview.iceberg.metadata.specs import column_rules
from lakeview.iceberg.metadata.summaries import whole
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.model import limits
from lakeview.model.arguments import file_columns
from lakeview.model.column_values import moments
from lakeview.model.data_types import Field
from lakeview.model.frames import FILES
from lakeview.model.snapshot_sources import SnapshotLoader

OWN = pl.Schema(
    {
        "content": pl.String(),
        "format": pl.String(),
        "sequence_number": pl.Int64(),
        "spec_id": pl.Int32(),
        "added_version": pl.Int64(),
    }
)
"""Iceberg's own columns of FILES. `content`: data, position deletes, equality deletes or deletion vector;
`added_version`: the snapshot that added the file."""

_BATCH_BYTES = 8 << 20
"""Of manifests, as they lie in the store: about ten times as much once they are decoded."""

_CONTENT = {0: "data", 1: "position deletes", 2: "equality deletes"}


class IcebergFiles(SnapshotLoader):
    """The files of one snapshot. Manifests are read on first touch, those of deletes only where deletes matter."""

    def __init__(
        self, tree: Tree, metadata: Metadata, snapshot: SnapshotEntry | None, columns: tuple[PartitionColumn, ...]
    ) -> None:
        self._tree = tree
        self._metadata = metadata
        self._snapshot = snapshot
        self._columns = columns

    def manifests(self) -> pl.DataFrame:
        """MANIFESTS of the snapshot. CorruptTableError where its list calls all manifests of data those of deletes: for
        want of data files nothing would read them."""
        manifests = self._tree.manifests(self._snapshot)
        if manifests.height and (manifests["content"] == 1).all():
            self._tree.entries(manifests)
        return manifests

    def data_entries(self, manifests: pl.DataFrame | None = None, metrics: Collection[int] = ()) -> pl.DataFrame:
        """Live ENTRIES of data files, of these manifests or all; with the metrics of the columns of these ids."""
        manifests = self.manifests() if manifests is None else manifests
        return live(self._tree.entries(manifests.filter(pl.col("content") == 0), metrics), [0])

    def each_data_entries(self, metrics: Collection[int]) -> Iterator[pl.DataFrame]:
        """As `data_entries` of all manifests, some of them at a time: metrics take many times the room of what is made
        of them. At least one frame."""
        manifests = self.manifests().filter(pl.col("content") == 0)
        batch = manifests["manifest_length"].fill_null(_BATCH_BYTES).cum_sum() // _BATCH_BYTES
        parts = [part for _, part in manifests.group_by(batch, maintain_order=True)] or [manifests]
        return one_ahead(self.data_entries(part, metrics) for part in parts)

    def delete_entries(self) -> pl.DataFrame:
        """Live ENTRIES of delete files and deletion vectors, with the metrics of the columns that they may name."""
        manifests = self.manifests()
        metrics = [FILE_PATH_ID, *self.comparable_columns]
        return live(self._tree.entries(manifests.filter(pl.col("content") == 1), metrics), [1, 2])

    @cached_property
    def comparable_columns(self) -> Mapping[int, Field]:
        """The columns that equality deletes may compare by bounds: those outside structs of any schema, as it is in
        the current one, or in the newest that has it."""
        schemas = self._metadata.schemas_by_age
        return {field.id: field for each in schemas for field in each.schema if field.id is not None}

    def pairs(self, data: pl.DataFrame, deletes: pl.DataFrame) -> pl.DataFrame:
        """Which deletes apply to which of these data files; of equality deletes whether there is one."""
        return pairs(data, deletes, self._metadata.unpartitioned_specs)

    def applying(self, data: pl.DataFrame, deletes: pl.DataFrame) -> set[int]:
        """Which of these deletes apply to any of these data files, by their row numbers."""
        return applying(data, deletes, self._metadata.unpartitioned_specs)

    def equality(self, deletes: pl.DataFrame) -> EqualityIndex:
        """Which equality deletes reach which data files."""
        return EqualityIndex(deletes, self.comparable_columns, self._metadata.unpartitioned_specs)

    def files(self, columns: Sequence[str] | None, manifests: Collection[str] | None = None) -> pl.DataFrame:
        """FILES of the data files, or of those in manifests of these recorded paths, with these columns or all;
        InvalidRequestError for one that FILES does not have."""
        of_snapshot = self.manifests()
        if manifests is not None:
            of_snapshot = of_snapshot.filter(pl.col("manifest_path").is_in(list(manifests)))
        return self._frame(self.data_entries(of_snapshot), columns)

    def totals(self) -> dict[str, int | None]:
        """`num_files`, `size_bytes` and `num_records` from the snapshot's summary, without a manifest being opened.

        A summary is text that its writer kept as it went, and may lie: it is believed where the manifest list counts
        the same files and rows, and where there are no deletes, which neither of them counts in rows of data. Else
        nothing is known; nor are bytes that it leaves out.
        """
        all_values = {} if self._snapshot is None else self._snapshot.summary
        summary = {k: v for k, v in all_values.items() if isinstance(v, str)}
        count, rows, size = (
            whole(summary.get(f"total-{name}"), None) for name in ("data-files", "records", "files-size")
        )
        if count is None or rows is None or whole(summary.get("total-delete-files"), 0) != 0:
            return {}
        manifests = self.manifests()
        sums = [pl.col(f"added_{what}_count") + pl.col(f"existing_{what}_count") for what in ("files", "rows")]
        totals = manifests.select(
            sums[0].sum().alias("files"), sums[1].sum().alias("rows"),
            (pl.any_horizontal(each.has_nulls() for each in sums) | (pl.col("content") != 0).any()).alias("unsure"),
        ).row(0)  # fmt: skip
        if totals != (count, rows, False) or (size or 0) > count * limits.FILE_BYTES:
            return {}
        sure: dict[str, int | None] = {"num_files": count, "num_records": rows}
        return sure if size is None else {**sure, "size_bytes": size}

    def delete_files(self) -> pl.DataFrame:
        """FILES of the delete files: `records` is how many deletes they hold."""
        return self._frame(self.delete_entries(), None, deletes=True)

    def rules(self) -> pl.DataFrame:
        """RULES."""
        return column_rules(self._metadata, self._metadata.schema_of(self._snapshot))

    def _frame(self, entries: pl.DataFrame, columns: Sequence[str] | None, deletes: bool = False) -> pl.DataFrame:
        base = FILES.names()
        parts = ["partition"] if self._columns else []
        all_columns = [*base[:5], *parts, *base[5:], *OWN.names()]
        names = all_columns if columns is None else file_columns(columns, all_columns)
        if deletes:
            delete_columns = self._own_names(entries)
        elif {"deleted_records", "deletion_vector"} & set(names):
            delete_columns = self.deletion_columns(entries)
        else:
            delete_columns = {}
        return pl.DataFrame([self._column(entries, c, delete_columns) for c in names])

    def _own_names(self, entries: pl.DataFrame) -> Mapping[str, pl.Series]:
        """What a delete file says of itself: a vector's name, and no rows deleted of it."""
        name = entries.select(VECTOR_NAME.alias("deletion_vector")).to_series()
        rows = pl.Series("deleted_records", [0] * entries.height, dtype=pl.Int64)
        return {"deletion_vector": name.set(~is_vector(entries), None), "deleted_records": rows}

    def deletion_columns(self, entries: pl.DataFrame) -> Mapping[str, pl.Series]:
        """Of data entries: `deletion_vector`, the name of each one's vector, and `deleted_records`, how many of its
        rows are deleted where that is known: by a deletion vector alone, or not at all."""
        height = entries.height
        vectors = pl.Series("deletion_vector", [None] * height, dtype=pl.String)
        rows = pl.Series("deleted_records", [0] * height, dtype=pl.Int64)
        deletes = self.delete_entries()
        if aimless(deletes).any():
            return {"deletion_vector": vectors, "deleted_records": rows.clear(height)}
        applications = self.pairs(entries, deletes)
        if not applications.height:
            return {"deletion_vector": vectors, "deleted_records": rows}
        facts = deletes.select(
            pl.int_range(pl.len(), dtype=pl.UInt32).alias("delete"),
            VECTOR_NAME.alias("vector"),
            pl.col("records").alias("rows"),
        )
        exact = pl.col("kind") == "vector"
        per_file = applications.join(facts, on="delete").group_by("data").agg(
            pl.when(exact.all() & pl.col("rows").is_not_null().all()).then(pl.col("rows").sum()).alias("rows"),
            pl.col("vector").filter(exact).first(),
        )  # fmt: skip
        columns = (
            pl.DataFrame({"data": pl.int_range(height, dtype=pl.UInt32, eager=True)})
            .join(per_file.with_columns(pl.lit(True).alias("hit")), on="data", how="left", maintain_order="left")
            .select(
                pl.when(pl.col("hit").fill_null(False)).then(pl.col("rows")).otherwise(0).alias("deleted_records"),
                pl.col("vector").alias("deletion_vector"),
            )
        )
        return {s.name: s for s in columns}

    def _column(self, entries: pl.DataFrame, name: str, delete_columns: Mapping[str, pl.Series]) -> pl.Series:
        match name:
            case "deleted_records" | "deletion_vector":
                return delete_columns[name]
            case "modified":
                times = {s.snapshot_id: s.timestamp_ms for s in self._metadata.snapshots.values()}
                when = entries["snapshot_id"].replace_strict(times, default=None, return_dtype=pl.Int64)
                return when.alias("modified").to_frame().select(moments("modified")).to_series()
            case "partition":
                return display_partition(entries, self._columns)
            case "partition_text":
                specs = {s.spec_id: tuple(f.field_id for f in s.fields) for s in self._metadata.specs.values()}
                return partition_text(entries, self._columns, specs)
            case "tags":
                return pl.Series("tags", [None] * entries.height, dtype=pl.String)
            case "content":
                words = entries["content"].replace_strict(_CONTENT, default="unknown", return_dtype=pl.String)
                return words.set(is_vector(entries), "deletion vector").alias("content")
            case "added_version":
                return entries["snapshot_id"].alias("added_version")
        return entries[name]
