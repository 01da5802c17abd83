"""Metrics of manifest entries to STATISTICS, for the columns asked: bounds and counts are found by field id."""

from collections.abc import Collection, Mapping, Sequence

import polars as pl

from lakeview.iceberg.metadata.single_values import decoded_bounds, own_text
from lakeview.model.arguments import names_of
from lakeview.model.data_types import Field
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema, leaf_name


class Metrics:
    """The metrics of ENTRIES. Writers list the same columns in the same order for file after file, as a rule: a column
    is then one value of every so many, and only else looked for in each file."""

    def __init__(self, entries: pl.DataFrame) -> None:
        self.height = entries.height
        self._entries = entries
        self._regular: dict[str, Mapping[int, pl.Series] | None] = {}

    def value(self, name: str, field_id: int) -> pl.Series:
        """One column's value in `null_value_counts`, `lower_bounds`, ... of each file, null where there is none."""
        if name not in self._regular:
            self._regular[name] = _columns(self._entries[name])
        by_id = self._regular[name]
        if by_id is None:
            entry = pl.element().filter(pl.element().struct.field("key") == field_id).struct.field("value")
            return self._entries.select(pl.col(name).list.eval(entry).list.first()).to_series()
        return by_id[field_id] if field_id in by_id else next(iter(by_id.values())).clear(self.height)


def _columns(values: pl.Series) -> Mapping[int, pl.Series] | None:
    """The values of each key, where all files have the same keys in the same order; else None."""
    lengths = values.list.len()
    each = lengths.max()
    if not isinstance(each, int) or not each or lengths.min() != each or lengths.has_nulls():
        return None
    pairs = values.explode().struct.unnest()
    keys = pairs["key"].head(each).to_list()
    if len({*keys}) < each or None in keys:
        return None
    same = [pl.col("key").gather_every(each, i).eq_missing(key).all().alias(f"key{i}") for i, key in enumerate(keys)]
    spread = pairs.select(*same, *(pl.col("value").gather_every(each, i).alias(f"value{i}") for i in range(each)))
    if not all(spread.row(0)[:each]):
        return None
    return {key: spread[f"value{i}"] for i, key in enumerate(keys)}


Leaf = tuple[tuple[str, ...], Field]


def asked_leaves(schema: Schema, columns: Sequence[str] | None) -> list[Leaf]:
    """The leaves asked for by leaf name, or by the name of a top-level struct; InvalidRequestError for neither."""
    leaves = list(schema.leaves())
    if columns is None:
        return leaves
    names = set(names_of(columns, "columns"))
    choices = {leaf_name(path) for path, _ in leaves} | {path[0] for path, _ in leaves}
    if unknown := sorted(names - choices):
        raise InvalidRequestError(
            f"there is no column {unknown[0]}", fix=f"choose from {', '.join(sorted(choices)[:20])}", place=unknown[0],
            kind="unknown-column",
        )  # fmt: skip
    return [leaf for leaf in leaves if leaf_name(leaf[0]) in names or leaf[0][0] in names]


def statistics_frame(
    entries: pl.DataFrame, vectors: pl.Series, deleted_records: pl.Series, leaves: Sequence[Leaf]
) -> pl.DataFrame:
    """STATISTICS of live data ENTRIES. `vectors`: the id of each file's deletion vector; `deleted_records`: how many
    rows of it are deleted, null for unknown: with any, a bound need not occur any more."""
    metrics = Metrics(entries)
    facts = {"records": entries["records"], "whole": (deleted_records == 0).fill_null(False)}
    columns = []
    for i, (path, field) in enumerate(leaves):
        facts[f"nulls{i}"] = file_counts(metrics, "null_value_counts", field)
        bounds = file_bounds(metrics, field)
        if bounds is not None:
            facts[f"low{i}"], facts[f"high{i}"] = map(own_text, bounds)
            if bounds[0].dtype.is_float():
                facts[f"nans{i}"] = file_counts(metrics, "nan_value_counts", field)
        columns.append(_column(i, facts).alias(leaf_name(path)))
    files = pl.DataFrame([entries["path"].alias("_path"), vectors.alias("_deletion_vector")])
    return files.hstack(pl.DataFrame(facts).select(columns))


def statistics_of(entries: pl.DataFrame, leaves: Sequence[Leaf], *, deletes: bool) -> pl.DataFrame:
    """`path, written` (rows before any delete) and, with any leaf, `statistics` of data ENTRIES: a struct, a field
    a leaf as in STATISTICS. `deletes`: whether some may apply to any of them, so that no bound is sure to occur."""
    data = entries.filter((pl.col("status") != 2) & (pl.col("content") == 0))
    vectors = pl.Series([None], dtype=pl.String).new_from_index(0, data.height)
    deleted_records = pl.Series([None if deletes else 0], dtype=pl.Int64).new_from_index(0, data.height)
    rows = pl.DataFrame({"path": data["path"], "written": data["records"]})
    if not leaves:
        return rows
    statistics = statistics_frame(data, vectors, deleted_records, leaves).drop("_path", "_deletion_vector")
    return rows.with_columns(statistics.to_struct("statistics"))


def file_bounds(metrics: Metrics, field: Field) -> tuple[pl.Series, pl.Series] | None:
    """Lower and upper bounds of one column in its own type; None for a type that has none."""
    if field.id is None:
        return None
    low = decoded_bounds(metrics.value("lower_bounds", field.id), field.type)
    high = decoded_bounds(metrics.value("upper_bounds", field.id), field.type)
    return None if low is None or high is None else (low, high)


def file_counts(metrics: Metrics, name: str, field: Field) -> pl.Series:
    """How many values of one column are null (`null_value_counts`) or NaN (`nan_value_counts`) in each file, as its
    writer counted; null for unknown."""
    if field.id is None:
        return pl.Series([None] * metrics.height, dtype=pl.Int64)
    counts = metrics.value(name, field.id)
    return counts.set(counts < 0, None)


def _column(i: int, facts: Collection[str]) -> pl.Expr:
    """One column of STATISTICS, of the facts `low`, `high`, `nulls` and `nans` of this number, `records` and `whole`:
    whether no row of a file is deleted."""
    nulls, whole = pl.col(f"nulls{i}"), pl.col("whole")
    certain = nulls.is_not_null() & (whole | (nulls == 0)).fill_null(False)
    if f"low{i}" not in facts:
        none = pl.lit(None)
        return pl.struct(min=none, max=none, null_count=nulls, exact=pl.lit(value=False), null_count_exact=certain)
    # "each value must be less than or equal to": bounds need not occur, unless all values are the same. Java's writers
    # of ORC files record times up to 999 microseconds too late, and all cut texts.
    low, high = pl.col(f"low{i}"), pl.col(f"high{i}")
    others = nulls + pl.col(f"nans{i}") if f"nans{i}" in facts else nulls
    exact = (whole & (low == high) & (others < pl.col("records"))).fill_null(value=False)
    return pl.struct(min=low, max=high, null_count=nulls, exact=exact, null_count_exact=certain)
