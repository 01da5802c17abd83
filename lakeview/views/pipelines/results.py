"""The events of a pipeline to one row a run, one a step, and one an expectation with its share of failed rows."""

import polars as pl

from lakeview.model.pipelines import EXPECTATIONS, MOMENT

RUN_RESULTS = pl.Schema(
    {
        "pipeline": pl.String(),
        "run_id": pl.String(),
        "status": pl.String(),
        "started": MOMENT,
        "ended": MOMENT,
        "duration_ms": pl.Int64(),
        "datasets": pl.Int64(),
        "rows_in": pl.Int64(),
        "rows_out": pl.Int64(),
        "rows_dropped": pl.Int64(),
        "rows_quarantined": pl.Int64(),
        "expectations_failed": pl.Int64(),
        "rows_failed": pl.Int64(),
        "error": pl.String(),
    }
)
"""One row a run, newest first. `status`: succeeded, failed, interrupted, or running where no end is recorded: it runs,
or was killed and no other run has noticed yet. `datasets`: published by it; rows are those of its publications, 0
without any. `expectations_failed`: how many had a failed row, `rows_failed`: failures, a row counted once an
expectation. `error`: of the run or of its first step that failed."""

STEP_RESULTS = pl.Schema(
    {
        "dataset": pl.String(),
        "step": pl.String(),
        "status": pl.String(),
        "started": MOMENT,
        "ended": MOMENT,
        "duration_ms": pl.Int64(),
        "rows_in": pl.Int64(),
        "rows_out": pl.Int64(),
        "rows_dropped": pl.Int64(),
        "rows_quarantined": pl.Int64(),
        "output": pl.String(),
        "version": pl.Int64(),
        "error": pl.String(),
    }
)
"""One row a step that has ended, in the order in which they began, without the run as a whole; columns as in RUNS.
`duration_ms`: null where start and end are one moment, which is all that is recorded of the commits of flows."""

EXPECTATION_RESULTS = pl.Schema({**EXPECTATIONS, "failed_share": pl.Float64()})
"""EXPECTATIONS, newest first, those with failed rows before the others of a run. `failed_share`: 0 to 1, null where no
row was checked."""

_COUNTS = ("rows_in", "rows_out", "rows_dropped", "rows_quarantined")


def run_results(runs: pl.DataFrame, expectations: pl.DataFrame) -> pl.DataFrame:
    """RUN_RESULTS of RUNS and EXPECTATIONS."""
    whole = (pl.col("step") == "run") & pl.col("dataset").is_null()
    ends = runs.filter(whole, pl.col("status") != "started").group_by("run_id").agg(pl.col("status", "ended").last())
    is_publication = pl.col("step") == "publish"
    results = (
        runs.group_by("pipeline", "run_id")
        .agg(
            pl.col("started").min(),
            pl.col("dataset").filter(is_publication, pl.col("version").is_not_null()).n_unique().alias("datasets"),
            pl.col(*_COUNTS).filter(is_publication).sum(),
            pl.coalesce(pl.col("error").filter(whole).drop_nulls().first(), pl.col("error").drop_nulls().first()).alias(
                "error"
            ),
        )
        .join(ends, on="run_id", how="left")
        .join(_failures(expectations), on="run_id", how="left")
        .with_columns(
            pl.col("status").fill_null("running"),
            pl.col("expectations_failed", "rows_failed").fill_null(0),
            _duration(),
        )
    )
    return _conform(results.sort("started", "run_id", descending=True), RUN_RESULTS)


def step_results(runs: pl.DataFrame, run_id: str) -> pl.DataFrame:
    """STEP_RESULTS of one run in RUNS; empty for a run that is not there."""
    took = pl.when(pl.col("ended") != pl.col("started")).then(_duration()).alias("duration_ms")
    steps = runs.filter(pl.col("run_id") == run_id, pl.col("step") != "run").with_columns(took)
    return _conform(steps.sort("started", "ended", maintain_order=True), STEP_RESULTS)


def expectation_results(expectations: pl.DataFrame, run_id: str | None = None) -> pl.DataFrame:
    """EXPECTATION_RESULTS of one run or of all."""
    results = expectations if run_id is None else expectations.filter(pl.col("run_id") == run_id)
    rows_checked = pl.when(pl.col("rows_checked") > 0).then(pl.col("rows_checked"))
    results = results.with_columns((pl.col("rows_failed") / rows_checked).alias("failed_share"))
    order = ["run_id", "rows_failed", "timestamp", "dataset", "expectation"]
    return _conform(results.sort(order, descending=[True, True, True, False, False]), EXPECTATION_RESULTS)


def _failures(expectations: pl.DataFrame) -> pl.DataFrame:
    has_failed = pl.col("rows_failed") > 0
    return expectations.group_by("run_id").agg(
        pl.col("expectation").filter(has_failed).len().cast(pl.Int64).alias("expectations_failed"),
        pl.col("rows_failed").sum(),
    )


def _duration() -> pl.Expr:
    return (pl.col("ended") - pl.col("started")).dt.total_milliseconds().alias("duration_ms")


def _conform(frame: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    return frame.select(pl.col(name).cast(type_) for name, type_ in schema.items())
