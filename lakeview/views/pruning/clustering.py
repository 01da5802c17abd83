"""Min and max of each file to how well the files are clustered by a column: how many ranges overlap at one value.

The fewer ranges overlap, the fewer files a filter for one value reads. Overlaps are counted where ranges begin and end,
from the statistics of each file; no data is read.
"""

from dataclasses import dataclass

import polars as pl
import polars.selectors as cs

from lakeview.model.data_types import ArrayType, MapType
from lakeview.model.frames import UTC_MILLIS
from lakeview.model.schema import Schema, leaf_name
from lakeview.views.conform import conform
from lakeview.views.schema.columns import spread_evenly
from lakeview.views.schema.null_shares import counts_of
from lakeview.views.timeline.live_intervals import with_positions
from lakeview.views.units import count_text
from lakeview.views.values import bound_texts, statistic

CLUSTERING = pl.Schema(
    {
        "column": pl.String(),
        "type": pl.String(),
        "files": pl.Int64(),
        "ranged": pl.Int64(),
        "all_null": pl.Int64(),
        "unknown": pl.Int64(),
        "coverage": pl.Float64(),
        "null_coverage": pl.Float64(),
        "exact": pl.Boolean(),
        "depth": pl.Float64(),
        "most": pl.Int64(),
        "reads": pl.Float64(),
        "reads_share": pl.Float64(),
    }
)
"""One row a leaf column that may have ranges. Of `files`, `ranged` have min and max, in `all_null` every value is null,
`unknown` have no statistics; `coverage` is the share with statistics, `null_coverage` that with null counts.
`exact`: min and max of every file occur in it, else ranges may be wider. `depth`: how many ranges overlap at one value,
the mean over all values where a range begins or ends, `most` the maximum; `reads`: files that a filter for one value
opens, those without statistics included; `reads_share` of all files. Null where no file has a range."""

DEPTHS = pl.Schema({"place": pl.Int64(), "value_text": pl.String(), "depth": pl.Int64(), "reads": pl.Int64()})
"""One row a place among the values of a column, in their order: how many ranges overlap there, and how many files a
filter for it opens."""

CLUSTERING_COURSE = pl.Schema(
    {
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "files": pl.Int64(),
        "coverage": pl.Float64(),
        "depth": pl.Float64(),
        "reads": pl.Float64(),
        "reads_share": pl.Float64(),
    }
)
"""One row a version measured, oldest first; the figures as in CLUSTERING."""

_MOST_PLACES = 240
_MOST_MEASURED = 100_000
"""With more files than this, _MOST_PLACES places are measured, evenly spread: `depth` and `most` are then of those."""

_MOST_VERSIONS = 40
_MOST_RANGES = 6_000_000
"""The most files, summed over the versions measured, that are compared: a few seconds."""


@dataclass(frozen=True, slots=True)
class _Scale:
    """Figures of `rows` files that were drawn at random as those of all `files`."""

    rows: int
    files: int

    def count(self, files: int) -> int:
        """A count of files."""
        return round(files * self.files / self.rows) if self.rows else 0

    def depth(self, depth: pl.Series) -> pl.Series:
        """How many ranges hold a place: that which begins or ends there is one of them however many files there are."""
        if self.rows == self.files:
            return depth
        return (depth - 1).clip(0) * ((self.files - 1) / max(1, self.rows - 1)) + depth.clip(0, 1)


def clustering(schema: Schema, statistics: pl.DataFrame, files: pl.DataFrame) -> pl.DataFrame:
    """CLUSTERING from STATISTICS and FILES of one version, in the order of the schema; with STATISTICS of a sample of
    the files an estimate: counts are scaled up to all of FILES."""
    records = counts_of(statistics, files)["records"]
    rows = []
    for path, field in schema.leaves():
        name = leaf_name(path)
        if name not in statistics.columns or isinstance(field.type, ArrayType | MapType):
            continue
        bounds = _bounds(statistics[name])
        scale = _Scale(bounds.height, max(bounds.height, files.height))
        rows.append((name, str(field.type), *_measure(bounds, records, scale)))
    return pl.DataFrame(rows, schema=CLUSTERING, orient="row")


def with_ranges(clustering: pl.DataFrame) -> list[str]:
    """The columns of CLUSTERING of which any file has min and max."""
    return clustering.filter(pl.col("reads").is_not_null())["column"].to_list()


def sample_note(sample_size: int | None, files: int) -> str:
    """By how many of the files CLUSTERING is estimated; empty where all are compared."""
    return "" if sample_size is None else f", estimated from {sample_size:,} of {count_text(files, 'file')}"


