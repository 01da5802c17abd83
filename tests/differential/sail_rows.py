"""Requests on standard input to rows in Parquet files, by Sail: run by the interpreter of its own environment.

A request is a line of JSON: `format`, `address`, `options` for the reader, and `target`, a file that takes the rows.
For each, a line on standard output: `null`, or the error's text. Knows nothing of lakeview.
"""

from __future__ import annotations

import json
import sys

import pyarrow.parquet as pq
from pysail.spark import SparkConnectServer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


def main() -> None:
    """Answer every request, in order, in one session."""
    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    _, port = server.listening_address
    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for line in sys.stdin:
        request = json.loads(line)
        problem = None
        try:
            rows = spark.read.format(request["format"]).options(**request["options"]).load(request["address"])
            pq.write_table(rows.toArrow(), request["target"])
        except PySparkException as error:
            problem = str(error)
        sys.stdout.write(f"{json.dumps(problem)}\n")
    spark.stop()
    server.stop()


if __name__ == "__main__":
    main()
