"""Statistics of two versions to what shifted in each column: null share and range, columns matched by field id."""

import polars as pl

from lakeview.model.column_values import least_records
from lakeview.model.schema import leaf_name
from lakeview.model.snapshot import Snapshot
from lakeview.views.conform import first_label
from lakeview.views.schema.columns import schema_tree
from lakeview.views.schema.diff import field_changes
from lakeview.views.thresholds import LOOSE_SHIFT_SHARE, SHIFT_SHARE

STATISTICS_SHIFT = pl.Schema(
    {
        "column": pl.String(),
        "change": pl.String(),
        "before": pl.Float64(),
        "after": pl.Float64(),
        "before_mark": pl.String(),
        "after_mark": pl.String(),
        "shift": pl.Float64(),
        "absent_share": pl.Float64(),
        "absent_text": pl.String(),
        "min_before": pl.String(),
        "min_after": pl.String(),
        "max_before": pl.String(),
        "max_after": pl.String(),
        "range_is": pl.String(),
    }
)
"""One row a leaf column of the later version, largest shift first. `change`: new, shifted (null share, by 0.1 % or
more, of bounds by 1 %), range (min or max alone), same or unknown; `before` and `after` null shares with their marks,
and of the later version `absent_share` and `absent_text` (see SCHEMA_TREE);
`range_is` the weaker of both sides: exact, bound or partial."""

_WEAKEST_FIRST = ("partial", "bound", "exact")


def has_shifts(shifts: pl.DataFrame) -> bool:
    """True if a column of STATISTICS_SHIFT is new or changed its null share or range."""
    return shifts["change"].is_in(["new", "shifted", "range"]).any()


def statistics_shift(
    before: Snapshot,
    after: Snapshot,
    statistics_before: pl.DataFrame,
    statistics_after: pl.DataFrame,
    absent: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """STATISTICS_SHIFT of two snapshots with their STATISTICS, and ABSENT_SHARES of the later one; columns that neither
    side tells of are left out."""
    old, new = (
        schema_tree(
            s.schema,
            comparable,
            s.num_records,
            files=s.files,
            least=least_records(s.files, s.delete_files),
            absent=absent if s is after else None,
        ).filter("leaf")
        for s, comparable in ((before, statistics_before), (after, statistics_after))
    )
    names = {
        leaf_name(change.path): leaf_name(change.before_path)
        for change in field_changes(before.schema, after.schema)
        if change.path is not None and change.before_path is not None
    }
    was = new["path"].replace_strict(names, default=None, return_dtype=pl.String)
    sides = ("null_share", "null_share_mark", "min_text", "max_text", "range_is")
    both = new.with_columns(was=was).join(
        old.select(pl.col("path").alias("was"), *(pl.col(n).alias(f"{n}_before") for n in sides)),
        on="was",
        how="left",
        maintain_order="left",
    )
    shift = pl.col("null_share") - pl.col("null_share_before")
    moves = [pl.col(n).ne_missing(pl.col(f"{n}_before")) for n in ("min_text", "max_text")]
    has_shares = pl.col("null_share").is_not_null() & pl.col("null_share_before").is_not_null()
    is_exact = (pl.col("null_share_mark") == "") & (pl.col("null_share_mark_before") == "")
    floor = pl.when(is_exact).then(SHIFT_SHARE).otherwise(LOOSE_SHIFT_SHARE)
    has_ranges = pl.col("range_is").is_not_null() & pl.col("range_is_before").is_not_null()
    labels = {
        "new": pl.col("was").is_null(),
        "shifted": has_shares & (shift.abs() >= floor),
        "range": pl.any_horizontal(moves) & has_ranges,
        "same": has_shares,
    }
    weaker = {name: (pl.col("range_is") == name) | (pl.col("range_is_before") == name) for name in _WEAKEST_FIRST}
    rows = both.select(
        pl.col("path").alias("column"),
        first_label(labels, "unknown").alias("change"),
        before="null_share_before",
        after="null_share",
        before_mark="null_share_mark_before",
        after_mark="null_share_mark",
        shift=shift,
        absent_share="absent_share",
        absent_text="absent_text",
        min_before="min_text_before",
        min_after="min_text",
        max_before="max_text_before",
        max_after="max_text",
        range_is=first_label(weaker),
    )
    comparable = rows.filter(pl.any_horizontal(pl.col("before", "after", "min_before", "min_after").is_not_null()))
    order = pl.col("change").replace_strict({"new": 0, "shifted": 0, "range": 1}, default=2, return_dtype=pl.Int8)
    size = pl.coalesce(pl.col("shift").abs(), "after").fill_null(0.0)
    return comparable.sort(order, -size, maintain_order=True).cast(STATISTICS_SHIFT)
