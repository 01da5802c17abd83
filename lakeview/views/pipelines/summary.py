"""The newest runs in one line each, and recorded samples of failed rows to frames of text."""

import json
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import polars as pl

from lakeview.model.printable import shorten
from lakeview.views.units import count_text, format_age, format_version

_MOST_OF_AN_ERROR = 240
_MOST_ROWS = 1_000
_MOST_COLUMNS = 100


class RunOutcome(StrEnum):
    """What became of a run, the worst first."""

    FAILED = "failed"
    INTERRUPTED = "interrupted"
    RUNNING = "running"
    ROWS_FAILED = "rows failed"
    SUCCEEDED = "succeeded"


def run_outcomes(runs: pl.DataFrame) -> pl.Series:
    """RunOutcome of each row of RUN_RESULTS: its status, or that rows of a run that succeeded failed an expectation."""
    rows_failed = (pl.col("status") == "succeeded") & (pl.col("rows_failed") > 0)
    return runs.select(
        pl.when(rows_failed).then(pl.lit(str(RunOutcome.ROWS_FAILED))).otherwise("status").alias("outcome")
    )["outcome"]


def run_sentences(runs: pl.DataFrame, now: datetime) -> pl.DataFrame:
    """`pipeline`, `outcome` (RunOutcome) and `sentence`: one row a pipeline of RUN_RESULTS, about its newest run.

    `shop: the last run succeeded 2 h ago: 1,200 rows of 2 tables published; 14 rows failed 2 expectations`
    """
    newest = runs.unique("pipeline", keep="first", maintain_order=True)
    ends = runs.filter(status="succeeded").unique("pipeline", keep="first", maintain_order=True)
    last_success = dict(ends.select("pipeline", "started").iter_rows())
    sentences = [_sentence(run, last_success.get(run["pipeline"]), now) for run in newest.iter_rows(named=True)]
    return newest.select("pipeline").with_columns(
        run_outcomes(newest), pl.Series("sentence", sentences, dtype=pl.String)
    )


def failed_rows(sample: str | None) -> pl.DataFrame | None:
    """A `sample` of EXPECTATIONS as a frame of texts, one row a failed row; None where it is no JSON list of rows.

    At most 1,000 rows and 100 columns. Values other than text are JSON; a value that a row does not have is null.
    """
    try:
        rows = json.loads(sample or "[]")
    except (ValueError, RecursionError):
        return None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return None
    rows = rows[:_MOST_ROWS]
    names = list(dict.fromkeys(name for row in rows for name in row))[:_MOST_COLUMNS]
    cells = {_text(name) or "": pl.Series([_text(row.get(name)) for row in rows], dtype=pl.String) for name in names}
    return pl.DataFrame(cells)


def version_name(name: str, version: int | None) -> str:
    """`orders v7`; of files without versions their name alone."""
    return name if version is None else f"{name} {format_version(version)}"


def _sentence(run: Mapping[str, Any], last_success: datetime | None, now: datetime) -> str:
    start_text, end_text = _ago(run["started"], now), _ago(run["ended"], now)
    match run["status"]:
        case "running":
            what = f"a run began {start_text} and has no recorded end: it goes on, or its process was killed"
        case "interrupted":
            what = f"the last run, begun {start_text}, was interrupted"
        case status:
            what = f"the last run {status} {end_text}"
    if run["error"]:
        what += f" ({shorten(' '.join(run['error'].split()), _MOST_OF_AN_ERROR)})"
    what += f": {count_text(run['rows_out'], 'row')} of {count_text(run['datasets'], 'table')} published"
    if run["rows_failed"]:
        what += (
            f"; {count_text(run['rows_failed'], 'row')} failed {count_text(run['expectations_failed'], 'expectation')}"
        )
    if run["status"] != "succeeded" and last_success is None:
        what += "; no run has succeeded yet"
    elif run["status"] != "succeeded":
        what += f"; the last one that succeeded began {_ago(last_success, now)}"
    return f"{run['pipeline'] or 'a pipeline without a name'}: {what}"


def _ago(moment: datetime | None, now: datetime) -> str:
    return "at an unknown time" if moment is None else f"{format_age(now - moment)} ago"


def _text(value: object) -> str | None:
    """A value of JSON as text; half a surrogate pair, which is no text, is replaced."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode("utf-8")