def coverage_note(clustering: pl.DataFrame) -> str:
    """How many columns have min and max in every file, in some, in none."""
    everywhere = int(((clustering["unknown"] == 0) & clustering["reads"].is_not_null()).sum())
    nowhere = int(clustering["reads"].is_null().sum())
    some = clustering.height - everywhere - nowhere
    count = count_text(clustering.height, "column")
    have = "has" if everywhere == 1 else "have"
    return f"of {count}: {everywhere:,} {have} min and max in every file, {some:,} in some, {nowhere:,} in none"


def depth_profile(statistics: pl.DataFrame, files: pl.DataFrame, column: str) -> pl.DataFrame:
    """DEPTHS of one column of STATISTICS, at _MOST_PLACES of the places where its ranges begin and end; an estimate as
    CLUSTERING, with STATISTICS of a sample of FILES."""
    if column not in statistics.columns:
        return pl.DataFrame(schema=DEPTHS)
    bounds = _bounds(statistics[column])
    records = counts_of(statistics, files)["records"]
    ranges = _with_range(bounds)
    unknown = bounds.height - ranges.height - _all_null(bounds, records)
    if ranges.is_empty():
        return pl.DataFrame(schema=DEPTHS)
    values = pl.concat([ranges["min"], ranges["max"]])
    codes = _codes(ranges)
    places = pl.DataFrame(
        {"code": pl.concat([codes["low"], codes["high"]]), "row": pl.int_range(values.len(), eager=True)}
    )
    # sorted before equal ones are left out: to look for equal ones among two million takes five times as long
    all_codes = places["code"].sort()
    all_codes = all_codes.filter(all_codes.ne_missing(all_codes.shift(1)))
    sampled_codes = all_codes[spread_evenly(range(all_codes.len()), _MOST_PLACES)]
    sample = places.filter(pl.col("code").is_in(sampled_codes.implode())).unique("code", keep="first").sort("code")
    ends = pl.DataFrame({"low": codes["low"].sort(), "high": codes["high"].sort()})
    scale = _Scale(bounds.height, max(bounds.height, files.height))
    depth = scale.depth(_depth_at(ends, sample["code"]).cast(pl.Float64)).round().cast(pl.Int64)
    exact = pl.concat([ranges["exact"], ranges["exact"]])
    return pl.DataFrame(
        {
            "place": pl.int_range(sample.height, eager=True),
            "value_text": bound_texts(values.gather(sample["row"]), exact.gather(sample["row"])),
            "depth": depth,
            "reads": depth + scale.count(unknown),
        }
    ).cast(DEPTHS)


def clustering_course(lifetimes: pl.DataFrame, commits: pl.DataFrame, column: str) -> pl.DataFrame:
    """CLUSTERING_COURSE of a column from LIFETIMES with its `statistics`, and COMMITS or TIMELINE, oldest first.

    Of many versions some are looked at, evenly spread, the first and last among them: _MOST_VERSIONS, fewer where so
    many files are live that it would take long. The numbers of versions may be in any order: the rows' order counts.
    """
    if "statistics" not in lifetimes.columns or commits.is_empty() or lifetimes.is_empty():
        return pl.DataFrame(schema=CLUSTERING_COURSE)
    # of a shared table it is not told since when its files are part of it: then they tell of one version only
    if commits.height > 1 and lifetimes["added"].null_count() == lifetimes.height:
        return pl.DataFrame(schema=CLUSTERING_COURSE)
    stays = with_positions(lifetimes, commits["version"]).with_columns(pl.col("from").fill_null(0), removed="to")
    if column not in stays["statistics"].struct.fields:
        return pl.DataFrame(schema=CLUSTERING_COURSE)
    # by place: a name like ^x$ would be taken for a pattern of names
    bounds = _bounds(stays["statistics"].struct.unnest()[column].alias("bounds"))
    has_range = bounds.select((pl.col("min").is_not_null() & pl.col("max").is_not_null()).alias("ranged")).to_series()
    codes = _codes(bounds)
    records = stays["written"] if "written" in stays.columns else stays["records"]
    lives = pl.DataFrame(
        {
            "added": stays["from"],
            "removed": stays["removed"],
            "low": codes["low"],
            "high": codes["high"],
            "ranged": has_range,
            "nulls": (bounds["null_count"] >= records).fill_null(False) & ~has_range,
        }
    )
    rows = []
    for place in spread_evenly(range(commits.height), _versions(lives, commits.height)):
        live = lives.filter((pl.col("added") <= place) & (pl.col("removed").is_null() | (pl.col("removed") > place)))
        rows.append((place, *_at_version(live)))
    names = ("place", "files", "coverage", "depth", "reads", "reads_share")
    types = {"place": pl.Int64(), **{n: CLUSTERING_COURSE[n] for n in names[1:]}}
    course = pl.DataFrame(rows, schema=types, orient="row")
    line = commits.select("version", "timestamp", place=pl.int_range(pl.len()))
    return course.join(line, on="place").sort("place").pipe(conform, CLUSTERING_COURSE)


