"""PARTITION_SIZES of three keys and more to rectangles in the unit square, as large as their share of the bytes."""

from collections.abc import Sequence

import polars as pl

from lakeview.model.column_values import format_expression
from lakeview.views.conform import conform
from lakeview.views.partitions.keys import NO_PARTITION, partition_keys

PARTITION_RECTS = pl.Schema(
    {
        "group": pl.String(),
        "partition_text": pl.String(),
        "label": pl.String(),
        "partitions": pl.Int64(),
        "files": pl.Int64(),
        "bytes": pl.Int64(),
        "x0": pl.Float64(),
        "y0": pl.Float64(),
        "x1": pl.Float64(),
        "y1": pl.Float64(),
    }
)
"""One row a partition, as a rectangle in the unit square whose area is its share of the bytes, beside those of the same
first key (`group`). Small ones are one rectangle together: `partitions` of them, and no `partition_text`."""

_RATIO = 2.5
"""Width to height of the picture of rectangles."""

_MOST_RECTS = 1_200


def partition_rects(names: Sequence[str], sizes: pl.DataFrame) -> pl.DataFrame:
    """PARTITION_RECTS of partitions by the keys `names` that have bytes.

    Values of the first key are laid out in rows, the partitions of each in rows inside its rectangle, largest first,
    with as many rows as make them nearly square.
    """
    keys = partition_keys(sizes["partition_text"], names)
    if not names or sizes.is_empty():
        return pl.DataFrame(schema=PARTITION_RECTS)
    whole = sizes["partition_text"].fill_null(NO_PARTITION)
    rest = (
        pl.concat_str([pl.col(f"key_{i}") for i in range(1, len(names))], separator=" / ") if len(names) > 1 else None
    )
    parts = sizes.select("partition_text", "files", "bytes").with_columns(
        group=keys["key_0"].fill_null("other"),
        label=whole if rest is None else keys.select(rest.alias("label")).to_series().fill_null(whole),
        partitions=pl.lit(1, pl.Int64),
    )
    leaves = _gather_rest(parts.filter(pl.col("bytes") > 0))
    groups = leaves.group_by("group").agg(pl.col("bytes").sum())
    unit = groups.with_columns(px0=0.0, py0=0.0, px1=1.0, py1=1.0, parent=pl.lit(""))
    outer = _rows(unit).select("group", px0="x0", py0="y0", px1="x1", py1="y1")
    inside = leaves.join(outer, on="group").with_columns(parent="group")
    return _rows(inside).sort("group", "y0", "x0").pipe(conform, PARTITION_RECTS)


def _gather_rest(leaves: pl.DataFrame) -> pl.DataFrame:
    """The _MOST_RECTS largest, and for each group one for the others."""
    largest_first = leaves.sort("bytes", descending=True)
    small = largest_first.slice(_MOST_RECTS)
    if small.is_empty():
        return largest_first
    # of very many groups the small ones are one group together
    groups = set(largest_first.head(_MOST_RECTS)["group"].to_list())
    others = (
        small.with_columns(group=pl.when(pl.col("group").is_in(list(groups))).then("group").otherwise(pl.lit("other")))
        .group_by("group")
        .agg(pl.col("files", "bytes", "partitions").sum())
        .with_columns(label=format_expression("{} others", "partitions"), partition_text=pl.lit(None, pl.String))
    )
    return pl.concat([largest_first.head(_MOST_RECTS), others.select(largest_first.columns)])


def _rows(items: pl.DataFrame) -> pl.DataFrame:
    """Items with `bytes` inside the rectangles `px0, py0, px1, py1` of their `parent`, as rows of rectangles."""
    width, height = pl.col("px1") - pl.col("px0"), pl.col("py1") - pl.col("py0")
    total = pl.col("bytes").sum().over("parent")
    before = (pl.col("bytes").cum_sum() - pl.col("bytes")).over("parent")
    shape = (width * _RATIO / height).clip(1e-3, 1e3)
    many = (pl.len().over("parent") / shape).sqrt().round().clip(1, None)
    middle = (pl.col("before") + pl.col("bytes") / 2) / pl.col("total")
    return (
        items.sort("parent", "bytes", descending=[False, True], maintain_order=True)
        .with_columns(total=total, before=before, many=many)
        .with_columns(row=(middle * pl.col("many")).floor().clip(0, pl.col("many") - 1))
        .with_columns(
            row_bytes=pl.col("bytes").sum().over("parent", "row"),
            row_before=pl.col("before").min().over("parent", "row"),
        )
        .with_columns(
            y0=pl.col("py0") + height * pl.col("row_before") / pl.col("total"),
            y1=pl.col("py0") + height * (pl.col("row_before") + pl.col("row_bytes")) / pl.col("total"),
            x0=pl.col("px0") + width * (pl.col("before") - pl.col("row_before")) / pl.col("row_bytes"),
            x1=pl.col("px0")
            + width * (pl.col("before") + pl.col("bytes") - pl.col("row_before")) / pl.col("row_bytes"),
        )
    )
