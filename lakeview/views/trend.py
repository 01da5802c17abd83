"""The lives of files to what the table was at every version: files, bytes, rows, and each column's nulls and bounds.

Nothing but the log is needed, and hardly more than one listing: O(files + versions x log versions) for each column.
"""

from __future__ import annotations

import polars as pl

TREND = pl.Schema({"version": pl.Int64(), "files": pl.Int64(), "bytes": pl.Int64(), "records": pl.Int64()})
"""One row a version, oldest first. `bytes` and `records` (live rows) are null where one of a live file is unknown.
If the lifetimes had statistics, `statistics` is a struct with one struct a column, named as there: `min, max` (of
all rows), `null_count`, `exact` (min and max occur) and `null_count_exact`. A bound is null where a live file that may
hold values has none, and in a version without values; a null count where one of a live file is unknown."""

_STATISTIC = ("min", "max", "null_count", "exact", "null_count_exact")


def trend(lifetimes: pl.DataFrame, versions: pl.Series | None = None) -> pl.DataFrame:
    """TREND from LIFETIMES, which may have a column `statistics`: a struct with one field of STATISTICS a column.

    `versions`: those to tell about, in any order; all from the first that the lifetimes name to the last without them.
    """
    at = _versions(lifetimes, versions)
    stays = Stays(lifetimes, at)
    columns = {
        "version": at,
        "files": stays.sums(pl.Series([1], dtype=pl.Int64).new_from_index(0, lifetimes.height)),
        "bytes": stays.known_sums(lifetimes["size"]),
        "records": stays.known_sums(lifetimes["records"]),
    }
    if "statistics" in lifetimes.columns:
        statistics = lifetimes["statistics"].struct
        # by place and under a name of ours: a series called ^x$ would be a pattern to polars
        each = zip(statistics.fields, statistics.unnest().get_columns(), strict=True)
        told = {name: _column(stays, lifetimes, column.alias("column")) for name, column in each}
        if told:
            columns["statistics"] = pl.DataFrame(told).to_struct("statistics")
    return pl.DataFrame(columns)


def _versions(lifetimes: pl.DataFrame, versions: pl.Series | None) -> pl.Series:
    if versions is not None:
        return versions.cast(pl.Int64).drop_nulls().unique().sort().alias("version")
    named = pl.concat([lifetimes["added"], lifetimes["removed"]]).drop_nulls()
    first, last = named.min(), named.max()
    if not isinstance(first, int) or not isinstance(last, int):  # no file, or none that came or went
        return pl.Series("version", [], dtype=pl.Int64)
    return pl.int_range(first, last + 1, dtype=pl.Int64, eager=True).alias("version")


def _column(stays: Stays, lifetimes: pl.DataFrame, statistic: pl.Series) -> pl.Series:
    low, high, nulls, exact, nulls_exact = (statistic.struct.field(name) for name in _STATISTIC)
    # deleted rows may be the ones with values, so only a file without deletes is known to hold nothing but nulls
    empty = ((nulls == lifetimes["records"]) & lifetimes["deletion_vector"].is_null()).fill_null(value=False)
    bounds = [
        stays.extremes(bound.set(empty, None), side).set(stays.sums(~empty & bound.is_null()) > 0, None)
        for bound, side in ((low, "min"), (high, "max"))
    ]
    sure = stays.sums(~empty & ~exact.fill_null(value=False)) == 0
    parts = [
        bounds[0],
        bounds[1],
        stays.known_sums(nulls),
        sure & bounds[0].is_not_null() & bounds[1].is_not_null(),
        stays.sums(~nulls_exact.fill_null(value=False)) == 0,
    ]
    return pl.DataFrame([part.alias(name) for part, name in zip(parts, _STATISTIC, strict=True)]).to_struct("c")


class Stays:
    """The stays of files as intervals of places among the versions: from `start` on, up to before `end`."""

    def __init__(self, lifetimes: pl.DataFrame, versions: pl.Series) -> None:
        self._count = versions.len()
        added, removed = lifetimes["added"], lifetimes["removed"]
        start = versions.search_sorted(added.fill_null(0), side="left").cast(pl.Int64)
        end = versions.search_sorted(removed.fill_null(0), side="left").cast(pl.Int64)
        self._start = start.set(added.is_null(), 0)
        self._end = end.set(removed.is_null(), self._count)
        self._seen = self._start < self._end

    def sums(self, values: pl.Series) -> pl.Series:
        """The sum over the files of each version; null where 64 bits do not hold it."""
        change = values.cast(pl.Int64).fill_null(0).cast(pl.Int128).filter(self._seen)
        gone = pl.Series([0], dtype=pl.Int128).new_from_index(0, change.len()) - change
        places = pl.concat([self._start.filter(self._seen), self._end.filter(self._seen)])
        changes = pl.DataFrame({"place": places, "change": pl.concat([change, gone])})
        by_place = changes.group_by("place").agg(pl.col("change").sum()).filter(pl.col("place") < self._count)
        every = pl.Series([0], dtype=pl.Int128).new_from_index(0, self._count)
        return every.scatter(by_place["place"], by_place["change"]).cum_sum().cast(pl.Int64, strict=False)

    def known_sums(self, values: pl.Series) -> pl.Series:
        """As `sums`, null where a file's value is unknown."""
        return self.sums(values).set(self.sums(values.is_null()) > 0, None)

    def extremes(self, values: pl.Series, side: str) -> pl.Series:
        """The least or greatest known value among the files of each version.

        Each stay is covered by two spans of a power of two versions, the longest there is. Per span the best value is
        kept, and spans are halved until each is one version. Values stand for themselves by their rank: texts too.
        """
        there = self._seen & values.is_not_null()
        if values.dtype == pl.Null or not there.any():
            return pl.Series([None], dtype=values.dtype).new_from_index(0, self._count)
        ranked = values.filter(there)
        distinct = ranked.unique().sort()
        rank = ranked.rank("dense").cast(pl.Int64) - 1
        start, end = self._start.filter(there), self._end.filter(there)
        level = 63 - (end - start).bitwise_leading_zeros().cast(pl.Int64)
        width = pl.select(pl.lit(1, pl.Int64) * pl.lit(2, pl.Int64).pow(level)).to_series().cast(pl.Int64)
        spans = pl.DataFrame(
            {
                "level": pl.concat([level, level]),
                "place": pl.concat([start, end - width]),
                "rank": pl.concat([rank, rank]),
            }
        )
        best = pl.col("rank").min() if side == "min" else pl.col("rank").max()
        kept = dict(spans.group_by("level", "place").agg(best).partition_by("level", as_dict=True).items())
        nothing = pl.Series([None], dtype=pl.Int64).new_from_index(0, self._count)
        found = nothing
        for step in range(max(int(key[0]) for key in kept), -1, -1):
            halves = [found, found.shift(1 << step)]
            own = kept.get((step,))
            if own is not None:
                halves.append(nothing.scatter(own["place"], own["rank"]))
            both = pl.DataFrame([half.alias(str(i)) for i, half in enumerate(halves)])
            found = both.select((pl.min_horizontal if side == "min" else pl.max_horizontal)(pl.all())).to_series()
        return distinct.gather(found)
