"""A seed to the same sample again: of a version's files, and of rows as they pass."""

from __future__ import annotations

import threading

import polars as pl

_KEY = "\0sample key"


def sample_files(files: pl.DataFrame, most_bytes: int, seed: int) -> pl.DataFrame:
    """Rows of `files` (path, size) in an order drawn by the seed, as many as take at most `most_bytes` together.

    Files of unknown size are left out; there may be none.
    """
    drawn = files.drop_nulls("size").sort(pl.col("path").hash(seed), "path")
    return drawn.filter(pl.col("size").cum_sum() <= most_bytes)


def sample_rows(rows: pl.LazyFrame, count: int, seed: int) -> pl.DataFrame:
    """At most `count` rows, each of all as likely; all columns of `rows`, in the order of the draw.

    No more than `count` rows of a batch are kept in memory. The same rows in the same order give the same sample.
    """
    lock, passed = threading.Lock(), 0

    def thin(batch: pl.DataFrame) -> pl.DataFrame:
        nonlocal passed
        with lock:
            first, passed = passed, passed + batch.height
        keys = pl.int_range(first, first + batch.height, eager=True).hash(seed).alias(_KEY)
        return batch.with_columns(keys).bottom_k(count, by=_KEY)

    schema = pl.Schema({**rows.collect_schema(), _KEY: pl.UInt64()})
    drawn = rows.map_batches(thin, schema=schema, streamable=True).collect(engine="streaming")
    return drawn.sort(_KEY).head(count).drop(_KEY)
