"""A schema and its files' statistics to what is known of each column without reading a row, and RULES to words."""

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

import polars as pl

from lakeview.model.data_types import ArrayType, DataType, MapType
from lakeview.model.printable import shorten, shorten_column
from lakeview.model.schema import Schema, leaf_name
from lakeview.model.type_tree import nodes
from lakeview.views.schema.null_shares import each_column, share_of_column, shares_frame
from lakeview.views.values import bound_texts

SCHEMA_TREE = pl.Schema(
    {
        "path": pl.String(),
        "depth": pl.Int64(),
        "name": pl.String(),
        "type": pl.String(),
        "nullable": pl.Boolean(),
        "comment": pl.String(),
        "id": pl.Int64(),
        "leaf": pl.Boolean(),
        "null_share": pl.Float64(),
        "null_share_bound": pl.Boolean(),
        "null_share_mark": pl.String(),
        "absent_share": pl.Float64(),
        "absent": pl.String(),
        "absent_text": pl.String(),
        "coverage": pl.Float64(),
        "min_text": pl.String(),
        "max_text": pl.String(),
        "range_is": pl.String(),
    }
)
"""One row a column at every level, in order. `null_share_mark`: "" exact, "≥" or "≤" a bound, "≈" from some files only,
or of rows of which some are deleted and not counted.
`absent_share`, `absent`, `absent_text`: as in `births.ABSENT_SHARES`, null where no file lacks the column.
`coverage`: share of files with min and max. `range_is`: exact, bound (the true range lies within), partial (some
files do not tell theirs), null unknown. Null where statistics say nothing: structs, and lists and maps beyond nulls."""


