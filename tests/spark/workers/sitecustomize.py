"""For the daemons that Spark forks planning workers from, which no setting names: they import what lakeview's need.

Spark starts them by its own module for each plan, write and commit of a Python data source, and each worker would
import lakeview again. The same as `lakeview.spark.daemon`, for those.
"""

import gc
import sys

if "pyspark.daemon" in sys.orig_argv:
    import lakeview.spark.datasource  # noqa: F401  # what workers use

    gc.freeze()  # collections in a worker would copy what it shares with the others
