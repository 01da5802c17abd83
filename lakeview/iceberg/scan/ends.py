"""Two snapshots to the rows that only one of them has, from their live files; nothing between them is read."""

import polars as pl

from lakeview.iceberg.scan.plan import Scan
from lakeview.model.schema import Schema
from lakeview.rows.difference import Difference, difference

End = tuple[int, Scan]
"""A snapshot's id and its files."""


def end_difference(base: End, version: End, schema: Schema) -> Difference:
    """What the files of two snapshots do not share, read as `schema`; either may come first."""
    shared_paths = _shared_manifests(base[1].manifests(), version[1].manifests())
    sides = [(snapshot_id, scan.tasks(None, shared_paths)) for snapshot_id, scan in (base, version)]
    return difference(sides[0], sides[1], schema)


def _shared_manifests(first: pl.DataFrame, second: pl.DataFrame) -> pl.Series:
    """The paths of the manifests of data files that both have, and whose files have the same rows in both: none where
    the delete files may differ. A million files of both are then neither read nor made tasks."""
    deletes = [set(manifests.filter(manifests["content"] != 0)["manifest_path"]) for manifests in (first, second)]
    if deletes[0] != deletes[1]:
        return first["manifest_path"].clear()
    columns = ["manifest_path", "sequence_number", "first_row_id"]
    data = first.filter(first["content"] == 0).select(columns)
    return data.join(second.select(columns), on=columns, how="semi", nulls_equal=True)["manifest_path"]
