"""Data and delete entries, with the versions that listed them, to stays: from when on how many rows of a file live.

A delete applies by sequence number and partition whatever the version, so that one pass over the whole history tells
what a scan of every version would (`index.pairs` is the same for one version).
"""

from functools import partial

import polars as pl

from lakeview.iceberg.deletes.index import VECTOR_NAME, is_vector, keyed_sides, position_pairs, vector_pairs

STAYS = pl.Schema(
    {
        "data": pl.UInt32(),
        "from": pl.Int64(),
        "to": pl.Int64(),
        "deletion_vector": pl.String(),
        "records": pl.Int64(),
    }
)
"""One row a time in which the same rows of a data file (`data`: its row number) live: in versions `from` to `to - 1` by
their place on the line. `records`: live rows; null where deletes by position file or by value may name any of them."""


def stays(data: pl.DataFrame, deletes: pl.DataFrame, global_specs: list[int]) -> pl.DataFrame:
    """STAYS of data ENTRIES, one row a file, given delete ENTRIES of the whole history; both with `first` and `last`,
    the places of the versions that list them. `global_specs`: the unpartitioned specs, whose equality deletes apply to
    every file. A file that a delete by position file or by value reached stays unknown, but under a later vector."""
    files = data.select("first", "last", "records").with_row_index("data")
    vectors, positions, values = _delete_intervals(data, deletes, global_specs)
    cuts = pl.concat(
        [
            files.select("data", at="first"),
            vectors.select("data", at="from"),
            vectors.select("data", at="to"),
            positions.select("data", at="since"),
            values.select("data", at="since"),
        ]
    ).unique()
    pieces = (
        cuts.join(files, on="data")
        .filter(pl.col("at").is_between("first", "last"))
        .join(positions.rename({"since": "by_position"}), on="data", how="left")
        .join(values.rename({"since": "by_value"}), on="data", how="left")
        .sort("data", "at")
    )
    holding = (
        pieces.select("data", "at")
        .join(vectors, on="data")
        .filter((pl.col("from") <= pl.col("at")) & (pl.col("at") < pl.col("to")))
        .sort("sequence_number")
        .unique(["data", "at"], keep="last")
        .select("data", "at", "deletion_vector", "deleted")
    )
    counts = pieces.join(holding, on=["data", "at"], how="left", maintain_order="left")
    # "a deletion vector must be applied in place of position delete files"  iceberg spec, Deletion Vectors
    unsure = (pl.col("by_value") <= pl.col("at")).fill_null(value=False) | (
        (pl.col("by_position") <= pl.col("at")).fill_null(value=False) & pl.col("deletion_vector").is_null()
    )
    live_records = pl.col("records") - pl.col("deleted").fill_null(0)
    counts = counts.with_columns(records=pl.when(~unsure & (live_records >= 0)).then(live_records))
    same = pl.struct("deletion_vector", "records").eq_missing(pl.struct("deletion_vector", "records").shift(1))
    runs = counts.filter(~(same & (pl.col("data") == pl.col("data").shift(1))).fill_null(value=False))
    next_of_file = pl.when(pl.col("data") == pl.col("data").shift(-1)).then(pl.col("at").shift(-1))
    return (
        runs.with_columns(to=pl.coalesce(next_of_file, pl.col("last") + 1))
        .rename({"at": "from"})
        .select(STAYS.names())
        .cast(STAYS)
    )


def _delete_intervals(
    data: pl.DataFrame, deletes: pl.DataFrame, global_specs: list[int]
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Vectors (`data, from, to, sequence_number, deletion_vector, deleted`), and `data, since` of deletes by position
    file and by value."""
    left, right, same = keyed_sides(data, deletes)
    left = left.hstack(data.select(data_first="first", data_last="last"))
    right = right.hstack(deletes.select("first", "last", deleted="records", deletion_vector=VECTOR_NAME))
    vector = is_vector(deletes)
    begins, ends = pl.max_horizontal("data_first", "first"), pl.min_horizontal("data_last", "last") + 1
    vectors = (
        vector_pairs(left, right.filter(vector), same)
        .select("data", "sequence_number", "deletion_vector", "deleted", begins.alias("from"), ends.alias("to"))
        .filter(pl.col("from") < pl.col("to"))
    )  # fmt: skip
    pairs = position_pairs(left, right.filter(~vector & (deletes["content"] == 1)), same)
    positions = pairs.join(right.select("delete", "first", "last"), on="delete").join(
        left.select("data", "data_first", "data_last"), on="data"
    )
    overlaps = positions.filter((pl.col("last") >= pl.col("data_first")) & (pl.col("first") <= pl.col("data_last")))
    since = overlaps.group_by("data").agg(since=begins.min())
    return vectors, since, _by_value(left, right.filter(deletes["content"] == 2), same, global_specs)


def _by_value(left: pl.DataFrame, equality: pl.DataFrame, same: list[str], global_specs: list[int]) -> pl.DataFrame:
    """`data, since`: from when on some equality delete is newer than a file, in its partition or of no partition."""
    # a number for each partition: a join by the nearest sequence number takes no nulls among its keys
    places = pl.concat([left.select(same), equality.select(same)]).unique().with_row_index("place")
    files = left.join(places, on=same, nulls_equal=True).sort("data_sequence")
    deletes = equality.join(places, on=same, nulls_equal=True).sort("sequence_number")
    # "the data file's data sequence number is strictly less than the delete's"  iceberg spec, Scan Planning
    earliest = pl.col("first").reverse().cum_min().reverse()
    everywhere = pl.col("spec_id").is_in(global_specs)
    local = deletes.filter(~everywhere).select("place", "sequence_number", local=earliest.over("place"))
    anywhere = deletes.filter(everywhere).select("sequence_number", anywhere=earliest)
    nearest = partial(
        pl.DataFrame.join_asof, left_on="data_sequence", right_on="sequence_number", strategy="forward",
        allow_exact_matches=False, check_sortedness=False,
    )  # fmt: skip
    rows = nearest(nearest(files, local, by="place").drop("sequence_number", strict=False), anywhere)
    since = pl.max_horizontal("data_first", pl.min_horizontal("local", "anywhere"))
    reach = pl.col("local").is_not_null() | pl.col("anywhere").is_not_null()
    return rows.filter(reach).select("data", since=since)
