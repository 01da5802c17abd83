"""The tables that record what a pipeline did, below the folder of its published tables: their names and columns."""

import polars as pl

FOLDER = "_lakeview"
"""The folder, below a pipeline's output root, that holds the Delta tables of this module."""

MOMENT = pl.Datetime("us", "UTC")

RUNS = pl.Schema(
    {
        "pipeline": pl.String(),
        "run_id": pl.String(),
        "dataset": pl.String(),
        "step": pl.String(),
        "status": pl.String(),
        "started": MOMENT,
        "ended": MOMENT,
        "rows_in": pl.Int64(),
        "rows_out": pl.Int64(),
        "rows_dropped": pl.Int64(),
        "rows_quarantined": pl.Int64(),
        "output": pl.String(),
        "version": pl.Int64(),
        "error": pl.String(),
    }
)
"""`_lakeview/runs`: one row an event, appended and never changed. `run_id`: sorts by start. `dataset`: null for the run
as a whole. `step`: run, check (SDP's dry run), flows (SDP's run), flow (one commit of a sink), publish, maintain.
`status`: started (only for step run), succeeded, failed, unchanged (nothing was new), interrupted (a run that ended
without a record, noticed by the next one). `ended`: null for started. `rows_in`: read from the dataset's source;
`rows_out`: written to `output`; they differ from it by `rows_dropped` and `rows_quarantined`. Counts are null where a
step counts no rows. `output`: address of a table, `version`: the one that the step made. `error`: message of a step
that failed."""

EXPECTATIONS = pl.Schema(
    {
        "pipeline": pl.String(),
        "run_id": pl.String(),
        "dataset": pl.String(),
        "expectation": pl.String(),
        "action": pl.String(),
        "condition": pl.String(),
        "rows_checked": pl.Int64(),
        "rows_failed": pl.Int64(),
        "sample": pl.String(),
        "output": pl.String(),
        "version": pl.Int64(),
        "quarantine": pl.String(),
        "quarantine_version": pl.Int64(),
        "timestamp": MOMENT,
    }
)
"""`_lakeview/expectations`: one row an expectation and publication. `expectation`: its name; `action`: warn, drop,
quarantine or fail; `condition`: SQL text that a row has to satisfy, or `UNIQUE (a, b)`. A row fails where the condition
is not true. `sample`: JSON list of a few failed rows, null where none failed. `output` and `version`: the published
table and the version that was made, null where an expectation of action fail refused the rows. `quarantine`: address of
the table with the failed rows, at `quarantine_version`; null for other actions and where no row failed."""

LINEAGE = pl.Schema(
    {
        "pipeline": pl.String(),
        "run_id": pl.String(),
        "dataset": pl.String(),
        "step": pl.String(),
        "input": pl.String(),
        "input_from": pl.Int64(),
        "input_version": pl.Int64(),
        "output": pl.String(),
        "output_version": pl.Int64(),
        "timestamp": MOMENT,
    }
)
"""`_lakeview/lineage`: one row an input of a version of an output. `step`: flow (SDP wrote a sink) or publish. `input`:
address of a table, or of files that have no versions. `input_version`: the version that was read; where only what
commits added was read, the last of them, and `input_from` the first; `input_from` is null where all rows of the version
were read. `output`, `output_version`: address of a table and the version that was made. `timestamp`: of that commit."""

ADDRESSES = ("input", "output", "quarantine")
"""The columns with addresses. One of a table below the output root is written as `./` and its path from there, so that
the records are right wherever the folder is moved to; an inspection gives whole addresses."""

TABLES = {"runs": RUNS, "expectations": EXPECTATIONS, "lineage": LINEAGE}
"""Name of a table below `_lakeview` -> its columns."""
