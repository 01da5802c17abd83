"""The process that Spark forks Python workers from, with what they import: a second less for each worker.

Spark's own daemon imports nothing, because libraries start threads that do not live on in a fork. Those that are
started here only give back memory (jemalloc's) or files (polars'); no query runs before the fork, so that no pool of
threads is there. It is for sessions of a minute or two on this machine, by `spark.python.daemon.module`: tests and
the build of the demo lake. All others have Spark's.
"""

import gc

from pyspark import daemon

import lakeview.spark.datasource  # noqa: F401  # what workers use

if __name__ == "__main__":
    gc.freeze()  # collections in a worker would copy what it shares with the others
    daemon.manager()
