"""The difference of two versions of a sink to the rows that the newer one has in addition."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from lakeview.model.change_columns import CHANGE_TYPE
from lakeview.model.schema import quoted

_COUNT = "\1count"


def added_rows(difference: DataFrame, names: Sequence[str], *, only_grew: bool) -> DataFrame:
    """The rows of a difference that were inserted, once for each time that they were not deleted as well: rows that a
    rearrangement of files copied are on both sides. `names`: of their columns; `only_grew`: that none was deleted."""
    # by position: a column that is called as one of CHANGES is suffixed there
    columns = [f.col(quoted(name)).alias(column) for name, column in zip(difference.columns, names, strict=False)]
    is_insert = f.col(CHANGE_TYPE) == "insert"
    if only_grew:
        return difference.where(is_insert).select(*columns)
    counts = difference.select(*columns, f.when(is_insert, 1).otherwise(-1).alias(_COUNT))
    # as exceptAll, which takes no maps
    rows = counts.groupBy(*[f.col(quoted(name)) for name in names]).agg(f.sum(_COUNT).cast("int").alias(_COUNT))
    times = f.array_repeat(f.lit(0), f.col(_COUNT))
    return rows.where(f.col(_COUNT) > 0).withColumn(_COUNT, f.explode(times)).drop(_COUNT)
