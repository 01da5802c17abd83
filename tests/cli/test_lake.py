"""`lakeview tables`: the tables below a folder, worst first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lakeview.cli import main
from tests.builders.history import DeltaHistory
from tests.doctor.diagnosis import sound


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A sound table, and one whose log has a gap."""
    sound(DeltaHistory(tmp_path / "lake" / "good"))
    broken = DeltaHistory(tmp_path / "lake" / "deep" / "broken").create().commit().commit()
    broken.without(1)
    return str(tmp_path / "lake")


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": None}).invoke(main, list(words))


def test_the_worst_is_first_and_says_why(root: str) -> None:
    lines = run("tables", root).stdout.splitlines()
    assert lines[0].startswith("2 tables: 1 unreadable, 1 ")
    assert lines[2].split()[:3] == ["unreadable", "deep/broken", "delta"]
    assert "commit 1 is missing from the log" in lines[2]
    assert lines[3].split()[1:4] == ["good", "delta", "6"]
    document = json.loads(run("tables", root, "--json").stdout)
    assert [(table["name"], table["records"]) for table in document] == [("deep/broken", None), ("good", 6)]


def test_in_a_narrow_terminal_what_to_look_at_is_below_its_table_and_whole(root: str) -> None:
    lines = CliRunner(env={"COLUMNS": "70"}).invoke(main, ["tables", root]).stdout.splitlines()
    assert all(len(line) <= 70 and "\N{HORIZONTAL ELLIPSIS}" not in line for line in lines)
    assert lines[2].split()[:2] == ["unreadable", "deep/broken"]
    assert lines[3].startswith("    ")
    assert "commit 1 is missing from the log" in " ".join(line.strip() for line in lines[3:7])


def test_a_folder_without_tables(tmp_path: Path) -> None:
    assert run("tables", str(tmp_path)).stdout == "No tables\n"
    missing_folder = run("tables", str(tmp_path / "gone"))
    assert (missing_folder.exit_code, missing_folder.stderr.splitlines()[0]) == (
        2,
        f"error: there is no folder {tmp_path / 'gone'}",
    )
    assert run("tables", str(tmp_path), "--json").stdout == "[]\n"


def test_runs_of_a_folder_without_any_are_answered_by_the_folder_that_is_meant(tmp_path: Path) -> None:
    done = run("pipeline", "runs", str(tmp_path / "laek"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: no run of a pipeline is recorded below {tmp_path}/laek: {tmp_path}/laek/_lakeview/runs is no table: "
        "the folder is empty or not there\n"
        "fix: give the folder that lakeview-pipeline.yml of a project names as output\n"
    )
