"""Statistics of one version to what each partition holds in one column: rows, null share, range."""

from collections.abc import Mapping
from types import MappingProxyType

import polars as pl

from lakeview.model.schema import leaf_name
from lakeview.model.snapshot import Snapshot
from lakeview.views.partitions.keys import partition_names
from lakeview.views.schema.births import absent_shares
from lakeview.views.schema.columns import schema_tree
from lakeview.views.thresholds import is_unusual_share

PARTITION_COLUMN = pl.Schema(
    {
        "partition_text": pl.String(),
        "files": pl.Int64(),
        "records": pl.Int64(),
        "null_share": pl.Float64(),
        "mark": pl.String(),
        "absent_share": pl.Float64(),
        "absent_text": pl.String(),
        "min_text": pl.String(),
        "max_text": pl.String(),
        "range_is": pl.String(),
        "unusual": pl.Boolean(),
    }
)
"""One row a partition, in order. `records` live, null when a file does not tell; the others as in SCHEMA_TREE;
`unusual`: a null share far from the median of the partitions, without files written before the column existed."""

_OF_THE_TREE = ("null_share", "null_share_mark", "absent_share", "absent_text", "min_text", "max_text", "range_is")
_MOST_PARTITIONS = 1_000


def partition_column(
    snapshot: Snapshot,
    statistics: pl.DataFrame,
    column: str,
    *,
    recorded_statistics: pl.DataFrame | None = None,
    first: Mapping[str, int | None] = MappingProxyType({}),
) -> pl.DataFrame:
    """PARTITION_COLUMN of a leaf column named as in STATISTICS; the _MOST_PARTITIONS with the most rows, empty for a
    table without partitions.

    `recorded_statistics`: the same STATISTICS without the nulls of absent columns; `first`: the version that first had
    a column which files lack.
    """
    files = snapshot.files
    leaves = {leaf_name(path) for path, _ in snapshot.schema.leaves()}
    if not partition_names(snapshot) or column not in statistics.columns or column not in leaves:
        return pl.DataFrame(schema=PARTITION_COLUMN)
    if "partition" in files.columns:
        files = files.sort("partition", nulls_last=True, maintain_order=True)
    # a column of the table may be called path too
    keys = statistics.select(path="_path", deletion_vector="_deletion_vector").with_row_index("place")
    bounds = statistics[column]
    rows = []
    parts = files.partition_by("partition_text", maintain_order=True)
    largest = sorted(parts, key=lambda part: int(part["records"].sum()), reverse=True)[:_MOST_PARTITIONS]
    largest_names = {part["partition_text"][0] for part in largest}
    for part in parts:
        if part["partition_text"][0] not in largest_names:
            continue
        live = part["records"] - part["deleted_records"]
        records = None if live.has_nulls() else int(live.sum())
        own = keys.join(
            part.select("path", "deletion_vector"), on=["path", "deletion_vector"], how="semi", nulls_equal=True
        )
        bounds_of_files = own.select(pl.col("path").alias("_path"), pl.col("deletion_vector").alias("_deletion_vector"))
        bounds_of_files = bounds_of_files.with_columns(bounds[own["place"].to_list()])
        absent = None
        if recorded_statistics is not None:
            absent = absent_shares(
                {leaf: since for leaf, since in first.items() if leaf == column},
                recorded_statistics[own["place"].to_list()].select(column),
                bounds_of_files,
                part,
                records,
            )
        tree = schema_tree(
            snapshot.schema, bounds_of_files, None, files=part.drop("partition", strict=False), absent=absent
        )
        row = tree.row(by_predicate=pl.col("path") == column, named=True)
        rows.append((part["partition_text"][0], part.height, records, *(row[name] for name in _OF_THE_TREE)))
    names = PARTITION_COLUMN.names()[:-1]
    partitions = pl.DataFrame(rows, schema={n: PARTITION_COLUMN[n] for n in names}, orient="row")
    # of the rows in whose files the column is: partitions of a time before it are no measure for later ones
    without = pl.col("absent_share").fill_null(0.0)
    share = pl.when(without < 1).then((pl.col("null_share") - without) / (1 - without))
    distance = (share - share.median()).abs()
    return partitions.with_columns(unusual=is_unusual_share(distance, distance.median()).fill_null(value=False)).cast(
        PARTITION_COLUMN
    )
