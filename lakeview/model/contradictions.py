"""Statistics that no file can have: a minimum above its maximum, more nulls than rows, bounds of nulls alone."""

from typing import Final

import polars as pl

ABOVE: Final = "have a minimum above their maximum"
MORE_NULLS: Final = "have more nulls than rows"
ALL_NULL: Final = "are all null and have bounds"

CONTRADICTIONS = pl.Schema(
    {"kind": pl.String(), "column": pl.String(), "files": pl.Int64(), "path": pl.String(), "text": pl.String()}
)
"""One row a kind and column. `kind`: ABOVE or MORE_NULLS, by which a filter may skip rows that match it, or ALL_NULL;
`column` as STATISTICS names it; `files`: how many; `path` of the first, and what its statistics are, in words."""

_TEXT_LENGTH = 40


def contradictions(statistics: pl.DataFrame, records: pl.Series) -> pl.DataFrame:
    """CONTRADICTIONS of STATISTICS, as recorded, with the physical rows of each of its files (null where unknown)."""
    rows = []
    for name in statistics.columns:
        if name in ("_path", "_deletion_vector"):
            continue
        column = statistics[name].struct.unnest().with_columns(statistics["_path"].alias("path"), records.alias("rows"))
        if column["min"].dtype != pl.Null:
            above = pl.col("min") > pl.col("max")
            if column["min"].dtype.is_float():  # NaN sorts above all numbers, and is no bound
                above = above & pl.col("min").is_not_nan()
            rows += _case(ABOVE, name, column.filter(above), "min {}, max {}", "min", "max")
            all_null = (pl.col("null_count") == pl.col("rows")) & (pl.col("rows") > 0) & pl.col("null_count_exact")
            with_min = column.filter(all_null & pl.col("min").is_not_null())
            rows += _case(ALL_NULL, name, with_min, "{} rows, all null, min {}", "rows", "min")
        more = column.filter(pl.col("null_count") > pl.col("rows"))
        rows += _case(MORE_NULLS, name, more, "{} nulls in {} rows", "null_count", "rows")
    return pl.DataFrame(rows, schema=CONTRADICTIONS, orient="row")


def _case(kind: str, column: str, rows: pl.DataFrame, text: str, *values: str) -> list[tuple[str, str, int, str, str]]:
    if rows.is_empty():
        return []
    texts = (f"{each:,}" if isinstance(each, int) else str(each)[:_TEXT_LENGTH] for each in rows.select(values).row(0))
    return [(kind, column, rows.height, rows["path"][0], text.format(*texts))]
