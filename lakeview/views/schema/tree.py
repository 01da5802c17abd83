"""SCHEMA_TREE to what pages list of it: rules and distinct values beside each column, a search, a glance."""

import polars as pl

from lakeview.model.schema import leaf_name
from lakeview.model.snapshot import Snapshot
from lakeview.views.conform import conform, first_label
from lakeview.views.schema.columns import SCHEMA_TREE
from lakeview.views.units import count_text, format_percent

COLUMN_TREE = pl.Schema({**SCHEMA_TREE, "label": pl.String(), "rules": pl.String(), "distinct": pl.Int64()})
"""SCHEMA_TREE with `label`, the name indented by its depth and back-quoted where it holds a dot, as in paths; the
column's rules in words and an estimate of its distinct values, both null where there is none."""

COLUMN_GLANCE = pl.Schema(
    {
        "column": pl.String(),
        "type": pl.String(),
        "null_share": pl.Float64(),
        "null_share_mark": pl.String(),
        "absent_share": pl.Float64(),
        "statistics": pl.String(),
        "since": pl.Int64(),
    }
)
"""One row a top-level column, named by its path. `statistics`: whether its files have min and max (`min/max`, `some
files`, `none`, or `not read`); `absent_share` as in SCHEMA_TREE; `since`: the version that added it, null if that is
not known."""

FILTER_COLUMNS = pl.Schema({"column": pl.String(), "type": pl.String(), "part": pl.String()})
"""One row a top-level column: its type, and `partition` if files are partitioned by it."""

_INDENT = "\N{NO-BREAK SPACE}" * 4


_FLOATING = ("float", "double")
"""Types with NaN, which writers leave out of min and max, while engines order it above every number."""


def column_tree(tree: pl.DataFrame, rules: pl.DataFrame, distinct: pl.DataFrame) -> pl.DataFrame:
    """COLUMN_TREE from SCHEMA_TREE, COLUMN_RULES and DISTINCT (both may lack columns)."""
    names = pl.Series([leaf_name((name,)) for name in tree["name"]], dtype=pl.String)
    return (
        tree.join(rules, on="path", how="left", maintain_order="left")
        .join(distinct.select("path", distinct="ndv"), on="path", how="left", maintain_order="left")
        .with_columns(label=pl.lit(_INDENT).repeat_by("depth").list.join("") + names)
        .pipe(conform, COLUMN_TREE)
    )


def column_counts(tree: pl.DataFrame) -> list[str]:
    """How many top-level columns SCHEMA_TREE has and, if any, how many nested ones: `["4 columns", "2 nested"]`."""
    num_nested = tree.filter(pl.col("depth") > 0).height
    return [count_text(tree.height - num_nested, "column"), *([f"{num_nested:,} nested"] if num_nested else [])]


def range_note(tree: pl.DataFrame) -> list[str]:
    """What min and max of SCHEMA_TREE are, where that is one thing for all columns, or for those of some files:
    `["partial: min and max of 86.4 % of files"]`. Those of floating-point numbers are exact but for NaN."""
    columns = tree.drop_nulls("range_is")
    states = columns.select("range_is", "coverage").unique()
    partial = states.filter(pl.col("range_is") == "partial")["coverage"]
    of_files = f"min and max of {format_percent(partial[0])} of files" if partial.len() == 1 else ""
    match states["range_is"].unique().to_list():
        case ["partial"]:
            return [of_files or "min and max of a part of the files"]
        case ["exact"]:
            return [f"min and max are exact{' but for NaN' if columns['type'].is_in(_FLOATING).any() else ''}"]
        case ["bound"]:
            return ["min and max are bounds"]
        case _:
            return [f"partial: {of_files}"] if of_files else []


def search(tree: pl.DataFrame, text: str) -> pl.DataFrame:
    """The rows of SCHEMA_TREE whose path or comment contains the text, in any case."""
    texts = pl.concat_str("path", "comment", separator=" ", ignore_nulls=True).str.to_lowercase()
    return tree.filter(texts.str.contains(text.lower(), literal=True))


def column_glance(tree: pl.DataFrame, lifetimes: pl.DataFrame, *, is_read: bool = True) -> pl.DataFrame:
    """COLUMN_GLANCE from SCHEMA_TREE and COLUMN_LIVES; without `is_read` the tree was made without statistics."""
    live = lifetimes.filter(pl.col("dropped").is_null()).select("column", since="since")
    labels = {"min/max": pl.col("coverage") == 1, "some files": pl.col("coverage") > 0}
    return (
        tree.filter(pl.col("depth") == 0)
        .join(live, left_on="path", right_on="column", how="left", maintain_order="left")
        .with_columns(column="path", statistics=first_label(labels, "none" if is_read else "not read"))
        .pipe(conform, COLUMN_GLANCE)
    )


def filter_columns(snapshot: Snapshot) -> pl.DataFrame:
    """FILTER_COLUMNS of a snapshot: its top-level columns."""
    rows = [(f.name, str(f.type), "partition" if f.name in snapshot.partition_columns else "") for f in snapshot.schema]
    return pl.DataFrame(rows, schema=FILTER_COLUMNS, orient="row")


def with_absent_shares(rows: pl.DataFrame, tree: pl.DataFrame) -> pl.DataFrame:
    """Rows with a `column`, and the `absent_share` and `absent_text` of SCHEMA_TREE."""
    absent = tree.select("absent_share", "absent_text", column="path").unique("column")
    return rows.join(absent, on="column", how="left", maintain_order="left")


def most_nulls_first(shares: pl.DataFrame) -> pl.DataFrame:
    """NULL_SHARES by null share, unknown ones last, with `files_text`: the files that count nulls, `3 of 4`."""
    rows = shares.sort("null_share", descending=True, nulls_last=True, maintain_order=True)
    counts = rows.select("files_known", "files").iter_rows()
    texts = [None if some is None or files is None else f"{some:,} of {files:,}" for some, files in counts]
    return rows.with_columns(pl.Series("files_text", texts, dtype=pl.String))
