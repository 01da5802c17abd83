"""What a log records to the values of columns, for readers and lookers alike: moments, sizes, rows, texts."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import polars as pl

from lakeview.model import limits
from lakeview.model.frames import PLAN, UTC_MILLIS

YEAR_1, YEAR_9999 = -62_135_596_800_000, 253_370_764_800_000
_MANY = 10_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moments(milliseconds: str) -> pl.Expr:
    """A column of milliseconds since 1970 as UTC_MILLIS, under its name; null before the year 1 and from 9999 on.

    A log may hold any number of 64 bits, and a moment that no calendar has fails where it is shown.
    """
    number = pl.col(milliseconds)
    return pl.when(number >= YEAR_1, number < YEAR_9999).then(number).cast(UTC_MILLIS).alias(milliseconds)


def frame_with_moments(rows: Sequence[tuple[object, ...]], schema: pl.Schema, column: str) -> pl.DataFrame:
    """A frame of rows in which `column` is given in milliseconds since 1970."""
    plain = pl.Schema({**schema, column: pl.Int64()})
    return pl.DataFrame(rows, schema=plain, orient="row").with_columns(moments(column))


def moment(milliseconds: int | None) -> datetime | None:
    """Milliseconds since 1970 as an aware datetime; None for none, and beyond the calendar's years."""
    if milliseconds is None or not YEAR_1 <= milliseconds < YEAR_9999:
        return None
    return EPOCH + timedelta(milliseconds=milliseconds)


def sizes() -> pl.Expr:
    """`size` of files as recorded, in bytes; null where no file is of that size.

    A log may hold any number of 64 bits, and a sum with such a part would be called exact, or turn negative.
    """
    return pl.when(pl.col("size").is_between(0, limits.FILE_BYTES)).then("size").alias("size")


def live_records() -> pl.Expr:
    """Rows of `records` without the `deleted_records`; null where one is, or where more were deleted than there are."""
    rows = pl.col("records") - pl.col("deleted_records")
    return pl.when(rows >= 0).then(rows).alias("records")


def least_records(files: pl.DataFrame, delete_files: pl.DataFrame | None = None) -> int | None:
    """At least how many rows FILES have; None for none.

    Without a file of equality deletes all files count but for as many rows as files of position deletes name: one of
    them may name a row twice, or one that another one names (Iceberg, "Position Delete Files").
    """
    certain = files.select(live_records().cast(pl.Int128).sum().cast(pl.Int64, strict=False)).item()
    if delete_files is None or delete_files.is_empty() or set(delete_files["content"]) != {"position deletes"}:
        return None if certain is None else int(certain)
    rows = files.select(_recorded_records().cast(pl.Int128).sum().cast(pl.Int64, strict=False)).item()
    deletes = None if delete_files["records"].has_nulls() else delete_files["records"].cast(pl.Int128).sum()
    return max(certain or 0, 0 if rows is None or deletes is None else rows - int(deletes))


def most_records(files: pl.DataFrame) -> int | None:
    """At most how many rows FILES have: those that are not known to be deleted; None where a file does not count its
    rows."""
    if files["records"].has_nulls():
        return None
    rows = files.select(_recorded_records().cast(pl.Int128).sum().cast(pl.Int64, strict=False)).item()
    return None if rows is None else int(rows)


def _recorded_records() -> pl.Expr:
    return pl.col("records") - pl.col("deleted_records").fill_null(0)


def format_expression(template: str, *parts: str | pl.Expr) -> pl.Expr:
    """As `polars.format`, which panics on a frame whose first chunk has no row (2.1), as filters leave behind: a text
    with a column's value in the place of each {}, null where one of them is."""
    first, *others = template.split("{}")
    texts = [pl.lit(first)]
    for part, text in zip(parts, others, strict=True):
        texts += [pl.col(part) if isinstance(part, str) else part, pl.lit(text)]
    return pl.concat_str(texts)


def all_differ(texts: pl.Series) -> bool:
    """Whether no value occurs twice: of a million paths the hashes tell so in a tenth of the time."""
    is_long = texts.len() > _MANY
    return (is_long and texts.hash().n_unique() == texts.len()) or texts.n_unique() == texts.len()


def filter_plan(files: pl.DataFrame, may_match: pl.Series, by_partition: pl.Series) -> pl.DataFrame:
    """PLAN of files (`path`, `size`): whether each may match a filter, and whether it may by its partition alone."""
    reason = pl.when("kept").then(pl.lit("kept")).when("by_partition").then(pl.lit("statistics"))
    return (
        files.select("path", "size")
        .with_columns(may_match.alias("kept"), by_partition.alias("by_partition"))
        .select("path", "kept", reason.otherwise(pl.lit("partition")).alias("reason"), "size")
        .cast(PLAN)
    )