def _versions(lives: pl.DataFrame, versions: int) -> int:
    """How many versions to look at; at least a few."""
    return min(versions, max(4, min(_MOST_VERSIONS, _MOST_RANGES // max(1, lives.height))))


def _at_version(live: pl.DataFrame) -> tuple[int, float | None, float | None, float | None, float | None]:
    ranges = live.filter("ranged")
    nulls = int(live["nulls"].sum())
    depth, _ = _depth(ranges)
    if depth is None:
        return live.height, (nulls / live.height if live.height else None), None, None, None
    reads = depth + live.height - ranges.height - nulls
    return live.height, (ranges.height + nulls) / live.height, depth, reads, reads / live.height


def _measure(column: pl.DataFrame, records: pl.Series, scale: _Scale) -> tuple[object, ...]:
    """CLUSTERING of one column, without its name and type."""
    rows, files = scale.rows, scale.files
    ranges = _with_range(column)
    nulls = _all_null(column, records)
    unknown = rows - ranges.height - nulls
    with_counts = rows - column["null_count"].null_count()
    mean, most = scale.depth(pl.Series(_depth(_codes(ranges)), dtype=pl.Float64))
    reads = None if mean is None else mean + scale.count(unknown)
    return (
        files,
        scale.count(ranges.height),
        scale.count(nulls),
        scale.count(unknown),
        None if rows == 0 else (rows - unknown) / rows,
        None if rows == 0 else with_counts / rows,
        None if ranges.is_empty() else bool(ranges["exact"].fill_null(False).all()),
        mean,
        None if most is None else round(most),
        reads,
        None if reads is None else reads / files,
    )


def _bounds(statistics: pl.Series) -> pl.DataFrame:
    """`min, max, null_count, exact` of one column of STATISTICS; ends that are NaN are none."""
    fields = statistics.struct.unnest()
    types = {"min": pl.Null(), "max": pl.Null(), "null_count": pl.Int64(), "exact": pl.Boolean()}
    bounds = pl.DataFrame([statistic(fields, name, dtype) for name, dtype in types.items()])
    return bounds.with_columns(cs.float().fill_nan(None))


def _with_range(bounds: pl.DataFrame) -> pl.DataFrame:
    return bounds.filter(pl.col("min").is_not_null() & pl.col("max").is_not_null())


def _all_null(bounds: pl.DataFrame, records: pl.Series) -> int:
    """Files of which every value is null: they have no range to tell, and hold none of the values asked for."""
    without = bounds["min"].is_null() & bounds["max"].is_null()
    return int(((bounds["null_count"] >= records).fill_null(False) & without).sum())


def _codes(ranges: pl.DataFrame) -> pl.DataFrame:
    """`low, high` as numbers in the order of the values, null where a range has no such end."""
    low, high = ranges["min"], ranges["max"]
    dtype = low.dtype
    if dtype.is_integer() or dtype.is_float() or dtype == pl.String():
        return pl.DataFrame({"low": low, "high": high})
    if dtype.is_temporal() or dtype.is_decimal():
        return pl.DataFrame({"low": low.to_physical(), "high": high.to_physical()})
    if dtype == pl.Null():
        return pl.DataFrame({"low": low.cast(pl.Int64), "high": high.cast(pl.Int64)})
    both = pl.concat([low, high]).rank("dense")
    return pl.DataFrame({"low": both.head(low.len()), "high": both.tail(high.len())})


def _depth(codes: pl.DataFrame) -> tuple[float | None, float | None]:
    """How many ranges hold a place where one begins or ends: the mean of all of them, and the most."""
    if codes.is_empty():
        return None, None
    # places of a million files, evenly spread in the order of the values, tell the mean to a few parts in a million
    step = -(-codes.height // _MOST_MEASURED)
    ends = pl.DataFrame({"low": codes["low"].sort(), "high": codes["high"].sort()})
    places = pl.concat([ends["low"].gather_every(step), ends["high"].gather_every(step, (step - 1) // 2)])
    at = _depth_at(ends, places)
    mean, most = at.mean(), at.max()
    assert isinstance(mean, float), "there is at least one range"
    assert isinstance(most, int), "depths are counts"
    return mean, most


def _depth_at(codes: pl.DataFrame, places: pl.Series) -> pl.Series:
    """How many ranges contain each place: those that begin at or before it, less those that end before it; at least 0,
    also where a range ends before it begins. `codes`: lows and highs, each sorted for itself."""
    begins_before = codes["low"].search_sorted(places, side="right").cast(pl.Int64)
    ends_before = codes["high"].search_sorted(places, side="left").cast(pl.Int64)
    return (begins_before - ends_before).clip(0)
