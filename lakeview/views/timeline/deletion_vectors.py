"""A timeline to one that does not count a file as written again where a commit changed its deletion vector alone."""

import polars as pl

from lakeview.views.sums import total
from lakeview.views.timeline.lifetimes import continuations


def without_redeletes(timeline: pl.DataFrame, lifetimes: pl.DataFrame) -> pl.DataFrame:
    """TIMELINE with `files_redeleted`: of files that got another deletion vector only the rows deleted (or brought
    back) are counted. A commit that did not count such files, as one that it removes and adds, stays as it is.
    """
    continues = lifetimes.hstack(continuations(lifetimes))
    before = continues.filter("goes_on").select("path", "size", version="removed", records_before="records")
    if before.is_empty():
        return timeline.with_columns(files_redeleted=pl.lit(0, pl.Int64))
    after = continues.filter("went_on").select("path", version="added", records_after="records")
    starts = lifetimes.group_by(version="added").agg(starts=pl.len().cast(pl.Int64))
    deleted = pl.col("records_before") - pl.col("records_after")
    redeletes = (
        before.join(after, on=["path", "version"])
        .with_columns(rows_deleted=deleted.clip(0), rows_restored=(-deleted).clip(0), redeleted=pl.lit(1, pl.Int64))
        .group_by("version")
        .agg(map(total, ("redeleted", "size", "records_before", "records_after", "rows_deleted", "rows_restored")))
        .join(starts, on="version")
    )
    joined = timeline.join(redeletes, on="version", how="left", maintain_order="left")
    is_counted = pl.col("redeleted").is_not_null() & (pl.col("files_added") >= pl.col("starts"))
    counts = {
        "files_added": pl.col("files_added") - pl.col("redeleted"),
        "files_removed": pl.col("files_removed") - pl.col("redeleted"),
        "bytes_added": pl.col("bytes_added") - pl.col("size"),
        "bytes_removed": pl.col("bytes_removed") - pl.col("size"),
        "records_added": pl.col("records_added") - pl.col("records_after") + pl.col("rows_restored"),
        "records_removed": pl.col("records_removed") - pl.col("records_before") + pl.col("rows_deleted"),
    }
    return (
        joined.with_columns(
            pl.when(is_counted).then(count).otherwise(name).alias(name) for name, count in counts.items()
        )
        .with_columns(files_redeleted=pl.col("redeleted").fill_null(0))
        .select(timeline.columns)
    )
