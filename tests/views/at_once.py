"""What the process of a query adds up batch by batch, and column by column, of all rows at once."""

from __future__ import annotations

import polars as pl

from lakeview.views.compare.rows import MOST_ROWS, RowDifference, RowDifferenceSum
from lakeview.views.data.aggregates import PolarsAggregates
from lakeview.views.data.profile import DISTRIBUTIONS, column_distribution


def row_difference(changes: pl.LazyFrame, limit: int = MOST_ROWS) -> RowDifference:
    """The difference of all rows of CHANGES, or of `table.difference`."""
    sums = RowDifferenceSum(changes.collect_schema(), limit)
    for batch in changes.collect_batches():
        sums.add(batch)
    return sums.whole()


def distributions(sample: pl.DataFrame) -> pl.DataFrame:
    """DISTRIBUTIONS of the columns of a frame; nested ones show their nulls alone."""
    aggregates = PolarsAggregates(sample)
    facts = aggregates.facts()
    frequencies = dict(aggregates.frequencies({each.name: each.edges for each in facts if each.is_countable}))
    parts = [column_distribution(each, frequencies.get(each.name)) for each in facts]
    return pl.concat([pl.DataFrame(schema=DISTRIBUTIONS), *parts])
