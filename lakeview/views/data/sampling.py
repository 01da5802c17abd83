"""A seed to the same sample again: of a version's files, and of rows as they pass."""

import threading

import polars as pl

from lakeview.model.column_values import live_records


def first_files(files: pl.DataFrame, count: int) -> pl.DataFrame:
    """The first of FILES, as many as hold `count` rows for certain; all where too few files record their rows."""
    least = files.select(live_records().fill_null(0).cum_sum()).to_series()
    enough = least.search_sorted(count) + 1
    return files.head(enough)


def sample_files(files: pl.DataFrame, most_bytes: int, seed: int) -> pl.DataFrame:
    """Rows of `files` (path, size) in an order drawn by the seed, those that fit into `most_bytes` together: one that
    does not is left out. Files of unknown size are left out too; there may be none.
    """
    candidates = files.drop_nulls("size").filter(pl.col("size") <= most_bytes).sort(pl.col("path").hash(seed), "path")
    budget, fits = most_bytes, []
    for size in candidates["size"]:
        fits.append(size <= budget)
        budget -= size if size <= budget else 0
    return candidates.filter(pl.Series(fits, dtype=pl.Boolean))


def sample_rows(rows: pl.LazyFrame, count: int, seed: int) -> pl.DataFrame:
    """At most `count` rows, each of all as likely; all columns of `rows`, in the order of the draw.

    No more than `count` rows of a batch are kept in memory. The same rows in the same order give the same sample.
    """
    lock, rows_before = threading.Lock(), 0
    key = "sample key"
    while key in rows.collect_schema():
        key += "_"

    def thin(batch: pl.DataFrame) -> pl.DataFrame:
        nonlocal rows_before
        with lock:
            first, rows_before = rows_before, rows_before + batch.height
        keys = pl.int_range(first, first + batch.height, eager=True).hash(seed).alias(key)
        return batch.with_columns(keys).bottom_k(count, by=key)

    schema = pl.Schema({**rows.collect_schema(), key: pl.UInt64()})
    sample = rows.map_batches(thin, schema=schema, streamable=True).collect(engine="streaming")
    return sample.sort(key).head(count).drop(key)
