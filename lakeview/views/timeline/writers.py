"""Commits to their writers: who writes what, how often, and with which engine."""

import polars as pl

from lakeview.model.frames import UTC_MILLIS
from lakeview.views.conform import conform
from lakeview.views.sums import total
from lakeview.views.thresholds import BASELINE_MIN
from lakeview.views.timeline.branches import on_branch
from lakeview.views.timeline.downsampling import MOST_MARKS, SAMPLED, thin_marks

WRITERS = pl.Schema(
    {
        "writer": pl.String(),
        "engines": pl.String(),
        "commits": pl.Int64(),
        "share": pl.Float64(),
        "append": pl.Int64(),
        "change": pl.Int64(),
        "schema": pl.Int64(),
        "maintenance": pl.Int64(),
        "other": pl.Int64(),
        "suspicious": pl.Int64(),
        "records_added": pl.Int64(),
        "records_exact": pl.Boolean(),
        "records_text": pl.String(),
        "bytes_added": pl.Int64(),
        "bytes_removed": pl.Int64(),
        "first": UTC_MILLIS,
        "last": UTC_MILLIS,
        "median_gap_ms": pl.Int64(),
    }
)
"""One row a writer, the most commits first; `writer` null for commits that name none. `engines` with their versions,
as recorded; commits by lane; `records_added`: of the commits that record rows, a lower bound without `records_exact`;
`records_text` has it with ≥ then. Sums of bytes are null where a commit does not record them; `median_gap_ms`: between
its commits, null with fewer than five of them."""

_MOST_LANES = 12
_OTHERS = "others"
_NOBODY = "not recorded"
_LANES = ("append", "change", "schema", "maintenance", "other")


def engine_name() -> pl.Expr:
    """The engine of COMMITS with the client's version, which is left out where it repeats the engine with other signs
    between letters and digits; null where neither is recorded."""
    engine, client = (pl.col(name).str.replace_all(r"\W", "") for name in ("engine", "client_version"))
    more = pl.when(client.ne_missing(engine)).then("client_version")
    return pl.concat_str("engine", more, separator=" ", ignore_nulls=True).replace("", None)


def writers(timeline: pl.DataFrame, commits: pl.DataFrame) -> pl.DataFrame:
    """WRITERS of TIMELINE's line, with the engines that COMMITS name."""
    line = on_branch(timeline)
    line_commits = line.join(
        commits.select("version", engine_name=engine_name()), on="version", how="left", maintain_order="left"
    )
    gaps = pl.col("timestamp").drop_nulls().sort().diff().drop_nulls().dt.total_milliseconds()
    rows = (
        line_commits.group_by("writer")
        .agg(
            *((pl.col("lane") == lane).sum().alias(lane) for lane in _LANES),
            *(total(name) for name in ("bytes_added", "bytes_removed")),
            pl.when(pl.col("records_added").is_not_null().any()).then(pl.col("records_added").sum()),
            pl.col("suspicious").sum(),
            records_exact=pl.col("records_added").is_not_null().all(),
            engines=pl.col("engine_name").drop_nulls().unique(maintain_order=True).str.join(", ").replace("", None),
            commits=pl.len(),
            first=pl.col("timestamp").min(),
            last=pl.col("timestamp").max(),
            median_gap_ms=pl.when(gaps.len() >= BASELINE_MIN - 1).then(gaps.median()),
        )
        .with_columns(share=pl.col("commits") / pl.col("commits").sum())
        .sort("commits", "last", "writer", descending=[True, True, False], nulls_last=True)
    )
    texts = map(_records_text, rows["records_added"], rows["records_exact"])
    return rows.with_columns(records_text=pl.Series(list(texts), dtype=pl.String)).pipe(conform, WRITERS)


def writer_marks(timeline: pl.DataFrame) -> pl.DataFrame:
    """SAMPLED with the writers named: the _MOST_LANES that wrote most, the rest together as `others`; one commit for
    each writer, lane and span of time where there are more than MOST_MARKS."""
    line = on_branch(timeline).with_columns(pl.col("writer").fill_null(_NOBODY))
    most = line["writer"].value_counts(sort=True)["writer"]
    if most.len() > _MOST_LANES:
        is_top = pl.col("writer").is_in(most.head(_MOST_LANES).implode())
        line = line.with_columns(writer=pl.when(is_top).then("writer").otherwise(pl.lit(_OTHERS)))
    return thin_marks(line, ["writer", "lane", "suspicious"], MOST_MARKS).cast(SAMPLED)


def _records_text(records: int | None, exact: bool) -> str | None:
    return None if records is None else f"{records:,}" if exact else f"\N{GREATER-THAN OR EQUAL TO} {records:,}"
