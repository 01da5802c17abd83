"""`lakeview quality`, `pruning` and `schema --changes` on a table whose last load is null in a column."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

import lakeview as lv
from lakeview.cli import main

LOADS = 8


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Eight loads of fifty rows, a new column, and a load that is null in `price`."""
    address = str(tmp_path_factory.mktemp("columns") / "t")
    rows = pl.DataFrame({"id": range(50), "price": [1.5] * 50})
    table = lv.create_table(address, rows.to_arrow().schema)
    for load in range(LOADS):
        table.append(rows.with_columns(pl.col("id") + 50 * load))
    table.evolve(rows.with_columns(note=pl.lit("")).to_arrow().schema)
    table.append(rows.with_columns(pl.col("id") + 50 * LOADS, price=pl.lit(None, pl.Float64), note=pl.lit("n")))
    return address


def run(*words: str) -> Result:
    done = CliRunner(env={"COLUMNS": None}).invoke(main, list(words))
    assert done.exit_code == 0, done.output
    return done


def test_quality_shows_anomalies_and_then_each_column(address: str) -> None:
    text = run("quality", address).stdout
    assert text.startswith("attention  v10: price is null in 100 % of 50 rows, expected 0 %\n")
    *_, head, _, price, note = text.splitlines()
    assert head.split("  ")[0] == "column"
    assert price.split() == ["price", "11.1", "%", "100", "%", "0", "%", "1.5", "1.5", "1"]
    assert note.split()[:3] == ["note", "88.9", "%"]


def test_quality_says_where_there_is_nothing_to_judge(tmp_path: Path) -> None:
    lv.create_table(str(tmp_path / "t"), pl.Schema({"a": pl.Int64()}))
    lines = run("quality", str(tmp_path / "t")).stdout.splitlines()
    assert lines[:2] == ["No load can be judged yet: too few have statistics to compare", ""]


def test_quality_of_a_version_knows_no_later_load(address: str) -> None:
    document = json.loads(run("quality", address, "--version", "8", "--json").stdout)
    prices = next(column for column in document["columns"] if column["column"] == "price")
    assert (prices["load"], prices["null_share"], prices["anomalies"]) == (8, 0.0, 0)
    assert {finding["severity"] for finding in document["findings"]} == {"pass"}


def test_pruning_counts_what_a_filter_reads_and_skips(address: str) -> None:
    first, _, *reasons = run("pruning", address, "id < 100 AND price > 1").stdout.splitlines()
    assert first.startswith("It reads at most 2 of 9 files, ")
    assert [line.split()[:2] for line in reasons] == [["statistics", "7"], ["kept", "2"]]
    files = [file for file in json.loads(run("pruning", address, "id < 100", "--json").stdout) if file["kept"]]
    assert len(files) == 2
    hint = "note = NULL is true for no row: write note IS NULL"
    assert hint in run("pruning", address, "note = NULL").stdout.splitlines()


@pytest.mark.parametrize(
    ("where", "message"), [("nope > 1", "there is no column nope"), ("note > 1", "note is string")]
)
def test_filters_that_cannot_be_judged(address: str, where: str, message: str) -> None:
    done = CliRunner().invoke(main, ["pruning", address, where])
    assert done.exit_code == 2
    assert message in done.stderr


def test_changes_of_the_schema_up_to_a_version(address: str) -> None:
    line = run("schema", address, "--changes").stdout.splitlines()[1].split()
    assert (line[0], line[3:6]) == ("9", ["note", "added", "string"])
    assert run("schema", address, "--changes", "--version", "8").stdout == "no change of the schema is known\n"
