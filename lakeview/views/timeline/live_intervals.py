"""Intervals in which files are live, with values, to sums and extremes for every version, many columns in one pass."""

from collections.abc import Mapping
from typing import Literal

import polars as pl

Side = Literal["min", "max"]


def with_positions(lifetimes: pl.DataFrame, versions: pl.Series) -> pl.DataFrame:
    """LIFETIMES, in their order, with `from` and `to`: the positions of `added` and `removed` among these versions.

    Ids of versions may be in any order. `from` is null for a file added before the first of them; one removed before
    it is left out.
    """
    positions = pl.LazyFrame({"version": versions, "position": pl.int_range(versions.len(), eager=True)})
    starts = positions.rename({"version": "added", "position": "from"})
    ends = positions.rename({"version": "removed", "position": "to"})
    return (
        lifetimes.lazy()
        .join(starts, on="added", how="left", maintain_order="left")
        .join(ends, on="removed", how="left", maintain_order="left")
        .filter(pl.col("removed").is_null() | pl.col("to").is_not_null())
        .collect()
    )


class Stays:
    """The stays of files as intervals of places among the versions: from `start` on, up to before `end`."""

    def __init__(self, lifetimes: pl.DataFrame, versions: pl.Series) -> None:
        self._places = pl.DataFrame({"place": pl.int_range(versions.len(), dtype=pl.Int64, eager=True)})
        first_versions, end_versions = lifetimes["added"], lifetimes["removed"]
        start = versions.search_sorted(first_versions.fill_null(0), side="left").cast(pl.Int64)
        end = versions.search_sorted(end_versions.fill_null(0), side="left").cast(pl.Int64)
        start, end = start.set(first_versions.is_null(), 0), end.set(end_versions.is_null(), versions.len())
        self._lasts = start < end
        self._start, self._end = start.filter(self._lasts), end.filter(self._lasts)

    def sums(self, values: Mapping[str, pl.Series]) -> pl.DataFrame:
        """The sums over the files of each version, by name: of truths or of integers; null where 64 bits do not hold
        one. A value that is null counts nothing."""
        wide = {name: one if one.dtype == pl.Boolean else one.cast(pl.Int128) for name, one in values.items()}
        there = pl.DataFrame(wide).filter(self._lasts)
        starts, ends = (self._sum_by_place(there, place) for place in (self._start, self._end))
        both = pl.concat([starts, ends.select(pl.all().name.suffix(" ended"))], how="horizontal")
        return both.select(
            (pl.col(name) - pl.col(f"{name} ended")).cum_sum().cast(pl.Int64, strict=False) for name in values
        )

    def _sum_by_place(self, there: pl.DataFrame, place: pl.Series) -> pl.DataFrame:
        """The sums of what has the same place, one row a place, 0 where nothing has."""
        total = [
            pl.col(name).sum().cast(pl.Int64 if dtype == pl.Boolean else dtype) for name, dtype in there.schema.items()
        ]
        by_place = there.with_columns(place.alias("place")).group_by("place").agg(total)
        return self._places.join(by_place, on="place", how="left", maintain_order="left").drop("place").fill_null(0)

    def extremes(self, values: Mapping[str, tuple[Side, pl.Series]]) -> pl.DataFrame:
        """The least or greatest known value among the files of each version, by name; null where none is known.

        Each stay is covered by two spans of a power of two versions, the longest there is. Per span the best value is
        kept, and spans are halved until each is one version.
        """
        keys = {name: _Keys(one.filter(self._lasts)) for name, (_, one) in values.items()}
        sides = {name: side for name, (side, _) in values.items()}
        candidates = pl.DataFrame({name: one.values for name, one in keys.items()})
        best = candidates.clear(self._places.height)  # one row a version, null
        for level, own in self._spans(candidates, sides):
            halves = pl.concat([best, own.select(pl.all().name.suffix(" own"))], how="horizontal")
            best = halves.select(_best(name, side, 1 << level) for name, side in sides.items())
        return pl.DataFrame({name: one.back(best[name]) for name, one in keys.items()})

    def _spans(self, keys: pl.DataFrame, sides: Mapping[str, Side]) -> list[tuple[int, pl.DataFrame]]:
        """The best of the spans of each level, one row a place where they start; from the widest level to 0."""
        if not self._start.len():
            return []
        level = 63 - (self._end - self._start).bitwise_leading_zeros().cast(pl.Int64)
        width = pl.select(pl.lit(1, pl.Int64) * pl.lit(2, pl.Int64).pow(level)).to_series().cast(pl.Int64)
        first = keys.with_columns(level.alias("level"), self._start.alias("place"))
        last = keys.with_columns(level.alias("level"), (self._end - width).alias("place"))
        best = [pl.col(name).min() if side == "min" else pl.col(name).max() for name, side in sides.items()]
        spans = pl.concat([first, last.filter(last["place"] != first["place"])])
        by_level = spans.group_by("level", "place").agg(best).partition_by("level", as_dict=True, include_key=False)
        nothing = keys.clear().with_columns(place=pl.Series([], dtype=pl.Int64))
        steps = range(max(int(key[0]) for key in by_level), -1, -1)
        return [
            (step, self._places.join(by_level.get((step,), nothing), on="place", how="left", maintain_order="left"))
            for step in steps
        ]


def _best(name: str, side: Side, width: int) -> pl.Expr:
    """The best of a span, of the two spans of twice the width that reach over it, and of its own."""
    parts = pl.col(name), pl.col(name).shift(width), pl.col(f"{name} own")
    return (pl.min_horizontal(*parts) if side == "min" else pl.max_horizontal(*parts)).alias(name)


class _Keys:
    """Values as integers in the same order: numbers and times are so already, others by their rank."""

    def __init__(self, values: pl.Series) -> None:
        self._dtype = values.dtype
        self._distinct: pl.Series | None = None
        if values.dtype.is_integer() or values.dtype.is_temporal():
            self.values = values.to_physical()
        elif values.dtype == pl.Null:
            self.values = values.cast(pl.Int64)
        else:
            self._distinct = values.drop_nulls().unique().sort()
            self.values = values.rank("dense").cast(pl.Int64) - 1

    def back(self, keys: pl.Series) -> pl.Series:
        """The values that such integers stand for."""
        return keys.cast(self._dtype) if self._distinct is None else self._distinct.gather(keys)
