"""Bounds and counts of manifest entries, column by column: what each file's metrics hold for the id of a field."""

from collections.abc import Mapping

import polars as pl


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