def schema_tree(
    schema: Schema,
    statistics: pl.DataFrame | None = None,
    records: int | None = None,
    *,
    files: pl.DataFrame | None = None,
    least: int | None = None,
    shares: pl.DataFrame | None = None,
    absent: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """SCHEMA_TREE of a schema, with what STATISTICS say of its leaves.

    `records`: live rows, if known; `least`: a bound of them. `files` (FILES) tells files whose every value is null, and
    so have no min and max, from files without statistics; without it the null share needs `records`. Of columns that
    STATISTICS leave out because files are partitioned by them the partition values tell all. `shares`: NULL_SHARES of
    the same statistics, where they have been computed; `absent`: ABSENT_SHARES.
    """
    without_range = {leaf_name(path) for path, f in schema.leaves() if isinstance(f.type, ArrayType | MapType)}
    names = SCHEMA_TREE.names()
    tree = pl.DataFrame(_rows(schema), schema={n: SCHEMA_TREE[n] for n in names[:8]}, orient="row")
    if statistics is None:
        return tree.with_columns(pl.lit(None, dtype=SCHEMA_TREE[n]).alias(n) for n in names[8:]).select(names)
    leaves = set(tree.filter("leaf")["path"].to_list())
    column_shares: list[dict[str, Any]] = []
    ranges: list[dict[str, Any]] = []
    by_value = _by_partition(statistics, files, leaves)
    for column, part in chain(each_column(statistics, files, sorted(leaves & set(statistics.columns))), by_value):
        if shares is None or column not in statistics.columns:
            column_shares.append(share_of_column(column, part, records, least))
        if column not in without_range:
            ranges.append(_range(column, part))
    known_shares = shares_frame(column_shares) if shares is None else pl.concat([shares, shares_frame(column_shares)])
    marks = known_shares.select(
        pl.col("column").alias("path"),
        "null_share",
        null_share_bound=~pl.col("exact"),
        null_share_mark=pl.col("mark"),
    )
    lacking = pl.DataFrame(schema={n: SCHEMA_TREE[n] for n in ("path", *names[11:14])}) if absent is None else absent
    return (
        tree.join(marks, on="path", how="left", maintain_order="left")
        .join(lacking, on="path", how="left", maintain_order="left")
        .join(
            pl.DataFrame(ranges, schema={n: SCHEMA_TREE[n] for n in ("path", *names[14:])}),
            on="path",
            how="left",
            maintain_order="left",
        )
        .select(names)
        .cast(SCHEMA_TREE)
    )


def spread_evenly(versions: Sequence[int], limit: int = 24) -> list[int]:
    """At most `limit` of the versions, evenly spread, the first and last among them; the last where it is one."""
    if len(versions) <= limit:
        return list(versions)
    if limit == 1:
        return [versions[-1]]
    step = (len(versions) - 1) / (limit - 1)
    return [versions[round(i * step)] for i in range(limit)]


def _rows(schema: Schema) -> Iterator[tuple[object, ...]]:
    """The first eight columns of SCHEMA_TREE; statistics can tell of a leaf that is reached through structs only."""
    leaves = {path for path, _ in schema.leaves()}
    types: dict[tuple[str, ...], DataType] = {}
    for path, type_, field in nodes(schema.fields):
        types[path] = type_
        place = (leaf_name(path), len(path) - 1, path[-1], str(type_))
        if field is not None:
            yield *place, field.nullable, field.comment, field.id, path in leaves
        else:  # of a list or a map
            has_nulls = path[-1] != "key" and getattr(types[path[:-1]], "contains_null", True)
            yield *place, has_nulls, None, None, False


def _by_partition(
    statistics: pl.DataFrame, files: pl.DataFrame | None, leaves: Collection[str]
) -> Iterator[tuple[str, pl.DataFrame]]:
    """As `each_column`, of columns without statistics that have one value in each file: its partition's."""
    if files is None or "partition" not in files.columns:
        return
    live = files["records"] - files["deleted_records"]
    for values in files["partition"].struct.unnest():
        column = leaf_name((values.name,))
        if column in leaves and column not in statistics.columns:
            is_null = values.alias("values").is_null()  # a series called ^x$ would be a pattern to polars
            nulls = pl.select(pl.when(is_null).then(live).otherwise(0)).to_series()
            part = pl.DataFrame({"records": live, "null_count": nulls, "min": values, "max": values})
            yield (
                column,
                part.with_columns(deleted=pl.lit(0), null_count_exact=pl.lit(value=True), exact=pl.lit(value=True)),
            )


def _range(column: str, part: pl.DataFrame) -> dict[str, Any]:
    """One row: coverage, and the smallest min and greatest max as text."""
    ends = part.select(_ends())
    count, has_range, exact = (ends[name].item() for name in ("covered", "ranged", "exact"))
    return {
        "path": column,
        "coverage": None if part.is_empty() else count / part.height,
        "min_text": bound_texts(ends["low"], ends["exact"]).item(),
        "max_text": bound_texts(ends["high"], ends["exact"]).item(),
        "range_is": None if not has_range else "partial" if count < part.height else "exact" if exact else "bound",
    }


@cache
def _ends() -> tuple[pl.Expr, ...]:  # made once: of a wide table they are half the time
    """What `_range` is made of."""
    tells = pl.col("min").is_not_null() & pl.col("max").is_not_null()
    # a file in which every value is null has no range to tell
    empty = (pl.col("null_count") == pl.col("records")).fill_null(False)
    return (
        (tells | empty).sum().alias("covered"),
        tells.any().alias("ranged"),
        pl.col("exact").fill_null(False).filter(tells).all().alias("exact"),
        pl.col("min").filter(tells).min().alias("low"),
        pl.col("max").filter(tells).max().alias("high"),
    )


COLUMN_RULES = pl.Schema({"path": pl.String(), "rules": pl.String()})
"""One row a column that has rules, all of them in one line."""

CONSTRAINTS = pl.Schema({"name": pl.String(), "rule": pl.String()})
"""One row a rule that the whole table keeps, in the order declared."""

RULE_LENGTH = 400
"""Rules longer than this are cut, with an ellipsis."""

_WORDS = {
    "default": "default ",
    "generated": "generated as ",
    "identity": "identity ",
    "invariant": "always ",
    "length": "",
    "collation": "collation ",
    "type change": "was widened from ",
    "clustering": "clustering column ",
}


def column_rules(rules: pl.DataFrame) -> pl.DataFrame:
    """COLUMN_RULES from RULES. A kind without words of its own is shown by its name."""
    of_columns = rules.filter(pl.col("column").is_not_null())
    words = pl.col("kind").replace_strict(_WORDS, default=pl.col("kind") + " ", return_dtype=pl.String)
    texts = of_columns.select(path="column", rules=words + shorten_column(pl.col("rule"), RULE_LENGTH))
    return texts.group_by("path", maintain_order=True).agg(pl.col("rules").str.join(" · ")).cast(COLUMN_RULES)


def constraints(rules: pl.DataFrame) -> pl.DataFrame:
    """CONSTRAINTS from RULES; an order of rows is a wish, and no row breaks it."""
    of_table = rules.filter(pl.col("column").is_null() & (pl.col("kind") != "clustering"))
    return of_table.select("name", rule=shorten_column(pl.col("rule"), RULE_LENGTH)).cast(CONSTRAINTS)


def cut_rule(text: str) -> str:
    """One rule as it is shown."""
    return shorten(text, RULE_LENGTH)
