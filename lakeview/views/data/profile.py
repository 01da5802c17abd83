"""Rows to a profile of each column: nulls, distinct values, least and greatest, and how the values are distributed."""

from __future__ import annotations

import polars as pl
import polars.selectors as cs

from lakeview.views.data.distributions import DISTRIBUTIONS, distributions
from lakeview.views.values import value_text

_VALUES = pl.Schema({name: kind for name, kind in DISTRIBUTIONS.items() if name != "column"})

PROFILE = pl.Schema(
    {
        "column": pl.String(),
        "type": pl.String(),
        "nulls": pl.Int64(),
        "null_share": pl.Float64(),
        "distinct": pl.Int64(),
        "min_text": pl.String(),
        "max_text": pl.String(),
        "distribution": pl.List(pl.Struct(_VALUES)),
    }
)
"""One row a column of the rows given. `distinct` values without null, and `min_text` and `max_text`, are null for
lists, structs and maps; `distribution`: the rows of DISTRIBUTIONS of this column."""

_CELLS = 1 << 26
"""Values of columns that are in memory at the same time."""


def profile(rows: pl.LazyFrame) -> tuple[pl.DataFrame, int]:
    """PROFILE of all rows, and how many there are. Reads the first column, then as many at once as fit in memory."""
    left, at_once, height = rows.collect_schema().names(), 1, 0
    parts = [pl.DataFrame(schema=PROFILE)]
    while left:
        # by name: a name like ^x$ is no pattern
        columns = rows.select(cs.by_name(*left[:at_once])).collect(engine="streaming")
        parts.append(_profile(columns))
        left, height = left[at_once:], columns.height
        at_once = max(_CELLS // max(height, 1), 1)
    return pl.concat(parts), height


def distribution(profile: pl.DataFrame) -> pl.DataFrame:
    """DISTRIBUTIONS of the columns of PROFILE."""
    values = profile.select("column", "distribution").filter(pl.col("distribution").list.len() > 0)
    return values.explode("distribution").unnest("distribution").cast(DISTRIBUTIONS)


def _profile(rows: pl.DataFrame) -> pl.DataFrame:
    # a series' methods take a name like ^x$ for a pattern: columns are looked at under a name of ours
    facts = [_column_facts(name, rows[name].alias("values")) for name in rows.columns]
    values = distributions(rows).group_by("column").agg(distribution=pl.struct(_VALUES.names()))
    summary = pl.Schema({name: kind for name, kind in PROFILE.items() if name != "distribution"})
    columns = pl.DataFrame(facts, schema=summary, orient="row")
    return columns.join(values, on="column", how="left", maintain_order="left").cast(PROFILE)


def _column_facts(name: str, values: pl.Series) -> tuple[object, ...]:
    nulls = values.null_count()
    share = nulls / values.len() if values.len() else None
    if values.dtype.is_nested() or values.dtype == pl.Null():
        return name, str(values.dtype), nulls, share, None, None, None
    known = values.drop_nulls()
    return name, str(values.dtype), nulls, share, known.n_unique(), value_text(known.min()), value_text(known.max())
