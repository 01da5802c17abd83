"""The manifests of a snapshot and new ones to the manifest list of the next (iceberg spec, Manifest Lists)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from lakeview.iceberg.write.avro_schemas import list_schema
from lakeview.iceberg.write.manifest import avro_file
from lakeview.model.errors import UnsupportedTableError

_SUMMARY = {"f509": "contains_null", "f518": "contains_nan", "f510": "lower_bound", "f511": "upper_bound"}
_COUNTS = ("added_files_count", "existing_files_count", "deleted_files_count", "added_rows_count",
    "existing_rows_count", "deleted_rows_count")  # fmt: skip


class ManifestList:
    """The manifests of a new snapshot: those of its parent that stay (MANIFESTS), then new ones. `added_rows`: row ids
    that it gives out from `first_row_id` on, which version 3 has."""

    def __init__(
        self, version: int, parents: pl.DataFrame, new: Sequence[Mapping[str, Any]], sequence: int,
        first_row_id: int | None,
    ) -> None:  # fmt: skip
        self._version = version
        self._sequence = sequence
        self._first_row_id = first_row_id
        self._records = [_carry_over(row, version) for row in parents.iter_rows(named=True)]
        self._records += [{"min_sequence_number": sequence, **record, "sequence_number": sequence} for record in new]
        self.added_rows = 0 if first_row_id is None else self._give_row_ids(first_row_id)

    def encode(self, snapshot_id: int, parent: int | None) -> bytes:
        """The file."""
        header = {
            "snapshot-id": str(snapshot_id),
            "parent-snapshot-id": "null" if parent is None else str(parent),
            "format-version": str(self._version),
            **({} if self._version == 1 else {"sequence-number": str(self._sequence)}),
            **({} if self._first_row_id is None else {"first-row-id": str(self._first_row_id)}),
        }
        return avro_file(list_schema(self._version), self._records, header)

    def _give_row_ids(self, first: int) -> int:
        # "When writing the manifest list, all data manifests must be assigned a first_row_id"  Row Lineage
        following = first
        for record in self._records:
            if record["content"] == 0 and record["first_row_id"] is None:
                record["first_row_id"] = following
                following += record["added_rows_count"] + record["existing_rows_count"]
        return following - first


def _carry_over(row: Mapping[str, Any], version: int) -> dict[str, Any]:
    """A manifest of the parent as the new list records it. UnsupportedTableError if its counts are not recorded, which
    version 1 allows."""
    if row["manifest_length"] is None or (version > 1 and any(row[name] is None for name in _COUNTS)):
        raise UnsupportedTableError(
            f"the snapshot lists the manifest {row['manifest_path']} without its length or counts",
            fix="have the table's manifests rewritten by the engine that owns it",
            place=row["manifest_path"],
            kind="unsupported-manifest-list",
        )
    summaries = row["partitions"]
    partitions = None if summaries is None else [
        {name: summary[recorded] for recorded, name in _SUMMARY.items()} for summary in summaries
    ]  # fmt: skip
    return {**row, "partitions": partitions}
