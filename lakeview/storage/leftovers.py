"""A listing to the files of a table in it that a write left behind: hidden names and young files are none."""

from datetime import datetime, timedelta

import polars as pl

_YOUNG = timedelta(days=1)


def leftovers(unnamed_files: pl.DataFrame, now: datetime | None) -> pl.DataFrame:
    """Of a LISTING of files that a table does not name those that failed writes left behind; with `now` those that are
    older than a day, as others may belong to a commit under way."""
    # hidden names are no data: what Spark's vacuum leaves alone; a partition folder may begin with an underscore
    hidden = pl.col("name").str.contains(r"(^|/)(\.[^/]*|_[^/=]*)(/|$)")
    # but for what a writer of ours had begun, or had Spark write, when it was killed, which a vacuum deletes
    temporary = pl.col("name").str.contains(r"(^|/)\.[^/]+\.[0-9a-f]{32}\.tmp$|^[0-9a-f]{32}\.staging/")
    files = unnamed_files.filter(~hidden | temporary)
    if now is None:
        return files
    return files.filter(pl.col("modified").is_null() | (pl.col("modified") < now - _YOUNG))


def age(now: datetime | None) -> str:
    """What is known of their age, in words."""
    return "older than a day" if now is not None else "some may belong to a commit under way"
