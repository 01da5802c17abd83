"""The commands that maintain a table: what they print, and that nothing is deleted unless that is asked for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lakeview.cli import main
from tests.builders.actions import add
from tests.builders.history import DeltaHistory, log_name


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": None}).invoke(main, list(words))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table whose every file is from the year 2001, one of them of no commit."""
    DeltaHistory(tmp_path).create().commit(add("live.parquet")).write("live.parquet", b"x").write("orphan", b"12345")
    for file in tmp_path.rglob("*"):
        os.utime(file, (10**9, 10**9))
    return tmp_path


def test_a_vacuum_names_files_and_deletes_them_only_on_request(table: Path) -> None:
    done = run("vacuum", str(table))
    assert done.exit_code == 0, done.output
    assert "orphan" in done.stdout
    assert done.stdout.startswith("1 file, 5 bytes: nothing is deleted without --delete\n\n")
    assert (table / "orphan").exists()
    (record,) = json.loads(run("vacuum", str(table), "--json").stdout)
    assert (record["path"], record["size"], record["deleted"]) == ("orphan", 5, False)
    assert run("vacuum", str(table), "--delete").stdout.startswith("1 file, 5 bytes: deleted\n\n")
    assert not (table / "orphan").exists()
    assert run("vacuum", str(table)).stdout == "nothing to delete\n"


def test_a_short_retention_is_refused_in_two_lines(table: Path) -> None:
    done = run("vacuum", str(table), "--retain", "12h")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: a retention of 12:00:00 is shorter than the 7 days")
    assert run("vacuum", str(table), "--retain", "12h", "--allow-short-retention").exit_code == 0
    assert "give it as 7d or 12h" in run("vacuum", str(table), "--retain", "soon").stderr


def test_a_checkpoint_is_written_and_lets_the_log_before_it_go(table: Path) -> None:
    assert run("checkpoint", str(table)).stdout == "version 1 has a checkpoint\n"
    assert json.loads(run("checkpoint", str(table), "--version", "0", "--parts", "2", "--json").stdout) == {
        "version": 0
    }
    done = run("clean-log", str(table), "--keep-version", "0")
    assert done.stdout == "nothing to delete\n"
    assert run("clean-log", str(table), "--delete").stdout.partition("\n")[0].endswith(": deleted")
    assert not (table / log_name(0)).exists()
    assert (table / log_name(1, "checkpoint.parquet")).exists()


def test_commits_are_compacted(table: Path) -> None:
    name = f"{0:020d}.{1:020d}.compacted.json"
    assert run("compact-log", str(table), "0", "1").stdout == f"{name} holds what they add up to\n"
    assert (table / "_delta_log" / name).exists()
    assert "cannot be compacted" in run("compact-log", str(table), "0", "7").stderr


def test_only_delta_tables_are_maintained(tmp_path: Path) -> None:
    assert run("vacuum", str(tmp_path)).exit_code == 2
