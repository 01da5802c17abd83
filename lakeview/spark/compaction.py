"""Compaction: many small files of a partition to few, the same rows, as one commit that changes no data."""

import json
from collections.abc import Sequence
from datetime import datetime

import polars as pl
from pyspark.sql import SparkSession

import lakeview as lv
from lakeview.model.errors import InvalidRequestError
from lakeview.predicates import predicate
from lakeview.spark.table import table


def compact(
    spark: SparkSession,
    address: str,
    where: str | None = None,
    *,
    files: int = 1,
    sort_by: Sequence[str] = (),
    timestamp: datetime | None = None,
    user_name: str | None = None,
    user_metadata: str | None = None,
) -> int:
    """Rewrite the files that `where` (a condition on partition columns; else all) selects; how many there were.

    `files`: how many Spark partitions write the new ones; `sort_by`: columns that the rows of each are ordered by.
    Rows that arrive meanwhile stay as they are; a writer that removes one of the files meanwhile wins.
    Raises InvalidRequestError when `where` names another column: such files hold rows that it does not select.
    """
    opened = lv.open_table(address)
    snapshot = opened.snapshot()
    if where is None:
        paths = opened.files(snapshot.version, columns=["path"])["path"]
    else:
        for name in predicate(where).meta.root_names():
            if name not in snapshot.partition_columns:
                raise InvalidRequestError(
                    f"{name} is no partition column of {address}",
                    fix=f"choose whole partitions by {', '.join(snapshot.partition_columns) or 'no condition at all'}",
                    place=name,
                )
        paths = opened.plan(where, snapshot.version).filter(pl.col("kept"))["path"]
    if paths.is_empty():
        return 0
    rows = table(spark, address, version=snapshot.version, where=where).coalesce(files)
    writer = (
        (rows.sortWithinPartitions(*sort_by) if sort_by else rows)
        .write.format("lakeview")
        .mode("overwrite")
        .option("operation", "OPTIMIZE")
        .option("dataChange", "false")
        .option("replaceFiles", json.dumps(paths.to_list()))
    )
    if timestamp is not None:
        writer = writer.option("commitTimestamp", timestamp.isoformat())
    for option, said in (("userName", user_name), ("userMetadata", user_metadata)):
        if said is not None:
            writer = writer.option(option, said)
    writer.save(opened.address)
    return len(paths)
