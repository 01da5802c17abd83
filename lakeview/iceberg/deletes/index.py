"""Live data and delete entries to pairs: which delete file applies to which data file (iceberg spec, Scan Planning)."""

import polars as pl

from lakeview.iceberg.manifests.statistics import Metrics
from lakeview.iceberg.metadata.single_values import text_values

FILE_PATH_ID, POS_ID = 2147483546, 2147483545
"""Reserved ids of the two columns of a position delete file."""

KIND = pl.Enum(["vector", "position", "equality"])
PAIRS = pl.Schema({"data": pl.UInt32(), "delete": pl.UInt32(), "kind": KIND})
"""One row a delete file that applies to a data file, by their row numbers; `kind`: vector, position or equality."""


VECTOR_NAME = pl.concat_str("path", pl.lit("@"), "content_offset")
"""What ENTRIES of deletion vectors are called in FILES."""


def is_vector(entries: pl.DataFrame) -> pl.Series:
    """Whether each entry is a deletion vector: deletes by position, as a part of a Puffin file."""
    return entries.select(
        ((pl.col("content") == 1) & (pl.col("content_offset").is_not_null() | (pl.col("format") == "PUFFIN"))).alias(
            "v"
        )
    ).to_series()


def aimless(deletes: pl.DataFrame) -> pl.Series:
    """Which delete ENTRIES are vectors that do not say whose rows they delete, and so may delete any."""
    return is_vector(deletes) & deletes["referenced_data_file"].is_null()


def pairs(data: pl.DataFrame, deletes: pl.DataFrame, global_specs: list[int]) -> pl.DataFrame:
    """PAIRS of live ENTRIES. `global_specs`: the unpartitioned specs, whose equality deletes apply to every file.

    Of equality deletes enough to tell whether there is one: there may be as many pairs as files times deletes
    (`equality_index` has each).
    """
    if not data.height or not deletes.height:
        return pl.DataFrame(schema=PAIRS)
    left, right, same = keyed_sides(data, deletes)
    # the newest applies wherever another does
    newest = right.filter(deletes["content"] == 2).sort("sequence_number").unique(same, keep="last")
    everywhere = pl.col("spec_id").is_in(global_specs)
    files, ages = left.select("data", "data_sequence", *same), newest.select("delete", "sequence_number", *same)
    older = pl.col("data_sequence") < pl.col("sequence_number")
    local = files.join(ages.filter(~everywhere), on=same, how="inner", nulls_equal=True).filter(older)
    anywhere = files.drop(same).join_where(ages.filter(everywhere).drop(same), older)
    frames = [
        frame.select("data", "delete", pl.lit(kind, dtype=KIND).alias("kind"))
        for frame, kind in (
            *_by_position(left, right, deletes, same), (local, "equality"), (anywhere, "equality"),
        )
    ]  # fmt: skip
    return pl.concat(frames).cast(PAIRS).sort("data", "delete")


def applying(data: pl.DataFrame, deletes: pl.DataFrame, global_specs: list[int]) -> set[int]:
    """Which delete ENTRIES apply to any of the data ENTRIES, by their row numbers."""
    if not data.height or not deletes.height:
        return set()
    left, right, same = keyed_sides(data, deletes)
    oldest = left.group_by(same).agg(pl.col("data_sequence").min())
    equality = right.filter(deletes["content"] == 2)
    everywhere = pl.col("spec_id").is_in(global_specs)
    older = pl.col("data_sequence") < pl.col("sequence_number")
    local = equality.filter(~everywhere).join(oldest, on=same, how="inner", nulls_equal=True).filter(older)
    first = oldest.select(pl.col("data_sequence").min())
    anywhere = equality.filter(everywhere).join(first, how="cross").filter(older)
    frames = [frame for frame, _ in _by_position(left, right, deletes, same)]
    return set(pl.concat([frame.select("delete") for frame in (*frames, local, anywhere)])["delete"])


def keyed_sides(data: pl.DataFrame, deletes: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Both with row numbers (`data`, `delete`) and what decides; and the columns of spec and partition."""
    left = key_columns(data).drop("lower", "upper").with_row_index("data").rename({"sequence_number": "data_sequence"})
    right = key_columns(deletes).with_row_index("delete").rename({"path": "delete_path"})
    return left, right, ["spec_id", *(c for c in left.columns if c.startswith("f") and c[1:].isdigit())]


def _by_position(
    left: pl.DataFrame, right: pl.DataFrame, deletes: pl.DataFrame, same: list[str]
) -> tuple[tuple[pl.DataFrame, str], tuple[pl.DataFrame, str]]:
    """`data, delete` of deletion vectors and of position delete files."""
    vector = is_vector(deletes)
    vectors = vector_pairs(left, right.filter(vector), same)
    vectors = vectors.sort("sequence_number").unique("data", keep="last", maintain_order=True)
    positions = position_pairs(left, right.filter(~vector & (deletes["content"] == 1)), same).join(
        vectors.select("data"), on="data", how="anti"  # a deletion vector stands for all earlier position deletes
    )  # fmt: skip
    return (vectors, "vector"), (positions, "position")


def key_columns(entries: pl.DataFrame) -> pl.DataFrame:
    """What deciding takes of ENTRIES, the partition's parts as columns: floats as text, which are compared by bits."""
    frame = entries.select("path", "sequence_number", "spec_id", "referenced_data_file", "content")
    metrics = Metrics(entries)
    low, high = (metrics.value(f"{side}_bounds", FILE_PATH_ID).alias(side) for side in ("lower", "upper"))
    frame = frame.with_columns(low, high)
    if "partition" not in entries.columns:
        return frame
    parts = entries["partition"].struct.unnest()
    return frame.hstack([s.cast(pl.String) if s.dtype.is_float() else s for s in parts])


def vector_pairs(left: pl.DataFrame, right: pl.DataFrame, same: list[str]) -> pl.DataFrame:
    """The deletion vectors (`right`) of each data file (`left`), both keyed; `same` as `position_pairs`."""
    return left.join(
        right, left_on=["path", *same], right_on=["referenced_data_file", *same], how="inner", nulls_equal=True
    ).filter(pl.col("data_sequence") <= pl.col("sequence_number"))


def position_pairs(left: pl.DataFrame, right: pl.DataFrame, same: list[str]) -> pl.DataFrame:
    """`data, delete`: which position delete files (`right`) may name rows of which data files (`left`), both keyed;
    `same`: the columns of spec and partition."""
    one = pl.when(pl.col("lower") == pl.col("upper")).then(text_values(right["lower"]))
    right = right.with_columns(pl.coalesce("referenced_data_file", one).alias("target"))
    age = pl.col("data_sequence") <= pl.col("sequence_number")
    by_path = left.join(
        right.filter(pl.col("target").is_not_null()),
        left_on=["path", *same], right_on=["target", *same], how="inner", nulls_equal=True,
    ).filter(age)  # fmt: skip
    path = pl.col("path").cast(pl.Binary)
    within = (path >= pl.col("lower")).fill_null(True) & (path <= pl.col("upper")).fill_null(True)
    others = left.join(right.filter(pl.col("target").is_null()), on=same, how="inner", nulls_equal=True)
    others = others.filter(age & within)
    return pl.concat([by_path.select("data", "delete"), others.select("data", "delete")])
