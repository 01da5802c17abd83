"""A timestamp as a caller writes it to a datetime: text without an offset is in the time zone of the session."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from lakeview.model.errors import InvalidRequestError


def timestamp_of(spark: SparkSession, text: datetime | str) -> datetime:
    """A text as Spark reads it as a timestamp. InvalidRequestError for one that it takes for none."""
    if isinstance(text, datetime):
        return text
    (row,) = spark.range(1).select(f.unix_micros(f.lit(text).try_cast("timestamp"))).collect()
    if row[0] is None:
        raise InvalidRequestError(
            f"{text!r} is no timestamp", fix="write it as 2026-07-15 or 2026-07-15 03:25:00", place="timestamp"
        )
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=row[0])
