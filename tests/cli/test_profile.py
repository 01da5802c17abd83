"""`lakeview profile`, by polars and by a process of jobs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.cli import profile
from lakeview.jobs import Progress, SparkJobs, State
from tests.cli.test_commands import json_of, run


@pytest.fixture
def address(tmp_path: Path) -> str:
    rows = pa.table({"id": [1, 2, 3, None], "text": ["a", "b", "a", "a"]})
    lv.create_table(str(tmp_path / "table"), rows.schema).append(rows)
    return str(tmp_path / "table")


def test_each_column_in_a_line(address: str) -> None:
    done = run("profile", address, "--where", "id < 3")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "column  type    nulls  null, %  distinct  min text  max text",
        "id      Int64       0      0.0         2  1         2",
        "text    String      0      0.0         2  a         b",
        "",
        "2 rows",
    ]
    lines = json_of("profile", address, "--column", "text")
    assert lines["rows"] == 4
    assert [value["count"] for value in lines["columns"][0]["distribution"]] == [3, 1]


def test_the_share_of_nulls_is_in_percent(tmp_path: Path) -> None:
    rows = pa.table({"id": [None, *range(136)]})
    lv.create_table(str(tmp_path / "table"), rows.schema).append(rows)
    assert run("profile", str(tmp_path / "table")).stdout.splitlines()[1].split()[:4] == ["id", "Int64", "1", "0.7"]
    assert json_of("profile", str(tmp_path / "table"))["columns"][0]["null_share"] == 1 / 137


def test_a_condition_is_of_the_table_as_for_other_commands(address: str) -> None:
    assert json_of("profile", address, "--where", "ID + 1 < 4 AND length(text) - 2 < 0")["rows"] == 2


def test_a_condition_that_does_not_fit_is_refused(address: str) -> None:
    done = run("profile", address, "--where", "id > 'x'")
    assert (done.exit_code, done.stderr.startswith("error: the rows cannot be profiled: ")) == (2, True)


def test_spark_gives_the_same_with_the_options_of_the_command_line(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the process of jobs, with another engine than Spark
    monkeypatch.setattr(profile, "SparkJobs", partial(SparkJobs, module="tests.jobs.small_worker"))
    option = ("--option", "auto_mkdir=true")
    assert json_of("profile", address, "--engine", "spark", *option) == json_of("profile", address)


def test_progress_is_one_line() -> None:
    assert Progress(State.WAITING).text == "waiting for other jobs to end"
    assert Progress(State.RUNNING, "planning").text == "planning"
    progress = Progress(State.RUNNING, "values of all columns", 1200, 300)
    assert (progress.text, progress.share) == ("values of all columns: 300 of 1,200 tasks", 0.25)
