"""For the daemons that the executors of a cluster fork their Python workers from: what lakeview's workers need of other
packages. lakeview itself comes with the job."""

import sys

if "pyspark.daemon" in sys.orig_argv:
    import gc

    import msgspec  # noqa: F401  # these are what workers use
    import pandas as pd  # noqa: F401
    import polars as pl  # noqa: F401
    import pyarrow.parquet as pq  # noqa: F401

    gc.freeze()  # collections in a worker would copy what it shares with the others
