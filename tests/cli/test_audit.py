"""`lakeview audit`: its text, its JSON, its exit code."""

from __future__ import annotations

from pathlib import Path

from tests.builders.actions import add, info, remove
from tests.builders.history import DeltaHistory
from tests.cli.test_commands import json_of, run


def test_commits_that_satisfy_the_laws(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create().commit(info(operation="WRITE"), add("a", records=1))
    done = run("audit", history.address)
    assert done.exit_code == 0
    assert (
        "2 commits: no violation" in run("audit", history.commit(info(operation="DELETE"), remove("a")).address).stdout
    )
    assert {row["verdict"] for row in json_of("audit", history.address, "--end", "1")} <= {"proven", "unknowable"}


def test_a_violation_is_shown_with_its_remedy_and_fails(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create()
    history.commit(info(operation="DELETE", engineInfo="Engine/1.0"), remove("a"))
    done = run("audit", history.address)
    assert done.exit_code == 1
    assert done.stdout.startswith("1 commit: 1 violation in 1 commit, "), "the answer first"
    assert "violated   A commit of Engine/1.0 violates a law: a remove names a live file\n" in done.stdout
    assert "Delta protocol, Add File and Remove File" in done.stdout
    assert run("audit", history.address, "--json").exit_code == 1
