"""The manifests of a snapshot to MANIFESTS: counts as recorded, partition ranges for people, and how they overlap."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from lakeview.iceberg.manifests.partitions import PartitionColumn, readable
from lakeview.iceberg.metadata.single_values import decoded_bounds
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.model.column_values import format_expression
from lakeview.model.frames import MANIFESTS

MOST_COMPARED = 2_000
"""Manifests of one content and spec beyond which overlaps stay unknown: every one is compared with every other."""

_COUNTS = {
    f"{what}_{kind}": f"{kind}_{what}_count" for what in ("files", "rows") for kind in ("added", "existing", "deleted")
}


def manifest_files(manifests: pl.DataFrame, metadata: Metadata, columns: Sequence[PartitionColumn]) -> pl.DataFrame:
    """MANIFESTS of a manifest list's rows, in its order. `columns`: the parts of all partition specs."""
    frame = manifests.with_row_index("row")
    frames: list[pl.DataFrame] = []
    for (content, spec_id), group in frame.group_by("content", "partition_spec_id", maintain_order=True):
        assert content is None or isinstance(content, int), "the list says so, by its declared type"
        ranges = _ranges(group, metadata, columns, spec_id if isinstance(spec_id, int) else 0)
        frames.append(
            pl.DataFrame(
                {"row": group["row"], "partitions": _text(ranges, group.height), "overlaps": _overlaps(ranges, group)}
            )
        )
    empty = pl.DataFrame(schema={"row": pl.UInt32(), "partitions": pl.String(), "overlaps": pl.Int64()})
    rows = frame.join(pl.concat([empty, *frames]), on="row", how="left", suffix="_told", maintain_order="left")
    return rows.select(
        path="manifest_path",
        content=pl.when(pl.col("content") == 1).then(pl.lit("deletes")).otherwise(pl.lit("data")),
        size="manifest_length",
        spec_id=pl.col("partition_spec_id").fill_null(0),
        sequence_number="sequence_number",
        added_version="added_snapshot_id",
        **{ours: pl.col(theirs) for ours, theirs in _COUNTS.items()},
        partitions="partitions_told",
        overlaps="overlaps",
    ).cast(MANIFESTS)


@dataclass(frozen=True, slots=True)
class _Range:
    """One part of a spec in a group of manifests: lower and upper bounds, and whether nulls occur."""

    column: PartitionColumn
    low: pl.Series
    high: pl.Series
    nulls: pl.Series


def _ranges(group: pl.DataFrame, metadata: Metadata, columns: Sequence[PartitionColumn], spec_id: int) -> list[_Range]:
    """The parts of the group's spec whose bounds can be read, in the spec's order; none where it has none."""
    spec = metadata.specs.get(spec_id)
    by_id = {c.field.field_id: c for c in columns}
    ranges = []
    for place, field in enumerate(() if spec is None else spec.fields):
        column = by_id.get(field.field_id)
        if column is None or spec_id not in column.specs:
            continue
        type_ = column.type
        one = group["partitions"].list.get(place, null_on_oob=True).struct.unnest()
        low, high = (None if type_ is None else decoded_bounds(one[side], type_) for side in ("f510", "f511"))
        if low is not None and high is not None:
            ranges.append(_Range(column, low, high, one["f509"]))
    return ranges


def _text(ranges: Sequence[_Range], height: int) -> pl.Series:
    """`month 2013-05 to 2013-07, id bucket 3 of 16`; null where no part has bounds."""
    parts = []
    for i, r in enumerate(ranges):
        low, high = readable(r.column, r.low), readable(r.column, r.high)
        span = (
            pl.when(pl.col("low") == pl.col("high"))
            .then(pl.col("low"))
            .when(pl.col("low").is_not_null())
            .then(format_expression("{} to {}", "low", "high"))
            .when("nulls")
            .then(pl.lit("null"))
        )
        also = pl.when(pl.col("nulls").fill_null(False) & pl.col("low").is_not_null()).then(pl.lit(" and null"))
        text = pl.lit(r.column.name + " ") + span + also.otherwise(pl.lit(""))
        frame = pl.DataFrame({"low": low, "high": high, "nulls": r.nulls})
        parts.append(frame.select(text.alias(f"p{i}")).to_series())
    if not parts:
        return pl.Series([None] * height, dtype=pl.String)
    texts = pl.DataFrame(parts).select(
        pl.concat_str(pl.all(), separator=", ", ignore_nulls=True).replace("", None).alias("partitions")
    )
    return texts.to_series()


def _overlaps(ranges: Sequence[_Range], group: pl.DataFrame) -> pl.Series:
    """With how many others of the group each manifest shares a place in every part; null where that is unknown.

    A part without bounds (nothing but nulls, or a writer that left them out) is taken to reach everywhere.
    """
    height = group.height
    if not ranges or height > MOST_COMPARED:
        return pl.Series([None] * height, dtype=pl.Int64)
    ranks = pl.DataFrame([s for i, r in enumerate(ranges) for s in _ranks(i, r)])
    has_bounds = ranks.select(pl.any_horizontal(pl.col(f"there{i}") for i in range(len(ranges)))).to_series()
    counts = [ranks.select(_meets(row, len(ranges)).sum()).item() - 1 for row in ranks.iter_rows(named=True)]
    return pl.Series(counts, dtype=pl.Int64).set(~has_bounds, None)


def _meets(row: Mapping[str, Any], parts: int) -> pl.Expr:
    """Which of all manifests share a place with this one in every part."""
    meets = pl.col("there0") | True  # as long as the frame, where a literal is one value
    for i in range(parts):
        if row[f"there{i}"]:
            within = (pl.col(f"low{i}") <= row[f"high{i}"]) & (pl.col(f"high{i}") >= row[f"low{i}"])
            meets = meets & (within | ~pl.col(f"there{i}"))
    return meets


def _ranks(part: int, r: _Range) -> Iterator[pl.Series]:
    """Bounds of any type as numbers in the same order, and where both are there."""
    ranks = pl.concat([r.low, r.high]).rank("dense").fill_null(0)
    yield ranks.head(r.low.len()).alias(f"low{part}")
    yield ranks.tail(r.low.len()).alias(f"high{part}")
    yield (r.low.is_not_null() & r.high.is_not_null()).alias(f"there{part}")
