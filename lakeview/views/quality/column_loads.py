"""Lifetimes of files and commits to what each load added to each column, and the loads that are anomalies.

Statistics alone: no data is read. A load is compared with the loads before it, or after it where too few came before.
"""

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.views.conform import conform, first_label
from lakeview.views.sums import shown_bounds, total
from lakeview.views.timeline.lifetimes import continuations
from lakeview.views.values import bound_texts, numbers

COLUMN_LOADS = pl.Schema(
    {
        "column": pl.String(),
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "writer": pl.String(),
        "lane": pl.String(),
        "taken_back_by": pl.Int64(),
        "folders": pl.UInt64(),
        "records": pl.Int64(),
        "null_count": pl.Int64(),
        "null_share": pl.Float64(),
        "exact": pl.Boolean(),
        "mark": pl.String(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "range_exact": pl.Boolean(),
        "oldest": pl.Datetime("us", "UTC"),
        "newest": pl.Datetime("us", "UTC"),
        "min_text": pl.String(),
        "max_text": pl.String(),
        "rewrites": pl.Boolean(),
        "earlier_share": pl.Float64(),
        "earlier_nulls": pl.Int64(),
        "earlier_low": pl.Float64(),
        "earlier_high": pl.Float64(),
    }
)
"""One row a column and load, loads oldest first. `folders`: a hash of the partitions that the paths of its files name,
as in `day=2026-01-31`. `records`: the rows it wrote, null where a file does not count its
own; `null_count` in the files that count nulls and rows, null where none does, and `null_share` of their rows. `mark`:
"" exact, "≤" a bound, "≈" from some of its files only. `low`, `high`: of numbers, null where a file has none;
`oldest`, `newest`: the min and max date or time; the texts: of any type. `rewrites`: the load removed files, so that
it may have written rows of theirs again; `earlier_share`, `earlier_nulls`, `earlier_low`, `earlier_high`: of these
files, null where one does not tell."""


LOAD_LANES = ("append", "change", "schema")


def column_loads(lifetimes: pl.DataFrame, timeline: pl.DataFrame) -> pl.DataFrame:
    """COLUMN_LOADS from LIFETIMES with `statistics` and TIMELINE: commits that changed data and wrote files.

    Files that no commit added or removed may be left out.
    A file that stays on with other deleted rows was loaded before, and is not counted again; nor is it removed.
    """
    loads = timeline.filter(pl.col("lane").is_in(LOAD_LANES) & pl.col("data_change")).select(
        pl.col("version").alias("added"), "timestamp", "writer", "lane", "taken_back_by"
    )
    loads = loads.with_row_index("load")
    # of the stays of one path the first; one that was there before all of these commits was loaded by none of them
    places = timeline.select(pl.col("version").alias("added")).with_row_index("place")
    order = lifetimes.select("path", "added").with_row_index("stay").join(places, on="added", how="left")
    first = order.sort(pl.col("added").is_not_null(), "place").unique("path", keep="first", maintain_order=True)
    first = first.join(loads.select("added", "load"), on="added").sort("load", "stay")
    if "statistics" not in lifetimes.columns or first.is_empty():
        return pl.DataFrame(schema=COLUMN_LOADS)
    files = lifetimes[first["stay"]]
    ends = lifetimes.select(pl.col("removed").alias("added")).with_row_index("stay")
    ends = ends.filter(~continuations(lifetimes)["goes_on"]).join(loads.select("added", "load"), on="added")
    earlier = _per_load(lifetimes[ends["stay"]], ends["load"]).select(
        "load",
        "column",
        earlier_share=pl.when(pl.col("mark") != _OF_SOME_FILES).then("null_share"),
        earlier_nulls=pl.when(pl.col("mark") != _OF_SOME_FILES).then("null_count"),
        earlier_low="low",
        earlier_high="high",
    )
    folders = pl.col("path").str.extract_all(r"[^/]+=[^/]*/").list.join("")
    by_load = files.with_columns(first["load"]).group_by("load").agg(folders=folders.unique().hash().sum())
    return (
        _per_load(files, first["load"])
        .join(by_load, on="load", maintain_order="left")
        .join(earlier, on=["load", "column"], how="left", maintain_order="left")
        .with_columns(rewrites=pl.col("load").is_in(ends["load"].unique().implode()))
        .join(loads.rename({"added": "version"}), on="load")
        .pipe(conform, COLUMN_LOADS)
    )


_EARLIER = ("rewrites", "earlier_share", "earlier_nulls", "earlier_low", "earlier_high")
_OF_LOADS = ("version", "timestamp", "writer", "lane", "taken_back_by", "folders", *_EARLIER)
_PER_LOAD = pl.Schema({n: t for n, t in COLUMN_LOADS.items() if n not in _OF_LOADS} | {"load": pl.UInt32()})
_OF_SOME_FILES = "\N{ALMOST EQUAL TO}"


def _per_load(files: pl.DataFrame, load: pl.Series) -> pl.DataFrame:
    """What files say of each column and load: `load` is the load of each of them."""
    # a load's rows are those it wrote, those deleted later included; where they are recorded, so are their nulls
    # "Map from column id to number of null values in the column"  iceberg spec, Manifests
    is_as_written = "written" in files.columns
    head = files.select(records="written" if is_as_written else "records").with_columns(load)
    columns = files["statistics"].struct
    parts = [
        _column(name, head, series.struct.unnest(), is_as_written=is_as_written)
        for name, series in zip(columns.fields, columns.unnest().get_columns(), strict=True)
    ]
    return pl.concat([pl.DataFrame(schema=_PER_LOAD), *parts]).with_columns(shown_bounds())


def _column(name: str, head: pl.DataFrame, statistics: pl.DataFrame, *, is_as_written: bool) -> pl.DataFrame:
    rows = head.with_columns(statistics.select("null_count", "null_count_exact", "exact", "min", "max"))
    if is_as_written:
        rows = rows.with_columns(null_count_exact=pl.col("null_count").is_not_null())
    has_counts = pl.col("null_count").is_not_null() & pl.col("records").is_not_null()
    empty = (pl.col("null_count") == pl.col("records")).fill_null(value=False)
    # a file without values has no range; one with values that does not tell leaves the load's unknown
    is_complete = (empty | (pl.col("min").is_not_null() & pl.col("max").is_not_null())).all()
    loads = rows.group_by("load", maintain_order=True).agg(
        rows_counted=pl.col("records").filter(has_counts).sum(),
        records=total("records"),
        null_count=pl.when(has_counts.any()).then(pl.col("null_count").filter(has_counts).sum()),
        complete=has_counts.all(),
        loose=(~pl.col("null_count_exact").fill_null(value=False)).filter(has_counts).any(),
        low=pl.when(is_complete).then(pl.col("min").min()),
        high=pl.when(is_complete).then(pl.col("max").max()),
        range_exact=is_complete & (empty | pl.col("exact").fill_null(value=False)).all(),
    )
    share = pl.when(pl.col("rows_counted") > 0).then((pl.col("null_count") / pl.col("rows_counted")).clip(0.0, 1.0))
    mark = first_label(
        {"": pl.col("complete") & ~pl.col("loose"), "\N{LESS-THAN OR EQUAL TO}": "complete"}, _OF_SOME_FILES
    )
    low, high = loads["low"], loads["high"]
    return loads.select(
        pl.lit(name).alias("column"),
        "records",
        "null_count",
        share.alias("null_share"),
        (pl.col("complete") & ~pl.col("loose") & share.is_not_null()).alias("exact"),
        pl.when(share.is_not_null()).then(mark).alias("mark"),
        numbers(low).alias("low"),
        numbers(high).alias("high"),
        "range_exact",
        _moments(low).alias("oldest"),
        _moments(high).alias("newest"),
        bound_texts(low, loads["range_exact"]).alias("min_text"),
        bound_texts(high, loads["range_exact"]).alias("max_text"),
        "load",
    ).cast(_PER_LOAD)


def _moments(values: pl.Series) -> pl.Series:
    if values.dtype == pl.Date or isinstance(values.dtype, pl.Datetime):
        moments = values.cast(pl.Datetime("us")) if values.dtype == pl.Date else values
        if isinstance(moments.dtype, pl.Datetime) and moments.dtype.time_zone is None:
            moments = moments.dt.replace_time_zone("UTC")
        return moments.cast(pl.Datetime("us", "UTC"))
    return pl.Series([None], dtype=pl.Datetime("us", "UTC")).new_from_index(0, values.len())


def files_ever(commits: pl.DataFrame, live: int) -> int | None:
    """About how many files a table ever had, from COMMITS and the number of its live files; those from before its first
    commit included. None where a commit does not record how many files it added."""
    if commits["files_added"].has_nulls():
        return None
    files_added = int(commits["files_added"].sum())
    return files_added if files_added >= live else files_added + live
